/*  What crosses: cancels and attaches, cancels and detaches, an expiry and an attach, many
 *  thousand times, by every way to cancel, from two threads with a client each and a real
 *  broker in between. Whoever wins, the outcome is one of those that are documented, both
 *  ends have the same, and in the end the broker holds nothing.
 *
 *  A lane is such a pair of threads: "home" has the receiver, "away" the sender. Several
 *  lanes run at a time. Threads note what is wrong; the test's own thread asserts.
 */
#include "tests/support/fixture.h"

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LANES = 4, LONG_MS = 30000, ROUTES_MAX = 4 };

/*  Ways to cancel; a race is run with each that makes sense in it, in turn.  */
typedef enum { BY_CLOSE, BY_RECEIVER, BY_SENDER, BY_TOKEN } route_t;

/*  One end's knowledge of a stream. The cause and reason of a clean ending are "".  */
typedef struct {
    bool is_attached;
    uint64_t sender_id;
    unsigned endings;
    bool is_clean; /* the ending, if there is one */
    char cause[32];
    char reason[64];
} view_t;

typedef struct lane lane_t;

/*  What the two threads do in each round. The first two steps come one after the other,
 *  the next two at the same time.  */
typedef struct {
    const char *what;
    route_t routes[ROUTES_MAX];
    size_t route_count;
    size_t rounds; /* usually */
    void (*prepare_home) (lane_t *self);
    void (*prepare_away) (lane_t *self);
    void (*act_home) (lane_t *self);
    void (*act_away) (lane_t *self);
} race_t;

struct lane {
    const race_t *race;
    char name[16]; /* of its anchor */
    size_t rounds;
    size_t round;
    route_t route;  /* of this round */
    uint64_t token; /* of this round's sender */
    pthread_barrier_t barrier;
    pthread_t home_thread;
    pthread_t away_thread;
    hws_client_t *home_client;
    hws_client_t *away_client;
    hws_receiver_t *receiver; /* null: the next round opens it */
    hws_sender_t *sender;
    hws_random_t home_random;
    hws_random_t away_random;
    view_t home;           /* what the receiver saw in this round */
    view_t away;           /* what the sender saw */
    bool is_closed;        /* the receiver saw CLOSED in this round */
    char closed_cause[32]; /* then */
    char home_fault[512];  /* what went wrong; "" */
    char away_fault[512];
    size_t attached; /* rounds in which the sender got in */
    size_t clean;    /* and had a clean ending */
};

static void note (char fault[512], const lane_t *self, const char *what, int rc)
{
    if (!*fault) {
        snprintf (fault, 512, "%s, round %zu, route %d: %s: %s", self->race->what, self->round,
                  (int) self->route, what, hws_strerror (rc));
    }
}

/*  Passes some time, up to `us`, so that every order comes about.  */
static void dither (hws_random_t *random, uint64_t us)
{
    const int64_t length_ns = (int64_t) hws_random_below (random, us * 1000 + 1);
    struct timespec began, now;

    clock_gettime (CLOCK_MONOTONIC, &began);
    do {
        clock_gettime (CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - began.tv_sec) * 1000000000 + now.tv_nsec - began.tv_nsec < length_ns);
}

/*  ---- The receiver's end ---- */

static void take_event (lane_t *self, const hws_event_t *event)
{
    if (event->kind == HWS_EVENT_CLOSED) {
        self->is_closed = true;
        snprintf (self->closed_cause, sizeof self->closed_cause, "%s", event->cause);
    } else if (event->kind == HWS_EVENT_ATTACHED) {
        self->home.is_attached = true;
        self->home.sender_id = event->sender_id;
    } else if (event->kind != HWS_EVENT_RECORD) {
        self->home.endings++;
        self->home.sender_id = event->sender_id;
        self->home.is_clean = event->kind == HWS_EVENT_DETACHED;
        snprintf (self->home.cause, sizeof self->home.cause, "%s",
                  event->cause ? event->cause : "");
        snprintf (self->home.reason, sizeof self->home.reason, "%s", event->reason);
    }
}

/*  Returns false when nothing came in that time, or something is wrong.  */
static bool receive (lane_t *self, int64_t timeout_ms)
{
    hws_event_t event;
    const int rc = hws_receiver_recv (self->receiver, &event, timeout_ms);

    if (rc == 0) {
        take_event (self, &event);
    } else if (rc != HWS_EWOULD_BLOCK) {
        note (self->home_fault, self, "receive", rc);
    }
    return rc == 0;
}

static void receive_until_ended (lane_t *self)
{
    while (self->home.endings == 0 && receive (self, LONG_MS)) {
    }
    receive (self, 0);
}

static void receive_until_closed (lane_t *self, const char *cause)
{
    while (!self->is_closed && receive (self, LONG_MS)) {
    }
    if (strcmp (self->closed_cause, cause) != 0) {
        note (self->home_fault, self, "another cause of the end", 0);
    }
    hws_receiver_destroy (&self->receiver);
}

static void open_anchor (lane_t *self, const hws_receiver_options_t *options)
{
    const int rc = hws_receiver_open (&self->receiver, self->home_client, self->name, options);

    if (rc != 0) {
        note (self->home_fault, self, "open", rc);
    }
}

static void have_anchor (lane_t *self)
{
    if (!self->receiver) {
        open_anchor (self, NULL);
    }
}

/*  ---- The sender's end ---- */

static void attach (lane_t *self)
{
    hws_sender_options_t options;

    hws_sender_options_init (&options);
    options.cancel_token = self->token;
    const int rc = hws_sender_attach (&self->sender, self->away_client, self->name, &options);

    if (rc == 0) {
        self->away.is_attached = true;
        self->away.sender_id = hws_sender_id (self->sender);
    } else if (rc != HWS_ENOT_FOUND && rc != HWS_ECLOSED && rc != HWS_ECANCELLED) {
        note (self->away_fault, self, "attach", rc);
    }
}

/*  After both have acted: nobody uses the sender any more.  */
static void see_ending (lane_t *self)
{
    const char *cause;
    const char *reason;
    const int rc = hws_sender_reason (self->sender, &cause, &reason);

    self->away.endings = 1;
    self->away.is_clean = rc == 0;
    snprintf (self->away.cause, sizeof self->away.cause, "%s", cause);
    snprintf (self->away.reason, sizeof self->away.reason, "%s", reason);
    hws_sender_destroy (&self->sender);
}

/*  Waits for the ending, whoever makes it.  */
static void wait_ending (lane_t *self)
{
    struct pollfd polled = {.fd = hws_sender_fd (self->sender), .events = POLLIN};

    if (poll (&polled, 1, LONG_MS) != 1) {
        note (self->away_fault, self, "wait for the ending", HWS_ETIMEOUT);
    }
}

static void attach_and_wait (lane_t *self)
{
    dither (&self->away_random, 200);
    attach (self);
    if (self->sender) {
        wait_ending (self);
    }
}

static void attach_and_send (lane_t *self)
{
    attach (self);
    for (uint64_t left = hws_random_below (&self->away_random, 4); self->sender && left > 0;
         left--) {
        const int rc = hws_sender_send (self->sender, "x", 1, LONG_MS);
        if (rc != 0) {
            note (self->away_fault, self, "send", rc);
        }
    }
}

/*  While it is being cancelled a detach does not wait for the broker's word.  */
static void detach (lane_t *self)
{
    dither (&self->away_random, 200);
    if (self->sender) {
        const int rc = hws_sender_detach (self->sender, LONG_MS);
        if (rc != 0 && rc != HWS_ECANCELLED) {
            note (self->away_fault, self, "detach", rc);
        }
        wait_ending (self);
    }
}

/*  ---- Cancels ---- */

static void close_anchor (lane_t *self)
{
    const int rc = hws_receiver_close (self->receiver, "closed here", LONG_MS);

    if (rc != 0) {
        note (self->home_fault, self, "close", rc);
    }
    receive_until_closed (self, "receiver_closed");
}

static void cancel_by_receiver (lane_t *self, uint64_t sender_id)
{
    const int rc = hws_receiver_cancel_sender (self->receiver, sender_id, "cancelled there");

    if (rc != 0 && rc != HWS_ENOT_FOUND) {
        note (self->home_fault, self, "cancel the sender", rc);
    }
    receive_until_ended (self);
}

/*  From the receiver's client, which knows the token and not the stream.  */
static void cancel_by_token (lane_t *self)
{
    const int rc =
        hws_client_cancel_token (self->home_client, self->token, "cancelled by token", LONG_MS);

    if (rc != 0) {
        note (self->home_fault, self, "cancel the token", rc);
    }
}

/*  By its receiver as soon as it is there, for before it has no number.  */
static void cancel_what_attaches (lane_t *self)
{
    if (self->route == BY_CLOSE) {
        dither (&self->home_random, 200);
        close_anchor (self);
        return;
    }
    if (self->route == BY_TOKEN) {
        dither (&self->home_random, 200);
        cancel_by_token (self);
        return;
    }
    while (!self->home.is_attached && receive (self, LONG_MS)) {
    }
    cancel_by_receiver (self, self->home.sender_id);
}

/*  Reads on for a moment, so that the clean ending may already be acknowledged.  */
static void cancel_what_detaches (lane_t *self)
{
    for (uint64_t reads = hws_random_below (&self->home_random, 8); reads > 0; reads--) {
        receive (self, 0);
        dither (&self->home_random, 50);
    }
    if (self->route == BY_CLOSE) {
        close_anchor (self);
    } else if (self->route == BY_RECEIVER) {
        while (!self->home.is_attached && receive (self, LONG_MS)) {
        }
        cancel_by_receiver (self, self->home.sender_id);
    } else if (self->route == BY_TOKEN) {
        cancel_by_token (self);
        receive_until_ended (self);
    } else {
        const int rc = hws_sender_cancel (self->sender, "cancelled here", 0);
        if (rc != 0 && rc != HWS_EWOULD_BLOCK) {
            note (self->home_fault, self, "cancel", rc);
        }
        receive_until_ended (self);
    }
}

/*  ---- Expiry ---- */

static void open_briefly (lane_t *self)
{
    hws_receiver_options_t options;

    hws_receiver_options_init (&options);
    options.unattached_timeout_ms = 1;
    open_anchor (self, &options);
}

static void receive_until_expired (lane_t *self)
{
    receive_until_closed (self, "expired");
}

/*  Whoever came in time stays as long as he likes.  */
static void attach_late_and_detach (lane_t *self)
{
    dither (&self->away_random, 2000);
    attach_and_send (self);
    detach (self);
}

/*  ---- Rounds ---- */

static void check_round (lane_t *self)
{
    view_t *const home = &self->home;
    view_t *const away = &self->away;
    const bool is_same = home->endings == away->endings && home->endings == away->is_attached &&
                         (!away->is_attached || home->sender_id == away->sender_id) &&
                         home->is_clean == away->is_clean &&
                         strcmp (home->cause, away->cause) == 0 &&
                         strcmp (home->reason, away->reason) == 0;

    if (!is_same && !*self->home_fault) {
        snprintf (self->home_fault, sizeof self->home_fault,
                  "%s, round %zu, route %d: the receiver saw %u endings of %llu, %d %s \"%s\", the "
                  "sender %u of %llu, %d %s \"%s\"",
                  self->race->what, self->round, (int) self->route, home->endings,
                  (unsigned long long) home->sender_id, home->is_clean, home->cause, home->reason,
                  away->endings, (unsigned long long) away->sender_id, away->is_clean, away->cause,
                  away->reason);
    }
    self->attached += away->is_attached;
    self->clean += away->is_attached && away->is_clean;
}

static bool is_over (const lane_t *self)
{
    return self->round == self->rounds || *self->home_fault || *self->away_fault;
}

static void *run_home (void *argument)
{
    lane_t *const self = argument;

    for (;;) {
        if (!is_over (self)) {
            self->route = self->race->routes[self->round % self->race->route_count];
            self->home = self->away = (view_t){.endings = 0};
            if (hws_token_new (&self->token) != 0) {
                note (self->home_fault, self, "token", HWS_ESYSTEM);
            }
            self->is_closed = false;
            self->race->prepare_home (self);
        }
        pthread_barrier_wait (&self->barrier);
        if (is_over (self)) {
            return NULL;
        }
        pthread_barrier_wait (&self->barrier);
        self->race->act_home (self);
        pthread_barrier_wait (&self->barrier);
        if (self->sender) {
            see_ending (self);
        }
        if (self->route == BY_TOKEN && self->away.is_attached) {
            receive_until_ended (self); /* only now it is known whether there is one */
        }
        check_round (self);
        self->round++;
    }
}

static void *run_away (void *argument)
{
    lane_t *const self = argument;

    for (;;) {
        pthread_barrier_wait (&self->barrier);
        if (is_over (self)) {
            return NULL;
        }
        if (self->race->prepare_away) {
            self->race->prepare_away (self);
        }
        pthread_barrier_wait (&self->barrier);
        self->race->act_away (self);
        pthread_barrier_wait (&self->barrier);
    }
}

static void lane_start (lane_t *self, const race_t *race, size_t number, size_t rounds)
{
    *self = (lane_t){.race = race, .rounds = rounds};
    snprintf (self->name, sizeof self->name, "lane-%zu", number);
    hws_random_init (&self->home_random, 2 * number + 1);
    hws_random_init (&self->away_random, 2 * number + 2);
    self->home_client = fixture_client ();
    self->away_client = fixture_client ();
    assert_int_equal (pthread_barrier_init (&self->barrier, NULL, 2), 0);
    assert_int_equal (pthread_create (&self->home_thread, NULL, run_home, self), 0);
    assert_int_equal (pthread_create (&self->away_thread, NULL, run_away, self), 0);
}

static void lane_join (lane_t *self)
{
    pthread_join (self->home_thread, NULL);
    pthread_join (self->away_thread, NULL);
    pthread_barrier_destroy (&self->barrier);
    hws_sender_destroy (&self->sender);
    hws_receiver_destroy (&self->receiver);
}

/*  All of them in a soak.  */
static size_t rounds_of (const race_t *race)
{
    return getenv ("SOAK") ? 10000 : process_scaled (race->rounds, 200);
}

static void run (const race_t *race)
{
    const size_t rounds = rounds_of (race);
    lane_t lanes[LANES];
    size_t attached = 0;
    size_t clean = 0;

    for (size_t i = 0; i < LANES; i++) {
        lane_start (&lanes[i], race, i, rounds / LANES);
    }
    for (size_t i = 0; i < LANES; i++) {
        lane_join (&lanes[i]);
        attached += lanes[i].attached;
        clean += lanes[i].clean;
    }
    print_message ("%s: %zu rounds, %zu attached, %zu ended cleanly\n", race->what,
                   rounds / LANES * LANES, attached, clean);

    /*  The clients are still there: nothing is gone by their leaving.  */
    for (size_t i = 0; i < LANES; i++) {
        if (*lanes[i].home_fault || *lanes[i].away_fault) {
            process_fail ("%s / %s", lanes[i].home_fault, lanes[i].away_fault);
        }
    }
    fixture_wait_statistic ("anchors", 0);
    fixture_wait_statistic ("seats", 0);
    fixture_wait_statistic ("waiting", 0);
    assert_int_equal (fixture_statistic ("attached"), attached);
    assert_int_equal (fixture_statistic ("detached"), clean);
    assert_int_equal (fixture_statistic ("cancelled"), attached - clean);
    assert_int_equal (fixture_statistic ("dropped"), 0);
    for (size_t i = 0; i < LANES; i++) {
        hws_client_destroy (&lanes[i].home_client);
        hws_client_destroy (&lanes[i].away_client);
    }
}

static void cancel_and_attach_cross (void **state)
{
    static const race_t race = {.what = "cancel against attach",
                                .routes = {BY_CLOSE, BY_RECEIVER, BY_TOKEN},
                                .route_count = 3,
                                .rounds = 4000,
                                .prepare_home = have_anchor,
                                .act_home = cancel_what_attaches,
                                .act_away = attach_and_wait};

    (void) state;
    run (&race);
}

static void cancel_and_detach_cross (void **state)
{
    static const race_t race = {.what = "cancel against detach",
                                .routes = {BY_CLOSE, BY_RECEIVER, BY_SENDER, BY_TOKEN},
                                .route_count = 4,
                                .rounds = 10000,
                                .prepare_home = have_anchor,
                                .prepare_away = attach_and_send,
                                .act_home = cancel_what_detaches,
                                .act_away = detach};

    (void) state;
    run (&race);
}

static void expiry_and_attach_cross (void **state)
{
    static const race_t race = {.what = "expiry against attach",
                                .routes = {BY_CLOSE},
                                .route_count = 1,
                                .rounds = 2000,
                                .prepare_home = open_briefly,
                                .act_home = receive_until_expired,
                                .act_away = attach_late_and_detach};

    (void) state;
    run (&race);
}

#define OVER_TCP(test) cmocka_unit_test_setup_teardown (test, setup_tcp, fixture_teardown)

/*  The times of the defaults: nobody is judged here. Every token stays cancelled for a
 *  while.  */
static int setup_tcp (void **state)
{
    (void) state;
    return fixture_setup_tcp_with ("{\"limits\": {\"cancel_orphans_per_peer\": 10000}}");
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        OVER_TCP (cancel_and_attach_cross),
        OVER_TCP (cancel_and_detach_cross),
        OVER_TCP (expiry_and_attach_cross),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
