// SPDX-License-Identifier: Apache-2.0
// What makes a run slow, ranked: the parts of the tool findings.  docs/findings.md defines each
// kind.
#ifndef XPL_ANALYSIS_TOOLS_FINDINGS_FINDINGS_H_
#define XPL_ANALYSIS_TOOLS_FINDINGS_FINDINGS_H_

#include "analysis/breakdown/breakdown.h"
#include "analysis/breakdown/names.h"
#include "analysis/opstats/opstats.h"
#include "analysis/tools/tool.h"
#include "base/status.h"
#include "base/vec.h"

struct xpl_arena;

// ---- what is known of a session ----

struct xpl_survey_host {
    xpl_str_t name;
    const struct xpl_time_breakdown *b;
};

// A device that did something.
struct xpl_survey_device {
    uint32_t host, index; // of the survey's hosts, of the host's devices
    const struct xpl_time_row *rows;
    size_t n_rows;
    double wall_ps, ps[XPL_TIME_CAUSES];
};

// A step of all devices, by its series and number, and by which one of these it is; in the order of
// the first device that has it.
struct xpl_survey_step {
    int64_t number;
    xpl_str_t name;
    uint32_t series; // steps of different annotations have different ones: they do not compare
    size_t n_devices;
    bool has_slowest;
    double wall_ps;    // of the device on which it took longest
    double slowest_ps; // of the survey's slowest device; of that which took longest if it lacks it
    double work_ps;    // of that device: how long its ops take on average; 0: not known
    // Time outside of exposed collectives: of the device with most, and of all; the device.
    double most_own_ps, own_ps;
    uint32_t last;
    // Of the device with most own time if none had that cause; of launch and queued neither.
    double most_without_ps[XPL_TIME_CAUSES];
    // Exposed collectives: of the device with least.
    double least_collectives_ps;
    // Means over the devices that have it.
    double ps[XPL_TIME_CAUSES];
    uint64_t n_compiles; // of the host with most
};

// The steps of one name.
struct xpl_survey_series {
    size_t n_steps, first; // position in xpl_survey.steps
    double slowest_ps;     // sum
};

struct xpl_survey {
    struct xpl_arena *arena;
    const struct xpl_survey_host *hosts;
    size_t n_hosts;
    struct xpl_survey_device *devices;
    size_t n_devices;
    size_t slowest; // the device whose steps take longest in total: the others wait for it
    XPL_VEC(struct xpl_survey_step) steps;
    struct xpl_survey_series *series; // by xpl_survey_step.series
    size_t n_series;
    enum xpl_framework framework;
    bool is_cpu, is_tpu;                 // no device but CPUs, TPUs
    bool has_python;                     // a host's Python tracer was on
    double graph_ps;                     // of queued: between ops of one graph
    double queue_ps;                     // of input: waiting for threads that fill queues
    double op_ps, outside_ps;            // in which ops run; of that, outside of every step
    double sync_ps;                      // idle time after waits of hosts for their devices
    uint64_t most_sync_ps;               // of one host,
    xpl_str_t sync_name;                 // and in what that one waits most
    double n_graph_breaks;               // of torch.compile, of all hosts
    size_t n_idle_devices;               // with hardly any ops in the window; not in `devices`
    double wall_ps, ps[XPL_TIME_CAUSES]; // sums over the devices
    const struct xpl_opstats *stats;     // of all hosts
    double kernel_ps;                    // of the kernels of GPUs
    double busy_op_ps;                   // self times of the devices' ops
    double no_hlo_ps;                    // of ops and kernels whose programs the profile lacks
};

// Fills *ret, which refers to the input.  RESOURCE_EXHAUSTED.
xpl_status_t xpl_survey_make(const struct xpl_tool_input *in, const struct xpl_opstats *stats,
                             struct xpl_arena *arena, struct xpl_survey *ret, struct xpl_error *err)
    XPL_NODISCARD;

// Whether most of the time in which devices wait for launches follows on waits of hosts for them.
bool xpl_survey_is_synced(const struct xpl_survey *s);

// ---- findings ----

enum xpl_finding_kind {
    XPL_FINDING_INPUT_WAIT,
    XPL_FINDING_COLLECTIVES,
    XPL_FINDING_STRAGGLERS,
    XPL_FINDING_LAUNCH_BOUND,
    XPL_FINDING_GRAPH_GAPS,
    XPL_FINDING_HOST_COPIES,
    XPL_FINDING_DEVICE_COPIES,
    XPL_FINDING_HOST_CALLBACK,
    XPL_FINDING_RECOMPILATION,
    XPL_FINDING_COMPILE_AT_START,
    XPL_FINDING_CHECKPOINT,
    XPL_FINDING_STEP_OUTLIERS,
    XPL_FINDING_HOST_BOUND,
    XPL_FINDING_IDLE_UNKNOWN,
    XPL_FINDING_LAYOUT_COPIES,
    XPL_FINDING_LOW_OCCUPANCY,
    XPL_FINDING_FAR_FROM_ROOFLINE,
    XPL_FINDING_NO_TENSOR_CORES,
    XPL_FINDING_UNKNOWN_COST,
    XPL_FINDING_MEMORY,
    XPL_FINDING_IDLE_DEVICES,
    XPL_FINDING_BUSY_MACHINE,
    XPL_FINDING_GRAPH_BREAKS,
    XPL_FINDING_MISSING_HLO,
    XPL_FINDING_PROFILE_PROBLEMS,
    XPL_FINDING_IMPOSSIBLE_TIMES,
    XPL_FINDINGS
};
const char *xpl_finding_name(enum xpl_finding_kind kind);
// The kind in words: "Waiting for input".
const char *xpl_finding_title(enum xpl_finding_kind kind);

// Why a host's device is late: what it does longer than the others, and where: "it waits for input
// ($train.py:3 load)".  `n` bytes of *ret.
void xpl_survey_say_why(const struct xpl_survey_host *h, enum xpl_time_cause c, char *ret,
                        size_t n);
// The cause without which devices would wait least for the last one, of all but collectives.
enum xpl_time_cause xpl_survey_late_cause(const struct xpl_survey *s);
// What part of the time a re-run without a cause saves, which takes that share of it.  In a step
// that collectives join, the device that is then the last decides, so that this may be more, as
// others wait for the device that had the cause, or less.
double xpl_survey_saving(const struct xpl_survey *s, enum xpl_time_cause c, double share);
// What a host was at for most of the idle time of a cause; NULL: not known.
const struct xpl_time_evidence *xpl_survey_evidence(const struct xpl_survey_host *h,
                                                    enum xpl_time_cause c);
// The kind of finding that a cause is; XPL_FINDINGS: none.
enum xpl_finding_kind xpl_finding_of_cause(enum xpl_time_cause c);

enum { XPL_FINDING_EVIDENCE = 5 }; // of hosts, steps, ops

struct xpl_finding_host {
    xpl_str_t name;
    double share; // of the time of its devices
};
struct xpl_finding_step {
    int64_t number;
    xpl_str_t name;
    double ps;
};
struct xpl_finding_op {
    xpl_str_t name;
    double ps;
};

struct xpl_finding {
    enum xpl_finding_kind kind;
    double share, saving; // of the time of all devices, 0 to 1; what it could save at most
    char text[320];       // one sentence, with its numbers
    // The finding whose time contains this one's, which therefore saves nothing; when `overlaps`.
    bool overlaps;
    enum xpl_finding_kind within;
    // Of steps that take longer: what most of the extra time is.  Of stragglers: which device is
    // last, and on what it spends more time than the others.
    bool has_cause, has_late;
    enum xpl_time_cause cause, late_cause;
    size_t late;
    struct xpl_finding_host hosts[XPL_FINDING_EVIDENCE];
    struct xpl_finding_step steps[XPL_FINDING_EVIDENCE];
    struct xpl_finding_op ops[XPL_FINDING_EVIDENCE];
    size_t n_hosts, n_steps, n_ops;
    bool has_window;
    xpl_str_t window_host;
    int64_t window_begin_ps; // as the profile's events count
    uint64_t window_ps;
};

struct xpl_findings {
    struct xpl_finding v[XPL_FINDINGS];
    size_t n;
};

// What is less than this share of the time is no finding.
#define XPL_FINDING_LEAST 0.01

// A text for printf's %.*s, cut to what a sentence can bear.
#define XPL_FINDING_TEXT(s) (int)((s).len < 60 ? (s).len : 60), (s).ptr

// A new finding that is not a share of the time; NULL: there are XPL_FINDINGS already.
struct xpl_finding *xpl_finding_add_fact(struct xpl_findings *f, enum xpl_finding_kind kind);
// A new finding, of a share and with what it could save, as long as it is one; else NULL.
struct xpl_finding *xpl_finding_add(struct xpl_findings *f, enum xpl_finding_kind kind,
                                    double share, double saving);
// Adds to its evidence: the greatest are kept, greatest first.
void xpl_finding_add_host(struct xpl_finding *f, xpl_str_t name, double share);
void xpl_finding_add_step(struct xpl_finding *f, const struct xpl_survey_step *step, double ps);
void xpl_finding_add_op(struct xpl_finding *f, xpl_str_t name, double ps);
// What kind of work an op of a device is.
enum xpl_op_layer xpl_finding_layer_of(const struct xpl_op_metrics *m);
// The ops of devices that are of a kind.
void xpl_finding_add_layer(struct xpl_finding *f, const struct xpl_survey *s,
                           enum xpl_op_layer layer);
// The longest stretch of a cause on any device.
void xpl_finding_set_window(struct xpl_finding *f, const struct xpl_survey *s,
                            enum xpl_time_cause cause);

// TFLOP/s that the device has for the operands of an instruction with that text; 0: not known.
double xpl_finding_peak_tflops(const struct xpl_opstats *stats, xpl_str_t text);
// How many times as fast the device multiplies matrices of 32-bit numbers as TF32; 0: it cannot, or
// is not known.
double xpl_finding_tf32_gain(const struct xpl_opstats *stats);

// The parts that look for them.
// False at the arena's limit, as the next two.
bool xpl_findings_of_causes(const struct xpl_survey *s, struct xpl_findings *f) XPL_NODISCARD;
bool xpl_findings_of_collectives(const struct xpl_survey *s, struct xpl_findings *f) XPL_NODISCARD;
bool xpl_findings_of_steps(const struct xpl_survey *s, struct xpl_findings *f) XPL_NODISCARD;
void xpl_findings_of_ops(const struct xpl_survey *s, struct xpl_findings *f);
void xpl_findings_of_devices(const struct xpl_survey *s, struct xpl_findings *f);
// What part of the devices' time an op has that takes `ps` of all ops' or kernels' times.
double xpl_finding_op_share(const struct xpl_survey *s, double ps);

void xpl_findings_of_profile(const struct xpl_survey *s, struct xpl_findings *f);
void xpl_findings_of_memory(const struct xpl_survey *s, struct xpl_findings *f);

// Removes findings that another one explains, and notes those whose time is another one's, too.
void xpl_findings_join(const struct xpl_survey *s, struct xpl_findings *f);

// The first sentence about a session.
struct xpl_verdict {
    char text[640];
    const char *cannot_tell; // why the profile does not show what limits it; NULL: it does
    double busy_share;       // of the time of all devices: they compute or communicate
    xpl_str_t series;        // of the steps: the one with most of them
    double step_ps;          // mean time of its steps; 0: there are none
    double flops_per_s;      // of a device; 0: not known
    double peak_share;       // of the peak of 16-bit matrices; 0: not known
};
// Of findings in their order, the greatest saving first.
void xpl_verdict_make(const struct xpl_survey *s, const struct xpl_findings *f,
                      struct xpl_verdict *ret);

// One sentence that fits the framework, the devices and the recorded events, and a link.
struct xpl_advice {
    const char *text, *link;
};
struct xpl_advice xpl_finding_advice(const struct xpl_survey *s, const struct xpl_finding *f);

#endif
