/*  Randomness of the operating system: ids, secrets, seeds.  */
#ifndef HWS_RANDOM_IO_H
#define HWS_RANDOM_IO_H

#include <stddef.h>

/*  Fills the bytes. Returns 0, or HWS_ESYSTEM when the system has none to give;
 *  then nothing of `data` may be used.  */
int hws_random_fill (void *data, size_t size);

/*  Seeds rand (). Call it before the first ROUTER socket of the process: libzmq
 *  numbers peers without a name from rand (), which nobody else seeds, and aborts
 *  when a peer has taken the next number as its own name. Returns as above.  */
int hws_random_seed_rand (void);

#endif
