/*  The members of every control message, as tables (docs/protocol.md, "Control
 *  messages"): what the codec in control.c walks, in both directions.
 */
#ifndef HWS_CONTROL_TABLE_H
#define HWS_CONTROL_TABLE_H

#include "proto/control.h"

#define HWS_MS_MAX ((UINT64_C (1) << 53) - 1) /* the longest time on the wire */

/*  The type of a member, and so of the field that it fills.  */
typedef enum {
    HWS_MEMBER_DECIMAL,     /* uint64_t, written as a decimal string */
    HWS_MEMBER_MS,          /* uint64_t, a time in milliseconds, written as a number */
    HWS_MEMBER_SMALL,       /* uint32_t, written as a number */
    HWS_MEMBER_OPT_MS,      /* hws_optional_t, written as a number */
    HWS_MEMBER_OPT_DECIMAL, /* hws_optional_t, written as a decimal string */
    HWS_MEMBER_BOOL,        /* bool */
    HWS_MEMBER_HANDLE,      /* hws_handle_t */
    HWS_MEMBER_ID,          /* hws_id_t */
    HWS_MEMBER_NAME,        /* hws_name_t: "" or what hws_name_is_valid takes */
    HWS_MEMBER_TEXT,        /* an array of char, NUL-terminated */
    HWS_MEMBER_CODE,        /* int: an error as its wire word */
    HWS_MEMBER_KIND,        /* hws_kind_t */
    HWS_MEMBER_EARLY,       /* bool: "kept" or "dropped" */
    HWS_MEMBER_WORDS,       /* hws_words_t */
    HWS_MEMBER_RANGES,      /* hws_range_t []; the count is at `presence_offset` */
    HWS_MEMBER_OBJECT       /* no field: the members of `table` */
} hws_member_type_t;

typedef struct hws_table hws_table_t;

typedef struct {
    const char *name;
    hws_member_type_t type;
    bool is_required;       /* its absence is an error; it is always written */
    bool has_presence;      /* a flag (or count) tells whether it is there */
    size_t offset;          /* of the field in the structure */
    size_t size;            /* of the field; a TEXT may be one byte shorter */
    size_t presence_offset; /* of that bool (RANGES: uint32_t) */
    uint64_t least;         /* smallest number that may be given */
    const hws_table_t *table;
} hws_member_t;

struct hws_table {
    const hws_member_t *members;
    size_t count;
};

/*  The table for a message; never null, empty for messages without members.  */
const hws_table_t *hws_control_table (hws_verb_t verb, hws_form_t form);

/*  That of the body of an ATTACHED run.  */
const hws_table_t *hws_attached_table (void);

#endif
