/*  A text that grows as it is written; for what is printed, never for data.
 *
 *  Without memory it remembers that and takes nothing more, so that a printer
 *  checks once, at the end.
 */
#ifndef HWS_WRITER_H
#define HWS_WRITER_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct {
    char *text; /* from malloc, ended by a NUL; null while empty */
    size_t size;
    size_t capacity;
    bool failed; /* no memory, for good */
} hws_writer_t;

/*  Appends.  */
void hws_writer_add (hws_writer_t *self, const char *text);
void hws_writer_add_bytes (hws_writer_t *self, const char *bytes, size_t size);
void hws_writer_format (hws_writer_t *self, const char *format, ...)
    __attribute__ ((format (printf, 2, 3)));

/*  Appends `text` as a JSON string, with its quotes; bytes that are not UTF-8 become
 *  "?".  */
void hws_writer_add_json (hws_writer_t *self, const char *text);

/*  Appends `count` spaces.  */
void hws_writer_indent (hws_writer_t *self, size_t count);

/*  Gives the text away, to be freed by the caller; null without memory.  */
char *hws_writer_take (hws_writer_t *self);

#endif
