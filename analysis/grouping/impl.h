// Private to the grouping code: the plan for a plane, what a scan of a line leaves behind, and the
// graph of kept events.  README.md tells the whole; upstream's counterparts are in brackets.
#ifndef XPL_ANALYSIS_GROUPING_IMPL_H_
#define XPL_ANALYSIS_GROUPING_IMPL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/grouping/groups.h"
#include "analysis/xplane/event_read.h"
#include "base/arena.h"
#include "base/exec.h"
#include "base/vec.h"

#define NO_GROUP 0xffffffffu

// ---- time ----

struct span {
    uint64_t begin, end; // unsigned, as upstream's Timespan
};
static inline bool span_includes(struct span a, struct span b) {
    return a.begin <= b.begin && b.end <= a.end;
}
static inline bool span_overlaps(struct span a, struct span b) {
    return a.begin <= b.end && b.begin <= a.end;
}
static inline struct span span_of(const struct xpl_line *l, uint64_t offset, uint64_t duration) {
    const uint64_t begin = (uint64_t)l->timestamp_ns * 1000 + offset;
    return (struct span){begin, begin + duration};
}

// ---- plan: what matters in a plane, decided once per metadata entry ----

enum stat_class {
    SC_NONE,
    SC_PRODUCER_TYPE,
    SC_PRODUCER_ID,
    SC_CONSUMER_TYPE,
    SC_CONSUMER_ID,
    SC_CONSUMER_PID,
    SC_IS_ROOT,
    SC_IS_ASYNC,
    SC_ITER_NUM,
    SC_STEP_NUM,
    SC_GRAPH_TYPE,
    SC_CORRELATION,
    SC_STEP_ID,
    SC_REQUEST_ID,
    SC_QUEUE_ADDR,
    SC_DEVICE_ORDINAL,
    SC_QUEUE_ID,
    SC_RUN_ID,
    SC_CORE_TYPE,
    SC_COUNT
};
#define SC_BIT(c) (1u << (c))
enum {
    SC_PRODUCER = SC_BIT(SC_PRODUCER_TYPE) | SC_BIT(SC_PRODUCER_ID),
    SC_CONSUMER = SC_BIT(SC_CONSUMER_TYPE) | SC_BIT(SC_CONSUMER_ID),
    SC_CONTEXT = SC_BIT(SC_ITER_NUM) | SC_BIT(SC_STEP_NUM) | SC_BIT(SC_GRAPH_TYPE),
};

// What an event is by its metadata's name.
enum {
    ROLE_KNOWN = 1 << 0,         // has a type, so it is no kernel
    ROLE_EXECUTOR = 1 << 1,      // ExecutorState::Process
    ROLE_ITERATOR = 1 << 2,      // IteratorGetNext[AsOptional]Op::DoCompute
    ROLE_EAGER = 1 << 3,         // EagerExecute
    ROLE_TRACE_CONTEXT = 1 << 4, // root of level 1 unless it says otherwise
    ROLE_ROOT_1 = 1 << 5,        // BatchingSessionRun
    ROLE_ROOT_2 = 1 << 6,        // ProcessBatch
    ROLE_TF_DATA = 1 << 7,       // InstantiatedCapturedFunction::*
    ROLE_QUEUE_IN = 1 << 8,      // EnqueueRequestLocked
    ROLE_QUEUE_OUT = 1 << 9,     // what takes requests off that queue
    ROLE_LAUNCH = 1 << 10,       // DoEnqueueProgram
    ROLE_LAUNCHED = 1 << 11,     // CompleteCallbacks
    ROLE_TPU_EXECUTE = 1 << 12,  // TpuExecuteOp
    ROLE_START_REGION = 1 << 13, // ThreadpoolListener::StartRegion
    ROLE_STOP_REGION = 1 << 14,  // ThreadpoolListener::StopRegion
    ROLE_IMPLICIT = 1 << 15,     // a root of this type gives its group no name
};

// Roles that are linked without stats of their own that say so, or that cursors act on.
enum {
    ROLE_LINKED = ROLE_QUEUE_OUT | ROLE_LAUNCHED | ROLE_TPU_EXECUTE | ROLE_EAGER | ROLE_START_REGION
};

struct plan {
    const struct xpl_plane *plane;
    uint8_t *class_of;   // by position in plane->stat_md
    uint16_t *role_of;   // by position in plane->event_md
    uint8_t by_id[128];  // class by stat id, where that is below 128
    uint32_t classes;    // all that occur in the metadata
    uint32_t roles;      // likewise
    int32_t pid;         // of the process that wrote the plane
    bool has_pid;        //
    bool has_regions;    // StartRegion and StopRegion both occur
    bool own_groups;     // events may bring stat group_id
    bool own_step_names; // events may bring stat step_name
    bool own_eager;      // events may bring stat is_eager
    bool tpu;            // named /device:TPU:...: grouped by one line
    bool scan;           // its lines are scanned for nodes
    bool consumes;       // events may consume what other lines produce
    bool kernels;        // events may have correlation ids
    bool tpu_execute;    // the space has TpuExecuteOp, which executors launch
    // By position in plane->event_md: some event of that metadata may be linked to another line, or
    // is asynchronous.  Set by scans, on several threads at once; NULL: unknown.
    _Atomic uint8_t *linked;
};

bool xpl_grp_plan_init(struct plan *p, const struct xpl_plane *plane, struct xpl_arena *arena);

// ---- regions of thread pools ----

// Upstream adds an event ThreadpoolListener::Region for each StopRegion, from the StartRegion
// before it on, and sorts the line then [ThreadpoolLineMutator].  XProf 2.24.2 links it to nothing:
// it only takes part in the nesting.
struct region {
    uint64_t offset, duration;
};
struct region_list {
    XPL_VEC(struct region) v; // the longest first
};
// Regions that the StartRegion at `at` begins; adds to *ret.  False when out of memory.
bool xpl_grp_regions_at(const struct plan *plan, const struct xpl_line *line, uint64_t at,
                        struct xpl_arena *arena, struct region_list *ret);
// The longest of them; false when there are none.
bool xpl_grp_longest_region(const struct plan *plan, const struct xpl_line *line, uint64_t at,
                            struct region *ret);
// True when that StartRegion counts, as one that has an id does.
bool xpl_grp_region_counts(const struct plan *plan, const struct xpl_raw_event *raw);
// Likewise, and it does not stand at time 0, where it only ends the one before it.
bool xpl_grp_region_starts(const struct plan *plan, const struct xpl_line *line,
                           const struct xpl_raw_event *raw);

// Events and regions of a line in the order that upstream's sort leaves them in; of a line without
// regions in that of the file.
struct placed {
    uint64_t offset, duration;
    uint64_t at, index; // of the event; PLACED_REGION: it is a region
};
#define PLACED_REGION UINT64_MAX
struct placed_list {
    XPL_VEC(struct placed) v;
    size_t n_regions;
};
xpl_status_t xpl_grp_place_events(const struct plan *plan, const struct xpl_line *line,
                                  struct xpl_arena *arena, struct placed_list *ret,
                                  struct xpl_error *err) XPL_NODISCARD;

// ---- nodes ----

enum {
    NODE_ASYNC = 1 << 0, // neither has a parent nor is one
    NODE_ROOT = 1 << 1,
    NODE_EXECUTOR = 1 << 2,
    NODE_EAGER = 1 << 3, // EagerExecute
    NODE_GRAPH_TYPE = 1 << 4,
    NODE_ITER_NUM = 1 << 5,
    NODE_STEP_NUM = 1 << 6,
    NODE_IMPLICIT = 1 << 7,
    NODE_NAMED = 1 << 8,    // carries its group's name as step_name
    NODE_CONSUMES = 1 << 9, // has parents beside the enclosing one
    // Of the nearest EagerExecute above, or of this one: there is one; it runs op by op.
    NODE_IN_EAGER = 1 << 10,
    NODE_IS_EAGER = 1 << 11,
};
// An event that can start, join or carry a group across lines.
struct node {
    uint32_t at_lo;     // where its event stands in the line (xpl_event.at), 40 bits
    uint8_t at_hi, gap; // gap: events between it and the enclosing node
    uint16_t flags;
    uint32_t parent; // enclosing node + 1, 0 for none
    uint32_t group;
    uint32_t links; // first link + 1
};
static inline uint64_t node_at(const struct node *n) {
    return (uint64_t)n->at_hi << 32 | n->at_lo;
}

// One end of a link between lines.  All with the same key meet in a hub.
struct link {
    uint32_t key_lo, key_hi; // in a hub: its first link, and the node's next link + 1
    uint32_t end;            // LINK_CONSUMER | node | gap; in labels: LABEL_* | group
};
#define LINK_CONSUMER   0x80000000u
#define LINK_NODE_SHIFT 5
#define LINK_MAX_GAP    31u // gap: events between the producer and the node, the producer included
#define LABEL_IN_EAGER  0x80000000u
#define LABEL_IS_EAGER  0x40000000u
#define LABEL_GROUP     0x3fffffffu
#define LABEL_NO_GROUP  LABEL_GROUP
#define MAX_NODES       0x03fffff0u
#define MAX_LINKS       0xfffffff0u
static inline uint64_t link_key(const struct link *l) {
    return (uint64_t)l->key_hi << 32 | l->key_lo;
}
static inline bool link_consumes(const struct link *l) {
    return l->end & LINK_CONSUMER;
}
static inline uint32_t link_node(const struct link *l) {
    return (l->end & ~LINK_CONSUMER) >> LINK_NODE_SHIFT;
}
static inline uint32_t link_gap(const struct link *l) {
    return l->end & LINK_MAX_GAP;
}

struct root {
    uint32_t node;
    int32_t level;
    uint64_t begin;
    int64_t step; // that it belongs to
    bool has_step;
};
struct launch {
    uint64_t correlation;
    uint32_t scope; // node + 1, 0 for none
};
// Children of the links of EventForest::ConnectInterThread: equal stats, and of the parents the
// last one counts.
enum pair_kind { PAIR_ITERATOR, PAIR_KERNEL };
struct pair {
    uint64_t key; // of step id and iteration of the executor; correlation id of the launch
    uint32_t node;
    enum pair_kind kind;
};

// Append-only list in growing segments: no copy, no slack to speak of.
struct seg {
    struct seg *next;
    uint32_t n, cap;
};
struct seg_list {
    struct seg *first, *last;
    size_t n;
    uint32_t elem;
};
void *xpl_grp_seg_push(struct xpl_arena *a, struct seg_list *l);
// Copies all elements to `to`.
void xpl_grp_seg_copy(const struct seg_list *l, void *to);
static inline void *seg_at(struct seg *s) {
    return s + 1;
}

// ---- one scan: a few lines of a host or GPU plane, or a whole TPU plane ----

struct explicit_region { // of a line out of order
    struct region region;
    uint32_t scope; // node + 1
};

enum line_kind {
    LINE_NONE,     // no event has a group but by its own stats
    LINE_NESTED,   // stack of nodes, consumers and kernels
    LINE_EXPLICIT, // scope per event
    LINE_NODES,    // TPU: each event of the grouping line is a node
};

struct line_groups {
    const struct xpl_line *line;
    enum line_kind kind;
    uint32_t first_node, n_nodes;
    uint32_t *chunk_tops;            // scope (node + 1) before each chunk of the line
    uint32_t *explicit_scope;        // scope (node + 1) of each event
    struct explicit_region *regions; // of a line out of order
    uint32_t n_regions;
};

struct scan {
    const struct plan *plan;
    struct line_groups *lines; // neighbours in a plane; of a TPU plane its grouping line
    uint32_t n_lines;
    bool keep_executors; // make all of them nodes
    bool wide;           // it has the exec for itself: others would wait for it
    // While scanning, nodes are numbered from 0 and what lines hold lives in nodes_arena.
    struct xpl_arena nodes_arena, links_arena;
    struct seg_list nodes, producers, consumers, roots, launches, pairs, tf_data_ids;
    struct seg_list executors; // links: by step id and iteration
    bool has_loops;            // an executor event of another iteration than 0
    // Once merged: where its parts begin among those of all scans, and what its nodes' flags say.
    uint32_t base; // nodes
    size_t producers_at, consumers_at, executors_at, roots_at, pairs_at, ids_at;
    uint32_t flags;
    xpl_status_t status;
    struct xpl_error err;
};
void xpl_grp_scan_lines(struct scan *s, struct xpl_exec *exec);
void xpl_grp_scan_tpu(struct scan *s, struct xpl_exec *exec);
void xpl_grp_scan_fini(struct scan *s);
// How many consumers each of some keys has; counted on many threads at once.
struct key_counts {
    const uint64_t *keys; // sorted
    size_t n;
    _Atomic uint32_t *counts;
};
void xpl_grp_count_key(const struct key_counts *k, uint64_t key);
// Counts the consumers on the line.
void xpl_grp_count_consumers(const struct scan *s, const struct key_counts *k);

// Whether an event with such stats, of such a role, may be a consumer.
static inline bool xpl_grp_may_consume(uint32_t mask, uint32_t role) {
    return (mask & SC_CONSUMER) == SC_CONSUMER ||
           (role & (ROLE_QUEUE_OUT | ROLE_LAUNCHED | ROLE_TPU_EXECUTE));
}

// What the stats of one event say.
struct scan_stats {
    uint32_t mask;
    uint64_t u[SC_COUNT];
    uint8_t kind[SC_COUNT];
};
bool xpl_grp_read_stats(const struct plan *plan, const struct xpl_raw_event *raw,
                        struct scan_stats *st);
bool xpl_grp_is_async(const struct plan *plan, const struct xpl_raw_event *raw);
// Which classes there are.  False when a stat is malformed.
bool xpl_grp_stats_mask(const struct plan *plan, const struct xpl_raw_event *raw, uint32_t *ret);
// The same for an event written as events usually are, in one walk that also finds whether it is;
// false when it is not.
static inline bool xpl_grp_quick_mask(const struct plan *plan, const struct xpl_raw_event *raw,
                                      uint32_t *ret) {
    const uint8_t *p = raw->stats, *const end = raw->end;
    uint32_t mask = 0;
    while (p != end) {
        if (XPL_UNLIKELY(end - p < 4) || XPL_UNLIKELY(p[0] != XPL_TAG_FIELD4_LEN) ||
            XPL_UNLIKELY(p[2] != XSTAT_MD_ID << 3) || XPL_UNLIKELY((p[1] | p[3]) >= 0x80) ||
            XPL_UNLIKELY(p[1] < 2) || XPL_UNLIKELY(p[1] > end - p - 2))
            return false;
        mask |= SC_BIT(plan->by_id[p[3]]);
        p += 2 + p[1];
    }
    *ret = mask & ~SC_BIT(SC_NONE);
    return true;
}
// What makes an event worth a second look by cursors.
enum { SC_LINKED = SC_CONSUMER | SC_BIT(SC_CORRELATION) | SC_BIT(SC_IS_ASYNC) };
struct event_links {
    bool producer, consumer;
    uint64_t producer_key, consumer_key;
};
// Links of an event after the rewriting that upstream's PreprocessXPlane does.
void xpl_grp_event_links(const struct plan *plan, const struct xpl_line *line,
                         const struct scan_stats *st, uint32_t role, struct event_links *ret);
// The same before keys are made of them: what flows are drawn by.
struct event_ends {
    bool produces, consumes;
    uint32_t producer_type, consumer_type; // as written, known or not
    uint64_t producer_id, consumer_id;
};
void xpl_grp_event_ends(const struct plan *plan, const struct xpl_line *line,
                        const struct scan_stats *st, uint32_t role, struct event_ends *ret);
uint64_t xpl_grp_mix(uint64_t x); // a bijection that leaves no pattern
uint64_t xpl_grp_key(int32_t type, bool has_pid, int32_t pid, uint64_t id);
// Key of an executor's step and iteration.
uint64_t xpl_grp_executor_key(uint64_t step, uint64_t iteration);
// Key of a hub that has one child alone: that node.
uint64_t xpl_grp_pair_key(uint32_t node);

// ---- the whole ----

// Where the group of ungrouped events of a GPU plane changes.
struct run {
    uint64_t begin, duration; // of the run's first event
    uint32_t order;           // its line, to break ties
    int64_t group;
};
struct group_span {
    struct span span;
    int64_t group, after, shown; // after: what lines behind the grouping line see
    bool has_group, has_after, has_shown;
};

struct plane_groups {
    struct plan plan;
    struct line_groups *lines; // those that are scanned, in order
    uint32_t n_lines;
    struct run *runs; // GPU
    size_t n_runs;
    struct xpl_step_event *steps;
    size_t n_steps;
    bool raw_steps;                   // as they stand in the file, from all step lines
    const struct xpl_line *step_line; // TPU: the line that `steps` replaces
    struct group_span *spans;         // TPU: events of the grouping line, merged
    size_t n_spans;
    bool sane_spans;                  // begin <= end in all
    const struct xpl_line *span_line; // modules that stand for steps; NULL where steps do
    bool any_group;
};

struct xpl_groups {
    const struct xpl_xspace *xs;
    struct xpl_arena *arena;
    struct xpl_exec *exec;
    struct plane_groups *planes;
    struct node *nodes;
    uint32_t n_nodes;
    struct line_groups **scanned; // lines with nodes, by first node
    uint32_t n_scanned;
    xpl_str_t *names; // of groups
    uint32_t n_groups;
    bool grouped;  // the space arrived grouped: own stats count
    bool computed; // groups were looked for
    bool keep_executors;
    struct link *labels; // by key: group and eagerness of its producers
    uint32_t n_labels;
    bool empty;
    // Launches by correlation id: dense from `launch_min`, or hashed.
    uint32_t *launch_scopes; // dense: node + 1
    uint64_t launch_min, n_launch_scopes;
    struct launch *launch_table; // hashed: open addressing; scope UINT32_MAX is empty
};

// ---- the graph while it is built ----

struct search_entry {
    uint32_t node, delay; // so many plain events before it
};

struct forest {
    struct xpl_groups *g;
    struct xpl_arena temp;
    struct scan *scans;
    size_t n_scans;
    struct link *producers, *consumers; // all, by key
    size_t n_producers, n_consumers;
    struct link *executors; // in order; `end` is the node
    size_t n_executors;
    struct pair *pairs;
    size_t n_pairs;
    struct link *links; // of the graph
    uint32_t n_links;
    struct root *roots;
    size_t n_roots;
    XPL_VEC(struct root) loop_roots; // when there are any, they replace the others
    int64_t *tf_data_ids;            // sorted
    size_t n_tf_data_ids;
    uint64_t *seen;         // a bit per node, for searches
    uint32_t *subtree_ends; // node behind the last one that a node encloses
    XPL_VEC(struct search_entry) queue;
    XPL_VEC(uint32_t) spreading; // nodes to spread a group from
    XPL_VEC(xpl_str_t) names;    // of groups
    uint64_t budget;             // steps left for searches
    uint32_t ctx_flags;          // which context stats occur at all
    struct xpl_error *err;
};

#define NO_HUB 0xffffffffu
bool xpl_grp_is_tf_data(const struct forest *f, int64_t step);
// Finds the roots' groups and spreads them (unless only is_eager is wanted); marks NODE_IS_EAGER.
xpl_status_t xpl_grp_propagate(struct forest *f, bool want_groups);
// First stat of that type of a node's event.
bool xpl_grp_node_stat(const struct xpl_groups *g, uint32_t node, enum xpl_stat_type type,
                       struct xpl_stat *ret);

// Scope (node + 1) of the launch of a kernel; 0 when unknown.
uint32_t xpl_grp_launch_scope(const struct xpl_groups *g, uint64_t correlation);
// A scanned line, or NULL.
const struct line_groups *xpl_grp_find_line(const struct plane_groups *pg,
                                            const struct xpl_line *line);
const struct line_groups *xpl_grp_line_of(const struct xpl_groups *g, uint32_t node);
// The event of a node (not of a region).
bool xpl_grp_node_event(const struct xpl_groups *g, uint32_t node, const struct line_groups **lg,
                        struct xpl_raw_event *ret);
// Merges scans into the graph and finds the groups.
xpl_status_t xpl_grp_build_graph(struct xpl_groups *g, struct scan *scans, size_t n_scans,
                                 bool want_groups, struct xpl_error *err);
// What a node passes on: LABEL_* | group.
static inline uint32_t xpl_grp_node_label(const struct node *n) {
    return (n->flags & NODE_IN_EAGER ? LABEL_IN_EAGER : 0) |
           (n->flags & NODE_IS_EAGER ? LABEL_IS_EAGER : 0) |
           (n->group == NO_GROUP ? LABEL_NO_GROUP : n->group);
}
// Of an EagerExecute: whether the ops inside run eagerly, as LABEL_*.
uint32_t xpl_grp_event_eager(struct xpl_stats stats);
// What the producers of a key pass on: LABEL_* | group; LABEL_NO_GROUP for nothing.  *hint: where
// the last search ended, 0 at first; what is asked for is mostly near to what was asked for before.
uint32_t xpl_grp_label(const struct xpl_groups *g, uint64_t key, uint32_t *hint);
// The cursor then says only what spreading said.
void xpl_grp_cursor_no_fill(struct xpl_group_cursor *c);
xpl_status_t xpl_grp_build_gpu(struct xpl_groups *g, struct plane_groups *pg,
                               struct xpl_error *err);
xpl_status_t xpl_grp_raw_steps(struct xpl_groups *g, struct plane_groups *pg,
                               struct xpl_error *err);
xpl_status_t xpl_grp_build_tpu(struct xpl_groups *g, struct plane_groups *pg,
                               struct xpl_error *err);
// In place, no memory of its own; not stable.
void xpl_grp_sort(void *v, size_t n, size_t size, int (*cmp)(const void *, const void *));
// Grouping line of a TPU plane, or NULL [GetGroupingLineForTPU]; *ret_steps: its step line.
const struct xpl_line *xpl_grp_tpu_line(const struct xpl_plane *p,
                                        const struct xpl_line **ret_steps);
// Planes that count as the host's, and as a device's [IsHostPlane, IsDevicePlane].
bool xpl_grp_is_host_plane(const struct xpl_plane *p);
bool xpl_grp_is_device_plane(const struct xpl_plane *p);

#endif
