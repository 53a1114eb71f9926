// SPDX-License-Identifier: Apache-2.0
// Product hlo_modules: the programs whose HLO a profile has, and where it lies.
#include <inttypes.h>
#include <string.h>

#include "analysis/hlo/hlo_map.h"
#include "analysis/products/arena_value.h"
#include "base/cleanup.h"
#include "base/vec.h"

static void free_map(struct xpl_hlo_map **m) {
    xpl_hlo_map_free(*m);
}

static int by_label(const void *a, const void *b) {
    const struct xpl_module_entry *const x = a, *const y = b;
    return xpl_str_cmp(x->label, y->label);
}

static bool list_modules(const struct xpl_hlo_map *map, xpl_bytes_t profile,
                         struct xpl_hlo_modules_value *v) {
    size_t n;
    const struct xpl_hlo_program *const p = xpl_hlo_map_programs(map, &n);
    v->v = xpl_arena_array(&v->own.arena, n, sizeof *v->v);
    if (!v->v) return false;
    for (; v->n < n; v->n++) {
        const struct xpl_hlo_program *const from = &p[v->n];
        struct xpl_module_entry *const e = &v->v[v->n];
        *e = (struct xpl_module_entry){.program_id = from->program_id,
                                       .offset = (uint64_t)(from->proto.ptr - profile.ptr),
                                       .length = from->proto.len};
        if (!xpl_arena_printf(&v->own.arena, &e->label, "%.*s(%" PRIu64 ")",
                              XPL_STR_FMT(from->name), from->program_id))
            return false;
        // The label has the name up to a NUL.
        e->name =
            xpl_str_sub(e->label, 0, from->name.len ? strnlen(from->name.ptr, from->name.len) : 0);
    }
    xpl_sort(v->v, n, sizeof *v->v, by_label);
    return true;
}

static xpl_status_t fill(const struct xpl_xspace *xs, const struct xpl_product_input *in,
                         void *value, struct xpl_error *err) {
    XPL_AUTO(free_map) struct xpl_hlo_map *map = NULL;
    XPL_TRY(xpl_hlo_map_new(xs, in->limit, &map, err));
    if (!list_modules(map, in->profile, value)) XPL_RETURN_OOM(err, "HLO modules");
    return XPL_OK;
}

static const struct xpl_arena_value_kind kKind = {
    .size = sizeof(struct xpl_hlo_modules_value), .what = "HLO modules", .fill = fill};

static xpl_status_t make(const struct xpl_product_input *in, void **ret, struct xpl_error *err) {
    return xpl_arena_value_make(&kKind, in, ret, err);
}

const struct xpl_product xpl_product_hlo_modules = {
    .name = "hlo_modules",
    .version = 1,
    .residency = XPL_RESIDENCY_MEMORY,
    .make = make,
    .size = xpl_arena_value_size,
    .free = xpl_arena_value_free,
};
