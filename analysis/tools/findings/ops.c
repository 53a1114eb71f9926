// SPDX-License-Identifier: Apache-2.0
// Findings of the ops themselves: data movement, and unused capacity of the device.
#include <stdio.h>
#include <string.h>

#include "analysis/breakdown/names.h"
#include "analysis/opstats/metrics/kernels.h"
#include "analysis/opstats/metrics/op_metrics.h"
#include "analysis/tools/findings/findings.h"

// The part of the wall time in which devices run ops, so that times of ops become shares of it.
static double busy_share(const struct xpl_survey *s) {
    double ps = 0;
    for (int c = XPL_TIME_COMPUTE; c < XPL_TIME_INPUT; c++)
        ps += s->ps[c];
    return ps / s->wall_ps;
}

// Kernels of programs whose HLO is not in the profile are not ops, and use the device anyway.
double xpl_finding_op_share(const struct xpl_survey *s, double ps) {
    const double all = s->kernel_ps > s->busy_op_ps ? s->kernel_ps : s->busy_op_ps;
    return all > 0 ? ps / all * busy_share(s) : 0;
}

// ---- padding and changes of layout ----

// The meaning of words in an op's name: XLA names fusions after their ops, "transpose_copy_fusion".
enum moved { MOVES_NOTHING, MOVES_COPIES, MOVES_LAYOUT };

static enum moved moved_by_word(xpl_str_t word) {
    static const struct {
        const char *word;
        enum moved moved;
    } kWords[] = {{"copy", MOVES_COPIES},
                  {"transpose", MOVES_LAYOUT},
                  {"pad", MOVES_LAYOUT},
                  {"reshape", MOVES_LAYOUT},
                  {"bitcast-convert", MOVES_LAYOUT}};
    for (size_t i = 0; i < sizeof kWords / sizeof *kWords; i++)
        if (xpl_str_eq(word, xpl_str_from(kWords[i].word))) return kWords[i].moved;
    return MOVES_NOTHING;
}

static bool is_beside(xpl_str_t word) {
    return xpl_str_eq(word, XPL_STR("wrapped")) || xpl_str_eq(word, XPL_STR("loop")) ||
           xpl_str_eq(word, XPL_STR("input")) || xpl_str_eq(word, XPL_STR("bitcast")) ||
           xpl_str_eq(word, XPL_STR("fusion"));
}

// A name with any other word does more than to move data.
static enum moved moved_by_name(xpl_str_t name) {
    enum moved most = MOVES_NOTHING;
    size_t at = name.len && name.ptr[0] == '%', end = at;
    for (; end <= name.len; end++) {
        const bool over = end == name.len || strchr(". :", name.ptr[end]);
        if (!over && name.ptr[end] != '_') continue;
        const xpl_str_t word = xpl_str_sub(name, at, end - at);
        const enum moved m = moved_by_word(word);
        if (m == MOVES_NOTHING && !is_beside(word)) return MOVES_NOTHING;
        if (m > most) most = m;
        if (over) break;
        at = end + 1;
    }
    return most;
}

static bool moves_data(const struct xpl_op_metrics *m) {
    return xpl_str_eq(m->category, XPL_STR("data formatting")) ||
           moved_by_name(m->name) != MOVES_NOTHING;
}

// Models transpose here and there: on a CPU, less is not a finding.
static const double kManyLayouts = 0.2;

struct op_sum {
    double ps, saved_ps;
};

typedef bool (*op_fn)(const struct xpl_survey *, const struct xpl_op_metrics *, double *saved_ps);

// What the program calls an op, without the scopes that it is in.
static xpl_str_t last_part(xpl_str_t name) {
    size_t at = name.len;
    while (at && name.ptr[at - 1] != '/')
        at--;
    return xpl_str_sub(name, at, name.len - at);
}

// Loops on CPUs copy their carried values, and XLA changes layouts there to run an op at all, as
// the gradient of a convolution: only what the program asks for counts. Without HLO in the profile
// it is unknown.
static bool is_layout(const struct xpl_survey *s, const struct xpl_op_metrics *m,
                      double *saved_ps) {
    *saved_ps = (double)m->self_time_ps;
    if (!s->is_cpu) return moves_data(m);
    if (!m->provenance.len && !xpl_str_eq(m->category, XPL_STR("unknown"))) return false;
    const enum moved by_name = moved_by_name(m->name);
    return moves_data(m) &&
           (by_name != MOVES_COPIES || moved_by_name(last_part(m->provenance)) == MOVES_LAYOUT);
}

// ---- the roofline ----

enum { FAR = 10 }; // times longer than the device would need
// What a profile does not say of a CPU: any of the last ten years moves as much for one core, so
// that less of a distance tells.
static const double kCpuCoreGbS = 10;
enum { FAR_ON_CPU = 3 };
// A run of some microseconds is that of the call and of its recording, whatever it moves.
static const double kCpuRunPs = 20e6;

static bool has_word(xpl_str_t s, xpl_str_t word) {
    for (size_t at = xpl_str_find(s, word, 0); at < s.len; at = xpl_str_find(s, word, at + 1))
        if (!at || strchr("_-./", s.ptr[at - 1])) return true;
    return false;
}

// Reads or writes numbers here and there, by the name of the instruction or of its framework op: a
// fusion is named after its ops. The gradient of a maximum over windows has to.
static bool is_irregular(const struct xpl_op_metrics *m) {
    static const char *const kWords[] = {"gather", "scatter", "Gather", "Scatter"};
    const xpl_str_t last = last_part(m->provenance);
    if (xpl_str_starts(last, XPL_STR("select_and_scatter")) ||
        xpl_str_has(m->name, XPL_STR("select-and-scatter")))
        return false;
    for (size_t i = 0; i < sizeof kWords / sizeof *kWords; i++)
        if (has_word(m->name, xpl_str_from(kWords[i])) ||
            xpl_str_starts(last, xpl_str_from(kWords[i])))
            return true;
    return false;
}

static double flops_of(const struct xpl_op_metrics *m) {
    return m->flops_v2 > 0 ? m->flops_v2 : (double)m->flops;
}

// XLA does not know what a call does, unless the program says so.
static bool is_unknown_call(const struct xpl_survey *s, const struct xpl_op_metrics *m,
                            double *saved_ps) {
    *saved_ps = 0;
    return !s->is_cpu && xpl_str_eq(m->category, XPL_STR("custom-call")) && !(flops_of(m) > 0) &&
           xpl_op_layer_of(m->name) == XPL_LAYER_COMPUTE;
}

// The least time that an op could take, by its operations and bytes; 0: not known.  Bytes of faster
// memories count as those of HBM, so that no op seems further away than it is.
static double least_ps(const struct xpl_survey *s, const struct xpl_op_metrics *m) {
    if (s->is_cpu) return (double)m->bytes_accessed / kCpuCoreGbS * 1e3;
    const struct xpl_perf_env *const env = &s->stats->perf_env;
    const double flops = flops_of(m), rate = xpl_finding_peak_tflops(s->stats, m->long_name),
                 bandwidth = env->peak_bws_giga_bytes_per_second.n > XPL_BW_HBM_RW
                                 ? env->peak_bws_giga_bytes_per_second.v[XPL_BW_HBM_RW]
                                 : 0;
    if (flops > 0 && !(rate > 0)) return 0;
    // FLOP per TFLOP/s are picoseconds; bytes per GB/s are nanoseconds.
    const double compute = flops > 0 ? flops / rate : 0,
                 move = bandwidth > 0 ? (double)m->bytes_accessed / bandwidth * 1e3 : 0;
    return compute > move ? compute : move;
}

// What other ops of a CPU could do is not known: sorts and loops of small ops are slow by nature.
// Other programs on its cores slow most runs of an op, but not the fastest.
static bool is_known_on_cpu(const struct xpl_op_metrics *m, double least) {
    return (double)m->self_time_ps >= kCpuRunPs * m->occurrences && is_irregular(m) &&
           (!m->min_time_ps || (double)m->min_time_ps * m->occurrences > FAR_ON_CPU * least);
}

// A kernel takes some microseconds whatever it does, and eager code runs many.
static const double kGpuRunPs = 10e6;

static bool is_short(const struct xpl_survey *s, const struct xpl_op_metrics *m) {
    return s->framework == XPL_FRAMEWORK_PYTORCH && !s->is_cpu &&
           (double)m->self_time_ps < kGpuRunPs * m->occurrences;
}

// Copies, collectives and waits for input have separate findings.
static bool is_far(const struct xpl_survey *s, const struct xpl_op_metrics *m, double *saved_ps) {
    double unknown;
    const double least = is_unknown_call(s, m, &unknown) ? 0 : least_ps(s, m),
                 took = (double)m->self_time_ps;
    *saved_ps = took - least;
    return least > 0 && took > (s->is_cpu ? FAR_ON_CPU : FAR) * least && !moves_data(m) &&
           (!s->is_cpu || is_known_on_cpu(m, least)) && !is_short(s, m) &&
           xpl_finding_layer_of(m) == XPL_LAYER_COMPUTE;
}

// ---- 32-bit matrices ----

// By the names of cuBLAS, cuDNN and CUTLASS.
static bool is_simt_kernel(xpl_str_t name) {
    static const char *const kSimt[] = {"sgemm", "scudnn", "_simt_", "ffma"};
    static const char *const kTensor[] = {"tf32", "tensorop", "1688"};
    bool simt = false;
    for (size_t i = 0; i < sizeof kSimt / sizeof *kSimt; i++)
        simt |= xpl_str_has(name, xpl_str_from(kSimt[i]));
    for (size_t i = 0; simt && i < sizeof kTensor / sizeof *kTensor; i++)
        simt = !xpl_str_has(name, xpl_str_from(kTensor[i]));
    return simt;
}

// Of PyTorch: XLA chooses kernels itself.
static bool is_without_tensor_cores(const struct xpl_survey *s, const struct xpl_op_metrics *m,
                                    double *saved_ps) {
    const double took = (double)m->self_time_ps, gain = xpl_finding_tf32_gain(s->stats);
    *saved_ps = 0;
    if (s->framework != XPL_FRAMEWORK_PYTORCH || s->is_cpu || !(gain > 1) ||
        !is_simt_kernel(last_part(m->name)))
        return false;
    const double least = least_ps(s, m) / gain > took / gain ? least_ps(s, m) / gain : took / gain;
    *saved_ps = took - least;
    return true;
}

static void find_ops(const struct xpl_survey *s, enum xpl_finding_kind kind, op_fn fn,
                     const char *text, struct xpl_findings *out) {
    const struct xpl_op_metrics_db *const db = &s->stats->device_op_metrics_db;
    struct op_sum sum = {0};
    double saved;
    for (size_t i = 0; i < db->metrics_db.n; i++) {
        const struct xpl_op_metrics *const m = &db->metrics_db.v[i];
        if (xpl_op_metrics_is_idle(m) || !fn(s, m, &saved)) continue;
        sum.ps += (double)m->self_time_ps;
        sum.saved_ps += saved;
    }
    if (!(s->busy_op_ps > 0)) return;
    const double share = xpl_finding_op_share(s, sum.ps);
    if (s->is_cpu && kind == XPL_FINDING_LAYOUT_COPIES && share < kManyLayouts) return;
    struct xpl_finding *const f =
        xpl_finding_add(out, kind, share, xpl_finding_op_share(s, sum.saved_ps));
    if (!f) return;
    (void)snprintf(f->text, sizeof f->text, "%.1f%% of the time %s", 100 * share, text);
    for (size_t i = 0; i < db->metrics_db.n; i++) {
        const struct xpl_op_metrics *const m = &db->metrics_db.v[i];
        if (!xpl_op_metrics_is_idle(m) && fn(s, m, &saved))
            xpl_finding_add_op(f, m->name, (double)m->self_time_ps);
    }
}

// ---- occupancy ----

static const float kLowOccupancy = 25; // percent

// Kernels that communicate leave the device to others.
static bool communicates(const struct xpl_kernel_report *k) {
    return xpl_op_is_collective(k->name) || xpl_op_is_collective(last_part(k->op_name));
}

static bool is_low(const struct xpl_kernel_report *k) {
    return !communicates(k) && k->occupancy_pct > 0 && k->occupancy_pct < kLowOccupancy &&
           !xpl_kernel_uses_matrix_unit(k); // those fill the device with few warps
}

static void find_occupancy(const struct xpl_survey *s, struct xpl_findings *out) {
    double all = 0, low = 0, saved = 0;
    for (size_t i = 0; i < s->stats->kernel_reports.n; i++) {
        const struct xpl_kernel_report *const k = &s->stats->kernel_reports.v[i];
        all += (double)k->total_duration_ns;
        if (!is_low(k)) continue;
        low += (double)k->total_duration_ns;
        saved += (double)k->total_duration_ns * (1 - (double)(k->occupancy_pct / 100));
    }
    if (!(all > 0)) return;
    const double share = low / all * busy_share(s);
    struct xpl_finding *const f =
        xpl_finding_add(out, XPL_FINDING_LOW_OCCUPANCY, share, saved / all * busy_share(s));
    if (!f) return;
    (void)snprintf(f->text, sizeof f->text,
                   "%.1f%% of the time goes to kernels that fill less than a quarter of the "
                   "device's threads",
                   100 * share);
    for (size_t i = 0; i < s->stats->kernel_reports.n; i++)
        if (is_low(&s->stats->kernel_reports.v[i]))
            xpl_finding_add_op(f, s->stats->kernel_reports.v[i].name,
                               (double)s->stats->kernel_reports.v[i].total_duration_ns * 1e3);
}

void xpl_findings_of_ops(const struct xpl_survey *s, struct xpl_findings *out) {
    find_ops(s, XPL_FINDING_LAYOUT_COPIES, is_layout,
             "devices copy, pad and transpose inputs and results of ops", out);
    find_ops(s, XPL_FINDING_FAR_FROM_ROOFLINE, is_far,
             s->is_cpu ? "devices gather and scatter far below a core's memory bandwidth"
                       : "devices run ops that take more than ten times as long as they need",
             out);
    find_ops(s, XPL_FINDING_NO_TENSOR_CORES, is_without_tensor_cores,
             "devices multiply matrices of float32 without tensor cores", out);
    find_ops(s, XPL_FINDING_UNKNOWN_COST, is_unknown_call,
             "devices run custom calls of unknown cost, which are not judged", out);
    if (!s->is_cpu) find_occupancy(s, out);
}

// ---- devices ----

void xpl_findings_of_devices(const struct xpl_survey *s, struct xpl_findings *out) {
    struct xpl_finding *const f = s->n_devices && s->n_idle_devices
                                      ? xpl_finding_add_fact(out, XPL_FINDING_IDLE_DEVICES)
                                      : NULL;
    if (f)
        (void)snprintf(f->text, sizeof f->text, "%zu of %zu devices do nothing, or hardly anything",
                       s->n_idle_devices, s->n_idle_devices + s->n_devices);
}

// ---- memory ----

static const double kFull = 0.9;

void xpl_findings_of_memory(const struct xpl_survey *s, struct xpl_findings *out) {
    const struct xpl_time_memory *worst = NULL;
    double fullest = kFull;
    struct xpl_finding found = {.kind = XPL_FINDING_MEMORY};
    if (s->is_cpu) return; // hosts' memory is not a device's
    for (size_t h = 0; h < s->n_hosts; h++)
        for (size_t i = 0; i < s->hosts[h].b->memory.n; i++) {
            const struct xpl_time_memory *const m = &s->hosts[h].b->memory.v[i];
            const double full =
                m->capacity_bytes ? (double)m->peak_bytes / (double)m->capacity_bytes : 0;
            if (full < kFull) continue;
            xpl_finding_add_host(&found, s->hosts[h].name, full < 1 ? full : 1);
            if (full < fullest) continue;
            fullest = full;
            worst = m;
        }
    if (!worst || out->n == XPL_FINDINGS) return;
    (void)snprintf(found.text, sizeof found.text,
                   "the memory %.*s was filled to %.1f%% of its %.1f GiB",
                   XPL_FINDING_TEXT(worst->name), 100 * (fullest < 1 ? fullest : 1),
                   (double)worst->capacity_bytes / (double)(1 << 30));
    for (size_t i = 0; i < found.n_hosts; i++)
        found.hosts[i].share = 0; // of memory, not of time
    out->v[out->n++] = found;
}
