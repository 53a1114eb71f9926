// SPDX-License-Identifier: Apache-2.0
// The first sentence about a session: what limits it, or why the profile does not show that.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "analysis/opstats/metrics/op_metrics.h"
#include "analysis/opstats/steps/step_number.h"
#include "analysis/tools/findings/findings.h"

// A finding that could save less is not what limits a program.
static const double kMuch = 0.05;
static const double kLeastShare = 0.0005; // of the peak: "0.0%" says nothing
// If more idle time than this is unknown, nothing can be said of the rest.
static const double kUnknown = 0.1;

// What devices do for that share of each step: "each step waits 40.0 ms of 53.0 ms for input".
static const char *const kPhrases[XPL_FINDINGS][2] = {
    [XPL_FINDING_INPUT_WAIT] = {"waits", "for input"},
    [XPL_FINDING_COLLECTIVES] = {"spends", "on communication that no computing hides"},
    [XPL_FINDING_STRAGGLERS] = {"waits", "for the last device in collectives"},
    [XPL_FINDING_LAUNCH_BOUND] = {"waits", "for the host to start work"},
    [XPL_FINDING_GRAPH_GAPS] = {"spends", "between the kernels of a graph"},
    [XPL_FINDING_HOST_COPIES] = {"spends", "on copies from and to the host"},
    [XPL_FINDING_DEVICE_COPIES] = {"spends", "on copies within and between devices"},
    [XPL_FINDING_HOST_CALLBACK] = {"waits", "for a function of the host"},
    [XPL_FINDING_RECOMPILATION] = {"spends", "on compiling"},
    [XPL_FINDING_COMPILE_AT_START] = {"spends", "on compiling, on average: it is done once"},
    [XPL_FINDING_CHECKPOINT] = {"waits", "for checkpoints, on average"},
    [XPL_FINDING_HOST_BOUND] = {"waits", "while the host does something else"},
    [XPL_FINDING_LAYOUT_COPIES] = {"spends", "on copies for other layouts"},
    [XPL_FINDING_LOW_OCCUPANCY] = {"spends", "on kernels that fill little of the device"},
    [XPL_FINDING_NO_TENSOR_CORES] = {"spends", "on matrices without tensor cores"},
    [XPL_FINDING_FAR_FROM_ROOFLINE] = {"spends", "on ops far from what the device can do"},
};

static void append(struct xpl_verdict *v, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void append(struct xpl_verdict *v, const char *fmt, ...) {
    const size_t at = strlen(v->text);
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(v->text + at, sizeof v->text - at, fmt, args);
    va_end(args);
}

static void append_time(struct xpl_verdict *v, double ps) {
    static const char *const units[] = {"ps", "ns", "µs", "ms", "s"};
    size_t u = 0;
    for (; ps >= 1000 && u < 4; u++)
        ps /= 1000;
    append(v, "%.*f %s", ps < 10 ? 2 : ps < 100 ? 1 : 0, ps, units[u]);
}

// ---- the known facts ----

// The series with most steps, and their mean time.  Returns how many series there are.
static size_t find_step(const struct xpl_survey *s, struct xpl_verdict *v) {
    const struct xpl_survey_series *most = NULL;
    size_t n_series = 0;
    for (uint32_t i = 0; i < s->n_series; i++) {
        const struct xpl_survey_series *const x = &s->series[i];
        n_series += x->n_steps > 0;
        if (x->n_steps > (most ? most->n_steps : 0)) most = x;
    }
    if (most) {
        v->series = xpl_step_series(s->steps.v[most->first].name);
        v->step_ps = most->slowest_ps / (double)most->n_steps;
    }
    return n_series;
}

static bool is_container(xpl_str_t category) {
    return xpl_str_eq(category, XPL_STR("while")) || xpl_str_eq(category, XPL_STR("call")) ||
           xpl_str_eq(category, XPL_STR("conditional"));
}

// Kinds of PyTorch's ops that have most of a program's operations, or may have them.
static bool does_most(xpl_str_t category) {
    static const char *const kKinds[] = {"GEMM", "Convolution", "Attention", "Triton", "Other"};
    for (size_t i = 0; i < sizeof kKinds / sizeof *kKinds; i++)
        if (xpl_str_eq(category, xpl_str_from(kKinds[i]))) return true;
    return false;
}

// Whether the time of ops of unknown cost is little, of PyTorch, whose ops have costs by a table.
static bool knows_torch_costs(const struct xpl_survey *s) {
    const struct xpl_op_metrics_db *const db = &s->stats->device_op_metrics_db;
    double unknown = 0;
    for (size_t i = 0; i < db->metrics_db.n; i++) {
        const struct xpl_op_metrics *const m = &db->metrics_db.v[i];
        if (!(m->flops_v2 > 0) && does_most(m->category)) unknown += (double)m->self_time_ps;
    }
    return s->framework != XPL_FRAMEWORK_PYTORCH || unknown < kUnknown * s->busy_op_ps;
}

// Operations of a device in a second of the window; nothing beyond its peak.
static void find_rate(const struct xpl_survey *s, struct xpl_verdict *v) {
    const struct xpl_op_metrics_db *const db = &s->stats->device_op_metrics_db;
    const double peak = s->stats->perf_env.peak_tera_flops_per_second * 1e12;
    double flops = 0;
    if (s->is_cpu || !(peak > 0)) return; // the peak of a CPU is unknown
    if (!knows_torch_costs(s)) return;
    for (size_t i = 0; i < db->metrics_db.n; i++) {
        const struct xpl_op_metrics *const m = &db->metrics_db.v[i];
        if (is_container(m->category)) continue;
        flops += m->flops_v2 > 0 ? m->flops_v2 : (double)m->flops;
    }
    const double rate = flops / (s->wall_ps / 1e12);
    if (rate > peak || rate < kLeastShare * peak) return; // GEMMs are unknown
    v->flops_per_s = rate;
    v->peak_share = rate / peak;
}

// Whether the profile has the operations of most ops.
static bool knows_costs(const struct xpl_findings *f) {
    for (size_t i = 0; i < f->n; i++)
        if (f->v[i].kind == XPL_FINDING_MISSING_HLO || f->v[i].kind == XPL_FINDING_UNKNOWN_COST)
            return false;
    return true;
}

// ---- sentences ----

static double compile_ps(const struct xpl_survey *s) {
    double ps = 0;
    for (size_t i = 0; i < s->n_hosts; i++)
        ps += (double)s->hosts[i].b->compile_ps;
    return ps;
}

// Profilers say only in words that events are missing: XLA's "Detected GPU events dropped on HOST",
// the agent's "N GPU events dropped", ours of a trace of PyTorch whose file was cut.  Programs have
// warnings about other dropped things.
static bool is_loss(xpl_str_t text) {
    return xpl_str_has(text, XPL_STR("GPU events dropped")) ||
           xpl_str_has(text, XPL_STR("the trace ends at byte"));
}

// Whether some text is one of a loss, or is not.
static bool any_is(const struct xpl_str_list *l, bool loss) {
    for (size_t i = 0; i < l->n; i++)
        if (is_loss(l->v[i]) == loss) return true;
    return false;
}

static bool is_truncated(const struct xpl_survey *s) {
    const struct xpl_diagnostics *const d = &s->stats->diagnostics;
    return any_is(&d->errors, true) || any_is(&d->warnings, true);
}

// No device did anything.  Another error is the cause even if the profiler also dropped events.
static void say_nothing(const struct xpl_survey *s, struct xpl_verdict *v) {
    if (any_is(&s->stats->diagnostics.errors, false)) {
        v->cannot_tell = "profiler_error";
        append(v, "The profile has no events of a device, because the profiler failed");
    } else if (v->cannot_tell) {
        append(v, "The profile has no events of a device: the profiler dropped events, or was "
                  "stopped");
    } else if (compile_ps(s) > 0) {
        v->cannot_tell = "compiling";
        append(v, "The host compiled while the profile was taken, and no device did anything");
    } else {
        v->cannot_tell = "no_device_events";
        append(v, "The profile has no events of a device, so that it does not show what limits "
                  "the program");
    }
}

static void say_finding(const struct xpl_survey *s, const struct xpl_finding *f, bool one_series,
                        struct xpl_verdict *v) {
    const char *const *const phrase = kPhrases[f->kind];
    if (f->kind == XPL_FINDING_STEP_OUTLIERS) {
        append(v, "%.1f%% of the time is lost to long steps: %s", 100 * f->share, f->text);
        return;
    }
    const double part = f->kind == XPL_FINDING_STRAGGLERS ? f->share : f->saving;
    if (one_series && phrase[0]) {
        append(v, "Each step %s ", phrase[0]);
        append_time(v, part * v->step_ps);
        append(v, " of ");
        append_time(v, v->step_ps);
        append(v, " %s", phrase[1]);
    } else {
        append(v, "%s: %.1f%% of the time", xpl_finding_title(f->kind), 100 * part);
    }
    if (f->has_late) {
        const struct xpl_survey_host *const h = &s->hosts[s->devices[f->late].host];
        char why[128];
        xpl_survey_say_why(h, f->late_cause, why, sizeof why);
        append(v, ": %.*s, as %s", XPL_FINDING_TEXT(h->name), why);
    } else if (f->n_ops) {
        append(v, " (%.*s)", XPL_FINDING_TEXT(f->ops[0].name));
    }
}

static void say_busy(const struct xpl_survey *s, struct xpl_verdict *v) {
    append(v, "%s computes %.1f%% of the time", s->n_devices > 1 ? "Each device" : "The device",
           100 * v->busy_share);
    const double unknown = s->ps[XPL_TIME_UNKNOWN] / s->wall_ps;
    if (unknown >= kUnknown)
        append(v, ", and is idle for %.1f%% of it: the profile does not show why", 100 * unknown);
    else
        append(v, "; nothing much to gain outside of the ops");
    if (!(v->step_ps > 0)) return;
    append(v, "; a step takes ");
    append_time(v, v->step_ps);
}

// Idle time of unknown cause may be more than that of the greatest finding.
static void say_unknown(const struct xpl_survey *s, double saving, struct xpl_verdict *v) {
    const double unknown = s->ps[XPL_TIME_UNKNOWN] / s->wall_ps;
    if (unknown >= kUnknown && unknown > saving)
        append(v, "; for %.1f%% of the time devices are idle, and the profile does not show why",
               100 * unknown);
}

// Ops outside of steps are in no time of a step.
static void say_outside(const struct xpl_survey *s, struct xpl_verdict *v) {
    const double share = s->op_ps > 0 ? s->outside_ps / s->op_ps : 0;
    if (share >= kMuch) append(v, "; %.1f%% of the ops' time is outside of steps", 100 * share);
}

static void say_rate(const struct xpl_findings *f, struct xpl_verdict *v) {
    if (v->flops_per_s > 0 && knows_costs(f))
        append(v, "; %.3g TFLOP/s for each device, %.1f%% of its peak for 16-bit matrices",
               v->flops_per_s / 1e12, 100 * v->peak_share);
}

void xpl_verdict_make(const struct xpl_survey *s, const struct xpl_findings *f,
                      struct xpl_verdict *ret) {
    *ret = (struct xpl_verdict){.series = {"", 0},
                                .cannot_tell = is_truncated(s) ? "truncated" : NULL};
    if (!(s->wall_ps > 0)) {
        say_nothing(s, ret);
        return;
    }
    ret->busy_share = (s->ps[XPL_TIME_COMPUTE] + s->ps[XPL_TIME_OVERLAPPED]) / s->wall_ps;
    const bool one_series = find_step(s, ret) == 1;
    find_rate(s, ret);
    if (!s->steps.n && !ret->cannot_tell) ret->cannot_tell = "no_steps";
    if (f->n && f->v[0].saving >= kMuch) {
        say_finding(s, &f->v[0], one_series, ret);
        say_unknown(s, f->v[0].saving, ret);
    } else {
        say_busy(s, ret);
    }
    say_rate(f, ret);
    say_outside(s, ret);
    if (is_truncated(s)) append(ret, "; the profile lacks events, which may change this");
    if (xpl_step_is_execution(ret->series.len ? s->steps.v[0].name : XPL_STR("")))
        append(ret, "; nothing marks steps, executions are counted");
}
