// SPDX-License-Identifier: Apache-2.0
// An answer of trace_viewer@: selects the events of each host, then writes them as JSON or
// protobuf.
#include "analysis/trace/answer/impl.h"
#include "base/arena.h"
#include "base/cleanup.h"

static xpl_status_t select_host(struct writer *w, struct shown_host *h, size_t i,
                                const struct xpl_trace_host *host, struct xpl_error *err) {
    h->host = host;
    h->by_text.arena = w->arena;
    h->first_pid = (uint32_t)(i + 1) * TRC_DEVICES_PER_HOST;
    h->names = xpl_arena_zalloc(w->arena, (size_t)host->trace->n[TRC_STRINGS] * sizeof *h->names);
    if (!h->names) XPL_RETURN_OOM(err, "trace names");
    return trc_select(host->trace, host->name, w->o, w->exec, w->arena, &h->shown, err);
}

xpl_status_t xpl_trace_answer(const struct xpl_trace_host *hosts, size_t n,
                              const struct xpl_trace_options *o, struct xpl_exec *exec,
                              size_t limit, struct xpl_buf *out, struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(limit);
    struct writer w = {.out = out, .arena = &arena, .o = o, .exec = exec};
    w.hosts = xpl_arena_zalloc(&arena, n * sizeof *w.hosts);
    hosts = trc_align(hosts, n, &arena);
    if (!w.hosts || !hosts) XPL_RETURN_OOM(err, "trace hosts");
    size_t missing = 0;
    for (size_t i = 0; i < n; i++) {
        struct xpl_error why = {0};
        const xpl_status_t st = select_host(&w, &w.hosts[w.n], i, &hosts[i], &why);
        if (st == XPL_OK) {
            w.n++;
        } else if (st != XPL_NOT_FOUND || ++missing == n) { // an event is on one host
            if (err) *err = why;
            return st;
        }
    }
    XPL_TRY(o->pb ? trc_put_pb(&w, err) : trc_put_json(&w, err));
    if (out->failed)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED,
                         "trace_viewer@: the answer exceeds the limit of %zu bytes", limit);
    return XPL_OK;
}
