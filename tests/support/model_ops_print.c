#include "tests/support/model_ops.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const s_hello_words[] = {"from a new connection", "again",
                                            "with another protocol", "for another client"};
static const char *const s_handle_words[] = {"by handle",          "by name",
                                             "of another broker",  "of the other kind",
                                             "that was not given", "of an older epoch"};
static const char *const s_data_words[] = {"next",        "beyond the window",
                                           "seen before", "across what was seen",
                                           "ahead",       "DETACHED",
                                           "FINALIZED",   "faulty",
                                           "VOID",        "cut off"};
static const char *const s_ack_words[] = {"all",      "some",       "nothing new",
                                          "too much", "the ending", "with too few bytes"};
static const char *const s_want_words[] = {"what comes next", "some", "the most", "less",
                                           "less, too late"};
static const char *const s_cancel_words[] = {"the sender", "the anchor", "the sender, interrupted",
                                             "a sender that never was"};

static int print_values (const op_t *op, char *text, size_t size)
{
    const struct {
        const char *word;
        uint64_t value;
    } values[] = {{"heartbeat", op->interval_ms}, {"grace", op->grace_ms},
                  {"orphan", op->orphan_ms},      {"unattached", op->unattached_ms},
                  {"senders", op->senders},       {"buffer", op->buffer_bytes}};
    int used = 0;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        if (values[i].value) {
            used += snprintf (text + used, size - (size_t) used, " %s=%" PRIu64, values[i].word,
                              values[i].value);
        }
    }
    return used;
}

static void print_open (const op_t *op, char *text, size_t size)
{
    char values[200] = "";
    print_values (op, values, sizeof values);
    snprintf (text, size, "OPEN %s%s%" PRIu64 " name %d token %" PRIu64 "%s%s",
              op->is_dedicated ? "dedicated " : "", op->is_exclusive ? "exclusive " : "",
              op->open_id, op->name, op->token, values,
              op->how == 0   ? ""
              : op->how == 1 ? ", orphan TTL 0"
                             : ", max_senders 0");
}

static void print_request (const op_t *op, char *text, size_t size)
{
    switch ((int) op->kind) {
    case OP_HELLO:
        snprintf (text, size, "HELLO %s, at the front of anchor %" PRIu64 " of client %d",
                  s_hello_words[op->how], op->open_id, op->owner);
        return;
    case OP_OPEN:
        print_open (op, text, size);
        return;
    case OP_ATTACH:
        snprintf (text, size,
                  "ATTACH session %" PRIu64 " to anchor %" PRIu64
                  " of client %d %s (name %d), waits %" PRIu64 " ms, token %" PRIu64 "%s",
                  op->session_id, op->open_id, op->owner, s_handle_words[op->how], op->name,
                  op->wait_ms, op->token,
                  op->count == 0   ? ""
                  : op->count == 1 ? ", resume"
                                   : ", resume of a cancelled stream");
        return;
    case OP_DETACH:
        snprintf (text, size, "DETACH session %" PRIu64 " of client %d, %u too high, %s",
                  op->session_id, op->sender, op->count, s_handle_words[op->how]);
        return;
    case OP_CANCEL:
        snprintf (text, size,
                  "CANCEL %s: anchor %" PRIu64 " of client %d, session %" PRIu64
                  " of client %d, reason %u",
                  s_cancel_words[op->how], op->open_id, op->owner, op->session_id, op->sender,
                  op->count);
        return;
    case OP_CANCEL_TOKEN:
        snprintf (text, size, "CANCEL_TOKEN %" PRIu64 ", reason %u", op->token, op->count);
        return;
    case OP_RESERVE_TOKEN:
        snprintf (text, size, "RESERVE_TOKEN");
        return;
    case OP_BYE:
        snprintf (text, size, "BYE");
        return;
    case OP_RUBBISH:
        snprintf (text, size, "rubbish (%u)", op->count);
        return;
    case OP_STALE:
        snprintf (text, size, "PING on a connection of before");
        return;
    default:
        snprintf (text, size, "PING");
        return;
    }
}

static void print_body (const op_t *op, char *text, size_t size)
{
    switch ((int) op->kind) {
    case OP_DATA:
        snprintf (text, size, "DATA session %" PRIu64 ": %u %s%s", op->session_id, op->count,
                  s_data_words[op->how], op->is_more ? ", and" : "");
        return;
    case OP_ACK:
        snprintf (text, size, "ACK session %" PRIu64 " of client %d: %s (%u)%s", op->session_id,
                  op->sender, s_ack_words[op->how], op->count, op->is_more ? ", and" : "");
        return;
    case OP_WANT:
        snprintf (text, size, "WINDOW session %" PRIu64 " wants %s (%u)%s", op->session_id,
                  s_want_words[op->how], op->count, op->is_more ? ", and" : "");
        return;
    case OP_GONE:
        snprintf (text, size, "loses its connection");
        return;
    case OP_BOUND:
        snprintf (text, size, "the shell %s the front of anchor %" PRIu64 " of client %d",
                  op->how == 0 ? "has bound" : "cannot bind", op->open_id, op->owner);
        return;
    case OP_DRAIN:
        snprintf (text, size, "the broker is to leave");
        return;
    case OP_ADVANCE:
        snprintf (text, size, "%" PRId64 " ms pass, beating %x", op->ms, op->beating);
        return;
    case OP_DEADLINE:
        snprintf (text, size, "to %d ms of the next deadline, beating %x", (int) op->count - 2,
                  op->beating);
        return;
    case OP_SLEEP:
        snprintf (text, size, "the broker sleeps %" PRId64 " ms", op->ms);
        return;
    default:
        print_request (op, text, size);
        return;
    }
}

void op_print (const op_t *op, char *text, size_t size)
{
    char body[400] = "";
    print_body (op, body, sizeof body);
    if (op->kind >= OP_ADVANCE) {
        snprintf (text, size, "%s", body);
    } else {
        snprintf (text, size, "+%" PRId64 " ms: client %d %s%s", op->ms, op->client, body,
                  op->has_id || op->kind == OP_DATA || op->kind == OP_ACK || op->kind == OP_WANT
                      ? ""
                      : " (no id)");
    }
}
