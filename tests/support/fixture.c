#include "tests/support/fixture.h"

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <cjson/cJSON.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BROKERS_MAX 8

/*  How long a number of the broker's may take to become what it has to be, and how often it
 *  is asked for.  */
#define SETTLE_MS    60000
#define ASK_EVERY_MS 20

/*  A place where one broker after the other lives.  */
typedef struct {
    process_t *process; /* the one that lives or lived last */
    char endpoint[256]; /* of its ready line */
    const char *config; /* its file */
    const char *state;  /* its state directory; null: as its configuration says */
    int reserved;       /* a socket that keeps its port for it, or -1 */
} broker_t;

static struct {
    broker_t brokers[BROKERS_MAX];
    size_t count;
    size_t newest; /* the one started last */
} s_fixture;

static const char *const s_short_times =
    "{\"anchors\": {\"heartbeat_interval_ms\": 200, \"reconnect_grace_ms\": 300}}";

static const char *const s_calm_times =
    "{\"anchors\": {\"heartbeat_interval_ms\": 5000, \"reconnect_grace_ms\": 10000}}";

/*  ---- Brokers ---- */

int fixture_setup_bare (void **state)
{
    (void) state;
    s_fixture.count = 0;
    return process_setup ();
}

int fixture_setup_tcp_with (const char *config)
{
    const int rc = fixture_setup_bare (NULL);
    if (rc == 0) {
        fixture_start_broker (NULL, config);
    }
    return rc;
}

int fixture_setup_ipc_with (const char *config)
{
    char listen[256];
    const int rc = fixture_setup_bare (NULL);
    if (rc == 0) {
        snprintf (listen, sizeof listen, "ipc://%s/broker", process_directory ());
        fixture_start_broker (listen, config);
    }
    return rc;
}

int fixture_setup_tcp (void **state)
{
    (void) state;
    return fixture_setup_tcp_with (NULL);
}

int fixture_setup_ipc (void **state)
{
    (void) state;
    return fixture_setup_ipc_with (NULL);
}

int fixture_setup_calm_tcp (void **state)
{
    (void) state;
    return fixture_setup_tcp_with (s_calm_times);
}

int fixture_setup_calm_ipc (void **state)
{
    (void) state;
    return fixture_setup_ipc_with (s_calm_times);
}

int fixture_teardown (void **state)
{
    int rc = 0;

    (void) state;
    for (size_t i = 0; i < s_fixture.count; i++) {
        process_t *broker = s_fixture.brokers[i].process;
        process_signal (broker, SIGCONT);
        if (process_is_running (broker)) {
            process_signal (broker, SIGTERM);
            if (process_wait_exit (broker) != 0) {
                print_message ("the broker did not end well:\n%s\n", process_errors (broker));
                rc = -1;
            }
        }
        if (s_fixture.brokers[i].reserved >= 0) {
            close (s_fixture.brokers[i].reserved);
        }
    }
    s_fixture.count = 0;
    return process_teardown () == 0 ? rc : -1;
}

/*  A free port of loopback. The socket is bound and never listens: so a broker can listen on
 *  the port, now and after its death, and nobody else is given it meanwhile.  */
static int reserve_port (char *endpoint, size_t size)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t address_size = sizeof address;
    const int on = 1;
    const int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true (fd >= 0);
    address.sin_addr.s_addr = htonl (INADDR_LOOPBACK);
    assert_int_equal (setsockopt (fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
    assert_int_equal (bind (fd, (struct sockaddr *) &address, sizeof address), 0);
    assert_int_equal (getsockname (fd, (struct sockaddr *) &address, &address_size), 0);
    snprintf (endpoint, size, "tcp://127.0.0.1:%d", ntohs (address.sin_port));
    return fd;
}

/*  Starts a process for the place, at its endpoint, and waits until it is ready.  */
static process_t *start (broker_t *self)
{
    self->process =
        process_start (NULL, "hawser-broker", "-c", self->config, "--listen", self->endpoint,
                       self->state ? "--state-dir" : NULL, self->state, NULL);
    const char *ready =
        strstr (process_wait_output (self->process, "hawser-broker: ready "), "ready ") + 6;
    snprintf (self->endpoint, sizeof self->endpoint, "%.*s", (int) strcspn (ready, " "), ready);
    setenv ("HAWSER_BROKER", self->endpoint, 1);
    s_fixture.newest = (size_t) (self - s_fixture.brokers);
    return self->process;
}

process_t *fixture_start_broker (const char *listen, const char *config)
{
    /*  Under valgrind a program may take seconds for what takes it milliseconds.  */
    const char *short_times = getenv ("HAWSER_WRAP") ? s_calm_times : s_short_times;
    char name[32];

    assert_true (s_fixture.count < BROKERS_MAX);
    broker_t *broker = &s_fixture.brokers[s_fixture.count];
    *broker = (broker_t){.reserved = -1};
    snprintf (name, sizeof name, "broker-%zu.json", s_fixture.count);
    broker->config = file_make_text (name, config ? config : short_times);
    if (!config || !strstr (config, "\"state_dir\"")) {
        broker->state = process_path ("broker-%zu.state", s_fixture.count);
    }
    if (listen) {
        snprintf (broker->endpoint, sizeof broker->endpoint, "%s", listen);
    } else {
        broker->reserved = reserve_port (broker->endpoint, sizeof broker->endpoint);
    }
    s_fixture.count++;
    return start (broker);
}

void fixture_kill (process_t *broker)
{
    process_signal (broker, SIGKILL);
    process_expect_exit (broker, 128 + SIGKILL);
}

void fixture_stop (process_t *broker)
{
    process_signal (broker, SIGTERM);
    process_expect_exit (broker, 0);
}

static broker_t *place_of (const process_t *broker)
{
    for (size_t i = 0; i < s_fixture.count; i++) {
        if (s_fixture.brokers[i].process == broker) {
            return &s_fixture.brokers[i];
        }
    }
    process_fail ("the fixture did not start that broker, or another followed it");
}

process_t *fixture_restart (process_t *broker)
{
    broker_t *const place = place_of (broker);

    assert_false (process_is_running (broker));
    return start (place);
}

const char *fixture_state_directory (const process_t *broker)
{
    return place_of (broker)->state;
}

process_t *fixture_broker (void)
{
    return s_fixture.brokers[s_fixture.newest].process;
}

const char *fixture_endpoint (void)
{
    return s_fixture.brokers[s_fixture.newest].endpoint;
}

hws_client_t *fixture_client (void)
{
    hws_client_t *client = NULL;
    hws_client_options_t options;

    hws_client_options_init (&options);
    options.endpoint = fixture_endpoint ();
    assert_int_equal (hws_client_new (&client, &options), 0);
    return client;
}

/*  The lines of the answer come together, this one last.  */
uint64_t fixture_statistic (const char *name)
{
    char key[64];
    const char *found = NULL;
    process_t *broker = fixture_broker ();

    process_signal (broker, SIGUSR2);
    process_wait_error (broker, "event=faults");
    snprintf (key, sizeof key, " %s=", name);
    for (const char *next = process_errors (broker); (next = strstr (next, key)); next++) {
        found = next;
    }
    if (!found) {
        process_fail ("the broker has no statistic %s", name);
    }
    return strtoull (found + strlen (key), NULL, 10);
}

void fixture_wait_statistic (const char *name, uint64_t value)
{
    const int64_t until = process_now () + SETTLE_MS;
    uint64_t last;

    while ((last = fixture_statistic (name)) != value) {
        if (process_now () > until) {
            process_fail ("the broker's %s is %llu, not %llu", name, (unsigned long long) last,
                          (unsigned long long) value);
        }
        process_watch (ASK_EVERY_MS);
    }
}

void fixture_wait_descriptors (size_t count)
{
    const int64_t until = process_now () + SETTLE_MS;
    size_t last;

    while ((last = process_descriptors (fixture_broker ())) > count) {
        if (process_now () > until) {
            process_fail ("the broker has %zu descriptors open, not %zu", last, count);
        }
        process_watch (ASK_EVERY_MS);
    }
}

/*  ---- Files ---- */

const char *file_make (const char *name, const void *data, size_t size)
{
    const char *path = process_path ("%s", name);
    FILE *file = fopen (path, "we");

    assert_non_null (file);
    assert_int_equal (fwrite (data, 1, size, file), size);
    assert_int_equal (fclose (file), 0);
    return path;
}

const char *file_make_text (const char *name, const char *text)
{
    return file_make (name, text, strlen (text));
}

char *file_read (const char *path, size_t *size)
{
    FILE *file = fopen (path, "re");
    if (!file) {
        process_fail ("there is no %s", path);
    }
    assert_int_equal (fseek (file, 0, SEEK_END), 0);
    const long length = ftell (file);
    assert_true (length >= 0);
    rewind (file);
    char *data = malloc ((size_t) length + 1);
    assert_non_null (data);
    assert_int_equal (fread (data, 1, (size_t) length, file), length);
    data[length] = '\0';
    fclose (file);
    if (size) {
        *size = (size_t) length;
    }
    return data;
}

void file_expect (const char *path, const void *data, size_t size)
{
    size_t got_size;
    char *got = file_read (path, &got_size);
    size_t at = 0;

    while (at < size && at < got_size && got[at] == ((const char *) data)[at]) {
        at++;
    }
    free (got);
    if (at != size || at != got_size) {
        process_fail ("%s has %zu bytes, not %zu; the first difference is at %zu", path, got_size,
                      size, at);
    }
}

void file_expect_same (const char *path, const char *expected)
{
    size_t size;
    char *data = file_read (expected, &size);

    file_expect (path, data, size);
    free (data);
}

/*  One record into `data`, which has room for any; returns its size.  */
static size_t make_record (hws_random_t *random, const char *framing, unsigned char *data)
{
    const int delimiter = strcmp (framing, "line") == 0 ? '\n' : 0;
    const size_t length =
        (size_t) hws_random_below (random, hws_random_below (random, 50) ? 200 : 40000);

    if (strcmp (framing, "length") == 0) {
        for (size_t i = 0; i < length; i++) {
            data[4 + i] = (unsigned char) hws_random_next (random);
        }
        for (size_t i = 0; i < 4; i++) {
            data[i] = (unsigned char) (length >> (24 - 8 * i));
        }
        return length + 4;
    }
    for (size_t i = 0; i < length; i++) {
        data[i] = (unsigned char) hws_random_next (random);
        if (data[i] == delimiter) {
            data[i] = 'x';
        }
    }
    data[length] = (unsigned char) delimiter;
    return length + 1;
}

const char *file_make_stream (const char *name, const char *framing, uint64_t seed, size_t size)
{
    const char *path = process_path ("%s", name);
    unsigned char *record = malloc (40008);
    FILE *file = fopen (path, "we");
    hws_random_t random;

    assert_non_null (record);
    assert_non_null (file);
    hws_random_init (&random, seed);
    for (size_t written = 0; written < size;) {
        const size_t next = make_record (&random, framing, record);
        assert_int_equal (fwrite (record, 1, next, file), next);
        written += next;
    }
    assert_int_equal (fclose (file), 0);
    free (record);
    return path;
}

/*  ---- Events ---- */

static void copy_member (const cJSON *object, const char *name, char *text, size_t size)
{
    const cJSON *member = cJSON_GetObjectItemCaseSensitive (object, name);
    snprintf (text, size, "%s", cJSON_IsString (member) ? member->valuestring : "");
}

/*  A member that is a number, or a number in a string.  */
static uint64_t read_number (const cJSON *object, const char *name)
{
    const cJSON *member = cJSON_GetObjectItemCaseSensitive (object, name);
    if (cJSON_IsString (member)) {
        return strtoull (member->valuestring, NULL, 10);
    }
    return cJSON_IsNumber (member) ? (uint64_t) member->valuedouble : 0;
}

/*  The nth event that fits; returns how many there were, at most `nth`.  */
static size_t find_event (const process_t *receiver, const char *kind, const char *label,
                          size_t nth, event_t *event)
{
    size_t size;
    size_t count = 0;
    const char *line = process_output (receiver, &size);
    const char *const end = line + size;

    while (line < end && count < nth) {
        const char *stop = memchr (line, '\n', (size_t) (end - line));
        if (!stop) {
            break;
        }
        cJSON *object = cJSON_ParseWithLength (line, (size_t) (stop - line));
        if (!object) {
            process_fail ("not JSON: %.*s", (int) (stop - line), line);
        }
        copy_member (object, "event", event->event, sizeof event->event);
        copy_member (object, "label", event->label, sizeof event->label);
        copy_member (object, "cause", event->cause, sizeof event->cause);
        copy_member (object, "reason", event->reason, sizeof event->reason);
        copy_member (object, "data", event->data, sizeof event->data);
        event->sender = read_number (object, "sender");
        cJSON_Delete (object);
        if (strcmp (event->event, kind) == 0 && (!label || strcmp (event->label, label) == 0)) {
            count++;
        }
        line = stop + 1;
    }
    return count;
}

size_t event_count (const process_t *receiver, const char *kind, const char *label)
{
    event_t event;
    return find_event (receiver, kind, label, SIZE_MAX, &event);
}

event_t event_wait (process_t *receiver, const char *kind, const char *label, size_t nth)
{
    event_t event;

    while (find_event (receiver, kind, label, nth, &event) < nth) {
        process_wait_lines (receiver, process_count_output (receiver, "") + 1);
    }
    return event;
}
