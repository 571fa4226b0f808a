#include "broker/credential.h"

#include <sodium.h>

static void hash (const uint8_t key[HWS_CREDENTIAL_KEY_SIZE], hws_bytes_t input, uint8_t *out,
                  size_t size)
{
    _Static_assert (HWS_CREDENTIAL_KEY_SIZE == crypto_generichash_KEYBYTES,
                    "a key of its own size");
    _Static_assert (HWS_ID_SIZE == crypto_generichash_BYTES_MIN, "a hash fills an id");

    crypto_generichash (out, size, input.data, input.size, key, HWS_CREDENTIAL_KEY_SIZE);
}

hws_id_t hws_credential_make (const uint8_t key[HWS_CREDENTIAL_KEY_SIZE], hws_credential_t role,
                              hws_handle_t handle, uint64_t number)
{
    uint8_t input[1 + 3 * sizeof (uint64_t)];
    input[0] = (uint8_t) role;
    hws_put_u64 (input + 1, handle.hi);
    hws_put_u64 (input + 9, handle.lo);
    hws_put_u64 (input + 17, number);
    hws_id_t made;
    hash (key, hws_bytes (input, sizeof input), made.bytes, sizeof made.bytes);
    return made;
}

bool hws_credential_equal (const hws_id_t *a, const hws_id_t *b)
{
    return sodium_memcmp (a->bytes, b->bytes, HWS_ID_SIZE) == 0;
}

uint64_t hws_credential_seat_key (const uint8_t key[HWS_CREDENTIAL_KEY_SIZE],
                                  const hws_id_t *client_id, uint64_t session_id)
{
    uint8_t input[1 + HWS_ID_SIZE + sizeof (uint64_t)] = {'k'};
    memcpy (input + 1, client_id->bytes, HWS_ID_SIZE);
    hws_put_u64 (input + 1 + HWS_ID_SIZE, session_id);
    uint8_t made[crypto_generichash_BYTES_MIN];
    hash (key, hws_bytes (input, sizeof input), made, sizeof made);
    return hws_get_u64 (made);
}
