// SPDX-License-Identifier: Apache-2.0
// The daemon's gRPC services: what each needs, and the method tables.
#ifndef XPL_SERVER_GRPC_SERVICES_H_
#define XPL_SERVER_GRPC_SERVICES_H_

#include <protobuf-c/protobuf-c.h>
#include <sys/types.h>

#include "rpc/server.h"
#include "server/engine/cache.h"
#include "server/engine/engine.h"

struct xpl_history;
struct xpl_labels;
struct xpl_metrics;
struct xpl_pool;
struct xpl_store;
struct xpl_server_parts;
struct xpl_server_stats;
struct xpl_statements;

// ---- what methods share (call.c) ----

// The request's message, in `arena`.  False: the call was finished with the reason.
bool xpl_svc_decode(struct xpl_rpc_call *c, const ProtobufCMessageDescriptor *type,
                    xpl_bytes_t request, struct xpl_arena *arena, ProtobufCMessage **ret);
// Finishes the call with a failure, and says when to try again: `retry_ms`, negative for never.
void xpl_svc_fail(struct xpl_rpc_call *c, const struct xpl_error *err, int64_t retry_ms);
// A text as a field of a message that is only packed: protobuf-c's structs have no const.
char *xpl_svc_field(const char *s);
// xpl_rpc_call_cancelled of a call, as the owner of work asks.
bool xpl_svc_is_cancelled(void *call);
// What the client sent as "traceparent"; empty without.
xpl_str_t xpl_svc_traceparent(const struct xpl_rpc_call *c);
// Has `answer` finish the call on a thread of the pool, with a copy of the request, unless the call
// is cancelled before; at once with RESOURCE_EXHAUSTED and `busy` when too many wait.
typedef void (*xpl_svc_answer_fn)(struct xpl_rpc_call *c, xpl_bytes_t request, void *service);
void xpl_svc_later(struct xpl_pool *pool, struct xpl_rpc_call *c, xpl_bytes_t request,
                   xpl_svc_answer_fn answer, void *service, const char *busy);

// ---- AnalysisService (analysis.c) ----

struct xpl_svc_analysis {
    struct xpl_engine *engine;
    struct xpl_catalogue *catalogue;
    struct xpl_cache *cache; // also knows raw requests that were answered before
    struct xpl_metrics *metrics;
    struct xpl_labels *labels; // these three of GetHistory
    struct xpl_history *history;
    struct xpl_pool *pool;
};
enum { XPL_SVC_ANALYSIS_METHODS = 4 };
void xpl_svc_analysis_methods(struct xpl_svc_analysis *s,
                              struct xpl_rpc_method ret[XPL_SVC_ANALYSIS_METHODS]);

// ---- CompareSessions and GetHistory of AnalysisService (compare.c) ----

enum { XPL_SVC_COMPARE_METHODS = 2 };
void xpl_svc_compare_methods(struct xpl_svc_analysis *s,
                             struct xpl_rpc_method ret[XPL_SVC_COMPARE_METHODS]);

// ---- RunStatement of AnalysisService (statement.c) ----

struct xpl_svc_statements {
    struct xpl_statements *statements;
    struct xpl_pool *pool; // whose threads run them
};
enum { XPL_SVC_STATEMENTS_METHODS = 1 };
void xpl_svc_statements_methods(struct xpl_svc_statements *s,
                                struct xpl_rpc_method ret[XPL_SVC_STATEMENTS_METHODS]);

// ---- SessionService (session.c) ----

struct xpl_svc_session;
enum { XPL_SVC_SESSION_METHODS = 3 };
// NULL when out of memory.
struct xpl_svc_session *xpl_svc_session_new(struct xpl_engine *engine,
                                            struct xpl_catalogue *catalogue,
                                            struct xpl_labels *labels);
void xpl_svc_session_free(struct xpl_svc_session *s);
void xpl_svc_session_methods(struct xpl_svc_session *s,
                             struct xpl_rpc_method ret[XPL_SVC_SESSION_METHODS]);
// There is a new snapshot: sends the watchers what changed between the two.  Any thread, one at a
// time.
void xpl_svc_session_changed(struct xpl_svc_session *s, const struct xpl_snapshot *before,
                             const struct xpl_snapshot *after);
// Ends all watches with UNAVAILABLE: before the server shuts down.
void xpl_svc_session_stop(struct xpl_svc_session *s);

// ---- LabelSession of SessionService (label.c) ----

struct xpl_svc_labels {
    struct xpl_labels *labels;
    struct xpl_catalogue *catalogue;
    struct xpl_pool *pool; // on whose threads state.db is written
};
enum { XPL_SVC_LABELS_METHODS = 1 };
void xpl_svc_labels_methods(struct xpl_svc_labels *s,
                            struct xpl_rpc_method ret[XPL_SVC_LABELS_METHODS]);
// There is a new snapshot: labels of sessions that are gone go, too, on a thread of the pool.
void xpl_svc_labels_changed(struct xpl_svc_labels *s);

// ---- CaptureService (capture.c) ----

struct xpl_capture_jobs;
struct xpl_schedules;
struct xpl_svc_capture;
enum { XPL_SVC_CAPTURE_METHODS = 6 };
// Everything is borrowed.  NULL when out of memory.
struct xpl_svc_capture *xpl_svc_capture_new(struct xpl_capture_jobs *captures,
                                            struct xpl_history *history,
                                            struct xpl_schedules *schedules);
// After the servers using it have been freed.  NULL is fine.
void xpl_svc_capture_free(struct xpl_svc_capture *s);
// Tries to take the history while another daemon has it, and logs its notices; the loop calls it a
// few times a second.  Never waits.
void xpl_svc_capture_tick(struct xpl_svc_capture *s);
void xpl_svc_capture_methods(struct xpl_svc_capture *s,
                             struct xpl_rpc_method ret[XPL_SVC_CAPTURE_METHODS]);

// ---- ImportSession and DeleteSession of SessionService (import.c) ----

struct xpl_svc_import;
enum { XPL_SVC_IMPORT_METHODS = 2 };
struct xpl_svc_import_options {
    const char *logdir;                // borrowed, as the parts
    struct xpl_session_remote *remote; // where sessions go; NULL: to `logdir`
    struct xpl_removals *removals;     // of DeleteSession
    const char *dir; // where uploads are kept until they are whole; made when missing
    bool allow_delete;
    uint64_t max_bytes;   // of a compressed profile's XSpace, which is checked in memory
    uint64_t idle_ms;     // an import that does not come on for so long is ended
    uint64_t limit_bytes; // of uploads that are not complete
};
// NULL when out of memory.
struct xpl_svc_import *xpl_svc_import_new(struct xpl_capture_jobs *captures,
                                          struct xpl_catalogue *catalogue,
                                          const struct xpl_svc_import_options *o);
// After the servers using it have been freed.  NULL is fine.
void xpl_svc_import_free(struct xpl_svc_import *s);
// Ends imports that do not come on; the loop calls it a few times a second.
void xpl_svc_import_tick(struct xpl_svc_import *s);
void xpl_svc_import_methods(struct xpl_svc_import *s,
                            struct xpl_rpc_method ret[XPL_SVC_IMPORT_METHODS]);

// ---- tensorflow.ProfileAnalysis (profile_analysis.c) ----

struct xpl_svc_profile_analysis {
    struct xpl_engine *engine;
    struct xpl_catalogue *catalogue;
    struct xpl_capture_jobs *captures;
    const char *logdir;
};
enum { XPL_SVC_PROFILE_ANALYSIS_METHODS = 3 };
void xpl_svc_profile_analysis_methods(struct xpl_svc_profile_analysis *s,
                                      struct xpl_rpc_method ret[XPL_SVC_PROFILE_ANALYSIS_METHODS]);

// ---- ServerService (server.c) ----

struct xpl_svc_fleet {
    struct xpl_store *store;
    struct xpl_pool *pool; // whose threads ask the database
};
enum { XPL_SVC_FLEET_METHODS = 1 };
void xpl_svc_fleet_methods(struct xpl_svc_fleet *s,
                           struct xpl_rpc_method ret[XPL_SVC_FLEET_METHODS]);

enum { XPL_SVC_SERVER_METHODS = 1 };
void xpl_svc_server_methods(struct xpl_server_parts *p,
                            struct xpl_rpc_method ret[XPL_SVC_SERVER_METHODS]);
// xplaned.v1.ServerStats in `arena`; NULL when out of memory.  Any thread.
const ProtobufCMessage *xpl_svc_server_stats(const struct xpl_server_stats *s,
                                             struct xpl_arena *arena);

// ---- XprofAnalysisWorkerService (worker.c) ----

struct xpl_svc_worker;
enum { XPL_SVC_WORKER_METHODS = 1 };
struct xpl_svc_worker_options {
    const char *logdir, *dir, *group, *fallback; // as configured; "" for none
    struct xpl_metrics *metrics;
};
// Makes the directory for files that aggregators read.  FAILED_PRECONDITION with a sentence when
// that cannot be.
xpl_status_t xpl_svc_worker_new(struct xpl_engine *engine, struct xpl_catalogue *catalogue,
                                const struct xpl_svc_worker_options *o, struct xpl_svc_worker **ret,
                                struct xpl_error *err) XPL_NODISCARD;
void xpl_svc_worker_free(struct xpl_svc_worker *w);
void xpl_svc_worker_methods(struct xpl_svc_worker *w,
                            struct xpl_rpc_method ret[XPL_SVC_WORKER_METHODS]);
// The group of --worker-group, or (gid_t)-1.
gid_t xpl_svc_worker_group(const struct xpl_svc_worker *w);
// Removes files that nobody reads any more (10 minutes old).  The loop calls it now and then.
void xpl_svc_worker_tidy(struct xpl_svc_worker *w);

#endif
