/*  Counts the messages with records in them that this process writes to a broker and reads from
 *  it. The library tells nobody; the linker puts this between it and its socket (--wrap).
 */
#ifndef BENCH_HAWSER_MESSAGES_H
#define BENCH_HAWSER_MESSAGES_H

#include <stdint.h>

/*  So far, in either direction.  */
uint64_t hawser_messages (void);

#endif
