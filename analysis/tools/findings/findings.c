// SPDX-License-Identifier: Apache-2.0
// Tool findings: what makes a run slow, ranked.  Ours; XProf has none.
#include "analysis/tools/findings/findings.h"

#include <inttypes.h>

#include "analysis/tools/lib/op_stats_tool.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/vec.h"

// ---- JSON: docs/cli-json.md ----

static void put_percent(struct xpl_buf *out, const char *key, double share) {
    xpl_buf_printf(out, "\"%s_percent\":%.3f", key, 100 * share);
}

// Times of evidence are sums of whole picoseconds, or their means.
static void put_ps(struct xpl_buf *out, const char *key, double ps) {
    xpl_buf_printf(out, "\"%s_ps\":%.0f", key, ps);
}

static void put_evidence(const struct xpl_finding *f, struct xpl_buf *out) {
    xpl_buf_str(out, XPL_STR(",\"hosts\":["));
    for (size_t i = 0; i < f->n_hosts; i++) {
        xpl_buf_str(out, i ? XPL_STR(",{") : XPL_STR("{"));
        xpl_json_field(out, "host", f->hosts[i].name);
        xpl_buf_putc(out, ',');
        put_percent(out, "share", f->hosts[i].share);
        xpl_buf_putc(out, '}');
    }
    xpl_buf_str(out, XPL_STR("],\"steps\":["));
    for (size_t i = 0; i < f->n_steps; i++) {
        xpl_buf_printf(out, "%s{\"step\":%" PRId64 ",", i ? "," : "", f->steps[i].number);
        xpl_json_field(out, "name", f->steps[i].name);
        xpl_buf_putc(out, ',');
        put_ps(out, "time", f->steps[i].ps);
        xpl_buf_putc(out, '}');
    }
    xpl_buf_str(out, XPL_STR("],\"ops\":["));
    for (size_t i = 0; i < f->n_ops; i++) {
        xpl_buf_str(out, i ? XPL_STR(",{") : XPL_STR("{"));
        xpl_json_field(out, "name", f->ops[i].name);
        xpl_buf_putc(out, ',');
        put_ps(out, "time", f->ops[i].ps);
        xpl_buf_putc(out, '}');
    }
    xpl_buf_str(out, XPL_STR("],\"window\":"));
    if (!f->has_window) {
        xpl_buf_str(out, XPL_STR("null"));
        return;
    }
    xpl_buf_putc(out, '{');
    xpl_json_field(out, "host", f->window_host);
    xpl_buf_printf(out, ",\"begin_ps\":%" PRId64 ",\"duration_ps\":%" PRIu64 "}",
                   f->window_begin_ps, f->window_ps);
}

static void put_finding(const struct xpl_survey *s, const struct xpl_finding *f,
                        struct xpl_buf *out) {
    const double each = s->n_devices ? s->wall_ps / (double)s->n_devices : 0;
    const struct xpl_advice advice = xpl_finding_advice(s, f);
    xpl_buf_putc(out, '{');
    xpl_json_field(out, "kind", xpl_str_from(xpl_finding_name(f->kind)));
    xpl_buf_putc(out, ',');
    xpl_json_field(out, "title", xpl_str_from(xpl_finding_title(f->kind)));
    xpl_buf_putc(out, ',');
    put_percent(out, "share", f->share);
    xpl_buf_putc(out, ',');
    put_percent(out, "saving", f->saving);
    xpl_buf_putc(out, ',');
    put_ps(out, "time", f->share * each);
    xpl_buf_putc(out, ',');
    put_ps(out, "saving", f->saving * each);
    xpl_buf_putc(out, ',');
    xpl_json_field(out, "text", xpl_str_from(f->text));
    xpl_buf_putc(out, ',');
    xpl_json_field(out, "advice", xpl_str_from(advice.text));
    xpl_buf_putc(out, ',');
    xpl_json_field(out, "link", xpl_str_from(advice.link));
    put_evidence(f, out);
    xpl_buf_str(out, XPL_STR(",\"within\":"));
    xpl_json_str(out, f->overlaps ? xpl_str_from(xpl_finding_name(f->within)) : XPL_STR(""), false);
    xpl_buf_putc(out, '}');
}

static void put_number(struct xpl_buf *out, const char *key, double v) {
    if (v > 0)
        xpl_buf_printf(out, ",\"%s\":%.3f", key, v);
    else
        xpl_buf_printf(out, ",\"%s\":null", key);
}

static void put_verdict(const struct xpl_verdict *v, struct xpl_buf *out) {
    xpl_buf_str(out, XPL_STR("\"verdict\":{"));
    xpl_json_field(out, "text", xpl_str_from(v->text));
    xpl_buf_str(out, XPL_STR(",\"cannot_tell\":"));
    if (v->cannot_tell)
        xpl_json_str(out, xpl_str_from(v->cannot_tell), false);
    else
        xpl_buf_str(out, XPL_STR("null"));
    xpl_buf_putc(out, ',');
    put_percent(out, "busy", v->busy_share);
    xpl_buf_putc(out, ',');
    xpl_json_field(out, "series", v->series);
    xpl_buf_putc(out, ',');
    put_ps(out, "step", v->step_ps);
    put_number(out, "flops_per_second", v->flops_per_s);
    put_number(out, "peak_percent", 100 * v->peak_share);
    xpl_buf_str(out, XPL_STR("},"));
}

static void put_all(const struct xpl_survey *s, const struct xpl_findings *f, struct xpl_buf *out) {
    struct xpl_verdict verdict;
    xpl_verdict_make(s, f, &verdict);
    xpl_buf_putc(out, '{');
    put_verdict(&verdict, out);
    xpl_json_field(out, "framework", xpl_str_from(xpl_framework_names[s->framework]));
    xpl_buf_printf(out, ",\"hosts\":%zu,\"devices\":%zu,\"steps\":%zu,", s->n_hosts, s->n_devices,
                   s->steps.n);
    put_ps(out, "wall", s->n_devices ? s->wall_ps / (double)s->n_devices : 0);
    xpl_buf_putc(out, ',');
    put_percent(out, "outside_steps", s->op_ps > 0 ? s->outside_ps / s->op_ps : 0);
    xpl_buf_str(out, XPL_STR(",\"times\":{"));
    for (int c = 0; c < XPL_TIME_CAUSES; c++) {
        if (c) xpl_buf_putc(out, ',');
        put_percent(out, xpl_time_cause_names[c], s->wall_ps > 0 ? s->ps[c] / s->wall_ps : 0);
    }
    xpl_buf_str(out, XPL_STR("},\"findings\":["));
    for (size_t i = 0; i < f->n; i++) {
        if (i) xpl_buf_putc(out, ',');
        put_finding(s, &f->v[i], out);
    }
    xpl_buf_str(out, XPL_STR("]}"));
}

// ---- the tool ----

enum { TIME_BREAKDOWN, OP_STATS }; // its products

static int best_first(const void *a, const void *b) {
    const struct xpl_finding *const x = a, *const y = b;
    if (x->saving != y->saving) return x->saving < y->saving ? 1 : -1;
    if (x->share != y->share) return x->share < y->share ? 1 : -1;
    return (x->kind > y->kind) - (x->kind < y->kind);
}

static xpl_status_t find(const struct xpl_survey *s, struct xpl_findings *f,
                         struct xpl_error *err) {
    xpl_findings_of_profile(s, f);
    if (!(s->wall_ps > 0)) return XPL_OK;
    if (!xpl_findings_of_causes(s, f) || !xpl_findings_of_collectives(s, f) ||
        !xpl_findings_of_steps(s, f))
        XPL_RETURN_OOM(err, "findings");
    xpl_findings_of_ops(s, f);
    xpl_findings_of_memory(s, f);
    xpl_findings_of_devices(s, f);
    xpl_findings_join(s, f);
    xpl_sort(f->v, f->n, sizeof *f->v, best_first);
    return XPL_OK;
}

static xpl_status_t render(const struct xpl_tool_input *in, struct xpl_buf *out,
                           struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena;
    struct xpl_survey s;
    struct xpl_opstats *stats;
    xpl_arena_init(&arena, in->limit);
    struct xpl_findings *const f = xpl_arena_zalloc(&arena, sizeof *f);
    if (!f) XPL_RETURN_OOM(err, "findings");
    XPL_TRY(xpl_op_stats_combine(in, OP_STATS, &arena, &stats, err));
    XPL_TRY(xpl_survey_make(in, stats, &arena, &s, err));
    XPL_TRY(find(&s, f, err));
    put_all(&s, f, out);
    if (out->failed) XPL_RETURN_OOM(err, "findings");
    return XPL_OK;
}

static const struct xpl_product *const kNeeds[] = {
    [TIME_BREAKDOWN] = &xpl_product_time_breakdown, [OP_STATS] = &xpl_product_op_stats, NULL};

const struct xpl_tool xpl_tool_findings = {
    .name = "findings",
    .version = 21,
    .needs = kNeeds,
    .facts = XPL_FACT_STEPS,
    .ignores = XPL_IGNORES_XPROF_EXACT,
    .hosts = XPL_HOSTS_EACH_OR_ALL,
    .shown = XPL_SHOWN_NEVER,
    .content_type = "application/json",
    .variant = xpl_op_stats_variant,
    .asks_device = true,
    .render = render,
};
