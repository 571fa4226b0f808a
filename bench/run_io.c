#include "bench/run_io.h"

#include "bench/record.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PROCESSES_MAX = 8 };

#define PATIENCE_MS  60000  /* for any one step of a run */
#define STALLED_MS   5000   /* for the last one, beside a stalled receiver */
#define LOST_TICKS   20     /* nothing came for so many, and everything was sent: it is lost */
#define PACE_NS      250000 /* senders with a rate sleep at least so long */
#define WARM_UP_PART 0.5    /* of the window, at most WARM_UP_MAX seconds */
#define WARM_UP_MAX  1.0

/*  ---- What the processes of a run share ---- */

typedef struct {
    _Alignas (64) _Atomic bool is_ready;
    _Atomic bool is_done;              /* sent, settled */
    uint64_t sent[PLACE_CHANNELS_MAX]; /* records, by channel; set before is_done, as the next */
    uint64_t messages;
} sender_side_t;

typedef struct {
    _Alignas (64) _Atomic bool is_ready;
    _Atomic bool is_done;     /* has all there is */
    _Atomic uint64_t records; /* arrived in order and whole */
    _Atomic uint64_t wrong;
    uint64_t messages; /* set before is_done */
    histogram_t times_ns;
    histogram_t firsts_ns;
} receiver_side_t;

typedef struct {
    _Atomic bool has_begun;    /* senders send */
    _Atomic bool is_measuring; /* the window is open */
    _Atomic bool has_stopped;  /* senders stop */
    sender_side_t senders[PROCESSES_MAX];
    receiver_side_t receivers[PLACE_CHANNELS_MAX];
} board_t;

/*  What one of the processes is told.  */
typedef struct {
    const plan_t *plan;
    const peer_t *peer;
    board_t *board;
    place_t place;
    unsigned index; /* among the senders, or the channel */
} part_t;

static inline bool is_set (const _Atomic bool *flag)
{
    return atomic_load_explicit (flag, memory_order_acquire);
}

static inline void set (_Atomic bool *flag)
{
    atomic_store_explicit (flag, true, memory_order_release);
}

static _Noreturn void stay (void)
{
    for (;;) {
        pause ();
    }
}

/*  ---- Senders ---- */

typedef struct {
    const part_t *part;
    sender_side_t *side;
    void *sender;
    uint64_t *next; /* by stream */
    uint64_t sent;
    uint8_t record[RECORD_BYTES_MAX];
} sending_t;

static int send_one (sending_t *self)
{
    const plan_t *const plan = self->part->plan;
    const unsigned stream = (unsigned) (self->sent % plan->streams);
    const record_head_t head = {
        .stream = self->part->index * plan->streams + stream,
        .size = (uint32_t) plan->record_bytes,
        .seq = self->next[stream],
        .sent_at = plan->is_timed ? clock_ns () : 0,
    };
    record_stamp (self->record, plan->record_bytes, &head);
    if (self->part->peer->send (self->sender, stream, self->record, plan->record_bytes) < 0) {
        return -1;
    }
    self->next[stream]++;
    self->sent++;
    self->side->sent[(self->part->place.channel + stream % self->part->place.channels) %
                     PLACE_CHANNELS_MAX]++;
    return 0;
}

/*  Sends in bursts, the next one when its time has come. Who is late sends what is due at
 *  once.  */
static int send_paced (sending_t *self)
{
    const part_t *const part = self->part;
    const double per_ns = part->plan->rate / part->plan->processes / 1e9;
    const unsigned burst = part->plan->burst;
    const int64_t begin = clock_ns ();
    while (!is_set (&part->board->has_stopped)) {
        const int64_t now = clock_ns ();
        const uint64_t bursts = 1 + (uint64_t) ((double) (now - begin) * per_ns / burst);
        while (self->sent < bursts * burst && !is_set (&part->board->has_stopped)) {
            if (send_one (self) < 0) {
                return -1;
            }
        }
        if (part->peer->push && part->peer->push (self->sender) < 0) {
            return -1;
        }
        const int64_t next_at = begin + (int64_t) ((double) self->sent / per_ns);
        sleep_until_ns (next_at > now + PACE_NS ? next_at : now + PACE_NS);
    }
    return 0;
}

static int send_all (sending_t *self)
{
    while (!is_set (&self->part->board->has_stopped)) {
        if (send_one (self) < 0) {
            return -1;
        }
    }
    return 0;
}

static int be_sender (void *arg)
{
    const part_t *const part = arg;
    const peer_t *const peer = part->peer;
    sending_t *const self = calloc (1, sizeof *self);
    uint64_t *const next = calloc (part->plan->streams, sizeof *next);
    if (self == NULL || next == NULL) {
        return -1;
    }
    self->part = part;
    self->side = &part->board->senders[part->index];
    self->next = next;
    record_fill (self->record, part->plan->record_bytes);
    if (peer->open_sender (&self->sender, &part->place) < 0) {
        return -1;
    }
    set (&self->side->is_ready);
    while (!is_set (&part->board->has_begun)) {
        sleep_ms (1);
    }
    const int rc = part->plan->rate > 0 ? send_paced (self) : send_all (self);
    if (rc < 0 || (peer->settle && peer->settle (self->sender) < 0)) {
        return -1;
    }
    self->side->messages = peer->messages ? peer->messages () : 0;
    set (&self->side->is_done);
    stay ();
}

/*  ---- Receivers ---- */

static void take (const part_t *part, receiver_side_t *side, uint64_t *next, const void *data,
                  size_t size)
{
    const plan_t *const plan = part->plan;
    record_head_t head;
    if (!record_check (data, size, plan->record_bytes, &head) ||
        head.stream >= plan->processes * plan->streams || head.seq < next[head.stream]) {
        atomic_fetch_add (&side->wrong, 1);
        return;
    }
    next[head.stream] = head.seq + 1;
    const uint64_t records = atomic_load_explicit (&side->records, memory_order_relaxed) + 1;
    atomic_store_explicit (&side->records, records, memory_order_relaxed);
    if (plan->is_timed && (head.seq == 0 || is_set (&part->board->is_measuring))) {
        histogram_add (head.seq == 0 ? &side->firsts_ns : &side->times_ns,
                       (uint64_t) (clock_ns () - head.sent_at));
    }
}

/*  Whether all senders are done; and then how many records they sent to a channel.  */
static bool are_done (const board_t *board, const plan_t *plan, unsigned channel, uint64_t *sent)
{
    *sent = 0;
    for (unsigned i = 0; i < plan->processes; i++) {
        if (plan->has_stalled && i % plan->receivers == 0) {
            continue; /* it waits for ever, and sends nothing to the others */
        }
        if (!is_set (&board->senders[i].is_done)) {
            return false;
        }
        *sent += board->senders[i].sent[channel];
    }
    return true;
}

static int be_receiver (void *arg)
{
    const part_t *const part = arg;
    const plan_t *const plan = part->plan;
    receiver_side_t *const side = &part->board->receivers[part->index];
    uint64_t *const next = calloc (plan->processes * plan->streams, sizeof *next);
    void *receiver;
    if (next == NULL || part->peer->open_receiver (&receiver, &part->place) < 0) {
        return -1;
    }
    set (&side->is_ready);
    if (plan->has_stalled && part->index == 0) {
        stay ();
    }
    for (int idle = 0; idle < LOST_TICKS;) {
        const void *data;
        size_t size;
        const int rc = part->peer->receive (receiver, &data, &size);
        if (rc < 0) {
            break; /* said; what does not arrive is counted */
        }
        if (rc == RECEIVED_RECORD) {
            take (part, side, next, data, size);
        }
        uint64_t sent;
        const bool is_over =
            is_set (&part->board->has_stopped) && are_done (part->board, plan, part->index, &sent);
        if (is_over && side->records >= sent) {
            break;
        }
        idle = is_over && rc == RECEIVED_NOTHING ? idle + 1 : 0;
    }
    side->messages = part->peer->messages ? part->peer->messages () : 0;
    set (&side->is_done);
    stay ();
}

/*  ---- The run ---- */

typedef struct {
    const bench_t *bench;
    const plan_t *plan;
    const peer_t *peer;
    board_t *board;
    place_t place; /* as all of them have it */
    crew_t crew;
    server_t server;
} run_t;

static int start_processes (run_t *self)
{
    const plan_t *const plan = self->plan;
    part_t part = {.plan = plan, .peer = self->peer, .board = self->board};
    for (unsigned i = 0; i < plan->receivers; i++) {
        part.place = self->place;
        part.place.channel = part.index = i;
        if (crew_start (&self->crew, be_receiver, &part, NULL) < 0) {
            return -1;
        }
    }
    for (unsigned i = 0; i < plan->receivers; i++) {
        for (int ms = 0; !is_set (&self->board->receivers[i].is_ready); ms++) {
            if (crew_has_failed (&self->crew) || ms > PATIENCE_MS) {
                return -1;
            }
            sleep_ms (1);
        }
    }
    for (unsigned i = 0; i < plan->processes; i++) {
        part.place = self->place;
        part.place.channel = plan->is_spread ? 0 : i % plan->receivers;
        part.place.channels = plan->is_spread ? plan->receivers : 1;
        part.index = i;
        if (crew_start (&self->crew, be_sender, &part, NULL) < 0) {
            return -1;
        }
    }
    for (unsigned i = 0; i < plan->processes; i++) {
        for (int ms = 0; !is_set (&self->board->senders[i].is_ready); ms++) {
            if (crew_has_failed (&self->crew) || ms > PATIENCE_MS) {
                return -1;
            }
            sleep_ms (1);
        }
    }
    return 0;
}

static uint64_t count_records (const run_t *self)
{
    uint64_t records = 0;
    for (unsigned i = self->plan->has_stalled ? 1 : 0; i < self->plan->receivers; i++) {
        records += self->board->receivers[i].records;
    }
    return records;
}

/*  Opens the window behind a warm-up, and closes it.  */
static double measure (run_t *self)
{
    const double seconds = self->bench->seconds;
    const double warm_up =
        seconds * WARM_UP_PART < WARM_UP_MAX ? seconds * WARM_UP_PART : WARM_UP_MAX;
    set (&self->board->has_begun);
    sleep_ms ((int64_t) (warm_up * 1e3));
    set (&self->board->is_measuring);
    const uint64_t records = count_records (self);
    const int64_t begin = clock_ns ();
    sleep_ms ((int64_t) (seconds * 1e3));
    const uint64_t arrived = count_records (self) - records;
    const double rate = (double) arrived * 1e9 / (double) (clock_ns () - begin);
    self->board->is_measuring = false;
    set (&self->board->has_stopped);
    return rate;
}

/*  Waits until all has arrived that will. Who stands still beside a stalled receiver may do so
 *  for ever, which is a result: then nothing is counted as lost.  */
static int await_rest (run_t *self, outcome_t *outcome)
{
    for (unsigned i = self->plan->has_stalled ? 1 : 0; i < self->plan->receivers; i++) {
        const receiver_side_t *const side = &self->board->receivers[i];
        uint64_t sent = 0;
        for (int ms = 0; !is_set (&side->is_done) || !are_done (self->board, self->plan, i, &sent);
             ms++) {
            if (self->plan->has_stalled && ms > STALLED_MS) {
                return 0;
            }
            if (crew_has_failed (&self->crew) || ms > PATIENCE_MS) {
                return -1;
            }
            sleep_ms (1);
        }
        outcome->lost += sent - side->records;
        outcome->wrong += side->wrong;
        outcome->received += side->records;
        outcome->messages_received += side->messages;
        histogram_merge (&outcome->times_ns, &side->times_ns);
        histogram_merge (&outcome->firsts_ns, &side->firsts_ns);
    }
    for (unsigned i = 0; i < self->plan->processes; i++) {
        outcome->messages_sent += self->board->senders[i].messages;
        for (unsigned channel = 0; channel < self->plan->receivers; channel++) {
            outcome->sent += self->board->senders[i].sent[channel];
        }
    }
    return 0;
}

static int run (run_t *self, outcome_t *outcome)
{
    if (server_find_ports (self->place.ports, PLACE_PORTS) < 0 ||
        server_start (&self->server, &self->crew, self->peer, &self->place, self->bench->logs) <
            0) {
        return -1;
    }
    if (self->plan->prepare && self->plan->prepare (self->plan->prepare_arg, &self->crew,
                                                    &self->server, &self->place) < 0) {
        return -1;
    }
    if (start_processes (self) < 0) {
        return -1;
    }
    const int64_t cpu_ns = server_cpu_ns (&self->server);
    outcome->rate = measure (self);
    if (await_rest (self, outcome) < 0) {
        return -1;
    }
    const uint64_t records = count_records (self);
    outcome->has_server = self->server.pid > 0;
    outcome->cpu_us = (double) (server_cpu_ns (&self->server) - cpu_ns) / 1e3 /
                      (double) (records > 0 ? records : 1);
    outcome->peak_bytes = server_peak_bytes (&self->server);
    return 0;
}

int run_plan (const bench_t *bench, const plan_t *plan, const peer_t *peer, outcome_t *outcome)
{
    memset (outcome, 0, sizeof *outcome);
    run_t self = {
        .bench = bench,
        .plan = plan,
        .peer = peer,
        .place = {.variant = peer->variant,
                  .record_bytes = plan->record_bytes,
                  .programs = bench->programs,
                  .channels = 1,
                  .streams = plan->streams,
                  .burst = plan->burst},
    };
    self.board =
        mmap (NULL, sizeof *self.board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (self.board == MAP_FAILED) {
        return peer_fail ("no memory");
    }
    const int rc = run (&self, outcome);
    crew_end (&self.crew);
    munmap (self.board, sizeof *self.board);
    return rc == 0 ? 0 : peer_fail ("a run of %s failed", peer->name);
}
