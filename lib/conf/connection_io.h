/*  What a program says when its broker goes away and when it is back. */
#ifndef HWS_CONNECTION_IO_H
#define HWS_CONNECTION_IO_H

#include "base/time.h"
#include "io/console_io.h"

typedef struct {
    hws_console_t *console; /* not owned; speaks from any thread */
    const char *broker;     /* its endpoint; not owned */
    int64_t give_up_ms;     /* how long it is tried to reach; negative: for ever */
} hws_connection_words_t;

/*  For on_connection of hws_client_options_t; `words` is a hws_connection_words_t, which
 *  must live as long as the client.  */
void hws_connection_say (void *words, bool is_connected, const char *text);

#endif
