#include "tests/support/engine_words.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

static void add_answer (words_t *said, const hws_control_t *message)
{
    if (message->form == HWS_FORM_ERR) {
        words_add (said, "Err(%s)", hws_error_word (message->as.refusal.code));
    } else if (message->verb == HWS_VERB_ATTACH && message->as.attach_ok.has_ended) {
        words_add (said, "Ok ended");
    } else if (message->verb == HWS_VERB_ATTACH && *message->as.attach_ok.endpoint) {
        words_add (said, "Ok endpoint");
    } else {
        words_add (said, "Ok");
    }
}

static void add_stream_cancel (words_t *said, const hws_stream_cancel_t *message)
{
    if (message->ending[0] == '\0') {
        words_add (said, "STREAM_CANCEL(%s)", message->code);
    } else {
        words_add (said, "%s(%s) to the sender", message->ending, message->code);
    }
}

static void add_control (words_t *said, const hws_control_t *message, uint64_t session_id)
{
    if (message->form != HWS_FORM_REQUEST) {
        add_answer (said, message);
        return;
    }
    if (message->verb == HWS_VERB_STREAM_CANCEL) {
        if (session_id == 0 || message->as.stream_cancel.session_id == session_id) {
            add_stream_cancel (said, &message->as.stream_cancel);
        }
    } else if (message->verb == HWS_VERB_ANCHOR_CLOSED) {
        words_add (said, "ANCHOR_CLOSED(%s)", message->as.anchor_closed.code);
    } else {
        words_add (said, "%s", hws_verb_word (message->verb));
    }
}

static void add_run (words_t *said, const hws_run_t *run)
{
    static const char *const plain[] = {[HWS_RUN_RECORDS] = "RECORDS",
                                        [HWS_RUN_ERROR] = "ERROR",
                                        [HWS_RUN_DETACHED] = "DETACHED",
                                        [HWS_RUN_FINALIZED] = "FINALIZED",
                                        [HWS_RUN_ATTACHED] = "ATTACHED"};
    if (run->type != HWS_RUN_DROPPED && run->type != HWS_RUN_CANCELLED) {
        words_add (said, "%s", plain[run->type]);
        return;
    }
    hws_ending_t ending;
    assert_int_equal (hws_ending_decode (run->body, &ending), 0);
    words_add (said, "%s(%s) to the receiver", hws_ending_word (run->type),
               hws_cause_word (ending.cause));
}

void engine_words (words_t *said, client_t *client, uint64_t routing, uint64_t session_id)
{
    const heard_t *heard;
    while ((heard = client_next (client)) != NULL) {
        switch (heard->kind) {
        case HEARD_CONTROL:
            add_control (said, &heard->control, session_id);
            break;
        case HEARD_RUN:
            if (routing == 0 || heard->run.stream == routing) {
                add_run (said, &heard->run);
            }
            break;
        case HEARD_GRANT:
            if (session_id == 0 || heard->grant.stream == session_id) {
                words_add (said, heard->grant.flags & HWS_GRANT_REWIND   ? "REWIND"
                                 : heard->grant.flags & HWS_GRANT_RETURN ? "RETURN"
                                                                         : "GRANT");
            }
            break;
        }
    }
}
