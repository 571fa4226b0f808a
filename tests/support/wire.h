/*  A peer made of bytes: a plain socket that says to the broker what a client says, from
 *  ZeroMQ's greeting to its ATTACH, or any beginning of it.
 */
#ifndef TESTS_WIRE_H
#define TESTS_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_HELLO_MAX 1024

/*  What a new client writes to attach one sender to the anchor, and where its parts end: a
 *  cut that comes before them leaves them out.  */
typedef struct {
    unsigned char bytes[WIRE_HELLO_MAX];
    size_t size;
    size_t greeting_end; /* of the greeting alone, which the broker answers first */
    size_t ready_end;    /* of ZeroMQ's handshake */
    size_t hello_end;    /* of HELLO; the rest is ATTACH */
} wire_words_t;

/*  `number` makes the routing id and the client id, so that each is a client of its own.  */
void wire_write_words (wire_words_t *words, uint64_t number, const char *anchor);

/*  Connects to the endpoint of the newest broker; fails the test if that does not go.  */
int wire_connect (void);

/*  Says the first `size` bytes. Behind the greeting it waits for the broker's: libzmq takes
 *  nothing else in the same breath. The broker may hang up.  */
void wire_say (int fd, const wire_words_t *words, size_t size);

/*  Ends the connection: closes it, or resets it as a machine does that lost power and
 *  came back.  */
void wire_close (int fd, bool is_reset);

#endif
