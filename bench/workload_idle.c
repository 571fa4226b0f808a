/*  w1 at a broker that also hosts many senders, anchors or connections that do nothing: what
 *  they cost it in memory, what they cost the records of others, and how fast they come.
 */
#include "bench/workload.h"

#include "hawser.h"

#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

typedef enum { IDLE_SEATS, IDLE_ANCHORS, IDLE_CONNECTIONS } idle_kind_t;

/*  Several processes, so that it is the broker that is waited for.  */
enum { IDLE_PROCESSES = 4 };

#define PATIENCE_MS       120000
#define IDLE_BUFFER_BYTES (256 * 1048576) /* windows of the least size for all of an anchor */

/*  Shared by the processes.  */
typedef struct {
    _Atomic unsigned prepared; /* processes with all that is not counted */
    _Atomic bool has_begun;    /* to open what is */
    _Atomic unsigned done;
} progress_t;

typedef struct {
    idle_kind_t kind;
    unsigned count;       /* of all processes */
    const place_t *place; /* the broker's */
    unsigned process;     /* for the anchor's name */
    progress_t *progress;
    double bytes_each;
    double opens_per_second;
} idle_t;

/*  ---- The idle ones ---- */

static int new_client (hws_client_t **client, const idle_t *idle)
{
    hws_client_options_t options;
    hws_client_options_init (&options);
    options.endpoint = peer_endpoint (idle->place->ports[0]);
    options.name = "idle";
    return hws_client_new (client, &options);
}

static int open_anchor (hws_client_t *client, const char *name)
{
    hws_receiver_t *receiver;
    hws_receiver_options_t options;
    hws_receiver_options_init (&options);
    options.buffer_bytes = IDLE_BUFFER_BYTES;
    return hws_receiver_open (&receiver, client, name, &options);
}

static int be_idle (void *arg)
{
    const idle_t *const idle = arg;
    hws_client_t *client;
    char name[32];
    snprintf (name, sizeof name, "idle-%u", idle->process);
    int rc = new_client (&client, idle);
    if (rc == 0 && idle->kind != IDLE_ANCHORS) {
        rc = open_anchor (client, name);
    }
    atomic_fetch_add (&idle->progress->prepared, 1);
    while (!idle->progress->has_begun) {
        sleep_ms (1);
    }
    for (unsigned i = idle->process; i < idle->count && rc == 0; i += IDLE_PROCESSES) {
        hws_sender_t *sender;
        if (idle->kind == IDLE_ANCHORS) {
            rc = open_anchor (client, NULL);
            continue;
        }
        if (idle->kind == IDLE_CONNECTIONS) {
            rc = new_client (&client, idle);
        }
        if (rc == 0) {
            rc = hws_sender_attach (&sender, client, name, NULL);
        }
    }
    if (rc < 0) {
        return peer_fail ("an idle one: %s", hws_strerror (rc));
    }
    atomic_fetch_add (&idle->progress->done, 1);
    for (;;) {
        pause ();
    }
}

/*  ---- The run ---- */

/*  Waits until all processes are so far.  */
static int await (const _Atomic unsigned *count, crew_t *crew)
{
    for (int ms = 0; *count < IDLE_PROCESSES; ms++) {
        if (crew_has_failed (crew) || ms > PATIENCE_MS) {
            return -1;
        }
        sleep_ms (1);
    }
    return 0;
}

static int prepare (void *arg, crew_t *crew, const server_t *server, const place_t *place)
{
    idle_t *const self = arg;
    self->place = place;
    for (self->process = 0; self->process < IDLE_PROCESSES; self->process++) {
        if (crew_start (crew, be_idle, self, NULL) < 0) {
            return -1;
        }
    }
    if (await (&self->progress->prepared, crew) < 0) {
        return -1;
    }
    const uint64_t before = server_resident_bytes (server);
    const int64_t begin = clock_ns ();
    self->progress->has_begun = true;
    if (await (&self->progress->done, crew) < 0) {
        return -1;
    }
    self->opens_per_second = self->count * 1e9 / (double) (clock_ns () - begin);
    self->bytes_each = ((double) server_resident_bytes (server) - (double) before) / self->count;
    return 0;
}

/*  First without them, at this very time.  */
static int run (const bench_t *bench, const workload_t *workload, const peer_t *peer,
                sample_t *sample)
{
    outcome_t alone, outcome;
    if (run_plan (bench, &workload->plan, peer, &alone) < 0) {
        return -1;
    }
    idle_t idle = {.kind = (idle_kind_t) workload->kind, .count = workload->number};
    idle.progress = mmap (NULL, sizeof *idle.progress, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (idle.progress == MAP_FAILED) {
        return peer_fail ("no memory");
    }
    plan_t plan = workload->plan;
    plan.prepare = prepare;
    plan.prepare_arg = &idle;
    const int rc = run_plan (bench, &plan, &peer_hawser_wide, &outcome);
    munmap (idle.progress, sizeof *idle.progress);
    *sample = workload_sample (&outcome);
    sample->extras[0] = 100 * outcome.rate / alone.rate;
    sample->extras[1] = 100 * outcome.cpu_us / alone.cpu_us;
    sample->extras[2] = idle.bytes_each;
    sample->extras[3] = idle.opens_per_second;
    return rc;
}

#define IDLE(label, kind_, number_, what)                                                          \
    {                                                                                              \
        .name = label, .title = "w1 at a broker with " what, .only = "hawser",                     \
        .plan = {.record_bytes = 64, .processes = 4, .streams = 1, .receivers = 1}, .kind = kind_, \
        .number = number_,                                                                         \
        .extras = {{"percent_of_alone", "% alone"},                                                \
                   {"percent_of_cpu_alone", "% us alone"},                                         \
                   {"bytes_each", "bytes/one"},                                                    \
                   {"opens_per_second", "opens/s"}},                                               \
        .run = run,                                                                                \
    }

const workload_t workload_seats_1 = IDLE ("seats_1", IDLE_SEATS, 1, "1 idle sender");
const workload_t workload_seats_100 = IDLE ("seats_100", IDLE_SEATS, 100, "100 idle senders");
const workload_t workload_seats_10000 =
    IDLE ("seats_10000", IDLE_SEATS, 10000, "10,000 idle senders");
const workload_t workload_anchors_1 = IDLE ("anchors_1", IDLE_ANCHORS, 1, "1 idle anchor");
const workload_t workload_anchors_100 = IDLE ("anchors_100", IDLE_ANCHORS, 100, "100 idle anchors");
const workload_t workload_anchors_10000 =
    IDLE ("anchors_10000", IDLE_ANCHORS, 10000, "10,000 idle anchors");
const workload_t workload_connections_500 =
    IDLE ("connections_500", IDLE_CONNECTIONS, 500, "500 idle clients with a sender each");
