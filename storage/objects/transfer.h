// SPDX-License-Identifier: Apache-2.0
// Requests over HTTP, several at once, tried again when that can help.  The caller's
// thread does the work and waits; connections are kept for the next one.
#ifndef XPL_STORAGE_OBJECTS_TRANSFER_H_
#define XPL_STORAGE_OBJECTS_TRANSFER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/exec.h"
#include "base/status.h"
#include "base/str.h"
#include "storage/objects/credentials.h"

struct xpl_buf;
struct xpl_transfers;

struct xpl_transfer {
    const char *url;
    const char *shown; // for messages: name of the source
    // "NAME: VALUE"; without line breaks
    const char *headers[3];
    size_t n_headers;
    const char *method; // NULL: GET
    // The sent bytes: n bytes of `from_fd` from `from_first` on; or of memory, if that is not NULL.
    int from_fd;
    const char *from;
    uint64_t from_first, from_n;
    bool is_slow; // the server works for minutes before it answers
    bool packed;  // objects stored with Content-Encoding gzip arrive compressed
    // A service of this machine or its network, which no proxy reaches.
    bool direct;
    unsigned max_tries, max_s; // how often, and how long one takes; 0: as for objects
    // Where the answer goes: n bytes of the object from `first` on, to their place in `fd`; or,
    // with n 0, everything, to `answer`, which is emptied first.
    int fd;
    uint64_t first, n;
    uint64_t whole;      // bytes of the object; with n 0 set by a Content-Range
    const char *version; // its ETag; an answer with a different one is of another object
    struct xpl_buf *answer;
    bool ends_early;      // see xpl_transfers_stop
    uint64_t patience_ns; // after the first try no further one begins later than this; 0: any
    bool is_last;         // a request that cleans up: runs also after a stop, and is tried once
    const struct xpl_cancel *cancel; // CANCELLED, soon; may be NULL.  That of the first counts
    // Set.
    long status;    // of HTTP; 0: there was none
    char code[64];  // the object store's error code; ""
    char etag[256]; // from the answer; ""
    unsigned tries; // how often it was tried, by all calls; the caller begins with 0
};

struct xpl_transfers_options {
    unsigned parallel;       // requests at once of one call
    uint64_t first_retry_ns; // before the second try; doubled for each further one, with jitter
    const char *region;      // of signatures
    unsigned stalled_s;      // a try that is slower than 4 KiB/s for so long is broken; 0: 30
    unsigned try_s;          // a try takes at most so long; 0: 600
    unsigned max_wait_s;     // limit on a Retry-After; 0: 30
    unsigned clean_s;        // how long requests that clean up may run after a stop; 0: 10
};

// Whether two ETags are of one version, as a weak comparison says: with or without quotation marks,
// and whichever of them is weak.
bool xpl_transfer_is_version(xpl_str_t a, xpl_str_t b);

// FAILED_PRECONDITION without libcurl.
xpl_status_t xpl_transfers_new(const struct xpl_transfers_options *o, struct xpl_transfers **ret,
                               struct xpl_error *err) XPL_NODISCARD;
// When no call is under way.  NULL is fine.
void xpl_transfers_free(struct xpl_transfers *t);
// Ends pending and later calls with CANCELLED: all, or those that end early.  If a call of one
// request had sent everything, the object may be stored: after a stop, and after a cancellation, it
// waits up to 5 s for the answer.  Requests that clean up run for `clean_s`, or until the store
// cannot be reached.
void xpl_transfers_stop(struct xpl_transfers *t, bool all);

// Does all of them, at most `parallel` at once; the first that fails ends the others. 429, 5xx and
// broken connections are tried five times, after Retry-After if given.  Any thread.  CANCELLED,
// NOT_FOUND (404), PERMISSION_DENIED (401, 403), ABORTED (412, 416: the object was replaced, by its
// answer or its version), RESOURCE_EXHAUSTED (no space, no memory), FAILED_PRECONDITION (a
// redirection, 400), UNAVAILABLE.
xpl_status_t xpl_transfers_run(struct xpl_transfers *t, const struct xpl_credential *credential,
                               struct xpl_transfer *v, size_t n, struct xpl_error *err)
    XPL_NODISCARD;

#endif
