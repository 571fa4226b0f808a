#include "tests/support/crowd.h"

#include "hawser.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char s_mark[] = "--crowd";

/*  ---- In the crowd ---- */

static _Noreturn void give_up (const char *what, int rc)
{
    fprintf (stderr, "crowd: %s: %s\n", what, hws_strerror (rc));
    exit (1);
}

static void attach_all (hws_sender_t **senders, const char *anchor, hws_client_t *client,
                        size_t count)
{
    hws_sender_options_t options;

    hws_sender_options_init (&options);
    options.wait_ms = 30000;
    for (size_t i = 0; i < count; i++) {
        int rc = hws_sender_attach (&senders[i], client, anchor, &options);
        if (rc == 0) {
            rc = hws_sender_send (senders[i], "here", 4, HWS_FOREVER);
        }
        if (rc != 0) {
            give_up ("attach", rc);
        }
    }
}

static void detach_all (hws_sender_t **senders, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        hws_sender_detach (senders[i], 0);
    }
    for (size_t i = 0; i < count; i++) {
        const int rc = hws_sender_detach (senders[i], HWS_FOREVER);
        if (rc != 0) {
            give_up ("detach", rc);
        }
        hws_sender_destroy (&senders[i]);
    }
}

static void run (const char *anchor, size_t client_count, size_t senders_each)
{
    hws_client_t **clients = calloc (client_count, sizeof *clients);
    hws_sender_t **senders = calloc (client_count * senders_each, sizeof *senders);
    hws_client_options_t options;
    char byte;

    if (!clients || !senders) {
        give_up ("crowd", HWS_ENO_MEMORY);
    }
    hws_client_options_init (&options);
    options.endpoint = getenv ("HAWSER_BROKER");
    for (size_t i = 0; i < client_count; i++) {
        const int rc = hws_client_new (&clients[i], &options);
        if (rc != 0) {
            give_up ("client", rc);
        }
        attach_all (senders + i * senders_each, anchor, clients[i], senders_each);
    }
    puts ("ready");
    fflush (stdout);

    while (read (0, &byte, 1) > 0) {
    }
    detach_all (senders, client_count * senders_each);
    for (size_t i = 0; i < client_count; i++) {
        hws_client_destroy (&clients[i]);
    }
    free (senders);
    free (clients);
}

void crowd_main (int argc, char **argv)
{
    if (argc == 5 && strcmp (argv[1], s_mark) == 0) {
        run (argv[2], strtoul (argv[3], NULL, 10), strtoul (argv[4], NULL, 10));
        exit (0);
    }
}

/*  ---- In the test ---- */

process_t *crowd_start (const crowd_options_t *options)
{
    char own[PATH_MAX];
    char clients[32];
    char senders[32];
    char space[32];
    const char *list[10] = {NULL};
    size_t count = 0;

    const ssize_t size = readlink ("/proc/self/exe", own, sizeof own - 1);
    assert_true (size > 0);
    own[size] = '\0';
    snprintf (clients, sizeof clients, "%zu", options->clients);
    snprintf (senders, sizeof senders, "%zu", options->senders_each);
    if (options->space != 0) {
        snprintf (space, sizeof space, "%d", (int) options->space);
        list[count++] = "/usr/bin/nsenter";
        list[count++] = "-n";
        list[count++] = "-t";
        list[count++] = space;
    }
    list[count++] = own;
    list[count++] = s_mark;
    list[count++] = options->anchor;
    list[count++] = clients;
    list[count] = senders;
    return process_start_list (NULL, list);
}
