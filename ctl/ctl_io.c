#include "ctl/ctl_io.h"

#include "conf/exit_status.h"
#include "io/console_io.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int fail (hws_console_t *console, int status, const char *text)
{
    hws_console_say (console, HWS_LOG_ERROR, "%s", text);
    return status;
}

static int print_token (hws_console_t *console)
{
    uint64_t token;
    const int rc = hws_token_new (&token);
    if (rc) {
        return fail (console, HWS_EXIT_FAILED, hws_strerror (rc));
    }
    printf ("%" PRIu64 "\n", token);
    if (fflush (stdout) != 0) {
        return fail (console, HWS_EXIT_FAILED, strerror (errno));
    }
    return HWS_EXIT_DONE;
}

/*  The client ends the wait by itself when there is no broker in time.  */
static int cancel_token (hws_console_t *console, const hws_ctl_settings_t *settings, uint64_t token)
{
    hws_client_t *client = NULL;
    const hws_client_options_t options = hws_ctl_client_options (settings);
    int rc = hws_client_new (&client, &options);
    if (rc == 0) {
        rc = hws_client_cancel_token (client, token, settings->reason, HWS_FOREVER);
    }
    int status = HWS_EXIT_DONE;
    if (rc) {
        char text[1200] = "";
        if (client) {
            hws_client_error (client, text, sizeof text);
        }
        status = fail (console, hws_exit_of_refusal (rc, hws_ctl_has_wait (settings)),
                       text[0] ? text : hws_strerror (rc));
    }
    hws_client_destroy (&client);
    return status;
}

int hws_ctl (const hws_ctl_settings_t *settings)
{
    hws_console_t console;
    hws_console_init (&console, hws_ctl_program.name, HWS_LOG_INFO, false);
    hws_ctl_command_t command;
    uint64_t token;
    char why[512];
    int status = HWS_EXIT_USAGE;
    if (hws_ctl_read (settings, &command, &token, why, sizeof why)) {
        fail (&console, status, why);
    } else {
        status = command == HWS_CTL_TOKEN ? print_token (&console)
                                          : cancel_token (&console, settings, token);
    }
    hws_console_fini (&console);
    return status;
}
