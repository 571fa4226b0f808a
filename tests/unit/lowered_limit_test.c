/*  The engine and a sender's stream, with messages under way between them: RETURN, WINDOW and
 *  GRANT in every order, and an honest sender is never a violator.
 */
#include "tests/support/engine_test.h"

#include "broker/engine_state.h"
#include "client/tx.h"
#include "tests/support/blocks.h"
#include "tests/support/test_seed.h"

enum {
    FLOOR = 1024,
    BUFFER = 8192,
    SESSION = 1,
    RECORD = 200,
    LARGE = 3000,
    QUEUE_MAX = 256,
    DEPTH = 5,
    RANDOM_MOVES = 200000
};

/*  What may happen next. Those behind ACKNOWLEDGE are no part of the exhaustive test.  */
typedef enum {
    SEND,        /* the sender says WINDOW if it owes one, and all the records that it may */
    SAY_WINDOW,  /* only that */
    TO_ENGINE,   /* the oldest message of the sender arrives */
    TO_SENDER,   /* the oldest of the engine */
    USE,         /* another sender uses up what it has, and lacks the rest */
    ACKNOWLEDGE, /* the receiver has consumed all that came */
    SEND_LARGE,  /* the program has a record that is larger than the floor, or wants to */
    LOSE_WINDOW, /* the sender's oldest message, if it is a WINDOW */
    LOSE_GRANT,  /* the engine's oldest */
    RECONNECT,   /* all that is under way is lost; the sender attaches again */
    MOVES
} move_t;

static client_t *s_receiver, *s_client, *s_other;
static hws_handle_t s_handle;
static hws_tx_t s_tx;
static uint64_t s_routing;
static stream_t s_user;

/*  Messages of the sender that are under way.  */
static struct {
    uint8_t data[8192];
    size_t size;
} s_queue[QUEUE_MAX];
static size_t s_first, s_last;

/*  ---- The sender ---- */

static uint8_t *new_message (void)
{
    assert_true (s_last - s_first < QUEUE_MAX);
    return s_queue[s_last % QUEUE_MAX].data;
}

static void say_window (void)
{
    hws_window_t window;
    if (s_tx.is_ready && hws_tx_next_window (&s_tx, &window)) {
        window.stream = SESSION;
        uint8_t *const message = new_message ();
        hws_batch_put (message, HWS_BATCH_WINDOW, 1);
        hws_window_put (message + HWS_BATCH_HEADER_SIZE, &window);
        s_queue[s_last++ % QUEUE_MAX].size = HWS_BATCH_HEADER_SIZE + HWS_WINDOW_SIZE;
    }
}

static void say_data (void)
{
    while (hws_tx_has_runs (&s_tx)) {
        uint8_t *const message = new_message ();
        uint32_t runs;
        const size_t size =
            hws_tx_take (&s_tx, SESSION, message + HWS_BATCH_HEADER_SIZE,
                         sizeof s_queue[0].data - HWS_BATCH_HEADER_SIZE, 100, &runs);
        assert_true (runs > 0);
        hws_batch_put (message, HWS_BATCH_DATA, (uint16_t) runs);
        s_queue[s_last++ % QUEUE_MAX].size = HWS_BATCH_HEADER_SIZE + size;
    }
}

static void attach (void)
{
    stream_ask (s_client, SESSION, s_handle);
    const hws_attach_ok_t *const ok = &client_take_ok (s_client, HWS_VERB_ATTACH)->as.attach_ok;
    assert_false (ok->has_ended);
    s_routing = ok->routing_session_id;
    hws_tx_attached (&s_tx, ok);
}

static void hear (void)
{
    const heard_t *const heard = client_next (s_client);
    if (heard) {
        assert_int_equal (heard->kind, HEARD_GRANT);
        hws_tx_grant (&s_tx, &heard->grant);
    }
}

/*  ---- The others ---- */

static const hws_seat_t *seat (void)
{
    return hws_seat_of_routing (s_world.engine, s_routing);
}

static void acknowledge (void)
{
    anchor_ack (s_receiver, s_routing, seat ()->high_seq, seat ()->high_bytes, false);
    client_forget (s_receiver);
}

/*  The other sender does all at once: it hears, gives back all that it can if it is asked,
 *  and uses up what it has left.  */
static void use (void)
{
    const hws_grant_t *grant;
    while ((grant = client_find_grant (s_other))) {
        s_user.limit_seq = grant->limit_seq;
        s_user.limit_bytes =
            grant->limit_bytes > s_user.limit_bytes ? grant->limit_bytes : s_user.limit_bytes;
        if (grant->flags & HWS_GRANT_RETURN) {
            s_user.limit_bytes = s_user.next_bytes;
            batch_t batch;
            batch_begin (&batch, HWS_BATCH_WINDOW);
            batch_add_window (&batch, (hws_window_t){.stream = s_user.session_id,
                                                     .limit_seq = s_user.limit_seq,
                                                     .limit_bytes = s_user.limit_bytes});
            batch_send (&batch, s_other);
        }
    }
    const uint64_t left = s_user.limit_bytes - s_user.next_bytes;
    if (left > HWS_RECORD_HEADER_SIZE) {
        stream_send (&s_user, 1, left - HWS_RECORD_HEADER_SIZE);
        anchor_ack (s_receiver, s_user.routing, s_user.next_seq, s_user.next_bytes, false);
        client_forget (s_receiver);
    }
}

/*  ---- Moves ---- */

static bool is_window (void)
{
    return s_first < s_last && s_queue[s_first % QUEUE_MAX].data[1] == HWS_BATCH_WINDOW;
}

static void move (move_t what)
{
    static const uint8_t data[LARGE];
    switch (what) {
    case SEND:
        say_window ();
        while (hws_tx_append (&s_tx, data, RECORD) == 0) {
        }
        say_data ();
        break;
    case SAY_WINDOW:
        say_window ();
        break;
    case TO_ENGINE:
        if (s_first < s_last) {
            client_send_bytes (s_client, s_queue[s_first % QUEUE_MAX].data,
                               s_queue[s_first % QUEUE_MAX].size);
            s_first++;
            world_pump (&s_world);
        }
        break;
    case TO_SENDER:
        hear ();
        break;
    case USE:
        use ();
        break;
    case ACKNOWLEDGE:
        acknowledge ();
        break;
    case SEND_LARGE:
        hws_tx_append (&s_tx, data, LARGE);
        say_data ();
        break;
    case LOSE_WINDOW:
        s_first += is_window ();
        break;
    case LOSE_GRANT:
        client_next (s_client);
        break;
    case RECONNECT:
        hws_tx_suspend (&s_tx);
        s_first = s_last;
        client_forget (s_client);
        client_reconnect (s_client);
        attach ();
        break;
    case MOVES:
        break;
    }
    const hws_engine_stats_t *const stats = hws_engine_stats (s_world.engine);
    assert_int_equal (stats->credit_violations, 0);
    assert_int_equal (stats->protocol_errors, 0);
    assert_int_equal (stats->dropped, 0);
}

/*  ---- Runs ---- */

static void set_up (void)
{
    hws_engine_options_t options = world_options ();
    options.anchors.buffer_bytes = BUFFER;
    options.anchors.window_bytes_min = FLOOR;
    begin_with (&options);
    s_receiver = client_connect (&s_world);
    s_client = client_connect (&s_world);
    s_other = client_connect (&s_world);
    s_handle = anchor_open (s_receiver, 1, "", NULL);
    s_user = stream_attach (s_other, 1, s_handle);
    s_first = s_last = 0;
    hws_tx_init (&s_tx, &s_test_blocks);
    attach ();
    client_forget (s_receiver);
    /* It is lent all that there is, and RETURN is under way. */
    static const move_t first[] = {SEND, TO_ENGINE, ACKNOWLEDGE, TO_SENDER, TO_SENDER, USE};
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        move (first[i]);
    }
}

/*  From now on nothing is lost, and the stream goes on.  */
static void go_on (void)
{
    const uint64_t before = seat ()->acked_seq;
    for (int rounds = 0; seat ()->acked_seq < before + 50; rounds++) {
        move (SEND);
        while (s_first < s_last) {
            move (TO_ENGINE);
        }
        move (ACKNOWLEDGE);
        for (int i = 0; i < 4; i++) {
            move (TO_SENDER);
        }
        assert_true (rounds < 30);
    }
}

static void tear_down (void)
{
    hws_tx_fini (&s_tx);
}

static void lowered_limit_crosses_a_grant (void **state)
{
    (void) state;
    const size_t depth = test_scaled (DEPTH) < DEPTH ? DEPTH - 2 : DEPTH;
    size_t count = 1;
    for (size_t i = 0; i < depth; i++) {
        count *= ACKNOWLEDGE + 1;
    }
    uint64_t returns = 0;

    for (size_t order = 0; order < count; order++) {
        set_up ();
        size_t rest = order;
        for (size_t i = 0; i < depth; i++, rest /= ACKNOWLEDGE + 1) {
            move ((move_t) (rest % (ACKNOWLEDGE + 1)));
        }
        returns += hws_engine_stats (s_world.engine)->returns;
        go_on ();
        tear_down ();
    }

    assert_true (returns >= count);
}

static void late_lost_and_repeated_windows_make_nobody_a_violator (void **state)
{
    (void) state;
    hws_random_t random;
    test_seed (&random);
    set_up ();

    for (size_t i = test_scaled (RANDOM_MOVES); i > 0; i--) {
        const uint64_t any = hws_random_below (&random, 100);
        move (any < 94 ? (move_t) (any % LOSE_WINDOW)
                       : (move_t) (LOSE_WINDOW + any % (MOVES - LOSE_WINDOW)));
        if (s_last - s_first > QUEUE_MAX - 20) {
            move (RECONNECT);
        }
    }

    assert_true (hws_engine_stats (s_world.engine)->returns > 0);
    move (RECONNECT);
    go_on ();
    tear_down ();
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (lowered_limit_crosses_a_grant),
        TEST (late_lost_and_repeated_windows_make_nobody_a_violator),
    };
    return cmocka_run_group_tests_name ("lowered limit", tests, NULL, NULL);
}
