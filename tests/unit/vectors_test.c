/*  The golden vectors of tests/vectors, against the codecs. The directory is the first
 *  argument, or tests/vectors below the current one.
 */
#include "base/error.h"
#include "base/hex.h"
#include "base/limits.h"
#include "proto/batch.h"
#include "proto/control.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define DATA_MAX 8192

/*  One vector: the lines of its file up to an empty one.  */
typedef struct {
    char name[128];
    char verb[64];
    uint8_t data[DATA_MAX]; /* the JSON or the batch */
    size_t size;
    char result[32];
    char fault[512];
    char canonical[DATA_MAX];
    char items[DATA_MAX]; /* one a line */
    bool differs;         /* written again, it is not the same bytes */
} vector_t;

static const char *s_directory = "tests/vectors";
static vector_t s_vector;

/*  ---- Reading the files ---- */

static void append (char *text, size_t size, const char *more)
{
    assert_true (strlen (text) + strlen (more) < size);
    strcat (text, more);
}

static void append_hex (vector_t *vector, const char *text)
{
    for (; *text; text++) {
        if (*text == ' ') {
            continue;
        }
        assert_true (vector->size < DATA_MAX);
        const int rc = hws_hex_parse (hws_bytes (text, 2), &vector->data[vector->size++], 1);
        assert_int_equal (rc, 0);
        text++;
    }
}

static void set_field (vector_t *vector, const char *key, const char *value)
{
    if (strcmp (key, "name") == 0) {
        append (vector->name, sizeof vector->name, value);
    } else if (strcmp (key, "verb") == 0) {
        append (vector->verb, sizeof vector->verb, value);
    } else if (strcmp (key, "json") == 0) {
        vector->size = strlen (value);
        assert_true (vector->size < DATA_MAX);
        memcpy (vector->data, value, vector->size);
    } else if (strcmp (key, "json-hex") == 0 || strcmp (key, "hex") == 0) {
        append_hex (vector, value);
    } else if (strcmp (key, "result") == 0) {
        append (vector->result, sizeof vector->result, value);
    } else if (strcmp (key, "fault") == 0) {
        append (vector->fault, sizeof vector->fault, value);
    } else if (strcmp (key, "canonical") == 0) {
        append (vector->canonical, sizeof vector->canonical, value);
    } else if (strcmp (key, "item") == 0) {
        append (vector->items, sizeof vector->items, value);
        append (vector->items, sizeof vector->items, "\n");
    } else if (strcmp (key, "rewrite") == 0) {
        vector->differs = true;
    } else {
        fail_msg ("%s: unknown key %s", vector->name, key);
    }
}

/*  Reads the next vector; returns false at the end of the file.  */
static bool read_vector (FILE *file, vector_t *vector)
{
    memset (vector, 0, sizeof *vector);
    char line[DATA_MAX];
    while (fgets (line, sizeof line, file)) {
        line[strcspn (line, "\n")] = '\0';
        if (line[0] == '\0' && vector->name[0]) {
            return true;
        }
        char *const colon = strchr (line, ':');
        if (line[0] == '#' || colon == NULL) {
            continue;
        }
        *colon = '\0';
        set_field (vector, line, colon[1] == ' ' ? colon + 2 : colon + 1);
    }
    return vector->name[0] != '\0';
}

static void for_each_vector (const char *file_name, void (*check) (const vector_t *))
{
    char path[512];
    snprintf (path, sizeof path, "%s/%s", s_directory, file_name);
    FILE *const file = fopen (path, "r");
    if (file == NULL) {
        fail_msg ("%s cannot be opened", path);
    }
    size_t count = 0;
    while (read_vector (file, &s_vector)) {
        check (&s_vector);
        count++;
    }
    fclose (file);
    print_message ("%s: %zu vectors\n", path, count);
    assert_true (count > 0);
}

static const char *result_word (int rc)
{
    return rc == 0 ? "ok" : hws_error_word (rc);
}

/*  ---- Control messages ---- */

static void check_control (const vector_t *vector)
{
    static hws_control_t message;
    hws_control_fault_t fault;
    const int rc = hws_control_decode (hws_bytes_of_text (vector->verb),
                                       hws_bytes (vector->data, vector->size), &message, fault);
    if (strcmp (result_word (rc), vector->result) != 0 || strcmp (fault, vector->fault) != 0) {
        fail_msg ("%s: %s: %s", vector->name, result_word (rc), fault);
    }
    if (rc != 0) {
        return;
    }
    static uint8_t buffer[DATA_MAX];
    size_t used;
    assert_int_equal (hws_control_encode (&message, buffer, sizeof buffer - 1, &used), 0);
    buffer[used] = '\0';
    if (strcmp ((const char *) buffer, vector->canonical) != 0) {
        fail_msg ("%s: written again it is %s", vector->name, (const char *) buffer);
    }
}

static void every_control_vector_holds (void **state)
{
    (void) state;
    for_each_vector ("control.txt", check_control);
}

static void every_bad_control_vector_is_refused (void **state)
{
    (void) state;
    for_each_vector ("control-bad.txt", check_control);
}

/*  Decodes from memory of the exact size, so that the sanitizers see every step beyond
 *  it: one error, and what it is.  */
static void expect_malformed (const vector_t *vector, const char *json, size_t size,
                              const char *how)
{
    static hws_control_t message;
    hws_control_fault_t fault;
    uint8_t *const copy = malloc (size + (size == 0));
    assert_non_null (copy);
    memcpy (copy, json, size);
    const int rc = hws_control_decode (hws_bytes_of_text (vector->verb), hws_bytes (copy, size),
                                       &message, fault);
    free (copy);
    if (rc != HWS_EMALFORMED || fault[0] == '\0') {
        fail_msg ("%s, %s: %s: %s", vector->name, how, result_word (rc), fault);
    }
}

/*  The message with something put behind its first brace.  */
static void expect_malformed_with (const vector_t *vector, const char *members, const char *how)
{
    static char json[2 * DATA_MAX];
    const char *const rest = vector->canonical + 1;
    snprintf (json, sizeof json, "{%s%s%s", members, rest[0] == '}' ? "" : ",", rest);
    expect_malformed (vector, json, strlen (json), how);
}

static void damage_control (const vector_t *vector)
{
    if (strcmp (vector->result, "ok") != 0) {
        return;
    }
    static char json[HWS_CONTROL_SIZE_MAX + 1];
    const size_t size = strlen (vector->canonical);
    for (size_t cut = 0; cut < size; cut++) {
        expect_malformed (vector, vector->canonical, cut, "truncated");
    }
    snprintf (json, sizeof json, "%s x", vector->canonical);
    expect_malformed (vector, json, size + 2, "with trailing text");
    snprintf (json, sizeof json, "%s%s", vector->canonical, vector->canonical);
    expect_malformed (vector, json, 2 * size, "twice");
    memset (json, ' ', sizeof json);
    memcpy (json, vector->canonical, size);
    expect_malformed (vector, json, sizeof json, "huge");
    expect_malformed_with (vector, "\"x\":1,\"x\":1", "with a member twice");
    expect_malformed_with (vector, "\"x\":[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]", "deep");
    expect_malformed_with (vector, "\"x\":\"\xff\"", "with bad UTF-8");
    expect_malformed_with (vector, "\"x\":\"\\u0000\"", "with a NUL");
    expect_malformed_with (vector, "\"x\":007", "with a number that is none");
}

static void malformed_control (void **state)
{
    (void) state;
    for_each_vector ("control.txt", damage_control);
}

/*  ---- Batches ---- */

/*  What was read, as the lines of a vector, and as the bytes of a batch again.  */
typedef struct {
    char items[DATA_MAX];
    uint8_t data[DATA_MAX];
    size_t size;
} readout_t;

static void print_bytes (readout_t *readout, const char *before, hws_bytes_t bytes)
{
    append (readout->items, sizeof readout->items, before);
    char digits[3];
    for (size_t i = 0; i < bytes.size; i++) {
        hws_hex_print (hws_bytes (bytes.data + i, 1), digits);
        append (readout->items, sizeof readout->items, digits);
    }
    append (readout->items, sizeof readout->items, bytes.size ? "\n" : "-\n");
}

__attribute__ ((format (printf, 2, 3))) static void print_item (readout_t *readout,
                                                                const char *format, ...)
{
    char line[512];
    va_list arguments;
    va_start (arguments, format);
    vsnprintf (line, sizeof line, format, arguments);
    va_end (arguments);
    append (readout->items, sizeof readout->items, line);
}

static void read_records (readout_t *readout, hws_bytes_t body)
{
    hws_cursor_t cursor = hws_cursor (body);
    hws_bytes_t record;
    int rc;
    while ((rc = hws_run_next_record (&cursor, &record)) > 0) {
        print_bytes (readout, "record ", record);
        hws_record_put (readout->data + readout->size, (uint32_t) record.size);
        memcpy (readout->data + readout->size + HWS_RECORD_HEADER_SIZE, record.data, record.size);
        readout->size += HWS_RECORD_HEADER_SIZE + record.size;
    }
    if (rc < 0) {
        print_item (readout, "record %s\n", result_word (rc));
    }
}

static void read_ending (readout_t *readout, hws_bytes_t body)
{
    hws_ending_t ending;
    const int rc = hws_ending_decode (body, &ending);
    if (rc != 0) {
        print_item (readout, "ending %s\n", result_word (rc));
        return;
    }
    print_item (readout, "ending cause=%u records=%" PRIu64 " bytes=%" PRIu64, ending.cause,
                ending.records, ending.bytes);
    print_bytes (readout, " text=", ending.text);
    hws_ending_put (readout->data + readout->size, &ending);
    readout->size += HWS_ENDING_HEADER_SIZE + ending.text.size;
}

static int read_run (readout_t *readout, hws_batch_t *batch)
{
    hws_run_t run;
    const int rc = hws_batch_next_run (batch, &run);
    if (rc <= 0) {
        return rc;
    }
    print_item (readout,
                "run stream=%" PRIu64 " first_seq=%" PRIu64 " count=%" PRIu32
                " type=%u flags=%u size=%zu\n",
                run.stream, run.first_seq, run.count, run.type, run.flags, run.body.size);
    hws_run_put (readout->data + readout->size, &run);
    readout->size += HWS_RUN_HEADER_SIZE;
    if (run.type == HWS_RUN_RECORDS) {
        read_records (readout, run.body);
    } else if (hws_run_is_ending (run.type)) {
        read_ending (readout, run.body);
    } else {
        if (run.type == HWS_RUN_ERROR || run.type == HWS_RUN_ATTACHED) {
            print_bytes (readout, "body ", run.body);
        }
        memcpy (readout->data + readout->size, run.body.data, run.body.size);
        readout->size += run.body.size;
    }
    return rc;
}

static int read_grant (readout_t *readout, hws_batch_t *batch)
{
    hws_grant_t grant;
    const int rc = hws_batch_next_grant (batch, &grant);
    if (rc > 0) {
        print_item (readout,
                    "grant stream=%" PRIu64 " acked_seq=%" PRIu64 " next_seq=%" PRIu64
                    " limit_seq=%" PRIu64 " limit_bytes=%" PRIu64 " flags=%" PRIu32 "\n",
                    grant.stream, grant.acked_seq, grant.next_seq, grant.limit_seq,
                    grant.limit_bytes, grant.flags);
        hws_grant_put (readout->data + readout->size, &grant);
        readout->size += HWS_GRANT_SIZE;
    }
    return rc;
}

static int read_ack (readout_t *readout, hws_batch_t *batch)
{
    hws_ack_t ack;
    const int rc = hws_batch_next_ack (batch, &ack);
    if (rc > 0) {
        print_item (readout,
                    "ack stream=%" PRIu64 " acked_seq=%" PRIu64 " acked_bytes=%" PRIu64
                    " flags=%" PRIu32 "\n",
                    ack.stream, ack.acked_seq, ack.acked_bytes, ack.flags);
        hws_ack_put (readout->data + readout->size, &ack);
        readout->size += HWS_ACK_SIZE;
    }
    return rc;
}

static int read_position (readout_t *readout, hws_batch_t *batch)
{
    hws_position_t position;
    const int rc = hws_batch_next_position (batch, &position);
    if (rc > 0) {
        print_item (readout,
                    "position sender_id=%" PRIu64 " next_seq=%" PRIu64 " next_bytes=%" PRIu64
                    " acked_seq=%" PRIu64 " acked_bytes=%" PRIu64 " seat_key=%" PRIu64
                    " flags=%" PRIu32 " type=%u cause=%u\n",
                    position.sender_id, position.next_seq, position.next_bytes, position.acked_seq,
                    position.acked_bytes, position.seat_key, position.flags, position.type,
                    position.cause);
        hws_position_put (readout->data + readout->size, &position);
        readout->size += HWS_POSITION_SIZE;
    }
    return rc;
}

static int read_window (readout_t *readout, hws_batch_t *batch)
{
    hws_window_t window;
    const int rc = hws_batch_next_window (batch, &window);
    if (rc > 0) {
        print_item (readout,
                    "window stream=%" PRIu64 " limit_seq=%" PRIu64 " limit_bytes=%" PRIu64
                    " want_bytes=%" PRIu64 "\n",
                    window.stream, window.limit_seq, window.limit_bytes, window.want_bytes);
        hws_window_put (readout->data + readout->size, &window);
        readout->size += HWS_WINDOW_SIZE;
    }
    return rc;
}

static int read_batch (readout_t *readout, hws_bytes_t message)
{
    static int (*const readers[]) (readout_t *, hws_batch_t *) = {
        [HWS_BATCH_DATA] = read_run,      [HWS_BATCH_GRANT] = read_grant,
        [HWS_BATCH_ACK] = read_ack,       [HWS_BATCH_POSITION] = read_position,
        [HWS_BATCH_WINDOW] = read_window,
    };
    hws_batch_t batch;
    int rc = hws_batch_open (&batch, message);
    if (rc != 0) {
        return rc;
    }
    hws_batch_put (readout->data, (hws_batch_kind_t) batch.kind, batch.count);
    readout->size = HWS_BATCH_HEADER_SIZE;
    if (batch.kind > HWS_BATCH_WINDOW) {
        return 0;
    }
    do {
        rc = readers[batch.kind](readout, &batch);
    } while (rc > 0);
    return rc;
}

static void check_batch (const vector_t *vector)
{
    static readout_t readout;
    memset (&readout, 0, sizeof readout);
    const hws_bytes_t message = hws_bytes (vector->data, vector->size);
    const int rc = read_batch (&readout, message);
    if (strcmp (result_word (rc), vector->result) != 0 ||
        strcmp (readout.items, vector->items) != 0) {
        fail_msg ("%s: %s\n%s", vector->name, result_word (rc), readout.items);
    }
}

static void check_good_batch (const vector_t *vector)
{
    static readout_t readout;
    check_batch (vector);
    memset (&readout, 0, sizeof readout);
    const hws_bytes_t message = hws_bytes (vector->data, vector->size);
    assert_int_equal (read_batch (&readout, message), 0);
    if (hws_bytes_equal (hws_bytes (readout.data, readout.size), message) == vector->differs) {
        fail_msg ("%s: written again it %s", vector->name,
                  vector->differs ? "is the same" : "is not the same");
    }
}

static void every_batch_vector_holds (void **state)
{
    (void) state;
    for_each_vector ("batch.txt", check_good_batch);
}

static void every_bad_batch_vector_is_refused (void **state)
{
    (void) state;
    for_each_vector ("batch-bad.txt", check_batch);
}

int main (int argc, char **argv)
{
    if (argc > 1) {
        s_directory = argv[1];
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (every_control_vector_holds),
        cmocka_unit_test (every_bad_control_vector_is_refused),
        cmocka_unit_test (malformed_control),
        cmocka_unit_test (every_batch_vector_holds),
        cmocka_unit_test (every_bad_batch_vector_is_refused),
    };
    return cmocka_run_group_tests_name ("vectors", tests, NULL, NULL);
}
