// SPDX-License-Identifier: Apache-2.0
// What the files of this folder share: a profile while it is broken down.
#ifndef XPL_ANALYSIS_BREAKDOWN_IMPL_H_
#define XPL_ANALYSIS_BREAKDOWN_IMPL_H_

#include "analysis/breakdown/breakdown.h"
#include "analysis/breakdown/names.h"
#include "analysis/breakdown/spans.h"
#include "base/arena.h"
#include "base/map.h"

// An op that was launched by an event of the host.
struct xpl_launch {
    uint64_t begin, launched;
};

struct xpl_device_time {
    const struct xpl_plane *plane; // NULL: the host
    enum xpl_device_kind kind;
    uint64_t n_ops;
    struct xpl_spans layers[XPL_LAYERS];
    XPL_VEC(struct xpl_launch) launches; // by begin
};

// What the thread that starts the work is at; by time, apart.
struct xpl_main_span {
    uint64_t begin, end;
    enum xpl_host_work work;
    uint32_t md; // its name
    bool takes;  // waits for what another thread puts into a queue
    bool slow;   // of PyTorch: one call that starts or prepares work, and takes long
};

struct xpl_main_spans {
    struct xpl_main_span *v;
    size_t n, cap;
};

struct xpl_host_reader;
struct xpl_work;

// What other threads may say of the host.
enum xpl_host_layer {
    XPL_HOST_INPUT_WAIT,   // of any thread
    XPL_HOST_INPUT_APART,  // of threads other than the main one
    XPL_HOST_COPIES_APART, // the same
    XPL_HOST_DISPATCH,     // the main line starts one thing after the other
    XPL_HOST_COMPILES,
    XPL_HOST_CALLBACKS,
    XPL_HOST_RUNS, // a program runs on the CPU: also where none of its ops is recorded
    XPL_HOST_LAYERS
};

struct xpl_host_time {
    const struct xpl_plane *plane; // NULL: none
    struct xpl_spans layers[XPL_HOST_LAYERS];
    uint32_t layer_md[XPL_HOST_LAYERS]; // the event with the most time
    struct xpl_main_spans main;
    struct xpl_main_spans aside; // of the line that starts most of the rest: autograd's
    bool has_feeder;             // a thread that puts into a queue
    uint32_t feeder_md;          // its function of most time
    uint8_t feeder_rank;         // 2: of the program, 1: of the interpreter, 0: that which puts
    XPL_VEC(uint64_t) compiles;  // begins
    struct xpl_map launches;     // correlation id to begin + 1
    struct xpl_host_reader *reader;
    struct xpl_work *work; // of the CPU as a device; NULL: it is not measured
};

struct xpl_breaking {
    const struct xpl_xspace *xs;
    struct xpl_exec *exec;
    struct xpl_arena *scratch;
    struct xpl_arena *result;
    bool cpu_as_device;
    bool is_torch;                   // a trace of PyTorch's profiler
    const struct xpl_step_db *known; // may be NULL
    uint64_t base;                   // what times are counted from
    struct xpl_host_time host;
    struct xpl_device_time *devices;
    size_t n_devices;
    uint64_t from, until; // the time that is broken down, or more, where that is not known yet
    struct xpl_time_breakdown *b;
};

// Times of a profile count from any instant, and wrap: here they lie around the middle.
#define XPL_TIME_MIDDLE (UINT64_C(1) << 60)
#define XPL_TIME_END    (UINT64_C(1) << 61)

// What the times of a line's events count from.
static inline uint64_t xpl_breaking_origin(const struct xpl_breaking *k,
                                           const struct xpl_line *line) {
    return (uint64_t)line->timestamp_ns * 1000 - k->base;
}

// The span of an event; empty when it lies further than 13 days from the first line's time of a
// device, or of the host.
static inline struct xpl_span xpl_breaking_span(uint64_t origin, const struct xpl_event *ev) {
    const uint64_t begin = origin + (uint64_t)ev->offset_ps;
    if (ev->has_occurrences || ev->duration_ps <= 0 || begin >= XPL_TIME_END ||
        (uint64_t)ev->duration_ps > XPL_TIME_END - begin)
        return (struct xpl_span){0, 0};
    return (struct xpl_span){begin, begin + (uint64_t)ev->duration_ps};
}

// Counts an event whose time cannot be: it ends before it begins, or lies outside of those 13 days.
static inline void xpl_breaking_count_impossible(struct xpl_breaking *k, struct xpl_span s,
                                                 const struct xpl_event *ev) {
    k->b->n_impossible += s.begin == s.end && ev->duration_ps != 0 && !ev->has_occurrences;
}

// Reads the host: after it, all but what its main line is at is known.  `ops` receives those of a
// CPU that counts as a device; NULL: none does.
xpl_status_t xpl_breaking_read_host(struct xpl_breaking *k, struct xpl_device_time *ops,
                                    struct xpl_error *err) XPL_NODISCARD;
// After that: what the main line is at, from k->from until k->until.
xpl_status_t xpl_breaking_read_main(struct xpl_breaking *k, struct xpl_error *err) XPL_NODISCARD;
// Reads the lines of d->plane.
xpl_status_t xpl_breaking_read_device(struct xpl_breaking *k, struct xpl_device_time *d,
                                      struct xpl_error *err) XPL_NODISCARD;
// Adds rows, devices and evidence to the breakdown, whose steps and window are known.
xpl_status_t xpl_breaking_sweep(struct xpl_breaking *k, struct xpl_error *err) XPL_NODISCARD;

// How much work the steps of a CPU are, if some take longer than others. *ret: NULL if not.  False
// at the arena's limit.
bool xpl_work_begin(struct xpl_breaking *k, struct xpl_work **ret) XPL_NODISCARD;
// Counts an op that computes.
bool xpl_work_add(struct xpl_work *w, uint32_t md, uint64_t program, struct xpl_span span)
    XPL_NODISCARD;
// Sets work_ps of the steps.
void xpl_work_end(const struct xpl_work *w);

#endif
