// SPDX-License-Identifier: Apache-2.0
// Tool launches: how GPUs are given their work: what launches take, how long ops wait for their
// stream, how many wait at a time, and which host runs a kernel slower than the others.  Ours;
// XProf has none.  docs/findings.md defines the columns.
#include <math.h>

#include "analysis/tools/launches/launches.h"
#include "analysis/tools/lib/gviz.h"
#include "analysis/tools/lib/spaces.h"
#include "analysis/tools/tool.h"
#include "base/cleanup.h"
#include "base/vec.h"

struct launches_options {
    struct xpl_common_options common; // every tool's come first
    uint64_t points;
};

static const struct xpl_tool_option kOptions[] = {
    {.key = "points",
     .type = XPL_OPTION_COUNT,
     .offset = offsetof(struct launches_options, points),
     .values = "NUMBER",
     .preset = "100",
     .help = "number of time buckets for queue depth, at most 10000"},
};
enum { MOST_POINTS = 10000 };

static const struct xpl_product *const kNeeds[] = {&xpl_product_devices, NULL};

static void put_us(struct xpl_gviz *g, double ps) {
    xpl_gviz_number(g, ps / 1e6);
}

// ---- kernels ----

static int most_first(const void *a, const void *b) {
    const struct xpl_launch_kernel *const x = a, *const y = b;
    if (x->all.op.total_ps != y->all.op.total_ps)
        return x->all.op.total_ps < y->all.op.total_ps ? 1 : -1;
    return xpl_str_cmp(x->name, y->name);
}

// Mean and greatest; null where no launch is recorded.
static void put_sum(struct xpl_gviz *g, const struct xpl_launch_sum *s) {
    put_us(g, xpl_launch_sum_mean(s));
    put_us(g, s->n ? (double)s->max_ps : (double)NAN);
}

static void put_kernel(struct xpl_gviz *g, const struct xpl_launch_kernel *k) {
    const struct xpl_launch_times *const t = &k->all;
    xpl_gviz_row(g);
    xpl_gviz_text(g, k->name);
    xpl_gviz_number(g, (double)t->op.n);
    put_us(g, (double)t->op.total_ps);
    put_us(g, xpl_launch_sum_mean(&t->op));
    put_us(g, (double)t->op.min_ps);
    put_us(g, (double)t->op.max_ps);
    xpl_gviz_number(g, (double)t->launch.n);
    put_sum(g, &t->launch);
    put_sum(g, &t->delay);
    xpl_gviz_number(g, (double)t->n_short);
    xpl_gviz_number(g, (double)k->n_hosts);
    xpl_gviz_text(g, k->slowest_host);
    put_us(g, k->slowest_ps);
    xpl_gviz_text(g, k->fastest_host);
    put_us(g, k->fastest_ps);
}

static const struct xpl_column kKernelColumns[] = {
    XPL_TEXTS("kernel_name", "Kernel or copy"),
    XPL_NUMBERS("occurrences", "#Occurrences", NULL),
    XPL_NUMBERS("total_time", "Total time (us)", "us"),
    XPL_NUMBERS("avg_time", "Avg. time (us)", "us"),
    XPL_NUMBERS("min_time", "Min. time (us)", "us"),
    XPL_NUMBERS("max_time", "Max. time (us)", "us"),
    XPL_NUMBERS("launched", "#Launches recorded", NULL),
    XPL_NUMBERS("avg_launch", "Avg. launch (us)", "us"),
    XPL_NUMBERS("max_launch", "Max. launch (us)", "us"),
    XPL_NUMBERS("avg_delay", "Avg. delay (us)", "us"),
    XPL_NUMBERS("max_delay", "Max. delay (us)", "us"),
    XPL_NUMBERS("shorter_than_launch", "#Shorter than launch", NULL),
    XPL_NUMBERS("hosts", "#Hosts", NULL),
    XPL_TEXTS("slowest_host", "Slowest host"),
    XPL_NUMBERS("slowest_avg_time", "Its avg. time (us)", "us"),
    XPL_TEXTS("fastest_host", "Fastest host"),
    XPL_NUMBERS("fastest_avg_time", "Its avg. time (us)", "us"),
    {0},
};

static void put_kernels(struct xpl_launch_stats *l, struct xpl_buf *out) {
    struct xpl_gviz g;
    xpl_gviz_begin(&g, out, kKernelColumns, 0);
    xpl_sort(l->kernels.v, l->kernels.n, sizeof *l->kernels.v, most_first);
    for (size_t i = 0; i < l->kernels.n; i++)
        if (l->kernels.v[i].all.op.n) put_kernel(&g, &l->kernels.v[i]);
    xpl_gviz_end(&g);
}

// ---- streams ----

static void put_stream(struct xpl_gviz *g, const struct xpl_launch_stream *s) {
    xpl_gviz_row(g);
    xpl_gviz_text(g, s->host);
    xpl_gviz_text(g, s->device);
    xpl_gviz_text(g, s->name);
}

static const struct xpl_column kStreamColumns[] = {
    XPL_TEXTS("host", "Host"),
    XPL_TEXTS("device", "Device"),
    XPL_TEXTS("stream", "Stream"),
    XPL_NUMBERS("ops", "#Ops", NULL),
    XPL_NUMBERS("launched", "#Launches recorded", NULL),
    XPL_NUMBERS("max_queue", "Longest queue", NULL),
    XPL_NUMBERS("avg_queue", "Avg. queue", NULL),
    {0},
};
static const struct xpl_column kQueueColumns[] = {
    XPL_TEXTS("host", "Host"),
    XPL_TEXTS("device", "Device"),
    XPL_TEXTS("stream", "Stream"),
    XPL_NUMBERS("begin_time", "From (us)", "us"),
    XPL_NUMBERS("duration", "For (us)", "us"),
    XPL_NUMBERS("min_queue", "Shortest queue", NULL),
    XPL_NUMBERS("avg_queue", "Avg. queue", NULL),
    XPL_NUMBERS("max_queue", "Longest queue", NULL),
    {0},
};

static void put_part(struct xpl_gviz *g, const struct xpl_launch_stream *s,
                     const struct xpl_queue_part *p) {
    put_stream(g, s);
    put_us(g, (double)p->begin_ps);
    put_us(g, (double)p->duration_ps);
    xpl_gviz_number(g, (double)p->least);
    xpl_gviz_number(g, p->mean);
    xpl_gviz_number(g, (double)p->most);
}

// The streams, and the queues of those whose launches are recorded over time.
static xpl_status_t put_streams(struct xpl_launch_stats *l, size_t points, struct xpl_buf *out,
                                struct xpl_error *err) {
    struct xpl_queue_part *const parts = xpl_arena_array(l->arena, points + 1, sizeof *parts);
    struct xpl_gviz streams, queues;
    XPL_AUTO(xpl_buf_fini) struct xpl_buf later = xpl_buf_of(out->max);
    size_t most = 0;
    for (size_t i = 0; i < l->streams.n; i++)
        if (l->streams.v[i].waits.n > most) most = l->streams.v[i].waits.n;
    uint64_t *const ends = xpl_arena_array(l->arena, most + 1, sizeof *ends);
    if (!parts || !ends) XPL_RETURN_OOM(err, "launches");
    xpl_gviz_begin(&streams, out, kStreamColumns, 0);
    xpl_gviz_begin(&queues, &later, kQueueColumns, 0);
    for (size_t i = 0; i < l->streams.n; i++) {
        struct xpl_launch_stream *const s = &l->streams.v[i];
        size_t n;
        if (xpl_exec_cancelled(l->exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "launches: cancelled");
        xpl_launch_queue(s, ends, s->n_launched ? points : 0, parts, &n);
        put_stream(&streams, s);
        xpl_gviz_number(&streams, (double)s->n_ops);
        xpl_gviz_number(&streams, (double)s->n_launched);
        xpl_gviz_number(&streams, s->n_launched ? (double)parts[n].most : (double)NAN);
        xpl_gviz_number(&streams, s->n_launched ? parts[n].mean : (double)NAN);
        for (size_t k = 0; k < n; k++)
            put_part(&queues, s, &parts[k]);
    }
    xpl_gviz_end(&streams);
    xpl_gviz_end(&queues);
    xpl_buf_putc(out, ',');
    xpl_buf_put(out, later.p, later.n);
    if (later.failed) XPL_RETURN_OOM(err, "launches");
    return XPL_OK;
}

// ---- the tool ----

static xpl_status_t render(const struct xpl_tool_input *in, struct xpl_buf *out,
                           struct xpl_error *err) {
    const struct launches_options *const o = in->options;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(in->limit);
    struct xpl_launch_stats l;
    if (!xpl_launches_init(&l, &arena, in->exec)) XPL_RETURN_OOM(err, "launches");
    const struct xpl_xspace **const spaces = xpl_arena_array(&arena, in->n_hosts, sizeof *spaces);
    if (!spaces) XPL_RETURN_OOM(err, "launches");
    XPL_TRY(xpl_spaces_open(in, &arena, spaces, err));
    for (size_t i = 0; i < in->n_hosts; i++) {
        struct xpl_error why = {0};
        if (spaces[i] && xpl_launches_add(&l, in->hosts[i].name, spaces[i], &why) != XPL_OK)
            XPL_TRY(xpl_spaces_leave_out(in, spaces, i, &why, err));
    }
    xpl_buf_putc(out, '[');
    put_kernels(&l, out);
    xpl_buf_putc(out, ',');
    XPL_TRY(put_streams(&l, o->points < MOST_POINTS ? (size_t)o->points : MOST_POINTS, out, err));
    xpl_buf_putc(out, ']');
    if (out->failed) XPL_RETURN_OOM(err, "launches");
    return XPL_OK;
}

static const char *const kTitles[] = {"Kernels and copies", "Streams", "Queue over time", NULL};

const struct xpl_tool xpl_tool_launches = {
    .name = "launches",
    .version = 3,
    .needs = kNeeds,
    .facts = XPL_FACT_LAUNCHES,
    .options = kOptions,
    .n_options = sizeof kOptions / sizeof *kOptions,
    .options_size = sizeof(struct launches_options),
    .ignores = XPL_IGNORES_CPU_AS_DEVICE | XPL_IGNORES_XPROF_EXACT,
    .hosts = XPL_HOSTS_EACH_OR_ALL,
    .shown = XPL_SHOWN_NEVER,
    .content_type = "application/json",
    .columns = {kKernelColumns, kStreamColumns, kQueueColumns},
    .titles = kTitles,
    .reads_profile = true,
    .render = render,
};
