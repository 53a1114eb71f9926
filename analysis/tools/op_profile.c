// SPDX-License-Identifier: Apache-2.0
// op_profile: device time as a tree of program (or provenance), category, group of duplicates, op
// (XProf: op_stats_to_op_profile.cc, op_profile_builder.cc), once with idle time and once without.
// By framework op it is ours.
//
// Nodes are in one array, parents before children, so that the passes over the tree are loops: how
// deep names like "a/a/a/..." nest is the profile's choice, not ours.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/opstats/codec/codec.h"
#include "analysis/opstats/metrics/op_metrics.h"
#include "analysis/opstats/opstats.h"
#include "analysis/tools/lib/kernel_metadata.h"
#include "analysis/tools/lib/op_record.h"
#include "analysis/tools/lib/op_stats_tool.h"
#include "analysis/wire/wire.h"
#include "analysis/xplane/tf_op.h"
#include "base/arena.h"
#include "base/intern.h"
#include "base/json.h"
#include "base/map.h"
#include "base/std_sort.h"

enum {
    MAX_CHILDREN = 100,    // of a node that is cut
    NEVER_CUT_DEPTH = 100, // by provenance: nodes above this depth keep all
    MAX_PATH_DEPTH = 2000, // the rest of longer paths is left out; XProf dies of ten times that
};

struct op_profile_options {
    struct xpl_cpu_peak_options peaks;
    int group_by;
};
enum { BY_PROGRAM, BY_CATEGORY, BY_PROVENANCE, BY_OP }; // group_by

static const struct xpl_tool_option kOptions[] = {
    {.key = "group_by",
     .type = XPL_OPTION_CHOICE,
     .offset = offsetof(struct op_profile_options, group_by),
     .values = "program|category|provenance|op",
     .preset = "program",
     .help = "first levels of the tree"},
    XPL_CPU_PEAK_OPTIONS,
};

// The meaning of a node under its parent: two of the same name but not of the same kind are two.
enum node_kind {
    ROOT,
    PROGRAM,
    CATEGORY,
    PATH_CATEGORY,
    PATH,
    WHOLE_PATH,
    OP,
    DUPLICATES,
    CALL,
    LEAF
};

struct sums {
    uint64_t time_ps, normalized_time_ps;
    double flops, model_flops;
    uint64_t hbm_read, hbm_write, chip_read, chip_write;
    uint32_t occurrences;
};

struct node {
    xpl_str_t name;
    const struct xpl_op_metrics *op; // what the node shows of an instruction; NULL: nothing
    uint32_t parent, depth;
    uint32_t n_children, total_children; // the shown ones; before the cut
    uint32_t *children;                  // after sorting
    bool is_group;                       // shows `op` as the first of its duplicates
    bool is_call;                        // a framework op with the shapes of its inputs
    struct sums sums;
};

struct tree {
    const struct xpl_opstats *s;
    const struct op_profile_options *opt;
    struct xpl_arena *arena;
    struct xpl_intern *names;
    struct xpl_map by_key; // (kind and parent, name) to node
    XPL_VEC(struct node) nodes;
    uint64_t total_ps;
    bool exclude_idle;
};

// The texts one after another, in the arena.
static bool join(struct tree *t, xpl_str_t a, xpl_str_t b, xpl_str_t *ret) {
    char *const p = xpl_arena_alloc(t->arena, a.len + b.len);
    if (!p) return false;
    if (a.len) memcpy(p, a.ptr, a.len);
    if (b.len) memcpy(p + a.len, b.ptr, b.len);
    *ret = (xpl_str_t){p, a.len + b.len};
    return true;
}

// ---- building ----

// Index of a new node, 0 on OOM: the root is never asked for.
static uint32_t add_node(struct tree *t, uint32_t parent, xpl_str_t name) {
    if (t->nodes.n >= UINT32_MAX) return 0;
    struct node *const n = xpl_vec_push(t->arena, &t->nodes);
    if (!n) return 0;
    const uint32_t index = (uint32_t)(t->nodes.n - 1);
    *n = (struct node){.name = name, .parent = parent};
    if (index) {
        n->depth = t->nodes.v[parent].depth + 1;
        t->nodes.v[parent].n_children++;
    }
    return index;
}

// The child of that kind and key; `name` is what a new one is called.
static uint32_t get_node(struct tree *t, enum node_kind kind, uint32_t parent, uint64_t key,
                         xpl_str_t name) {
    bool is_new;
    uint64_t *const slot =
        xpl_map_put(t->arena, &t->by_key, (uint64_t)kind << 32 | parent, key, &is_new);
    if (!slot) return 0;
    if (!is_new) return (uint32_t)*slot;
    const uint32_t index = add_node(t, parent, name);
    *slot = index;
    return index;
}

static uint32_t get_named(struct tree *t, enum node_kind kind, uint32_t parent, xpl_str_t name) {
    xpl_strid_t id;
    return xpl_intern_put(t->names, name, &id) ? get_node(t, kind, parent, id.v, name) : 0;
}

static uint32_t get_program(struct tree *t, uint64_t id) {
    const uint64_t *const known = xpl_map_get(&t->by_key, (uint64_t)PROGRAM << 32, id);
    if (known) return (uint32_t)*known;
    const struct xpl_program_name key = {.program_id = id}, *p = NULL;
    if (t->s->program_id_to_name_map.n)
        p = bsearch(&key, t->s->program_id_to_name_map.v, t->s->program_id_to_name_map.n,
                    sizeof key, xpl_program_name_by_id);
    xpl_str_t name = XPL_STR("main"), suffix;
    if (p && (!xpl_arena_printf(t->arena, &suffix, "(%" PRIu64 ")", id) ||
              !join(t, p->name, suffix, &name)))
        return 0;
    return get_node(t, PROGRAM, 0, id, name);
}

static void add_traffic(const struct xpl_op_metrics *m, struct sums *s) {
    for (size_t i = 0; i < m->memory_accessed_breakdown.n; i++) {
        const struct xpl_memory_accessed *const a = &m->memory_accessed_breakdown.v[i];
        const bool hbm = a->memory_space == XPL_SPACE_HBM;
        if (a->operation_type == XPL_MEM_OP_READ)
            *(hbm ? &s->hbm_read : &s->chip_read) += a->bytes_accessed;
        if (a->operation_type == XPL_MEM_OP_WRITE)
            *(hbm ? &s->hbm_write : &s->chip_write) += a->bytes_accessed;
    }
}

// What a node above an op gets of it (UpdateNodeMetrics): self time, so that nested ops count once.
static void add_upwards(const struct xpl_op_metrics *m, struct sums *s) {
    s->time_ps += m->self_time_ps;
    s->normalized_time_ps += m->normalized_time_ps;
    if (xpl_op_metrics_children_time(m) > 0) return;
    s->flops += m->flops_v2;
    s->model_flops += m->model_flops_v2;
    add_traffic(m, s);
}

static void add_whole(const struct xpl_op_metrics *m, struct sums *s) {
    s->time_ps += m->time_ps;
    s->normalized_time_ps += m->normalized_time_ps;
    s->occurrences += m->occurrences;
    s->flops += m->flops_v2;
    s->model_flops += m->model_flops_v2;
    add_traffic(m, s);
}

// An op's node with its fused instructions below.  False on OOM.
static bool add_leaf(struct tree *t, uint32_t parent, const struct xpl_op_metrics *m,
                     unsigned nesting) {
    const uint32_t leaf = add_node(t, parent, m->name);
    if (!leaf) return false;
    t->nodes.v[leaf].op = m;
    add_whole(m, &t->nodes.v[leaf].sums);
    if (!m->children || nesting == XPL_OPSTATS_MAX_DEPTH) return true;
    for (size_t i = 0; i < m->children->metrics_db.n; i++)
        if (!add_leaf(t, leaf, &m->children->metrics_db.v[i], nesting + 1)) return false;
    return true;
}

// The node of the last part of "a/b/c:type" under `top`, whose parts "a", "b" and "c" are; `top`
// when there are none.  0 on OOM.
static uint32_t make_path(struct tree *t, uint32_t top, xpl_str_t path) {
    uint32_t at = top;
    for (size_t i = 0, end; i < path.len && t->nodes.v[at].depth < MAX_PATH_DEPTH; i = end + 1) {
        end = xpl_str_find(path, XPL_STR("/"), i);
        if (end == SIZE_MAX) end = path.len;
        if (end == i) continue; // empty parts do not count
        xpl_str_t part = xpl_str_sub(path, i, end - i);
        bool last = true;
        for (size_t k = end; last && k < path.len; k++)
            last = path.ptr[k] == '/';
        if (last) part = xpl_str_sub(part, 0, xpl_str_find(part, XPL_STR(":"), 0));
        if (!(at = get_named(t, PATH, at, part))) return 0;
        if (last) break;
    }
    return at;
}

// The same for a path that many ops have: its parts are looked up once.
static uint32_t get_path(struct tree *t, uint32_t top, xpl_str_t path) {
    const uint64_t key = (uint64_t)WHOLE_PATH << 32 | top;
    xpl_strid_t id;
    if (!xpl_intern_put_view(t->names, path, &id)) return 0;
    const uint64_t *const known = xpl_map_get(&t->by_key, key, id.v);
    if (known) return (uint32_t)*known;
    const uint32_t at = make_path(t, top, path);
    uint64_t *const slot = xpl_map_put(t->arena, &t->by_key, key, id.v, NULL);
    if (!slot) return 0;
    return (uint32_t)(*slot = at);
}

// Adds an op to the nodes of its path, from `at` up to below `top`.
static void add_to_path(struct tree *t, uint32_t at, uint32_t top, const struct xpl_op_metrics *m) {
    struct sums one = {0};
    add_upwards(m, &one);
    for (; at != top; at = t->nodes.v[at].parent) {
        struct sums *const s = &t->nodes.v[at].sums;
        s->time_ps += one.time_ps;
        s->normalized_time_ps += one.normalized_time_ps;
        s->flops += one.flops;
        s->model_flops += one.model_flops;
        s->hbm_read += one.hbm_read;
        s->hbm_write += one.hbm_write;
        s->chip_read += one.chip_read;
        s->chip_write += one.chip_write;
    }
}

// An op that only contains others is counted by them; sparse core ops are not in the tree
// themselves, so the ops that wait for them are.
static bool is_container(const struct xpl_op_metrics *m) {
    if (xpl_op_metrics_children_time(m) == 0) return false;
    for (size_t i = 0; m->children && i < m->children->metrics_db.n; i++)
        if (m->children->metrics_db.v[i].core_type == XPL_CORE_SPARSE) return false;
    return true;
}

// Equal instructions, or the runs of an op of PyTorch with inputs of equal shapes and types.
static uint32_t get_group(struct tree *t, uint32_t above, const struct xpl_op_metrics *m,
                          xpl_str_t call) {
    if (!call.len)
        return get_named(t, DUPLICATES, above,
                         m->deduplicated_name.len ? m->deduplicated_name : m->name);
    const uint32_t group = get_named(t, CALL, above, call);
    if (group) t->nodes.v[group].is_call = true;
    return group;
}

static bool add_grouped(struct tree *t, uint32_t program, const struct xpl_op_metrics *m) {
    const struct xpl_tf_op op = xpl_tf_op_parse(m->provenance);
    uint32_t above = program;
    enum node_kind kind = CATEGORY;
    xpl_str_t name = m->category;
    if (t->opt->group_by == BY_PROVENANCE && m->provenance.len) {
        kind = PATH_CATEGORY;
        above = get_path(t, program, m->provenance);
        if (!above) return false;
        add_to_path(t, above, program, m);
    } else if (t->opt->group_by == BY_OP && op.name.len) {
        kind = OP;
        name = op.name;
    }
    const uint32_t category = get_named(t, kind, above, name);
    if (!category) return false;
    const uint32_t group =
        get_group(t, category, m, op.category == XPL_TF_OP_PYTORCH ? m->long_name : XPL_STR(""));
    if (!group) return false;
    add_whole(m, &t->nodes.v[category].sums);
    add_whole(m, &t->nodes.v[group].sums);
    return add_leaf(t, group, m, 0);
}

static bool add_op(struct tree *t, const struct xpl_op_metrics *m) {
    const bool idle = xpl_op_metrics_is_idle(m);
    uint32_t program = 0; // by category and op: the root represents all programs
    add_upwards(m, &t->nodes.v[0].sums);
    if (!idle && t->opt->group_by != BY_CATEGORY && t->opt->group_by != BY_OP) {
        program = get_program(t, m->hlo_module_id);
        if (!program) return false;
        add_upwards(m, &t->nodes.v[program].sums);
    }
    if (is_container(m)) return true;
    return idle ? add_leaf(t, 0, m, 0) : add_grouped(t, program, m);
}

static bool add_all(struct tree *t) {
    const struct xpl_op_metrics_db *const db = &t->s->device_op_metrics_db;
    for (size_t i = 0; i < db->metrics_db.n; i++) {
        const struct xpl_op_metrics *const m = &db->metrics_db.v[i];
        if (xpl_str_starts(m->name, XPL_STR("region"))) continue; // cannot be symbolized
        if (t->exclude_idle && xpl_op_metrics_is_idle(m)) continue;
        if (!add_op(t, m)) return false;
    }
    t->total_ps = t->exclude_idle ? db->total_op_time_ps : db->total_time_ps;
    t->nodes.v[0].sums.time_ps = t->total_ps;
    return true;
}

// ---- order, cut, groups of duplicates ----

static bool is_fusion(const struct xpl_op_metrics *m) {
    return m && xpl_str_ends(m->category, XPL_STR(" fusion"));
}

// Which children of a node come first.
struct child_order {
    const struct node *nodes;
    bool by_flops; // instructions of a fusion have no separate times
};
static bool comes_before(const void *ctx, const void *a, const void *b) {
    const struct child_order *const o = ctx;
    const struct sums *const x = &o->nodes[*(const uint32_t *)a].sums;
    const struct sums *const y = &o->nodes[*(const uint32_t *)b].sums;
    return o->by_flops ? x->model_flops > y->model_flops : (double)x->time_ps > (double)y->time_ps;
}

static uint32_t depth_without_cut(const struct tree *t) {
    switch (t->opt->group_by) {
        case BY_PROGRAM: return 2;
        case BY_CATEGORY:
        case BY_OP: return 1;
        case BY_PROVENANCE: return NEVER_CUT_DEPTH;
    }
    return 0;
}

// Children of all nodes as lists, each in order of appearance.
static bool link_children(struct tree *t) {
    uint32_t *const all = xpl_arena_array(t->arena, t->nodes.n, sizeof *all);
    if (!all) return false;
    size_t used = 0;
    for (size_t i = 0; i < t->nodes.n; i++) {
        struct node *const n = &t->nodes.v[i];
        n->children = all + used;
        used += n->n_children;
        n->n_children = 0;
    }
    for (uint32_t i = 1; i < t->nodes.n; i++) {
        struct node *const parent = &t->nodes.v[t->nodes.v[i].parent];
        parent->children[parent->n_children++] = i;
    }
    return true;
}

static void sort_and_cut(struct tree *t) {
    const uint32_t keep_all_above = depth_without_cut(t);
    for (size_t i = 0; i < t->nodes.n; i++) {
        struct node *const n = &t->nodes.v[i];
        const struct child_order order = {t->nodes.v, is_fusion(n->op)};
        uint32_t keep = n->n_children;
        n->total_children = keep;
        if (n->depth >= keep_all_above && keep > MAX_CHILDREN) keep = MAX_CHILDREN;
        if (n->n_children > 1)
            xpl_std_partial_sort(n->children, keep, n->n_children, sizeof *n->children,
                                 comes_before, &order);
        n->n_children = keep;
    }
}

// A node without an instruction whose children all are instructions is a group of duplicates: of
// one, it becomes that one; of several, it takes the first one's details.
static bool resolve_group(struct tree *t, struct node *n) {
    if (n->op || n->is_call || n->n_children == 0) return true;
    for (uint32_t i = 0; i < n->n_children; i++)
        if (!t->nodes.v[n->children[i]].op) return true;
    const struct node *const first = &t->nodes.v[n->children[0]];
    if (n->n_children == 1) {
        *n = *first;
        return true;
    }
    n->op = first->op;
    n->is_group = true;
    return join(t, first->name, XPL_STR(" and its duplicate(s)"), &n->name);
}

static bool resolve_groups(struct tree *t) {
    // Parents first, so that each is judged before its children turn into instructions.
    for (size_t i = 0; i < t->nodes.n; i++)
        if (!resolve_group(t, &t->nodes.v[i])) return false;
    return true;
}

// ---- the answer ----

static void put(struct xpl_buf *b, const char *z) {
    xpl_buf_str(b, xpl_str_from(z));
}

static void put_double(struct xpl_buf *b, const char *key, double v) {
    put(b, key);
    xpl_json_proto_double(b, v);
}

static double capped(double utilization) {
    return 1.0 < utilization ? 1.0 : utilization;
}

// Peak of the first three memories; 0 when the profile does not say.
static double peak_of(const struct xpl_perf_env *env, size_t index) {
    return index < env->peak_bws_giga_bytes_per_second.n
               ? xpl_giga_to_gibi(env->peak_bws_giga_bytes_per_second.v[index])
               : 0;
}

static double gibi_rate(uint64_t bytes, double ns) {
    return xpl_giga_to_gibi(xpl_safe_divide((double)bytes, ns));
}

static void put_metrics(const struct tree *t, const struct sums *s, struct xpl_buf *b) {
    const struct xpl_perf_env *const env = &t->s->perf_env;
    const double ps = (double)s->time_ps, ns = xpl_pico_to_nano(s->time_ps);
    double flop_rate = xpl_safe_divide(s->flops, ns);
    if (s->normalized_time_ps) flop_rate *= xpl_safe_divide(ps, (double)s->normalized_time_ps);
    const double uncapped = xpl_safe_divide(flop_rate, env->peak_tera_flops_per_second * 1e3);
    const double share = xpl_safe_divide(ps, (double)t->total_ps);
    const double rates[3] = {gibi_rate(s->hbm_read, ns) + gibi_rate(s->hbm_write, ns),
                             gibi_rate(s->chip_read, ns), gibi_rate(s->chip_write, ns)};
    put_double(b, "{\"flops\":", capped(uncapped) * share);
    for (size_t i = 0; i < 3; i++)
        put_double(b, i ? "," : ",\"bandwidthUtils\":[",
                   capped(xpl_safe_divide(rates[i], peak_of(env, i))));
    put_double(b, "],\"rawTime\":", ps);
    put_double(b, ",\"rawFlops\":", s->model_flops);
    for (size_t i = 0; i < 3; i++) // back from the rate, as XProf does
        put_double(b, i ? "," : ",\"rawBytesAccessedArray\":[", xpl_gibi_to_giga(rates[i]) * ns);
    xpl_buf_printf(b, "],\"occurrences\":%" PRIu32, s->occurrences);
    put_double(b, ",\"avgTimePs\":", xpl_safe_divide(ps, s->occurrences));
    put_double(b, ",\"bf16Flops\":", s->flops);
    put_double(b, ",\"uncappedFlops\":", uncapped * share);
    put_double(b, ",\"normalizedTimePs\":", (double)s->normalized_time_ps);
    xpl_buf_putc(b, '}');
}

static void put_dimension(xpl_bytes_t dimension, struct xpl_buf *b) {
    static const char *const semantics[] = {"unknown_semantics", "feature", "batch", "spatial"};
    int32_t value[4] = {0};
    struct xpl_wire w = xpl_wire_begin(dimension);
    struct xpl_field f;
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD)
        if (f.num <= 3 && f.type == XPL_WIRE_VARINT) value[f.num] = (int32_t)f.u;
    const bool named = value[3] >= 0 && value[3] < 4;
    xpl_buf_printf(b, "{\"size\":%" PRId32 ",\"alignment\":%" PRId32 ",\"semantics\":\"%s\"}",
                   value[1], value[2], named ? semantics[value[3]] : "");
}

// LayoutAnalysis is kept as it was read; a broken one ends where it breaks.  One without dimensions
// is left out unless `always`.
static void put_layout(xpl_bytes_t layout, bool always, struct xpl_buf *b) {
    struct xpl_wire w = xpl_wire_begin(layout);
    struct xpl_field f;
    bool any = false;
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD) {
        if (f.num != 1 || f.type != XPL_WIRE_LEN) continue;
        put(b, any ? "," : ",\"layout\":{\"dimensions\":[");
        any = true;
        put_dimension(f.len, b);
    }
    if (any)
        put(b, "]}");
    else if (always)
        put(b, ",\"layout\":{\"dimensions\":[]}");
}

static void put_instruction(const struct tree *t, const struct node *n, struct xpl_buf *b) {
    const struct xpl_op_metrics *const m = n->op;
    const bool bare = n->is_group && is_fusion(m); // fusions of a group differ in these
    put(b, ",\"xla\":{\"op\":\"\",\"expression\":");
    xpl_json_str(b, m->long_name, true);
    put(b, ",\"provenance\":");
    xpl_json_str(b, bare ? (xpl_str_t){0} : m->provenance, true);
    put(b, ",\"category\":");
    xpl_json_str(b, m->category, true);
    if (!bare) put_layout(m->layout, n->is_group, b);
    xpl_buf_printf(b, ",\"computationPrimitiveSize\":%" PRIu32,
                   n->is_group ? 0 : m->computation_primitive_size);
    put(b, ",\"fingerprint\":");
    xpl_json_proto_uint64(b, m->fingerprint);
    put(b, ",\"programId\":");
    xpl_json_proto_uint64(b, m->hlo_module_id);
    put(b, ",\"sourceInfo\":{\"fileName\":");
    xpl_json_str(b, m->source_info.file_name, true);
    xpl_buf_printf(b, ",\"lineNumber\":%" PRId32 ",\"stackFrame\":", m->source_info.line_number);
    xpl_json_str(b, m->source_info.stack_frame, true);
    put(b, "},\"xprofKernelMetadata\":");
    xpl_str_t metadata;
    if (xpl_instruction_kernel_metadata(m->long_name, t->arena, &metadata))
        xpl_json_str(b, metadata, true);
    else
        b->failed = true;
    xpl_buf_putc(b, '}');
}

static void open_node(const struct tree *t, const struct node *n, struct xpl_buf *b) {
    put(b, "{\"name\":");
    xpl_json_str(b, n->name, true);
    put(b, ",\"metrics\":");
    put_metrics(t, &n->sums, b);
    put(b, ",\"children\":[");
}

static void close_node(const struct tree *t, const struct node *n, struct xpl_buf *b) {
    xpl_buf_putc(b, ']');
    if (n->op) put_instruction(t, n, b);
    xpl_buf_printf(b, ",\"numChildren\":%" PRIu32 "}", n->total_children);
}

struct frame {
    uint32_t node, next;
};

static bool put_tree(struct tree *t, struct xpl_buf *b) {
    XPL_VEC(struct frame) stack = {0};
    struct frame *f = xpl_vec_push(t->arena, &stack);
    if (!f) return false;
    *f = (struct frame){0};
    open_node(t, &t->nodes.v[0], b);
    while (stack.n) {
        f = &stack.v[stack.n - 1];
        const struct node *const n = &t->nodes.v[f->node];
        if (f->next == n->n_children) {
            close_node(t, n, b);
            stack.n--;
            continue;
        }
        if (f->next) xpl_buf_putc(b, ',');
        const uint32_t child = n->children[f->next++];
        if (!(f = xpl_vec_push(t->arena, &stack))) return false;
        *f = (struct frame){.node = child};
        open_node(t, &t->nodes.v[child], b);
    }
    return true;
}

static const char *group_name(const struct op_profile_options *opt) {
    switch (opt->group_by) {
        case BY_PROGRAM: return "program";
        case BY_CATEGORY: return "category";
        case BY_PROVENANCE: return "provenance";
        case BY_OP: return "op";
    }
    return "";
}

static bool put_profile(const struct xpl_opstats *s, const struct op_profile_options *opt,
                        bool exclude_idle, struct xpl_arena *scratch, struct xpl_buf *b) {
    struct tree t = {.s = s, .opt = opt, .arena = scratch, .exclude_idle = exclude_idle};
    xpl_str_t name;
    t.names = xpl_intern_new(scratch, xpl_hash_seed());
    if (!t.names || !xpl_arena_printf(scratch, &name, "by_%s", group_name(opt))) return false;
    (void)add_node(&t, 0, name);
    if (t.nodes.n == 1 && add_all(&t) && link_children(&t)) {
        sort_and_cut(&t);
        return resolve_groups(&t) && put_tree(&t, b);
    }
    return false;
}

// The hardware's name in JSON: as the conversion knew it, else from the device's type
// (ParseHardwareType).
static const char *hardware_name(const struct xpl_run_environment *e) {
    switch (e->hardware_type) {
        case XPL_HW_UNKNOWN: break;
        case XPL_HW_CPU_ONLY: return "CPU_ONLY";
        case XPL_HW_GPU: return "GPU";
        case XPL_HW_TPU: return "TPU";
    }
    if (xpl_str_has(e->device_type, XPL_STR("GPU"))) return "GPU";
    if (xpl_str_eq(e->device_type, XPL_STR("CPU"))) return "CPU_ONLY";
    return xpl_str_has(e->device_type, XPL_STR("TPU")) ? "TPU" : "UNKNOWN_HARDWARE";
}

static xpl_status_t write_answer(const struct xpl_opstats *s, const void *options,
                                 struct xpl_arena *scratch, struct xpl_buf *out,
                                 struct xpl_error *err) {
    const struct op_profile_options *const opt = options;
    const struct xpl_op_metrics_db *const db = &s->device_op_metrics_db;
    // Fields stand by their number in the message, which puts the device type between the two
    // trees except by provenance, whose trees came later.
    const bool last = opt->group_by == BY_PROVENANCE || opt->group_by == BY_OP;
    const char *const hardware = hardware_name(&s->run_environment);
    const char *const camel = opt->group_by == BY_PROGRAM    ? "byProgram"
                              : opt->group_by == BY_CATEGORY ? "byCategory"
                              : opt->group_by == BY_OP       ? "byOp"
                                                             : "byProvenance";
    xpl_buf_putc(out, '{');
    if (last) xpl_buf_printf(out, "\"deviceType\":\"%s\",", hardware);
    xpl_buf_printf(out, "\"%s\":", camel);
    bool ok = put_profile(s, opt, false, scratch, out);
    if (!last) xpl_buf_printf(out, ",\"deviceType\":\"%s\"", hardware);
    xpl_buf_printf(out, ",\"%sExcludeIdle\":", camel);
    ok = ok && put_profile(s, opt, true, scratch, out);
    put_double(
        out, ",\"aggDvfsTimeScaleMultiplier\":",
        xpl_safe_divide((double)db->normalized_total_op_time_ps, (double)db->total_op_time_ps));
    xpl_buf_putc(out, '}');
    if (!ok || out->failed) XPL_RETURN_OOM(err, "op_profile");
    return XPL_OK;
}

static xpl_status_t render(const struct xpl_tool_input *in, struct xpl_buf *out,
                           struct xpl_error *err) {
    return xpl_op_stats_render_with_peaks(in, write_answer, out, err);
}

static const char *const kAliases[] = {"hlo_op_profile", NULL};

const struct xpl_tool xpl_tool_op_profile = {
    .name = "op_profile",
    .aliases = kAliases,
    .version = 3,
    .needs = xpl_op_stats_needs,
    .facts = XPL_FACT_DEVICE_OPS,
    .options = kOptions,
    .n_options = sizeof kOptions / sizeof *kOptions,
    .options_size = sizeof(struct op_profile_options),
    .hosts = XPL_HOSTS_EACH,
    .shown = XPL_SHOWN_ALWAYS,
    .list_position = 5,
    .content_type = "application/json",
    .worker_served = true,
    .variant = xpl_op_stats_variant,
    .asks_device = true,
    .render = render,
};
