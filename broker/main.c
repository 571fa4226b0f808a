/*  hawser-broker: options, signals and exit statuses around the shell.  */
#include "broker/broker_io.h"
#include "broker/process_io.h"
#include "broker/settings.h"
#include "broker/state_place_io.h"
#include "conf/program_io.h"
#include "io/heap_io.h"
#include "io/versions_io.h"

#include <czmq.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

/*  What a reload needs, and owns.  */
typedef struct {
    int argc;
    char **argv;
    hws_conf_t *conf; /* of the settings in force */
} configuration_t;

static void print_versions (FILE *stream)
{
    hws_versions_print_zmq (stream);
    int major, minor, patch;
    zsys_version (&major, &minor, &patch);
    fprintf (stream, "libczmq %d.%d.%d\n", major, minor, patch);
}

static int reload (void *arg, const hws_broker_settings_t **settings, char *text, size_t size)
{
    configuration_t *const self = arg;
    hws_conf_t *conf;
    const int rc =
        hws_program_read (&conf, &hws_broker_program, self->argc, self->argv, text, size);
    if (rc != 0) {
        return rc;
    }
    hws_conf_destroy (&self->conf);
    self->conf = conf;
    *settings = hws_conf_values (conf);
    return 0;
}

static int exit_status (int code)
{
    switch (code) {
    case 0:
        return HWS_EXIT_DONE;
    case HWS_EINVALID:
        return HWS_EXIT_USAGE;
    case HWS_EADDRESS_IN_USE:
        return HWS_EXIT_UNREACHABLE;
    default:
        return HWS_EXIT_FAILED;
    }
}

/*  Whoever started the broker may wait for this line; if it cannot be had, a broker
 *  that works is of more use than none.  */
static void print_ready (const hws_broker_t *broker, bool has_state)
{
    const char *endpoint;
    fputs ("hawser-broker: ready", stdout);
    for (size_t i = 0; (endpoint = hws_broker_endpoint (broker, i)) != NULL; i++) {
        printf (" %s", endpoint);
    }
    puts (has_state ? "" : " (no state directory: streams end when it stops)");
    fflush (stdout);
}

/*  `fault` is why there is no state directory, or "".  */
static void log_state (const hws_broker_settings_t *settings, const hws_state_t *state,
                       const char *fault)
{
    const hws_log_t log = {.descriptor = 2, .level = (hws_log_level_t) settings->log_level};
    if (state->lock >= 0) {
        hws_log (&log, HWS_LOG_INFO,
                 "event=state directory=\"%s\" broker_id=%016" PRIx64 " epoch=%" PRIu32,
                 state->directory, state->identity.broker_id, state->identity.epoch);
    } else if (*fault) {
        hws_log (&log, HWS_LOG_WARN, "event=no_state_directory reason=\"%s\"", fault);
    }
}

/*  Runs a broker to its end. What is told of the state waits until it listens: who cannot start
 *  says one line.  */
static int run (configuration_t *configuration, const hws_state_t *state, const char *state_fault,
                int signals)
{
    const hws_broker_options_t options = {
        .settings = hws_conf_values (configuration->conf),
        .identity = state->lock >= 0 ? &state->identity : NULL,
        .signals = signals,
        .reload = reload,
        .reload_arg = configuration,
    };
    hws_broker_t *broker = NULL;
    hws_front_fault_t fault;
    int rc = hws_broker_new (&broker, &options, fault);
    if (rc == 0) {
        log_state (options.settings, state, state_fault);
        print_ready (broker, options.identity != NULL);
        rc = hws_broker_run (broker);
    } else {
        fprintf (stderr, "hawser-broker: %s\n", fault);
    }
    hws_broker_destroy (&broker);
    return rc;
}

static int serve (configuration_t *configuration)
{
    const hws_broker_settings_t *const settings = hws_conf_values (configuration->conf);
    const int signals = hws_process_open_signals ();
    if (signals < 0) {
        fputs ("hawser-broker: cannot take over signals\n", stderr);
        return HWS_EXIT_FAILED;
    }
    hws_state_t state;
    hws_state_fault_t fault;
    int rc = hws_state_take (&state, settings->state_dir, fault);
    if (rc == 0) {
        rc = run (configuration, &state, fault, signals);
    } else {
        fprintf (stderr, "hawser-broker: %s\n", fault);
    }
    hws_state_close (&state);
    close (signals);
    return exit_status (rc);
}

int main (int argc, char **argv)
{
    if (hws_process_open_standard () != 0) {
        return HWS_EXIT_FAILED;
    }
    hws_heap_keep (); /* batches come from the heap and go back to it all the time */
    configuration_t configuration = {.argc = argc, .argv = argv};
    int status =
        hws_program_start (&configuration.conf, &hws_broker_program, argc, argv, print_versions);
    if (status == HWS_PROGRAM_RUN) {
        status = serve (&configuration);
    }
    hws_conf_destroy (&configuration.conf);
    return status;
}
