/*  The engine: what its anchors have lent out, counted from outside over a million random
 *  steps of senders that keep the rules. What a sender may send and what was sent and is not
 *  acknowledged never is more than its anchor's budget, also while windows are lent and given
 *  back, by words that come late or twice; and in the end it is nothing.
 */
#include "tests/support/engine_test.h"

#include "broker/engine_state.h"
#include "tests/support/test_seed.h"

enum { STEPS = 1000000, SENDERS = 3, ANCHORS = 2, LINES = 24, KEPT = 256, LARGE_MAX = 12000 };

/*  One stream as both of its ends see it.  */
typedef struct {
    stream_t stream; /* what was sent, and the limits that the sender was told */
    int anchor;
    bool is_used;
    bool has_ended;          /* of itself, or it was told so */
    uint64_t end_bytes;      /* sent before its ending */
    bool is_asked;           /* to give back, and has not answered */
    hws_window_t said;       /* the last answer to that */
    uint64_t acked_seq;      /* by the receiver */
    uint64_t bytes_at[KEPT]; /* before each number that is not acknowledged */
} line_t;

static hws_random_t s_random;
static client_t *s_receiver;
static client_t *s_senders[SENDERS];
static hws_handle_t s_handles[ANCHORS];
static line_t s_lines[LINES];
static uint64_t s_sessions;
static uint64_t s_refused, s_wants, s_answers;

static uint64_t below (uint64_t bound)
{
    return hws_random_below (&s_random, bound);
}

static uint64_t bytes_at (const line_t *line, uint64_t seq)
{
    return line->bytes_at[seq % KEPT];
}

static void note_position (line_t *line)
{
    line->bytes_at[line->stream.next_seq % KEPT] = line->stream.next_bytes;
}

static line_t *any_line (bool has_ended)
{
    line_t *const line = &s_lines[below (LINES)];
    return line->is_used && line->has_ended == has_ended ? line : NULL;
}

/*  ---- What senders hear ---- */

static void end_line (line_t *line)
{
    if (!line->has_ended) {
        line->has_ended = true;
        line->end_bytes = line->stream.next_bytes;
    }
}

static line_t *line_of (const client_t *client, uint64_t session_id)
{
    for (int i = 0; i < LINES; i++) {
        line_t *const line = &s_lines[i];
        if (line->is_used && line->stream.client == client &&
            line->stream.session_id == session_id) {
            return line;
        }
    }
    return NULL;
}

static void raise (uint64_t *limit, uint64_t to)
{
    *limit = to > *limit ? to : *limit;
}

static void hear_grant (line_t *line, const hws_grant_t *grant)
{
    assert_int_equal (grant->flags & ~HWS_GRANT_RETURN, 0);
    assert_true (grant->acked_seq <= line->acked_seq);
    raise (&line->stream.limit_seq, grant->limit_seq);
    raise (&line->stream.limit_bytes, grant->limit_bytes);
    if (grant->flags & HWS_GRANT_RETURN) {
        line->is_asked = true;
    }
}

static void hear (client_t *client)
{
    const heard_t *heard;
    while ((heard = client_next (client))) {
        if (heard->kind == HEARD_GRANT) {
            line_t *const line = line_of (client, heard->grant.stream);
            if (line) {
                hear_grant (line, &heard->grant);
            }
        } else {
            assert_int_equal (heard->kind, HEARD_CONTROL);
            assert_int_equal (heard->control.verb, HWS_VERB_STREAM_CANCEL);
            line_t *const line = line_of (client, heard->control.as.stream_cancel.session_id);
            assert_non_null (line);
            end_line (line);
        }
    }
}

/*  ---- What they do ---- */

static void attach (void)
{
    line_t *const line = &s_lines[below (LINES)];
    if (line->is_used) {
        return;
    }
    client_t *const client = s_senders[below (SENDERS)];
    const int anchor = (int) below (ANCHORS);
    stream_ask (client, ++s_sessions, s_handles[anchor]);
    const hws_control_t *const answer = client_take (client, HWS_VERB_ATTACH);
    if (answer->form == HWS_FORM_ERR) {
        const int code = answer->as.refusal.code;
        assert_true (code == HWS_EBUFFER_FULL || code == HWS_EBUSY || code == HWS_ELIMIT);
        s_refused++;
        return;
    }
    const hws_attach_ok_t *const ok = &answer->as.attach_ok;
    *line = (line_t){.is_used = true,
                     .anchor = anchor,
                     .stream = {.client = client,
                                .session_id = s_sessions,
                                .handle = ok->handle,
                                .sender_id = ok->sender_id,
                                .routing = ok->routing_session_id,
                                .limit_seq = ok->initial_credit,
                                .limit_bytes = ok->slot_byte_budget}};
}

static void send_data (void)
{
    line_t *const line = any_line (false);
    if (line == NULL) {
        return;
    }
    const stream_t *const stream = &line->stream;
    const uint64_t room = stream->limit_bytes - stream->next_bytes;
    if (stream->next_seq == stream->limit_seq || room < HWS_RECORD_HEADER_SIZE) {
        return;
    }
    const uint64_t kind = below (10);
    const uint64_t most =
        room - HWS_RECORD_HEADER_SIZE < LARGE_MAX ? room - HWS_RECORD_HEADER_SIZE : LARGE_MAX;
    const uint64_t small = most < 200 ? most : 200;
    stream_send (&line->stream, 1, kind == 0 ? most : below (small + 1));
    note_position (line);
}

/*  A record that the window would not take, when everything before it is acknowledged.  */
static void want (void)
{
    line_t *const line = any_line (false);
    if (line == NULL || line->acked_seq != line->stream.next_seq) {
        return;
    }
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_WINDOW);
    const uint64_t bytes = line->anchor ? 4096 : LARGE_MAX;
    batch_add_window (
        &batch, (hws_window_t){.stream = line->stream.session_id, .want_bytes = 1 + below (bytes)});
    batch_send (&batch, line->stream.client);
    s_wants++;
}

static void say_window (const line_t *line)
{
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_WINDOW);
    batch_add_window (&batch, line->said);
    batch_send (&batch, line->stream.client);
}

/*  Gives back some of what it has, when it comes to it; or says again what it said once.  */
static void give_back (void)
{
    line_t *const line = any_line (false);
    if (line && line->is_asked && below (2)) {
        line->is_asked = false;
        line->stream.limit_bytes -= below (line->stream.limit_bytes - line->stream.next_bytes + 1);
        line->said = (hws_window_t){.stream = line->stream.session_id,
                                    .limit_seq = line->stream.limit_seq,
                                    .limit_bytes = line->stream.limit_bytes};
        s_answers++;
    }
    if (line && line->said.stream != 0) {
        say_window (line);
    }
}

static void detach (void)
{
    line_t *const line = any_line (false);
    if (line) {
        end_line (line);
        stream_end (&line->stream);
        note_position (line);
    }
}

/*  A client leaves, and comes back as one that has nothing.  */
static void leave (void)
{
    client_t *const client = s_senders[below (SENDERS)];
    hws_control_t bye = {.verb = HWS_VERB_BYE};
    client_ask (client, &bye);
    client_take_ok (client, HWS_VERB_BYE);
    hear (client);
    client_reconnect (client);
}

/*  ---- What the receiver does ---- */

static void acknowledge (void)
{
    line_t *const line = &s_lines[below (LINES)];
    if (!line->is_used) {
        return;
    }
    const uint64_t seq =
        below (3) ? line->stream.next_seq
                  : line->acked_seq + below (line->stream.next_seq - line->acked_seq + 1);
    const bool is_all = seq == line->stream.next_seq && line->has_ended;
    line->acked_seq = seq;
    anchor_ack (s_receiver, line->stream.routing, seq, bytes_at (line, seq), is_all);
    line->is_used = !is_all;
}

static void cancel (void)
{
    const line_t *const line = any_line (false);
    if (line) {
        anchor_cancel (s_receiver, s_handles[line->anchor], line->stream.sender_id, "");
        client_take_ok (s_receiver, HWS_VERB_CANCEL);
    }
}

/*  ---- The account ---- */

static void check (void)
{
    uint64_t lent[ANCHORS] = {0};
    for (int i = 0; i < LINES; i++) {
        const line_t *const line = &s_lines[i];
        if (line->is_used) {
            const uint64_t end = line->has_ended ? line->end_bytes : line->stream.limit_bytes;
            const uint64_t acked = bytes_at (line, line->acked_seq);
            lent[line->anchor] += end > acked ? end - acked : 0;
            assert_true (line->stream.next_seq - line->acked_seq < KEPT);
        }
    }
    for (int i = 0; i < ANCHORS; i++) {
        const hws_anchor_t *const anchor = hws_anchor_find (s_world.engine, s_handles[i]);
        assert_non_null (anchor);
        assert_true (lent[i] <= anchor->reserved_bytes);
        assert_true (anchor->reserved_bytes <= anchor->buffer_bytes);
    }
}

static void step (void)
{
    const uint64_t kind = below (1000);
    if (kind < 450) {
        send_data ();
    } else if (kind < 800) {
        acknowledge ();
    } else if (kind < 850) {
        give_back ();
    } else if (kind < 920) {
        attach ();
    } else if (kind < 940) {
        want ();
    } else if (kind < 960) {
        detach ();
    } else if (kind < 970) {
        cancel ();
    } else if (kind < 972) {
        leave ();
    } else {
        world_advance (&s_world, (hws_ms_t) below (20));
    }
    for (int i = 0; i < SENDERS; i++) {
        hear (s_senders[i]);
    }
    check ();
}

static void credit_is_conserved (void **state)
{
    (void) state;
    test_seed (&s_random);
    hws_engine_options_t options = world_options ();
    options.anchors.buffer_bytes = 4 * WORLD_WINDOW;
    options.anchors.window_bytes_min = 1024;
    begin_with (&options);
    memset (s_lines, 0, sizeof s_lines);
    s_receiver = client_connect (&s_world);
    s_receiver->is_beating = true;
    s_handles[0] = anchor_open (s_receiver, 1, "", NULL);
    const hws_open_t small = {.buffer_bytes = {HWS_VALUE, 8192}};
    s_handles[1] = anchor_open (s_receiver, 2, "", &small);
    for (int i = 0; i < SENDERS; i++) {
        s_senders[i] = client_connect (&s_world);
        s_senders[i]->is_beating = true;
    }

    for (size_t i = test_scaled (STEPS); i > 0; i--) {
        step ();
        while (client_find_run (s_receiver)) {
        }
    }

    for (int i = 0; i < LINES; i++) {
        line_t *const line = &s_lines[i];
        if (line->is_used && !line->has_ended) {
            stream_end (&line->stream);
            note_position (line);
        }
        if (line->is_used) {
            anchor_ack (s_receiver, line->stream.routing, line->stream.next_seq,
                        line->stream.next_bytes, true);
        }
    }
    for (int i = 0; i < ANCHORS; i++) {
        assert_int_equal (hws_anchor_find (s_world.engine, s_handles[i])->reserved_bytes, 0);
    }
    assert_int_equal (hws_engine_counts (s_world.engine).seats, 0);
    const hws_engine_stats_t *const stats = hws_engine_stats (s_world.engine);
    assert_int_equal (stats->credit_violations, 0);
    assert_int_equal (stats->protocol_errors, 0);
    assert_int_equal (stats->gaps, 0);
    assert_true (s_refused > 0 && s_wants > 0 && s_answers > 0);
    print_message (
        "attached %llu detached %llu dropped %llu cancelled %llu, refused %llu, asked %llu\n",
        (unsigned long long) stats->attached, (unsigned long long) stats->detached,
        (unsigned long long) stats->dropped, (unsigned long long) stats->cancelled,
        (unsigned long long) s_refused, (unsigned long long) stats->returns);
}

int main (void)
{
    const struct CMUnitTest tests[] = {TEST (credit_is_conserved)};
    return cmocka_run_group_tests_name ("engine credit", tests, NULL, NULL);
}
