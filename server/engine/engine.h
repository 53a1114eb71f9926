// Questions and answers: finds what was asked for in memory, in the store, or makes it, once.
//
// A question is resolved against the newest snapshot of the catalogue, looked up in memory
// (xpl_engine_lookup, no waiting), and else submitted: equal questions share one job, and jobs
// share conversions of the same host.  Workers call the waiters back.
#ifndef XPL_SERVER_ENGINE_ENGINE_H_
#define XPL_SERVER_ENGINE_ENGINE_H_

#include "analysis/tools/tool.h"
#include "base/arena.h"
#include "rpc/bytes.h"
#include "server/engine/cache.h"
#include "storage/sessions/catalogue.h"
#include "storage/store/store.h"

struct xpl_engine;
struct xpl_pool;
struct xpl_store_writer;

struct xpl_engine_options {
    size_t memory_limit; // bytes one request may use
    size_t memory_total; // bytes all together
    uint64_t request_timeout_ns;
};

// The parts are borrowed and must outlive the engine.  NULL when out of memory.
struct xpl_engine *xpl_engine_new(struct xpl_catalogue *catalogue, struct xpl_store *store,
                                  struct xpl_pool *pool, struct xpl_store_writer *writer,
                                  struct xpl_cache *cache, const struct xpl_engine_options *o);
// No job may be running.  NULL is fine.
void xpl_engine_free(struct xpl_engine *e);
void xpl_engine_set_options(struct xpl_engine *e, const struct xpl_engine_options *o);
// Whose ids profiles have; borrowed.  Before the first question.
struct xpl_identity;
void xpl_engine_set_identity(struct xpl_engine *e, struct xpl_identity *i);
// Where trace indexes are kept; borrowed.  Before the first question.
struct xpl_traces;
void xpl_engine_set_traces(struct xpl_engine *e, struct xpl_traces *t);

// ---- questions ----

struct xpl_request {
    struct xpl_arena arena; // holds all below
    struct xpl_snapshot *snapshot;
    const struct xpl_session *session;
    const struct xpl_host *const *hosts; // chosen ones, by name
    size_t n_hosts;
    bool all_hosts, by_name;     // no choice was made; hosts were asked for by name
    const struct xpl_tool *tool; // without `render`: the OpStats themselves
    struct xpl_tool_options opt;
    bool all_steps;  // for an aggregator: nothing dropped from the step table
    bool fresh;      // use_saved_result=false: recompute
    xpl_bytes_t key; // equal questions on equal files have equal keys
};

// GetOpStats asks for this instead of a tool; an XProf aggregator's worker for the other one.
#define XPL_OP_STATS        XPL_STR("")
#define XPL_WORKER_OP_STATS XPL_STR("\x01worker")

// Checks and resolves names.  `strict`: unknown options are refused, else ignored.  NOT_FOUND,
// INVALID_ARGUMENT, FAILED_PRECONDITION with a sentence.  *ret is freed by xpl_request_free or
// handed to xpl_engine_submit.
xpl_status_t xpl_engine_resolve(struct xpl_engine *e, xpl_str_t session, const xpl_str_t *hosts,
                                size_t n_hosts, xpl_str_t tool, const struct xpl_option *options,
                                size_t n_options, bool strict, struct xpl_request **ret,
                                struct xpl_error *err) XPL_NODISCARD;
void xpl_request_free(struct xpl_request *q);

// ---- answers ----

enum xpl_answer_source { XPL_FROM_MEMORY = 1, XPL_FROM_STORE = 2, XPL_COMPUTED = 3 };

struct xpl_tool_data {
    struct xpl_object object;
    struct xpl_rpc_blob *blob;
    const char *content_type;
    xpl_bytes_t warnings;  // serialized fields `warnings` of ToolData: what is left out and why
    xpl_bytes_t warm_head; // all fields of ToolData up to the bytes of `data`, from memory
    uint8_t text[];        // warnings and head
};

enum xpl_stage {
    XPL_STAGE_QUEUE,
    XPL_STAGE_OPEN,
    XPL_STAGE_CONVERT,
    XPL_STAGE_RENDER,
    XPL_STAGE_STORE,
    XPL_N_STAGES
};
extern const char *const xpl_stage_names[XPL_N_STAGES];

struct xpl_outcome {
    xpl_status_t code;
    struct xpl_error err;         // when code is not OK
    int64_t retry_ms;             // negative: none
    struct xpl_tool_data *answer; // when OK; borrowed during the callback
    enum xpl_answer_source source;
    bool kept; // the engine gives it again until the catalogue changes: else a file may be another
               // by then, and the answer holds for this asker alone
    uint64_t stage_us[XPL_N_STAGES]; // 0: did not happen
    bool joined;                     // shared another's job
};

// For people: "memory", "store", "computed", "joined"; "" on failure.
const char *xpl_outcome_source(const struct xpl_outcome *o);

// The answer in memory, referenced for the caller, or NULL.
struct xpl_tool_data *xpl_engine_lookup(struct xpl_engine *e, const struct xpl_request *q);

struct xpl_ticket;
// Takes `q` over in every case.  done(arg, outcome) is called exactly once: from a worker, or from
// here when the question cannot even be queued.  *ret (set before any worker can call back) is good
// for one xpl_engine_cancel, and must be given back by xpl_ticket_unref.
void xpl_engine_submit(struct xpl_engine *e, struct xpl_request *q,
                       void (*done)(void *arg, const struct xpl_outcome *o), void *arg,
                       struct xpl_ticket **ret);
// The asker is gone: done is called with CANCELLED soon, and the work stops unless others wait for
// it.
void xpl_engine_cancel(struct xpl_ticket *t);
void xpl_ticket_unref(struct xpl_ticket *t);
// Gives up jobs that run for longer than the limit; the loop calls it a few times a second.
void xpl_engine_sweep(struct xpl_engine *e);

// ---- ahead of questions ----

// Converts a host for the store, on the calling thread, in `exec`.  False when there was nothing
// to do.  Stops when a request wants the same host, which then starts over by itself.
bool xpl_engine_prefetch(struct xpl_engine *e, struct xpl_snapshot *snapshot,
                         const struct xpl_session *s, const struct xpl_host *h);
bool xpl_engine_knows(struct xpl_engine *e, const struct xpl_session *s, const struct xpl_host *h);
// Stops that, and whatever else nobody waits for; for good.
void xpl_engine_stop_background(struct xpl_engine *e);

enum xpl_host_state {
    XPL_HOST_NEW = 1,
    XPL_HOST_CONVERTING = 2,
    XPL_HOST_STORED = 3,
    XPL_HOST_BROKEN = 4
};
struct xpl_host_status {
    enum xpl_host_state state;
    char error[256]; // BROKEN: why
};
void xpl_engine_host_status(struct xpl_engine *e, const struct xpl_session *s,
                            const struct xpl_host *h, struct xpl_host_status *ret);

struct xpl_engine_stats {
    uint64_t from_memory, from_store, computed, joined, prefetched, refused, cancelled, timed_out,
        conversions, conversions_failed, bytes_converted, in_flight_bytes, memory_total;
};
void xpl_engine_get_stats(struct xpl_engine *e, struct xpl_engine_stats *ret);
// A warm answer was given without asking peek (the raw request was known).
void xpl_engine_count_memory(struct xpl_engine *e);

#endif
