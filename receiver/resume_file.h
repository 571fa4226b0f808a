/*  The lines of the file of hawser-recv --resume: what a receiver that comes back has to know.
 *
 *  The first line is of the anchor, every other one of a sender. Each is an object of JSON,
 *  filled up with spaces to the same size, a power of two: so that a line has its place, is
 *  written over there, and is never half written when the process is killed (it lies within
 *  one page). Nobody else writes these files, so reading is strict: a line is right when it
 *  is, byte for byte, what would be written of it.
 */
#ifndef HWS_RESUME_FILE_H
#define HWS_RESUME_FILE_H

#include "proto/control.h"
#include "receiver/output_name.h"

#define HWS_RESUME_LINE_SIZE 1024

typedef struct {
    hws_handle_t handle;
    hws_id_t owner_token;
    hws_name_t anchor; /* its name, or "" */

    /*  Of senders whose lines others have got since.  */
    uint64_t records; /* that they brought */
    uint64_t ended;   /* how many they are */
    uint64_t bad;     /* of them, dropped or cancelled */
    uint64_t folded;  /* the last of them, or 0: if it has a line still, that does not count */
} hws_resume_anchor_t;

typedef struct {
    uint64_t sender_id;
    uint64_t next_seq;      /* what was written of it ends before this number */
    uint64_t records;       /* that were written of it */
    uint64_t bytes;         /* in these records */
    uint64_t size;          /* of its file, so far */
    bool is_ended;          /* its ending was written too */
    bool is_bad;            /* and is dropped or cancelled */
    uint64_t order;         /* which one it was of all endings that were put down, or 0 */
    hws_output_name_t file; /* "": it has none */
} hws_resume_sender_t;

/*  Writes a line of HWS_RESUME_LINE_SIZE bytes.  */
void hws_resume_anchor_write (const hws_resume_anchor_t *self, char *line);
void hws_resume_sender_write (const hws_resume_sender_t *self, char *line);

/*  Reads one. Returns 0, HWS_EMALFORMED or HWS_ENO_MEMORY.  */
int hws_resume_anchor_read (hws_resume_anchor_t *self, const char *line);
int hws_resume_sender_read (hws_resume_sender_t *self, const char *line);

#endif
