// SPDX-License-Identifier: Apache-2.0
// Product module_list: the programs whose HLO a profile has.
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/hlo/hlo_map.h"
#include "analysis/products/product.h"
#include "analysis/products/values.h"
#include "analysis/xplane/xspace.h"
#include "base/cleanup.h"

static void value_free(void *value) {
    struct xpl_module_list_value *const v = value;
    if (!v) return;
    xpl_arena_fini(&v->arena);
    xpl_sys_free(v);
}

static void free_map(struct xpl_hlo_map **m) {
    xpl_hlo_map_free(*m);
}

static int by_text(const void *a, const void *b) {
    return xpl_str_cmp(*(const xpl_str_t *)a, *(const xpl_str_t *)b);
}

static bool list_names(const struct xpl_hlo_map *map, struct xpl_module_list_value *v) {
    size_t n;
    const struct xpl_hlo_program *const p = xpl_hlo_map_programs(map, &n);
    v->names = xpl_arena_array(&v->arena, n, sizeof *v->names);
    if (!v->names) return false;
    for (size_t i = 0; i < n; i++)
        if (!xpl_arena_printf(&v->arena, &v->names[i], "%.*s(%" PRIu64 ")", XPL_STR_FMT(p[i].name),
                              p[i].program_id))
            return false;
    qsort(v->names, n, sizeof *v->names, by_text);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || !xpl_str_eq(v->names[i], v->names[v->n - 1])) v->names[v->n++] = v->names[i];
    return true;
}

static xpl_status_t fill(const struct xpl_product_input *in, struct xpl_module_list_value *v,
                         struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena view;
    XPL_AUTO(free_map) struct xpl_hlo_map *map = NULL;
    struct xpl_xspace *xs;
    xpl_arena_init(&view, in->limit);
    XPL_TRY(xpl_xspace_open(in->profile, &view, in->exec, &xs, err));
    XPL_TRY(xpl_hlo_map_new(xs, in->limit, &map, err));
    if (!list_names(map, v)) XPL_RETURN_OOM(err, "names of modules");
    return XPL_OK;
}

static xpl_status_t make(const struct xpl_product_input *in, void **ret, struct xpl_error *err) {
    struct xpl_module_list_value *const v = xpl_sys_alloc(sizeof *v);
    if (!v) XPL_RETURN_OOM(err, "names of modules");
    *v = (struct xpl_module_list_value){0};
    xpl_arena_init(&v->arena, in->limit);
    const xpl_status_t st = fill(in, v, err);
    if (st == XPL_OK)
        *ret = v;
    else
        value_free(v);
    return st;
}

static size_t size(const void *value) {
    const struct xpl_module_list_value *const v = value;
    return sizeof *v + v->arena.reserved;
}

const struct xpl_product xpl_product_module_list = {
    .name = "module_list",
    .version = 1,
    .residency = XPL_RESIDENCY_MEMORY,
    .make = make,
    .size = size,
    .free = value_free,
};
