#include "tests/support/pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { LONG_MS = 20000 };

static const char *const s_small_windows = "{\"anchors\": {\"buffer_bytes\": 4194304},"
                                           " \"limits\": {\"record_bytes\": 1048576}}";

void pair_open (pair_t *self, const hws_receiver_options_t *options)
{
    *self = (pair_t){.clients = {fixture_client (), fixture_client ()}};
    assert_int_equal (hws_receiver_open (&self->receiver, self->clients[0], "a", options), 0);
    assert_int_equal (hws_sender_attach (&self->sender, self->clients[1], "a", NULL), 0);
}

void pair_close (pair_t *self)
{
    hws_sender_destroy (&self->sender);
    hws_receiver_destroy (&self->receiver);
    hws_client_destroy (&self->clients[0]);
    hws_client_destroy (&self->clients[1]);
}

void expect_event (hws_receiver_t *receiver, hws_event_kind_t kind, hws_event_t *event)
{
    assert_int_equal (hws_receiver_recv (receiver, event, LONG_MS), 0);
    assert_int_equal (event->kind, kind);
}

int pair_setup_tcp (void **state)
{
    (void) state;
    return fixture_setup_tcp_with (s_small_windows);
}

int pair_setup_ipc (void **state)
{
    (void) state;
    return fixture_setup_ipc_with (s_small_windows);
}
