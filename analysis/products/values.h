// SPDX-License-Identifier: Apache-2.0
// What the values of products are, for the tools that need them.
#ifndef XPL_ANALYSIS_PRODUCTS_VALUES_H_
#define XPL_ANALYSIS_PRODUCTS_VALUES_H_

#include "base/arena.h"
#include "base/buf.h"

struct xpl_inference;
struct xpl_time_breakdown;
struct xpl_opstats;
struct xpl_trace;

// The beginning of a value that is one struct and an arena, which has all that it refers to.
struct xpl_arena_value {
    struct xpl_arena arena;
    size_t size; // of the struct
};

// Bits of op_stats' variant.
enum {
    XPL_OP_STATS_CPU_AS_DEVICE = 1,
    XPL_OP_STATS_ALL_STEPS = 2,
    XPL_OP_STATS_XPROF_EXACT = 4,
    XPL_OP_STATS_N_VARIANTS = 8,
};

struct xpl_op_stats_value {
    struct xpl_arena_value own;
    struct xpl_opstats *stats;
};

struct xpl_inference_value {
    struct xpl_arena_value own;
    struct xpl_inference *inference;
};

// Bits of time_breakdown's variant: those of op_stats, so that one function chooses both.
enum { XPL_TIME_BREAKDOWN_CPU_AS_DEVICE = XPL_OP_STATS_CPU_AS_DEVICE };

struct xpl_time_breakdown_value {
    struct xpl_arena_value own;
    struct xpl_time_breakdown *breakdown;
};

// An index, opened.
struct xpl_trace_index_value {
    struct xpl_buf index;   // its bytes, of one that was made; empty for one that was decoded
    struct xpl_arena arena; // holds `trace`
    struct xpl_trace *trace;
    struct xpl_trace_build *build; // not NULL: partial
    size_t limit;                  // bytes, of what `finish` may use
};

// Which devices a profile has.  Made from the names of its planes alone, so that bytes that are
// broken further on have devices too; their conversion tells that they are broken.
struct xpl_devices_value {
    bool accelerator; // a plane /device:TPU:… or /device:GPU:…
    // In the variant XPL_DEVICES_SHOWN: what decides which tools XProf's page shows.
    bool gpu;
    bool counters;  // an event of a TPU has the value of a hardware counter
    bool megascale; // a kind of host event is MegaScale's
};

// Bits of variants of the devices.
enum { XPL_DEVICES_SHOWN = 1 };

// A file of another format as an XSpace.
struct xpl_imported_xspace_value {
    xpl_bytes_t xspace;
    void *owned; // its memory; NULL: the bytes are those of a mapped file
};

// An HLO program that a profile has.
struct xpl_module_entry {
    xpl_str_t label; // "name(program id)", as XProf calls it
    xpl_str_t name;  // of the module
    uint64_t program_id;
    uint64_t offset, length; // bytes of the profile that are its HloProto
};
// The programs of a profile, by label, each program id once.
struct xpl_hlo_modules_value {
    struct xpl_arena_value own;
    struct xpl_module_entry *v;
    size_t n;
};

// A reading of a hardware counter.
struct xpl_counter {
    xpl_str_t name, description, sets; // as the profile has them
    uint64_t id; // performance_counter_id, else the id of the event's metadata; 0: none
    int64_t begin_ps, duration_ps; // of the event, where XProf sorts by time; else 0
    bool on_event; // the value stands on the event; else on its metadata, for all alike
    bool is_double;
    union {
        double d;
        uint64_t u; // of a value below 0, that plus 2^64
    };
};
// Readings that belong together: those of a line, [first, first + n).
struct xpl_counter_sample {
    xpl_str_t name; // of the line
    int64_t id;
    int64_t longest_ps; // of the line's events, whatever they are
    size_t first, n;
};
// A plane of a TPU or GPU with an id, with samples or without.
struct xpl_counter_device {
    xpl_str_t type;   // device_type_string
    bool tpu;         // else a GPU
    int64_t chip;     // global_chip_id, else device_id; -1: none
    int64_t device;   // device_id; -1: none
    int64_t number;   // that in the plane's name, where it ends the name; else -1
    int64_t first_ps; // of a TPU with samples: duration of the first op or, without, step; 0: none
    size_t first, n;  // of the samples
};
// The hardware counters of a profile, in the order of its planes, lines and events.
struct xpl_perf_counters_value {
    struct xpl_arena_value own; // its arena holds texts and arrays
    struct xpl_counter_device *devices;
    struct xpl_counter_sample *samples;
    struct xpl_counter *counters;
    size_t n_devices, n_samples, n_counters;
};

// Which part of each step events of some name take: of the device time of a step, by plane.
struct xpl_plane_fractions {
    xpl_str_t name; // of the plane
    float *v;       // by step, of those in which the plane has such events
    size_t n;
};
struct xpl_event_fractions {
    xpl_str_t hostname;                 // as the profile has it; may be empty
    struct xpl_plane_fractions *planes; // those that have such events, in the profile's order
    size_t n_planes;
    float *host; // by step: the mean of its planes that have any
    size_t n_host;
};
struct xpl_barriers_value {
    struct xpl_arena_value own;
    struct xpl_event_fractions fractions; // of "barrier-cores"
};

// How long a transfer between slices of TPUs took.
enum xpl_megascale_time {
    XPL_MEGASCALE_SLACK,    // from the send to recv-done, without what other transfers took
    XPL_MEGASCALE_OBSERVED, // from the send to the end of recv-done
    XPL_MEGASCALE_STALL,    // of its four ops together
    XPL_MEGASCALE_SEND,     // of each
    XPL_MEGASCALE_SEND_DONE,
    XPL_MEGASCALE_RECV,
    XPL_MEGASCALE_RECV_DONE,
    XPL_MEGASCALE_TIMES,
};
// Transfers of one rendezvous.
struct xpl_megascale_transfer {
    xpl_str_t rendezvous, recv_op, send_op, transfer_type; // op: the last one's name
    uint64_t occurrences;                                  // not 0
    uint64_t bytes;                                        // over the network, of the last one
    uint64_t mean_us[XPL_MEGASCALE_TIMES];
    uint64_t executions;  // that MegaScale recorded on the host; 0: none
    double host_stall_ps; // of all of them together: no action ran
};
struct xpl_megascale_value {
    struct xpl_arena_value own; // its arena holds texts and `v`
    bool any;                   // the host has a kind of events of MegaScale's
    struct xpl_megascale_transfer *v;
    size_t n;
};

#endif
