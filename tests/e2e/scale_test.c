/*  Many of everything: complete, in order, and nothing left behind.  */
#include "tests/support/fixture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void a_hundred_sender_programs_of_a_hundred_records_each (void **state)
{
    const size_t count = process_scaled (100, 10);
    char text[1000];
    char senders_text[32];
    size_t size = 0;
    process_t *senders[100];

    (void) state;
    for (size_t i = 0; i < 100; i++) {
        size += (size_t) snprintf (text + size, sizeof text - size, "%zu\n", i);
    }
    const process_files_t files = {.input = file_make ("in", text, size)};
    snprintf (senders_text, sizeof senders_text, "%zu", count);
    const char *output = process_path ("out");
    process_t *receiver = process_start (NULL, "hawser-recv", "--anchor", "port", "--output-dir",
                                         output, "--senders", senders_text, NULL);
    for (size_t i = 0; i < count; i++) {
        char label[32];
        snprintf (label, sizeof label, "s%zu", i);
        senders[i] = process_start (&files, "hawser-send", "--anchor", "port", "--label", label,
                                    "--wait", "30", NULL);
    }

    for (size_t i = 0; i < count; i++) {
        process_expect_exit (senders[i], 0);
    }
    process_expect_exit (receiver, 0);
    for (size_t i = 0; i < count; i++) {
        file_expect (process_path ("out/s%zu", i), text, size);
    }
}

static void a_hundred_senders_of_one_client_and_a_hundred_records_each (void **state)
{
    hws_sender_t *senders[100];
    size_t seen[101] = {0};
    size_t endings = 0;
    hws_receiver_t *receiver = NULL;
    hws_event_t event;
    hws_client_t *client = fixture_client ();
    hws_client_t *other = fixture_client ();

    (void) state;
    assert_int_equal (hws_receiver_open (&receiver, client, "port", NULL), 0);
    for (size_t i = 0; i < 100; i++) {
        assert_int_equal (hws_sender_attach (&senders[i], other, "port", NULL), 0);
        assert_int_equal (hws_sender_id (senders[i]), i + 1);
    }
    for (uint64_t record = 0; record < 100; record++) {
        for (size_t i = 0; i < 100; i++) {
            assert_int_equal (hws_sender_send (senders[i], &record, sizeof record, 30000), 0);
        }
    }

    /*  The senders detach without waiting; a second call waits, once all is read.  */
    for (size_t i = 0; i < 100; i++) {
        const int rc = hws_sender_detach (senders[i], 0);
        assert_true (rc == 0 || rc == HWS_EWOULD_BLOCK);
    }
    while (endings < 100) {
        assert_int_equal (hws_receiver_recv (receiver, &event, 30000), 0);
        if (event.kind == HWS_EVENT_RECORD) {
            uint64_t record;
            assert_int_equal (event.size, sizeof record);
            memcpy (&record, event.data, sizeof record);
            assert_int_equal (record, seen[event.sender_id]);
            seen[event.sender_id]++;
        } else if (event.kind == HWS_EVENT_DETACHED) {
            assert_int_equal (seen[event.sender_id], 100);
            endings++;
        } else {
            assert_int_equal (event.kind, HWS_EVENT_ATTACHED);
        }
    }
    assert_int_equal (hws_receiver_recv (receiver, &event, 0), HWS_EWOULD_BLOCK);

    for (size_t i = 0; i < 100; i++) {
        assert_int_equal (hws_sender_detach (senders[i], 30000), 0);
        hws_sender_destroy (&senders[i]);
    }
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&other);
    hws_client_destroy (&client);
}

static void ten_thousand_records_of_one_sender (void **state)
{
    const uint64_t count = process_scaled (10000, 1000);
    hws_client_t *clients[2] = {fixture_client (), fixture_client ()};
    hws_receiver_t *receiver = NULL;
    hws_sender_t *sender = NULL;
    hws_event_t event;
    uint64_t next = 0;

    (void) state;
    assert_int_equal (hws_receiver_open (&receiver, clients[0], "port", NULL), 0);
    assert_int_equal (hws_sender_attach (&sender, clients[1], "port", NULL), 0);
    for (uint64_t i = 0; i < count; i++) {
        assert_int_equal (hws_sender_send (sender, &i, sizeof i, 30000), 0);
    }
    assert_int_equal (hws_sender_detach (sender, 0), HWS_EWOULD_BLOCK);

    do {
        assert_int_equal (hws_receiver_recv (receiver, &event, 30000), 0);
        if (event.kind == HWS_EVENT_RECORD) {
            assert_int_equal (event.size, sizeof next);
            assert_memory_equal (event.data, &next, sizeof next);
            next++;
        }
    } while (event.kind != HWS_EVENT_DETACHED);
    assert_int_equal (event.records, count);
    assert_int_equal (next, count);
    assert_int_equal (hws_receiver_recv (receiver, &event, 0), HWS_EWOULD_BLOCK);
    assert_int_equal (hws_sender_detach (sender, 30000), 0);
    hws_sender_destroy (&sender);
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&clients[0]);
    hws_client_destroy (&clients[1]);
}

static void a_thousand_anchors_opened_and_closed_leave_nothing (void **state)
{
    const size_t count = process_scaled (1000, 100);
    hws_client_t *client = fixture_client ();
    hws_receiver_t *receiver = NULL;
    hws_receiver_t **all = calloc (count, sizeof *all);
    uint64_t resident = 0;

    (void) state;
    assert_non_null (all);
    assert_int_equal (hws_receiver_open (&receiver, client, NULL, NULL), 0);
    const size_t broker_descriptors = process_descriptors (fixture_broker ());

    for (size_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < count; i++) {
            assert_int_equal (hws_receiver_open (&all[i], client, NULL, NULL), 0);
        }
        assert_int_equal (process_descriptors (fixture_broker ()), broker_descriptors);
        for (size_t i = 0; i < count; i++) {
            assert_int_equal (hws_receiver_close (all[i], NULL, 30000), 0);
            hws_receiver_destroy (&all[i]);
        }
        if (round == 0) {
            resident = process_resident_bytes (fixture_broker ());
        }
    }

    assert_int_equal (process_descriptors (fixture_broker ()), broker_descriptors);
    if (process_sizes_matter ()) {
        assert_true (process_resident_bytes (fixture_broker ()) < resident + (4u << 20));
    }
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&client);
    free (all);
}

#define OWNERS          4
#define ANCHORS_OF_EACH 1000

static const char *const s_crowd_config =
    "{\"anchors\": {\"heartbeat_interval_ms\": 5000, \"orphan_ttl_ms\": 1000}}";

/*  Each anchor has a sender whose record came.  */
static void open_and_close_crowd (hws_client_t *owners[], hws_client_t *guest, size_t of_each)
{
    static hws_receiver_t *receivers[OWNERS * ANCHORS_OF_EACH];
    static hws_sender_t *senders[OWNERS * ANCHORS_OF_EACH];
    const size_t count = OWNERS * of_each;
    hws_event_t event;
    char name[32];

    for (size_t i = 0; i < count; i++) {
        snprintf (name, sizeof name, "anchor %zu", i);
        assert_int_equal (hws_receiver_open (&receivers[i], owners[i % OWNERS], name, NULL), 0);
        assert_int_equal (hws_sender_attach (&senders[i], guest, name, NULL), 0);
        assert_int_equal (hws_sender_send (senders[i], name, strlen (name), 30000), 0);
    }
    assert_int_equal (fixture_statistic ("anchors"), count);
    for (size_t i = 0; i < count; i++) {
        do {
            assert_int_equal (hws_receiver_recv (receivers[i], &event, 30000), 0);
        } while (event.kind != HWS_EVENT_RECORD);
        snprintf (name, sizeof name, "anchor %zu", i);
        assert_memory_equal (event.data, name, strlen (name));
        assert_int_equal (hws_receiver_close (receivers[i], NULL, 30000), 0);
        hws_receiver_destroy (&receivers[i]);
        hws_sender_destroy (&senders[i]);
    }
}

static void four_thousand_anchors_at_one_time_leave_no_memory (void **state)
{
    const size_t of_each = process_scaled (ANCHORS_OF_EACH, 50);
    hws_client_t *owners[OWNERS];
    hws_client_t *guest = fixture_client ();
    uint64_t resident = 0;

    (void) state;
    for (size_t i = 0; i < OWNERS; i++) {
        owners[i] = fixture_client ();
    }

    for (size_t round = 0; round < 3; round++) {
        open_and_close_crowd (owners, guest, of_each);
        fixture_wait_statistic ("anchors", 0);
        fixture_wait_statistic ("tombstones", 0);
        if (round == 0) {
            resident = process_resident_bytes (fixture_broker ());
        }
    }

    if (process_sizes_matter ()) {
        assert_true (process_resident_bytes (fixture_broker ()) < resident + (2u << 20));
    }
    for (size_t i = 0; i < OWNERS; i++) {
        hws_client_destroy (&owners[i]);
    }
    hws_client_destroy (&guest);
}

static int setup_crowd_tcp (void **state)
{
    (void) state;
    return fixture_setup_tcp_with (s_crowd_config);
}

static void clients_that_come_and_go_leave_no_descriptor (void **state)
{
    const size_t count = process_scaled (200, 20);
    hws_receiver_t *receiver = NULL;
    hws_event_t event;
    hws_client_t *client = fixture_client ();

    (void) state;
    assert_int_equal (hws_receiver_open (&receiver, client, "port", NULL), 0);
    const size_t before = process_descriptors (fixture_broker ());
    for (size_t i = 0; i < count; i++) {
        hws_client_t *guest = fixture_client ();
        hws_sender_t *sender = NULL;
        assert_int_equal (hws_sender_attach (&sender, guest, "port", NULL), 0);
        assert_int_equal (hws_sender_send (sender, "x", 1, 30000), 0);
        const int rc = hws_sender_detach (sender, 0);
        assert_true (rc == 0 || rc == HWS_EWOULD_BLOCK);
        do {
            assert_int_equal (hws_receiver_recv (receiver, &event, 30000), 0);
        } while (event.kind != HWS_EVENT_DETACHED);
        assert_int_equal (event.sender_id, i + 1);
        assert_int_equal (hws_receiver_recv (receiver, &event, 0), HWS_EWOULD_BLOCK);
        assert_int_equal (hws_sender_detach (sender, 30000), 0);
        hws_sender_destroy (&sender);
        hws_client_destroy (&guest);
    }

    fixture_wait_descriptors (before);
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&client);
}

#define OVER_TCP(test)                                                                             \
    cmocka_unit_test_setup_teardown (test, fixture_setup_calm_tcp, fixture_teardown)
#define OVER_IPC(test)                                                                             \
    cmocka_unit_test_setup_teardown (test, fixture_setup_calm_ipc, fixture_teardown)
#define OVER_BOTH(test) OVER_TCP (test), OVER_IPC (test)

int main (void)
{
    const struct CMUnitTest tests[] = {
        OVER_BOTH (a_hundred_sender_programs_of_a_hundred_records_each),
        OVER_BOTH (a_hundred_senders_of_one_client_and_a_hundred_records_each),
        OVER_BOTH (ten_thousand_records_of_one_sender),
        OVER_BOTH (a_thousand_anchors_opened_and_closed_leave_nothing),
        cmocka_unit_test_setup_teardown (four_thousand_anchors_at_one_time_leave_no_memory,
                                         setup_crowd_tcp, fixture_teardown),
        OVER_BOTH (clients_that_come_and_go_leave_no_descriptor),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
