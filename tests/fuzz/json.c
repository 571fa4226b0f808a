/*  libFuzzer: any bytes as JSON. What the strict check takes, cJSON parses, and the
 *  check takes what cJSON then prints.
 */
#include "base/assert.h"
#include "base/error.h"
#include "base/json.h"

#include <cjson/cJSON.h>

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    const hws_json_limits_t limits = {.size_max = 65536, .depth_max = 32};
    hws_json_fault_t fault = {0};
    const int rc = hws_json_check (hws_bytes (data, size), limits, &fault);
    if (rc != 0) {
        hws_assert (rc == HWS_EMALFORMED && fault.offset <= size && fault.text);
        return 0;
    }
    cJSON *const tree = cJSON_ParseWithLengthOpts ((const char *) data, size, NULL, 0);
    hws_assert (tree);
    char *const printed = cJSON_PrintUnformatted (tree);
    hws_assert (printed);
    hws_assert (hws_json_check (hws_bytes_of_text (printed), (hws_json_limits_t){1 << 20, 32},
                                &fault) == 0);
    cJSON_free (printed);
    cJSON_Delete (tree);
    return 0;
}
