/*  How every Hawser program begins: its command line, file and environment become
 *  settings, and the options that all programs share are done with.
 *
 *      hws_conf_t *conf = NULL;
 *      const int status = hws_program_start (&conf, &hws_send_program, argc, argv, print_versions);
 *      if (status != HWS_PROGRAM_RUN) {
 *          return status;
 *      }
 *      const hws_send_settings_t *const settings = hws_conf_values (conf);
 *      …
 *      hws_conf_destroy (&conf);
 *
 *  Shared: -h --help, -V --version, -c --config FILE, -t --check-config,
 *  --print-config, --schema. Everything is validated before any of these act, but
 *  --help and --version, which need nothing. Nothing is bound, resolved or opened
 *  for writing here.
 */
#ifndef HWS_PROGRAM_IO_H
#define HWS_PROGRAM_IO_H

#include "conf/conf.h"
#include "conf/exit_status.h"

#include <stdio.h>

#define HWS_PROGRAM_RUN (-1)

/*  Writes the lines of --version that only the program knows: the run-time versions
 *  of libzmq and czmq, CURVE yes or no. May be null.  */
typedef void hws_print_versions_t (FILE *stream);

/*  Returns HWS_PROGRAM_RUN and the settings in `*conf`, the caller's; or the
 *  status to exit with, when all is said (on stdout, or one line on stderr), and
 *  `*conf` is null.  */
int hws_program_start (hws_conf_t **conf, const hws_program_t *program, int argc, char **argv,
                       hws_print_versions_t *print_versions);

/*  Reads everything again, for a reload; says nothing and does none of the shared options.
 *  Returns 0 and new settings in `*conf`, or a code with one line in `text` of
 *  `size` bytes and `*conf` null.  */
int hws_program_read (hws_conf_t **conf, const hws_program_t *program, int argc, char **argv,
                      char *text, size_t size);

#endif
