// Trace indexes of the daemon: built once per profile, kept as files below DIR/traces, mapped while
// they are asked, and evicted by bytes, the least recently used first.
//
// A file is named by the fingerprint of the profile and the versions of index and analysis; it is
// written under a name of its own (several daemons may share DIR) and renamed.  It is not synced:
// what a power cut leaves of it is found out by its checksums, removed and built again, as any
// damage is.  A fresh index answers from memory at once; a thread of its own writes it.  Without a
// directory to write to, the last indexes stay in memory.
//
// Who asks first need not wait for the index: the levels that his answer shows are found first, he
// gets his answer, and then the same worker goes on.
#ifndef XPL_SERVER_ENGINE_TRACES_H_
#define XPL_SERVER_ENGINE_TRACES_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/trace/trace.h"
#include "base/status.h"
#include "storage/sessions/source.h"

struct xpl_engine;
struct xpl_exec;
struct xpl_request;
struct xpl_traces;
struct xpl_build_context;

// `dir` is DIR, in which "traces" is made; NULL or "": memory alone.  NULL when out of memory.
struct xpl_traces *xpl_traces_new(const char *dir, uint64_t limit_bytes);
// Writes what is not written yet.  Nobody may hold an index any more.  NULL is fine.
void xpl_traces_free(struct xpl_traces *t);

// An index somebody works with.
struct xpl_trace_handle;

// The index of a profile: from memory, from its file, or built.  Requests for the same profile wait
// for one build.  `fresh`: neither memory nor file will do.  Any thread.
//
// With `first`, an index that must be built may be unfinished: it answers that and nothing else.
// All others wait until xpl_traces_finish; put before that, it is given up.
xpl_status_t xpl_traces_get(struct xpl_traces *t, const struct xpl_source *profile,
                            struct xpl_exec *exec, size_t memory_limit, bool fresh,
                            const struct xpl_trace_options *first, struct xpl_trace_handle **ret,
                            struct xpl_error *err) XPL_NODISCARD;
bool xpl_trace_held_unfinished(const struct xpl_trace_handle *h);
void xpl_traces_finish(struct xpl_traces *t, struct xpl_trace_handle *h,
                       const struct xpl_source *profile, struct xpl_exec *exec);
const struct xpl_trace *xpl_trace_held_get(const struct xpl_trace_handle *h);
bool xpl_trace_held_built(const struct xpl_trace_handle *h); // it did not come from a file
// Its file was cut while it was mapped: whatever was read from it since says nothing.
bool xpl_trace_held_torn(const struct xpl_trace_handle *h);
// `damaged`: it turned out so; its file is removed.
void xpl_trace_held_put(struct xpl_traces *t, struct xpl_trace_handle *h, bool damaged);

// Answers a question about traces (traces_answer.c).  Broken hosts are left out and told in
// `warnings`, unless none is left or they were asked for by name.  *ret_keep: the answer is that of
// the files the question saw.  *ret_rest: what is left to do once the asker has the answer, by
// xpl_traces_do_rest; nothing unless want->deliver can give it.
struct xpl_traces_rest {
    struct xpl_trace_handle *held; // NULL: nothing
    struct xpl_source *source;
};
xpl_status_t xpl_traces_answer(struct xpl_engine *e, const struct xpl_request *q,
                               const struct xpl_build_context *want, uint64_t *stage_us,
                               struct xpl_buf *out, struct xpl_buf *warnings, bool *ret_keep,
                               bool *ret_stored, struct xpl_traces_rest *ret_rest,
                               struct xpl_error *err) XPL_NODISCARD;
void xpl_traces_do_rest(struct xpl_engine *e, struct xpl_exec *exec, struct xpl_traces_rest *rest);

#endif
