// SPDX-License-Identifier: Apache-2.0
// Devices, rows, names and arguments of an answer, for both of its forms (XProf:
// convert/trace_viewer/trace_events_to_json.h, trace_options.cc).

#include "analysis/grouping/flows.h"
#include "analysis/trace/answer/impl.h"
#include "base/arena.h"
#include "base/exec.h"
#include "base/vec.h"

enum { CANCEL_EVERY = 1024 };

xpl_status_t trc_check_cancelled(struct writer *w, struct xpl_error *err) {
    if (w->n_checks++ % CANCEL_EVERY == 0 && xpl_exec_cancelled(w->exec))
        XPL_RETURN_ERROR(err, XPL_CANCELLED, "trace_viewer@: cancelled");
    return XPL_OK;
}

xpl_status_t trc_event_values(struct writer *w, struct shown_host *h, const struct trc_event *e,
                              size_t *ret_n, struct xpl_error *err) {
    if (!h->values) {
        h->values = xpl_arena_array(w->arena, TRC_MAX_ARGS, sizeof *h->values);
        if (!h->values) XPL_RETURN_OOM(err, "trace arguments");
    }
    return trc_read_args(h->host->trace, h->host->profile, e, &h->by_text, h->values, ret_n, err);
}

// tsl/profiler/lib/context_types.cc
const char *trc_category_name(unsigned category) {
    static const char *const names[] = {
        [XPL_CONTEXT_TF_EXECUTOR] = "tf_exec",
        [XPL_CONTEXT_TFRT_EXECUTOR] = "tfrt_exec",
        [XPL_CONTEXT_SHARED_BATCH_SCHEDULER] = "batch_sched",
        [XPL_CONTEXT_PJRT] = "PjRt",
        [XPL_CONTEXT_ADAPTIVE_SHARED_BATCH_SCHEDULER] = "as_batch_sched",
        [XPL_CONTEXT_TFRT_TPU_RUNTIME] = "tfrt_rt",
        [XPL_CONTEXT_TPU_EMBEDDING_ENGINE] = "tpu_embed",
        [XPL_CONTEXT_GPU_LAUNCH] = "gpu_launch",
        [XPL_CONTEXT_BATCHER] = "batcher",
        [XPL_CONTEXT_TPU_STREAM] = "tpu_stream",
        [XPL_CONTEXT_TPU_LAUNCH] = "tpu_launch",
        [XPL_CONTEXT_PATHWAYS_EXECUTOR] = "pathways_exec",
        [XPL_CONTEXT_PJRT_LIBRARY_CALL] = "pjrt_library_call",
        [XPL_CONTEXT_THREADPOOL_EVENT] = "threadpool_event",
        [XPL_CONTEXT_JAX_SERVING_EXECUTOR] = "jax_exec",
        [XPL_CONTEXT_SC_OFFLOAD] = "sc_offload",
    };
    return category < sizeof names / sizeof *names && names[category] ? names[category] : "";
}

// ---- hosts ----

// Hosts whose begins are further apart begin together: pages ask for an event by its begin as a
// double, which has each ps of 2.5 hours.
#define FARTHEST_NS (INT64_C(2) * 3600 * 1000000000)

struct xpl_trace_host *trc_align(const struct xpl_trace_host *hosts, size_t n,
                                 struct xpl_arena *arena) {
    struct xpl_trace_host *const v = xpl_arena_array(arena, n, sizeof *v);
    struct xpl_trace *const traces = xpl_arena_array(arena, n, sizeof *traces);
    int64_t latest = 0, first;
    if (!v || !traces) return NULL;
    for (size_t i = 0; i < n; i++)
        if (hosts[i].trace->footer->start_ns > latest) latest = hosts[i].trace->footer->start_ns;
    first = latest;
    for (size_t i = 0; i < n; i++) {
        const int64_t start = hosts[i].trace->footer->start_ns;
        if (start > 0 && start < first && latest - start <= FARTHEST_NS) first = start;
    }
    for (size_t i = 0; i < n; i++) {
        const int64_t start = hosts[i].trace->footer->start_ns;
        v[i] = hosts[i];
        traces[i] = *hosts[i].trace;
        traces[i].later_ps = start > first ? (uint64_t)(start - first) * 1000 : 0;
        v[i].trace = &traces[i];
    }
    return v;
}

// ---- devices and rows ----

static int by_pid(const void *pa, const void *pb) {
    const struct device_line *const a = pa, *const b = pb;
    if (a->pid != b->pid) return a->pid < b->pid ? -1 : 1;
    return (a->h > b->h) - (a->h < b->h);
}

static int by_row_id(const void *pa, const void *pb) {
    const struct trc_resource *const a = pa, *const b = pb;
    return (a->id > b->id) - (a->id < b->id);
}

// The rows of each device side by side: those of one end where those of the next begin.
static bool group_rows(struct writer *w, struct shown_host *h) {
    const struct xpl_trace *const t = h->host->trace;
    const size_t n = (size_t)t->n[TRC_DEVICES], n_rows = (size_t)t->n[TRC_RESOURCES];
    size_t *const at = h->row_ends = xpl_arena_zalloc(w->arena, (n + 1) * sizeof *at);
    h->rows = xpl_arena_array(w->arena, n_rows, sizeof *h->rows);
    if (!at || !h->rows) return false;
    for (size_t i = 0; i < n_rows; i++)
        at[t->resources[i].device + 1]++;
    for (size_t i = 0; i < n; i++)
        at[i + 1] += at[i];
    for (size_t i = 0; i < n_rows; i++)
        h->rows[at[t->resources[i].device]++] = t->resources[i];
    return true;
}

// Rows of a device by id; of several that share one the last gives the name.
static void find_rows(struct device_line *l) {
    const size_t begin = l->index ? l->h->row_ends[l->index - 1] : 0;
    const size_t n = l->h->row_ends[l->index] - begin;
    struct trc_resource *const v = l->h->rows + begin;
    size_t out = 0;
    xpl_sort(v, n, sizeof *v, by_row_id);
    for (size_t i = 0; i < n; i++) {
        if (out && v[out - 1].id == v[i].id) out--;
        v[out++] = v[i];
    }
    l->rows = v, l->n_rows = out;
}

xpl_status_t trc_device_lines(struct writer *w, struct device_line **ret, size_t *ret_n,
                              struct xpl_error *err) {
    size_t n = 0, out = 0;
    for (size_t i = 0; i < w->n; i++)
        n += (size_t)w->hosts[i].host->trace->n[TRC_DEVICES];
    struct device_line *const v = xpl_arena_array(w->arena, n, sizeof *v);
    if (!v) XPL_RETURN_OOM(err, "trace devices");
    n = 0;
    for (size_t i = 0; i < w->n; i++) {
        const struct xpl_trace *const t = w->hosts[i].host->trace;
        if (!group_rows(w, &w->hosts[i])) XPL_RETURN_OOM(err, "trace rows");
        for (uint32_t k = 0; k < t->n[TRC_DEVICES]; k++) {
            const uint32_t pid = trc_pid(&w->hosts[i], k);
            v[n++] = (struct device_line){.h = &w->hosts[i],
                                          .d = &t->devices[k],
                                          .index = k,
                                          .pid = pid,
                                          .has_order = true,
                                          .order = pid};
        }
    }
    xpl_sort(v, n, sizeof *v, by_pid);
    for (size_t i = 0; i < n; i++) {
        if (out && v[out - 1].pid == v[i].pid) continue; // the first host's
        v[out] = v[i];
        find_rows(&v[out++]);
    }
    *ret = v;
    *ret_n = out;
    return w->o->mpmd_pipeline_view ? trc_mpmd_order(w, v, out, err) : XPL_OK;
}

bool trc_device_name(struct writer *w, const struct device_line *l, xpl_str_t *ret) {
    return xpl_arena_printf(w->arena, ret, "%.*s %.*s", XPL_STR_FMT(l->h->host->name),
                            XPL_STR_FMT(trc_str(l->h->host->trace, l->d->name)));
}

// ---- the whole ----

static bool has_tpu_core(const struct writer *w) {
    static const char *const marks[] = {"/device:TPU:", "TensorNode", "TPU Core"};
    for (size_t i = 0; i < w->n; i++) {
        const struct xpl_trace *const t = w->hosts[i].host->trace;
        for (uint64_t k = 0; k < t->n[TRC_DEVICES]; k++)
            for (size_t m = 0; m < 3; m++)
                if (xpl_str_has(trc_str(t, t->devices[k].name), xpl_str_from(marks[m])) ||
                    xpl_str_has(w->hosts[i].host->name, xpl_str_from(marks[m])))
                    return true;
    }
    return false;
}

size_t trc_details(const struct writer *w, struct trc_detail *ret) {
    size_t n = 0;
    ret[n++] = (struct trc_detail){"mpmd_pipeline_view", w->o->mpmd_pipeline_view};
    if (w->o->mpmd_pipeline_view)
        ret[n++] = (struct trc_detail){"mpmd_single_device_per_stage", false};
    if (has_tpu_core(w)) ret[n++] = (struct trc_detail){"full_dma", w->o->full_dma};
    return n;
}

bool trc_full_span(const struct writer *w, uint64_t *ret_min, uint64_t *ret_max) {
    uint64_t min = 0, max = 0;
    bool any = false;
    for (size_t i = 0; i < w->n; i++) {
        const struct xpl_trace *const t = w->hosts[i].host->trace;
        const struct trc_footer *const f = t->footer;
        if (!f->has_min || !f->has_max) continue;
        const uint64_t first = f->min_ts + t->later_ps, last = f->max_ts + t->later_ps;
        min = any && min < first ? min : first;
        max = any && max > last ? max : last;
        any = true;
    }
    *ret_min = min, *ret_max = max;
    return any;
}
