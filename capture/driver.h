// SPDX-License-Identifier: Apache-2.0
// The interface of a capture protocol: a table of functions for each protocol.
//
// A run (capture/run.c) decides when to query hosts, how long to wait for them, how many answers to
// hold in memory, and where bytes go.  A driver handles connections, messages and the meaning of
// failures.  A driver logs nothing, keeps no global state and uses only the calling thread; one set
// of connections belongs to one run.
//
//   open → add (each host) → connect → CONNECTED → start → ANSWERING → receive → ANSWERED → read
//
// After UNREACHABLE or ANSWERED, or in between, the run cancels the connection's attempt, and may
// connect it again later.
#ifndef XPL_CAPTURE_DRIVER_H_
#define XPL_CAPTURE_DRIVER_H_

#include "capture/capture.h"

#define XPL_CAPTURE_TRACE_SUFFIX ".pt.trace.json.gz"

struct xpl_capture_connections; // of one run; each driver's own
struct xpl_capture_connection;  // to one host; likewise

// Parameters that differ from host to host and from attempt to attempt.
struct xpl_capture_query {
    const char *host_name; // of the file, for hosts that write it themselves
    const char *root; // the session's directory as the hosts see it, for the same; outlives the
                      // connection
    const char *session_id; // of this attempt only; also a hidden directory of the session, below
                            // which a host that writes its profile itself has to put it
    const char *tool;       // the driver's own: what to capture; NULL: an XSpace
    uint64_t start_ns;      // Unix time; 0: at once
};

enum xpl_capture_event_kind {
    XPL_CAPTURE_EVENT_NONE,        // time has passed
    XPL_CAPTURE_EVENT_INTERNAL,    // concerns only the driver; the run ignores it
    XPL_CAPTURE_EVENT_CONNECTED,   // the host can be queried
    XPL_CAPTURE_EVENT_UNREACHABLE, // it cannot: `code`, `reason` and `again` say more
    XPL_CAPTURE_EVENT_ANSWERING,   // its answer has begun, and waits for `receive`
    XPL_CAPTURE_EVENT_ANSWERED,    // the answer is complete (code XPL_OK), or the host failed
};

struct xpl_capture_event {
    enum xpl_capture_event_kind kind;
    void *user; // the connection's
    xpl_status_t code;
    bool again;                           // a failure that another attempt may overcome
    char reason[XPL_CAPTURE_REASON_SIZE]; // of a failure: the cause and the remedy
};

struct xpl_capture_sink {
    // The next bytes of an XSpace, or of the trace begun last; false ends the reading.
    bool (*put)(void *ctx, xpl_bytes_t piece);
    // Begins the trace of a PyTorch process, a file of that name, which is untrusted and ends with
    // XPL_CAPTURE_TRACE_SUFFIX; false ends the reading.
    bool (*begin_trace)(void *ctx, xpl_str_t name);
    void *ctx;
};

// The contents of an answer other than its bytes.
struct xpl_capture_answer {
    bool idle; // when there are none: nothing was recorded; otherwise `reason` says where they are
    char reason[XPL_CAPTURE_REASON_SIZE];
    char notes[XPL_CAPTURE_REASON_SIZE]; // of a host with traces: missing processes; "": none
};

struct xpl_capture_driver {
    const char *name; // of the protocol, for documents
    // Prepares connections for a plan, which outlives them.
    xpl_status_t (*open)(const struct xpl_capture_plan *plan, struct xpl_capture_connections **ret,
                         struct xpl_error *err);
    // Cancels pending calls and frees everything.  NULL is fine.
    void (*close)(struct xpl_capture_connections *set);
    // Prepares a connection; events about it carry `user`.  Freed by close.
    xpl_status_t (*add)(struct xpl_capture_connections *set, const char *target, void *user,
                        struct xpl_capture_connection **ret, struct xpl_error *err);
    // Begins to connect: CONNECTED or UNREACHABLE comes once, or nothing while the host is silent.
    xpl_status_t (*connect)(struct xpl_capture_connection *c, struct xpl_error *err);
    // After CONNECTED and `cancel`: sends the host the plan's request.  ANSWERING comes at most
    // once, and ANSWERED once.
    xpl_status_t (*start)(struct xpl_capture_connection *c, const struct xpl_capture_query *q,
                          struct xpl_error *err);
    // After ANSWERING: how large the answer is; 0: not known yet; UINT64_MAX: the driver cannot
    // tell before it is complete.  NULL: it never can.
    uint64_t (*announced)(const struct xpl_capture_connection *c);
    // After ANSWERING: lets the answer come, of at most `max_bytes`; ANSWERED with
    // RESOURCE_EXHAUSTED when more comes, which is not kept.
    void (*receive)(struct xpl_capture_connection *c, uint64_t max_bytes);
    // After ANSWERED with XPL_OK: hands the bytes of the XSpace to the sink, in order; there may be
    // none.  CANCELLED when the sink returned false; DATA_LOSS when the answer is malformed.
    xpl_status_t (*read)(struct xpl_capture_connection *c, const struct xpl_capture_sink *sink,
                         struct xpl_capture_answer *ret, struct xpl_error *err);
    // Gives up the attempt, which frees its host and its answer; no event of it comes any more.
    // Without an attempt it does nothing.
    void (*cancel)(struct xpl_capture_connection *c);
    // The next event within wait_ms (0: only events that have happened already).
    void (*next_event)(struct xpl_capture_connections *set, int wait_ms,
                       struct xpl_capture_event *ret);
};

// tensorflow.ProfilerService over gRPC: JAX, TensorFlow, PyTorch/XLA, Reactant.jl, xplaned-agent.
extern const struct xpl_capture_driver xpl_capture_tensorflow;
// The plan's, or the one above.
const struct xpl_capture_driver *xpl_capture_driver_of(const struct xpl_capture_plan *plan);

#endif
