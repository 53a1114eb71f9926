// SPDX-License-Identifier: Apache-2.0
// One answer from those of several sessions: each session is asked for the same tool, as any client
// asks, so that the answers are found, shared and kept as all are; then one function makes the
// whole.
#ifndef XPL_SERVER_ENGINE_JOINT_JOINT_H_
#define XPL_SERVER_ENGINE_JOINT_JOINT_H_

#include "base/buf.h"
#include "server/engine/engine.h"

// At most, of one request; and the hosts of all of them: requests are resolved one after the other.
enum { XPL_JOINT_SESSIONS = 1024, XPL_JOINT_HOSTS = 1 << 20 };

struct xpl_joint;

struct xpl_joint_outcome {
    xpl_status_t code;
    struct xpl_error err; // when code is not OK
    int64_t retry_ms;     // negative: none
    struct xpl_buf *out;  // when OK; the callback may take its bytes
    xpl_bytes_t warnings; // of all answers, as xpl_tool_data_new takes them: SESSION, "HOST: text"
};

struct xpl_joint_request {
    const char *tool;
    const xpl_str_t *sessions; // borrowed until xpl_joint_begin returns
    size_t n;
    size_t n_needed;
    size_t limit;          // bytes of the answer
    xpl_str_t traceparent; // as the client sent it, or empty; borrowed as the sessions
    // On a worker, when all have answered; `answers` are in the order of the sessions.  `exec` is
    // cancelled when no client waits, or --request-timeout is over.
    xpl_status_t (*render)(void *arg, const xpl_bytes_t *answers, struct xpl_exec *exec,
                           struct xpl_buf *out, struct xpl_error *err);
    // NULL: the first session that fails ends all.  Else one that cannot be read is reported, one
    // call at a time, and its answer is empty; unless it is among the first n_needed, if that is
    // not 0: only these have warnings then.
    void (*failed)(void *arg, size_t i, const struct xpl_error *err);
    // Exactly once, on a worker, or from xpl_joint_begin when the daemon is busy.
    void (*done)(void *arg, const struct xpl_joint_outcome *o);
    void *arg; // of all three
};

// Begins.  With `failed` also when sessions cannot be read, unless none can.  NOT_FOUND,
// INVALID_ARGUMENT, FAILED_PRECONDITION, RESOURCE_EXHAUSTED: nothing was begun, and `done` is not
// called.  *ret is set before `done` can be called; it is given back by xpl_joint_unref.
xpl_status_t xpl_joint_begin(struct xpl_engine *e, const struct xpl_joint_request *q,
                             struct xpl_joint **ret, struct xpl_error *err) XPL_NODISCARD;
// Nobody waits any more: `done` is called with CANCELLED soon, if it was not.  Any thread.
void xpl_joint_cancel(struct xpl_joint *j);
// NULL is fine.
void xpl_joint_unref(struct xpl_joint *j);

#endif
