// SPDX-License-Identifier: Apache-2.0
// Tool trace_overlap: how much of the time of collectives, copies and asynchronous ops in a window
// of the trace is hidden by compute of the same device.  Ours; XProf has none.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/breakdown/names.h"
#include "analysis/breakdown/spans.h"
#include "analysis/tools/sums/sums.h"
#include "analysis/xplane/schema.h"
#include "base/cleanup.h"
#include "base/map.h"

static const struct xpl_column kColumns[] = {
    XPL_TEXTS("kind", "Kind"),
    XPL_NUMBERS("devices", "Devices", NULL),
    XPL_NUMBERS("time_us", "Time (us)", "us"),
    XPL_NUMBERS("overlapped_us", "Overlapped by compute (us)", "us"),
    XPL_NUMBERS("exposed_us", "Exposed (us)", "us"),
    XPL_NUMBERS("overlapped", "Share overlapped", "share"),
    {0},
};

static const struct xpl_tool_option kOptions[] = {SUMS_END_TIME, SUMS_START_TIME, SUMS_TRACKS};

// Rows of a device that have ops; others repeat them at another level.
enum { ROW_OPS = 1, ROW_ASYNC, ROW_OFFLOAD };

enum { COMPUTE, COLLECTIVES, HOST_COPIES, DEVICE_COPIES, ASYNC, KINDS };
static const char *const kKinds[KINDS] = {
    [COLLECTIVES] = "collectives",
    [HOST_COPIES] = "copies between host and device",
    [DEVICE_COPIES] = "copies on devices",
    [ASYNC] = "other asynchronous ops",
};

struct device {
    struct xpl_spans kinds[KINDS];
};

struct overlap {
    struct xpl_arena *arena;
    struct xpl_map by_pid; // to a device's place + 1
    XPL_VEC(struct device) devices;
};

// Times of a kind on one device, or on several.
struct times {
    uint64_t devices, ps, overlapped_ps;
};

static uint8_t judge_row(xpl_str_t device, xpl_str_t row) {
    if (xpl_str_starts(device, XPL_STR("/device:GPU:")))
        return xpl_str_starts(row, XPL_STR("Stream #")) ? ROW_OPS : 0;
    if (!xpl_str_starts(device, XPL_STR("/device:"))) return 0;
    if (xpl_str_eq(row, XPL_STR(XPL_LINE_XLA_ASYNC_OPS))) return ROW_ASYNC;
    if (xpl_str_starts(row, XPL_STR("Host Offload Ops"))) return ROW_OFFLOAD;
    return xpl_str_eq(row, XPL_STR(XPL_LINE_XLA_OPS)) ? ROW_OPS : 0;
}

static int by_bytes(const void *a, const void *b) {
    return xpl_str_cmp(*(const xpl_str_t *)a, *(const xpl_str_t *)b);
}

// A TPU's trace names a copy without its operands, so that its memory space is not known: whether
// it offloads shows in that the trace has "offload-copy.2" as well as "copy-start.2".
static bool is_offload(xpl_str_t name, const xpl_str_t *names, size_t n) {
    const size_t dash = xpl_str_find(name, XPL_STR("-"), 0);
    const char *const dot = memrchr(name.ptr, '.', name.len);
    char text[64];
    if (dash >= name.len) return false;
    const int len = snprintf(text, sizeof text, "offload-%.*s.%.*s", (int)dash, name.ptr,
                             dot ? (int)(name.ptr + name.len - dot - 1) : 1, dot ? dot + 1 : "0");
    const xpl_str_t key = {text, (size_t)len};
    return key.len < sizeof text && bsearch(&key, names, n, sizeof *names, by_bytes);
}

static void judge_names(const xpl_str_t *names, size_t n, uint8_t *ret) {
    for (size_t i = 0; i < n; i++) {
        enum xpl_op_layer layer = xpl_op_layer_of(names[i]);
        if (layer == XPL_LAYER_DEVICE_COPY && is_offload(names[i], names, n))
            layer = XPL_LAYER_HOST_COPY;
        ret[i] = (uint8_t)(1 + layer);
    }
}

// KINDS: an op that is none of them, as a loop, whose ops are there, too.
static size_t kind_of(const struct xpl_trace_visit *v) {
    if (v->row == ROW_OFFLOAD) return HOST_COPIES;
    switch ((enum xpl_op_layer)(v->name - 1)) {
        case XPL_LAYER_COLLECTIVE: return COLLECTIVES;
        case XPL_LAYER_HOST_COPY: return HOST_COPIES;
        case XPL_LAYER_DEVICE_COPY: return DEVICE_COPIES;
        case XPL_LAYER_COMPUTE: return v->row == ROW_ASYNC ? ASYNC : COMPUTE;
        case XPL_LAYER_INFEED:
        case XPL_LAYER_CALLBACK:
        case XPL_LAYER_CONTAINER:
        case XPL_LAYERS: break;
    }
    return KINDS;
}

static bool add_event(void *arg, const struct xpl_trace_visit *v) {
    struct overlap *const o = arg;
    const size_t kind = kind_of(v);
    bool is_new;
    // Compute hides what other rows of its device do, whatever rows are chosen.
    if (kind == KINDS || (kind != COMPUTE && !v->chosen)) return true;
    uint64_t *const place = xpl_map_put(o->arena, &o->by_pid, v->pid, 0, &is_new);
    if (!place) return false;
    if (is_new) {
        struct device *const slot = xpl_vec_push(o->arena, &o->devices);
        if (!slot) return false;
        *slot = (struct device){0};
        *place = o->devices.n;
    }
    return xpl_spans_add(&o->devices.v[*place - 1].kinds[kind], (struct xpl_span){v->begin, v->end},
                         o->arena);
}

// Adds a kind's time on a device, and how much of it is within `compute`.
static void add_times(const struct xpl_spans *kind, const struct xpl_spans *compute,
                      struct times *to) {
    struct xpl_span_place at = {0};
    to->devices += kind->v.n != 0;
    for (size_t i = 0; i < kind->v.n; i++) {
        const struct xpl_span span = kind->v.v[i];
        to->ps += span.end - span.begin;
        for (uint64_t t = span.begin, next; t < span.end; t = next) {
            next = span.end;
            if (xpl_spans_at(compute, &at, t, &next)) to->overlapped_ps += next - t;
        }
    }
}

static xpl_status_t sum_up(struct overlap *o, struct xpl_exec *exec, struct times *ret,
                           struct xpl_error *err) {
    for (size_t d = 0; d < o->devices.n; d++) {
        if (xpl_exec_cancelled(exec)) XPL_RETURN_ERROR(err, XPL_CANCELLED, "cancelled");
        struct xpl_spans *const kinds = o->devices.v[d].kinds;
        for (size_t k = 0; k < KINDS; k++)
            if (!xpl_spans_finish(&kinds[k], o->arena)) XPL_RETURN_OOM(err, "trace_overlap");
        for (size_t k = 0; k < KINDS; k++)
            if (k != COMPUTE) add_times(&kinds[k], &kinds[COMPUTE], &ret[k]);
    }
    return XPL_OK;
}

static void write_table(const struct times *times, struct xpl_buf *out) {
    struct xpl_gviz g;
    xpl_gviz_begin(&g, out, kColumns, 0);
    for (size_t k = 0; k < KINDS; k++) {
        const struct times *const t = &times[k];
        if (!t->ps) continue;
        xpl_gviz_row(&g);
        xpl_gviz_text(&g, xpl_str_from(kKinds[k]));
        xpl_gviz_number(&g, (double)t->devices);
        xpl_gviz_number(&g, (double)t->ps / 1e6);
        xpl_gviz_number(&g, (double)t->overlapped_ps / 1e6);
        xpl_gviz_number(&g, (double)(t->ps - t->overlapped_ps) / 1e6);
        xpl_gviz_number(&g, (double)t->overlapped_ps / (double)t->ps);
    }
    xpl_gviz_end(&g);
}

static xpl_status_t render(const struct xpl_tool_input *in, struct xpl_buf *out,
                           struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(in->limit);
    struct overlap o = {.arena = &arena};
    const struct xpl_trace_visitor visitor = {judge_row, judge_names, add_event, &o};
    struct xpl_trace_sums_options what;
    struct xpl_trace_host *hosts;
    struct times times[KINDS] = {{0}};
    size_t n;
    XPL_TRY(sums_read(in, &arena, &what, &hosts, &n, err));
    XPL_TRY(xpl_trace_visit(hosts, n, &what, &visitor, in->exec, in->limit, err));
    XPL_TRY(sum_up(&o, in->exec, times, err));
    write_table(times, out);
    if (out->failed) XPL_RETURN_OOM(err, "trace_overlap");
    return XPL_OK;
}

const struct xpl_tool xpl_tool_trace_overlap = {
    .name = "trace_overlap",
    .version = 1,
    .needs = sums_needs,
    .facts = XPL_FACT_EVENTS,
    .options = kOptions,
    .n_options = sizeof kOptions / sizeof *kOptions,
    .options_size = sizeof(struct sums_options),
    .ignores = XPL_IGNORES_CPU_AS_DEVICE | XPL_IGNORES_XPROF_EXACT,
    .hosts = XPL_HOSTS_EACH,
    .shown = XPL_SHOWN_NEVER,
    .content_type = "application/json",
    .columns = {kColumns},
    .keeps_no_answer = true,
    .render = render,
};
