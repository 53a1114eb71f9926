// SPDX-License-Identifier: Apache-2.0
// Metrics over sessions (docs/history.md), for gRPC and HTTP.
#ifndef XPL_SERVER_ENGINE_JOINT_HISTORY_H_
#define XPL_SERVER_ENGINE_JOINT_HISTORY_H_

#include "server/engine/joint/joint.h"
#include "storage/store/history.h"

struct xpl_arena;
struct xpl_labels;

enum { XPL_FOLLOW_LAST = 100 }; // sessions, where nothing else is asked for

// Which sessions: those that all of it is true of.
struct xpl_follow_query {
    xpl_str_t label;      // empty: any
    xpl_str_t directory;  // relative to LOGDIR; empty: any
    uint64_t schedule_id; // 0: any
    int64_t since_ms;     // captured then or later
    uint64_t last;        // at most so many, the newest; 0: XPL_FOLLOW_LAST
};
struct xpl_follow_sources {
    struct xpl_catalogue *catalogue;
    struct xpl_labels *labels;   // NULL: none
    struct xpl_history *history; // which has the sessions of schedules
};
struct xpl_follow_session {
    xpl_str_t name;
    int64_t captured_ms;
};
// Sessions with profiles, in `arena`.  NOT_FOUND: there is no such session, schedule or label.  May
// wait for a disk.
xpl_status_t xpl_follow_select(const struct xpl_follow_sources *s, const struct xpl_follow_query *q,
                               struct xpl_arena *arena, struct xpl_follow_session **ret,
                               size_t *ret_n, struct xpl_error *err) XPL_NODISCARD;

// Whether the query says more than a time and a number.
bool xpl_follow_is_selected(const struct xpl_follow_query *q);

struct xpl_follow_request {
    const struct xpl_follow_session *sessions; // borrowed during the call, as the metrics
    size_t n;
    const xpl_str_t *metrics;
    size_t n_metrics;
    bool selected;         // by a label, a schedule or a directory: the sessions belong together
    size_t memory_limit;   // bytes of what is read, and of the answer
    xpl_str_t traceparent; // as the client sent it, or empty; borrowed during the call
    // As in xpl_joint_request; the bytes are JSON (docs/cli-json.md).
    void (*done)(void *arg, const struct xpl_joint_outcome *o);
    void *arg;
};
// As xpl_joint_begin.  Sessions that cannot be read are told in the answer.
xpl_status_t xpl_follow_begin(struct xpl_engine *e, const struct xpl_follow_request *q,
                              struct xpl_joint **ret, struct xpl_error *err) XPL_NODISCARD;

#endif
