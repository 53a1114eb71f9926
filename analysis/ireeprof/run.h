// SPDX-License-Identifier: Apache-2.0
// One report in the making: the bundle, the options, where rows go, and what was missing; and what
// reports do alike.
#ifndef XPL_ANALYSIS_IREEPROF_RUN_H_
#define XPL_ANALYSIS_IREEPROF_RUN_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/ireeprof/reader.h"
#include "analysis/ireeprof/row.h"
#include "base/exec.h"
#include "base/status.h"
#include "base/str.h"

enum xpl_iree_trace_format {
    XPL_IREE_NO_TRACE,
    XPL_IREE_PERFETTO,
    XPL_IREE_CHROME,
    XPL_IREE_XSPACE,
};

struct xpl_iree_options {
    xpl_str_t filter; // glob of * and ?; "*" (NULL), "": everything
    int64_t id;       // below 0: all
    bool dispatch_events, counter_samples;
    enum xpl_iree_trace_format trace; // of export
};
// The id that a person gave: below 0 for an empty text, as for a negative number.  INVALID_ARGUMENT
// for what is no number, or larger than an int64_t: IREE's tools know no such ids either.
xpl_status_t xpl_iree_id_parse(xpl_str_t text, int64_t *ret, struct xpl_error *err) XPL_NODISCARD;

// References to what the bundle does not describe; reports go on with numbers in place of names.
enum xpl_iree_missing {
    XPL_IREE_MISSING_FUNCTION,       // of a dispatch
    XPL_IREE_MISSING_QUEUE,          // of an event
    XPL_IREE_MISSING_COMMAND_BUFFER, // of an event
    XPL_IREE_MISSING_COUNTER_SET,    // of a sample
    XPL_IREE_MISSING_DESCRIPTOR,     // of a metric's value
    // From here on a record of metadata is at odds with the rest: the bundle is damaged.
    XPL_IREE_MISSING_EXECUTABLE_OF_FUNCTION,
    XPL_IREE_MISSING_BUFFER_OF_OPERATION,
    XPL_IREE_MISSING_SET_OF_COUNTER,
    XPL_IREE_BAD_COUNTER_LAYOUT,
    XPL_IREE_N_MISSING,
    XPL_IREE_FIRST_DAMAGE = XPL_IREE_MISSING_EXECUTABLE_OF_FUNCTION
};

struct xpl_iree_run {
    const struct xpl_iree_bundle *bundle;
    struct xpl_iree_options options;
    struct xpl_iree_rows *rows;
    struct xpl_exec *exec; // asked between records whether to give up; may be NULL
    // Bytes of the names that a trace makes, and of the events of an XSpace; 0: any number.
    size_t limit;
    struct xpl_iree_notes damage;         // among the events that were read
    uint64_t missing[XPL_IREE_N_MISSING]; // counted while the report runs
};

// A sentence for each thing that the report had to do without, i from 0; false when there is none.
bool xpl_iree_warning(const struct xpl_iree_run *run, size_t i, char *ret, size_t size);
// Whether the bundle is damaged, as far as the report saw.
bool xpl_iree_is_damaged(const struct xpl_iree_run *run);
// Whether it is damaged or was never finished.
bool xpl_iree_is_partial(const struct xpl_iree_run *run);

// Whether what is still to come is not needed: asked also where one record means much work.
bool xpl_iree_stopped(const struct xpl_iree_run *run);
// Calls visit for every record, in order.  CANCELLED when the exec says so, also after the last.
// Events are good until the next one of any chunk: large chunks of them are read through a window.
typedef xpl_status_t xpl_iree_visit_fn(void *ctx, const struct xpl_iree_record *r,
                                       struct xpl_error *err);
xpl_status_t xpl_iree_walk(struct xpl_iree_run *run, xpl_iree_visit_fn *visit, void *ctx,
                           struct xpl_error *err) XPL_NODISCARD;
// The same, with all events in the bundle's bytes, for those who note where they are.
xpl_status_t xpl_iree_walk_in_place(struct xpl_iree_run *run, xpl_iree_visit_fn *visit, void *ctx,
                                    struct xpl_error *err) XPL_NODISCARD;
// As xpl_iree_walk, for chunks of some types alone, of which `types` has 1 << enum xpl_iree_chunk:
// those of metadata are found without a walk, as far as bundles have few of them.
xpl_status_t xpl_iree_walk_chunks(struct xpl_iree_run *run, uint32_t types,
                                  xpl_iree_visit_fn *visit, void *ctx, struct xpl_error *err)
    XPL_NODISCARD;

// Whether a glob of * and ? matches the whole text, of which the first 4,096 bytes count; an empty
// one matches everything.
enum { XPL_IREE_GLOB_TEXT = 4096 };
bool xpl_iree_glob(xpl_str_t text, xpl_str_t glob);
static inline bool xpl_iree_glob_z(const char *text, xpl_str_t glob) {
    const bool any = glob.len == 0 || (glob.len == 1 && glob.ptr[0] == '*');
    return any || xpl_iree_glob(xpl_str_from(text), glob);
}
static inline bool xpl_iree_id_is(const struct xpl_iree_run *run, uint64_t id) {
    return run->options.id < 0 || (uint64_t)run->options.id == id;
}
// Adds without wrapping around: sums of hostile numbers stay at the largest value.
static inline void xpl_iree_add(uint64_t *sum, uint64_t v) {
    if (__builtin_add_overflow(*sum, v, sum)) *sum = UINT64_MAX;
}
static inline void xpl_iree_addi(int64_t *sum, int64_t v) {
    if (v > 0 && __builtin_add_overflow(*sum, v, sum)) *sum = INT64_MAX;
}
// Square root as IREE's tools have it: 32 steps of Heron's method, which for very large values is
// not the root yet.
double xpl_iree_root(double v);

// How complete a bundle is. The warnings say where it is damaged and why; a complete one has none.
enum { XPL_IREE_BUNDLE_WARNINGS = 4, XPL_IREE_BUNDLE_WARNING_SIZE = 320 };
struct xpl_iree_bundle_value {
    uint64_t n_records;
    size_t n_warnings;
    char warnings[XPL_IREE_BUNDLE_WARNINGS][XPL_IREE_BUNDLE_WARNING_SIZE]; // the first ones
};

#endif
