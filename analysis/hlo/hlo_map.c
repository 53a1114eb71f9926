// SPDX-License-Identifier: Apache-2.0
#include "analysis/hlo/hlo_map.h"

#include <pthread.h>
#include <stdatomic.h>

#include "analysis/hlo/fields.h"
#include "analysis/hlo/hlo_module.h"
#include "analysis/hlo/instruction.h"
#include "analysis/hlo/opcodes.h"
#include "analysis/xplane/tf_op.h"
#include "base/arena.h"
#include "base/cond.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"

// ---- fusions by their kernels' names ----

// XLA names the kernel that it generates for a fusion after it, with "_" for characters that a
// function's name cannot have: loop_add_fusion_1 is that of loop_add_fusion.1.  Fusions with the
// same code share the kernel of the first.

struct kernel_names {
    struct xpl_map by_hash; // of the name: an instruction + 1; UINT64_MAX: several
};

static char in_kernel(char c) {
    const bool stays = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '$';
    return stays ? c : '_';
}

// FNV-1a of a name as a kernel has it, seeded.
static uint64_t hash_name(xpl_str_t name) {
    uint64_t h = xpl_hash_seed() ^ UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < name.len; i++)
        h = (h ^ (uint8_t)in_kernel(name.ptr[i])) * UINT64_C(0x100000001b3);
    return h;
}

static bool is_kernel_of(xpl_str_t name, xpl_str_t kernel) {
    if (name.len != kernel.len) return false;
    for (size_t i = 0; i < name.len; i++)
        if (in_kernel(name.ptr[i]) != kernel.ptr[i]) return false;
    return true;
}

// The names of a valid module.  False at the arena's limit.
static bool kernel_names_read(const struct xpl_hlo_module *m, struct xpl_arena *a,
                              struct kernel_names *ret) {
    for (uint32_t i = 0; i < m->n_instructions; i++) {
        if (m->instructions[i].opcode != XPL_HLO_FUSION) continue;
        bool is_new;
        uint64_t *const at =
            xpl_map_put(a, &ret->by_hash, hash_name(m->instructions[i].name), 0, &is_new);
        if (!at) return false;
        *at = is_new ? (uint64_t)i + 1 : UINT64_MAX;
    }
    return true;
}

// The fusion with that kernel; UINT32_MAX where none has, or more than one could.
static uint32_t kernel_names_find(const struct kernel_names *k, const struct xpl_hlo_module *m,
                                  xpl_str_t kernel) {
    enum { LONGEST = 4096 }; // many ops may have a kernel with one long name
    const uint64_t *const at =
        kernel.len <= LONGEST ? xpl_map_get(&k->by_hash, hash_name(kernel), 0) : NULL;
    if (!at || *at == UINT64_MAX) return UINT32_MAX;
    const uint32_t i = (uint32_t)(*at - 1);
    return is_kernel_of(m->instructions[i].name, kernel) ? i : UINT32_MAX;
}

struct xpl_hlo_map {
    struct xpl_arena arena; // programs and, under the lock, the modules read so far
    pthread_mutex_t lock;
    struct xpl_hlo_program *programs;
    xpl_bytes_t *module_bytes;       // parallel to programs
    struct xpl_hlo_module **modules; // parallel; NULL until read
    struct xpl_hlo_costs **costs;    // likewise; NULL until requested
    struct kernel_names **kernels;   // likewise
    size_t n;
    struct xpl_intern *names; // of programs
    size_t *of_name;          // by number of the name: the first program
    enum xpl_hlo_costs_kind need_costs;
};

// ---- finding programs ----

struct found {
    struct xpl_hlo_program program;
    xpl_bytes_t module; // ptr NULL: the proto has none
    size_t order;
};
typedef XPL_VEC(struct found) found_vec;

// The module of an HloProto and its name; false when the proto is malformed at this depth.
static bool open_proto(xpl_bytes_t proto, struct found *ret) {
    struct xpl_wire w = xpl_wire_begin(proto);
    struct xpl_field f;
    enum xpl_wire_result res;
    while ((res = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD)
        if (f.num == HLO_PROTO_MODULE && f.type == XPL_WIRE_LEN) ret->module = f.len;
    if (res == XPL_WIRE_MALFORMED) return false;
    if (!ret->module.ptr) return true;
    w = xpl_wire_begin(ret->module);
    while ((res = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD)
        if (f.num == HLO_MODULE_NAME && f.type == XPL_WIRE_LEN)
            ret->program.name = xpl_wire_str(&f);
    return res == XPL_WIRE_END;
}

// The program that a metadata entry of "/host:metadata" describes, if any.
static bool find_program(const struct xpl_plane *p, uint32_t i, struct found *ret) {
    const struct xpl_event_md *const md = &p->event_md[i];
    // Of several entries with one id the last counts.
    if (!md->has_stats || xpl_plane_event_md(p, md->id) != i) return false;
    const struct xpl_stats stats = xpl_event_md_stats(p, md);
    struct xpl_stat s;
    if (!xpl_stats_get(stats, XPL_STAT_HLO_PROTO, &s) || s.kind != XPL_VALUE_BYTES) return false;
    ret->program.proto = (xpl_bytes_t){(const uint8_t *)s.str.ptr, s.str.len};
    if (!open_proto(ret->program.proto, ret)) return false;
    ret->program.program_id = (uint64_t)md->id;
    if (xpl_stats_get(stats, XPL_STAT_PROGRAM_ID, &s))
        ret->program.program_id = xpl_stat_int_or_uint(&s);
    return true;
}

static int by_id(const void *pa, const void *pb) {
    const struct found *const a = pa, *const b = pb;
    if (a->program.program_id != b->program.program_id)
        return a->program.program_id < b->program.program_id ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

static bool collect_programs(const struct xpl_xspace *xs, struct xpl_arena *a, found_vec *v) {
    for (uint32_t i = 0; i < xs->n_planes; i++) {
        const struct xpl_plane *const p = &xs->planes[i];
        if (p->kind != XPL_PLANE_METADATA) continue;
        for (uint32_t k = 1; k < p->n_event_md; k++) {
            struct found f = {.order = v->n};
            if (!find_program(p, k, &f)) continue;
            struct found *const slot = xpl_vec_push(a, v);
            if (!slot) return false;
            *slot = f;
        }
    }
    return true;
}

static bool keep_first_of_each(struct xpl_hlo_map *m, found_vec *v) {
    xpl_sort(v->v, v->n, sizeof *v->v, by_id);
    m->programs = xpl_arena_array(&m->arena, v->n, sizeof *m->programs);
    m->module_bytes = xpl_arena_array(&m->arena, v->n, sizeof *m->module_bytes);
    m->modules = xpl_arena_zalloc(&m->arena, v->n * sizeof *m->modules);
    m->costs = xpl_arena_zalloc(&m->arena, v->n * sizeof *m->costs);
    m->kernels = xpl_arena_zalloc(&m->arena, v->n * sizeof *m->kernels);
    if (!m->programs || !m->module_bytes || !m->modules || !m->costs || !m->kernels) return false;
    for (size_t i = 0; i < v->n; i++) {
        if (i && v->v[i].program.program_id == v->v[i - 1].program.program_id) continue;
        m->programs[m->n] = v->v[i].program;
        m->module_bytes[m->n++] = v->v[i].module;
    }
    return true;
}

static bool number_names(struct xpl_hlo_map *m) {
    uint32_t last = 0;
    m->names = xpl_intern_new(&m->arena, xpl_hash_seed());
    m->of_name = xpl_arena_array(&m->arena, m->n + 1, sizeof *m->of_name);
    if (!m->names || !m->of_name) return false;
    for (size_t i = 0; i < m->n; i++) {
        xpl_strid_t id;
        if (!xpl_intern_put(m->names, m->programs[i].name, &id)) return false;
        if (id.v > last) m->of_name[last = id.v] = i;
    }
    return true;
}

xpl_status_t xpl_hlo_map_new(const struct xpl_xspace *xs, size_t limit, struct xpl_hlo_map **ret,
                             struct xpl_error *err) {
    struct xpl_hlo_map *const m = xpl_sys_alloc(sizeof *m);
    if (!m) XPL_RETURN_OOM(err, "HLO programs");
    *m = (struct xpl_hlo_map){0};
    xpl_arena_init(&m->arena, limit);
    pthread_mutex_init(&m->lock, NULL);
    found_vec v = {0};
    if (!collect_programs(xs, &m->arena, &v) || !keep_first_of_each(m, &v) || !number_names(m)) {
        xpl_hlo_map_free(m);
        XPL_RETURN_OOM(err, "HLO programs");
    }
    *ret = m;
    return XPL_OK;
}

void xpl_hlo_map_free(struct xpl_hlo_map *m) {
    if (!m) return;
    pthread_mutex_destroy(&m->lock);
    xpl_arena_fini(&m->arena);
    xpl_sys_free(m);
}

const struct xpl_hlo_program *xpl_hlo_map_programs(const struct xpl_hlo_map *m, size_t *ret_n) {
    *ret_n = m->n;
    return m->programs;
}

bool xpl_hlo_map_program_of(const struct xpl_hlo_map *m, xpl_str_t name, uint64_t *ret) {
    xpl_strid_t id;
    if (!name.len || !xpl_intern_find(m->names, name, &id)) return false;
    *ret = m->programs[m->of_name[id.v]].program_id;
    return true;
}

// ---- lookup ----

static xpl_status_t read_module(struct xpl_hlo_map *m, size_t i, struct xpl_error *err) {
    struct xpl_hlo_module *module = NULL;
    xpl_assert_held(&m->lock);
    XPL_TRY(m->need_costs ? xpl_hlo_module_read_full(m->module_bytes[i], &m->arena, &module, err)
                          : xpl_hlo_module_read(m->module_bytes[i], &m->arena, &module, err));
    if (!xpl_hlo_module_decode_long(module, &m->arena)) XPL_RETURN_OOM(err, "HLO module");
    m->modules[i] = module;
    return XPL_OK;
}

static xpl_status_t get_module(struct xpl_hlo_map *m, size_t i, struct xpl_hlo_module **ret,
                               struct xpl_error *err) {
    pthread_mutex_lock(&m->lock);
    const xpl_status_t st = m->modules[i] ? XPL_OK : read_module(m, i, err);
    *ret = m->modules[i];
    pthread_mutex_unlock(&m->lock);
    return st;
}

// The number of programs where none that can be read has that id.
static size_t find_id(const struct xpl_hlo_map *m, uint64_t program_id) {
    size_t lo = 0, hi = m->n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (m->programs[mid].program_id < program_id)
            lo = mid + 1;
        else
            hi = mid;
    }
    const bool found =
        lo < m->n && m->programs[lo].program_id == program_id && m->module_bytes[lo].ptr;
    return found ? lo : m->n;
}

static bool return_instruction(const struct xpl_hlo_module *module, size_t program, uint32_t at,
                               struct xpl_hlo_instruction *ret) {
    if (at == UINT32_MAX) return false;
    xpl_hlo_module_get(module, at, ret);
    ret->program = program;
    return true;
}

xpl_status_t xpl_hlo_map_find(struct xpl_hlo_map *m, uint64_t program_id, xpl_str_t name,
                              struct xpl_hlo_instruction *ret, bool *ret_found,
                              struct xpl_error *err) {
    struct xpl_hlo_module *module = NULL;
    const size_t program = find_id(m, program_id);
    *ret_found = false;
    if (program == m->n) return XPL_OK;
    XPL_TRY(get_module(m, program, &module, err));
    const uint32_t at = xpl_hlo_module_find(module, name);
    *ret_found = return_instruction(module, program, at, ret);
    return XPL_OK;
}

static bool read_kernels(struct xpl_hlo_map *m, size_t program,
                         const struct xpl_hlo_module *module) {
    xpl_assert_held(&m->lock);
    if (m->kernels[program]) return true;
    struct kernel_names *const k = xpl_arena_zalloc(&m->arena, sizeof *k);
    if (!k || !kernel_names_read(module, &m->arena, k)) return false;
    m->kernels[program] = k;
    return true;
}

xpl_status_t xpl_hlo_map_find_kernel(struct xpl_hlo_map *m, uint64_t program_id, xpl_str_t kernel,
                                     struct xpl_hlo_instruction *ret, bool *ret_found,
                                     struct xpl_error *err) {
    struct xpl_hlo_module *module = NULL;
    const size_t program = find_id(m, program_id);
    *ret_found = false;
    if (program == m->n) return XPL_OK;
    XPL_TRY(get_module(m, program, &module, err));
    if (!module->valid) return XPL_OK;
    pthread_mutex_lock(&m->lock);
    const bool read = read_kernels(m, program, module);
    pthread_mutex_unlock(&m->lock);
    if (!read) XPL_RETURN_OOM(err, "HLO kernels");
    const uint32_t at = kernel_names_find(m->kernels[program], module, kernel);
    *ret_found = return_instruction(module, program, at, ret);
    return XPL_OK;
}

// ---- costs ----

void xpl_hlo_map_need_costs(struct xpl_hlo_map *m, enum xpl_hlo_costs_kind kind) {
    m->need_costs = kind;
}

static xpl_status_t find_cost(struct xpl_hlo_map *m, const struct xpl_hlo_instruction *in,
                              struct xpl_exec *exec, struct xpl_hlo_cost *ret,
                              struct xpl_error *err) {
    xpl_assert_held(&m->lock);
    struct xpl_hlo_costs **const costs = &m->costs[in->program];
    bool lost = false;
    const bool is_new = !*costs;
    if (!*costs && !(*costs = xpl_hlo_costs_new(in->module, &m->arena)))
        XPL_RETURN_OOM(err, "HLO costs");
    if (is_new && m->need_costs == XPL_HLO_COSTS_CPU) xpl_hlo_costs_of_cpu(*costs);
    if (is_new && m->need_costs == XPL_HLO_COSTS_KNOWN) xpl_hlo_costs_of_more_calls(*costs);
    if (m->need_costs == XPL_HLO_COSTS_XPROF) XPL_TRY(xpl_hlo_costs_lost(*costs, exec, &lost, err));
    return lost ? XPL_OK : xpl_hlo_cost(*costs, in->index, exec, ret, err);
}

xpl_status_t xpl_hlo_map_cost(struct xpl_hlo_map *m, const struct xpl_hlo_instruction *in,
                              struct xpl_exec *exec, struct xpl_hlo_cost *ret,
                              struct xpl_error *err) {
    *ret = (struct xpl_hlo_cost){0};
    if (!m->need_costs) return XPL_OK;
    pthread_mutex_lock(&m->lock);
    const xpl_status_t st = find_cost(m, in, exec, ret, err);
    pthread_mutex_unlock(&m->lock);
    return st;
}

// ---- training ----

static bool has_gradient_scope(xpl_str_t op_name) {
    xpl_str_t scope;
    for (size_t pos = 0; xpl_tf_op_next_scope(op_name, &pos, &scope);)
        if (xpl_str_starts(scope, XPL_STR("gradients")) ||
            xpl_str_eq(scope, XPL_STR("gradient_tape")))
            return true;
    return false;
}

static bool has_transpose_scope(xpl_str_t op_name) {
    const xpl_str_t word = XPL_STR("transpose(");
    for (size_t at = xpl_str_find(op_name, word, 0); at != SIZE_MAX;
         at = xpl_str_find(op_name, word, at + 1))
        if (at == 0 || op_name.ptr[at - 1] == '/') return true;
    return false;
}

bool xpl_hlo_is_gradient_op(xpl_str_t op_name, xpl_str_t op_type) {
    const bool maybe_tf = xpl_str_has(op_name, XPL_STR("gradient"));
    const bool maybe_jax = xpl_str_has(op_name, XPL_STR("transpose("));
    if (!maybe_tf && !maybe_jax) return false;
    if (xpl_is_tf_op_type(op_type) && xpl_is_tf_op_name(op_name))
        return maybe_tf && has_gradient_scope(op_name);
    const bool jax = op_type.len == 0 || xpl_is_jax_op_name_and_type(op_name, op_type);
    return jax && maybe_jax && has_transpose_scope(op_name);
}

static bool metadata_is_gradient(xpl_bytes_t metadata) {
    struct xpl_wire w = xpl_wire_begin(metadata);
    struct xpl_field f;
    xpl_str_t name = {0}, type = {0};
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD) {
        if (f.num == HLO_META_OP_NAME && f.type == XPL_WIRE_LEN) name = xpl_wire_str(&f);
        if (f.num == HLO_META_OP_TYPE && f.type == XPL_WIRE_LEN) type = xpl_wire_str(&f);
    }
    return name.len && xpl_hlo_is_gradient_op(name, type);
}

static bool instruction_is_gradient(xpl_bytes_t instruction) {
    struct xpl_wire w = xpl_wire_begin(instruction);
    struct xpl_field f;
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD)
        if (f.num == HLO_INSTR_METADATA && f.type == XPL_WIRE_LEN && metadata_is_gradient(f.len))
            return true;
    return false;
}

static bool module_has_gradient(xpl_bytes_t module) {
    struct xpl_wire w = xpl_wire_begin(module), v;
    struct xpl_field f;
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD) {
        if (f.num != HLO_MODULE_COMPUTATIONS || f.type != XPL_WIRE_LEN) continue;
        v = xpl_wire_begin(f.len);
        while (xpl_wire_next(&v, &f) == XPL_WIRE_FIELD)
            if (f.num == HLO_COMPUTATION_INSTRUCTIONS && f.type == XPL_WIRE_LEN &&
                instruction_is_gradient(f.len))
                return true;
    }
    return false;
}

struct training_scan {
    struct xpl_hlo_map *map;
    struct xpl_exec *exec;
    atomic_bool found;
    atomic_int status; // of the first piece that failed
};

// A program counts only when XLA would accept it, which takes reading it: done for the few that
// seem to train.
static void scan_program(void *ctx, size_t i) {
    struct training_scan *const s = ctx;
    if (atomic_load_explicit(&s->found, memory_order_relaxed) || xpl_exec_cancelled(s->exec))
        return;
    const xpl_bytes_t bytes = s->map->module_bytes[i];
    if (!bytes.ptr || !module_has_gradient(bytes)) return;
    struct xpl_hlo_module *module = NULL;
    const xpl_status_t st = get_module(s->map, i, &module, NULL);
    if (st != XPL_OK)
        atomic_store(&s->status, (int)st);
    else if (module->valid)
        atomic_store(&s->found, true);
}

xpl_status_t xpl_hlo_map_is_training(struct xpl_hlo_map *m, struct xpl_exec *exec, bool *ret,
                                     struct xpl_error *err) {
    struct training_scan s = {.map = m, .exec = exec};
    xpl_exec_run(exec, m->n, scan_program, &s);
    if (xpl_exec_cancelled(exec)) XPL_RETURN_ERROR(err, XPL_CANCELLED, "conversion cancelled");
    if (!atomic_load(&s.found) && atomic_load(&s.status)) XPL_RETURN_OOM(err, "HLO module");
    *ret = atomic_load(&s.found);
    return XPL_OK;
}
