// SPDX-License-Identifier: Apache-2.0
// Tool perf_counters: every reading of a hardware counter of the hosts' TPUs and GPUs (XProf:
// convert/xplane_to_perf_counters.cc).  Descriptions come from the profile; XProf has separate
// texts for two types of TPUs.
#include <inttypes.h>
#include <stdio.h>

#include "analysis/products/values.h"
#include "analysis/tools/lib/gviz.h"
#include "analysis/tools/tool.h"
#include "base/json.h"

struct writer {
    struct xpl_gviz table;
    xpl_str_t host;
    bool exact;
    struct xpl_buf name, number; // scratch
};

// As XProf: of a fraction nothing.
static void put_value(struct writer *w, const struct xpl_counter *c) {
    char hex[24];
    if (c->is_double && !w->exact) {
        w->number.n = 0;
        xpl_json_gviz_number(&w->number, c->d);
        xpl_gviz_number_as(&w->table, c->d, (xpl_str_t){(const char *)w->number.p, w->number.n});
        return;
    }
    const uint64_t v = c->is_double ? 0 : c->u;
    const int n = snprintf(hex, sizeof hex, "0x%" PRIx64, v);
    xpl_gviz_number_as(&w->table, (double)v, (xpl_str_t){hex, (size_t)n});
}

static void put_lower(struct writer *w, xpl_str_t s) {
    w->name.n = 0;
    for (size_t i = 0; i < s.len; i++)
        xpl_buf_putc(&w->name,
                     (char)(s.ptr[i] >= 'A' && s.ptr[i] <= 'Z' ? s.ptr[i] + 32 : s.ptr[i]));
    xpl_gviz_text(&w->table, (xpl_str_t){(const char *)w->name.p, w->name.n});
}

static void put_reading(struct writer *w, const struct xpl_counter_device *d,
                        const struct xpl_counter_sample *s, const struct xpl_counter *c) {
    struct xpl_gviz *const t = &w->table;
    xpl_gviz_row(t);
    xpl_gviz_text(t, w->host);
    xpl_gviz_number(t, (double)d->chip);
    xpl_gviz_text(t, s->name);
    xpl_gviz_number(t, (double)s->id);
    put_lower(w, c->name);
    put_value(w, c);
    xpl_gviz_text(t, c->description);
    xpl_gviz_text(t, c->sets);
}

static xpl_status_t put_host(struct writer *w, const struct xpl_perf_counters_value *v,
                             struct xpl_exec *exec, struct xpl_error *err) {
    for (size_t i = 0; i < v->n_devices; i++) {
        const struct xpl_counter_device *const d = &v->devices[i];
        for (size_t k = d->first; d->chip != -1 && k < d->first + d->n; k++) {
            const struct xpl_counter_sample *const s = &v->samples[k];
            if (xpl_exec_cancelled(exec))
                XPL_RETURN_ERROR(err, XPL_CANCELLED, "perf_counters cancelled");
            for (size_t c = s->first; c < s->first + s->n; c++)
                if (v->counters[c].on_event) put_reading(w, d, s, &v->counters[c]);
        }
    }
    return XPL_OK;
}

static const struct xpl_column kColumns[] = {
    XPL_TEXTS("Host", "Host"),
    XPL_NUMBERS("Chip", "Chip", NULL),
    XPL_TEXTS("Kernel", "Kernel"),
    XPL_NUMBERS("Sample", "Sample", NULL),
    XPL_TEXTS("Counter", "Counter"),
    XPL_NUMBERS("Value", "Value (Hex)", NULL),
    XPL_TEXTS("Description", "Description"),
    XPL_TEXTS("Set", "Set"),
    {0},
};

static xpl_status_t put_hosts(const struct xpl_tool_input *in, struct writer *w,
                              struct xpl_error *err) {
    for (size_t i = 0; i < in->n_hosts; i++) {
        const struct xpl_tool_host *const h = &in->hosts[i];
        w->host = h->name;
        if (h->products) XPL_TRY(put_host(w, h->products[0], in->exec, err));
    }
    xpl_gviz_end(&w->table);
    return XPL_OK;
}

static xpl_status_t perf_counters_render(const struct xpl_tool_input *in, struct xpl_buf *out,
                                         struct xpl_error *err) {
    struct writer w = {.exact = ((const struct xpl_common_options *)in->options)->xprof_exact};
    xpl_buf_init(&w.name, in->limit);
    xpl_buf_init(&w.number, in->limit);
    xpl_gviz_begin(&w.table, out, kColumns, 0);
    const xpl_status_t st = put_hosts(in, &w, err);
    const bool failed = out->failed || w.name.failed || w.number.failed;
    xpl_buf_fini(&w.name);
    xpl_buf_fini(&w.number);
    if (st == XPL_OK && failed) XPL_RETURN_OOM(err, "perf_counters");
    return st;
}

static const struct xpl_product *const kNeeds[] = {&xpl_product_perf_counters, NULL};

const struct xpl_tool xpl_tool_perf_counters = {
    .name = "perf_counters",
    .version = 1,
    .needs = kNeeds,
    .facts = XPL_FACT_COUNTERS,
    .ignores = XPL_IGNORES_CPU_AS_DEVICE,
    .hosts = XPL_HOSTS_EACH,
    .shown = XPL_SHOWN_ALWAYS,
    .list_position = 11,
    .content_type = "application/json",
    .columns = {kColumns},
    .render = perf_counters_render,
};
