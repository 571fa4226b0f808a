/*  libFuzzer: any bytes as a batch. Every item, record and ending is read and written
 *  again at the same place of a copy; the copy must then be the message, but for what
 *  the protocol reserves.
 */
#include "base/assert.h"
#include "base/limits.h"
#include "proto/batch.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

/*  Reads a body as records and writes their lengths again.  */
static void check_records (hws_bytes_t body)
{
    hws_cursor_t cursor = hws_cursor (body);
    hws_bytes_t record;
    size_t at = 0;
    while (hws_run_next_record (&cursor, &record) > 0) {
        uint8_t header[HWS_RECORD_HEADER_SIZE];
        hws_record_put (header, (uint32_t) record.size);
        const uint32_t length = hws_get_u32 (body.data + at) & HWS_RECORD_SIZE_MAX;
        hws_assert (hws_get_u32 (header) == length);
        hws_assert (record.data == body.data + at + sizeof header);
        at += sizeof header + record.size;
        hws_assert (at <= body.size);
    }
}

static void check_ending (hws_bytes_t body)
{
    hws_ending_t ending;
    if (hws_ending_decode (body, &ending) != 0) {
        return;
    }
    uint8_t again[HWS_ENDING_HEADER_SIZE + HWS_TEXT_SIZE_MAX];
    hws_ending_put (again, &ending);
    memset (again + 2, 0, 2);
    hws_assert (memcmp (again, body.data, 2) == 0);
    hws_assert (memcmp (again + 4, body.data + 4, body.size - 4) == 0);
    hws_assert (*hws_cause_word (ending.cause));
}

static void check_run (const uint8_t *message, size_t size, const hws_run_t *run)
{
    hws_assert (run->body.data >= message + HWS_BATCH_HEADER_SIZE + HWS_RUN_HEADER_SIZE);
    hws_assert (run->body.size <= size - (size_t) (run->body.data - message));
    const uint8_t *const header = run->body.data - HWS_RUN_HEADER_SIZE;
    uint8_t again[HWS_RUN_HEADER_SIZE];
    hws_run_put (again, run);
    hws_assert (memcmp (again, header, 26) == 0);
    check_records (run->body);
    check_ending (run->body);
}

/*  Reads the next item and compares what it puts with where it lay. Returns as the
 *  readers do.  */
static int check_item (hws_batch_t *batch, const uint8_t *message, size_t size)
{
    const uint8_t *const at = batch->cursor.at;
    uint8_t again[HWS_POSITION_SIZE];
    size_t same = 0;
    int rc;
    if (batch->kind == HWS_BATCH_DATA) {
        hws_run_t run;
        rc = hws_batch_next_run (batch, &run);
        if (rc > 0) {
            check_run (message, size, &run);
        }
        return rc;
    }
    if (batch->kind == HWS_BATCH_GRANT) {
        hws_grant_t grant;
        rc = hws_batch_next_grant (batch, &grant);
        if (rc > 0) {
            hws_grant_put (again, &grant);
            same = HWS_GRANT_SIZE - 4;
        }
    } else if (batch->kind == HWS_BATCH_ACK) {
        hws_ack_t ack;
        rc = hws_batch_next_ack (batch, &ack);
        if (rc > 0) {
            hws_ack_put (again, &ack);
            same = HWS_ACK_SIZE - 4;
        }
    } else if (batch->kind == HWS_BATCH_POSITION) {
        hws_position_t position;
        rc = hws_batch_next_position (batch, &position);
        if (rc > 0) {
            hws_position_put (again, &position);
            again[53] = at[53];
            same = HWS_POSITION_SIZE;
        }
    } else {
        hws_window_t window;
        rc = hws_batch_next_window (batch, &window);
        if (rc > 0) {
            hws_window_put (again, &window);
            same = HWS_WINDOW_SIZE;
        }
    }
    hws_assert (rc <= 0 || memcmp (again, at, same) == 0);
    return rc;
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    hws_batch_t batch;
    if (hws_batch_open (&batch, hws_bytes (data, size)) != 0 || batch.kind > HWS_BATCH_WINDOW) {
        return 0;
    }
    uint8_t again[HWS_BATCH_HEADER_SIZE];
    hws_batch_put (again, (hws_batch_kind_t) batch.kind, batch.count);
    hws_assert (memcmp (again, data, 4) == 0);
    size_t items = batch.count;
    int rc;
    while ((rc = check_item (&batch, data, size)) > 0) {
        items--;
    }
    hws_assert (rc < 0 || (items == 0 && batch.cursor.left == 0));
    hws_assert (rc == 0 || check_item (&batch, data, size) < 0);
    return 0;
}
