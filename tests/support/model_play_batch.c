#include "tests/support/model_hear.h"
#include "tests/support/model_play_part.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

/*  ---- Content ---- */

/*  A number of a stream always has the same content; `body` tells its size only.  */

static hws_run_t content (uint64_t session_id, uint64_t seq)
{
    uint64_t mixed = (session_id * 0x9e3779b97f4a7c15) ^ (seq * 0xbf58476d1ce4e5b9);
    mixed = (mixed ^ mixed >> 29) * 0x94d049bb133111eb;
    mixed ^= mixed >> 32;
    const size_t some = (size_t) (mixed >> 16);
    hws_run_t run = {.stream = session_id, .first_seq = seq, .count = 1};
    switch (mixed % 64) {
    case 0:
        run.type = HWS_RUN_ERROR;
        run.body.size = some % 9;
        break;
    case 1:
        run.type = 200; /* of the upper half: passed on */
        run.body.size = some % 40;
        break;
    case 2:
    case 3:
    case 4:
        run.flags = HWS_RUN_MORE;
        run.body.size = HWS_RECORD_HEADER_SIZE + some % 600;
        break;
    case 5:
    case 6:
    case 7:
        run.body.size = HWS_RECORD_HEADER_SIZE;
        break;
    case 8:
        run.body.size = HWS_RECORD_HEADER_SIZE + 8000 + some % 1000; /* is passed on whole */
        break;
    case 9:
    case 10:
        run.body.size = HWS_RECORD_HEADER_SIZE + some % 3000;
        break;
    default:
        run.body.size = HWS_RECORD_HEADER_SIZE + some % 60;
        break;
    }
    return run;
}

/*  ---- Batches ---- */

static void begin_batch (play_t *self, int client)
{
    if (self->batch_size == 0) {
        self->batch_size = HWS_BATCH_HEADER_SIZE;
        self->batch_count = 0;
        self->is_cut = self->is_faulty = false;
        self->is_used = play_begin_message (self, client);
    }
}

static void send_batch (play_t *self, int client, hws_batch_kind_t kind)
{
    hws_batch_put (self->batch, kind, self->batch_count);
    if (self->is_used && (self->is_cut || self->is_faulty)) {
        model_fault (&self->world.model, client);
    }
    model_world_batch (&self->world, client, self->connections[client], self->batch,
                       self->batch_size);
    self->batch_size = 0;
}

static bool has_room (const play_t *self, size_t size)
{
    return self->batch_size + size + 100 <= sizeof self->batch && !self->is_cut;
}

/*  Writes a run and tells the model. `from` is the first number whose content it has; a run
 *  of another type has a body of zeros.  */
static void add_run (play_t *self, int client, hws_run_t run, bool is_good)
{
    if (!has_room (self, HWS_RUN_HEADER_SIZE + run.body.size)) {
        return;
    }
    uint8_t *const at = self->batch + self->batch_size;
    hws_run_put (at, &run);
    uint8_t *const body = at + HWS_RUN_HEADER_SIZE;
    if (run.body.data) {
        memcpy (body, run.body.data, run.body.size);
    } else {
        memset (body, (uint8_t) run.first_seq, run.body.size);
    }
    if (run.type == HWS_RUN_RECORDS && is_good) {
        uint8_t *record = body;
        for (uint32_t i = 0; i < run.count; i++) {
            const size_t size = content (run.stream, run.first_seq + i).body.size;
            memset (record, (uint8_t) (run.first_seq + i), size);
            hws_record_put (record, (uint32_t) (size - HWS_RECORD_HEADER_SIZE));
            record += size;
        }
    }
    self->batch_size += HWS_RUN_HEADER_SIZE + run.body.size;
    self->batch_count++;
    if (self->is_used) {
        char text[MODEL_TEXT];
        run.body.data = body;
        model_body_text (&run, text);
        model_run (&self->world.model, client, &run, is_good, text);
    }
}

/*  Adds numbers from `first` on, `count` at most and as many as a run can hold, and until
 *  the limits if there are any. Returns how many.  */
static uint32_t add_content (play_t *self, const op_t *op, uint64_t first, uint32_t count,
                             uint64_t room_seq, uint64_t room_bytes)
{
    hws_run_t run = content (op->session_id, first);
    if (count == 0 || room_seq == 0 || run.body.size > room_bytes ||
        !has_room (self, HWS_RUN_HEADER_SIZE + run.body.size)) {
        return 0;
    }
    while (run.count < count && run.count < room_seq) {
        const hws_run_t more = content (op->session_id, first + run.count);
        const size_t size = run.body.size + more.body.size;
        if (run.type != HWS_RUN_RECORDS || more.type != HWS_RUN_RECORDS || run.flags ||
            more.flags || size > room_bytes || !has_room (self, HWS_RUN_HEADER_SIZE + size)) {
            break;
        }
        run.body.size = size;
        run.count++;
    }
    add_run (self, op->client, run, true);
    return run.count;
}

static void add_contents (play_t *self, const op_t *op, uint64_t first, uint32_t count,
                          uint64_t room_seq, uint64_t room_bytes)
{
    uint32_t added;
    while (count > 0 && (added = add_content (self, op, first, count, room_seq, room_bytes)) > 0) {
        for (uint32_t i = 0; i < added; i++) {
            room_bytes -= content (op->session_id, first + i).body.size;
        }
        first += added;
        count -= added;
        room_seq -= added;
    }
}

/*  The end of a stream; its sender counts as the broker does.  */
static void add_ending (play_t *self, const op_t *op, const model_seat_t *seat, uint64_t seq)
{
    uint8_t body[HWS_ENDING_HEADER_SIZE];
    const hws_ending_t ending = {.records = seat ? seat->records : 0,
                                 .bytes = seat ? seat->bytes : 0};
    hws_ending_put (body, &ending);
    add_run (self, op->client,
             (hws_run_t){.stream = op->session_id,
                         .first_seq = seq,
                         .count = 1,
                         .type = op->how == DATA_FINAL ? HWS_RUN_FINALIZED : HWS_RUN_DETACHED,
                         .body = {body, sizeof body}},
             true);
}

/*  Runs that break the rules by themselves.  */
static void add_faulty (play_t *self, const op_t *op, uint64_t seq)
{
    hws_run_t run = {.stream = op->session_id, .first_seq = seq, .count = 1};
    switch (op->count % 6) {
    case 0:
        run.type = HWS_RUN_CANCELLED;
        run.body.size = HWS_ENDING_HEADER_SIZE;
        break;
    case 1:
        run.count = 0;
        break;
    case 2:
        run.count = 3;
        run.body.size = 11; /* too small for three */
        break;
    case 3:
        run.count = 2;
        run.flags = HWS_RUN_MORE;
        run.body.size = 8;
        break;
    case 4:
        run.type = HWS_RUN_ERROR;
        run.count = 2;
        break;
    default:
        run.type = HWS_RUN_DETACHED;
        run.body.size = HWS_ENDING_HEADER_SIZE - 1;
        break;
    }
    add_run (self, op->client, run, false);
}

/*  A header that promises more than there is.  */
static void add_cut (play_t *self)
{
    if (has_room (self, HWS_RUN_HEADER_SIZE)) {
        const hws_run_t run = {.count = 1, .body = {NULL, 100}};
        hws_run_put (self->batch + self->batch_size, &run);
        self->batch_size += HWS_RUN_HEADER_SIZE;
        self->batch_count++;
        self->is_cut = true;
    }
}

static void add_data (play_t *self, const op_t *op)
{
    begin_batch (self, op->client);
    const model_seat_t *const seat = model_seat (&self->world.model, op->client, op->session_id);
    const uint64_t next = seat ? seat->next_seq : 0;
    const uint64_t back = next < op->count ? next : op->count;
    const uint64_t room_seq = seat && seat->limit_seq > next ? seat->limit_seq - next : 0;
    const uint64_t room_bytes =
        seat && seat->limit_bytes > seat->next_bytes ? seat->limit_bytes - seat->next_bytes : 0;
    switch ((data_how_t) op->how) {
    case DATA_NEXT:
        /* Before its ending, if that was rewound; unknown streams get a few. */
        add_contents (self, op, next,
                      seat && seat->has_ended && next <= seat->end_seq &&
                              seat->end_seq - next < op->count
                          ? (uint32_t) (seat->end_seq - next)
                          : op->count,
                      seat ? room_seq : 2, seat ? room_bytes : 500);
        return;
    case DATA_BEYOND:
        add_contents (self, op, next, op->count + 20, UINT64_MAX, UINT64_MAX);
        return;
    case DATA_SEEN:
        add_contents (self, op, next - back, (uint32_t) back, UINT64_MAX, UINT64_MAX);
        return;
    case DATA_ACROSS:
        add_content (self, op, next - back, (uint32_t) back + 3, UINT64_MAX, UINT64_MAX);
        return;
    case DATA_AHEAD:
        add_contents (self, op, next + op->count, 2, UINT64_MAX, UINT64_MAX);
        return;
    case DATA_ENDING:
    case DATA_FINAL:
        add_ending (self, op, seat, next);
        return;
    case DATA_FAULTY:
        add_faulty (self, op, next);
        return;
    case DATA_VOID:
        add_run (self, op->client,
                 (hws_run_t){.type = HWS_RUN_VOID, .body = {NULL, 9 * (size_t) op->count}}, true);
        return;
    case DATA_CUT:
        add_cut (self);
        return;
    }
}

/*  Where the stream stands behind its number `seq`, counted from what is acknowledged.  */
static uint64_t bytes_at (const model_seat_t *seat, uint64_t seq)
{
    uint64_t bytes = seat->acked_bytes;
    for (uint64_t i = seat->acked_seq; i < seq; i++) {
        const bool is_ending = seat->own_ending && i == seat->end_seq;
        bytes += is_ending ? HWS_ENDING_HEADER_SIZE : content (seat->session_id, i).body.size;
    }
    return bytes;
}

static void add_ack (play_t *self, const op_t *op)
{
    begin_batch (self, op->client);
    const model_seat_t *const seat = model_seat (&self->world.model, op->sender, op->session_id);
    hws_ack_t ack = {.stream = play_stream_of (self, op->sender, op->session_id).routing_id};
    if (seat) {
        const uint64_t span = seat->high_seq - seat->acked_seq;
        ack.acked_seq = op->how == ACK_SOME && span > 0 ? seat->acked_seq + op->count % span
                        : op->how == ACK_SAME           ? seat->acked_seq
                                                        : seat->high_seq;
        if (op->how == ACK_ENDED && op->count % 2 && seat->own_ending && seat->is_ending_ours &&
            seat->acked_seq <= seat->end_seq && seat->high_seq > seat->end_seq) {
            ack.acked_seq = seat->end_seq; /* ours, not the one that it replaced */
        }
        ack.acked_bytes = bytes_at (seat, ack.acked_seq);
        if (op->how == ACK_ENDED || (seat->has_ended && (op->how == ACK_ALL) && (op->count & 1))) {
            ack.flags = HWS_ACK_ENDED;
        }
    }
    if (op->how == ACK_BEYOND) {
        ack.acked_seq += 1;
        ack.acked_bytes += op->count;
    } else if (op->how == ACK_BACK && seat && seat->acked_bytes > 0) {
        ack.acked_bytes = seat->acked_bytes - 1; /* fewer than before for no less */
    }
    if (!has_room (self, HWS_ACK_SIZE)) {
        return;
    }
    hws_ack_put (self->batch + self->batch_size, &ack);
    self->batch_size += HWS_ACK_SIZE;
    self->batch_count++;
    if (self->is_used && !model_ack (&self->world.model, op->client, &ack)) {
        self->is_faulty = true;
    }
}

static void add_want (play_t *self, const op_t *op)
{
    begin_batch (self, op->client);
    const model_seat_t *const seat = model_seat (&self->world.model, op->client, op->session_id);
    const uint64_t size = content (op->session_id, seat ? seat->next_seq : 0).body.size;
    const model_anchor_t *const anchor =
        seat ? model_anchor (&self->world.model, seat->anchor) : NULL;
    const uint64_t half = anchor ? anchor->buffer_bytes / 2 : 1;
    hws_window_t window = {.stream = op->session_id,
                           .want_bytes = op->how == WANT_NEXT   ? size
                                         : op->how == WANT_SOME ? op->count
                                         : op->how == WANT_MOST ? half
                                                                : 0};
    if (op->how >= WANT_LESS && seat) { /* the answer to RETURN, or to an earlier one */
        window.limit_seq = seat->limit_seq - (op->how == WANT_LESS_LATE);
        window.limit_bytes = seat->high_bytes + op->count % 64 * 100;
    }
    if (!has_room (self, HWS_WINDOW_SIZE)) {
        return;
    }
    hws_window_put (self->batch + self->batch_size, &window);
    self->batch_size += HWS_WINDOW_SIZE;
    self->batch_count++;
    if (self->is_used && !model_window (&self->world.model, op->client, &window)) {
        self->is_faulty = true;
    }
}

void play_in_batch (play_t *self, const op_t *op, const op_t *next)
{
    if (op->kind == OP_DATA) {
        add_data (self, op);
    } else if (op->kind == OP_ACK) {
        add_ack (self, op);
    } else {
        add_want (self, op);
    }
    const bool goes_on =
        next && op->is_more && next->kind == op->kind && next->client == op->client;
    if (!goes_on) {
        send_batch (self, op->client,
                    op->kind == OP_DATA  ? HWS_BATCH_DATA
                    : op->kind == OP_ACK ? HWS_BATCH_ACK
                                         : HWS_BATCH_WINDOW);
    }
}
