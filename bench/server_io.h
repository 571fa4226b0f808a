/*  A peer's server: started on a free port, asked of the system what it costs, ended.  */
#ifndef BENCH_SERVER_IO_H
#define BENCH_SERVER_IO_H

#include "bench/crew_io.h"
#include "bench/peer.h"

typedef struct {
    pid_t pid; /* 0: the peer has none */
} server_t;

/*  Finds ports of loopback that nobody uses just now. Returns 0 or -1.  */
int server_find_ports (int *ports, size_t count);

/*  Whether the program is in PATH.  */
bool server_has_program (const char *program);

/*  Starts it in the crew, which ends it, and waits until it listens; its output goes to a
 *  file in `logs`. A peer without a server: nothing. Returns 0 or -1.  */
int server_start (server_t *self, crew_t *crew, const peer_t *peer, const place_t *place,
                  const char *logs);

/*  Processor time that it has used, all threads, in nanoseconds.  */
int64_t server_cpu_ns (const server_t *self);

/*  Memory that is resident now, and the most that was.  */
uint64_t server_resident_bytes (const server_t *self);
uint64_t server_peak_bytes (const server_t *self);

#endif
