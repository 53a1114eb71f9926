// SPDX-License-Identifier: Apache-2.0
// Where the time of a host's devices goes: each instant of each device has one cause, so that the
// times of the causes add up to the wall time, to the picosecond.  docs/findings.md defines the
// causes.
#ifndef XPL_ANALYSIS_BREAKDOWN_BREAKDOWN_H_
#define XPL_ANALYSIS_BREAKDOWN_BREAKDOWN_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/xplane/xspace.h"
#include "base/exec.h"
#include "base/status.h"
#include "base/vec.h"

struct xpl_arena;
struct xpl_buf;
struct xpl_step_db; // analysis/opstats/opstats.h

// What a device does at an instant, or why it does nothing.
enum xpl_time_cause {
    XPL_TIME_COMPUTE,
    XPL_TIME_OVERLAPPED,  // computes while a collective runs
    XPL_TIME_COLLECTIVES, // a collective runs, and nothing else
    XPL_TIME_HOST_COPIES, // between host and device
    XPL_TIME_DEVICE_COPIES,
    XPL_TIME_CALLBACK, // a function of the host, called by the program
    XPL_TIME_INPUT,    // idle from here on
    XPL_TIME_CHECKPOINT,
    XPL_TIME_COMPILE,
    XPL_TIME_LAUNCH, // the host is starting work
    XPL_TIME_QUEUED, // work was started before, and waits for the device
    XPL_TIME_HOST,   // the host does something else
    XPL_TIME_UNKNOWN,
    XPL_TIME_CAUSES
};
// "compute", ...: the key in JSON is this and "_ps".
extern const char *const xpl_time_cause_names[XPL_TIME_CAUSES];

enum xpl_framework {
    XPL_FRAMEWORK_UNKNOWN,
    XPL_FRAMEWORK_JAX,
    XPL_FRAMEWORK_TENSORFLOW,
    XPL_FRAMEWORK_PYTORCH_XLA, // in JSON "pytorch", too
    XPL_FRAMEWORK_PYTORCH,     // with its own kernels
    XPL_FRAMEWORKS
};
extern const char *const xpl_framework_names[XPL_FRAMEWORKS];

enum xpl_device_kind { XPL_DEVICE_CPU, XPL_DEVICE_GPU, XPL_DEVICE_TPU };

// Times below are in picoseconds since `base_ps` of the breakdown.
struct xpl_time_step {
    int64_t number; // as the program gave it, or the group's
    xpl_str_t name;
    uint64_t begin_ps, end_ps; // steps do not overlap
    uint64_t n_compiles;       // begun in it
    // Of a CPU: how long its ops take if each takes as long as on average; 0: not measured.
    uint64_t work_ps;
};

struct xpl_time_device {
    xpl_str_t name;
    enum xpl_device_kind kind;
    uint32_t core_id; // of a TPU as OpStats have it; of others the number of its plane
    uint64_t n_ops;
    // The longest stretch of each cause.
    uint64_t begin_ps[XPL_TIME_CAUSES], longest_ps[XPL_TIME_CAUSES];
};

#define XPL_BETWEEN_STEPS UINT32_MAX
struct xpl_time_row {
    uint32_t device;
    uint32_t step; // index, or XPL_BETWEEN_STEPS: all that is in no step
    uint64_t wall_ps;
    uint64_t ps[XPL_TIME_CAUSES]; // their sum is wall_ps
};

// What the host was at while devices were idle.
struct xpl_time_evidence {
    enum xpl_time_cause cause;
    xpl_str_t name;
    uint64_t ps, count; // of idle time, of all devices together
};

struct xpl_time_memory {
    xpl_str_t name; // of the allocator
    uint64_t peak_bytes, capacity_bytes;
};

struct xpl_time_breakdown {
    enum xpl_framework framework;
    uint64_t base_ps;          // as the events of the profile count, modulo 2^64
    uint64_t begin_ps, end_ps; // what is broken down
    uint64_t n_compiles;       // in that
    uint64_t all_compiles;     // in all of the profile
    uint64_t compile_ps;       // in which some thread compiled, in all of the profile
    uint64_t devices_left_out; // of a profile with very many
    uint64_t n_impossible;     // events whose times cannot be, which are left out
    // Of all devices, in which ops run; of that, outside of every step.
    uint64_t op_ps, outside_ps;
    uint64_t graph_ps; // of queued time of all devices: between two ops of one launch, a graph
    uint64_t queue_ps; // of input of all devices: waiting for a thread that fills a queue
    // Of launch, copies and host of all devices of PyTorch: since the device was done with all of
    // its work while the host waited for it; and the name of most of these waits.
    uint64_t sync_ps;
    xpl_str_t sync_name;
    uint64_t n_graph_breaks; // of torch.compile: functions that went on behind one
    bool has_python;         // the Python tracer recorded functions
    XPL_VEC(struct xpl_time_step) steps;
    XPL_VEC(struct xpl_time_device) devices;
    XPL_VEC(struct xpl_time_row) rows;          // by device, then by step
    XPL_VEC(struct xpl_time_evidence) evidence; // of each cause the greatest, by cause and time
    XPL_VEC(struct xpl_time_memory) memory;
};

enum {
    XPL_TIME_MAX_EVIDENCE = 5, // of a cause
    XPL_TIME_MAX_DEVICES = 1024,
    XPL_TIME_MAX_ROWS = 1 << 18,
};

struct xpl_time_breakdown_options {
    bool cpu_as_device; // the host's ops are those of a device, when it has no other
    // The steps of a conversion of the same space, with the same cpu_as_device and not as XProf;
    // NULL, or without all steps: they are converted anew.
    const struct xpl_step_db *known;
};
// Breaks an opened space down.  *ret lives in `arena` and refers to nothing else; temporaries take
// up to `limit` bytes.  DATA_LOSS, RESOURCE_EXHAUSTED, CANCELLED.
xpl_status_t xpl_time_breakdown_make(const struct xpl_xspace *xs,
                                     const struct xpl_time_breakdown_options *opt,
                                     struct xpl_exec *exec, struct xpl_arena *arena, size_t limit,
                                     struct xpl_time_breakdown **ret, struct xpl_error *err)
    XPL_NODISCARD;

// The times of all rows of a device.
struct xpl_time_sums {
    uint64_t wall_ps, ps[XPL_TIME_CAUSES];
};
// Adds up the rows of device `d`, which begin at *row; *row moves behind them.
void xpl_time_sum_device(const struct xpl_time_breakdown *b, size_t d, size_t *row,
                         struct xpl_time_sums *ret);
// The step in which a time of the breakdown lies; XPL_BETWEEN_STEPS: none.
uint32_t xpl_time_step_at(const struct xpl_time_breakdown *b, uint64_t t);
// How long the busiest device works in all of the window; 0: none does.
uint64_t xpl_time_most_work_ps(const struct xpl_time_breakdown *b);
// A device that works less than a hundredth as long as the busiest one of its host is one that the
// program does not use: its idle time says nothing of the program.  docs/findings.md.
bool xpl_time_is_used(const struct xpl_time_sums *s, uint64_t most_work_ps);
// For each device whether the program uses it, or true for all if it uses none; in `arena`.  NULL
// at its limit.
const bool *xpl_time_used_devices(const struct xpl_time_breakdown *b, struct xpl_arena *arena);

// Appends the encoding.  RESOURCE_EXHAUSTED.
xpl_status_t xpl_time_breakdown_encode(const struct xpl_time_breakdown *b, struct xpl_buf *out,
                                       struct xpl_error *err) XPL_NODISCARD;
// DATA_LOSS when the bytes are no encoding, or one whose parts do not fit each other.
xpl_status_t xpl_time_breakdown_decode(xpl_bytes_t bytes, struct xpl_arena *arena,
                                       struct xpl_time_breakdown **ret, struct xpl_error *err)
    XPL_NODISCARD;

#endif
