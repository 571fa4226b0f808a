/*  Takes the events of a receiver: writes records where they belong, says who came and how
 *  every sender ended, counts, and knows when enough has come.
 */
#ifndef HWS_COLLECTOR_IO_H
#define HWS_COLLECTOR_IO_H

#include "base/map.h"
#include "framing/framing.h"
#include "hawser.h"
#include "io/console_io.h"
#include "receiver/json_event.h"
#include "receiver/output_io.h"
#include "receiver/resume_io.h"
#include "receiver/settings.h"

#include <stdatomic.h>

#define HWS_COLLECTOR_GOES_ON (-1) /* no exit status yet */

typedef struct {
    const hws_recv_settings_t *settings; /* not owned */
    hws_console_t *console;              /* not owned */
    hws_resume_t *resume;                /* what was written before, or null; not owned */
    hws_outputs_t *outputs;
    hws_map_t files; /* of the attached senders, by their ids; only with --output-dir */
    struct hws_sender_file *last_file; /* the one that was found last, or null */
    hws_map_t warned;                  /* senders that were warned of, by their ids */
    hws_json_event_t json;             /* where lines of JSON are made */
    hws_framing_marks_t eol;           /* what ends a line of JSON */
    uint64_t owed_count;               /* senders that ended before, whose ending comes once more */
    uint64_t bad_end_count;            /* senders dropped and cancelled, not by ourselves */
    bool is_closed;                    /* CLOSED has come */
    bool is_left;                      /* and the anchor may live on: it was another's doing */
    int status;                        /* the exit status, or HWS_COLLECTOR_GOES_ON */

    /*  These may be read by any thread.  */
    _Atomic uint64_t record_count;
    _Atomic uint64_t record_bytes;
    _Atomic uint64_t attached_count; /* senders that ever came */
    _Atomic uint64_t ended_count;    /* senders that have ended */
} hws_collector_t;

/*  Opens the outputs. Returns 0, or an error code after having said why.  */
int hws_collector_init (hws_collector_t *self, const hws_recv_settings_t *settings,
                        hws_console_t *console);

/*  With --resume, before the first event: what `resume` knows is left out and counts, what is
 *  written is put down in it. It stays the caller's and outlives the collector.  */
void hws_collector_resume (hws_collector_t *self, hws_resume_t *resume);

/*  Closes and frees all. Files of senders that have not ended stay as they are.  */
void hws_collector_fini (hws_collector_t *self);

/*  The anchor is open, with a name or, `anchor` null, without: says so, at once.  */
void hws_collector_take_opened (hws_collector_t *self, const char *anchor, const char *handle);

/*  Takes one event. `is_our_doing` says that we have asked for the end of the anchor, so
 *  that endings and its closing are no news. A failure is said and becomes the
 *  status.  */
void hws_collector_take (hws_collector_t *self, const hws_event_t *event, bool is_our_doing);

/*  Nobody reads stdout any longer.  */
void hws_collector_lose_reader (hws_collector_t *self);

/*  Whether the next event may say that endings were only ours: it is to be taken before a
 *  flush.  */
bool hws_collector_is_in_doubt (const hws_collector_t *self);

/*  Writes what was gathered, and puts down that it is written. Returns 0 when that is so of
 *  all that was taken, which may be acknowledged then; else the failure was said and became
 *  the status.  */
int hws_collector_flush (hws_collector_t *self);

#endif
