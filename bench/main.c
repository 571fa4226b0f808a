/*  make bench: Hawser and its peers, side by side, several rounds in turn.
 *
 *  Exits with 1 if a run failed, if anybody's records came twice, out of order or damaged, or
 *  if Hawser lost one; a peer's losses are results.
 */
#include "bench/report.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <zmq.h>

static const peer_t *const s_peers[] = {
    &peer_hawser,     &peer_router, &peer_router_low,     &peer_push_pull,      &peer_czmq,
    &peer_czmq_drain, &peer_nats,   &peer_mosquitto_qos0, &peer_mosquitto_qos1, &peer_redis,
};

static const workload_t *const s_workloads[] = {
    &workload_w1,
    &workload_w2,
    &workload_w3,
    &workload_fan_in,
    &workload_latency,
    &workload_latency_load,
    &workload_decode,
    &workload_stalled,
    &workload_seats_1,
    &workload_seats_100,
    &workload_seats_10000,
    &workload_anchors_1,
    &workload_anchors_100,
    &workload_anchors_10000,
    &workload_connections_500,
};

#define COUNT(array) (sizeof (array) / sizeof *(array))

typedef struct {
    bench_t bench;
    const char *workloads; /* names between commas; "": all */
    const char *peers;
    int rounds;
    const char *directory; /* of results.json and the logs */
} options_t;

/*  ---- The command line ---- */

static int usage (FILE *stream)
{
    fputs ("usage: bench [--workloads LIST] [--peers LIST] [--rounds N] [--seconds N]\n"
           "             [--programs DIR] [--output DIR]\n\n"
           "Lists have commas; an empty one is all.\n\nworkloads:\n",
           stream);
    for (size_t i = 0; i < COUNT (s_workloads); i++) {
        fprintf (stream, "  %-15s %s\n", s_workloads[i]->name, s_workloads[i]->title);
    }
    fputs ("\npeers:\n ", stream);
    for (size_t i = 0; i < COUNT (s_peers); i++) {
        fprintf (stream, " %s", s_peers[i]->name);
    }
    fputc ('\n', stream);
    return stream == stdout ? 0 : 2;
}

static bool is_listed (const char *list, const char *name)
{
    const size_t size = strlen (name);
    for (const char *item = list; *item; item += strcspn (item, ","), item += *item == ',') {
        if (strcspn (item, ",") == size && memcmp (item, name, size) == 0) {
            return true;
        }
    }
    return false;
}

static size_t count_items (const char *list)
{
    size_t count = *list ? 1 : 0;
    for (const char *comma = strchr (list, ','); comma; comma = strchr (comma + 1, ',')) {
        count++;
    }
    return count;
}

/*  Whether everything listed exists.  */
static bool are_known (const options_t *self)
{
    size_t workloads = 0, peers = 0;
    for (size_t i = 0; i < COUNT (s_workloads); i++) {
        workloads += is_listed (self->workloads, s_workloads[i]->name);
    }
    for (size_t i = 0; i < COUNT (s_peers); i++) {
        peers += is_listed (self->peers, s_peers[i]->name);
    }
    return workloads == count_items (self->workloads) && peers == count_items (self->peers);
}

/*  Returns 0, or -1 for a wrong one.  */
static int parse (options_t *self, int argc, char **argv)
{
    static const struct option names[] = {
        {"workloads", required_argument, NULL, 'w'},
        {"peers", required_argument, NULL, 'p'},
        {"rounds", required_argument, NULL, 'r'},
        {"seconds", required_argument, NULL, 's'},
        {"programs", required_argument, NULL, 'd'},
        {"output", required_argument, NULL, 'o'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    for (int option; (option = getopt_long (argc, argv, "h", names, NULL)) >= 0;) {
        switch (option) {
        case 'w':
            self->workloads = optarg;
            break;
        case 'p':
            self->peers = optarg;
            break;
        case 'r':
            self->rounds = atoi (optarg);
            break;
        case 's':
            self->bench.seconds = atof (optarg);
            break;
        case 'd':
            self->bench.programs = optarg;
            break;
        case 'o':
            self->directory = self->bench.logs = optarg;
            break;
        case 'h':
            exit (usage (stdout));
        default:
            return -1;
        }
    }
    return optind == argc && self->rounds >= 1 && self->rounds <= ROUNDS_MAX &&
                   self->bench.seconds > 0 && self->bench.seconds <= 3600 && are_known (self)
               ? 0
               : -1;
}

/*  ---- Rounds ---- */

/*  Why a peer cannot take part; null if it can.  */
static const char *absence (const peer_t *peer)
{
    return peer->lacks                                            ? peer->lacks
           : peer->program && !server_has_program (peer->program) ? peer->program
                                                                  : NULL;
}

static bool takes_part (const options_t *options, const workload_t *workload, const peer_t *peer)
{
    if (absence (peer) || (workload->only && strcmp (workload->only, peer->name) != 0)) {
        return false;
    }
    return *options->peers ? is_listed (options->peers, peer->name)
                           : peer->only == NULL || strcmp (peer->only, workload->name) == 0;
}

/*  Runs every peer once, then again: what the machine does to one it does to its neighbour
 *  too. Returns how many things went wrong.  */
static size_t measure (const options_t *options, table_t *table)
{
    size_t faults = 0;
    for (size_t i = 0; i < COUNT (s_peers); i++) {
        if (takes_part (options, table->workload, s_peers[i])) {
            table->results[table->count++].peer = s_peers[i];
        }
    }
    for (int round = 0; round < options->rounds; round++) {
        for (size_t i = 0; i < table->count; i++) {
            result_t *const result = &table->results[i];
            sample_t *const sample = &result->samples[result->count];
            if (table->workload->run (&options->bench, table->workload, result->peer, sample) < 0) {
                result->failed++;
                faults++;
                continue;
            }
            result->count++;
            faults += sample->wrong > 0 || (result->peer == &peer_hawser && sample->lost > 0);
        }
    }
    return faults;
}

static void print_machine (const options_t *options)
{
    struct utsname name;
    double load = 0;
    int major, minor, patch;
    getloadavg (&load, 1);
    uname (&name);
    zmq_version (&major, &minor, &patch);
    printf (
        "%ld processors, load %.1f before, %s %s, libzmq %d.%d.%d\n%d rounds of %g s; rates are "
        "records a second\n",
        sysconf (_SC_NPROCESSORS_ONLN), load, name.sysname, name.release, major, minor, patch,
        options->rounds, options->bench.seconds);
    for (size_t i = 0; i < COUNT (s_peers); i++) {
        if (absence (s_peers[i]) &&
            (*options->peers == '\0' || is_listed (options->peers, s_peers[i]->name))) {
            printf ("skipped: %s, %s is not installed (make bench-deps)\n", s_peers[i]->name,
                    absence (s_peers[i]));
        }
    }
    fflush (stdout);
}

/*  Daemons are often not in the path of those who are not root.  */
static int set_environment (const options_t *options)
{
    char path[8192];
    const char *const given = getenv ("PATH");
    snprintf (path, sizeof path, "%s:/usr/local/sbin:/usr/sbin:/sbin", given ? given : "");
    mkdir (options->directory, 0777);
    return setenv ("PATH", path, 1) == 0 ? unsetenv ("HAWSER_BROKER") : -1;
}

int main (int argc, char **argv)
{
    options_t options = {
        .bench = {.programs = "build", .logs = "build/bench", .seconds = 2},
        .workloads = "",
        .peers = "",
        .rounds = 3,
        .directory = "build/bench",
    };
    if (parse (&options, argc, argv) < 0) {
        return usage (stderr);
    }
    static table_t tables[WORKLOADS_MAX];
    size_t count = 0, faults = 0;
    if (set_environment (&options) < 0) {
        return 1;
    }
    print_machine (&options);
    for (size_t i = 0; i < COUNT (s_workloads); i++) {
        if (*options.workloads == '\0' || is_listed (options.workloads, s_workloads[i]->name)) {
            table_t *const table = &tables[count++];
            table->workload = s_workloads[i];
            faults += measure (&options, table);
            report_table (stdout, table);
        }
    }
    char path[4096];
    snprintf (path, sizeof path, "%s/results.json", options.directory);
    const int rc = report_json (path, tables, count);
    printf ("\nwritten: %s\n", path);
    return rc == 0 && faults == 0 ? 0 : 1;
}
