/*  Credentials: what the broker gives to its clients and knows again without having kept it
 *  (docs/protocol.md, "Security").
 *
 *  Each is a keyed hash (BLAKE2b, libsodium's crypto_generichash) over what it is for. Under a key
 *  that outlives the process they stay good in its next life.
 */
#ifndef HWS_CREDENTIAL_H
#define HWS_CREDENTIAL_H

#include "proto/control.h"

#define HWS_CREDENTIAL_KEY_SIZE 32

typedef enum {
    HWS_CREDENTIAL_OWNER = 'o',  /* owner_token of OPEN: the number is 0 */
    HWS_CREDENTIAL_SENDER = 's', /* resume_token of ATTACH: the sender id */
    HWS_CREDENTIAL_NOBODY = 'n', /* the client id of who has no client; of the broker's life */
    HWS_CREDENTIAL_CANCEL = 't'  /* reserved cancel token: how many were before, in this epoch */
} hws_credential_t;

/*  128 bits that only who has the key can make.  */
hws_id_t hws_credential_make (const uint8_t key[HWS_CREDENTIAL_KEY_SIZE], hws_credential_t role,
                              hws_handle_t handle, uint64_t number);

/*  Whether they are the same; takes as long for a good guess as for a bad one.  */
bool hws_credential_equal (const hws_id_t *a, const hws_id_t *b);

/*  What a client's stream is called at its anchor (seat_key), without naming the client.  */
uint64_t hws_credential_seat_key (const uint8_t key[HWS_CREDENTIAL_KEY_SIZE],
                                  const hws_id_t *client_id, uint64_t session_id);

#endif
