/*  Resume: senders of an earlier life of the broker, or of a lost connection, find their seats
 *  (docs/protocol.md, "ATTACH"). What receivers do is in broker/opening.h.
 */
#ifndef HWS_RESUME_H
#define HWS_RESUME_H

#include "broker/anchor.h"
#include "broker/peer.h"
#include "proto/control.h"

/*  An ATTACH with resume that finds no seat or tombstone of its session: takes nobody's seat, or
 *  one at the positions of the request, or tells the ending, and fills the answer. Returns 0 or
 *  the code of a refusal, with its sentence.  */
int hws_resume_attach (hws_engine_t *engine, hws_peer_t *peer, const hws_attach_t *request,
                       hws_attach_ok_t *answer, hws_reason_t reason);

/*  A first ATTACH to an anchor of an earlier epoch, which may have been seated there: returns
 *  true if it was, with `code` and the answer as above.  */
bool hws_resume_first (hws_engine_t *engine, const hws_anchor_t *anchor, hws_peer_t *peer,
                       const hws_attach_t *request, hws_attach_ok_t *answer, hws_reason_t reason,
                       int *code);

#endif
