/*  What happened in simulated runs, counted by kind, for the summary: a fault that is planned
 *  and finds nothing to harm is not counted.
 */
#ifndef TEST_SIM_COUNT_H
#define TEST_SIM_COUNT_H

#include <stddef.h>
#include <stdint.h>

/*  X (name, words)  */
#define SIM_COUNT_LIST(X)                                                                          \
    X (SIM_RUNS, "runs")                                                                           \
    X (SIM_SECONDS, "virtual seconds")                                                             \
    X (SIM_SENDERS, "senders")                                                                     \
    X (SIM_RECORDS, "records shown")                                                               \
    X (SIM_RECORDS_IN_PARTS, "records in parts appended")                                          \
    X (SIM_CLEAN, "clean endings learned by senders")                                              \
    X (SIM_DROPPED, "dropped learned by senders")                                                  \
    X (SIM_CANCELLED, "cancelled learned by senders")                                              \
    X (SIM_REFUSED, "attaches that came to nothing")                                               \
    X (SIM_PAIRS_OWED, "streams that were owed a clean ending")                                    \
    X (SIM_PAIRS_AGREED, "streams whose ends had to agree")                                        \
    X (SIM_BROKEN_BOTH, "disconnects seen by both ends")                                           \
    X (SIM_BROKEN_BROKER, "disconnects seen by the broker alone")                                  \
    X (SIM_BROKEN_CLIENT, "disconnects seen by the client alone")                                  \
    X (SIM_HALF_OPEN, "disconnects seen by nobody")                                                \
    X (SIM_REORDERED, "packets of an old connection after the new one's")                          \
    X (SIM_KILLS, "broker kills")                                                                  \
    X (SIM_KILLS_FORGETFUL, "broker kills without a state directory")                              \
    X (SIM_DRAINS, "broker drains")                                                                \
    X (SIM_TWICE, "broker stops within a second of a start")                                       \
    X (SIM_RECEIVER_CRASHES, "receiver crashes with a new process")                                \
    X (SIM_RECEIVER_DEATHS, "receiver crashes for good")                                           \
    X (SIM_TAKEOVERS, "receiver takeovers while the old one lives")                                \
    X (SIM_SENDER_CRASHES, "sender crashes")                                                       \
    X (SIM_STALLS_SENDER, "stalls of a client with senders")                                       \
    X (SIM_STALLS_RECEIVER, "stalls of a client with a receiver")                                  \
    X (SIM_STALLS_BROKER, "stalls of the broker (late turns)")                                     \
    X (SIM_STALLS_CLOCK, "stalls of everybody")                                                    \
    X (SIM_SLOW, "slow receivers")                                                                 \
    X (SIM_FULL, "full connections")                                                               \
    X (SIM_REFUSED_SENDS, "messages refused by full connections")                                  \
    X (SIM_GRANTS_LOST, "lost grants")                                                             \
    X (SIM_GRANTS_TWICE, "repeated grants")                                                        \
    X (SIM_NO_MEMORY, "allocations of the engine that failed")                                     \
    X (SIM_CANCELS_SENDER, "cancels by the sender")                                                \
    X (SIM_CANCELS_ONE, "cancels of one sender by the receiver")                                   \
    X (SIM_CANCELS_ANCHOR, "cancels of the anchor by a sender")                                    \
    X (SIM_CANCELS_TOKEN, "cancels of a token")                                                    \
    X (SIM_CLOSES, "cancels of the anchor by its receiver")                                        \
    X (SIM_DESTROYED, "senders destroyed while they live")                                         \
    X (SIM_TIMEOUTS, "changes of the unattached timeout")                                          \
    X (SIM_MANUAL, "manual acknowledgements")                                                      \
    X (SIM_RETURNS, "windows asked back")                                                          \
    X (SIM_RESUMED, "connections on which streams went on")

typedef enum {
#define SIM_COUNT_ENUM(name, words) name,
    SIM_COUNT_LIST (SIM_COUNT_ENUM)
#undef SIM_COUNT_ENUM
        SIM_COUNTS
} sim_count_t;

/*  Where they are counted: an array of SIM_COUNTS numbers.  */
extern uint64_t *sim_counts;

/*  What a count is of, in words.  */
const char *sim_count_words (sim_count_t count);

static inline void sim_counted (sim_count_t count, uint64_t more)
{
    sim_counts[count] += more;
}

#endif
