#include "proto/control.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/json.h"
#include "base/json_writer.h"
#include "proto/control_read.h"
#include "proto/control_table.h"
#include "proto/control_write.h"

#include <stdio.h>

static const char *const s_words[HWS_VERB_COUNT] = {
    [HWS_VERB_HELLO] = "HELLO",
    [HWS_VERB_OPEN] = "OPEN",
    [HWS_VERB_ATTACH] = "ATTACH",
    [HWS_VERB_DETACH] = "DETACH",
    [HWS_VERB_CANCEL] = "CANCEL",
    [HWS_VERB_CANCEL_TOKEN] = "CANCEL_TOKEN",
    [HWS_VERB_RESERVE_TOKEN] = "RESERVE_TOKEN",
    [HWS_VERB_PING] = "PING",
    [HWS_VERB_PONG] = "PONG",
    [HWS_VERB_BYE] = "BYE",
    [HWS_VERB_STREAM_CANCEL] = "STREAM_CANCEL",
    [HWS_VERB_ANCHOR_CLOSED] = "ANCHOR_CLOSED",
    [HWS_VERB_RESYNC] = "RESYNC",
    [HWS_VERB_GOAWAY] = "GOAWAY",
    [HWS_VERB_ERROR] = "ERROR",
};

const char *hws_verb_word (hws_verb_t verb)
{
    return verb < HWS_VERB_COUNT ? s_words[verb] : "unknown";
}

static hws_verb_t find_verb (hws_bytes_t frame)
{
    hws_verb_t verb = HWS_VERB_HELLO;
    while (verb < HWS_VERB_COUNT && !hws_bytes_equal (frame, hws_bytes_of_text (s_words[verb]))) {
        verb++;
    }
    return verb;
}

/*  Parses bytes that must be one JSON object within the limits of the wire. The tree
 *  is the caller's, to be freed with cJSON_Delete; null after an error.  */
static int parse (hws_bytes_t json, cJSON **tree, hws_control_fault_t fault)
{
    *tree = NULL;
    const hws_json_limits_t limits = {.size_max = HWS_CONTROL_SIZE_MAX,
                                      .depth_max = HWS_CONTROL_DEPTH_MAX};
    hws_json_fault_t json_fault;
    const int rc = hws_json_check (json, limits, &json_fault);
    if (rc == HWS_EMALFORMED) {
        snprintf (fault, sizeof (hws_control_fault_t), "JSON, byte %zu: %s", json_fault.offset,
                  json_fault.text);
        return rc;
    }
    if (rc == 0) {
        *tree = cJSON_ParseWithLengthOpts ((const char *) json.data, json.size, NULL, 0);
    }
    if (*tree == NULL) {
        snprintf (fault, sizeof (hws_control_fault_t), "%s", hws_strerror (HWS_ENO_MEMORY));
        return HWS_ENO_MEMORY;
    }
    if (!cJSON_IsObject (*tree)) {
        cJSON_Delete (*tree);
        *tree = NULL;
        snprintf (fault, sizeof (hws_control_fault_t), "JSON, byte 0: an object is expected");
        return HWS_EMALFORMED;
    }
    return 0;
}

/*  ---- Decoding ---- */

static int read_id (const cJSON *tree, hws_control_t *self, hws_control_fault_t fault)
{
    const cJSON *const item = cJSON_GetObjectItemCaseSensitive (tree, "id");
    if (item == NULL || cJSON_IsNull (item)) {
        return 0;
    }
    const char *const complaint = hws_number_read (item, &self->id);
    if (complaint) {
        self->id = 0;
        snprintf (fault, sizeof (hws_control_fault_t), "id %s", complaint);
        return HWS_EBAD_REQUEST;
    }
    self->has_id = true;
    return 0;
}

/*  Tells a request from its answers and sets `members` to the object that has the
 *  members of the message.  */
static int read_form (const cJSON *tree, hws_control_t *self, const cJSON **members,
                      hws_control_fault_t fault)
{
    const cJSON *const ok = cJSON_GetObjectItemCaseSensitive (tree, "Ok");
    const cJSON *const err = cJSON_GetObjectItemCaseSensitive (tree, "Err");
    const char *complaint = NULL;
    if (ok && err) {
        complaint = "Ok and Err exclude each other";
    } else if ((ok && !cJSON_IsObject (ok)) || (err && !cJSON_IsObject (err))) {
        complaint = "Ok and Err must be objects";
    } else if (self->verb == HWS_VERB_ERROR && !err) {
        complaint = "Err is missing";
    }
    if (complaint) {
        snprintf (fault, sizeof (hws_control_fault_t), "%s", complaint);
        return HWS_EBAD_REQUEST;
    }
    self->form = err ? HWS_FORM_ERR : ok ? HWS_FORM_OK : HWS_FORM_REQUEST;
    *members = err ? err : ok ? ok : tree;
    return 0;
}

/*  What the tables cannot say.  */
static int check_members (const hws_control_t *self, hws_control_fault_t fault)
{
    if (self->verb != HWS_VERB_ATTACH || self->form != HWS_FORM_REQUEST) {
        return 0;
    }
    const bool has_anchor = self->as.attach.anchor[0] != '\0';
    if (self->as.attach.has_handle != has_anchor) {
        return 0;
    }
    snprintf (fault, sizeof (hws_control_fault_t),
              has_anchor ? "handle and anchor exclude each other" : "handle or anchor is missing");
    return HWS_EBAD_REQUEST;
}

static int read_message (const cJSON *tree, hws_control_t *self, hws_control_fault_t fault)
{
    int rc = read_id (tree, self, fault);
    if (rc != 0) {
        return rc;
    }
    const cJSON *members;
    rc = read_form (tree, self, &members, fault);
    if (rc != 0) {
        return rc;
    }
    rc = hws_table_read (hws_control_table (self->verb, self->form), members, &self->as, fault);
    return rc != 0 ? rc : check_members (self, fault);
}

int hws_control_decode (hws_bytes_t verb, hws_bytes_t json, hws_control_t *self,
                        hws_control_fault_t fault)
{
    memset (self, 0, sizeof *self);
    fault[0] = '\0';
    self->verb = find_verb (verb);
    cJSON *tree;
    int rc = parse (json, &tree, fault);
    if (self->verb == HWS_VERB_COUNT) {
        if (rc == 0) {
            read_id (tree, self, fault);
        }
        snprintf (fault, sizeof (hws_control_fault_t), "the verb is not known");
        rc = HWS_EUNKNOWN_VERB;
    } else if (rc == 0) {
        rc = read_message (tree, self, fault);
    }
    cJSON_Delete (tree);
    return rc;
}

int hws_attached_decode (hws_bytes_t json, hws_attached_t *self)
{
    memset (self, 0, sizeof *self);
    hws_control_fault_t fault;
    cJSON *tree;
    int rc = parse (json, &tree, fault);
    if (rc == 0) {
        rc = hws_table_read (hws_attached_table (), tree, self, fault);
    }
    cJSON_Delete (tree);
    return rc;
}

/*  ---- Encoding ---- */

static int finish (const hws_json_writer_t *writer, size_t *used)
{
    *used = writer->used;
    return writer->is_full ? HWS_ETOO_LARGE : 0;
}

int hws_control_encode (const hws_control_t *self, uint8_t *buffer, size_t size, size_t *used)
{
    hws_assert (self->verb < HWS_VERB_COUNT);
    hws_assert (self->verb != HWS_VERB_ERROR || self->form == HWS_FORM_ERR);

    const bool is_answer = self->form != HWS_FORM_REQUEST;
    hws_json_writer_t writer;
    hws_json_writer_init (&writer, buffer, size);
    hws_json_open (&writer, '{');
    if (self->has_id) {
        hws_json_put_name (&writer, "id");
        hws_json_put_decimal (&writer, self->id);
    }
    if (is_answer) {
        hws_json_put_name (&writer, self->form == HWS_FORM_OK ? "Ok" : "Err");
        hws_json_open (&writer, '{');
    }
    hws_table_write (hws_control_table (self->verb, self->form), &self->as, is_answer, &writer);
    if (is_answer) {
        hws_json_close (&writer, '}');
    }
    hws_json_close (&writer, '}');
    return finish (&writer, used);
}

int hws_attached_encode (const hws_attached_t *self, uint8_t *buffer, size_t size, size_t *used)
{
    hws_json_writer_t writer;
    hws_json_writer_init (&writer, buffer, size);
    hws_json_open (&writer, '{');
    hws_table_write (hws_attached_table (), self, true, &writer);
    hws_json_close (&writer, '}');
    return finish (&writer, used);
}

/*  ---- Answers to ATTACH ---- */

int hws_attach_ok_check (const hws_attach_ok_t *self, bool is_new, hws_control_fault_t fault)
{
    fault[0] = '\0';
    if (self->has_ended) {
        return 0;
    }
    if (strcmp (self->streaming_transport_key, HWS_TRANSPORT_MUX) != 0) {
        snprintf (fault, sizeof (hws_control_fault_t), "streaming_transport_key %s is not known",
                  self->streaming_transport_key);
        return HWS_EPROTOCOL;
    }
    if (is_new && self->initial_credit == 0) {
        snprintf (fault, sizeof (hws_control_fault_t),
                  "initial_credit is 0: the broker does not offer " HWS_TRANSPORT_MUX);
        return HWS_EPROTOCOL;
    }
    return 0;
}

uint64_t hws_attach_ok_window_bytes (const hws_attach_ok_t *self)
{
    return self->slot_byte_budget ? self->slot_byte_budget : HWS_SLOT_BYTES_DEFAULT;
}
