/*  A redis stream through hiredis: a channel is a stream, senders XADD in pipelines of up to
 *  64 KiB or 512 commands, the receiver reads with XREAD and trims what it has read (else the
 *  stream is kept for ever). Without persistence. Nothing holds a sender back whose receiver is
 *  slow: what it adds lies in the server's memory.
 */
#include "bench/peer.h"

#if __has_include(<hiredis/hiredis.h>)

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIPELINE_BYTES = 65536, PIPELINE_MAX = 512, READ_BYTES = 1048576, READ_MAX = 1024 };

typedef struct {
    redisContext *context;
    unsigned channel, channels;
    size_t awaited;       /* a sender's replies */
    size_t awaited_bytes; /* the bytes of those records */
    int read_count;       /* a receiver's, of one XREAD */
    redisReply *reply;    /* its last */
    size_t taken;         /* records of it that were shown */
    char last[32];        /* the id of the last one before it */
} client_t;

static int serve (const place_t *place)
{
    char port[8];
    snprintf (port, sizeof port, "%d", place->ports[0]);
    execlp ("redis-server", "redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "",
            "--appendonly", "no", "--loglevel", "warning", (char *) NULL);
    return peer_fail ("cannot execute redis-server");
}

static int fail (const client_t *self)
{
    return peer_fail ("redis: %s", self->context ? self->context->errstr : "no memory");
}

static int open_client (void **client, const place_t *place)
{
    client_t *const self = calloc (1, sizeof *self);
    *client = self;
    if (self == NULL) {
        return -1;
    }
    self->channel = place->channel;
    self->channels = place->channels;
    self->context = redisConnect ("127.0.0.1", place->ports[0]);
    strcpy (self->last, "0-0");
    const size_t fitting = READ_BYTES / place->record_bytes;
    self->read_count = fitting < READ_MAX ? (int) fitting : READ_MAX;
    return self->context && self->context->err == 0 ? 0 : fail (self);
}

static const char *key (unsigned channel)
{
    static char text[16];
    snprintf (text, sizeof text, "bench-%u", channel);
    return text;
}

/*  ---- Senders ---- */

/*  Writes what is gathered and reads its replies.  */
static int push (void *sender)
{
    client_t *const self = sender;
    for (; self->awaited > 0; self->awaited--) {
        void *reply;
        if (redisGetReply (self->context, &reply) != REDIS_OK) {
            return fail (self);
        }
        if (((redisReply *) reply)->type == REDIS_REPLY_ERROR) {
            return peer_fail ("redis: %s", ((redisReply *) reply)->str);
        }
        freeReplyObject (reply);
    }
    self->awaited_bytes = 0;
    return 0;
}

static int send_record (void *sender, unsigned stream, const void *data, size_t size)
{
    client_t *const self = sender;
    const char *const name = key (self->channel + stream % self->channels);
    const char *words[] = {"XADD", name, "*", "r", data};
    const size_t sizes[] = {4, strlen (name), 1, 1, size};
    if (redisAppendCommandArgv (self->context, 5, words, sizes) != REDIS_OK) {
        return fail (self);
    }
    self->awaited++;
    self->awaited_bytes += size;
    return self->awaited >= PIPELINE_MAX || self->awaited_bytes >= PIPELINE_BYTES ? push (self) : 0;
}

/*  ---- Receivers ---- */

/*  The records of the last XREAD: of its only stream the second element; null for none.  */
static const redisReply *entries (const client_t *self)
{
    return self->reply && self->reply->type == REDIS_REPLY_ARRAY
               ? self->reply->element[0]->element[1]
               : NULL;
}

/*  Trims up to the last record that was shown and reads those behind it.  */
static int refill (client_t *self)
{
    const redisReply *const shown = entries (self);
    if (shown) {
        snprintf (self->last, sizeof self->last, "%s",
                  shown->element[shown->elements - 1]->element[0]->str);
    }
    if (self->reply) {
        freeReplyObject (self->reply);
    }
    self->reply = NULL;
    self->taken = 0;
    redisReply *trimmed;
    void *reply;
    redisAppendCommand (self->context, "XTRIM %s MINID %s", key (self->channel), self->last);
    redisAppendCommand (self->context, "XREAD COUNT %d BLOCK %d STREAMS %s %s", self->read_count,
                        RECEIVE_TICK_MS, key (self->channel), self->last);
    if (redisGetReply (self->context, (void **) &trimmed) != REDIS_OK) {
        return fail (self);
    }
    freeReplyObject (trimmed);
    if (redisGetReply (self->context, &reply) != REDIS_OK) {
        return fail (self);
    }
    self->reply = reply;
    return self->reply->type == REDIS_REPLY_ERROR ? peer_fail ("redis: %s", self->reply->str) : 0;
}

static int receive (void *receiver, const void **data, size_t *size)
{
    client_t *const self = receiver;
    const redisReply *list = entries (self);
    if (list == NULL || self->taken == list->elements) {
        if (refill (self) < 0) {
            return -1;
        }
        list = entries (self);
        if (list == NULL) {
            return RECEIVED_NOTHING;
        }
    }
    const redisReply *const entry = list->element[self->taken++];
    *data = entry->element[1]->element[1]->str;
    *size = entry->element[1]->element[1]->len;
    return RECEIVED_RECORD;
}

const peer_t peer_redis = {
    .name = "redis",
    .program = "redis-server",
    .serve = serve,
    .open_sender = open_client,
    .send = send_record,
    .push = push,
    .settle = push,
    .open_receiver = open_client,
    .receive = receive,
};

#else
const peer_t peer_redis = {.name = "redis", .lacks = "libhiredis-dev"};
#endif
