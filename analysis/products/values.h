// SPDX-License-Identifier: Apache-2.0
// What the values of products are, for the tools that need them.
#ifndef XPL_ANALYSIS_PRODUCTS_VALUES_H_
#define XPL_ANALYSIS_PRODUCTS_VALUES_H_

#include "base/arena.h"
#include "base/buf.h"

struct xpl_time_breakdown;
struct xpl_opstats;
struct xpl_trace;

// Bits of op_stats' variant.
enum { XPL_OP_STATS_CPU_AS_DEVICE = 1, XPL_OP_STATS_ALL_STEPS = 2 };

struct xpl_op_stats_value {
    struct xpl_arena arena; // holds `stats`
    struct xpl_opstats *stats;
};

// Bits of time_breakdown's variant.
enum { XPL_TIME_BREAKDOWN_CPU_AS_DEVICE = 1 };

struct xpl_time_breakdown_value {
    struct xpl_arena arena; // holds `breakdown`
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
    bool gpu;         // in the variant XPL_DEVICES_GPU: planes are read until there is one
};

// Bits of variants of the devices.
enum { XPL_DEVICES_GPU = 1 };

// A profile bundle of IREE.
struct xpl_iree_bundle_value {
    uint64_t n_records;
    bool damaged;
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
    struct xpl_arena arena; // holds texts and `v`
    struct xpl_module_entry *v;
    size_t n;
};

#endif
