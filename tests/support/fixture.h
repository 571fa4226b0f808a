/*  What most process tests begin with: a broker on a free port with short times, and
 *  helpers for the files that go in and the events that come out.
 *
 *  Senders and receivers find the broker through HAWSER_BROKER, which is set while it
 *  runs. Failures end the running cmocka test, as in process.h.
 */
#ifndef TESTS_FIXTURE_H
#define TESTS_FIXTURE_H

#include "tests/support/process.h"

#include "hawser.h"

#include <stdint.h>

/*  cmocka setups: an empty scratch directory; that and a broker on tcp, or on ipc,
 *  with heartbeats of 200 ms and a grace of 300 ms. `state` is not used.  */
int fixture_setup_bare (void **state);
int fixture_setup_tcp (void **state);
int fixture_setup_ipc (void **state);

/*  The same with heartbeats of 5 s, for tests that are not about silence: a busy machine may
 *  keep a program from beating for longer than the short ones allow.  */
int fixture_setup_calm_tcp (void **state);
int fixture_setup_calm_ipc (void **state);

/*  The same with that configuration, for the setups of a test program.  */
int fixture_setup_tcp_with (const char *config);
int fixture_setup_ipc_with (const char *config);

/*  The teardown of them all: brokers get SIGTERM and must end with 0; then
 *  process_teardown.  */
int fixture_teardown (void **state);

/*  Starts a broker and waits until it is ready; sets HAWSER_BROKER. `listen` null: a
 *  free port of loopback. `config` is the JSON of its configuration; null: short
 *  times as above. Unless that names a state_dir (null: none), the broker has a new state directory
 *  of its own in the scratch directory.  */
process_t *fixture_start_broker (const char *listen, const char *config);

/*  The end of a broker by kill -9, or by SIGTERM, then with 0; both wait for it.  */
void fixture_kill (process_t *broker);
void fixture_stop (process_t *broker);

/*  Starts a broker that has ended again, with the same configuration and state directory, at the
 *  endpoint of its ready line, and waits until it is ready. A port that the fixture chose is kept
 *  for it meanwhile. Returns the new process; it is the newest now.  */
process_t *fixture_restart (process_t *broker);

/*  The state directory that the fixture gave it, or null.  */
const char *fixture_state_directory (const process_t *broker);

/*  The newest broker, and the endpoint of its ready line.  */
process_t *fixture_broker (void);
const char *fixture_endpoint (void);

/*  A client of the newest broker, with the default options.  */
hws_client_t *fixture_client (void);

/*  Asks the newest broker for its statistics (SIGUSR2) and returns the number of that name,
 *  such as "seats". The second form asks until it is `value`.  */
uint64_t fixture_statistic (const char *name);
void fixture_wait_statistic (const char *name, uint64_t value);

/*  Waits until the newest broker has at most so many descriptors open: its side of a
 *  connection closes a moment after ours.  */
void fixture_wait_descriptors (size_t count);

/*  ---- Files ---- */

/*  Makes a file of the scratch directory; returns its path.  */
const char *file_make (const char *name, const void *data, size_t size);
const char *file_make_text (const char *name, const char *text);

/*  Reads a whole file, ended by a NUL; the caller frees it. `size` may be null.  */
char *file_read (const char *path, size_t *size);

/*  Fails unless the two files have the same bytes.  */
void file_expect_same (const char *path, const char *expected);
void file_expect (const char *path, const void *data, size_t size);

/*  Makes about `size` random bytes in whole records of a framing ("line" and "nul" end
 *  with their delimiter, "length" has prefixes, "chunk" is just bytes). Lines have
 *  NULs and invalid UTF-8 in them.  */
const char *file_make_stream (const char *name, const char *framing, uint64_t seed, size_t size);

/*  ---- Events of `hawser-recv --format json` ---- */

typedef struct {
    char event[16];
    uint64_t sender;
    char label[64];
    char cause[32];
    char reason[256];
    char data[256]; /* the text of records and errors, as far as it fits */
} event_t;

/*  How many events of the kind it has printed; `label` null: of any sender.  */
size_t event_count (const process_t *receiver, const char *kind, const char *label);

/*  Waits for the nth (from 1) event of the kind.  */
event_t event_wait (process_t *receiver, const char *kind, const char *label, size_t nth);

#endif
