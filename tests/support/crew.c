#include "tests/support/crew.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

static const char *label_of (size_t sender)
{
    static char label[32];

    snprintf (label, sizeof label, "s%zu", sender);
    return label;
}

static const char *broker_of (const char *endpoint)
{
    return endpoint ? endpoint : getenv ("HAWSER_BROKER");
}

void crew_start (crew_t *self, const crew_options_t *options)
{
    const char *const give_up = options->give_up ? options->give_up : "1m";
    char count[32];

    assert_true (options->senders <= LEDGER_SENDERS_MAX);
    *self = (crew_t){.options = *options};
    snprintf (count, sizeof count, "%zu", options->senders);
    self->receiver = process_start (
        NULL, "hawser-recv", "--broker", broker_of (options->receiver_broker), "--anchor", "port",
        "--format", "json", "--senders", count, "--give-up", give_up, NULL);
    for (size_t i = 0; i < options->senders; i++) {
        const process_files_t files = {.input = ledger_input (label_of (i), options->records)};
        self->senders[i] = process_start (
            &files, "hawser-send", "--broker", broker_of (options->sender_broker), "--anchor",
            "port", "--label", label_of (i), "--wait", "30", "--give-up", give_up, NULL);
    }
}

void crew_wait_records (crew_t *self, size_t count)
{
    process_wait_lines (self->receiver, count);
}

void crew_expect_whole (crew_t *self)
{
    ledger_t ledger;

    for (size_t i = 0; i < self->options.senders; i++) {
        process_expect_exit (self->senders[i], 0);
    }
    process_expect_exit (self->receiver, 0);
    ledger_init (&ledger);
    ledger_read (&ledger, self->receiver);
    for (size_t i = 0; i < self->options.senders; i++) {
        ledger_expect (&ledger, label_of (i), self->options.records, "detached", "");
    }
    assert_int_equal (ledger.count, self->options.senders);
}
