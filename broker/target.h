/*  What a cancel token hits: a node of the registry and what it belongs to.
 *
 *  All targets are in one registry, under the tokens that their requests carried; whoever
 *  cancels a token takes what it hit and calls the object's own function, as with deadlines.
 */
#ifndef HWS_TARGET_H
#define HWS_TARGET_H

#include "cancel/cancel.h"

typedef enum {
    HWS_TARGET_ANCHOR,
    HWS_TARGET_SEAT,
    HWS_TARGET_WAITING /* an attach that waits */
} hws_target_kind_t;

typedef struct {
    hws_cancel_node_t node;
    hws_target_kind_t kind;
} hws_target_t;

#endif
