/*  What every part must say the same of: the version, and where the broker is when
 *  nobody says.
 *
 *  This header is installed next to hawser.h and includes nothing.
 */
#ifndef HWS_VERSION_H
#define HWS_VERSION_H

#define HWS_VERSION          "0.1.0"
#define HWS_DEFAULT_ENDPOINT "tcp://127.0.0.1:7733"

/*  The version of the library at run time; static.  */
const char *hws_version (void);

#endif
