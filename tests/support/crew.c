#include "tests/support/crew.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static process_t *start_sender (const crew_options_t *options, const char *label,
                                const char *give_up)
{
    const process_files_t files = {.input = ledger_input (label, options->records)};
    const char *list[20] = {NULL};
    char space[32];
    size_t count = 0;

    if (options->sender_space != 0) {
        snprintf (space, sizeof space, "%d", (int) options->sender_space);
        list[count++] = "/usr/bin/nsenter";
        list[count++] = "-n";
        list[count++] = "-t";
        list[count++] = space;
    }
    list[count++] = process_program ("hawser-send");
    const char *const rest[] = {"--broker",  broker_of (options->sender_broker),
                                "--anchor",  "port",
                                "--label",   label,
                                "--wait",    "30",
                                "--give-up", give_up};
    memcpy (&list[count], rest, sizeof rest);
    return process_start_list (&files, list);
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
        self->senders[i] = start_sender (options, label_of (i), give_up);
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
