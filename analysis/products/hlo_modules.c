// SPDX-License-Identifier: Apache-2.0
// Product hlo_modules: the programs whose HLO a profile has, and where it lies.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/hlo/hlo_map.h"
#include "analysis/products/product.h"
#include "analysis/products/values.h"
#include "analysis/xplane/xspace.h"
#include "base/cleanup.h"

static void value_free(void *value) {
    struct xpl_hlo_modules_value *const v = value;
    if (!v) return;
    xpl_arena_fini(&v->arena);
    xpl_sys_free(v);
}

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
    v->v = xpl_arena_array(&v->arena, n, sizeof *v->v);
    if (!v->v) return false;
    for (; v->n < n; v->n++) {
        const struct xpl_hlo_program *const from = &p[v->n];
        struct xpl_module_entry *const e = &v->v[v->n];
        *e = (struct xpl_module_entry){.program_id = from->program_id,
                                       .offset = (uint64_t)(from->proto.ptr - profile.ptr),
                                       .length = from->proto.len};
        if (!xpl_arena_printf(&v->arena, &e->label, "%.*s(%" PRIu64 ")", XPL_STR_FMT(from->name),
                              from->program_id))
            return false;
        // The label has the name up to a NUL.
        e->name =
            xpl_str_sub(e->label, 0, from->name.len ? strnlen(from->name.ptr, from->name.len) : 0);
    }
    if (n > 1) qsort(v->v, n, sizeof *v->v, by_label);
    return true;
}

static xpl_status_t fill(const struct xpl_product_input *in, struct xpl_hlo_modules_value *v,
                         struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena view;
    XPL_AUTO(free_map) struct xpl_hlo_map *map = NULL;
    struct xpl_xspace *xs;
    xpl_arena_init(&view, in->limit);
    XPL_TRY(xpl_xspace_open(in->profile, &view, in->exec, &xs, err));
    XPL_TRY(xpl_hlo_map_new(xs, in->limit, &map, err));
    if (!list_modules(map, in->profile, v)) XPL_RETURN_OOM(err, "HLO modules");
    return XPL_OK;
}

static xpl_status_t make(const struct xpl_product_input *in, void **ret, struct xpl_error *err) {
    struct xpl_hlo_modules_value *const v = xpl_sys_alloc(sizeof *v);
    if (!v) XPL_RETURN_OOM(err, "HLO modules");
    *v = (struct xpl_hlo_modules_value){0};
    xpl_arena_init(&v->arena, in->limit);
    const xpl_status_t st = fill(in, v, err);
    if (st == XPL_OK)
        *ret = v;
    else
        value_free(v);
    return st;
}

static size_t size(const void *value) {
    const struct xpl_hlo_modules_value *const v = value;
    return sizeof *v + v->arena.reserved;
}

const struct xpl_product xpl_product_hlo_modules = {
    .name = "hlo_modules",
    .version = 1,
    .residency = XPL_RESIDENCY_MEMORY,
    .make = make,
    .size = size,
    .free = value_free,
};
