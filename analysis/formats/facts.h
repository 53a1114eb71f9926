// SPDX-License-Identifier: Apache-2.0
// What products are made from, and what profiles have that tools need.
#ifndef XPL_ANALYSIS_FORMATS_FACTS_H_
#define XPL_ANALYSIS_FORMATS_FACTS_H_

enum xpl_form {
    XPL_FORM_XSPACE, // the XSpace, imported where the file is of another format
    XPL_FORM_FILE,   // the decoded file, whatever its format
};

// What a profile can have (xpl_format.facts), and a tool needs (xpl_tool.facts).
enum {
    XPL_FACT_EVENTS = 1 << 0, // a timeline
    XPL_FACT_DEVICE_OPS = 1 << 1,
    XPL_FACT_KERNELS = 1 << 2, // of GPUs
    XPL_FACT_MEMORY = 1 << 3,
    XPL_FACT_STEPS = 1 << 4,
    XPL_FACT_XLA_OPS = 1 << 5,
    XPL_FACT_PROGRAMS = 1 << 6, // HLO
    XPL_FACT_COUNTERS = 1 << 7,
    XPL_FACT_LAUNCHES = 1 << 8,
    XPL_FACT_COLLECTIVES = 1 << 9,
    XPL_FACT_MEGASCALE = 1 << 10,
    XPL_FACT_REQUESTS = 1 << 11, // of a model server
    XPL_FACT_BUNDLE = 1 << 12,   // a file of the format whose tools read it themselves
    XPL_FACT_COSTS = 1 << 13,    // of ops: operations and bytes
    XPL_N_FACTS = 14,
    // Those that only some profiles of a format have: lists offer a tool that needs one if the
    // products devices and hlo_modules find it.
    XPL_FACTS_VARYING =
        XPL_FACT_KERNELS | XPL_FACT_PROGRAMS | XPL_FACT_COUNTERS | XPL_FACT_MEGASCALE,
};
// The first fact of the set, as sentences name it.
const char *xpl_fact_name(unsigned facts);

#endif
