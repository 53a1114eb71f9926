// SPDX-License-Identifier: Apache-2.0
// Captures: profiles of many hosts at once, from their profiler servers, into one session.
//
// xpl_capture_run blocks and uses only the calling thread; any number of threads may capture at
// once (never one target twice: the second gets "busy").  No global state, no logging.
#ifndef XPL_CAPTURE_CAPTURE_H_
#define XPL_CAPTURE_CAPTURE_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"
#include "capture/profile_writer.h"

enum {
    XPL_CAPTURE_MAX_TARGETS = 4096,
    XPL_CAPTURE_MAX_DURATION_MS = 3600000,
    XPL_CAPTURE_MAX_RETRIES = 100,
    XPL_CAPTURE_MAX_TARGET = 255, // bytes of an address
    XPL_CAPTURE_MAX_ADVANCED = 64,
    XPL_CAPTURE_REASON_SIZE = 384, // of the text that says why a host gave nothing
};
// The largest message that protobuf lets a server send; more needs a shorter capture.
#define XPL_CAPTURE_MAX_BYTES ((uint64_t)INT32_MAX)

enum xpl_capture_call {
    XPL_CAPTURE_PROFILE,    // Profile: the usual capture
    XPL_CAPTURE_SNAPSHOT,   // GetSnapshot of a server in continuous mode
    XPL_CAPTURE_CONTINUOUS, // StartContinuousProfiling: brings no data, makes no session
    XPL_CAPTURE_STOP,       // StopContinuousProfiling: likewise
};

// An entry of ProfileOptions.advanced_configuration.
struct xpl_capture_advanced {
    const char *key;
    enum { XPL_CAPTURE_TEXT, XPL_CAPTURE_BOOL, XPL_CAPTURE_INT } type;
    const char *text;
    int64_t number; // of BOOL: 0 or 1
};

// Whether a target's turn has come.
enum xpl_capture_turn {
    XPL_CAPTURE_TURN_NOW,
    // It becomes free: the host pauses, and no retry is counted.  After a minute it is BUSY.
    XPL_CAPTURE_TURN_SOON,
    XPL_CAPTURE_TURN_BUSY, // like a server that reports "busy": retried if there are retries
};
// On the thread of xpl_capture_run.  Unless it is NOW, `reason` gets the cause and the remedy.
typedef enum xpl_capture_turn (*xpl_capture_turn_fn)(void *arg, size_t target,
                                                     char reason[XPL_CAPTURE_REASON_SIZE]);

struct xpl_capture_budget;
struct xpl_arena;
struct xpl_capture_driver;
struct xpl_intern;

struct xpl_capture_plan {
    size_t size; // sizeof this
    // The protocol that the targets speak (capture/driver.h); NULL: TensorFlow's profiler service.
    const struct xpl_capture_driver *driver;
    enum xpl_capture_call call;
    // "host:port", "[::1]:port", "unix:/path"; with "pytorch:" in front, and the port if it is not
    // 9011, the PyTorch processes of an xplaned-agent.
    const char *const *targets;
    size_t n_targets;
    const char *const *host_names; // NULL, or one for each target: the name of its file
    // Called before each request to a target, for callers that limit captures; NULL: always NOW.
    xpl_capture_turn_fn may_ask;
    void *may_ask_arg;
    // Called before a file that is complete gets its name, with may_ask_arg: false when the capture
    // has been cancelled, or is now.  NULL: always true.
    bool (*may_store)(void *arg);
    // As xpl_session_writer_options has it: before the session's directory is made; NULL: not.
    void (*making)(void *arg, const char *path);
    void *making_arg;
    struct xpl_session_remote *session_remote; // likewise: where the session goes; NULL: to LOGDIR
    xpl_str_t session;                         // empty: named by the time of the capture
    int64_t duration_ms;                       // 1 to XPL_CAPTURE_MAX_DURATION_MS
    int64_t delay_ms; // until the capture begins, counted from the run's start
    // Of the tracers; negative: as XProf's client has it (host 2, device 1, python 0).
    int host_tracer_level, device_tracer_level, python_tracer_level;
    const struct xpl_capture_advanced *advanced;
    size_t n_advanced;
    unsigned retries;           // per host: unreachable, busy or idle hosts are retried
    int64_t connect_timeout_ms; // until a host must have been reached; 0: 10 s
    // From the end of the capture until the host's answer begins, and from then until it is
    // complete; 0: 60 s or twice the duration, whichever is more.
    int64_t answer_timeout_ms;
    uint64_t max_host_bytes;  // of one host's answer; 0: XPL_CAPTURE_MAX_BYTES
    unsigned receive_at_once; // answers in memory at once, others wait at their hosts; 0: 4
    // Of several captures together, where each answer takes max_host_bytes; borrowed; NULL: no
    // limit.
    struct xpl_capture_budget *budget;
    // LOGDIR as the hosts see it, for servers older than emit_xspace, which write the profile
    // themselves; NULL: the same path.
    const char *remote_logdir;
    // Of the channels to all targets; no TLS unless tls is set.
    bool tls;
    const char *ca_path, *cert_path, *key_path, *server_name;
    xpl_str_t token;
};

enum xpl_capture_state {
    XPL_CAPTURE_CONNECTING,
    XPL_CAPTURE_READY,      // reached; waits for the common start
    XPL_CAPTURE_COLLECTING, // the host records and prepares its answer
    XPL_CAPTURE_WAITING,    // the answer is ready; others are being received
    XPL_CAPTURE_RECEIVING,
    XPL_CAPTURE_PAUSING, // before a retry
    XPL_CAPTURE_STORED,  // the host's file is in the session; of calls without data: done
    XPL_CAPTURE_IDLE,    // the host had nothing to tell
    XPL_CAPTURE_FAILED,
    XPL_CAPTURE_CANCELLED,
};
// "connecting", "ready", ...; never NULL.
const char *xpl_capture_state_name(enum xpl_capture_state s);
// True for the last four: nothing changes any more.
static inline bool xpl_capture_is_over(enum xpl_capture_state s) {
    return s >= XPL_CAPTURE_STORED;
}

struct xpl_capture_host {
    const char *target; // the plan's
    enum xpl_capture_state state;
    xpl_status_t code; // of a host that has finished without a stored profile
    // The cause and the remedy.  PAUSING: the reason of the retry.  STORED: the profiler's
    // complaint, how many processes there are if not one, or "".
    char reason[XPL_CAPTURE_REASON_SIZE];
    unsigned attempts;                   // calls made
    int64_t start_ns;                    // Unix time of the request to begin
    int64_t answered_ns;                 // Unix time at which its answer was complete, 0 before
    bool shared_dir;                     // the server wrote its file itself
    struct xpl_profile_writer_file file; // of a stored host; the first if there are several
    size_t n_files; // of a stored host: one, or one for each PyTorch process; file.counts.bytes has
                    // the sum of their sizes
};

// All hosts as they are now.
struct xpl_capture_progress {
    const struct xpl_capture_host *hosts;
    size_t n_hosts;
    size_t changed;      // which host it is about; n_hosts when only time has passed
    const char *session; // its name; "" while there is none
    int64_t elapsed_ms;
};
// On the thread of xpl_capture_run; must not block for long.
typedef void (*xpl_capture_progress_fn)(void *ctx, const struct xpl_capture_progress *p);

struct xpl_capture_outcome {
    char session[XPL_SESSION_WRITER_NAME_SIZE]; // "" when there is none
    char *path;                                 // of its directory; NULL when there is none
    int64_t begin_ns, end_ns;                   // of the run, Unix time
    struct xpl_capture_host *hosts;             // as in the plan; `target` as long as the plan
    size_t n_hosts, n_stored, n_idle, n_failed, n_cancelled;
    size_t n_files; // of all stored hosts
};

// Checks the plan without doing anything: INVALID_ARGUMENT names the fault.
xpl_status_t xpl_capture_check(const struct xpl_capture_plan *plan, struct xpl_error *err)
    XPL_NODISCARD;

// The identity of a target: equal for addresses of one program.  Names are compared without case,
// and "localhost", "127.0.0.1" and "[::1]" are one address, because profiler servers listen on all
// addresses of their machine.  The key of an address that only this machine can reach contains the
// machine's name, which may be "".
enum { XPL_CAPTURE_KEY_SIZE = XPL_CAPTURE_MAX_TARGET + 80 };
void xpl_capture_target_key(char out[XPL_CAPTURE_KEY_SIZE], const char *target,
                            const char *machine);
// The keys of all targets, in `arena`: that of target i has the id i + 1.  INVALID_ARGUMENT if two
// targets are one program.
xpl_status_t xpl_capture_target_keys(const struct xpl_capture_plan *p, const char *machine,
                                     struct xpl_arena *arena, struct xpl_intern **ret,
                                     struct xpl_error *err) XPL_NODISCARD;

// Captures.  OK when at least one host was stored (for calls without data: succeeded); the outcome
// names the hosts that were not, with reasons.  Otherwise it makes no session: INVALID_ARGUMENT
// (plan), CANCELLED, UNAVAILABLE (all idle, busy or unreachable), the hosts' code when they all
// failed for the same reason, RESOURCE_EXHAUSTED when the process may not open a descriptor for
// each of hundreds of targets, and errors that prevent writing a session (LOGDIR, disk).  `logdir`
// may be NULL for calls without data.  `cancel` (may be NULL) is read 20 times a second: once it is
// true, the run cancels its calls, which frees their hosts, and removes the stored files.  `ret` is
// filled on failure too, unless the plan is refused; the caller frees it with
// xpl_capture_outcome_fini.
xpl_status_t xpl_capture_run(const struct xpl_capture_plan *plan, const char *logdir,
                             const atomic_bool *cancel, xpl_capture_progress_fn progress, void *ctx,
                             struct xpl_capture_outcome *ret, struct xpl_error *err) XPL_NODISCARD;
// The report of a capture as JSON, the text of capture.json: plan, session, times, and every host
// with its outcome.  Check b->failed.
void xpl_capture_json(const struct xpl_capture_plan *plan, const struct xpl_capture_outcome *o,
                      struct xpl_buf *b);
// Accepts a zero-initialised outcome.
void xpl_capture_outcome_fini(struct xpl_capture_outcome *o);

#endif
