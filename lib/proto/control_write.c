#include "proto/control_write.h"

#include "base/assert.h"
#include "base/error.h"

static void put_optional (hws_json_writer_t *writer, const hws_optional_t *optional,
                          void (*put_value) (hws_json_writer_t *, uint64_t))
{
    if (optional->state == HWS_NULL) {
        hws_json_put_null (writer);
    } else {
        put_value (writer, optional->value);
    }
}

static void put_handle (hws_json_writer_t *writer, const hws_handle_t *handle)
{
    char text[HWS_HANDLE_TEXT_SIZE];
    hws_handle_print (*handle, text);
    hws_json_put_text (writer, hws_bytes_of_text (text));
}

static void put_id (hws_json_writer_t *writer, const hws_id_t *id)
{
    char text[2 * HWS_ID_SIZE + 1];
    hws_id_print (id, text);
    hws_json_put_text (writer, hws_bytes_of_text (text));
}

static void put_literal (hws_json_writer_t *writer, const char *text)
{
    hws_json_put_text (writer, hws_bytes_of_text (text));
}

/*  Errors that never leave a process travel as the nearest that does.  */
static void put_code (hws_json_writer_t *writer, int code)
{
    hws_assert (code < 0);

    if (code == HWS_ENO_MEMORY) {
        code = HWS_ELIMIT;
    } else if (code < HWS_ECLOSED) {
        code = HWS_EPROTOCOL;
    }
    put_literal (writer, hws_error_word (code));
}

static void put_words (hws_json_writer_t *writer, const hws_words_t *words)
{
    hws_assert (words->count <= HWS_WORDS_MAX);

    hws_json_open (writer, '[');
    for (uint32_t i = 0; i < words->count; i++) {
        put_literal (writer, words->word[i]);
    }
    hws_json_close (writer, ']');
}

static void put_ranges (hws_json_writer_t *writer, const hws_range_t *ranges, uint32_t count)
{
    hws_assert (count <= HWS_RANGES_MAX);

    hws_json_open (writer, '[');
    for (uint32_t i = 0; i < count; i++) {
        hws_json_open (writer, '[');
        hws_json_put_decimal (writer, ranges[i].first);
        hws_json_put_decimal (writer, ranges[i].end);
        hws_json_close (writer, ']');
    }
    hws_json_close (writer, ']');
}

static uint32_t range_count (const hws_member_t *member, const char *structure)
{
    return *(const uint32_t *) (const void *) (structure + member->presence_offset);
}

static void put_value (const hws_member_t *member, const char *structure, bool is_complete,
                       hws_json_writer_t *writer)
{
    const void *const field = structure + member->offset;
    switch (member->type) {
    case HWS_MEMBER_DECIMAL:
        hws_json_put_decimal (writer, *(const uint64_t *) field);
        break;
    case HWS_MEMBER_MS:
        hws_json_put_number (writer, *(const uint64_t *) field);
        break;
    case HWS_MEMBER_SMALL:
        hws_json_put_number (writer, *(const uint32_t *) field);
        break;
    case HWS_MEMBER_OPT_MS:
        put_optional (writer, field, hws_json_put_number);
        break;
    case HWS_MEMBER_OPT_DECIMAL:
        put_optional (writer, field, hws_json_put_decimal);
        break;
    case HWS_MEMBER_BOOL:
        hws_json_put_bool (writer, *(const bool *) field);
        break;
    case HWS_MEMBER_HANDLE:
        put_handle (writer, field);
        break;
    case HWS_MEMBER_ID:
        put_id (writer, field);
        break;
    case HWS_MEMBER_NAME:
    case HWS_MEMBER_TEXT:
        put_literal (writer, field);
        break;
    case HWS_MEMBER_CODE:
        put_code (writer, *(const int *) field);
        break;
    case HWS_MEMBER_KIND:
        put_literal (writer, *(const hws_kind_t *) field == HWS_KIND_SPSC ? "spsc" : "mpsc");
        break;
    case HWS_MEMBER_EARLY:
        put_literal (writer, *(const bool *) field ? "kept" : "dropped");
        break;
    case HWS_MEMBER_WORDS:
        put_words (writer, field);
        break;
    case HWS_MEMBER_RANGES:
        put_ranges (writer, field, range_count (member, structure));
        break;
    case HWS_MEMBER_OBJECT:
        hws_json_open (writer, '{');
        hws_table_write (member->table, structure, is_complete, writer);
        hws_json_close (writer, '}');
        break;
    }
}

static bool is_zero (const char *field, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (field[i] != 0) {
            return false;
        }
    }
    return true;
}

static bool is_absent (const hws_member_t *member, const char *structure, bool is_complete);

static bool is_table_absent (const hws_table_t *table, const char *structure)
{
    for (size_t i = 0; i < table->count; i++) {
        if (!is_absent (&table->members[i], structure, false)) {
            return false;
        }
    }
    return true;
}

/*  Every default is zero (kind: mpsc, early: dropped), so one test serves all.  */
static bool is_absent (const hws_member_t *member, const char *structure, bool is_complete)
{
    const char *const field = structure + member->offset;
    if (member->type == HWS_MEMBER_RANGES) {
        return !is_complete && range_count (member, structure) == 0;
    }
    if (member->has_presence) {
        return !*(const bool *) (const void *) (structure + member->presence_offset);
    }
    if (member->is_required) {
        return false;
    }
    switch (member->type) {
    case HWS_MEMBER_OPT_MS:
    case HWS_MEMBER_OPT_DECIMAL:
        return ((const hws_optional_t *) (const void *) field)->state == HWS_ABSENT;
    case HWS_MEMBER_NAME:
    case HWS_MEMBER_TEXT:
        return *field == '\0';
    case HWS_MEMBER_WORDS:
        return !is_complete && ((const hws_words_t *) (const void *) field)->count == 0;
    case HWS_MEMBER_OBJECT:
        return !is_complete && is_table_absent (member->table, structure);
    case HWS_MEMBER_DECIMAL:
    case HWS_MEMBER_MS:
    case HWS_MEMBER_SMALL:
    case HWS_MEMBER_BOOL:
    case HWS_MEMBER_HANDLE:
    case HWS_MEMBER_ID:
    case HWS_MEMBER_CODE:
    case HWS_MEMBER_KIND:
    case HWS_MEMBER_EARLY:
    case HWS_MEMBER_RANGES:
        break;
    }
    return !is_complete && is_zero (field, member->size);
}

void hws_table_write (const hws_table_t *table, const void *structure, bool is_complete,
                      hws_json_writer_t *writer)
{
    for (size_t i = 0; i < table->count; i++) {
        const hws_member_t *const member = &table->members[i];
        if (!is_absent (member, structure, is_complete)) {
            hws_json_put_name (writer, member->name);
            put_value (member, structure, is_complete, writer);
        }
    }
}
