// SPDX-License-Identifier: Apache-2.0
// Metadata of a GPU's derived events: XLA modules, the levels of an XLA op's path, and the
// framework op and source line of its instruction, each made once per plane.
#include "analysis/trace/derived/impl.h"

#include <inttypes.h>
#include <string.h>

static xpl_status_t no_memory(struct xpl_dplane *p) {
    XPL_RETURN_OOM(&p->err, "derived lines");
}

static xpl_str_t text_of(const struct xpl_dplane *p, uint32_t text) {
    return p->texts ? xpl_intern_get(p->texts, (xpl_strid_t){text}) : (xpl_str_t){"", 0};
}

uint32_t xpl_gpu_module_md(struct xpl_dplane *p, const struct xpl_gpu_event *e) {
    bool added;
    const uint64_t key = (uint64_t)e->module << 1 | e->has_program;
    uint64_t *const slot = xpl_map_put(&p->temp, &p->module_index, key, e->program, &added);
    const xpl_str_t name = text_of(p, e->module);
    xpl_str_t full = name;
    if (!slot) return 0;
    if (!added) return (uint32_t)*slot;
    if (e->has_program &&
        !xpl_arena_printf(&p->temp, &full, "%.*s(%" PRIu64 ")", XPL_STR_FMT(name), e->program))
        return 0;
    const uint32_t md = xpl_dplane_md(p, full);
    *slot = md;
    return md;
}

// Metadata of one part of a path; named "program/part" or "module/part", so that programs do not
// share it.
static bool add_level(struct xpl_dplane *p, const struct xpl_gpu_event *e, xpl_str_t part) {
    xpl_str_t name;
    const xpl_str_t module = text_of(p, e->module);
    if (part.len > INT32_MAX || module.len > INT32_MAX) return false;
    if (!(e->has_program
              ? xpl_arena_printf(&p->temp, &name, "%" PRIu64 "/%.*s", e->program, XPL_STR_FMT(part))
              : xpl_arena_printf(&p->temp, &name, "%.*s/%.*s", XPL_STR_FMT(module),
                                 XPL_STR_FMT(part))))
        return false;
    const uint32_t md = xpl_dplane_md(p, name);
    uint32_t *const slot = md ? xpl_vec_push(&p->temp, &p->lists) : NULL;
    if (!slot || !xpl_dplane_set_display(p, md, part)) return false;
    *slot = md;
    return true;
}

static xpl_str_t base_name(xpl_str_t path) {
    const char *const slash = path.len ? memrchr(path.ptr, '/', path.len) : NULL;
    return slash ? xpl_str_sub(path, (size_t)(slash - path.ptr) + 1, SIZE_MAX) : path;
}

// Finds the instruction in its program: framework op and source line.
static xpl_status_t find_instruction(struct xpl_dplane *p, const struct xpl_gpu_event *e,
                                     xpl_str_t innermost, struct xpl_dxla *x) {
    struct xpl_hlo_instruction in;
    xpl_str_t full, place;
    bool found;
    uint32_t op;
    XPL_TRY(xpl_hlo_map_find(p->hlo, e->program, innermost, &in, &found, &p->err));
    if (!found) return XPL_OK;
    if (!xpl_hlo_op_full_name(&in, &p->temp, &full)) return no_memory(p);
    if (full.len) {
        uint32_t text;
        const struct xpl_stat s = {.kind = XPL_VALUE_STR, .str = full};
        if (!xpl_dplane_text(p, &s, &text) || !xpl_dplane_op(p, text, &op)) return no_memory(p);
        x->op = op + 1;
    }
    if (in.source_file.len == 0) return XPL_OK;
    const xpl_str_t file = base_name(in.source_file);
    if (file.len > INT32_MAX ||
        !xpl_arena_printf(&p->temp, &place, "%.*s:%" PRId32, XPL_STR_FMT(file), in.source_line) ||
        (x->source = xpl_dplane_md(p, place)) == 0)
        return no_memory(p);
    return XPL_OK;
}

static xpl_status_t new_xla(struct xpl_dplane *p, const struct xpl_gpu_event *e,
                            struct xpl_dxla *x) {
    const xpl_str_t path = text_of(p, e->path);
    xpl_str_t part = path;
    *x = (struct xpl_dxla){.first_level = (uint32_t)p->lists.n};
    for (size_t from = 0, next; from != SIZE_MAX; from = next) {
        const size_t end = xpl_str_find(path, XPL_STR("::"), from);
        part = xpl_str_sub(path, from, end == SIZE_MAX ? SIZE_MAX : end - from);
        next = end == SIZE_MAX ? SIZE_MAX : end + 2;
        if (x->n_levels == XPL_DERIVED_LEVELS) continue;
        if (p->lists.n >= UINT32_MAX || !add_level(p, e, part)) return no_memory(p);
        x->n_levels++;
    }
    return e->has_program ? find_instruction(p, e, part, x) : XPL_OK;
}

xpl_status_t xpl_gpu_find_xla(struct xpl_dplane *p, const struct xpl_gpu_event *e,
                              struct xpl_dxla *ret) {
    bool added;
    const uint64_t key = (uint64_t)e->path << 1 | e->has_program;
    const uint64_t owner = e->has_program ? e->program : e->module;
    uint64_t *const slot = xpl_map_put(&p->temp, &p->xla_index, key, owner, &added);
    if (!slot) return no_memory(p);
    if (added) {
        struct xpl_dxla x;
        *slot = 0;
        XPL_TRY(new_xla(p, e, &x));
        struct xpl_dxla *const entry = xpl_vec_push(&p->temp, &p->xla);
        if (!entry) return no_memory(p);
        *entry = x;
        *slot = p->xla.n;
    }
    *ret = p->xla.v[*slot - 1];
    return XPL_OK;
}
