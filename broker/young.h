/*  A young broker: what a handle of its life before means (docs/protocol.md, "OPEN", "ATTACH").
 *
 *  For its default `orphan_ttl_ms` after the first turn, anchors of earlier epochs may be made
 *  anew by their receivers. Until then their senders wait, and nobody is told that they are
 *  gone; then, in one turn, all that wait are.
 */
#ifndef HWS_YOUNG_H
#define HWS_YOUNG_H

#include "broker/engine.h"

/*  Whether the handle is of this broker, and of an earlier epoch.  */
bool hws_young_is_earlier (const hws_engine_t *engine, hws_handle_t handle);

/*  Whether the anchor of the handle is not there and may yet come back.  */
bool hws_young_awaits (const hws_engine_t *engine, hws_handle_t handle);

/*  Whether this attach waits for such an anchor, however long it asked to.  */
bool hws_young_holds (const hws_engine_t *engine, const hws_attach_t *request);

/*  The first sender id that this epoch gives at the anchor of the handle.  */
uint64_t hws_young_first_id (const hws_engine_t *engine, hws_handle_t handle);

/*  Begins with the first turn. Who waits arms the deadline; it has come.  */
void hws_young_begin (hws_engine_t *engine);
void hws_young_arm (hws_engine_t *engine);
void hws_young_expire (hws_engine_t *engine);

#endif
