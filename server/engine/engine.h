// SPDX-License-Identifier: Apache-2.0
// Requests and answers: finds what was asked for in memory, in the store, or makes it, once.
//
// A request is resolved against the newest snapshot of the catalogue, looked up in memory
// (xpl_engine_lookup, no waiting), and else submitted: equal requests share one job, and jobs share
// products of the same host.  Workers call the waiters back.
#ifndef XPL_SERVER_ENGINE_ENGINE_H_
#define XPL_SERVER_ENGINE_ENGINE_H_

#include "server/engine/answers.h"
#include "server/engine/request.h"
#include "storage/store/store.h"

struct xpl_engine;
struct xpl_identity;
struct xpl_pool;
struct xpl_store_writer;
struct xpl_index_files;

struct xpl_engine_options {
    size_t memory_limit; // bytes one request may use
    size_t memory_total; // bytes all together
    uint64_t request_timeout_ns;
};

// The parts are borrowed and must outlive the engine.
struct xpl_engine_parts {
    struct xpl_catalogue *catalogue;
    struct xpl_store *store;
    struct xpl_identity *identity;
    struct xpl_pool *pool;
    struct xpl_store_writer *writer;
    struct xpl_cache *cache;
    struct xpl_index_files *files;
    const struct xpl_front *front; // of answers.h
};

// NULL when out of memory.
struct xpl_engine *xpl_engine_new(const struct xpl_engine_parts *parts,
                                  const struct xpl_engine_options *o);
// No job may be running.  NULL is fine.
void xpl_engine_free(struct xpl_engine *e);
void xpl_engine_set_options(struct xpl_engine *e, const struct xpl_engine_options *o);
// Bytes that one request may use.
size_t xpl_engine_memory_limit(const struct xpl_engine *e);
// When a request that began at `since_ns` (xpl_clock_ns) has taken too long.
uint64_t xpl_engine_deadline_ns(const struct xpl_engine *e, uint64_t since_ns);
// The outcome of such a request.
#define XPL_ENGINE_LATE "the request took longer than --request-timeout"

// Resolves a client's words (request.h).
xpl_status_t xpl_engine_resolve(struct xpl_engine *e, const struct xpl_request_words *words,
                                struct xpl_request **ret, struct xpl_error *err) XPL_NODISCARD;

// For people: "memory", "store", "computed", "joined"; "" on failure.
const char *xpl_outcome_source(const struct xpl_outcome *o);

// The answer in memory, referenced for the caller, or NULL.
struct xpl_tool_data *xpl_engine_lookup(struct xpl_engine *e, const struct xpl_request *q);

struct xpl_ticket;
// Takes `q` over in every case.  done(arg, outcome) is called exactly once: from a worker, or from
// here when the request cannot even be queued.  *ret (set before any worker can call back) is good
// for one xpl_engine_cancel, and must be given back by xpl_ticket_unref.
void xpl_engine_submit(struct xpl_engine *e, struct xpl_request *q,
                       void (*done)(void *arg, const struct xpl_outcome *o), void *arg,
                       struct xpl_ticket **ret);
// Answers on the calling thread, which is a worker's: from memory, from the store, or by making it.
// ret->answer is referenced for the caller.
void xpl_engine_answer(struct xpl_engine *e, struct xpl_request *q, struct xpl_exec *exec,
                       struct xpl_work_owner owner, struct xpl_outcome *ret);
// The asker is gone: done is called with CANCELLED soon, and the work stops unless others wait for
// it.
void xpl_engine_cancel(struct xpl_ticket *t);
void xpl_ticket_unref(struct xpl_ticket *t);
// Counts bytes to --memory-total that somebody keeps between jobs; false when they are too many.
// xpl_engine_release gives them back.  Any thread.
bool xpl_engine_hold(struct xpl_engine *e, size_t bytes) XPL_NODISCARD;
void xpl_engine_release(struct xpl_engine *e, size_t bytes);
// Gives up jobs that run for longer than the limit; the loop calls it a few times a second.
void xpl_engine_sweep(struct xpl_engine *e);

// ---- ahead of requests ----

// Converts a host for the store, on the calling thread.  False when there was nothing to do: also
// when the bytes were known, of a copy, and are found from now on.  Stops when a request needs the
// same host, which then starts over by itself.
bool xpl_engine_prefetch(struct xpl_engine *e, struct xpl_snapshot *snapshot,
                         const struct xpl_session *s, const struct xpl_host *h);
// Whether a host's OpStats and time breakdown are there, are being made, or cannot be made.
bool xpl_engine_knows(struct xpl_engine *e, const struct xpl_host *h);
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
void xpl_engine_host_status(struct xpl_engine *e, const struct xpl_host *h,
                            struct xpl_host_status *ret);

// For pages that show what is in a profile without asking a tool.
struct xpl_product_manager *xpl_engine_get_products(struct xpl_engine *e);

struct xpl_engine_stats {
    uint64_t from_memory, from_store, computed, joined, prefetched, refused, cancelled, timed_out,
        conversions, conversions_failed, imports, bytes_converted, in_flight_bytes, memory_total;
};
void xpl_engine_get_stats(struct xpl_engine *e, struct xpl_engine_stats *ret);
// A warm answer was given without a lookup (the raw request was known).
void xpl_engine_count_memory(struct xpl_engine *e);

#endif
