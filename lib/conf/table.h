/*  Field tables: what a program can be told, one line per setting.
 *
 *  A program is described by one constant table. Reading its JSON file, its
 *  command line and the environment, the defaults, --help, --print-config, the
 *  reference files in config/ and the JSON Schema all come from that table, so
 *  they cannot disagree. A value lands in a plain structure of the program,
 *  through the field's offset. This header is what the tables are written in; it
 *  has no functions.
 */
#ifndef HWS_TABLE_H
#define HWS_TABLE_H

#include "base/bytes.h"

/*  The largest whole number in a configuration: up to here every JSON reader keeps
 *  it exact.  */
#define HWS_INTEGER_MAX ((UINT64_C (1) << 53) - 1)

typedef enum {
    HWS_FIELD_FLAG,     /* bool; on the command line an option without argument */
    HWS_FIELD_INTEGER,  /* uint64_t */
    HWS_FIELD_SIZE,     /* uint64_t, bytes; on the command line with K, M, G */
    HWS_FIELD_DURATION, /* uint64_t, milliseconds; on the command line with ms, s, m, h */
    HWS_FIELD_WORD,     /* int: the place of the word in `words` */
    HWS_FIELD_TEXT,     /* char *; null for null */
    HWS_FIELD_LIST,     /* hws_texts_t; its option may be repeated and replaces the list */
    HWS_FIELD_OPERANDS  /* hws_texts_t: the arguments that are no options; never in a file */
} hws_field_type_t;

typedef struct {
    size_t count;
    char **text; /* `count` of them */
} hws_texts_t;

/*  Whether a text is a good value. If not, writes why ("a port is missing") into
 *  `why` of `size` bytes and returns false.  */
typedef bool hws_text_check_t (hws_bytes_t text, char *why, size_t size);

typedef struct {
    const char *name;     /* long option, without the dashes; null: no option */
    char letter;          /* short option, or 0 */
    const char *argument; /* its name in --help; null with a flag */
} hws_option_t;

typedef struct {
    const char *key; /* "limits.peers"; null with OPERANDS. Siblings stand together */
    hws_field_type_t type;
    size_t offset;            /* of the value in the program's structure */
    bool is_nullable;         /* null is a value; "none" on the command line, but for texts */
    const char *preset;       /* the default, in the spelling of the command line. Null: nothing is
                                 set (HWS_ABSENT, a null text, an empty list), and the key of what
                                 is not nullable is left out of what is printed. A number that is
                                 nullable or has no preset is an hws_optional_t */
    uint64_t min, max;        /* numbers: both allowed. LIST, OPERANDS: of the count */
    const char *const *words; /* WORD: ended by a null */
    bool is_required;         /* a run needs it; its option is named to the user */
    hws_text_check_t *check;  /* TEXT and each text of a LIST; may be null */
    const char *environment;  /* a variable that sets it, or null */
    hws_option_t option;
    const char *help; /* one sentence without a full stop */
} hws_field_t;

/*  A further option that stands for a value of a field, as -0 for --framing nul.  */
typedef struct {
    hws_option_t option; /* never with an argument */
    const char *key;     /* the field */
    const char *value;   /* what it is set to; null: `step` counts */
    int step;            /* moves a WORD so far up or down its list, as often as it is given */
    const char *help;
} hws_alias_t;

typedef struct hws_conf hws_conf_t;

typedef struct {
    const char *name;     /* "hawser-send" */
    const char *summary;  /* for --help: some lines */
    const char *operands; /* for --help: "[FILE]…"; null: the program takes none */
    const hws_field_t *fields;
    size_t field_count;
    const hws_alias_t *aliases;
    size_t alias_count;
    size_t values_size; /* of the structure */

    /*  The rules between fields. Returns 0, or a code after hws_conf_blame. May be
     *  null.  */
    int (*check) (hws_conf_t *conf, const void *values);
} hws_program_t;

#endif
