// SPDX-License-Identifier: Apache-2.0
// A conversion of one space, while its parts run one after another.  Each part fills its fields of
// the OpStats and touches no others.
#ifndef XPL_ANALYSIS_OPSTATS_CONVERSION_H_
#define XPL_ANALYSIS_OPSTATS_CONVERSION_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/grouping/groups.h"
#include "analysis/opstats/opstats.h"
#include "analysis/opstats/options.h"
#include "analysis/xplane/xspace.h"
#include "base/arena.h"
#include "base/exec.h"
#include "base/status.h"
#include "base/text/utf8.h"

struct xpl_hlo_map;    // analysis/hlo/hlo_map.h
struct xpl_host_scan;  // analysis/opstats/host/host_scan.h
struct xpl_input_work; // analysis/opstats/host/input_work.h

struct xpl_convert {
    const struct xpl_xspace *xs;
    const struct xpl_groups *groups;
    struct xpl_hlo_map *hlo; // read lazily, under its own lock
    const struct xpl_convert_options *opt;
    struct xpl_exec *exec;
    struct xpl_arena *result; // one thread: parts run one after another
    size_t scratch_limit;     // for each temporary arena a part makes
    bool is_tpu, is_gpu;      // which device planes count: TPU if any, else GPU
    // What one pass over the host threads found, for host/part.h, host/cpu_device.h and
    // steps/steps.h; zero-initialised by the caller, who frees it with xpl_host_scan_fini.  NULL:
    // each part makes the pass again.
    struct xpl_host_scan *host;
    // What tf.data runs, where a CPU counts as a device; NULL: was not searched for.
    const struct xpl_input_work *input;
};

static inline bool xpl_plane_is_tpu(const struct xpl_plane *p) {
    return p->kind == XPL_PLANE_TPU_CORE || p->kind == XPL_PLANE_SPARSE_CORE ||
           p->kind == XPL_PLANE_TPU_OTHER;
}
// True for the planes that are the devices of this conversion.
static inline bool xpl_convert_is_device_plane(const struct xpl_convert *c,
                                               const struct xpl_plane *p) {
    return c->is_tpu ? xpl_plane_is_tpu(p) : p->kind == XPL_PLANE_GPU;
}
// True when the space has such a plane.
static inline bool xpl_convert_has_device(const struct xpl_convert *c) {
    for (uint32_t i = 0; i < c->xs->n_planes; i++)
        if (xpl_convert_is_device_plane(c, &c->xs->planes[i])) return true;
    return false;
}
// Texts of ops and modules are cut there: any number of events may refer to one.
enum { XPL_LONGEST_OP_TEXT = 4096 };
static inline xpl_str_t xpl_op_text(xpl_str_t s) {
    return xpl_utf8_cut(s, XPL_LONGEST_OP_TEXT);
}
// A statistic with such a text.
static inline struct xpl_stat xpl_op_stat(const struct xpl_stat *s) {
    struct xpl_stat cut = *s;
    if (s->kind == XPL_VALUE_STR || s->kind == XPL_VALUE_REF) cut.str = xpl_op_text(s->str);
    return cut;
}
// Whether the time of an event can be: it does not end before it begins, and is within 13 days of
// its line's start.  Profilers that lose the end of an event write 0 or the greatest number.
static inline bool xpl_convert_is_possible(const struct xpl_convert *c,
                                           const struct xpl_event *ev) {
    const int64_t most = INT64_C(1) << 60;
    return c->opt->xprof_exact || (ev->duration_ps >= 0 && ev->duration_ps < most &&
                                   ev->offset_ps > -most && ev->offset_ps < most);
}

#endif
