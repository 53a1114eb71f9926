// SPDX-License-Identifier: Apache-2.0
// Tool smart_suggestion: what a session could do better.  XProf 2.24.2 has one rule: cores of TPUs
// that wait for each other.  The rule and its figures are XProf's, the words are ours.
#include <math.h>

#include "analysis/tools/lib/fractions.h"
#include "analysis/tools/tool.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/vec.h"

struct suggestion_options {
    struct xpl_common_options common; // every tool's come first
    bool refresh;
};

static const struct xpl_tool_option kOptions[] = {
    {.key = "refresh_suggestion",
     .type = XPL_OPTION_BOOL,
     .shapes = XPL_SHAPES_NOTHING,
     .offset = offsetof(struct suggestion_options, refresh),
     .values = "true|false",
     .preset = "false",
     .help = "accepted as in XProf, where it recomputes the answer; ours is always current"},
};

// From here on waiting is worth a word.
static const double kLeastPercent = 10;
// A host is different when 0.6745 (x - median) / MAD is beyond this: the modified z-score of
// Iglewicz and Hoaglin.
static const double kMostDeviation = 3.5, kNormal = 0.6745, kLeastMad = 0.1;
enum { LEAST_HOSTS = 3 };

// ---- figures ----

struct host {
    xpl_str_t name;
    double percent; // of a step, on average
    bool different; // from the others
};

struct figures {
    double percent; // of a step, on average over planes and steps
    struct host *hosts;
    size_t n_hosts; // that have any, each name once
};

static double mean_percent(const struct xpl_fractions *v, size_t n) {
    float sum = 0; // as XProf has it
    double count = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < v[i].n; k++)
            sum += v[i].v[k];
        count += (double)v[i].n;
    }
    return count > 0 ? (double)sum / count * 100 : NAN;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Of an even number the upper one of the two in the middle, as XProf takes it.
static double median(double *v, size_t n) {
    xpl_sort(v, n, sizeof *v, by_value);
    return v[n / 2];
}

static bool mark_different(struct figures *f, struct xpl_arena *scratch) {
    const size_t n = f->n_hosts;
    double *const v = xpl_arena_array(scratch, n, sizeof *v);
    if (!v) return false;
    if (n < LEAST_HOSTS) return true;
    for (size_t i = 0; i < n; i++)
        v[i] = f->hosts[i].percent;
    const double middle = median(v, n);
    for (size_t i = 0; i < n; i++)
        v[i] = fabs(f->hosts[i].percent - middle);
    const double mad = median(v, n);
    for (size_t i = 0; i < n; i++) {
        const double off = fabs(f->hosts[i].percent - middle);
        f->hosts[i].different =
            mad == 0 ? off > 0 : kNormal * off / fmax(mad, kLeastMad) > kMostDeviation;
    }
    return true;
}

static bool make_figures(const struct xpl_tool_input *in, struct xpl_arena *scratch,
                         struct figures *ret) {
    const struct xpl_event_fractions **const values =
        xpl_arena_array(scratch, in->n_hosts, sizeof(const struct xpl_event_fractions *));
    xpl_str_t *const names = xpl_arena_array(scratch, in->n_hosts, sizeof *names);
    struct xpl_session_fractions f;
    if (!values || !names) return false;
    for (size_t i = 0; i < in->n_hosts; i++) {
        const struct xpl_barriers_value *const v =
            in->hosts[i].products ? in->hosts[i].products[0] : NULL;
        names[i] = in->hosts[i].name;
        values[i] = v ? &v->fractions : NULL;
    }
    if (!xpl_fractions_collect(values, names, in->n_hosts, scratch, &f)) return false;
    *ret = (struct figures){.percent = mean_percent(f.planes, f.n_planes),
                            .hosts = xpl_arena_array(scratch, f.n_hosts, sizeof *ret->hosts)};
    if (!ret->hosts) return false;
    for (size_t i = 0, end; i < f.n_hosts; i = end) {
        end = xpl_fractions_end(f.hosts, f.n_hosts, i);
        const double percent = mean_percent(&f.hosts[i], end - i);
        if (!isnan(percent))
            ret->hosts[ret->n_hosts++] = (struct host){.name = f.hosts[i].name, .percent = percent};
    }
    return mark_different(ret, scratch);
}

// ---- words ----

// A name within HTML.
static void put_name(struct xpl_buf *b, xpl_str_t name) {
    for (size_t i = 0; i < name.len; i++) {
        const char c = name.ptr[i];
        if (c == '&' || c == '<' || c == '>')
            xpl_buf_str(b, c == '&'   ? XPL_STR("&amp;")
                           : c == '<' ? XPL_STR("&lt;")
                                      : XPL_STR("&gt;"));
        else
            xpl_buf_putc(b, c);
    }
}

static void put_hosts(struct xpl_buf *b, const struct figures *f) {
    bool any = false;
    for (size_t i = 0; i < f->n_hosts; i++) {
        if (!f->hosts[i].different) continue;
        if (!any)
            xpl_buf_str(b, XPL_STR("<li><b>Hosts:</b> these wait for another part of a step than "
                                   "the others. The others may wait for one that waits less.<ul>"));
        any = true;
        xpl_buf_str(b, XPL_STR("<li><b>"));
        put_name(b, f->hosts[i].name);
        xpl_buf_printf(b, "</b>: <b>%.1f%%</b></li>", f->hosts[i].percent);
    }
    if (any)
        xpl_buf_str(b, XPL_STR("</ul></li>"));
    else
        xpl_buf_str(b, XPL_STR("<li><b>Work:</b> compare what the cores do before they meet. Those "
                               "with less of it wait for those with more.</li>"));
}

static void put_text(struct xpl_buf *b, const struct figures *f) {
    xpl_buf_printf(b,
                   "<p>TPU cores wait for each other (<b>barrier-cores</b>) for <b>%.1f%%</b> of a "
                   "step on average.</p><ul>",
                   f->percent);
    put_hosts(b, f);
    xpl_buf_str(b,
                XPL_STR("<li><b>Input:</b> a host whose input comes late holds all cores up: see "
                        "input_pipeline_analyzer for each host.</li>"
                        "<li><b>Collectives:</b> see in op_profile which of them move the most "
                        "data, and whether they could move less or less often.</li>"
                        "<li><b>Network:</b> of several slices see megascale_stats for transfers "
                        "that are late.</li></ul>"));
}

static xpl_status_t render(const struct xpl_tool_input *in, struct xpl_buf *out,
                           struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch = xpl_arena_of(in->limit);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf text = xpl_buf_of(in->limit);
    struct figures f;
    if (!make_figures(in, &scratch, &f)) XPL_RETURN_OOM(err, "smart_suggestion");
    xpl_buf_str(out, XPL_STR("{\"suggestions\":["));
    if (f.percent >= kLeastPercent) {
        put_text(&text, &f);
        xpl_buf_str(out, XPL_STR("{\"ruleName\":\"BarrierCoresRule\",\"suggestionText\":"));
        xpl_json_str(out, (xpl_str_t){(const char *)text.p, text.n}, true);
        xpl_buf_putc(out, '}');
    }
    xpl_buf_str(out, XPL_STR("]}"));
    if (out->failed || text.failed) XPL_RETURN_OOM(err, "smart_suggestion");
    return XPL_OK;
}

static const struct xpl_product *const kNeeds[] = {&xpl_product_barriers, NULL};

const struct xpl_tool xpl_tool_smart_suggestion = {
    .name = "smart_suggestion",
    .version = 1,
    .needs = kNeeds,
    .facts = XPL_FACT_XLA_OPS,
    .options = kOptions,
    .n_options = sizeof kOptions / sizeof *kOptions,
    .options_size = sizeof(struct suggestion_options),
    .ignores = XPL_IGNORES_CPU_AS_DEVICE | XPL_IGNORES_XPROF_EXACT,
    .hosts = XPL_HOSTS_ALL,
    .shown = XPL_SHOWN_UNLISTED,
    .content_type = "application/json",
    .render = render,
};
