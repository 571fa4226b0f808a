/*  The broker's shell: sockets, clock and signals around the engine.
 *
 *  It runs on czmq's zloop. Whatever wakes it, one turn is the same: read the
 *  monitor, take a bounded number of messages, let what is due act, send what the
 *  engine wants sent, set the one timer to the engine's next deadline; all that
 *  with one reading of the clock. A turn never waits.
 */
#ifndef HWS_BROKER_IO_H
#define HWS_BROKER_IO_H

#include "broker/fronts_io.h"
#include "broker/identity.h"
#include "broker/settings.h"
#include "io/log_io.h"

typedef struct hws_broker hws_broker_t;

/*  Reads the configuration again, for SIGHUP. Returns 0 and settings that live until
 *  the next call, or a code and one line in `text` of `size` bytes; then everything
 *  stays as it was.  */
typedef int hws_broker_reload_t (void *arg, const hws_broker_settings_t **settings, char *text,
                                 size_t size);

typedef struct {
    const hws_broker_settings_t *settings; /* needed until hws_broker_new returns */
    const hws_identity_t *identity;        /* the same; null: another one at every start */
    int signals;                           /* from hws_process_open_signals; not owned */
    hws_broker_reload_t *reload;
    void *reload_arg;
} hws_broker_options_t;

/*  Makes a broker that listens on all its endpoints. Returns 0, or a code as
 *  hws_front_bind does and `fault` is one line for people.  */
int hws_broker_new (hws_broker_t **self, const hws_broker_options_t *options,
                    hws_front_fault_t fault);

/*  Closes everything; accepts null. After a drain this waits up to a second until
 *  what was sent is with the kernel.  */
void hws_broker_destroy (hws_broker_t **self);

/*  The endpoint number `i`, with its real port; null beyond the last.  */
const char *hws_broker_endpoint (const hws_broker_t *self, size_t i);

/*  Works until a signal says stop. SIGTERM and SIGINT drain, for at most
 *  drain_timeout_ms, a second one stops at once; SIGHUP reloads; SIGUSR2 logs the
 *  statistics. Returns 0, or HWS_ESYSTEM when sockets cannot be polled.  */
int hws_broker_run (hws_broker_t *self);

#endif
