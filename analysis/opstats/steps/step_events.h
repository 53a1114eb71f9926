// Steps of device planes, from their step markers and their kernel or op events.
// Rules: XProf's convert/xplane_to_step_events.cc (ConvertDeviceTraceXPlaneToStepEvents).
#ifndef XPL_ANALYSIS_OPSTATS_STEPS_STEP_EVENTS_H_
#define XPL_ANALYSIS_OPSTATS_STEPS_STEP_EVENTS_H_

#include "analysis/opstats/convert.h"
#include "analysis/opstats/device/tpu_ops.h"
#include "analysis/opstats/steps/event_span.h"
#include "analysis/opstats/steps/step_db.h"
#include "base/arena.h"

static inline bool xpl_plane_is_tpu(const struct xpl_plane *p) {
    return p->kind == XPL_PLANE_TPU_CORE || p->kind == XPL_PLANE_SPARSE_CORE ||
           p->kind == XPL_PLANE_TPU_OTHER;
}
// True for the planes that are the devices of this conversion.
static inline bool xpl_convert_is_device_plane(const struct xpl_convert *c,
                                               const struct xpl_plane *p) {
    return c->is_tpu ? xpl_plane_is_tpu(p) : p->kind == XPL_PLANE_GPU;
}
static inline bool xpl_convert_has_device(const struct xpl_convert *c) {
    for (uint32_t i = 0; i < c->xs->n_planes; i++)
        if (xpl_convert_is_device_plane(c, &c->xs->planes[i])) return true;
    return false;
}

// Steps of all device planes together: on GPU those that some device has, on TPU those that all
// cores have.
struct xpl_device_steps {
    struct xpl_steps steps;
    struct xpl_sparse_core *sparse; // in plane order
    size_t n_sparse;
    struct xpl_arena arena;
    struct xpl_arena *shards; // one per piece of parallel work
    unsigned n_shards;
};

// RESOURCE_EXHAUSTED at a limit, DATA_LOSS where an event is broken, CANCELLED.  Strings and
// children of op metrics live in c->result.
xpl_status_t xpl_device_steps_run(const struct xpl_convert *c, struct xpl_device_steps *ret,
                                  struct xpl_error *err) XPL_NODISCARD;
// Accepts a zero-initialised struct.
void xpl_device_steps_fini(struct xpl_device_steps *d);

// Fills ret->sparse for ret->steps (step_events_sparse.c); part of xpl_device_steps_run.
xpl_status_t xpl_sparse_core_steps(const struct xpl_convert *c, struct xpl_device_steps *ret,
                                   struct xpl_error *err) XPL_NODISCARD;

// ---- one line; spans live in ret->arena.  Events count that are in a step of `markers` ----

// Looks up whether a group is one of the marked steps; events of one group follow each other.
struct xpl_marked {
    const struct xpl_steps *markers;
    int64_t group; // last asked for, when `known`
    bool known, marked;
};
static inline bool xpl_is_marked(struct xpl_marked *m, int64_t group) {
    if (!m->known || m->group != group)
        *m = (struct xpl_marked){m->markers, group, true, xpl_steps_find(m->markers, group)};
    return m->marked;
}

// A stream of a GPU, or a line of a TPU plane that is no core (step_events_gpu.c).
xpl_status_t xpl_stream_steps(const struct xpl_convert *c, const struct xpl_line *line,
                              const struct xpl_steps *markers, struct xpl_steps *ret,
                              struct xpl_error *err) XPL_NODISCARD;

// Ops of one step on one core, before they are written down.
struct xpl_core_step {
    int64_t id;
    struct xpl_tpu_ops ops;
};
struct xpl_core_steps {
    uint32_t core_id;
    struct xpl_tpu_plane plane; // metadata decoded while events are read lives in the line's arena
    XPL_VEC(struct xpl_core_step) v;
};
// The ops of a TensorCore or SparseCore, by step; *ret gets the steps with their collectives
// (step_events_tpu.c).
xpl_status_t xpl_core_line_steps(const struct xpl_convert *c, const struct xpl_line *line,
                                 const struct xpl_steps *markers, struct xpl_core_steps *core,
                                 struct xpl_steps *ret, struct xpl_error *err) XPL_NODISCARD;
// Writes the ops of the steps that `steps` has; strings go to `result`.  One thread.
bool xpl_core_steps_finish(struct xpl_core_steps *core, struct xpl_steps *steps,
                           struct xpl_arena *result) XPL_NODISCARD;

// The number XProf gives a core in steps.
static inline uint32_t xpl_plane_core_id(const struct xpl_plane *p) {
    return (p->kind == XPL_PLANE_SPARSE_CORE ? (uint32_t)XPL_SPARSE_CORE_INDEX_START : 0) +
           (uint32_t)p->id;
}

#endif
