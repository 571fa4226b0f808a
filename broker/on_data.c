/*  DATA: runs on their way from senders to a receiver (docs/protocol.md, "Data").
 *
 *  The work is per run, never per record. A message of at least FORWARD_SIZE bytes
 *  whose runs all go to one receiver is passed on as it is, with the stream ids
 *  rewritten in place and what must not pass made VOID. Everything else is copied
 *  into the receivers' open batches.
 */
#include "broker/answer.h"
#include "broker/engine_state.h"
#include "broker/window.h"

#include <stdlib.h>

#define FORWARD_SIZE    8192 /* smaller messages are copied: they would pin a read buffer */
#define REWIND_AGAIN_MS 200

typedef struct {
    hws_engine_t *engine;
    hws_peer_t *peer;
    hws_message_t *message;
    bool is_whole;           /* the message may still be passed on as it is */
    hws_peer_t *receiver;    /* of every run taken so far, while is_whole */
    size_t taken_count;      /* runs taken so far */
    size_t taken_bytes;      /* their headers and bodies */
    hws_outgoing_t *forward; /* allocated ahead, while is_whole */
} pass_t;

typedef enum { RUN_TAKE, RUN_SKIP } verdict_t;

static hws_seat_t *find_seat (pass_t *pass, uint64_t stream)
{
    hws_seat_t *const last = pass->peer->last_seat;
    if (last && last->session_id == stream) {
        return last;
    }
    hws_seat_t *const seat = hws_seat_of_session (pass->engine, pass->peer, stream);
    if (seat) {
        pass->peer->last_seat = seat;
    }
    return seat;
}

/*  Data of a stream that is not the peer's: said once a second, unless its attach
 *  waits.  */
static void tell_unknown (pass_t *pass, uint64_t stream)
{
    hws_engine_t *const engine = pass->engine;
    engine->stats.unknown_stream++;
    if (engine->now - pass->peer->unknown_at < HWS_UNKNOWN_STREAM_MS) {
        return;
    }
    pass->peer->unknown_at = engine->now;
    if (hws_waiting_has (engine, pass->peer, stream)) {
        return;
    }
    const hws_control_t message = {
        .verb = HWS_VERB_STREAM_CANCEL,
        .as.stream_cancel = {.session_id = stream, .code = "unknown_stream"}};
    hws_out_control (engine, pass->peer, &message);
}

static int copy_run (pass_t *pass, hws_peer_t *receiver, const hws_run_t *run)
{
    const int rc = hws_out_reserve_run (pass->engine, receiver, run->body.size);
    if (rc == 0) {
        hws_out_add_run (receiver, run);
    }
    return rc;
}

/*  The message cannot go as it is: the runs taken so far, which are the first that are
 *  not VOID, are copied after all. Without memory they are lost on the way and the
 *  receiver, who misses them, opens again.  */
static void give_up_whole (pass_t *pass)
{
    pass->is_whole = false;
    hws_batch_t batch;
    hws_run_t run;
    if (pass->taken_count == 0 || hws_batch_open (&batch, pass->message->frame[0]) != 0) {
        return;
    }
    size_t left = pass->taken_count;
    while (left > 0 && hws_batch_next_run (&batch, &run) == 1) {
        if (run.type == HWS_RUN_VOID) {
            continue;
        }
        left--;
        if (copy_run (pass, pass->receiver, &run) != 0) {
            pass->receiver->owes_resync = true;
        }
    }
}

/*  Ends the stream, behind what was taken of it. An ending that was forwarded on this
 *  connection stands; one that was rewound and not yet repeated is replaced.  */
static void violate (pass_t *pass, hws_seat_t *seat, const char *reason)
{
    if (pass->is_whole) {
        give_up_whole (pass);
    }
    pass->engine->stats.protocol_errors++;
    hws_seat_end (pass->engine, seat, HWS_RUN_DROPPED, HWS_CAUSE_PROTOCOL, reason,
                  seat->next_seq <= seat->end_seq);
}

/*  What is wrong with the run's own fields, or null.  */
static const char *fault_of (const hws_run_t *run)
{
    if (run->type == HWS_RUN_DROPPED || run->type == HWS_RUN_CANCELLED ||
        run->type == HWS_RUN_ATTACHED) {
        return "a sender may not send this type of run";
    }
    if (run->count == 0 || run->first_seq > UINT64_MAX / 2) {
        return "a run takes no number, or an absurd one";
    }
    if (run->type == HWS_RUN_RECORDS) {
        if (run->body.size / HWS_RECORD_HEADER_SIZE < run->count) {
            return "a run is too small for its records";
        }
        if (run->count > 1 && (run->flags & HWS_RUN_MORE)) {
            return "a part of a record is a run of its own";
        }
        return NULL;
    }
    if (run->type <= HWS_RUN_FINALIZED && run->count != 1) {
        return "an error or ending takes one number";
    }
    if (run->type == HWS_RUN_ERROR && run->body.size > HWS_TEXT_SIZE_MAX) {
        return "an error's text is too long";
    }
    hws_ending_t ending;
    if (hws_run_is_ending (run->type) && hws_ending_decode (run->body, &ending) != 0) {
        return "an ending is malformed";
    }
    return NULL;
}

/*  Whether the run comes next and is allowed (docs/protocol.md, "Data", the table of
 *  positions). Everything else is answered here.  */
static verdict_t judge (pass_t *pass, hws_seat_t *seat, const hws_run_t *run)
{
    hws_engine_t *const engine = pass->engine;
    const char *const fault = fault_of (run);
    if (seat->is_ending_ours || !seat->anchor->is_receiver_present) {
        return RUN_SKIP;
    }
    if (fault) {
        violate (pass, seat, fault);
        return RUN_SKIP;
    }
    const uint64_t end = run->first_seq + run->count;
    if (end <= seat->next_seq) {
        return RUN_SKIP;
    }
    if (run->first_seq != seat->next_seq) {
        engine->stats.gaps++;
        if (!seat->has_gap || engine->now - seat->rewound_at >= REWIND_AGAIN_MS) {
            hws_seat_rewind (engine, seat);
        }
        return RUN_SKIP;
    }
    const bool is_ending = hws_run_is_ending (run->type);
    if (seat->state == HWS_SEAT_EXITING &&
        (is_ending ? run->first_seq != seat->end_seq : end > seat->end_seq)) {
        violate (pass, seat, "data after the ending");
        return RUN_SKIP;
    }
    if (seat->state == HWS_SEAT_EXITING && is_ending && run->type != seat->own_ending) {
        violate (pass, seat, "another ending than before");
        return RUN_SKIP;
    }
    if (!is_ending && (end > seat->limit_seq || seat->next_bytes > seat->limit_bytes ||
                       run->body.size > seat->limit_bytes - seat->next_bytes)) {
        engine->stats.credit_violations++;
        violate (pass, seat, "sent beyond its window");
        return RUN_SKIP;
    }
    return RUN_TAKE;
}

static void handle_run (pass_t *pass, hws_run_t *run)
{
    hws_engine_t *const engine = pass->engine;
    uint8_t *const header =
        pass->message->data + (run->body.data - pass->message->data) - HWS_RUN_HEADER_SIZE;
    engine->stats.runs_in++;
    if (run->type == HWS_RUN_VOID) {
        return;
    }
    hws_seat_t *const seat = find_seat (pass, run->stream);
    if (seat == NULL) {
        tell_unknown (pass, run->stream);
        hws_run_set_type (header, HWS_RUN_VOID);
        return;
    }
    if (run->type == HWS_RUN_FINALIZED && !hws_anchor_is_exclusive (seat->anchor)) {
        run->type = HWS_RUN_DETACHED; /* nobody closes a shared anchor by ending */
        hws_run_set_type (header, HWS_RUN_DETACHED);
    }
    if (judge (pass, seat, run) == RUN_SKIP) {
        hws_run_set_type (header, HWS_RUN_VOID);
        return;
    }
    hws_peer_t *const receiver = seat->anchor->owner;
    if (pass->is_whole && pass->receiver && pass->receiver != receiver) {
        give_up_whole (pass);
    }
    pass->receiver = receiver;
    run->stream = seat->routing_session_id;
    hws_run_set_stream (header, run->stream);
    if (!pass->is_whole && copy_run (pass, receiver, run) != 0) {
        hws_seat_rewind (engine, seat); /* no memory: it comes again */
        return;
    }
    pass->taken_count++;
    pass->taken_bytes += HWS_RUN_HEADER_SIZE + run->body.size;
    engine->stats.records_in += run->count;
    hws_seat_advance (seat, run);
    if (hws_run_is_ending (run->type)) {
        hws_seat_exit (engine, seat, run->type, run->first_seq);
    } else {
        hws_window_used (engine, seat);
    }
}

void hws_on_data (hws_engine_t *engine, hws_peer_t *peer, hws_message_t *message,
                  hws_batch_t *batch)
{
    pass_t pass = {.engine = engine, .peer = peer, .message = message};
    if (message->payload && message->frame[0].size >= FORWARD_SIZE) {
        pass.forward = calloc (1, sizeof *pass.forward);
        pass.is_whole = pass.forward != NULL;
    }
    hws_run_t run;
    int rc;
    while ((rc = hws_batch_next_run (batch, &run)) == 1) {
        handle_run (&pass, &run);
    }
    /* A message is held whole only if the windows count most of it. */
    if (pass.is_whole && (rc < 0 || pass.taken_bytes < message->frame[0].size / 2)) {
        give_up_whole (&pass);
    }
    if (rc < 0) {
        hws_engine_fault (engine, peer, HWS_EPROTOCOL, "a batch is malformed");
    }
    if (pass.is_whole && pass.taken_count > 0) {
        pass.forward->effect.payload = message->payload;
        pass.forward->effect.size = message->frame[0].size;
        message->payload = NULL;
        hws_out_forward (engine, pass.receiver, pass.forward);
    } else {
        free (pass.forward);
    }
}
