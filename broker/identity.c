#include "broker/identity.h"

#include "base/hex.h"
#include "conf/conf.h"

#include <inttypes.h>
#include <stdio.h>

#define VERSION 1 /* of the text */

/*  ---- Writing ---- */

size_t hws_identity_print (const hws_identity_t *self, char text[HWS_IDENTITY_TEXT_SIZE])
{
    char key[2 * sizeof self->key + 1];
    hws_hex_print ((hws_bytes_t){.data = self->key, .size = sizeof self->key}, key);
    const int size = snprintf (text, HWS_IDENTITY_TEXT_SIZE,
                               "{\n"
                               "    \"version\": %d,\n"
                               "    \"broker_id\": \"%016" PRIx64 "\",\n"
                               "    \"epoch\": %" PRIu32 ",\n"
                               "    \"key\": \"%s\"\n"
                               "}\n",
                               VERSION, self->broker_id, self->epoch, key);
    return (size_t) size;
}

/*  ---- Reading ---- */

typedef struct {
    hws_optional_t version;
    char *broker_id;
    hws_optional_t epoch;
    char *key;
} values_t;

static bool check_digits (hws_bytes_t text, size_t size, char *why, size_t why_size)
{
    uint8_t bytes[HWS_CREDENTIAL_KEY_SIZE];
    if (hws_hex_parse (text, bytes, size) == 0) {
        return true;
    }
    snprintf (why, why_size, "must be %zu hexadecimal digits", 2 * size);
    return false;
}

static bool check_broker_id (hws_bytes_t text, char *why, size_t size)
{
    return check_digits (text, sizeof (uint64_t), why, size);
}

static bool check_key (hws_bytes_t text, char *why, size_t size)
{
    return check_digits (text, HWS_CREDENTIAL_KEY_SIZE, why, size);
}

static const hws_field_t s_fields[] = {
    {.key = "version",
     .type = HWS_FIELD_INTEGER,
     .offset = offsetof (values_t, version),
     .min = VERSION,
     .max = VERSION,
     .is_required = true},
    {.key = "broker_id",
     .type = HWS_FIELD_TEXT,
     .offset = offsetof (values_t, broker_id),
     .check = check_broker_id,
     .is_required = true},
    {.key = "epoch",
     .type = HWS_FIELD_INTEGER,
     .offset = offsetof (values_t, epoch),
     .min = 1,
     .max = HWS_EPOCH_MAX,
     .is_required = true},
    {.key = "key",
     .type = HWS_FIELD_TEXT,
     .offset = offsetof (values_t, key),
     .check = check_key,
     .is_required = true},
};

static const hws_program_t s_table = {
    .name = "identity",
    .fields = s_fields,
    .field_count = sizeof s_fields / sizeof *s_fields,
    .values_size = sizeof (values_t),
};

static void take (hws_identity_t *self, const values_t *values)
{
    uint8_t id[sizeof self->broker_id];
    hws_hex_parse (hws_bytes_of_text (values->broker_id), id, sizeof id);
    self->broker_id = 0;
    for (size_t i = 0; i < sizeof id; i++) {
        self->broker_id = self->broker_id << 8 | id[i];
    }
    hws_hex_parse (hws_bytes_of_text (values->key), self->key, sizeof self->key);
    self->epoch = (uint32_t) values->epoch.value;
}

int hws_identity_parse (hws_identity_t *self, const char *file, hws_bytes_t text, char *fault,
                        size_t size)
{
    hws_conf_t *conf = NULL;
    const hws_field_t *missing = NULL;
    int rc = hws_conf_new (&conf, &s_table);
    if (rc != 0) {
        goto done;
    }
    rc = hws_conf_load (conf, file, text);
    if (rc != 0) {
        snprintf (fault, size, "%s", hws_conf_error (conf));
        goto done;
    }
    missing = hws_conf_missing (conf);
    if (missing) {
        snprintf (fault, size, "%s: %s is missing", file, missing->key);
        rc = HWS_EINVALID;
        goto done;
    }
    take (self, hws_conf_values (conf));

done:
    hws_conf_destroy (&conf);
    if (rc == HWS_ENO_MEMORY) {
        snprintf (fault, size, "%s", hws_strerror (rc));
    }
    return rc == HWS_EINVALID ? HWS_EMALFORMED : rc;
}
