/*  What the engine says: answers, refusals and errors to clients, lines to the log.
 *
 *  Every request with an id gets exactly one answer; without one, only errors are
 *  said. What belongs to no client (a line, an answer to a stranger) is queued as a
 *  loose effect, in bounded number.
 */
#ifndef HWS_ANSWER_H
#define HWS_ANSWER_H

#include "broker/peer.h"

/*  Answers: Ok is filled by the caller into `answer->as`; Err takes a code and a
 *  sentence.  */
void hws_engine_answer (hws_engine_t *self, hws_peer_t *peer, const hws_control_t *request,
                        hws_control_t *answer);
void hws_engine_refuse (hws_engine_t *self, hws_peer_t *peer, const hws_control_t *request,
                        int code, const char *format, ...) __attribute__ ((format (printf, 5, 6)));

/*  A peer broke the protocol: one ERROR, one count.  */
void hws_engine_fault (hws_engine_t *self, hws_peer_t *peer, int code, const char *format, ...)
    __attribute__ ((format (printf, 4, 5)));

/*  GOAWAY, with the reason that the engine was told.  */
void hws_engine_say_leaving (hws_engine_t *self, hws_peer_t *peer);

/*  A message to an address that has no peer: sent once, or not.  */
void hws_engine_send_stranger (hws_engine_t *self, const hws_address_t *to,
                               const hws_control_t *message);

/*  A line for the log.  */
void hws_engine_log (hws_engine_t *self, hws_log_level_t level, const char *format, ...)
    __attribute__ ((format (printf, 3, 4)));

#endif
