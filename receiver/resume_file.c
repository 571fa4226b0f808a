#include "receiver/resume_file.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/json.h"
#include "base/json_writer.h"
#include "proto/control_read.h"

#define FIELD(structure, field)                                                                    \
    .is_required = true, .offset = offsetof (structure, field),                                    \
    .size = sizeof ((structure *) 0)->field

static const hws_member_t s_anchor_members[] = {
    {"handle", HWS_MEMBER_HANDLE, FIELD (hws_resume_anchor_t, handle)},
    {"owner_token", HWS_MEMBER_ID, FIELD (hws_resume_anchor_t, owner_token)},
    {"anchor", HWS_MEMBER_NAME, FIELD (hws_resume_anchor_t, anchor)},
    {"records", HWS_MEMBER_DECIMAL, FIELD (hws_resume_anchor_t, records)},
    {"ended", HWS_MEMBER_DECIMAL, FIELD (hws_resume_anchor_t, ended)},
    {"bad", HWS_MEMBER_DECIMAL, FIELD (hws_resume_anchor_t, bad)},
    {"folded", HWS_MEMBER_DECIMAL, FIELD (hws_resume_anchor_t, folded)},
};
static const hws_table_t s_anchor = {s_anchor_members,
                                     sizeof s_anchor_members / sizeof *s_anchor_members};

static const hws_member_t s_sender_members[] = {
    {"sender", HWS_MEMBER_DECIMAL, FIELD (hws_resume_sender_t, sender_id), .least = 1},
    {"next_seq", HWS_MEMBER_DECIMAL, FIELD (hws_resume_sender_t, next_seq)},
    {"records", HWS_MEMBER_DECIMAL, FIELD (hws_resume_sender_t, records)},
    {"bytes", HWS_MEMBER_DECIMAL, FIELD (hws_resume_sender_t, bytes)},
    {"size", HWS_MEMBER_DECIMAL, FIELD (hws_resume_sender_t, size)},
    {"ended", HWS_MEMBER_BOOL, FIELD (hws_resume_sender_t, is_ended)},
    {"bad", HWS_MEMBER_BOOL, FIELD (hws_resume_sender_t, is_bad)},
    {"order", HWS_MEMBER_DECIMAL, FIELD (hws_resume_sender_t, order)},
    {"file", HWS_MEMBER_TEXT, FIELD (hws_resume_sender_t, file)},
};
static const hws_table_t s_sender = {s_sender_members,
                                     sizeof s_sender_members / sizeof *s_sender_members};

/*  ---- Writing ---- */

/*  The longest names, every character of them escaped, leave room.  */
static void finish (hws_json_writer_t *writer, char *line)
{
    hws_json_close (writer, '}');
    hws_assert (!writer->is_full);
    memset (line + writer->used, ' ', HWS_RESUME_LINE_SIZE - writer->used);
    line[HWS_RESUME_LINE_SIZE - 1] = '\n';
}

static void begin (hws_json_writer_t *writer, char *line)
{
    hws_json_writer_init (writer, line, HWS_RESUME_LINE_SIZE - 1);
    hws_json_open (writer, '{');
}

static void put_text (hws_json_writer_t *writer, const char *name, const char *text)
{
    hws_json_put_name (writer, name);
    hws_json_put_text (writer, hws_bytes_of_text (text));
}

static void put_decimal (hws_json_writer_t *writer, const char *name, uint64_t value)
{
    hws_json_put_name (writer, name);
    hws_json_put_decimal (writer, value);
}

static void put_bool (hws_json_writer_t *writer, const char *name, bool value)
{
    hws_json_put_name (writer, name);
    hws_json_put_bool (writer, value);
}

void hws_resume_anchor_write (const hws_resume_anchor_t *self, char *line)
{
    char handle[HWS_HANDLE_TEXT_SIZE];
    char owner_token[2 * HWS_ID_SIZE + 1];
    hws_json_writer_t writer;
    hws_handle_print (self->handle, handle);
    hws_id_print (&self->owner_token, owner_token);
    begin (&writer, line);
    put_text (&writer, "handle", handle);
    put_text (&writer, "owner_token", owner_token);
    put_text (&writer, "anchor", self->anchor);
    put_decimal (&writer, "records", self->records);
    put_decimal (&writer, "ended", self->ended);
    put_decimal (&writer, "bad", self->bad);
    put_decimal (&writer, "folded", self->folded);
    finish (&writer, line);
}

void hws_resume_sender_write (const hws_resume_sender_t *self, char *line)
{
    hws_json_writer_t writer;
    begin (&writer, line);
    put_decimal (&writer, "sender", self->sender_id);
    put_decimal (&writer, "next_seq", self->next_seq);
    put_decimal (&writer, "records", self->records);
    put_decimal (&writer, "bytes", self->bytes);
    put_decimal (&writer, "size", self->size);
    put_bool (&writer, "ended", self->is_ended);
    put_bool (&writer, "bad", self->is_bad);
    put_decimal (&writer, "order", self->order);
    put_text (&writer, "file", self->file);
    finish (&writer, line);
}

/*  ---- Reading ---- */

static int read_line (const hws_table_t *table, const char *line, void *structure)
{
    const hws_json_limits_t limits = {.size_max = HWS_RESUME_LINE_SIZE, .depth_max = 1};
    hws_json_fault_t json_fault;
    const int rc = hws_json_check (hws_bytes (line, HWS_RESUME_LINE_SIZE), limits, &json_fault);
    if (rc < 0) {
        return rc;
    }
    cJSON *const object = cJSON_ParseWithLength (line, HWS_RESUME_LINE_SIZE);
    if (object == NULL) {
        return HWS_ENO_MEMORY;
    }
    hws_control_fault_t fault;
    const bool is_read =
        cJSON_IsObject (object) && hws_table_read (table, object, structure, fault) == 0;
    cJSON_Delete (object);
    return is_read ? 0 : HWS_EMALFORMED;
}

static int check_same (const char *line, const char *written)
{
    return memcmp (line, written, HWS_RESUME_LINE_SIZE) == 0 ? 0 : HWS_EMALFORMED;
}

int hws_resume_anchor_read (hws_resume_anchor_t *self, const char *line)
{
    *self = (hws_resume_anchor_t){.records = 0};
    const int rc = read_line (&s_anchor, line, self);
    if (rc < 0) {
        return rc;
    }
    char written[HWS_RESUME_LINE_SIZE];
    hws_resume_anchor_write (self, written);
    return check_same (line, written);
}

int hws_resume_sender_read (hws_resume_sender_t *self, const char *line)
{
    *self = (hws_resume_sender_t){.sender_id = 0};
    const int rc = read_line (&s_sender, line, self);
    if (rc < 0) {
        return rc;
    }

    /*  A file of the directory, as output_name.h makes them.  */
    if (self->file[0] == '.' || strchr (self->file, '/')) {
        return HWS_EMALFORMED;
    }
    char written[HWS_RESUME_LINE_SIZE];
    hws_resume_sender_write (self, written);
    return check_same (line, written);
}
