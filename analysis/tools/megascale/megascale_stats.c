// SPDX-License-Identifier: Apache-2.0
// Tool megascale_stats: transfers between slices of TPUs and how long they stall (XProf:
// convert/{process_megascale_dcn,dcn_slack_analysis_combiner}.cc).
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "analysis/products/values.h"
#include "analysis/tools/lib/gviz.h"
#include "analysis/tools/megascale/perfetto.h"
#include "analysis/tools/tool.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/json.h"

struct megascale_options {
    struct xpl_common_options common; // every tool's come first
    bool perfetto, group_tiny_events;
};

static const struct xpl_tool_option kOptions[] = {
    {.key = "perfetto",
     .type = XPL_OPTION_BOOL,
     .offset = offsetof(struct megascale_options, perfetto),
     .values = "true|false",
     .preset = "false",
     .help =
         "one host's TPUs, MegaScale's work for them and the network's as a trace for Perfetto"},
    {.key = "group_tiny_events",
     .type = XPL_OPTION_BOOL,
     .offset = offsetof(struct megascale_options, group_tiny_events),
     .values = "true|false",
     .preset = "true",
     .help = "in that trace neighbours of less than a nanosecond are one event"},
};

// ---- hosts ----

// Transfers of all hosts, those of one rendezvous next to each other in the order of hosts.
struct transfers {
    const struct xpl_megascale_transfer **v;
    size_t n;
    bool lacking; // a host has none of MegaScale's events
};

static int by_rendezvous(const void *a, const void *b) {
    const struct xpl_megascale_transfer *const *const x = a, *const *const y = b;
    return xpl_str_cmp((*x)->rendezvous, (*y)->rendezvous);
}

// Stable.
static void merge_sort(const struct xpl_megascale_transfer **v, size_t n,
                       const struct xpl_megascale_transfer **room) {
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t at = 0; at < n; at += 2 * width) {
            const size_t middle = at + width < n ? at + width : n;
            const size_t end = at + 2 * width < n ? at + 2 * width : n;
            size_t i = at, k = middle;
            for (size_t to = at; to < end; to++)
                room[to] =
                    k == end || (i < middle && by_rendezvous(&v[i], &v[k]) <= 0) ? v[i++] : v[k++];
        }
        memcpy(v, room, n * sizeof(const struct xpl_megascale_transfer *));
    }
}

static bool collect_transfers(const struct xpl_tool_input *in, struct xpl_arena *scratch,
                              struct transfers *ret) {
    size_t n = 0;
    for (size_t i = 0; i < in->n_hosts; i++)
        if (in->hosts[i].products)
            n += ((const struct xpl_megascale_value *)in->hosts[i].products[0])->n;
    *ret = (struct transfers){
        .v = xpl_arena_array(scratch, n, sizeof(const struct xpl_megascale_transfer *))};
    const struct xpl_megascale_transfer **const room =
        xpl_arena_array(scratch, n, sizeof(const struct xpl_megascale_transfer *));
    if (!ret->v || !room) return false;
    for (size_t i = 0; i < in->n_hosts; i++) {
        if (!in->hosts[i].products) continue;
        const struct xpl_megascale_value *const v = in->hosts[i].products[0];
        if (!v->any) ret->lacking = true;
        for (size_t k = 0; k < v->n; k++)
            ret->v[ret->n++] = &v->v[k];
    }
    merge_sort(ret->v, ret->n, room);
    return true;
}

// One rendezvous of several hosts: means by occurrences; words and bytes are the last host's.
static struct xpl_megascale_transfer combine(const struct xpl_megascale_transfer *const *v,
                                             size_t n) {
    struct xpl_megascale_transfer all = *v[n - 1];
    uint64_t sums[XPL_MEGASCALE_TIMES] = {0};
    all.occurrences = all.executions = 0;
    all.host_stall_ps = 0;
    for (size_t i = 0; i < n; i++) {
        all.executions += v[i]->executions;
        all.host_stall_ps += v[i]->host_stall_ps;
        all.occurrences += v[i]->occurrences;
        for (size_t k = 0; k < XPL_MEGASCALE_TIMES; k++)
            sums[k] += v[i]->mean_us[k] * v[i]->occurrences;
    }
    for (size_t k = 0; k < XPL_MEGASCALE_TIMES; k++)
        all.mean_us[k] = sums[k] / all.occurrences;
    return all;
}

// ---- the table ----

static const struct xpl_column kColumns[] = {
    XPL_TEXTS("rendezvous_name", "Rendezvous Name"),
    XPL_TEXTS("recv_op_name", "Recv Op Name"),
    XPL_TEXTS("send_op_name", "Send Op Name"),
    XPL_TEXTS("transfer_type", "Transfer Type"),
    XPL_NUMBERS("slack_time", "Slack Time (ms)", "ms"),
    XPL_TEXTS("host_stall", "Host Stall (ms)"),
    XPL_NUMBERS("observed_duration", "Observed Duration (ms)", "ms"),
    XPL_NUMBERS("send_stall", "Send Stall (ms)", "ms"),
    XPL_NUMBERS("send_done_stall", "SendDone Stall (ms)", "ms"),
    XPL_NUMBERS("recv_stall", "Recv Stall (ms)", "ms"),
    XPL_NUMBERS("recv_done_stall", "RecvDone Stall (ms)", "ms"),
    XPL_NUMBERS("stall_duration", "Stall Duration (ms)", "ms"),
    XPL_NUMBERS("total_stall", "Aggregated Total Stall (ms)", "ms"),
    XPL_NUMBERS("occurrences", "Occurrences", NULL),
    XPL_NUMBERS("net_tx_bytes", "Data Transmitted Size", "bytes"),
    XPL_NUMBERS("required_bandwidth", "Required Bandwidth (Gbps)", "Gbps"),
    {0},
};

// "600B", "6.0K", "6.00M", as XProf shows bytes: cut to whole KiB, MiB, ... but for the last unit.
static void put_bytes(struct xpl_gviz *t, uint64_t bytes) {
    static const char units[] = "KMGTPE";
    uint64_t v = bytes;
    size_t i = 0;
    char text[40];
    for (; v >= 1 << 20; i++)
        v /= 1024;
    const int n =
        bytes < 1024 ? snprintf(text, sizeof text, "%dB", (int)bytes)
                     : snprintf(text, sizeof text, "%.*f%c", i ? 2 : 1, (double)v / 1024, units[i]);
    xpl_gviz_number_as(t, (double)bytes, (xpl_str_t){text, (size_t)n});
}

static void put_ms(struct xpl_gviz *t, uint64_t us) {
    xpl_gviz_number(t, (double)us / 1e3);
}

// The column is of texts: XProf has a dash in each row.
static void put_host_stall(struct xpl_gviz *t, const struct xpl_megascale_transfer *m, bool exact) {
    char text[XPL_JSON_FIXED_MAX];
    size_t n = 0;
    if (!exact && m->executions)
        n = xpl_json_fixed(m->host_stall_ps / (double)m->executions / 1e9, 3, text);
    xpl_gviz_text(t, n ? (xpl_str_t){text, n} : XPL_STR("-"));
}

static void put_transfer(struct xpl_gviz *t, const struct xpl_megascale_transfer *m, bool exact) {
    const uint64_t *const us = m->mean_us;
    xpl_gviz_row(t);
    xpl_gviz_text(t, m->rendezvous);
    xpl_gviz_text(t, m->recv_op);
    xpl_gviz_text(t, m->send_op);
    xpl_gviz_text(t, m->transfer_type);
    put_ms(t, us[XPL_MEGASCALE_SLACK]);
    put_host_stall(t, m, exact);
    put_ms(t, us[XPL_MEGASCALE_OBSERVED]);
    put_ms(t, us[XPL_MEGASCALE_SEND]);
    put_ms(t, us[XPL_MEGASCALE_SEND_DONE]);
    // XProf takes it for picoseconds.
    put_ms(t, exact ? us[XPL_MEGASCALE_RECV] / 1000000 : us[XPL_MEGASCALE_RECV]);
    put_ms(t, us[XPL_MEGASCALE_RECV_DONE]);
    put_ms(t, us[XPL_MEGASCALE_STALL]);
    put_ms(t, us[XPL_MEGASCALE_STALL] * m->occurrences);
    xpl_gviz_number(t, (double)m->occurrences);
    put_bytes(t, m->bytes);
    const double slack = (double)us[XPL_MEGASCALE_SLACK];
    xpl_gviz_number(t, slack > 0 ? (double)m->bytes / slack * (8E-9 / 1E-6) : INT_MAX);
}

static xpl_status_t render_perfetto(const struct xpl_tool_input *in, struct xpl_buf *out,
                                    struct xpl_error *err) {
    const struct megascale_options *const o = in->options;
    if (in->n_hosts != 1)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                         "megascale_stats: a trace for Perfetto is of one host: name it");
    const struct xpl_megascale_perfetto_options how = {.group_tiny = o->group_tiny_events,
                                                       .exact = o->common.xprof_exact};
    return xpl_megascale_perfetto(in->hosts[0].profile, &how, in->exec, in->limit, out, err);
}

static const char *content_type(const void *options) {
    const struct megascale_options *const o = options;
    return o->perfetto ? "application/octet-stream" : "application/json";
}

static xpl_status_t megascale_stats_render(const struct xpl_tool_input *in, struct xpl_buf *out,
                                           struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch;
    const struct megascale_options *const o = in->options;
    struct transfers all;
    struct xpl_gviz t;
    xpl_arena_init(&scratch, in->limit);
    if (o->perfetto) return render_perfetto(in, out, err);
    if (!collect_transfers(in, &scratch, &all)) XPL_RETURN_OOM(err, "megascale_stats");
    // To XProf a session with a host without such events has none.
    if (o->common.xprof_exact && all.lacking) all.n = 0;
    xpl_buf_putc(out, '[');
    xpl_gviz_begin(&t, out, kColumns, 0);
    for (size_t i = 0, n; i < all.n; i += n) {
        for (n = 1; i + n < all.n && by_rendezvous(&all.v[i], &all.v[i + n]) == 0;)
            n++;
        const struct xpl_megascale_transfer m = combine(&all.v[i], n);
        put_transfer(&t, &m, o->common.xprof_exact);
    }
    xpl_gviz_end(&t);
    xpl_buf_putc(out, ']');
    if (out->failed) XPL_RETURN_OOM(err, "megascale_stats");
    return XPL_OK;
}

static const struct xpl_product *const kNeeds[] = {&xpl_product_megascale, NULL};

const struct xpl_tool xpl_tool_megascale_stats = {
    .name = "megascale_stats",
    .version = 4,
    .needs = kNeeds,
    .facts = XPL_FACT_MEGASCALE,
    .options = kOptions,
    .n_options = sizeof kOptions / sizeof *kOptions,
    .options_size = sizeof(struct megascale_options),
    .ignores = XPL_IGNORES_CPU_AS_DEVICE,
    .hosts = XPL_HOSTS_EACH_OR_ALL,
    .shown = XPL_SHOWN_ALWAYS,
    .list_position = 16,
    .content_type = "application/json",
    .columns = {kColumns},
    .content_type_of = content_type,
    .reads_profile = true,
    .render = megascale_stats_render,
};
