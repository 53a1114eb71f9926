// SPDX-License-Identifier: Apache-2.0
// libxplaned-agent.so, the part of the agent that lives in a CUDA program: libc, and CUPTI by
// dlopen when a capture begins.
//
// One thread of ours, with all signals blocked, sleeps in accept() on a Unix socket
// DIR/PID.sock until xplaned-agent connects and asks for a capture.  It then enables CUPTI's
// activity records, hands CUPTI a bounded number of buffers, turns full ones into records
// (agent/record.h) and writes them to the socket.  When all buffers are full CUPTI drops records
// and counts them.  Nothing here ends the program, writes to its output or allocates from its heap.
#ifndef XPL_AGENT_INJECT_INJECT_H_
#define XPL_AGENT_INJECT_INJECT_H_

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/inject/cupti_abi.h"
#include "agent/record.h"

// ---- out.c: records to the socket, in blocks ----

enum { OUT_BYTES = 256 << 10, NAME_SLOTS = 1 << 16, API_NAMES = 1024 };

struct name_slot {
    uint64_t hash; // 0: free
    uint32_t id;
};

struct out {
    int fd;
    bool failed; // the peer is gone, or does not read
    size_t n;
    uint32_t n_names;
    uint64_t nameless; // records whose name did not fit the table
    uint8_t *bytes;    // OUT_BYTES
    struct name_slot *names;
    uint32_t api_names[2][API_NAMES]; // names of the driver's and the runtime's calls; 0: not yet
};

// False without memory.
bool inject_out_init(struct out *o, int fd);
void inject_out_fini(struct out *o);
// Appends a record of `size` bytes (its kind and size are set here), then `text_len` bytes of text.
void inject_out_record(struct out *o, uint16_t kind, void *record, size_t size, const char *text,
                       size_t text_len);
// The number of a name, which is sent when it is new.  NULL gives 0.
uint32_t inject_out_name(struct out *o, const char *name);
void inject_out_flush(struct out *o);

// ---- convert.c: one CUPTI record ----

void inject_convert_record(struct out *o, const struct cu_functions *cu, const void *record);

// ---- devices.c ----

// A record for each GPU that the program sees.  `cuda` is the driver library's handle.
void inject_send_devices(struct out *o, void *cuda);

// ---- cupti.c: finding and loading CUPTI ----

// A function of a library, and where its pointer goes in a struct.
struct cu_symbol {
    const char *name;
    size_t offset;
};
// Fills the pointers in *ret, NULL for missing ones; returns the first missing name, or NULL.
const char *inject_load_symbols(void *handle, const struct cu_symbol *all, size_t n, void *ret);
// The driver library when the program has loaded it, else NULL.
void *inject_find_cuda(void);
// Fills `cu`; NULL, or why there is no CUPTI, in `why`.
bool inject_load_cupti(void *cuda, struct cu_functions *cu, char *why, size_t size);

// ---- tracer.c: a capture ----

// Times that the two clocks are read at the begin and at the end of a capture: the tightest counts.
// Records that begin before it are left out.
enum { INJECT_CLOCK_TRIES = 16 };

// Runs from START to the STOP, the peer's end, or the program's.  `wake` is readable when the
// program ends.
void inject_run_capture(int fd, int wake, const struct xpl_agent_command *start, void *cuda);

#endif
