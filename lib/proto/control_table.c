#include "proto/control_table.h"

#define FIELD(structure, field)                                                                    \
    .offset = offsetof (structure, field), .size = sizeof ((structure *) 0)->field
#define REQUIRED                 .is_required = true
#define PRESENT(structure, flag) .has_presence = true, .presence_offset = offsetof (structure, flag)
#define TABLE(array)                                                                               \
    {                                                                                              \
        .members = array, .count = sizeof array / sizeof *array                                    \
    }

/*  ---- HELLO ---- */

static const hws_member_t s_client_members[] = {
    {"name", HWS_MEMBER_TEXT, FIELD (hws_hello_t, client_name)},
    {"version", HWS_MEMBER_TEXT, FIELD (hws_hello_t, client_version)},
};
static const hws_table_t s_client = TABLE (s_client_members);

static const hws_member_t s_hello_members[] = {
    {"client_id", HWS_MEMBER_ID, REQUIRED, FIELD (hws_hello_t, client_id)},
    {"protocol", HWS_MEMBER_SMALL, REQUIRED, FIELD (hws_hello_t, protocol)},
    {"client", HWS_MEMBER_OBJECT, .table = &s_client},
};

static const hws_member_t s_limits_members[] = {
    {"record_bytes", HWS_MEMBER_DECIMAL, FIELD (hws_hello_ok_t, record_bytes)},
    {"batch_bytes", HWS_MEMBER_DECIMAL, FIELD (hws_hello_ok_t, batch_bytes)},
    {"heartbeat_min_ms", HWS_MEMBER_MS, FIELD (hws_hello_ok_t, heartbeat_min_ms)},
};
static const hws_table_t s_limits = TABLE (s_limits_members);

static const hws_member_t s_early_members[] = {
    {"records", HWS_MEMBER_SMALL, FIELD (hws_hello_ok_t, early_records)},
    {"bytes", HWS_MEMBER_DECIMAL, FIELD (hws_hello_ok_t, early_bytes)},
};
static const hws_table_t s_early = TABLE (s_early_members);

static const hws_member_t s_hello_ok_members[] = {
    {"broker_id", HWS_MEMBER_DECIMAL, REQUIRED, FIELD (hws_hello_ok_t, broker_id)},
    {"epoch", HWS_MEMBER_DECIMAL, REQUIRED, FIELD (hws_hello_ok_t, epoch)},
    {"protocol", HWS_MEMBER_SMALL, REQUIRED, FIELD (hws_hello_ok_t, protocol)},
    {"limits", HWS_MEMBER_OBJECT, .table = &s_limits},
    {"transports", HWS_MEMBER_WORDS, FIELD (hws_hello_ok_t, transports)},
    {"features", HWS_MEMBER_WORDS, FIELD (hws_hello_ok_t, features)},
    {"early", HWS_MEMBER_OBJECT, .table = &s_early},
};

/*  ---- OPEN ---- */

static const hws_member_t s_open_resume_members[] = {
    {"handle", HWS_MEMBER_HANDLE, REQUIRED, FIELD (hws_open_t, resume.handle)},
    {"owner_token", HWS_MEMBER_ID, REQUIRED, FIELD (hws_open_t, resume.owner_token)},
    {"highest_sender_id", HWS_MEMBER_DECIMAL, FIELD (hws_open_t, resume.highest_sender_id)},
    {"unseen", HWS_MEMBER_RANGES, FIELD (hws_open_t, resume.unseen),
     PRESENT (hws_open_t, resume.unseen_count)},
};
static const hws_table_t s_open_resume = TABLE (s_open_resume_members);

static const hws_member_t s_open_members[] = {
    {"open_id", HWS_MEMBER_DECIMAL, REQUIRED, FIELD (hws_open_t, open_id)},
    {"name", HWS_MEMBER_NAME, FIELD (hws_open_t, name)},
    {"kind", HWS_MEMBER_KIND, FIELD (hws_open_t, kind)},
    {"heartbeat_interval_ms", HWS_MEMBER_OPT_MS, FIELD (hws_open_t, heartbeat_interval_ms)},
    {"reconnect_grace_ms", HWS_MEMBER_OPT_MS, FIELD (hws_open_t, reconnect_grace_ms)},
    {"unattached_timeout_ms", HWS_MEMBER_OPT_MS, FIELD (hws_open_t, unattached_timeout_ms)},
    {"orphan_ttl_ms", HWS_MEMBER_OPT_MS, FIELD (hws_open_t, orphan_ttl_ms)},
    {"max_senders", HWS_MEMBER_OPT_DECIMAL, FIELD (hws_open_t, max_senders)},
    {"buffer_bytes", HWS_MEMBER_OPT_DECIMAL, FIELD (hws_open_t, buffer_bytes)},
    {"dedicated", HWS_MEMBER_BOOL, FIELD (hws_open_t, dedicated)},
    {"cancel_token", HWS_MEMBER_DECIMAL, FIELD (hws_open_t, cancel_token)},
    {"resume", HWS_MEMBER_OBJECT, .table = &s_open_resume, PRESENT (hws_open_t, has_resume)},
};

static const hws_member_t s_open_ok_members[] = {
    {"handle", HWS_MEMBER_HANDLE, REQUIRED, FIELD (hws_open_ok_t, handle)},
    {"owner_token", HWS_MEMBER_ID, FIELD (hws_open_ok_t, owner_token)},
    {"heartbeat_interval_ms", HWS_MEMBER_MS, REQUIRED,
     FIELD (hws_open_ok_t, heartbeat_interval_ms)},
    {"reconnect_grace_ms", HWS_MEMBER_MS, FIELD (hws_open_ok_t, reconnect_grace_ms)},
    {"unattached_timeout_ms", HWS_MEMBER_OPT_MS, FIELD (hws_open_ok_t, unattached_timeout_ms)},
    {"orphan_ttl_ms", HWS_MEMBER_MS, FIELD (hws_open_ok_t, orphan_ttl_ms)},
    {"max_senders", HWS_MEMBER_OPT_DECIMAL, FIELD (hws_open_ok_t, max_senders)},
    {"buffer_bytes", HWS_MEMBER_DECIMAL, FIELD (hws_open_ok_t, buffer_bytes)},
    {"record_bytes", HWS_MEMBER_DECIMAL, FIELD (hws_open_ok_t, record_bytes)},
};

/*  ---- ATTACH ---- */

static const hws_member_t s_attach_resume_members[] = {
    {"sender_id", HWS_MEMBER_DECIMAL, REQUIRED, FIELD (hws_attach_t, resume.sender_id), .least = 1},
    {"resume_token", HWS_MEMBER_ID, REQUIRED, FIELD (hws_attach_t, resume.resume_token)},
    {"acked_seq", HWS_MEMBER_DECIMAL, FIELD (hws_attach_t, resume.acked_seq)},
    {"acked_bytes", HWS_MEMBER_DECIMAL, FIELD (hws_attach_t, resume.acked_bytes)},
    {"next_seq", HWS_MEMBER_DECIMAL, FIELD (hws_attach_t, resume.next_seq)},
    {"ending", HWS_MEMBER_TEXT, FIELD (hws_attach_t, resume.ending)},
    {"code", HWS_MEMBER_TEXT, FIELD (hws_attach_t, resume.code)},
};
static const hws_table_t s_attach_resume = TABLE (s_attach_resume_members);

static const hws_member_t s_attach_members[] = {
    {"handle", HWS_MEMBER_HANDLE, FIELD (hws_attach_t, handle), PRESENT (hws_attach_t, has_handle)},
    {"anchor", HWS_MEMBER_NAME, FIELD (hws_attach_t, anchor)},
    {"session_id", HWS_MEMBER_DECIMAL, REQUIRED, FIELD (hws_attach_t, session_id)},
    {"stream_cancel_handle", HWS_MEMBER_HANDLE, FIELD (hws_attach_t, stream_cancel_handle)},
    {"supported_transport_keys", HWS_MEMBER_WORDS, FIELD (hws_attach_t, supported_transport_keys)},
    {"label", HWS_MEMBER_NAME, FIELD (hws_attach_t, label)},
    {"cancel_token", HWS_MEMBER_DECIMAL, FIELD (hws_attach_t, cancel_token)},
    {"wait_ms", HWS_MEMBER_MS, FIELD (hws_attach_t, wait_ms)},
    {"resume", HWS_MEMBER_OBJECT, .table = &s_attach_resume, PRESENT (hws_attach_t, has_resume)},
};

static const hws_member_t s_ended_members[] = {
    {"ending", HWS_MEMBER_TEXT, REQUIRED, FIELD (hws_attach_ok_t, ending)},
    {"code", HWS_MEMBER_TEXT, FIELD (hws_attach_ok_t, code)},
    {"reason", HWS_MEMBER_TEXT, FIELD (hws_attach_ok_t, reason)},
};
static const hws_table_t s_ended = TABLE (s_ended_members);

static const hws_member_t s_attach_ok_members[] = {
    {"handle", HWS_MEMBER_HANDLE, FIELD (hws_attach_ok_t, handle)},
    {"streaming_transport_key", HWS_MEMBER_TEXT, REQUIRED,
     FIELD (hws_attach_ok_t, streaming_transport_key)},
    {"heartbeat_interval_ms", HWS_MEMBER_MS, REQUIRED,
     FIELD (hws_attach_ok_t, heartbeat_interval_ms)},
    {"sender_id", HWS_MEMBER_DECIMAL, REQUIRED, FIELD (hws_attach_ok_t, sender_id)},
    {"routing_session_id", HWS_MEMBER_DECIMAL, FIELD (hws_attach_ok_t, routing_session_id)},
    {"initial_credit", HWS_MEMBER_DECIMAL, FIELD (hws_attach_ok_t, initial_credit)},
    {"slot_byte_budget", HWS_MEMBER_DECIMAL, FIELD (hws_attach_ok_t, slot_byte_budget)},
    {"next_seq", HWS_MEMBER_DECIMAL, FIELD (hws_attach_ok_t, next_seq)},
    {"next_bytes", HWS_MEMBER_DECIMAL, FIELD (hws_attach_ok_t, next_bytes)},
    {"acked_seq", HWS_MEMBER_DECIMAL, FIELD (hws_attach_ok_t, acked_seq)},
    {"acked_bytes", HWS_MEMBER_DECIMAL, FIELD (hws_attach_ok_t, acked_bytes)},
    {"record_bytes", HWS_MEMBER_DECIMAL, FIELD (hws_attach_ok_t, record_bytes)},
    {"early", HWS_MEMBER_EARLY, FIELD (hws_attach_ok_t, early_kept)},
    {"resume_token", HWS_MEMBER_ID, FIELD (hws_attach_ok_t, resume_token)},
    {"endpoint", HWS_MEMBER_TEXT, FIELD (hws_attach_ok_t, endpoint)},
    {"ended", HWS_MEMBER_OBJECT, .table = &s_ended, PRESENT (hws_attach_ok_t, has_ended)},
};

/*  ---- The rest of the requests ---- */

static const hws_member_t s_detach_members[] = {
    {"handle", HWS_MEMBER_HANDLE, REQUIRED, FIELD (hws_detach_t, handle)},
    {"sender_id", HWS_MEMBER_DECIMAL, REQUIRED, FIELD (hws_detach_t, sender_id), .least = 1},
    {"seq", HWS_MEMBER_DECIMAL, REQUIRED, FIELD (hws_detach_t, seq)},
};

/*  A sender id of 0 would mean the whole anchor, so nobody may write it.  */
static const hws_member_t s_cancel_members[] = {
    {"handle", HWS_MEMBER_HANDLE, REQUIRED, FIELD (hws_cancel_t, handle)},
    {"sender_id", HWS_MEMBER_DECIMAL, FIELD (hws_cancel_t, sender_id), .least = 1},
    {"reason", HWS_MEMBER_TEXT, FIELD (hws_cancel_t, reason)},
    {"wait_ms", HWS_MEMBER_MS, FIELD (hws_cancel_t, wait_ms)},
    {"code", HWS_MEMBER_TEXT, FIELD (hws_cancel_t, code)},
};

static const hws_member_t s_cancel_token_members[] = {
    {"token", HWS_MEMBER_DECIMAL, REQUIRED, FIELD (hws_token_t, token)},
    {"reason", HWS_MEMBER_TEXT, FIELD (hws_token_t, reason)},
};

static const hws_member_t s_reserve_token_ok_members[] = {
    {"token", HWS_MEMBER_DECIMAL, REQUIRED, FIELD (hws_token_t, token), .least = 1},
};

/*  ---- What the broker says ---- */

static const hws_member_t s_stream_cancel_members[] = {
    {"session_id", HWS_MEMBER_DECIMAL, REQUIRED, FIELD (hws_stream_cancel_t, session_id)},
    {"stream_cancel_handle", HWS_MEMBER_HANDLE, FIELD (hws_stream_cancel_t, stream_cancel_handle)},
    {"ending", HWS_MEMBER_TEXT, FIELD (hws_stream_cancel_t, ending)},
    {"code", HWS_MEMBER_TEXT, REQUIRED, FIELD (hws_stream_cancel_t, code)},
    {"reason", HWS_MEMBER_TEXT, FIELD (hws_stream_cancel_t, reason)},
    {"next_seq", HWS_MEMBER_DECIMAL, FIELD (hws_stream_cancel_t, next_seq)},
};

static const hws_member_t s_counts_members[] = {
    {"detached", HWS_MEMBER_DECIMAL, FIELD (hws_anchor_closed_t, detached)},
    {"finalized", HWS_MEMBER_DECIMAL, FIELD (hws_anchor_closed_t, finalized)},
    {"dropped", HWS_MEMBER_DECIMAL, FIELD (hws_anchor_closed_t, dropped)},
    {"cancelled", HWS_MEMBER_DECIMAL, FIELD (hws_anchor_closed_t, cancelled)},
};
static const hws_table_t s_counts = TABLE (s_counts_members);

static const hws_member_t s_anchor_closed_members[] = {
    {"handle", HWS_MEMBER_HANDLE, REQUIRED, FIELD (hws_anchor_closed_t, handle)},
    {"code", HWS_MEMBER_TEXT, REQUIRED, FIELD (hws_anchor_closed_t, code)},
    {"reason", HWS_MEMBER_TEXT, FIELD (hws_anchor_closed_t, reason)},
    {"counts", HWS_MEMBER_OBJECT, .table = &s_counts},
};

static const hws_member_t s_resync_members[] = {
    {"epoch", HWS_MEMBER_DECIMAL, REQUIRED, .offset = 0, .size = sizeof (uint64_t)},
};

static const hws_member_t s_goaway_members[] = {
    {"reason", HWS_MEMBER_TEXT, .offset = 0, .size = sizeof (hws_reason_t)},
};

static const hws_member_t s_refusal_members[] = {
    {"code", HWS_MEMBER_CODE, REQUIRED, FIELD (hws_refusal_t, code)},
    {"reason", HWS_MEMBER_TEXT, FIELD (hws_refusal_t, reason)},
    {"endpoint", HWS_MEMBER_TEXT, FIELD (hws_refusal_t, endpoint)},
};
static const hws_table_t s_refusal = TABLE (s_refusal_members);

static const hws_member_t s_attached_members[] = {
    {"handle", HWS_MEMBER_HANDLE, FIELD (hws_attached_t, handle)},
    {"sender_id", HWS_MEMBER_DECIMAL, REQUIRED, FIELD (hws_attached_t, sender_id), .least = 1},
    {"session_id", HWS_MEMBER_DECIMAL, FIELD (hws_attached_t, session_id)},
    {"seat_key", HWS_MEMBER_DECIMAL, FIELD (hws_attached_t, seat_key)},
    {"next_bytes", HWS_MEMBER_DECIMAL, FIELD (hws_attached_t, next_bytes)},
    {"label", HWS_MEMBER_NAME, FIELD (hws_attached_t, label)},
    {"user", HWS_MEMBER_TEXT, FIELD (hws_attached_t, user)},
    {"address", HWS_MEMBER_TEXT, FIELD (hws_attached_t, address)},
};
static const hws_table_t s_attached = TABLE (s_attached_members);

static const hws_table_t s_nothing = {.members = NULL, .count = 0};

/*  [verb][0: the request or message, 1: its Ok]; what is not listed has no members.  */
static const hws_table_t s_tables[HWS_VERB_COUNT][2] = {
    [HWS_VERB_HELLO] = {TABLE (s_hello_members), TABLE (s_hello_ok_members)},
    [HWS_VERB_OPEN] = {TABLE (s_open_members), TABLE (s_open_ok_members)},
    [HWS_VERB_ATTACH] = {TABLE (s_attach_members), TABLE (s_attach_ok_members)},
    [HWS_VERB_DETACH] = {TABLE (s_detach_members)},
    [HWS_VERB_CANCEL] = {TABLE (s_cancel_members)},
    [HWS_VERB_CANCEL_TOKEN] = {TABLE (s_cancel_token_members)},
    [HWS_VERB_RESERVE_TOKEN] = {{NULL, 0}, TABLE (s_reserve_token_ok_members)},
    [HWS_VERB_STREAM_CANCEL] = {TABLE (s_stream_cancel_members)},
    [HWS_VERB_ANCHOR_CLOSED] = {TABLE (s_anchor_closed_members)},
    [HWS_VERB_RESYNC] = {TABLE (s_resync_members)},
    [HWS_VERB_GOAWAY] = {TABLE (s_goaway_members)},
};

const hws_table_t *hws_control_table (hws_verb_t verb, hws_form_t form)
{
    switch (form) {
    case HWS_FORM_REQUEST:
        return &s_tables[verb][0];
    case HWS_FORM_OK:
        return &s_tables[verb][1];
    case HWS_FORM_ERR:
        return &s_refusal;
    }
    return &s_nothing;
}

const hws_table_t *hws_attached_table (void)
{
    return &s_attached;
}
