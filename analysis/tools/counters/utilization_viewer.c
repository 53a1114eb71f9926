// SPDX-License-Identifier: Apache-2.0
// Tool utilization_viewer: utilization of the units of TPUs, from their hardware counters (XProf:
// convert/xplane_to_utilization_viewer.cc).  As in XProf, only of the first host.
#include "analysis/tools/counters/units.h"
#include "analysis/tools/lib/gviz.h"
#include "analysis/tools/tool.h"
#include "base/arena.h"
#include "base/cleanup.h"

static const struct xpl_column kColumns[] = {
    XPL_NUMBERS("host", "Host", NULL),
    XPL_NUMBERS("device", "Device", NULL),
    XPL_NUMBERS("sample", "Sample", NULL),
    XPL_NUMBERS("node", "Node", NULL),
    XPL_TEXTS("name", "Name"),
    XPL_NUMBERS("achieved", "Achieved", NULL),
    XPL_NUMBERS("peak", "Peak", NULL),
    XPL_TEXTS("unit", "Unit"),
    {0},
};

static void put_unit(struct xpl_gviz *t, int64_t device, int64_t sample,
                     const struct xpl_tpu_unit *u) {
    xpl_gviz_row(t);
    xpl_gviz_number(t, 0);
    xpl_gviz_number(t, (int32_t)device); // as XProf has them
    xpl_gviz_number(t, (int32_t)sample);
    xpl_gviz_number(t, u->row->node);
    xpl_gviz_text(t, xpl_str_from(u->row->name));
    xpl_gviz_number(t, u->achieved);
    xpl_gviz_number(t, u->peak);
    xpl_gviz_text(t, xpl_str_from(xpl_tpu_unit_measure_names[u->row->measure]));
}

static xpl_status_t put_devices(const struct xpl_perf_counters_value *v, struct xpl_exec *exec,
                                struct xpl_arena *scratch, struct xpl_gviz *t,
                                struct xpl_error *err) {
    const struct xpl_counter **const order =
        xpl_arena_array(scratch, v->n_counters, sizeof(const struct xpl_counter *));
    struct xpl_tpu_unit units[XPL_UNITS_MAX];
    if (!order) XPL_RETURN_OOM(err, "utilization_viewer");
    for (size_t i = 0; i < v->n_devices; i++) {
        const struct xpl_counter_device *const d = &v->devices[i];
        const struct xpl_tpu_unit_model *const model = xpl_tpu_unit_model_find(d->type);
        if (!d->tpu || d->device == -1 || !model) continue;
        for (size_t k = d->first; k < d->first + d->n && !t->out->failed; k++) {
            const struct xpl_counter_sample *const s = &v->samples[k];
            if (xpl_exec_cancelled(exec))
                XPL_RETURN_ERROR(err, XPL_CANCELLED, "utilization_viewer cancelled");
            const struct xpl_tpu_unit_sample sample = {.v = &v->counters[s->first], .n = s->n};
            const size_t n = xpl_tpu_units_compute(model, &sample, order, units);
            for (size_t u = 0; u < n; u++)
                put_unit(t, d->device, s->id, &units[u]);
        }
    }
    return XPL_OK;
}

static xpl_status_t utilization_viewer_render(const struct xpl_tool_input *in, struct xpl_buf *out,
                                              struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch = xpl_arena_of(in->limit);
    struct xpl_gviz t;
    size_t i = 0;
    xpl_gviz_begin(&t, out, kColumns, 0);
    while (i < in->n_hosts && !in->hosts[i].products)
        i++;
    if (i < in->n_hosts)
        XPL_TRY(put_devices(in->hosts[i].products[0], in->exec, &scratch, &t, err));
    while (in->warn && ++i < in->n_hosts)
        if (in->hosts[i].products)
            in->warn(in->warn_arg, in->hosts[i].name,
                     XPL_STR("not shown: the answer is about one host"));
    xpl_gviz_end(&t);
    if (out->failed) XPL_RETURN_OOM(err, "utilization_viewer");
    return XPL_OK;
}

static const struct xpl_product *const kNeeds[] = {&xpl_product_perf_counters, NULL};

const struct xpl_tool xpl_tool_utilization_viewer = {
    .name = "utilization_viewer",
    .version = 1,
    .needs = kNeeds,
    .facts = XPL_FACT_COUNTERS,
    .ignores = XPL_IGNORES_CPU_AS_DEVICE | XPL_IGNORES_XPROF_EXACT,
    .hosts = XPL_HOSTS_EACH,
    .shown = XPL_SHOWN_ALWAYS,
    .list_position = 19,
    .content_type = "application/json",
    .columns = {kColumns},
    .render = utilization_viewer_render,
};
