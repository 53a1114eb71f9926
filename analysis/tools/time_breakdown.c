// SPDX-License-Identifier: Apache-2.0
// Tool time_breakdown: where the time of each device of each host goes, step by step.  Ours; XProf
// has none.
#include <inttypes.h>

#include "analysis/breakdown/breakdown.h"
#include "analysis/tools/lib/op_stats_tool.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/json.h"

struct time_breakdown_options {
    struct xpl_common_options common; // every tool's come first
    int view;
};
enum { FULL, STEPS }; // view

static const struct xpl_tool_option kOptions[] = {
    {.key = "view",
     .type = XPL_OPTION_CHOICE,
     .offset = offsetof(struct time_breakdown_options, view),
     .values = "full|steps",
     .preset = "full",
     .help = "each step of each device; or totals per device, and the steps of each host"},
};

static const char *const kKinds[] = {
    [XPL_DEVICE_CPU] = "cpu", [XPL_DEVICE_GPU] = "gpu", [XPL_DEVICE_TPU] = "tpu"};

static void put_times(struct xpl_buf *out, uint64_t wall, const uint64_t *ps) {
    xpl_buf_printf(out, "\"wall_ps\":%" PRIu64, wall);
    for (size_t c = 0; c < XPL_TIME_CAUSES; c++)
        xpl_buf_printf(out, ",\"%s_ps\":%" PRIu64, xpl_time_cause_names[c], ps[c]);
}

static void put_row(const struct xpl_time_breakdown *b, const struct xpl_time_row *r,
                    struct xpl_buf *out) {
    if (r->step == XPL_BETWEEN_STEPS) {
        xpl_buf_str(out,
                    XPL_STR("{\"step\":null,\"name\":\"\",\"begin_ps\":null,\"compiles\":null,"));
    } else {
        const struct xpl_time_step *const s = &b->steps.v[r->step];
        xpl_buf_printf(out, "{\"step\":%" PRId64 ",", s->number);
        xpl_json_field(out, "name", s->name);
        xpl_buf_printf(out, ",\"begin_ps\":%" PRId64 ",\"compiles\":%" PRIu64 ",",
                       (int64_t)(b->base_ps + s->begin_ps), s->n_compiles);
    }
    put_times(out, r->wall_ps, r->ps);
    xpl_buf_putc(out, '}');
}

static void put_rows(const struct xpl_time_breakdown *b, size_t begin, size_t end,
                     struct xpl_buf *out) {
    bool first = true;
    xpl_buf_str(out, XPL_STR(",\"steps\":["));
    for (size_t i = begin; i < end; i++) {
        if (!b->rows.v[i].wall_ps) continue;
        if (!first) xpl_buf_putc(out, ',');
        put_row(b, &b->rows.v[i], out);
        first = false;
    }
    xpl_buf_putc(out, ']');
}

// Rows come by device: those of this one begin at *row, which moves behind them.
static void put_device(const struct xpl_time_breakdown *b, size_t d, size_t *row, int view,
                       struct xpl_buf *out) {
    const struct xpl_time_device *const device = &b->devices.v[d];
    const size_t begin = *row;
    struct xpl_time_sums sums;
    xpl_json_field(out, "device", device->name);
    xpl_buf_printf(out, ",\"kind\":\"%s\",\"ops\":%" PRIu64 ",", kKinds[device->kind],
                   device->n_ops);
    xpl_time_sum_device(b, d, row, &sums);
    put_times(out, sums.wall_ps, sums.ps);
    if (view == FULL) put_rows(b, begin, *row, out);
}

// Adds up the rows of the devices that the program uses: `causes` has XPL_TIME_CAUSES times of each
// step.  How many devices these are.
static uint64_t sum_steps(const struct xpl_time_breakdown *b, const bool *used, uint64_t *causes) {
    uint64_t n = 0;
    for (size_t d = 0; d < b->devices.n; d++)
        n += used[d];
    for (size_t i = 0; i < b->rows.n; i++) {
        const struct xpl_time_row *const r = &b->rows.v[i];
        for (size_t c = 0; used[r->device] && r->step != XPL_BETWEEN_STEPS && c < XPL_TIME_CAUSES;
             c++)
            causes[r->step * XPL_TIME_CAUSES + c] += r->ps[c];
    }
    return n;
}

// Of each cause that steps have a column: the mean of the host's devices.
static void put_causes(const struct xpl_time_breakdown *b, const uint64_t *causes, uint64_t n,
                       struct xpl_buf *out) {
    for (size_t c = 0; c < XPL_TIME_CAUSES; c++) {
        uint64_t all = 0;
        for (size_t i = 0; i < b->steps.n; i++)
            all |= causes[i * XPL_TIME_CAUSES + c];
        if (!all) continue;
        xpl_buf_printf(out, ",\"%s_ps\":[", xpl_time_cause_names[c]);
        for (size_t i = 0; i < b->steps.n; i++)
            xpl_buf_printf(out, "%s%" PRIu64, i ? "," : "", causes[i * XPL_TIME_CAUSES + c] / n);
        xpl_buf_putc(out, ']');
    }
}

// The steps of a host as columns, which are a tenth of the text.
static xpl_status_t put_steps(const struct xpl_time_breakdown *b, size_t limit, struct xpl_buf *out,
                              struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(limit);
    uint64_t *const causes =
        xpl_arena_zalloc(&arena, (b->steps.n + 1) * XPL_TIME_CAUSES * sizeof *causes);
    const bool *const used = xpl_time_used_devices(b, &arena);
    if (!causes || !used) XPL_RETURN_OOM(err, "time_breakdown");
    const uint64_t n = sum_steps(b, used, causes);
    xpl_buf_str(out, XPL_STR(",\"steps\":{\"step\":["));
    for (size_t i = 0; i < b->steps.n; i++)
        xpl_buf_printf(out, "%s%" PRId64, i ? "," : "", b->steps.v[i].number);
    xpl_buf_str(out, XPL_STR("],\"name\":["));
    for (size_t i = 0; i < b->steps.n; i++) {
        if (i) xpl_buf_putc(out, ',');
        xpl_json_str(out, b->steps.v[i].name, false);
    }
    xpl_buf_str(out, XPL_STR("],\"begin_ps\":["));
    for (size_t i = 0; i < b->steps.n; i++)
        xpl_buf_printf(out, "%s%" PRId64, i ? "," : "",
                       (int64_t)(b->base_ps + b->steps.v[i].begin_ps));
    xpl_buf_str(out, XPL_STR("],\"wall_ps\":["));
    for (size_t i = 0; i < b->steps.n; i++)
        xpl_buf_printf(out, "%s%" PRIu64, i ? "," : "",
                       b->steps.v[i].end_ps - b->steps.v[i].begin_ps);
    xpl_buf_putc(out, ']');
    if (n) put_causes(b, causes, n, out);
    xpl_buf_putc(out, '}');
    return XPL_OK;
}

static xpl_status_t put_host(const struct xpl_tool_host *h, int view, size_t limit,
                             struct xpl_buf *out, struct xpl_error *err) {
    xpl_buf_putc(out, '{');
    xpl_json_field(out, "host", h->name);
    if (!h->products) {
        xpl_buf_putc(out, ',');
        xpl_json_field(out, "problem", h->problem);
        xpl_buf_putc(out, '}');
        return XPL_OK;
    }
    const struct xpl_time_breakdown_value *const v = h->products[0];
    const struct xpl_time_breakdown *const b = v->breakdown;
    xpl_buf_printf(out,
                   ",\"framework\":\"%s\",\"begin_ps\":%" PRId64 ",\"wall_ps\":%" PRIu64
                   ",\"compiles\":%" PRIu64 ",\"devices_left_out\":%" PRIu64 ",\"devices\":[",
                   xpl_framework_names[b->framework], (int64_t)(b->base_ps + b->begin_ps),
                   b->end_ps - b->begin_ps, b->n_compiles, b->devices_left_out);
    size_t row = 0;
    for (size_t d = 0; d < b->devices.n; d++) {
        xpl_buf_str(out, d ? XPL_STR(",{") : XPL_STR("{"));
        put_device(b, d, &row, view, out);
        xpl_buf_putc(out, '}');
    }
    xpl_buf_putc(out, ']');
    if (view == STEPS) XPL_TRY(put_steps(b, limit, out, err));
    xpl_buf_putc(out, '}');
    return XPL_OK;
}

static xpl_status_t render(const struct xpl_tool_input *in, struct xpl_buf *out,
                           struct xpl_error *err) {
    const int view = ((const struct time_breakdown_options *)in->options)->view;
    xpl_buf_str(out, XPL_STR("{\"hosts\":["));
    for (size_t i = 0; i < in->n_hosts; i++) {
        if (i) xpl_buf_putc(out, ',');
        XPL_TRY(put_host(&in->hosts[i], view, in->limit, out, err));
    }
    xpl_buf_str(out, XPL_STR("]}"));
    if (out->failed) XPL_RETURN_OOM(err, "time_breakdown");
    return XPL_OK;
}

static const struct xpl_product *const kNeeds[] = {&xpl_product_time_breakdown, NULL};

const struct xpl_tool xpl_tool_time_breakdown = {
    .name = "time_breakdown",
    .version = 2,
    .needs = kNeeds,
    .facts = XPL_FACT_STEPS,
    .options = kOptions,
    .n_options = sizeof kOptions / sizeof *kOptions,
    .options_size = sizeof(struct time_breakdown_options),
    .ignores = XPL_IGNORES_XPROF_EXACT,
    .hosts = XPL_HOSTS_EACH_OR_ALL,
    .shown = XPL_SHOWN_NEVER,
    .content_type = "application/json",
    .variant = xpl_op_stats_variant,
    .asks_device = true,
    .render = render,
};
