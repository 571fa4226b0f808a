/*  Where records go: all to stdout, or those of each sender to a file of its own.
 *
 *  Records are gathered in one buffer of a fixed size, whatever the number of
 *  senders, and written when it is full or when hws_output_flush is called; so
 *  output comes in whole records, except for those larger than the buffer.
 *
 *  Files are made in one directory, opened once, with names that output_name.h
 *  makes, and never over anything that is there: they are created new or not at
 *  all (O_EXCL, which follows no link), so a name that exists, from this run or
 *  an earlier one, is in use. A file is made when its sender attaches and stays, as
 *  far as it came, when the sender ends badly. Only hws_outputs_continue opens one that is
 *  there.
 */
#ifndef HWS_OUTPUT_IO_H
#define HWS_OUTPUT_IO_H

#include "base/bytes.h"
#include "framing/framing.h"
#include "receiver/output_name.h"

#include <stdbool.h>

/*  All outputs of a receiver.  */
typedef struct hws_outputs hws_outputs_t;

/*  One place that records are written to.  */
typedef struct hws_output hws_output_t;

/*  Outputs to stdout, when `directory` is null, or into a directory, which is made
 *  if it is not there. Returns 0, HWS_ESYSTEM (errno says why) or
 *  HWS_ENO_MEMORY.  */
int hws_outputs_new (hws_outputs_t **self, const char *directory);

/*  Frees all; what was not flushed is lost. Files must have been closed. Accepts
 *  null.  */
void hws_outputs_destroy (hws_outputs_t **self);

/*  The output of a new sender: its file, which is made, or stdout. Returns as
 *  hws_output_put.  */
int hws_outputs_add (hws_outputs_t *self, const char *label, uint64_t sender_id,
                     hws_output_t **output);

/*  The output of a sender whose file a process before this one has made: goes on behind its
 *  first `size` bytes, what is behind them is cut off. A file that is not there or is shorter
 *  fails. Returns as hws_output_put.  */
int hws_outputs_continue (hws_outputs_t *self, const char *name, uint64_t size,
                          hws_output_t **output);

/*  The output of stdout, which exists once for all senders.  */
hws_output_t *hws_outputs_stdout (hws_outputs_t *self);

/*  Writes a record between its marks. Returns 0, or HWS_ESYSTEM or HWS_ENO_MEMORY; then
 *  hws_outputs_error says it, nothing more can be written, and every later call
 *  returns the same.  */
int hws_output_put (hws_output_t *self, const hws_framing_marks_t *marks, hws_bytes_t record);

/*  Writes what was gathered, of all outputs. Returns as hws_output_put.  */
int hws_outputs_flush (hws_outputs_t *self);

/*  Flushes and closes a sender's file and frees the output, also when that fails;
 *  leaves stdout open. Returns as hws_output_put.  */
int hws_output_close (hws_output_t **self);

/*  The name of an output's file within the directory; "" for stdout.  */
const char *hws_output_file (const hws_output_t *self);

/*  How large a sender's file is when all that was put is written.  */
uint64_t hws_output_size (const hws_output_t *self);

/*  What failed ("out/gpu0: No space left on device"), or "" while all is well.  */
const char *hws_outputs_error (const hws_outputs_t *self);

/*  Whether it failed because nobody reads stdout any longer.  */
bool hws_outputs_is_unread (const hws_outputs_t *self);

#endif
