// SPDX-License-Identifier: Apache-2.0
// Private to analysis/trace/derived: a plane while its lines are derived, and the derived events.
#ifndef XPL_ANALYSIS_TRACE_DERIVED_IMPL_H_
#define XPL_ANALYSIS_TRACE_DERIVED_IMPL_H_

#include <stdint.h>

#include "analysis/trace/derived/derived.h"
#include "analysis/xplane/xspace.h"
#include "base/arena.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/status.h"
#include "base/vec.h"

// ---- the derived events ----

// One added event.
struct xpl_added {
    uint64_t begin, duration; // unsigned, as upstream's Timespan
    int64_t group;
    uint32_t md;
    uint32_t extra; // position in the plane's extras << 1 | has a group; position 0: none
};

// Statistics of an added event beside its group.
enum xpl_extra_kind { XPL_EXTRA_NONE, XPL_EXTRA_GRAPH, XPL_EXTRA_LAUNCHES, XPL_EXTRA_OFFLOAD };
struct xpl_extra {
    uint8_t kind;
    bool has_first, has_second; // correlation and graph; raw bytes and shape
    union {
        struct {
            int64_t correlation;
            uint64_t graph;
        };
        struct {
            int64_t launches;
            double max_us, avg_us;
        };
        struct {
            int64_t raw_bytes;
            xpl_str_t shape;
        };
    };
};

struct xpl_derived_names {
    const struct xpl_derived_md *added;
    const xpl_str_t *display; // by position of recorded metadata: its new display name; NULL: none
    const struct xpl_extra *extras;
};

// Where the events of a line come from: the recorded ones or the steps that replace them, then the
// added ones.
struct xpl_derived_part {
    const struct xpl_added *added;
    const struct xpl_step_event *steps;
    const struct xpl_region_event *regions;
    size_t n_added, n_steps, n_regions;
    bool use_steps; // instead of the recorded events
    bool sort;      // recorded events and regions by begin, the longer first
    uint32_t region_md;
    const uint32_t *step_md; // of steps that were added
};

struct xpl_derived {
    const struct xpl_xspace *xs;
    const struct xpl_groups *groups;
    struct xpl_derived_plane *planes;
    uint32_t n_planes;
    bool eager; // grouping marks which ops ran eagerly
};

// ---- while a plane is built ----

// The last event of a nesting level, which the next one may extend.
struct xpl_dlevel {
    uint32_t event, md;
    bool has_group, has_scope;
    int64_t group, scope;
};

struct xpl_dline {
    struct xpl_dplane *plane;
    int64_t id;
    xpl_str_t name;
    int64_t timestamp_ns;
    XPL_VEC(struct xpl_added) events;
    XPL_VEC(struct xpl_dlevel) open; // by level
    struct xpl_dline *dependents[3];
    uint32_t n_dependents;
    bool gpu;
};

// Levels beyond these are left out: each event is put on all levels of its op.
enum { XPL_DERIVED_LEVELS = 256 };

// A framework op by its full name.
struct xpl_dop {
    uint32_t first_scope, n_scopes, md; // scopes: metadata, outermost first
};

// An XLA op by program and path.
struct xpl_dxla {
    uint32_t first_level, n_levels; // metadata, outermost first
    uint32_t op, source;            // position of a framework op + 1; metadata; 0: none
};

struct xpl_dplane {
    const struct xpl_derived *space;
    const struct xpl_plane *plane;
    struct xpl_hlo_map *hlo;
    struct xpl_exec *exec;
    struct xpl_arena temp;
    struct xpl_error err;
    xpl_status_t status;
    int64_t start_ns; // where its first line begins

    // names
    XPL_VEC(struct xpl_derived_md) md; // added
    xpl_str_t *display;
    struct xpl_map md_by_name;
    bool names_read;
    XPL_VEC(struct xpl_extra) extras;

    // texts of statistics, and the ops and metadata of their names
    struct xpl_intern *texts;
    uint32_t *text_of_md;         // of references, + 1; by position of statistics' metadata
    XPL_VEC(uint32_t) op_of_text; // + 1
    XPL_VEC(uint32_t) md_of_text; // 0: not known yet
    XPL_VEC(struct xpl_dop) ops;
    XPL_VEC(struct xpl_dxla) xla;
    XPL_VEC(uint32_t) lists; // metadata: scopes of ops, levels of XLA ops
    struct xpl_map xla_index, module_index;

    XPL_VEC(struct xpl_dline *) lines; // added, in order of creation
    struct xpl_dline *launches;        // not removed even when empty
    XPL_VEC(int64_t) display_order;    // ids of lines, GPU
    bool *out_of_order;                // by recorded line
    bool remove_empty;
    uint32_t gpu; // number among the GPUs
};

// Where the first line of a plane begins; 0 without lines.
int64_t xpl_dplane_start_ns(const struct xpl_plane *p);
// Metadata of that name, recorded or added; 0 when out of memory.  Copies a new name; the caller's
// must not change meanwhile.
uint32_t xpl_dplane_md(struct xpl_dplane *p, xpl_str_t name);
// Metadata that has a text as its name.
uint32_t xpl_dplane_md_of_text(struct xpl_dplane *p, uint32_t text);
// New metadata without a name.
uint32_t xpl_dplane_nameless_md(struct xpl_dplane *p, xpl_str_t display);
// Gives a display name to metadata that has none.  False when out of memory.
bool xpl_dplane_set_display(struct xpl_dplane *p, uint32_t md, xpl_str_t display);
// Number of a text, equal for equal texts; from 0, which is "".
bool xpl_dplane_text(struct xpl_dplane *p, const struct xpl_stat *s, uint32_t *ret);
// Framework op of that text: position in p->ops.
bool xpl_dplane_op(struct xpl_dplane *p, uint32_t text, uint32_t *ret);
// Number of an extra; 0 when out of memory.
uint32_t xpl_dplane_extra(struct xpl_dplane *p, enum xpl_extra_kind kind);

// ---- added lines ----

struct xpl_dspan {
    uint64_t begin, duration;
    bool has_group;
    int64_t group;
};
struct xpl_dscope {
    bool set;
    int64_t id;
};

struct xpl_dline *xpl_dline_new(struct xpl_dplane *p, int64_t id, xpl_str_t name);
// [ExpandOrAddLevelEvent] Extends the last event of the level or begins one.
bool xpl_dline_put(struct xpl_dline *l, uint32_t level, uint32_t md, const struct xpl_dspan *span,
                   struct xpl_dscope scope);
// [ResetLastEvents] Closes levels from `level` on.
void xpl_dline_close(struct xpl_dline *l, size_t level);
// The last event of a level, whose extra of that kind is made when it has none; NULL: no memory.
struct xpl_extra *xpl_dline_extra(struct xpl_dline *l, uint32_t level, enum xpl_extra_kind kind);
// [ProcessTfOpEvent]
bool xpl_dline_put_op(struct xpl_dline *scopes, struct xpl_dline *ops, uint32_t op,
                      const struct xpl_dspan *span);

// ---- parts ----

struct xpl_scope_tree; // scopes.h
xpl_status_t xpl_derive_gpu(struct xpl_dplane *p, const struct xpl_scope_tree *scopes);
xpl_status_t xpl_derive_tpu(struct xpl_dplane *p);
// How long the host took to launch kernels on its GPUs, by GPU and step.
struct xpl_launches;
xpl_status_t xpl_find_launches(const struct xpl_derived *d, uint32_t n_gpus, struct xpl_arena *temp,
                               struct xpl_exec *exec, struct xpl_launches **ret,
                               struct xpl_error *err);
// Those of the GPU with that number, after its other lines.
xpl_status_t xpl_derive_launches(struct xpl_dplane *p, const struct xpl_launches *l, uint32_t gpu);

// ---- added_stat.c ----

// Statistics that preprocessing adds.

// Defines `var`, the metadata of an added statistic.
#define XPL_ADDED_STAT_MD(var, t, text)                                                            \
    static const struct xpl_stat_md var = {0, {"" text, sizeof(text) - 1}, t}

static inline struct xpl_stat xpl_added_int(const struct xpl_stat_md *md, int64_t v) {
    return (struct xpl_stat){.md = md, .kind = XPL_VALUE_INT, .i = v};
}
static inline struct xpl_stat xpl_added_uint(const struct xpl_stat_md *md, uint64_t v) {
    return (struct xpl_stat){.md = md, .kind = XPL_VALUE_UINT, .u = v};
}
static inline struct xpl_stat xpl_added_double(const struct xpl_stat_md *md, double v) {
    return (struct xpl_stat){.md = md, .kind = XPL_VALUE_DOUBLE, .d = v};
}
static inline struct xpl_stat xpl_added_str(const struct xpl_stat_md *md, xpl_str_t s) {
    return (struct xpl_stat){.md = md, .kind = XPL_VALUE_STR, .str = s};
}

// ---- gpu.c ----

// The op, module and program of a GPU's kernel, by its statistics.

// Statistics of one event [GpuEventStats].
struct xpl_gpu_event {
    uint32_t tf_op, path, module; // numbers of texts; path: XPL_GPU_NO_PATH without one
    bool kernel, execution, has_program, has_graph, has_correlation, has_scope;
    uint64_t program, graph;
    int64_t correlation, scope;
};
#define XPL_GPU_NO_PATH UINT32_MAX

// Metadata named "module(program)", or only by the module; 0 when out of memory.
uint32_t xpl_gpu_module_md(struct xpl_dplane *p, const struct xpl_gpu_event *e);
// The levels of the event's path, and the framework op and source of its instruction.
xpl_status_t xpl_gpu_find_xla(struct xpl_dplane *p, const struct xpl_gpu_event *e,
                              struct xpl_dxla *ret);

// ---- offload.c ----

// Copies between host and device, from pairs of starts and ends.

enum { XPL_OFFLOAD_MAX_ROWS = 41 };

struct xpl_offload_queue { // starts without an end so far, by name
    uint32_t display;      // metadata of the derived events, which have this display name
    uint32_t first, last;  // positions in starts + 1, 0: none
};
struct xpl_offload_start {
    uint64_t begin;
    uint32_t md, next; // next: position of the next of its queue + 1
};
struct xpl_offload_row {
    struct xpl_dline *line;
    uint64_t frontier; // where its last event ends
};

// State of one plane; zero but for p.
struct xpl_offload {
    struct xpl_dplane *p;
    XPL_VEC(struct xpl_offload_queue) queues;
    XPL_VEC(struct xpl_offload_start) starts;
    struct xpl_map queue_of; // by number of the name
    struct xpl_map extra_of; // by metadata of start and end
    struct xpl_offload_row rows[XPL_OFFLOAD_MAX_ROWS];
    uint32_t n_rows;
};

// Adds an event whose metadata names a start or an end, in order of time.  False when out of
// memory.
bool xpl_offload_put(struct xpl_offload *o, uint32_t md, uint64_t begin, uint64_t duration);

// ---- scopes.c ----

// Scope ranges, a tree by ids, and the chain of an event's own.

struct xpl_scope_tree; // child scope range to its parent; immutable, shared by planes
xpl_status_t xpl_scope_tree_new(const struct xpl_xspace *xs, struct xpl_arena *arena,
                                struct xpl_scope_tree **ret, struct xpl_error *err) XPL_NODISCARD;

// Ids of an event's scope ranges, innermost first.
struct xpl_scope_chain {
    uint32_t depth, node; // node + 1 of the innermost, 0: it has no parent
    int64_t innermost, root;
};
struct xpl_scope_chain xpl_scope_chain_of(const struct xpl_scope_tree *t, int64_t innermost);
// Writes all c->depth ids of the chain, outermost first.
void xpl_scope_chain_ids(const struct xpl_scope_tree *t, const struct xpl_scope_chain *c,
                         int64_t *ret);

#endif
