/*  Inside of the settings: values behind a table's offsets, and where each came from.
 *
 *  For the files of lib/conf only; everybody else uses conf.h.
 */
#ifndef HWS_STORE_H
#define HWS_STORE_H

#include "conf/conf.h"
#include "conf/place.h"
#include "proto/control.h"

#define HWS_CONF_ERROR_SIZE 1024

typedef struct {
    hws_source_t source;
    const hws_option_t *option; /* COMMAND_LINE: the one that set it; null for operands */
    size_t line, column;        /* FILE */
} hws_origin_t;

struct hws_conf {
    const hws_program_t *program;
    void *values;                    /* the program's structure */
    hws_origin_t *origins;           /* one for each field */
    char *file;                      /* the name of the loaded file, or null */
    char error[HWS_CONF_ERROR_SIZE]; /* "" or one line */
};

/*  The value of a field, taken out of the structure.  */
typedef struct {
    enum { HWS_STORED_ABSENT, HWS_STORED_NULL, HWS_STORED_VALUE } state;
    uint64_t number;   /* numbers, FLAG and WORD */
    const char *text;  /* TEXT */
    hws_texts_t texts; /* LIST and OPERANDS */
} hws_stored_t;

hws_stored_t hws_store_get (const hws_conf_t *self, const hws_field_t *field);

/*  A number, flag or word; and null for any nullable field.  */
void hws_store_number (hws_conf_t *self, const hws_field_t *field, uint64_t number);
void hws_store_null (hws_conf_t *self, const hws_field_t *field);

/*  A text, which is copied: sets a TEXT, adds to a LIST. Return 0 or
 *  HWS_ENO_MEMORY.  */
int hws_store_text (hws_conf_t *self, const hws_field_t *field, const char *text);

/*  Empties a list or text.  */
void hws_store_clear (hws_conf_t *self, const hws_field_t *field);

hws_origin_t *hws_store_origin (const hws_conf_t *self, const hws_field_t *field);

/*  Whether a text is one of the field's words; sets its place.  */
bool hws_store_find_word (const hws_field_t *field, const char *text, int *place);

/*  Writes the error line, `where` first (a file's place, an option) unless it is
 *  null, and makes it one line whatever is in it. Returns HWS_EINVALID.  */
int hws_conf_fail (hws_conf_t *self, const char *where, const char *format, ...)
    __attribute__ ((format (printf, 3, 4)));

/*  How the user named a value that does not come from a file: "--grace",
 *  "HAWSER_BROKER", "an argument", for want of these the key.  */
void hws_store_spelling (const hws_field_t *field, const hws_origin_t *origin, char *text,
                         size_t size);

/*  What is wrong with a value, whoever gave it: sentences that loading and setting
 *  share. Each writes into `why` of HWS_CONF_ERROR_SIZE bytes.  */
void hws_why_range (const hws_field_t *field, bool is_file, char *why);
void hws_why_word (const hws_field_t *field, const char *text, char *why);

#endif
