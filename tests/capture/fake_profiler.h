// SPDX-License-Identifier: Apache-2.0
// A ProfilerService for tests and benchmarks of capture/, which fails in the ways that a test
// chooses.
#ifndef XPL_TESTS_CAPTURE_FAKE_PROFILER_H_
#define XPL_TESTS_CAPTURE_FAKE_PROFILER_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

enum fake_mode {
    FAKE_OK,
    FAKE_IDLE,      // empty_trace and nothing else
    FAKE_METADATA,  // empty_trace and an XSpace without events, as JAX answers when idle
    FAKE_BLIND,     // likewise, and the XSpace says what its profiler complains of
    FAKE_BUSY,      // another session is active
    FAKE_BUSY_ONCE, // the first time
    FAKE_IDLE_ONCE, // the first time
    FAKE_HANG,      // never answers
    FAKE_DIE,       // the process ends when the capture begins
    FAKE_GARBAGE,   // an XSpace that is none
    FAKE_TRUNCATED, // an XSpace that ends in the middle of an event
    FAKE_NONSENSE,  // an answer that is no ProfileResponse
    FAKE_HOSTILE,   // calls itself by names full of dots, slashes and control characters
    FAKE_OLD,       // ignores emit_xspace and writes where the request says
    FAKE_ELSEWHERE, // likewise, on a disk that only it sees
    FAKE_TOOL_DATA, // brings the XSpace as tool data
    FAKE_TRICKLE,   // begins its answer and never ends it
    FAKE_UNIMPLEMENTED,
    FAKE_MODES,
};
// By its name in lower case ("busy_once"); FAKE_MODES for none.
enum fake_mode fake_mode_of(const char *name);

struct fake_set; // servers that share a thread and a clock
struct fake_options {
    enum fake_mode mode;
    uint64_t bytes;    // of its XSpace, about; 0: a small one
    const char *file;  // an XSpace to send instead, or NULL
    int extra_ms;      // from the capture's end to the answer
    const char *token; // NULL: none needed
    int port;          // 0: any
};

struct fake_set *fake_set_new(void);
void fake_set_free(struct fake_set *s);
// Adds a server; returns its number.
int fake_add(struct fake_set *s, const struct fake_options *o);
// "127.0.0.1:PORT"
const char *fake_address(const struct fake_set *s, int i);
unsigned fake_calls(const struct fake_set *s, int i);
unsigned fake_cancels(const struct fake_set *s, int i);
// While it is held it answers no capture.
void fake_hold(struct fake_set *s, int i, bool hold);
// Whether it profiles continuously.
bool fake_records(const struct fake_set *s, int i);
// Of the last call: the requested start (0: at once) and the begin of its capture, Unix time.
int64_t fake_wanted_ns(const struct fake_set *s, int i);
int64_t fake_began_ns(const struct fake_set *s, int i);

// An XSpace of at least `bytes` bytes: planes of one line each.
void fake_xspace(struct xpl_buf *b, uint64_t bytes, const char *hostname);

#endif
