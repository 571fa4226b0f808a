/*  The file of hawser-recv --resume, and what it knows of every sender.
 *
 *  The file outlives the process: with it another one goes on with the anchor, exactly
 *  behind what this one has written. It has the handle and the owner token, so nobody else
 *  may read it; and for each sender how far it has been written, which is put down after the
 *  output was written and before the broker is told. What comes again after that, because
 *  the broker was not told any more, is known, and what was written without being put down
 *  is cut off a sender's file.
 *
 *  The process that uses a file holds its lock. Another one that takes the anchor over waits
 *  for the lock, that is until this one has put down the last that it wrote.
 *
 *  A killed process leaves the file right. A machine that loses its power may leave it
 *  behind the outputs or before them: only the first line is synced to the disk.
 */
#ifndef HWS_RESUME_IO_H
#define HWS_RESUME_IO_H

#include "base/list.h"
#include "base/map.h"
#include "hawser.h"
#include "receiver/resume_file.h"

/*  Ended senders are known for so many later endings: more than the broker would tell again.  */
#define HWS_RESUME_ENDED_MAX 8192

typedef struct hws_resume hws_resume_t;

/*  Opens the file if it is there, checked to its end unless another process uses it; else sees
 *  that one could be made. On failure too `*self` is the caller's, for hws_resume_error; null
 *  only without memory. Returns 0, HWS_EMALFORMED (not such a file), HWS_EDENIED (others can
 *  use it, or it is not ours), HWS_ESYSTEM, HWS_ENO_MEMORY.  */
int hws_resume_open (hws_resume_t **self, const char *path);

/*  Closes and frees. Accepts null.  */
void hws_resume_destroy (hws_resume_t **self);

/*  Whether there was a file. Then this is what hws_receiver_open is to continue.  */
bool hws_resume_is_there (const hws_resume_t *self);
const char *hws_resume_handle (const hws_resume_t *self);
const char *hws_resume_owner_token (const hws_resume_t *self);

/*  Whether the file is of an anchor of this name; null: without one.  */
bool hws_resume_is_of (const hws_resume_t *self, const char *anchor);

/*  The anchor is open. A new file is made now, and gets its name when it is whole; of one that was
 * there the lock is waited for, at most `lock_ms`, and it is read again. Returns as
 * hws_resume_open, or HWS_EBUSY when another process keeps the lock.  */
int hws_resume_begin (hws_resume_t *self, const char *anchor, const char *handle,
                      const char *owner_token, int64_t lock_ms);

/*  What the processes before have written, whole.  */
void hws_resume_totals (const hws_resume_t *self, uint64_t *records, uint64_t *ended,
                        uint64_t *bad);

/*  The sender, or null for one that is new.  */
const hws_resume_sender_t *hws_resume_find (hws_resume_t *self, uint64_t sender_id);

/*  Whether what the event tells was put down already.  */
bool hws_resume_is_known (hws_resume_t *self, const hws_event_t *event);

/*  A sender came; `file` is the name of its file, or "". Returns as hws_resume_commit, or
 *  HWS_ENO_MEMORY.  */
int hws_resume_add (hws_resume_t *self, uint64_t sender_id, const char *file);

/*  An event of it was written, or will be with the next flush: a record, an error or an ending;
 *  `size` is that of its file behind a record or an error. Senders that were not added are left
 *  out. An ending of cause superseded or transport is in doubt: it may be only ours, because the
 *  anchor was taken over or is out of reach, which is clear when CLOSED follows at once.  */
void hws_resume_note (hws_resume_t *self, const hws_event_t *event, uint64_t size);

/*  Whether an ending is in doubt. Then those that are, are none any more.  */
bool hws_resume_has_doubts (const hws_resume_t *self);
void hws_resume_believe (hws_resume_t *self);

/*  What was noted has been written: puts it down, but for endings in doubt. Returns 0 or
 *  HWS_ESYSTEM.  */
int hws_resume_commit (hws_resume_t *self);

/*  The anchor is over: removes the file, if it is still this one.  */
void hws_resume_remove (hws_resume_t *self);

/*  What failed, of which file; "" while all is well.  */
const char *hws_resume_error (const hws_resume_t *self);

#endif
