// SPDX-License-Identifier: Apache-2.0
#include "analysis/opstats/host/cpu_line.h"

#include "base/arena.h"
#include "base/intern.h"
#include "base/map.h"

// An op that runs: where it ends, and what its direct children took.
struct xpl_cpu_open {
    struct xpl_timespan span;
    uint64_t children_ps;
    uint32_t op;
};

// Keys that were seen last, and their ops; by position of the metadata, as most ops have separate
// metadata. Ops of the framework are among them, by their address: no metadata has that position.
enum { RECENT = 1024 };
static const uint32_t FRAMEWORK_OP = UINT32_MAX;
struct xpl_cpu_recent {
    struct xpl_cpu_key key;
    uint32_t op, generation; // index; of the line it belongs to, 0 for none
};

struct xpl_cpu_line *xpl_cpu_line_new(struct xpl_cpu_memory *m, struct xpl_arena *arena) {
    struct xpl_cpu_line *l = xpl_arena_zalloc(arena, sizeof *l);
    if (!l) return NULL;
    if (!m->recent) m->recent = xpl_arena_zalloc(arena, RECENT * sizeof *m->recent);
    if (!m->recent) return NULL;
    if (++m->generation == 0) return NULL; // 2^32 lines
    l->arena = arena, l->recent = m->recent, l->generation = m->generation;
    return l;
}

// Counts a run that has ended: only now is the time of its children known.
static void count(struct xpl_cpu_op *op, struct xpl_timespan span, uint64_t children_ps) {
    if (op->occurrences++ == 0 || span.duration_ps < op->min_time_ps)
        op->min_time_ps = span.duration_ps;
    op->time_ps += span.duration_ps;
    // Children that overlap each other may take longer together than their parent.
    if (children_ps < span.duration_ps) op->self_time_ps += span.duration_ps - children_ps;
}

static void close_innermost(struct xpl_cpu_line *l) {
    const struct xpl_cpu_open o = l->open.v[--l->open.n];
    count(&l->ops.v[o.op], o.span, o.children_ps);
}

static struct xpl_cpu_op *add(struct xpl_cpu_line *l, uint32_t op, struct xpl_timespan span) {
    while (l->open.n && !xpl_timespan_includes(l->open.v[l->open.n - 1].span, span))
        close_innermost(l);
    if (l->open.n) l->open.v[l->open.n - 1].children_ps += span.duration_ps;
    struct xpl_cpu_open *o = xpl_vec_push(l->arena, &l->open);
    if (!o) return NULL;
    *o = (struct xpl_cpu_open){.span = span, .op = op};
    const uint64_t end = xpl_timespan_end(span);
    if (!l->n_events++ || span.begin_ps < l->begin_ps) l->begin_ps = span.begin_ps;
    if (end > l->end_ps) l->end_ps = end;
    return &l->ops.v[op];
}

void xpl_cpu_line_finish(struct xpl_cpu_line *l) {
    while (l->open.n)
        close_innermost(l);
}

// The index of the op under (k1, k2) of `m`; *ret_new says whether it was added.
static bool op_of(struct xpl_cpu_line *l, struct xpl_map *m, uint64_t k1, uint64_t k2,
                  uint32_t *ret, bool *ret_new) {
    uint64_t *slot = xpl_map_put(l->arena, m, k1, k2, ret_new);
    if (!slot) return false;
    *ret_new = *slot == 0;
    if (*ret_new) {
        struct xpl_cpu_op *op = xpl_vec_push(l->arena, &l->ops);
        if (!op) return false;
        *op = (struct xpl_cpu_op){0};
        *slot = l->ops.n;
    }
    *ret = (uint32_t)(*slot - 1);
    return true;
}

// A view that is the same for equal strings: metadata names are, others are interned.
static bool identity(struct xpl_cpu_line *l, const struct xpl_stat *s, xpl_str_t *ret) {
    if (s->kind == XPL_VALUE_REF) {
        *ret = s->str;
        return true;
    }
    xpl_strid_t id;
    if (!l->strings && !(l->strings = xpl_intern_new(l->arena, xpl_hash_seed()))) return false;
    if (!xpl_intern_put(l->strings, s->str, &id)) return false;
    *ret = xpl_intern_get(l->strings, id);
    return true;
}

static bool find_xla(struct xpl_cpu_line *l, const struct xpl_cpu_event *e, xpl_str_t name,
                     xpl_str_t module, uint32_t *ret) {
    bool is_new;
    const uint64_t k1 = e->has_program_id ? e->program_id : (uint64_t)(uintptr_t)module.ptr;
    if (!op_of(l, e->has_program_id ? &l->by_program : &l->by_module, k1,
               (uint64_t)(uintptr_t)name.ptr, ret, &is_new))
        return false;
    struct xpl_cpu_op *op = &l->ops.v[*ret];
    if (is_new) {
        op->name = name, op->module = module;
        op->program_id = e->program_id, op->has_program_id = e->has_program_id;
    }
    if (!op->tf_op.len) op->tf_op = e->tf_op;
    return true;
}

struct xpl_cpu_op *xpl_cpu_line_add_xla(struct xpl_cpu_line *l, const struct xpl_cpu_event *e,
                                        const struct xpl_cpu_key *key, struct xpl_timespan span) {
    xpl_str_t name, module = {"", 0};
    uint32_t op;
    if (!identity(l, &e->hlo_op, &name) || (e->has_module && !identity(l, &e->module, &module)) ||
        !find_xla(l, e, name, module, &op))
        return NULL;
    if (key && l->recent)
        l->recent[key->md % RECENT] = (struct xpl_cpu_recent){*key, op, l->generation};
    return add(l, op, span);
}

bool xpl_cpu_line_add_known(struct xpl_cpu_line *l, const struct xpl_cpu_key *key,
                            struct xpl_timespan span, struct xpl_cpu_op **ret) {
    *ret = NULL;
    if (!l->recent) return true;
    const struct xpl_cpu_recent *r = &l->recent[key->md % RECENT];
    if (r->generation != l->generation || r->key.md != key->md || r->key.hlo_op != key->hlo_op ||
        r->key.module != key->module || r->key.program_id != key->program_id)
        return true;
    *ret = add(l, r->op, span);
    return *ret != NULL;
}

static bool find_framework(struct xpl_cpu_line *l, const struct xpl_host_op *op, uint32_t *ret) {
    bool is_new;
    if (!op_of(l, &l->by_framework_op, (uint64_t)(uintptr_t)op, 0, ret, &is_new)) return false;
    if (is_new) l->ops.v[*ret].framework = op, l->ops.v[*ret].name = op->name;
    return true;
}

struct xpl_cpu_op *xpl_cpu_line_add_framework(struct xpl_cpu_line *l, const struct xpl_host_op *op,
                                              bool is_eager, struct xpl_timespan span) {
    struct xpl_cpu_recent *const r =
        l->recent ? &l->recent[(uintptr_t)op / sizeof *op % RECENT] : NULL;
    uint32_t i;
    if (r && r->generation == l->generation && r->key.md == FRAMEWORK_OP &&
        r->key.hlo_op == (uint64_t)(uintptr_t)op) {
        i = r->op;
    } else {
        if (!find_framework(l, op, &i)) return NULL;
        if (r)
            *r = (struct xpl_cpu_recent){
                {.hlo_op = (uint64_t)(uintptr_t)op, .md = FRAMEWORK_OP}, i, l->generation};
    }
    l->ops.v[i].is_eager |= is_eager;
    return add(l, i, span);
}

// ---- from one piece of a line to the next ----

struct xpl_carried_op {
    struct xpl_timespan span;
    uint64_t children_ps;
    struct xpl_cpu_op *op;
};

static void close_carried(struct xpl_cpu_carry *c) {
    const struct xpl_carried_op o = c->v.v[--c->v.n];
    count(o.op, o.span, o.children_ps);
}

void xpl_cpu_carry_pass(struct xpl_cpu_carry *c, struct xpl_timespan span) {
    while (c->v.n && !xpl_timespan_includes(c->v.v[c->v.n - 1].span, span))
        close_carried(c);
    if (c->v.n) c->v.v[c->v.n - 1].children_ps += span.duration_ps;
}

bool xpl_cpu_carry_merge(struct xpl_cpu_carry *c, struct xpl_cpu_line *l) {
    if (!xpl_vec_reserve(c->arena, &c->v, l->open.n)) return false;
    for (size_t i = 0; i < l->open.n; i++) {
        const struct xpl_cpu_open o = l->open.v[i];
        c->v.v[c->v.n++] = (struct xpl_carried_op){o.span, o.children_ps, &l->ops.v[o.op]};
    }
    l->open.n = 0;
    return true;
}

void xpl_cpu_carry_finish(struct xpl_cpu_carry *c) {
    while (c->v.n)
        close_carried(c);
}
