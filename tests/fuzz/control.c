/*  libFuzzer: any bytes as a control message. The first byte chooses the verb (one of
 *  them the body of an ATTACHED run), the rest is the JSON. What decodes must encode,
 *  and what was encoded must decode to the same structure.
 */
#include "base/assert.h"
#include "proto/control.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

/*  All members at once, a text of 1,024 escaped characters included.  */
static uint8_t s_buffer[HWS_CONTROL_SIZE_MAX];

static void check_control (hws_verb_t verb, hws_bytes_t json)
{
    static hws_control_t message, back;
    hws_control_fault_t fault;
    const hws_bytes_t word = hws_bytes_of_text (hws_verb_word (verb));
    const int rc = hws_control_decode (word, json, &message, fault);
    hws_assert ((rc == 0) == (fault[0] == '\0'));
    if (rc != 0) {
        return;
    }
    size_t used;
    hws_assert (hws_control_encode (&message, s_buffer, sizeof s_buffer, &used) == 0);
    hws_assert (hws_control_decode (word, hws_bytes (s_buffer, used), &back, fault) == 0);
    hws_assert (memcmp (&message, &back, sizeof back) == 0);
}

static void check_attached (hws_bytes_t json)
{
    static hws_attached_t attached, back;
    if (hws_attached_decode (json, &attached) != 0) {
        return;
    }
    size_t used;
    hws_assert (hws_attached_encode (&attached, s_buffer, sizeof s_buffer, &used) == 0);
    hws_assert (hws_attached_decode (hws_bytes (s_buffer, used), &back) == 0);
    hws_assert (memcmp (&attached, &back, sizeof back) == 0);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    const hws_verb_t verb = (hws_verb_t) (data[0] % (HWS_VERB_COUNT + 2));
    const hws_bytes_t json = hws_bytes (data + 1, size - 1);
    if (verb == HWS_VERB_COUNT + 1) {
        check_attached (json);
    } else {
        check_control (verb, json);
    }
    return 0;
}
