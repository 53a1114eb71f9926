// SPDX-License-Identifier: Apache-2.0
// Tool iree_run_summary: the summary of an IREE bundle for comparisons, as run_summary is of an
// XSpace. Functions of dispatches with their geometry take the place of ops, repeated submissions
// that of steps: the members of the reports functions and iterations.
#include <stdio.h>
#include <string.h>

#include "analysis/compare/compare.h"
#include "analysis/ireeprof/reports/report.h"
#include "analysis/ireeprof/table.h"
#include "analysis/products/values.h"
#include "analysis/tools/tool.h"
#include "base/arena.h"
#include "base/cleanup.h"

enum { PS_PER_NS = 1000, MAX_GEOMETRY = 128, N_GEOMETRY = 6 };

// ---- rows ----

struct making {
    struct xpl_arena *arena;
    struct xpl_run_summary s;
    // Those of a host that iterations are of, each once: sessions may share queues, and queues a
    // device.  Without queue events it is as many as the function of most devices ran on.
    struct xpl_iree_table devices;
    uint64_t most_devices;
    bool full; // the arena
    // The row that is being read.
    bool is_function, is_iteration, is_queue, has_interval;
    const char *array; // the name of the array that is open
    xpl_str_t key, timing_source;
    uint64_t total_ns, dispatches, n_devices, iterations, interval_ns, device;
    uint64_t geometry[N_GEOMETRY]; // workgroups, and the size of each
    size_t n_count, n_size;
};

static void begin_row(void *ctx, const char *type) {
    struct making *const m = ctx;
    *m = (struct making){.arena = m->arena,
                         .s = m->s,
                         .devices = m->devices,
                         .most_devices = m->most_devices,
                         .full = m->full,
                         .is_function = strcmp(type, "function") == 0,
                         .is_iteration = strcmp(type, "iteration") == 0,
                         .is_queue = strcmp(type, "iterations") == 0};
}

static void take_element(struct making *m, uint64_t v) {
    const bool is_count = strcmp(m->array, "workgroup_count") == 0;
    size_t *const n = is_count ? &m->n_count : &m->n_size;
    if (*n < N_GEOMETRY / 2) m->geometry[*n + (is_count ? 0 : N_GEOMETRY / 2)] = v;
    ++*n;
}

static void take_number(struct making *m, const char *name, uint64_t v) {
    if (strcmp(name, "total_ns") == 0) m->total_ns = v;
    if (strcmp(name, "dispatches") == 0) m->dispatches = v;
    if (strcmp(name, "devices") == 0) m->n_devices = v;
    if (strcmp(name, "iterations") == 0) m->iterations = v;
    if (strcmp(name, "interval_ns") == 0) m->interval_ns = v;
    if (strcmp(name, "physical_device_ordinal") == 0) m->device = v;
}

static void take_text(struct making *m, const char *name, xpl_str_t v) {
    xpl_str_t *const to = strcmp(name, "key") == 0             ? &m->key
                          : strcmp(name, "timing_source") == 0 ? &m->timing_source
                                                               : NULL;
    if (to && !xpl_arena_str(m->arena, v, to)) m->full = true;
}

static void take_member(void *ctx, const struct xpl_iree_member *f) {
    struct making *const m = ctx;
    if (f->kind == XPL_IREE_MEMBER_OPEN) m->array = f->name;
    if (f->kind == XPL_IREE_MEMBER_CLOSE) m->array = NULL;
    if (f->kind == XPL_IREE_MEMBER_U64 && m->array) take_element(m, f->u64);
    if (!f->name) return;
    if (f->kind == XPL_IREE_MEMBER_U64) take_number(m, f->name, f->u64);
    if (f->kind == XPL_IREE_MEMBER_TEXT) take_text(m, f->name, f->text);
    if (f->kind == XPL_IREE_MEMBER_BOOL && strcmp(f->name, "interval_available") == 0)
        m->has_interval = f->is;
}

// ---- the summary ----

static uint64_t ps_of(uint64_t ns) {
    return ns < UINT64_MAX / PS_PER_NS ? ns * PS_PER_NS : UINT64_MAX;
}

// "4x2x1 of 64x1x1": workgroups, and the invocations of each.  Ticks of a device without a clock
// have no length: such functions count, and take no time.
static bool add_function(struct making *m) {
    const uint64_t *const g = m->geometry;
    char geometry[MAX_GEOMETRY];
    struct xpl_run_row *const r = xpl_vec_push(m->arena, &m->s.ops);
    if (!r) return false;
    (void)snprintf(geometry, sizeof geometry, "%llux%llux%llu of %llux%llux%llu",
                   (unsigned long long)g[0], (unsigned long long)g[1], (unsigned long long)g[2],
                   (unsigned long long)g[3], (unsigned long long)g[4], (unsigned long long)g[5]);
    *r = (struct xpl_run_row){.ps = ps_of(m->total_ns), .count = m->dispatches};
    r->text[XPL_RUN_OP] = m->key;
    r->text[XPL_RUN_CATEGORY] = m->timing_source;
    return xpl_arena_str(m->arena, xpl_str_from(geometry), &r->text[XPL_RUN_SHAPE]);
}

static bool add_step(struct making *m) {
    uint64_t *const step = xpl_vec_push(m->arena, &m->s.steps);
    if (step) *step = ps_of(m->interval_ns);
    return step;
}

static void end_row(void *ctx) {
    struct making *const m = ctx;
    bool is_new = false;
    if (m->is_function && !add_function(m)) m->full = true;
    if (m->n_devices > m->most_devices) m->most_devices = m->n_devices;
    if (m->is_iteration && m->has_interval && !add_step(m)) m->full = true;
    if (!m->is_queue) return;
    if (!xpl_iree_table_put(&m->devices, &m->device, &is_new)) m->full = true;
    xpl_iree_add(&m->s.units, m->iterations);
}

static xpl_status_t add_report(struct making *m, const char *name,
                               const struct xpl_iree_bundle *bundle,
                               const struct xpl_tool_input *in, struct xpl_error *err) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out; // nothing is written to it
    struct xpl_iree_rows rows = {.format = XPL_IREE_JSONL,
                                 .begin = begin_row,
                                 .member = take_member,
                                 .end = end_row,
                                 .member_ctx = m,
                                 .out = &out};
    struct xpl_iree_run run = {
        .bundle = bundle, .options.id = -1, .rows = &rows, .exec = in->exec, .limit = in->limit};
    xpl_buf_init(&out, in->limit);
    XPL_TRY(xpl_iree_report_run(xpl_iree_report_find(xpl_str_from(name)), &run, err));
    if (m->full) XPL_RETURN_OOM(err, "run summary");
    return XPL_OK;
}

static xpl_status_t add_bundle(struct making *m, const struct xpl_tool_input *in,
                               const struct xpl_tool_host *h, struct xpl_error *err) {
    const struct xpl_iree_bundle_value *const v = h->products[0];
    struct xpl_iree_bundle bundle;
    XPL_TRY(xpl_iree_open(h->profile, false, &bundle, err));
    XPL_TRY(add_report(m, "functions", &bundle, in, err));
    XPL_TRY(add_report(m, "iterations", &bundle, in, err));
    m->s.n_devices += m->devices.n > m->most_devices ? m->devices.n : m->most_devices;
    xpl_iree_table_fini(&m->devices); // those of another host are others
    m->most_devices = 0;
    m->s.n_hosts++;
    for (size_t i = 0; in->warn && i < v->n_warnings; i++)
        in->warn(in->warn_arg, h->name, xpl_str_from(v->warnings[i]));
    return XPL_OK;
}

static xpl_status_t render(const struct xpl_tool_input *in, struct xpl_buf *out,
                           struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena;
    struct making m = {.arena = &arena, .devices = {.row_size = 8, .key_size = 8}};
    xpl_status_t st = XPL_OK;
    xpl_arena_init(&arena, in->limit);
    for (size_t i = 0; st == XPL_OK && i < in->n_hosts; i++)
        if (in->hosts[i].products) st = add_bundle(&m, in, &in->hosts[i], err);
    xpl_iree_table_fini(&m.devices);
    if (st != XPL_OK) return st;
    if (!m.s.units) m.s.units = 1; // nothing repeats: the run is the unit
    xpl_run_summary_join(&m.s);
    return xpl_run_summary_encode(&m.s, out, err);
}

static const struct xpl_product *const kNeeds[] = {&xpl_product_iree_bundle, NULL};

const struct xpl_tool xpl_tool_iree_run_summary = {
    .name = "iree_run_summary",
    .version = 3,
    .replaces = "run_summary",
    .needs = kNeeds,
    .facts = XPL_FACT_BUNDLE,
    .ignores = XPL_IGNORES_CPU_AS_DEVICE | XPL_IGNORES_XPROF_EXACT,
    .hosts = XPL_HOSTS_EACH_OR_ALL,
    .shown = XPL_SHOWN_NEVER,
    .content_type = "application/octet-stream",
    .reads_profile = true,
    .render = render,
};
