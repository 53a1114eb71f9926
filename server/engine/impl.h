// What the files of the engine share; nobody else includes it.
#ifndef XPL_SERVER_ENGINE_IMPL_H_
#define XPL_SERVER_ENGINE_IMPL_H_

#include <pthread.h>
#include <stdatomic.h>

#include "analysis/opstats/combine/combine.h"
#include "base/exec.h"
#include "server/engine/engine.h"
#include "server/engine/pool.h"
#include "storage/store/profile_id.h"

struct xpl_engine {
    struct xpl_catalogue *catalogue;
    struct xpl_store *store;
    struct xpl_identity *identity;
    struct xpl_pool *pool;
    struct xpl_store_writer *writer;
    struct xpl_cache *cache;
    struct xpl_traces *traces;
    atomic_size_t memory_limit, memory_total, in_flight; // bytes
    atomic_size_t delivered; // of in_flight: of jobs that go on after their answer
    atomic_ullong request_timeout_ns;
    pthread_mutex_t mu;       // jobs, tickets, conversions
    pthread_cond_t converted; // a conversion ended
    struct xpl_job *jobs;
    struct xpl_conversion *conversions;
    atomic_bool stopping;
    atomic_ullong from_memory, from_store, computed, joined, prefetched, refused, cancelled,
        timed_out, converted_ok, conversions_failed, bytes_converted;
};

// ---- products (engine_products.c) ----

// One host's OpStats, or why there are none.  Immutable.
struct xpl_host_product {
    struct xpl_object object;
    xpl_status_t status; // OK; DATA_LOSS, or why the file cannot be opened
    struct xpl_error err;
    struct xpl_arena arena;
    const struct xpl_opstats *stats; // NULL when not OK, or packed:
    uint8_t *packed; // encoded, a fraction of the size; of many hosts in one session
    size_t packed_len;
    struct xpl_fingerprint print; // of the bytes it was made from
    bool stored;                  // it came from the store
    bool settled;                 // a later change of the file would show: it may be kept
};

// How a product was made: options of the conversion, as bits.
enum { XPL_VARIANT_CPU = 1, XPL_VARIANT_ALL_STEPS = 2, XPL_N_VARIANTS = 4 };

// Who wants a product, and how to tell that nobody does any more.
struct xpl_build_context {
    struct xpl_exec *exec;
    bool (*cancelled)(void *arg);
    void *arg;
    bool fresh;    // neither memory nor store will do
    bool prefetch; // gives way to requests, and leaves memory to what was asked for
    bool packed;   // a packed product will do
    // Asked before anything is made that the store has not got; NULL: yes.
    bool (*admit)(void *arg);
    // Gives the outcome to all who wait, before work that goes on for later questions.  NULL: all
    // there is to do is done first.
    void (*deliver)(void *arg, struct xpl_outcome *o);
};

// `cancelled` of work that nobody waits for; arg is the engine.
bool xpl_engine_is_stopping(void *arg);

// From memory, from the store, or by converting the host.  *ret is referenced for the caller; its
// status may tell that the file is broken.  It is packed only if that will do.  Fails with ABORTED,
// RESOURCE_EXHAUSTED, CANCELLED... `stage_us` is added to, atomically.
xpl_status_t xpl_product_get(struct xpl_engine *e, struct xpl_snapshot *snapshot,
                             const struct xpl_host *h, unsigned variant,
                             const struct xpl_build_context *want, _Atomic uint64_t *stage_us,
                             struct xpl_host_product **ret, struct xpl_error *err) XPL_NODISCARD;
// The OpStats of a packed product, in `arena`.
xpl_status_t xpl_product_unpack(const struct xpl_host_product *p, struct xpl_arena *arena,
                                const struct xpl_opstats **ret, struct xpl_error *err)
    XPL_NODISCARD;
// The product in memory, referenced, or NULL.
struct xpl_host_product *xpl_product_peek(struct xpl_engine *e, const struct xpl_fingerprint *print,
                                          unsigned variant);
// Adds a field `warnings` of ToolData.
void xpl_answer_warn(struct xpl_buf *w, xpl_str_t host, xpl_str_t text);
// For one host, the answer of a tool that needs no more (xpl_bytes_answer), appended to `out`.
xpl_status_t xpl_product_host_answer(struct xpl_engine *e, const struct xpl_tool *tool,
                                     const struct xpl_snapshot *snapshot, const struct xpl_host *h,
                                     const struct xpl_build_context *want,
                                     _Atomic uint64_t *stage_us, struct xpl_buf *out,
                                     struct xpl_fingerprint *ret_print, bool *ret_settled,
                                     struct xpl_error *err) XPL_NODISCARD;
// True when any host of the session has a device plane; reads plane names at most.
bool xpl_product_session_has_device(struct xpl_engine *e, const struct xpl_snapshot *snapshot,
                                    const struct xpl_session *s);
// The id of a host's profile, when it is known, or when the store may know the profile: then the
// file is hashed.  False when the host is not the one any more that the snapshot saw.
bool xpl_product_profile_id(struct xpl_engine *e, const struct xpl_snapshot *snapshot,
                            const struct xpl_host *h, const struct xpl_build_context *want,
                            struct xpl_profile_id *ret);
// Whether the store has the host's product for our own clients.
bool xpl_product_is_stored(struct xpl_engine *e, const struct xpl_fingerprint *print);
// True while the host is being converted.
bool xpl_product_running(struct xpl_engine *e, const struct xpl_fingerprint *print);

// ---- answers (engine_answers.c) ----

xpl_str_t xpl_request_options_text(const struct xpl_request *q, struct xpl_arena *arena);
// Takes `b` (xpl_sys_alloc) over in every case; copies the warnings.  NULL when out of memory.
struct xpl_tool_data *xpl_answer_new(uint8_t *b, size_t n, const char *content_type,
                                     xpl_bytes_t warnings);
// Makes the answer of `q`: from the store, or from products.
void xpl_answer_make(struct xpl_engine *e, const struct xpl_request *q,
                     const struct xpl_build_context *want, struct xpl_outcome *ret);

#endif
