// SPDX-License-Identifier: Apache-2.0
// Tool collectives: data exchanged between devices, by kind, size and group, with its time and
// rate; and, where profiles of several hosts say which of their collectives are one, how long hosts
// wait for each other.  Ours; XProf has none.  docs/findings.md defines the columns.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "analysis/opstats/metrics/op_metrics.h"
#include "analysis/tools/collectives/expression.h"
#include "analysis/tools/collectives/ranks.h"
#include "analysis/tools/lib/gviz.h"
#include "analysis/tools/lib/op_record.h"
#include "analysis/tools/lib/op_stats_tool.h"
#include "analysis/tools/lib/spaces.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/vec.h"

enum { OP_COLUMNS = 3 }; // that only the table of ops has

// An op, or all ops that are alike.
struct row {
    const struct xpl_op_metrics *op; // the first; NULL: a call of the host
    struct xpl_collective_text text;
    uint64_t n_ops, occurrences, time_ps;
    uint64_t min_ps;         // of the fastest
    double communication_ps; // as if each occurrence were as fast as its op's fastest
    bool is_rated;           // its time is that of the exchange
};

struct list {
    struct row *v;
    size_t n;
};

static uint64_t add(uint64_t a, uint64_t b) {
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static bool read_row(const struct xpl_opstats *s, const struct xpl_op_metrics *m, struct row *ret) {
    struct xpl_collective_text t;
    if (xpl_op_metrics_is_idle(m) || !m->occurrences ||
        !xpl_collective_read(m->long_name, m->category, &t))
        return false;
    // A GPU's kernel is the start's; elsewhere the start only asks for the exchange.
    const bool gpu = s->run_environment.hardware_type == XPL_HW_GPU;
    const uint64_t min = m->min_time_ps < m->time_ps ? m->min_time_ps : m->time_ps;
    *ret = (struct row){.op = m,
                        .text = t,
                        .n_ops = 1,
                        .occurrences = m->occurrences,
                        .time_ps = m->time_ps,
                        .min_ps = min,
                        .communication_ps = (double)min * m->occurrences,
                        .is_rated = !t.ends && (!t.starts || gpu)};
    if (ret->communication_ps > (double)m->time_ps) ret->communication_ps = (double)m->time_ps;
    return true;
}

// ---- alike ----

static int cmp_u64(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

static int by_alike(const void *pa, const void *pb) {
    const struct row *const a = pa, *const b = pb;
    int c = xpl_str_cmp(a->text.kind, b->text.kind);
    if (!c) c = a->text.starts - b->text.starts;
    if (!c) c = a->text.ends - b->text.ends;
    if (!c) c = cmp_u64(a->text.bytes, b->text.bytes);
    if (!c) c = cmp_u64(a->text.group_size, b->text.group_size);
    return c ? c : cmp_u64(a->text.n_groups, b->text.n_groups);
}

// Likewise, in the order of the ops.
static int by_alike_and_place(const void *pa, const void *pb) {
    const struct row *const a = pa, *const b = pb;
    const int c = by_alike(a, b);
    return c ? c : (a->op > b->op) - (a->op < b->op);
}

static int by_time(const void *pa, const void *pb) {
    const struct row *const a = pa, *const b = pb;
    const int c = cmp_u64(b->time_ps, a->time_ps);
    return c ? c : by_alike_and_place(a, b);
}

static void join(struct row *to, const struct row *r) {
    to->n_ops++;
    to->occurrences = add(to->occurrences, r->occurrences);
    to->time_ps = add(to->time_ps, r->time_ps);
    if (r->min_ps < to->min_ps) to->min_ps = r->min_ps;
    to->communication_ps += r->communication_ps;
}

static bool join_alike(const struct list *ops, struct xpl_arena *arena, struct list *ret) {
    ret->v = xpl_arena_array(arena, ops->n, sizeof *ret->v);
    ret->n = 0;
    for (size_t i = 0; ret->v && i < ops->n; i++) {
        struct row *const last = ret->n ? &ret->v[ret->n - 1] : NULL;
        if (last && by_alike(last, &ops->v[i]) == 0)
            join(last, &ops->v[i]);
        else
            ret->v[ret->n++] = ops->v[i];
    }
    // Calls have no op: all that are alike are as one.
    for (size_t i = 0; ret->v && i < ret->n; i++)
        if (!ret->v[i].op)
            ret->v[i].communication_ps = (double)ret->v[i].min_ps * (double)ret->v[i].occurrences;
    return ret->v != NULL;
}

// ---- tables ----

// Those of ops begin with what tells one from the others; those of ops that are alike with the
// kind.
static const struct xpl_column kColumns[] = {
    XPL_TEXTS("name", "Op"),
    XPL_TEXTS("program_id", "Program id"),
    XPL_TEXTS("source", "Source"),
    XPL_TEXTS("kind", "Kind"),
    XPL_NUMBERS("size_bytes", "Size (bytes)", "bytes"),
    XPL_NUMBERS("group_size", "Group size", NULL),
    XPL_NUMBERS("groups", "Groups", NULL),
    XPL_NUMBERS("ops", "#Ops", NULL),
    XPL_NUMBERS("occurrences", "#Occurrences", NULL),
    XPL_NUMBERS("total_time", "Total time (us)", "us"),
    XPL_NUMBERS("avg_time", "Avg. time (us)", "us"),
    XPL_NUMBERS("min_time", "Min. time (us)", "us"),
    XPL_NUMBERS("communication_time", "Communication (us)", "us"),
    XPL_NUMBERS("waiting_time", "Waiting (us)", "us"),
    XPL_NUMBERS("algorithm_bandwidth", "Algorithm bandwidth (GB/s)", "GB/s"),
    XPL_NUMBERS("bus_bandwidth", "Bus bandwidth (GB/s)", "GB/s"),
    {0},
};

static double known(uint64_t v) {
    return v ? (double)v : NAN;
}

static void put_op(struct xpl_gviz *g, const struct xpl_op_metrics *m) {
    char text[32];
    xpl_gviz_text(g, m->name);
    (void)snprintf(text, sizeof text, "%" PRIu64, m->hlo_module_id);
    xpl_gviz_text(g, xpl_str_from(text));
    xpl_gviz_text(g, m->source_info.file_name);
}

static void put_row(struct xpl_gviz *g, const struct row *r, bool of_ops) {
    char kind[40];
    const double mean = r->communication_ps / (double)r->occurrences;
    // Bytes in picoseconds are terabytes in seconds.
    const double rate =
        r->is_rated && r->text.bytes && mean > 0 ? (double)r->text.bytes / mean * 1e3 : NAN;
    const double factor = xpl_collective_bus_factor(r->text.kind, r->text.group_size);
    (void)snprintf(kind, sizeof kind, "%.*s%s", XPL_STR_FMT(r->text.kind),
                   r->text.starts ? "-start"
                   : r->text.ends ? "-done"
                                  : "");
    xpl_gviz_row(g);
    if (of_ops) put_op(g, r->op);
    xpl_gviz_text(g, xpl_str_from(kind));
    xpl_gviz_number(g, known(r->text.bytes));
    xpl_gviz_number(g, known(r->text.group_size));
    xpl_gviz_number(g, known(r->text.n_groups));
    xpl_gviz_number(g, r->op ? (double)r->n_ops : (double)NAN);
    xpl_gviz_number(g, (double)r->occurrences);
    xpl_gviz_number(g, xpl_pico_to_micro(r->time_ps));
    xpl_gviz_number(g, xpl_pico_to_micro(r->time_ps) / (double)r->occurrences);
    xpl_gviz_number(g, xpl_pico_to_micro(r->min_ps));
    xpl_gviz_number(g, r->communication_ps / 1e6);
    xpl_gviz_number(g, ((double)r->time_ps - r->communication_ps) / 1e6);
    xpl_gviz_number(g, rate);
    xpl_gviz_number(g, factor > 0 ? rate * factor : NAN);
}

static void put_table(const struct list *l, bool of_ops, struct xpl_buf *out) {
    struct xpl_gviz g;
    xpl_gviz_begin(&g, out, of_ops ? kColumns : kColumns + OP_COLUMNS, 0);
    for (size_t i = 0; i < l->n; i++)
        put_row(&g, &l->v[i], of_ops);
    xpl_gviz_end(&g);
}

// The ops of instructions.
static bool list_ops(const struct xpl_opstats *stats, struct xpl_arena *scratch, struct list *ret) {
    const struct xpl_op_metrics_db *const db = &stats->device_op_metrics_db;
    *ret = (struct list){xpl_arena_array(scratch, db->metrics_db.n, sizeof *ret->v), 0};
    for (size_t i = 0; ret->v && i < db->metrics_db.n; i++)
        ret->n += read_row(stats, &db->metrics_db.v[i], &ret->v[ret->n]);
    return ret->v != NULL;
}

static xpl_status_t put_ops(struct list *ops, struct xpl_arena *scratch, struct xpl_buf *out,
                            struct xpl_error *err) {
    struct list alike;
    xpl_sort(ops->v, ops->n, sizeof *ops->v, by_alike_and_place);
    if (!join_alike(ops, scratch, &alike)) XPL_RETURN_OOM(err, "collectives");
    xpl_sort(alike.v, alike.n, sizeof *alike.v, by_time);
    put_table(&alike, false, out);
    xpl_buf_putc(out, ',');
    if (ops->n && !ops->v[0].op) ops->n = 0; // calls have no names
    xpl_sort(ops->v, ops->n, sizeof *ops->v, by_time);
    put_table(ops, true, out);
    return XPL_OK;
}

// ---- several hosts ----

static const struct xpl_column kRankColumns[] = {
    XPL_TEXTS("kind", "Kind"),
    XPL_NUMBERS("size_bytes", "Size (bytes)", "bytes"),
    XPL_TEXTS("process_group", "Process group"),
    XPL_NUMBERS("group_size", "Group size", NULL),
    XPL_NUMBERS("hosts", "#Hosts", NULL),
    XPL_NUMBERS("collectives", "#Collectives", NULL),
    XPL_NUMBERS("total_time", "Total time (us)", "us"),
    XPL_NUMBERS("communication_time", "Communication (us)", "us"),
    XPL_NUMBERS("waiting_time", "Waiting (us)", "us"),
    XPL_NUMBERS("avg_skew", "Avg. skew (us)", "us"),
    XPL_NUMBERS("max_skew", "Max. skew (us)", "us"),
    XPL_NUMBERS("algorithm_bandwidth", "Algorithm bandwidth (GB/s)", "GB/s"),
    XPL_NUMBERS("bus_bandwidth", "Bus bandwidth (GB/s)", "GB/s"),
    XPL_TEXTS("last_host", "Mostly last"),
    XPL_NUMBERS("last_times", "#Times last", NULL),
    {0},
};
static const struct xpl_column kHostColumns[] = {
    XPL_TEXTS("host", "Host"),
    XPL_NUMBERS("collectives", "#Collectives", NULL),
    XPL_NUMBERS("total_time", "Total time (us)", "us"),
    XPL_NUMBERS("waiting_time", "Waiting (us)", "us"),
    XPL_NUMBERS("last_times", "#Times last", NULL),
    XPL_NUMBERS("clock_offset", "Clock ahead (us)", "us"),
    XPL_NUMBERS("unclear", "#Cannot tell", NULL),
    {0},
};

static void put_rank_row(struct xpl_gviz *g, const struct xpl_ranks *r,
                         const struct xpl_rank_row *row) {
    // Of uneven collectives the bytes of hosts that are not here are missing.
    const bool is_rated = row->bytes && !(row->is_uneven && row->n_hosts < row->group_size);
    const double rate = is_rated && row->fastest_ps > 0
                            ? (double)row->bytes * (double)row->n / row->fastest_ps * 1e3
                            : NAN;
    const double factor =
        row->is_uneven ? 0 : xpl_collective_bus_factor(xpl_str_from(row->kind), row->group_size);
    size_t last = 0;
    for (size_t i = 0; i < r->hosts.n; i++)
        if (row->n_last[i] > row->n_last[last]) last = i;
    xpl_gviz_row(g);
    xpl_gviz_text(g, xpl_str_from(row->kind));
    xpl_gviz_number(g, known(row->bytes));
    xpl_gviz_text(g, xpl_intern_get(r->groups, (xpl_strid_t){row->group}));
    xpl_gviz_number(g, known(row->group_size));
    xpl_gviz_number(g, (double)row->n_hosts);
    xpl_gviz_number(g, (double)row->n);
    xpl_gviz_number(g, row->total_ps / 1e6);
    xpl_gviz_number(g, row->communication_ps / 1e6);
    xpl_gviz_number(g, (row->total_ps - row->communication_ps) / 1e6);
    xpl_gviz_number(g, row->skew_ps / (double)row->n / 1e6);
    xpl_gviz_number(g, row->max_skew_ps / 1e6);
    xpl_gviz_number(g, rate);
    xpl_gviz_number(g, factor > 0 ? rate * factor : NAN);
    xpl_gviz_text(g, row->n_last[last] ? r->hosts.v[last].name : XPL_STR(""));
    xpl_gviz_number(g, (double)row->n_last[last]);
}

static void put_ranks(const struct xpl_ranks *r, struct xpl_buf *out) {
    struct xpl_gviz g;
    xpl_gviz_begin(&g, out, kRankColumns, 0);
    for (size_t i = 0; i < r->rows.n; i++)
        put_rank_row(&g, r, &r->rows.v[i]);
    xpl_gviz_end(&g);
    xpl_buf_putc(out, ',');
    xpl_gviz_begin(&g, out, kHostColumns, 0);
    for (size_t i = 0; i < r->hosts.n; i++) {
        const struct xpl_rank_host *const h = &r->hosts.v[i];
        if (!h->n && !h->n_unclear) continue;
        xpl_gviz_row(&g);
        xpl_gviz_text(&g, h->name);
        xpl_gviz_number(&g, (double)h->n);
        xpl_gviz_number(&g, h->total_ps / 1e6);
        xpl_gviz_number(&g, h->waiting_ps / 1e6);
        xpl_gviz_number(&g, (double)h->n_last);
        xpl_gviz_number(&g, (double)h->offset_ps / 1e6);
        xpl_gviz_number(&g, (double)h->n_unclear);
    }
    xpl_gviz_end(&g);
}

// Reads the collectives that profiles describe by events, not by instructions.
static xpl_status_t read_calls(const struct xpl_tool_input *in, struct xpl_ranks *r,
                               struct xpl_error *err) {
    const struct xpl_xspace **const spaces = xpl_arena_array(r->arena, in->n_hosts, sizeof *spaces);
    if (!spaces) XPL_RETURN_OOM(err, "collectives");
    XPL_TRY(xpl_spaces_open(in, r->arena, spaces, err));
    for (size_t i = 0; i < in->n_hosts; i++) {
        struct xpl_error why = {0};
        if (spaces[i] && xpl_ranks_add(r, in->hosts[i].name, spaces[i], &why) != XPL_OK)
            XPL_TRY(xpl_spaces_leave_out(in, spaces, i, &why, err));
    }
    return XPL_OK;
}

// Rows of calls: each is joined with those that are alike.
static bool list_calls(const struct xpl_ranks *r, struct list *ret) {
    *ret = (struct list){xpl_arena_array(r->arena, r->calls.n, sizeof *ret->v), 0};
    for (size_t i = 0; ret->v && i < r->calls.n; i++) {
        const struct xpl_rank_call *const c = &r->calls.v[i];
        const uint64_t ps = c->end - c->begin;
        ret->v[ret->n++] = (struct row){
            .text = {.kind = xpl_str_from(c->kind), .bytes = c->bytes, .group_size = c->group_size},
            .occurrences = 1,
            .time_ps = ps,
            .min_ps = ps,
            .is_rated = true};
    }
    return ret->v != NULL;
}

static xpl_status_t render(const struct xpl_tool_input *in, struct xpl_buf *out,
                           struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch;
    struct xpl_opstats *stats;
    struct xpl_ranks r;
    struct list ops;
    xpl_arena_init(&scratch, in->limit);
    XPL_TRY(xpl_op_stats_combine(in, 0, &scratch, &stats, err));
    if (!list_ops(stats, &scratch, &ops) || !xpl_ranks_init(&r, &scratch, in->exec))
        XPL_RETURN_OOM(err, "collectives");
    if (!ops.n) XPL_TRY(read_calls(in, &r, err));
    if (!ops.n && !list_calls(&r, &ops)) XPL_RETURN_OOM(err, "collectives");
    xpl_buf_putc(out, '[');
    XPL_TRY(put_ops(&ops, &scratch, out, err));
    if (!xpl_ranks_match(&r)) XPL_RETURN_OOM(err, "collectives");
    if (xpl_exec_cancelled(in->exec))
        XPL_RETURN_ERROR(err, XPL_CANCELLED, "collectives: cancelled");
    xpl_buf_putc(out, ',');
    put_ranks(&r, out);
    xpl_buf_putc(out, ']');
    if (out->failed) XPL_RETURN_OOM(err, "collectives");
    return XPL_OK;
}

static const char *const kTitles[] = {"By kind, size and group", "Ops",
                                      "Collectives of several hosts", "Hosts", NULL};

const struct xpl_tool xpl_tool_collectives = {
    .name = "collectives",
    .version = 3,
    .needs = xpl_op_stats_needs,
    .facts = XPL_FACT_COLLECTIVES,
    .ignores = XPL_IGNORES_XPROF_EXACT, // it says which hosts count for steps
    .hosts = XPL_HOSTS_EACH_OR_ALL,
    .shown = XPL_SHOWN_NEVER,
    .content_type = "application/json",
    .columns = {kColumns, kRankColumns, kHostColumns},
    .titles = kTitles,
    .reads_profile = true,
    .variant = xpl_op_stats_variant,
    .asks_device = true,
    .render = render,
};
