// SPDX-License-Identifier: Apache-2.0
// Findings that are a cause of the time breakdown, or two of them.
#include <stdio.h>
#include <string.h>

#include "analysis/tools/findings/findings.h"
#include "base/arena.h"
#include "base/vec.h"

static const struct cause_row {
    enum xpl_finding_kind kind;
    enum xpl_time_cause cause, other; // the same: only one
    enum xpl_op_layer ops;            // of devices, that show it; COMPUTE: none
    const char *text;                 // behind "X% of the time "
} kRows[] = {
    {XPL_FINDING_INPUT_WAIT, XPL_TIME_INPUT, XPL_TIME_INPUT, XPL_LAYER_INFEED,
     "devices wait for input"},
    {XPL_FINDING_LAUNCH_BOUND, XPL_TIME_LAUNCH, XPL_TIME_QUEUED, XPL_LAYER_COMPUTE,
     "devices are idle between ops while the host starts more"},
    {XPL_FINDING_HOST_COPIES, XPL_TIME_HOST_COPIES, XPL_TIME_HOST_COPIES, XPL_LAYER_HOST_COPY,
     "devices only copy from and to the host"},
    {XPL_FINDING_DEVICE_COPIES, XPL_TIME_DEVICE_COPIES, XPL_TIME_DEVICE_COPIES,
     XPL_LAYER_DEVICE_COPY, "devices only copy within or between devices"},
    {XPL_FINDING_HOST_CALLBACK, XPL_TIME_CALLBACK, XPL_TIME_CALLBACK, XPL_LAYER_CALLBACK,
     "devices wait for a function of the host that the program calls"},
    {XPL_FINDING_CHECKPOINT, XPL_TIME_CHECKPOINT, XPL_TIME_CHECKPOINT, XPL_LAYER_COMPUTE,
     "devices wait for a checkpoint"},
    {XPL_FINDING_HOST_BOUND, XPL_TIME_HOST, XPL_TIME_HOST, XPL_LAYER_COMPUTE,
     "devices are idle while the host does something else"},
    {XPL_FINDING_IDLE_UNKNOWN, XPL_TIME_UNKNOWN, XPL_TIME_UNKNOWN, XPL_LAYER_COMPUTE,
     "devices are idle for a reason that the profile does not show"},
};

static double of_row(const double *ps, const struct cause_row *r) {
    return ps[r->cause] + (r->other != r->cause ? ps[r->other] : 0);
}

// The part of queued time within graphs is known only of all steps together.
static struct cause_row without_graphs(const struct xpl_survey *s, const struct cause_row *r) {
    struct cause_row ret = *r;
    if (r->other == XPL_TIME_QUEUED && s->graph_ps > s->ps[XPL_TIME_QUEUED] / 2)
        ret.other = ret.cause;
    return ret;
}

static void add_hosts(const struct xpl_survey *s, const struct cause_row *r,
                      struct xpl_finding *f) {
    for (size_t i = 0; i < s->n_devices;) { // devices lie together by host
        const uint32_t host = s->devices[i].host;
        double ps = 0, wall = 0;
        for (; i < s->n_devices && s->devices[i].host == host; i++) {
            ps += of_row(s->devices[i].ps, r);
            wall += s->devices[i].wall_ps;
        }
        if (ps > 0) xpl_finding_add_host(f, s->hosts[host].name, ps / wall);
    }
}

static void add_names(const struct xpl_survey *s, const struct cause_row *r,
                      struct xpl_finding *f) {
    for (size_t h = 0; h < s->n_hosts; h++)
        for (size_t i = 0; i < s->hosts[h].b->evidence.n; i++) {
            const struct xpl_time_evidence *const e = &s->hosts[h].b->evidence.v[i];
            if (e->cause == r->cause || e->cause == r->other)
                xpl_finding_add_op(f, e->name, (double)e->ps);
        }
}

static void add_evidence(const struct xpl_survey *s, const struct cause_row *r,
                         struct xpl_finding *f) {
    add_hosts(s, r, f);
    for (size_t i = 0; i < s->steps.n; i++) {
        const double ps = of_row(s->steps.v[i].ps, r);
        if (ps > 0) xpl_finding_add_step(f, &s->steps.v[i], ps);
    }
    add_names(s, r, f);
    if (r->ops != XPL_LAYER_COMPUTE) xpl_finding_add_layer(f, s, r->ops);
    xpl_finding_set_window(f, s, r->cause);
    if (r->other != r->cause) xpl_finding_set_window(f, s, r->other);
}

// Of a graph the host starts all ops at once: the gaps between them are the device's.
static void find_graph_gaps(const struct xpl_survey *s, struct xpl_findings *out) {
    const double share = s->graph_ps / s->wall_ps;
    struct xpl_finding *const f = xpl_finding_add(out, XPL_FINDING_GRAPH_GAPS, share, share);
    if (!f) return;
    (void)snprintf(f->text, sizeof f->text,
                   "%.1f%% of the time devices are idle between the kernels of one graph",
                   100 * share);
    xpl_finding_set_window(f, s, XPL_TIME_QUEUED);
}

static void say_synced(const struct xpl_survey *s, struct xpl_finding *f) {
    const size_t n = strlen(f->text);
    (void)snprintf(f->text + n, sizeof f->text - n,
                   ", mostly after it has waited for them (%.*s): %.1f%% of the time",
                   XPL_FINDING_TEXT(s->sync_name), 100 * s->sync_ps / s->wall_ps);
}

// What slows one step of many, as another process or the start of a loop that runs ahead does, does
// not slow the others: beyond the median of all steps it is not what each of them waits for.
enum { ONCE_OF = 10, ONCE_OF_FIRST = 4 };

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The time of all devices that a cause takes beyond the usual in the only step that has most of it.
// False at the arena's limit.
static bool find_once(const struct xpl_survey *s, const struct cause_row *r, double *ret) {
    double *const v = xpl_arena_array(s->arena, s->steps.n, sizeof *v);
    double all = 0;
    size_t most = 0;
    *ret = 0;
    if (!v) return false;
    for (size_t i = 0; i < s->steps.n; i++) {
        v[i] = of_row(s->steps.v[i].ps, r) * (double)s->steps.v[i].n_devices;
        all += v[i];
        if (v[i] > v[most]) most = i;
    }
    if (s->steps.n < (most ? ONCE_OF : ONCE_OF_FIRST) || v[most] <= all / 2) return true;
    const double once = v[most];
    xpl_sort(v, s->steps.n, sizeof *v, by_value);
    *ret = once - v[s->steps.n / 2];
    return true;
}

static bool may_be_once(const struct cause_row *r) {
    return r->cause == XPL_TIME_LAUNCH || r->cause == XPL_TIME_HOST ||
           r->cause == XPL_TIME_HOST_COPIES;
}

// What a cause could save.
static bool find_saving(const struct xpl_survey *s, const struct cause_row *r, double share,
                        double *ret) {
    double once = 0;
    *ret = 0;
    if (r->cause == XPL_TIME_UNKNOWN) return true; // that work may be needed
    if (may_be_once(r) && share >= XPL_FINDING_LEAST && !find_once(s, r, &once)) return false;
    const double saving = xpl_survey_saving(s, r->cause, share) - once / s->wall_ps;
    *ret = saving > 0 ? saving : 0;
    return true;
}

bool xpl_findings_of_causes(const struct xpl_survey *s, struct xpl_findings *out) {
    for (size_t i = 0; i < sizeof kRows / sizeof *kRows; i++) {
        const double graph = kRows[i].other == XPL_TIME_QUEUED ? s->graph_ps : 0,
                     share = (of_row(s->ps, &kRows[i]) - graph) / s->wall_ps;
        double saving;
        if (!find_saving(s, &kRows[i], share, &saving)) return false;
        struct xpl_finding *const f = xpl_finding_add(out, kRows[i].kind, share, saving);
        if (!f) continue;
        f->saving = saving; // of several devices it may be more than the share
        (void)snprintf(f->text, sizeof f->text, "%.1f%% of the time %s", 100 * share,
                       kRows[i].text);
        const struct cause_row shown = without_graphs(s, &kRows[i]);
        add_evidence(s, &shown, f);
        if (f->kind == XPL_FINDING_LAUNCH_BOUND && xpl_survey_is_synced(s)) say_synced(s, f);
    }
    find_graph_gaps(s, out);
    return true;
}

enum xpl_finding_kind xpl_finding_of_cause(enum xpl_time_cause c) {
    for (size_t i = 0; i < sizeof kRows / sizeof *kRows; i++)
        if (kRows[i].cause == c || kRows[i].other == c) return kRows[i].kind;
    return c == XPL_TIME_COLLECTIVES ? XPL_FINDING_COLLECTIVES : XPL_FINDINGS;
}
