#include "bench/peer.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

const char *peer_endpoint (int port)
{
    static char text[32];
    snprintf (text, sizeof text, "tcp://127.0.0.1:%d", port);
    return text;
}

int peer_fail (const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start (arguments, format);
    vsnprintf (text, sizeof text, format, arguments);
    va_end (arguments);
    fprintf (stderr, "bench: process %d: %s\n", (int) getpid (), text);
    return -1;
}
