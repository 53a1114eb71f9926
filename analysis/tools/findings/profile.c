// SPDX-License-Identifier: Apache-2.0
// Findings of the profile itself: recorded errors, and the host's work where no device worked.
#include <inttypes.h>
#include <stdio.h>

#include "analysis/tools/findings/findings.h"

// Clocks that went wrong, and broken files.
static void find_impossible(const struct xpl_survey *s, struct xpl_findings *out) {
    uint64_t n = 0;
    for (size_t i = 0; i < s->n_hosts; i++)
        n += s->hosts[i].b->n_impossible;
    struct xpl_finding *const f =
        n ? xpl_finding_add_fact(out, XPL_FINDING_IMPOSSIBLE_TIMES) : NULL;
    if (f)
        (void)snprintf(f->text, sizeof f->text,
                       "%" PRIu64 " event%s of impossible times, which are left out", n,
                       n == 1 ? "" : "s");
}

// The first error, else the first warning, and how many more there are.
static void find_problems(const struct xpl_survey *s, struct xpl_findings *out) {
    const struct xpl_diagnostics *const d = &s->stats->diagnostics;
    const size_t n = d->errors.n + d->warnings.n;
    struct xpl_finding *const f =
        n ? xpl_finding_add_fact(out, XPL_FINDING_PROFILE_PROBLEMS) : NULL;
    if (!f) return;
    const xpl_str_t first = d->errors.n ? d->errors.v[0] : d->warnings.v[0];
    const int len = (int)(first.len < 160 ? first.len : 160);
    char more[32] = "";
    if (n > 1) (void)snprintf(more, sizeof more, ", and %zu more", n - 1);
    (void)snprintf(f->text, sizeof f->text, "the profile has %s: %.*s%s",
                   d->errors.n ? "an error" : "a warning", len, first.ptr, more);
}

// Below that, kernels that belong to no instruction explain it.
static const double kMuch = 0.1;

static void find_missing_hlo(const struct xpl_survey *s, struct xpl_findings *out) {
    const double all = s->kernel_ps > s->busy_op_ps ? s->kernel_ps : s->busy_op_ps;
    const double missing = all > 0 ? s->no_hlo_ps / all : 0;
    if (!(missing >= kMuch)) return;
    struct xpl_finding *const f =
        xpl_finding_add(out, XPL_FINDING_MISSING_HLO, xpl_finding_op_share(s, s->no_hlo_ps), 0);
    if (f)
        (void)snprintf(f->text, sizeof f->text,
                       "%.1f%% of kernel time belongs to programs whose HLO the profile does not "
                       "have",
                       100 * missing);
}

// A capture may begin and end while programs are compiled.
static void find_compiling(const struct xpl_survey *s, struct xpl_findings *out) {
    double ps = 0;
    for (size_t i = 0; i < s->n_hosts; i++)
        ps += (double)s->hosts[i].b->compile_ps;
    struct xpl_finding *const f =
        !s->n_devices && ps > 0 ? xpl_finding_add_fact(out, XPL_FINDING_COMPILE_AT_START) : NULL;
    if (f)
        (void)snprintf(f->text, sizeof f->text,
                       "no device did anything: the host compiled for %.1f s", ps / 1e12);
}

static void find_graph_breaks(const struct xpl_survey *s, struct xpl_findings *out) {
    struct xpl_finding *const f =
        s->n_graph_breaks > 0 ? xpl_finding_add_fact(out, XPL_FINDING_GRAPH_BREAKS) : NULL;
    if (f)
        (void)snprintf(f->text, sizeof f->text,
                       "torch.compile breaks its graphs: functions go on behind a break %.0f times "
                       "in %zu steps",
                       s->n_graph_breaks, s->steps.n);
}

void xpl_findings_of_profile(const struct xpl_survey *s, struct xpl_findings *out) {
    if (s->wall_ps > 0) find_missing_hlo(s, out);
    find_graph_breaks(s, out);
    find_problems(s, out);
    find_compiling(s, out);
    find_impossible(s, out);
}
