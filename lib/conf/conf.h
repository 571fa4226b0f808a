/*  The settings of a program in the making: defaults, file, environment and
 *  command line laid over each other by the rules of its table.
 *
 *  Pure: it is given bytes and texts, and refuses with one line that says where
 *  and what. A refused object is only good for its error text; a reload therefore
 *  makes a new one and keeps the old (all or nothing). program_io.h calls this in
 *  the right order for a main program.
 *
 *  The file is strict JSON (RFC 8259) of at most 1 MB, 32 deep: one object, no
 *  trailing text, no duplicate or unknown keys, valid UTF-8, whole numbers in
 *  plain digits. At the top two keys are no settings: "$schema" (a text) and
 *  "$sources" (an object of texts, as --print-config writes), both ignored.
 */
#ifndef HWS_CONF_H
#define HWS_CONF_H

#include "base/error.h"
#include "conf/table.h"

#define HWS_CONF_SIZE_MAX  1048576 /* bytes of a file */
#define HWS_CONF_DEPTH_MAX 32

typedef enum {
    HWS_SOURCE_DEFAULT,
    HWS_SOURCE_FILE,
    HWS_SOURCE_ENVIRONMENT,
    HWS_SOURCE_COMMAND_LINE
} hws_source_t;

/*  Makes settings that hold the defaults. The program must outlive them. Returns 0
 *  or HWS_ENO_MEMORY.  */
int hws_conf_new (hws_conf_t **self, const hws_program_t *program);

/*  Frees the settings with their values; sets `*self` to null. Accepts null.  */
void hws_conf_destroy (hws_conf_t **self);

/*  The program's structure; it and its texts live as long as the settings.  */
const void *hws_conf_values (const hws_conf_t *self);

const hws_program_t *hws_conf_program (const hws_conf_t *self);

/*  Lays a file over what is there. `file` is its name for error lines and is
 *  copied. Returns 0, HWS_EINVALID (see hws_conf_error) or HWS_ENO_MEMORY.  */
int hws_conf_load (hws_conf_t *self, const char *file, hws_bytes_t json);

/*  Sets one field from a text in the command line's spelling ("500ms", "64K",
 *  "none"; "true" or "false" for a flag). A list takes one more text; the first of
 *  a source replaces what came before. Returns as hws_conf_load.  */
int hws_conf_set (hws_conf_t *self, const hws_field_t *field, hws_source_t source,
                  const char *text);

/*  Does what an alias on the command line stands for; returns as hws_conf_load.  */
int hws_conf_set_alias (hws_conf_t *self, const hws_alias_t *alias);

/*  Holds the whole against the program's own rules; returns as hws_conf_load.  */
int hws_conf_check (hws_conf_t *self);

/*  The first field that a run needs and that is not set, or null.  */
const hws_field_t *hws_conf_missing (const hws_conf_t *self);

/*  Refuses when a required field is not set. Apart from the above because a file
 *  may be checked, or printed, without what a run needs besides.  */
int hws_conf_check_required (hws_conf_t *self);

/*  For a program's check: something is wrong with the value of `key`. Returns
 *  HWS_EINVALID.  */
int hws_conf_blame (hws_conf_t *self, const char *key, const char *format, ...)
    __attribute__ ((format (printf, 3, 4)));

/*  The one line that says what is wrong, without a newline; "" if nothing is. It
 *  begins with `file:line:column: key.path: ` if a file is at fault, else with
 *  the program and the option or variable.  */
const char *hws_conf_error (const hws_conf_t *self);

/*  Where the value of a key came from.  */
hws_source_t hws_conf_source (const hws_conf_t *self, const char *key);

/*  The field of a key, or null.  */
const hws_field_t *hws_program_field (const hws_program_t *program, const char *key);

/*  What is printed: each returns a text from malloc that ends in a newline, or null
 *  without memory. The settings as JSON with their "$sources", which loads
 *  again; the reference file (the defaults); the JSON Schema; --help.  */
char *hws_conf_print (const hws_conf_t *self);
char *hws_program_reference (const hws_program_t *program);
char *hws_program_schema (const hws_program_t *program);
char *hws_program_help (const hws_program_t *program);

#endif
