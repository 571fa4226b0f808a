#include "tests/support/fake_broker.h"

#include "base/error.h"
#include "proto/batch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zmq.h>

enum { TURN_MS = 20, AWAIT_S = 20, ID_SIZE_MAX = 255 };

struct fake_broker {
    void *context; /* of libzmq */
    void *socket;  /* ROUTER; the thread's once it runs */
    pthread_t thread;
    atomic_bool is_stopping;
    fake_attach_t *on_attach;
    char endpoint[256];
    atomic_int hellos;
    pthread_mutex_t lock; /* of `batches` */
    pthread_cond_t came;  /* one more */
    int batches;
    atomic_int count; /* of `attaches` that are written */
    hws_attach_t attaches[FAKE_ATTACHES_MAX];
    uint8_t json[HWS_CONTROL_SIZE_MAX]; /* of the message at hand */
};

void fake_answer_elsewhere (hws_control_t *answer, const char *endpoint)
{
    answer->form = HWS_FORM_OK;
    answer->as.attach_ok = (hws_attach_ok_t){.handle = {1, 2},
                                             .streaming_transport_key = HWS_TRANSPORT_DEDICATED,
                                             .heartbeat_interval_ms = 5000};
    snprintf (answer->as.attach_ok.endpoint, sizeof (hws_endpoint_t), "%s", endpoint);
}

void fake_answer_seat (hws_control_t *answer)
{
    answer->form = HWS_FORM_OK;
    answer->as.attach_ok = (hws_attach_ok_t){.handle = {1, 2},
                                             .streaming_transport_key = HWS_TRANSPORT_MUX,
                                             .heartbeat_interval_ms = 5000,
                                             .sender_id = 1,
                                             .initial_credit = HWS_EARLY_RECORDS};
}

/*  ---- The thread ---- */

static void make_answer (fake_broker_t *self, const hws_control_t *request, hws_control_t *answer)
{
    *answer = (hws_control_t){
        .verb = request->verb, .form = HWS_FORM_OK, .has_id = request->has_id, .id = request->id};
    if (request->verb == HWS_VERB_HELLO) {
        atomic_fetch_add (&self->hellos, 1);
        answer->as.hello_ok = (hws_hello_ok_t){.broker_id = 1,
                                               .epoch = 1,
                                               .protocol = 1,
                                               .early_records = HWS_EARLY_RECORDS,
                                               .early_bytes = HWS_EARLY_BYTES};
    } else if (request->verb == HWS_VERB_ATTACH) {
        const int number = atomic_load (&self->count) + 1;
        if (number <= FAKE_ATTACHES_MAX) {
            self->attaches[number - 1] = request->as.attach;
        }
        answer->form = HWS_FORM_ERR;
        answer->as.refusal = (hws_refusal_t){.code = HWS_EBUSY};
        self->on_attach (self, number, answer);
        atomic_store (&self->count, number);
    } else if (request->verb == HWS_VERB_PING) {
        *answer = (hws_control_t){.verb = HWS_VERB_PONG, .form = HWS_FORM_REQUEST};
    }
}

static void count_batch (fake_broker_t *self, hws_bytes_t message)
{
    pthread_mutex_lock (&self->lock);
    self->batches +=
        message.size > 1 && message.data[0] == HWS_BATCH_MARK && message.data[1] == HWS_BATCH_DATA;
    pthread_cond_broadcast (&self->came);
    pthread_mutex_unlock (&self->lock);
}

static void turn (fake_broker_t *self)
{
    uint8_t *const json = self->json;
    char id[ID_SIZE_MAX], verb[64];
    const int id_size = zmq_recv (self->socket, id, sizeof id, 0);
    if (id_size < 0) {
        return;
    }
    const int verb_size = zmq_recv (self->socket, verb, sizeof verb, 0);
    int has_more = 0;
    size_t option_size = sizeof has_more;
    zmq_getsockopt (self->socket, ZMQ_RCVMORE, &has_more, &option_size);
    if (!has_more) {
        count_batch (self, hws_bytes (verb, (size_t) verb_size));
        return;
    }
    const int json_size = zmq_recv (self->socket, json, sizeof self->json, 0);
    hws_control_t request, answer;
    hws_control_fault_t fault;
    size_t size;
    if (hws_control_decode (hws_bytes (verb, (size_t) verb_size),
                            hws_bytes (json, (size_t) json_size), &request, fault)) {
        return;
    }
    make_answer (self, &request, &answer);
    if (hws_control_encode (&answer, json, sizeof self->json, &size) == 0) {
        const char *const word = hws_verb_word (answer.verb);
        zmq_send (self->socket, id, (size_t) id_size, ZMQ_SNDMORE);
        zmq_send (self->socket, word, strlen (word), ZMQ_SNDMORE);
        zmq_send (self->socket, json, size, 0);
    }
}

static void *run (void *argument)
{
    fake_broker_t *const self = argument;
    while (!atomic_load (&self->is_stopping)) {
        turn (self);
    }
    return NULL;
}

/*  ---- For the test ---- */

fake_broker_t *fake_broker_start (fake_attach_t *on_attach)
{
    fake_broker_t *const self = calloc (1, sizeof *self);
    assert_non_null (self);
    const int turn_ms = TURN_MS;
    const int linger = 0;
    size_t size = sizeof self->endpoint;
    self->on_attach = on_attach;
    pthread_mutex_init (&self->lock, NULL);
    pthread_cond_init (&self->came, NULL);
    self->context = zmq_ctx_new ();
    self->socket = zmq_socket (self->context, ZMQ_ROUTER);
    zmq_setsockopt (self->socket, ZMQ_RCVTIMEO, &turn_ms, sizeof turn_ms);
    zmq_setsockopt (self->socket, ZMQ_LINGER, &linger, sizeof linger);
    assert_int_equal (zmq_bind (self->socket, "tcp://127.0.0.1:*"), 0);
    zmq_getsockopt (self->socket, ZMQ_LAST_ENDPOINT, self->endpoint, &size);
    assert_int_equal (pthread_create (&self->thread, NULL, run, self), 0);
    return self;
}

void fake_broker_stop (fake_broker_t **self)
{
    fake_broker_t *const broker = *self;
    *self = NULL;
    atomic_store (&broker->is_stopping, true);
    pthread_join (broker->thread, NULL);
    zmq_close (broker->socket);
    zmq_ctx_term (broker->context);
    pthread_cond_destroy (&broker->came);
    pthread_mutex_destroy (&broker->lock);
    free (broker);
}

const char *fake_broker_endpoint (const fake_broker_t *self)
{
    return self->endpoint;
}

int fake_broker_hellos (const fake_broker_t *self)
{
    return atomic_load (&self->hellos);
}

int fake_broker_batches (fake_broker_t *self, int count)
{
    struct timespec until;
    clock_gettime (CLOCK_REALTIME, &until);
    until.tv_sec += AWAIT_S;
    int rc = 0;
    pthread_mutex_lock (&self->lock);
    while (self->batches < count && rc == 0) {
        rc = pthread_cond_timedwait (&self->came, &self->lock, &until);
    }
    const int batches = self->batches;
    pthread_mutex_unlock (&self->lock);
    return batches;
}

int fake_broker_attaches (const fake_broker_t *self)
{
    return atomic_load (&self->count);
}

const hws_attach_t *fake_broker_attach (const fake_broker_t *self, int number)
{
    assert_in_range (number, 1, FAKE_ATTACHES_MAX);
    assert_true (number <= atomic_load (&self->count));
    return &self->attaches[number - 1];
}
