// SPDX-License-Identifier: Apache-2.0
// The rows combine the programs with the op statistics, as everywhere else: so measurements here
// equal those in the store's table of ops.
#include "sql/instructions.h"

#include <stdlib.h>

#include "analysis/hlo/fields.h"
#include "analysis/hlo/hlo_map.h"
#include "analysis/hlo/module/message.h"
#include "analysis/hlo/text/text.h"
#include "analysis/opstats/convert.h"
#include "analysis/opstats/metrics/op_metrics.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"

enum { CANCEL_EVERY = 256, SHAPE_MAX = 60000 };

struct reading {
    struct xpl_sql_instructions *list;
    struct xpl_intern *texts; // in the list's arena: instructions repeat shapes and ops
    XPL_VEC(struct xpl_sql_instruction) rows;
    const struct xpl_opstats *stats;
    const struct xpl_op_metrics **ops; // those of modules, by program and name
    uint8_t *is_taken;                 // by position in `ops`
    size_t n_ops;
    struct xpl_exec *exec;
    size_t limit;
};

static bool keep_text(struct reading *r, xpl_str_t s, xpl_str_t *ret) {
    xpl_strid_t id;
    if (!s.len) return true;
    if (!xpl_intern_put(r->texts, s, &id)) return false;
    *ret = xpl_intern_get(r->texts, id);
    return true;
}

static struct xpl_sql_instruction *push_row(struct reading *r) {
    if (r->rows.n == UINT32_MAX) return NULL;
    struct xpl_sql_instruction *const row = xpl_vec_push(&r->list->arena, &r->rows);
    if (row) *row = (struct xpl_sql_instruction){0};
    return row;
}

// ---- measurements ----

static int by_program_and_name(const void *a, const void *b) {
    const struct xpl_op_metrics *const x = *(const struct xpl_op_metrics *const *)a,
                                       *const y = *(const struct xpl_op_metrics *const *)b;
    if (x->hlo_module_id != y->hlo_module_id) return x->hlo_module_id < y->hlo_module_id ? -1 : 1;
    return xpl_str_cmp(x->name, y->name);
}

static int by_program(const void *key, const void *at) {
    const uint64_t id = *(const uint64_t *)key;
    const uint64_t its = ((const struct xpl_program_name *)at)->program_id;
    return (id > its) - (id < its);
}

static xpl_str_t program_name(const struct xpl_opstats *s, uint64_t id) {
    const struct xpl_program_name *const found =
        s->program_id_to_name_map.n
            ? bsearch(&id, s->program_id_to_name_map.v, s->program_id_to_name_map.n,
                      sizeof *s->program_id_to_name_map.v, by_program)
            : NULL;
    return found ? found->name : (xpl_str_t){0};
}

// Only ops of programs: idle time belongs to no program.
static bool sort_ops(struct reading *r, struct xpl_arena *arena) {
    const struct xpl_op_metrics_db *const db = &r->stats->device_op_metrics_db;
    r->ops = xpl_arena_array(arena, db->metrics_db.n, sizeof *r->ops);
    r->is_taken = xpl_arena_zalloc(arena, db->metrics_db.n);
    if (!r->ops || !r->is_taken) return false;
    for (size_t i = 0; i < db->metrics_db.n; i++) {
        const struct xpl_op_metrics *const m = &db->metrics_db.v[i];
        if (!xpl_op_metrics_is_idle(m) && program_name(r->stats, m->hlo_module_id).ptr)
            r->ops[r->n_ops++] = m;
    }
    xpl_sort((void *)(uintptr_t)r->ops, r->n_ops, sizeof *r->ops, by_program_and_name);
    return true;
}

static bool keep_measured(struct reading *r, const struct xpl_op_metrics *m,
                          struct xpl_sql_instruction *row) {
    row->program_id = m->hlo_module_id;
    row->occurrences = m->occurrences;
    row->time_ps = m->time_ps;
    row->self_time_ps = m->self_time_ps;
    row->flops = m->flops;
    row->bytes_accessed = m->bytes_accessed;
    if (m->has_source_info && m->source_info.file_name.len &&
        !xpl_arena_printf(&r->list->arena, &row->source, "%.*s:%d",
                          XPL_STR_FMT(m->source_info.file_name), m->source_info.line_number))
        return false;
    return keep_text(r, program_name(r->stats, m->hlo_module_id), &row->module) &&
           keep_text(r, m->name, &row->name) && keep_text(r, m->category, &row->category) &&
           keep_text(r, m->provenance, &row->framework_op);
}

// Takes the measurements of an instruction, once.
static bool take_measured(struct reading *r, uint64_t program_id, xpl_str_t name,
                          struct xpl_sql_instruction *row) {
    const struct xpl_op_metrics wanted = {.hlo_module_id = program_id, .name = name};
    const struct xpl_op_metrics *const key = &wanted;
    const struct xpl_op_metrics **const found =
        r->n_ops ? bsearch(&key, r->ops, r->n_ops, sizeof *r->ops, by_program_and_name) : NULL;
    if (!found || r->is_taken[found - r->ops]) return true;
    r->is_taken[found - r->ops] = 1;
    return keep_measured(r, *found, row);
}

// ---- programs ----

static bool keep_shape(struct reading *r, const struct hlo_instruction *at,
                       struct xpl_hlo_text_cache *cache, struct xpl_buf *text,
                       struct xpl_sql_instruction *row) {
    struct xpl_error why = {0};
    text->n = 0;
    const xpl_status_t st = xpl_hlo_text_shape(xpl_hlo_shape_of(at), cache, text, &why);
    if (st == XPL_DATA_LOSS) return true; // a shape that says nothing
    const size_t n = text->n < SHAPE_MAX ? text->n : SHAPE_MAX;
    return st == XPL_OK && keep_text(r, (xpl_str_t){(const char *)text->p, n}, &row->shape);
}

// Takes values from the program, unless the measurements have them.
static bool keep_told(struct reading *r, const struct xpl_hlo_instruction *in,
                      struct xpl_arena *scratch, struct xpl_sql_instruction *row) {
    struct xpl_hlo_source source;
    xpl_str_t op;
    if (row->occurrences) return true;
    if (!xpl_hlo_tf_op_name(in, scratch, &op) || !xpl_hlo_source(in, scratch, &source))
        return false;
    if (source.file.len && !xpl_arena_printf(&r->list->arena, &row->source, "%.*s:%d",
                                             XPL_STR_FMT(source.file), source.line))
        return false;
    return keep_text(r, in->category, &row->category) && keep_text(r, op, &row->framework_op);
}

static bool read_instruction(struct reading *r, const struct xpl_hlo_program *program,
                             const struct xpl_hlo_module *module, uint32_t i,
                             struct xpl_hlo_text_cache *cache, struct xpl_arena *scratch,
                             struct xpl_buf *text) {
    const struct hlo_instruction *const at = &module->instructions[i];
    struct xpl_hlo_instruction in;
    struct xpl_sql_instruction *const row = push_row(r);
    if (!row) return false;
    xpl_hlo_module_get(module, i, &in);
    row->program_id = program->program_id;
    return keep_text(r, program->name, &row->module) && keep_text(r, in.name, &row->name) &&
           take_measured(r, program->program_id, in.name, row) &&
           keep_text(r, module->computations[at->computation].name, &row->computation) &&
           keep_text(r, in.opcode, &row->opcode) && keep_shape(r, at, cache, text, row) &&
           keep_told(r, &in, scratch, row);
}

static xpl_status_t read_program(struct reading *r, const struct xpl_hlo_program *program,
                                 struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = {0};
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch = {0}; // of a few instructions
    XPL_AUTO(xpl_buf_fini) struct xpl_buf text = {0};
    xpl_arena_init(&arena, r->limit);
    xpl_buf_init(&text, XPL_HLO_TEXT_CUT * 2);
    struct xpl_hlo_message proto;
    struct xpl_hlo_module *module;
    xpl_hlo_message_read(program->proto, &proto);
    const xpl_bytes_t bytes = xpl_hlo_bytes(&proto, HLO_PROTO_MODULE);
    if (!bytes.len) return XPL_OK;
    XPL_TRY(xpl_hlo_module_read_full(bytes, &arena, &module, err));
    struct xpl_hlo_text_cache *const cache = xpl_hlo_text_cache_new(&arena);
    if (!cache) XPL_RETURN_OOM(err, "HLO instructions");
    for (uint32_t i = 0; module->valid && i < module->n_instructions; i++) {
        if (i % CANCEL_EVERY == 0) {
            if (xpl_exec_cancelled(r->exec)) XPL_RETURN_ERROR(err, XPL_CANCELLED, "cancelled");
            xpl_arena_fini(&scratch);
            xpl_arena_init(&scratch, r->limit);
        }
        if (!read_instruction(r, program, module, i, cache, &scratch, &text))
            XPL_RETURN_OOM(err, "HLO instructions");
    }
    return XPL_OK;
}

// Ops of programs up to `program_id` that no instruction took: their program is not in the profile.
static bool add_others(struct reading *r, size_t *at, bool all, uint64_t program_id) {
    for (; *at < r->n_ops && (all || r->ops[*at]->hlo_module_id <= program_id); ++*at) {
        if (r->is_taken[*at]) continue;
        struct xpl_sql_instruction *const row = push_row(r);
        if (!row || !keep_measured(r, r->ops[*at], row)) return false;
    }
    return true;
}

// Those of programs before this one come first, those that this one lacks after it.
static xpl_status_t read_programs(struct reading *r, const struct xpl_hlo_map *map,
                                  struct xpl_error *err) {
    size_t n, others = 0;
    const struct xpl_hlo_program *const programs = xpl_hlo_map_programs(map, &n);
    for (size_t i = 0; i < n; i++) {
        const uint64_t id = programs[i].program_id;
        if (id && !add_others(r, &others, false, id - 1)) XPL_RETURN_OOM(err, "HLO instructions");
        XPL_TRY(read_program(r, &programs[i], err));
        if (!add_others(r, &others, false, id)) XPL_RETURN_OOM(err, "HLO instructions");
    }
    if (!add_others(r, &others, true, 0)) XPL_RETURN_OOM(err, "HLO instructions");
    return XPL_OK;
}

// ---- the list ----

static int by_name(const void *a, const void *b, void *arg) {
    const struct xpl_sql_instruction *const v = arg;
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const int c = xpl_str_cmp(v[x].name, v[y].name);
    return c ? c : (x > y) - (x < y);
}

static bool order(struct reading *r) {
    struct xpl_sql_instructions *const l = r->list;
    l->v = r->rows.v;
    l->n = (uint32_t)r->rows.n;
    l->by_name = xpl_arena_array(&l->arena, l->n, sizeof *l->by_name);
    if (!l->by_name) return false;
    for (uint32_t i = 0; i < l->n; i++)
        l->by_name[i] = i;
    xpl_sort_r(l->by_name, l->n, sizeof *l->by_name, by_name, l->v);
    return true;
}

static void free_map(struct xpl_hlo_map **m) {
    xpl_hlo_map_free(*m);
}

static xpl_status_t read_all(struct reading *r, const struct xpl_xspace *xs, bool cpu_as_device,
                             struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = {0}; // of the statistics
    XPL_AUTO(free_map) struct xpl_hlo_map *map = NULL;
    const struct xpl_convert_options options = {.cpu_as_device = cpu_as_device};
    struct xpl_opstats *stats;
    xpl_arena_init(&arena, r->limit);
    XPL_TRY(xpl_opstats_convert(xs, &options, r->exec, &arena, r->limit, &stats, err));
    r->stats = stats;
    r->texts = xpl_intern_new(&r->list->arena, xpl_hash_seed());
    if (!r->texts || !sort_ops(r, &arena)) XPL_RETURN_OOM(err, "HLO instructions");
    XPL_TRY(xpl_hlo_map_new(xs, r->limit, &map, err));
    XPL_TRY(read_programs(r, map, err));
    if (!order(r)) XPL_RETURN_OOM(err, "HLO instructions");
    return XPL_OK;
}

xpl_status_t xpl_sql_instructions_read(const struct xpl_xspace *xs, bool cpu_as_device,
                                       struct xpl_exec *exec, size_t limit,
                                       struct xpl_sql_instructions *ret, struct xpl_error *err) {
    struct reading r = {.list = ret, .exec = exec, .limit = limit};
    const xpl_status_t st = read_all(&r, xs, cpu_as_device, err);
    if (st != XPL_OK) *ret = (struct xpl_sql_instructions){.arena = ret->arena};
    return st;
}

uint32_t xpl_sql_instructions_find(const struct xpl_sql_instructions *l, xpl_str_t name) {
    uint32_t lo = 0, hi = l->n;
    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (xpl_str_cmp(l->v[l->by_name[mid]].name, name) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}
