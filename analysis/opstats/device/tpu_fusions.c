// SPDX-License-Identifier: Apache-2.0
#include "analysis/opstats/device/tpu_plane.h"

#include <string.h>

#include "analysis/hlo/text/text.h"
#include "analysis/opstats/metrics/op_metrics.h"

struct fusions {
    struct xpl_arena *a;
    struct xpl_hlo_text_cache *texts;
};

static bool add_fused(struct fusions *f, const struct xpl_hlo_instruction *fusion, unsigned level,
                      struct xpl_op_metrics *op);

static bool add_fused_one(struct fusions *f, const struct xpl_hlo_instruction *in, unsigned level,
                          struct xpl_op_metrics_db *db) {
    struct xpl_arena *const a = f->a;
    if (xpl_str_eq(in->opcode, XPL_STR("parameter")) || xpl_str_eq(in->opcode, XPL_STR("tuple")))
        return true;
    // Filled before it is added: its own children may be many.
    struct xpl_op_metrics m = {.occurrences = 1, .num_cores = 1};
    if (!xpl_arena_str(a, in->name, &m.name) || !xpl_arena_str(a, in->category, &m.category) ||
        !xpl_arena_str(a, in->deduplicated_name, &m.deduplicated_name) ||
        !xpl_hlo_op_full_name(in, a, &m.provenance) ||
        !xpl_hlo_expression(in, &f->texts, a, &m.long_name) || !add_fused(f, in, level + 1, &m))
        return false;
    struct xpl_op_metrics *const slot = xpl_vec_push(a, &db->metrics_db);
    if (slot) *slot = m;
    return slot != NULL;
}

static bool add_fused(struct fusions *f, const struct xpl_hlo_instruction *fusion, unsigned level,
                      struct xpl_op_metrics *op) {
    struct xpl_arena *const a = f->a;
    if (!fusion->fused || level >= XPL_OP_METRICS_MAX_DEPTH) return true;
    struct xpl_op_metrics_db *const db = xpl_arena_zalloc(a, sizeof *db);
    if (!db) return false;
    if (op->children) { // shared with other ops of the same metadata: extend a copy
        *db = *op->children;
        db->metrics_db.v = NULL;
        db->metrics_db.n = db->metrics_db.cap = 0;
        const size_t n = op->children->metrics_db.n;
        if (n && !xpl_vec_reserve(a, &db->metrics_db, n)) return false;
        if (n) memcpy(db->metrics_db.v, op->children->metrics_db.v, n * sizeof *db->metrics_db.v);
        db->metrics_db.n = n;
    }
    struct xpl_hlo_children children;
    struct xpl_hlo_instruction in;
    xpl_hlo_children_begin(&children, fusion);
    while (xpl_hlo_children_next(&children, &in))
        if (!add_fused_one(f, &in, level, db)) return false;
    if (db->metrics_db.n) op->children = db;
    return true;
}

xpl_status_t xpl_tpu_add_fusion_children(struct xpl_hlo_map *hlo, struct xpl_arena *a,
                                         struct xpl_op_metrics_db *db, struct xpl_error *err) {
    struct fusions f = {.a = a};
    for (size_t i = 0; i < db->metrics_db.n; i++) {
        struct xpl_op_metrics *const m = &db->metrics_db.v[i];
        struct xpl_hlo_instruction in;
        bool found;
        XPL_TRY(xpl_hlo_map_find(hlo, m->hlo_module_id, m->name, &in, &found, err));
        if (found && !add_fused(&f, &in, 0, m)) XPL_RETURN_OOM(err, "TPU op metrics");
    }
    return XPL_OK;
}
