// SPDX-License-Identifier: Apache-2.0
// Findings from comparing steps: steps that differ, and compilations.
#include <inttypes.h>
#include <stdio.h>

#include "analysis/opstats/steps/step_number.h"
#include "analysis/tools/findings/findings.h"
#include "base/arena.h"
#include "base/vec.h"

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, size_t n) {
    xpl_sort(v, n, sizeof *v, by_value);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

// ---- compilations ----

static void find_compiles(const struct xpl_survey *s, struct xpl_findings *out) {
    const double all = s->ps[XPL_TIME_COMPILE] / s->wall_ps;
    uint64_t n = 0, n_steps = 0;
    double late = 0; // in steps after the first one
    for (size_t h = 0; h < s->n_hosts; h++)
        n = s->hosts[h].b->n_compiles > n ? s->hosts[h].b->n_compiles : n;
    for (size_t i = 1; i < s->steps.n; i++) {
        late += s->steps.v[i].ps[XPL_TIME_COMPILE] * (double)s->steps.v[i].n_devices;
        n_steps += s->steps.v[i].n_compiles > 0;
    }
    const bool again = late > s->ps[XPL_TIME_COMPILE] / 2 && n_steps > 1;
    struct xpl_finding *const f = xpl_finding_add(
        out, again ? XPL_FINDING_RECOMPILATION : XPL_FINDING_COMPILE_AT_START, all, all);
    if (!f) return;
    f->saving = xpl_survey_saving(s, XPL_TIME_COMPILE, all);
    if (again)
        (void)snprintf(f->text, sizeof f->text,
                       "%.1f%% of the time goes to compiling: %" PRIu64 " programs, in %" PRIu64
                       " of the %zu steps after the first",
                       100 * all, n, n_steps, s->steps.n - 1);
    else if (n)
        (void)snprintf(f->text, sizeof f->text,
                       "%.1f%% of the time goes to compiling %" PRIu64 " programs", 100 * all, n);
    else
        (void)snprintf(f->text, sizeof f->text, "%.1f%% of the time goes to compiling", 100 * all);
    for (size_t i = 0; i < s->steps.n; i++)
        if (s->steps.v[i].ps[XPL_TIME_COMPILE] > 0)
            xpl_finding_add_step(f, &s->steps.v[i], s->steps.v[i].ps[XPL_TIME_COMPILE]);
    for (size_t h = 0; h < s->n_hosts; h++)
        for (size_t i = 0; i < s->hosts[h].b->evidence.n; i++) {
            const struct xpl_time_evidence *const e = &s->hosts[h].b->evidence.v[i];
            if (e->cause == XPL_TIME_COMPILE) xpl_finding_add_op(f, e->name, (double)e->ps);
        }
    xpl_finding_set_window(f, s, XPL_TIME_COMPILE);
}

// ---- steps that take longer than others ----

enum { LEAST_STEPS = 5 };
static const double kOutlier = 1.5; // times the median
static const double kNoise = 0.1;   // of the time
// Times the usual work: what a step does more is not what makes it longer.
static const double kSameWork = 1.25;

// A series: its typical values. Of one with few steps nothing is.
struct usual {
    size_t first, n; // of the steps by series
    double wall_ps, work_ps, ps[XPL_TIME_CAUSES];
};

static int by_series(const void *a, const void *b) {
    const struct xpl_survey_step *const x = *(const struct xpl_survey_step *const *)a,
                                        *const y = *(const struct xpl_survey_step *const *)b;
    if (x->series != y->series) return x->series < y->series ? -1 : 1;
    return (x > y) - (x < y);
}

static void find_medians(const struct xpl_survey_step *const *steps, struct usual *u, double *v) {
    for (size_t i = 0; i < u->n; i++)
        v[i] = steps[u->first + i]->wall_ps;
    u->wall_ps = median(v, u->n);
    for (size_t i = 0; i < u->n; i++)
        v[i] = steps[u->first + i]->work_ps;
    u->work_ps = median(v, u->n);
    for (int c = 0; c < XPL_TIME_CAUSES; c++) {
        for (size_t i = 0; i < u->n; i++)
            v[i] = steps[u->first + i]->ps[c];
        u->ps[c] = median(v, u->n);
    }
}

// (*ret)[series]; NULL at the arena's limit.
static struct usual *find_usual(const struct xpl_survey *s) {
    struct usual *const all = xpl_arena_zalloc(s->arena, s->n_series * sizeof *all);
    const struct xpl_survey_step **const steps =
        xpl_arena_array(s->arena, s->steps.n, sizeof *steps);
    double *const v = xpl_arena_array(s->arena, s->steps.n, sizeof *v);
    if (!all || !steps || !v) return NULL;
    for (size_t i = 0; i < s->steps.n; i++)
        steps[i] = &s->steps.v[i];
    xpl_sort(steps, s->steps.n, sizeof *steps, by_series);
    for (size_t i = 0; i < s->steps.n; i++) {
        struct usual *const u = &all[steps[i]->series];
        if (!u->n++) u->first = i;
    }
    for (size_t i = 0; i < s->n_series; i++)
        if (all[i].n >= LEAST_STEPS) find_medians(steps, &all[i], v);
    return all;
}

static enum xpl_time_cause greatest(const double *more) {
    int best = 0;
    for (int c = 1; c < XPL_TIME_CAUSES; c++)
        if (more[c] > more[best]) best = c;
    return (enum xpl_time_cause)best;
}

// Compilation and writing have separate findings.
static bool is_told(enum xpl_time_cause c) {
    return c == XPL_TIME_COMPILE || c == XPL_TIME_CHECKPOINT;
}

struct outliers {
    double excess_ps, more[XPL_TIME_CAUSES];
    size_t n;
    double slow_ps; // of steps with the usual work
    size_t n_slow;
};

// Ops of a CPU that take longer than they do in other steps share its cores with other programs.
static bool is_slow_machine(const struct xpl_survey_step *step, const struct usual *u,
                            enum xpl_time_cause more) {
    return more == XPL_TIME_COMPUTE && u->work_ps > 0 && step->work_ps <= kSameWork * u->work_ps;
}

static bool add_outlier(const struct xpl_survey_step *step, const struct usual *u,
                        struct outliers *o) {
    double more[XPL_TIME_CAUSES];
    // Other work between executions of one program does not belong to a loop.
    if (xpl_step_is_execution(step->name)) return false;
    if (u->n < LEAST_STEPS || !(step->wall_ps > kOutlier * u->wall_ps)) return false;
    for (int c = 0; c < XPL_TIME_CAUSES; c++)
        more[c] = step->ps[c] - u->ps[c];
    if (is_told(greatest(more))) return false;
    if (is_slow_machine(step, u, greatest(more))) {
        o->n_slow++;
        o->slow_ps += step->wall_ps - u->wall_ps;
        return false;
    }
    o->n++;
    o->excess_ps += step->wall_ps - u->wall_ps;
    for (int c = 0; c < XPL_TIME_CAUSES; c++)
        o->more[c] += more[c];
    return true;
}

// The name of a cause in a sentence.
static const char *in_words(enum xpl_time_cause c, char buf[32]) {
    if (c == XPL_TIME_UNKNOWN) return "idle time of unknown cause";
    (void)snprintf(buf, 32, "%s", xpl_time_cause_names[c]);
    for (char *p = buf; *p; p++)
        if (*p == '_') *p = ' ';
    return buf;
}

static void find_busy_machine(const struct xpl_survey *s, const struct outliers *o, size_t n_steps,
                              struct xpl_findings *out) {
    const double share = o->slow_ps * (double)s->n_devices / s->wall_ps;
    struct xpl_finding *const f =
        share >= kNoise ? xpl_finding_add_fact(out, XPL_FINDING_BUSY_MACHINE) : NULL;
    if (f)
        (void)snprintf(f->text, sizeof f->text,
                       "%zu of %zu steps take more than %.1f times the median for the same ops, "
                       "which other programs on these cores may cause",
                       o->n_slow, n_steps, kOutlier);
}

bool xpl_findings_of_steps(const struct xpl_survey *s, struct xpl_findings *out) {
    struct outliers o = {0};
    size_t n_series = 0, n_steps = 0; // that have a usual time
    find_compiles(s, out);
    const struct usual *const u = find_usual(s);
    if (!u) return false;
    for (size_t i = 0; i < s->n_series; i++)
        if (u[i].n >= LEAST_STEPS) n_series++, n_steps += u[i].n;
    for (size_t i = 0; i < s->steps.n; i++)
        (void)add_outlier(&s->steps.v[i], &u[s->steps.v[i].series], &o);
    find_busy_machine(s, &o, n_steps, out);
    const double share = o.excess_ps * (double)s->n_devices / s->wall_ps;
    // Other processes take a CPU's cores from time to time: computing longer is not worth a word.
    const enum xpl_time_cause more = greatest(o.more);
    if (s->is_cpu && (more == XPL_TIME_COMPUTE || more == XPL_TIME_UNKNOWN) && share < kNoise)
        return true;
    struct xpl_finding *const f =
        2 * o.n < n_steps ? xpl_finding_add(out, XPL_FINDING_STEP_OUTLIERS, share, share) : NULL;
    if (!f) return true;
    char words[32];
    f->has_cause = true;
    f->cause = more;
    (void)snprintf(f->text, sizeof f->text,
                   "%zu of %zu steps take more than %.1f times the median%s; the extra time is "
                   "mostly %s",
                   o.n, n_steps, kOutlier, n_series > 1 ? " of their kind" : "",
                   in_words(f->cause, words));
    struct outliers again = {0};
    for (size_t i = 0; i < s->steps.n; i++)
        if (add_outlier(&s->steps.v[i], &u[s->steps.v[i].series], &again))
            xpl_finding_add_step(f, &s->steps.v[i], s->steps.v[i].wall_ps);
    return true;
}
