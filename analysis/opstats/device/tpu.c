// SPDX-License-Identifier: Apache-2.0
// All TPU planes together: batches of planes, and the chips that they belong to.
// Rules: XProf's convert/xplane_to_op_metrics_db.cc
// (ConvertTensorCoreDeviceTraceXPlaneToOpMetricsDb and its SparseCore sister) and
// xplane_to_op_stats.cc.
#include "analysis/opstats/device/planes.h"

#include "analysis/opstats/device/duty.h"
#include "analysis/opstats/device/offloads.h"
#include "analysis/opstats/device/tpu_plane.h"
#include "analysis/opstats/metrics/op_metrics.h"
#include "base/cleanup.h"
#include "base/map.h"

// IsHostPlane or IsDevicePlane.
static bool is_host_or_device(xpl_str_t name) {
    static const char *const prefixes[] = {
        XPL_PLANE_NAME_HOST_THREADS,
        XPL_PLANE_NAME_HOST_CPUS,
        XPL_PLANE_NAME_TF_STREAMZ,
        XPL_PLANE_NAME_METADATA,
        XPL_PLANE_NAME_SYSCALLS,
        XPL_PLANE_NAME_PYTHON_TRACER,
        XPL_PLANE_NAME_CUPTI_API,
        XPL_PLANE_NAME_SCOPE_RANGE_ID,
        XPL_PLANE_NAME_TPU_NON_CORE,
        "/device",
        "/custom:",
    };
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (xpl_str_starts(name, xpl_str_from(prefixes[i]))) return true;
    return false;
}

// IsXSpaceGrouped: such profiles are taken as they are.
static bool arrives_grouped(const struct xpl_xspace *xs) {
    for (uint32_t i = 0; i < xs->n_planes; i++)
        if (is_host_or_device(xs->planes[i].name) &&
            !xpl_plane_has_stat_type(&xs->planes[i], XPL_STAT_GROUP_ID))
            return false;
    return true;
}

// ---- batches ----

// Planes are worked on in batches, whose memory is given back in between: a profile may have a
// million of them.
enum { BATCH = 64 };

struct chip {
    struct xpl_duty_plane duty;
    size_t duty_lines;
};

struct tpu_run {
    const struct xpl_convert *c;
    const struct xpl_plane *const *planes;
    const struct xpl_plane_details *details;
    size_t n;
    struct xpl_arena *scratch;
    struct xpl_op_metrics_db *db;
    struct xpl_op_metrics_builder builder;
    struct offloads offloads;
    struct xpl_map chip_index; // local_chip_id to position
    XPL_VEC(struct chip) chips;
    bool arrives_grouped;
    struct tpu_plane batch[BATCH];
};

static void run_plane(void *ctx, size_t i) {
    struct tpu_plane *const t = &((struct tpu_plane *)ctx)[i];
    t->piece.status = !xpl_tpu_prepare(t) ? xpl_tpu_out_of_memory(t)
                      : t->is_sparse      ? xpl_tpu_walk_sparse_core(t)
                                          : xpl_tpu_walk_tensor_core(t);
}

static void add_times(struct xpl_op_metrics_db *db, struct xpl_duty_plane *d) {
    const uint64_t span = d->has_span ? d->end_ps - d->begin_ps : 0;
    const uint64_t busy = xpl_duty_set_length(&d->busy);
    const uint64_t confident = xpl_duty_set_length(&d->confident);
    db->busy_time_ps += busy;
    db->idle_time_ps += span > busy ? span - busy : 0;
    db->busy_time_high_confidence_ps += confident;
    db->idle_time_high_confidence_ps += span > confident ? span - confident : 0;
}

static size_t count_duty_lines(const struct xpl_plane *p) {
    size_t n = 0;
    for (uint32_t i = 0; i < p->n_lines; i++)
        n += is_duty_line(&p->lines[i]) && p->lines[i].n_events > 0;
    return n;
}

static bool index_chips(struct tpu_run *r) {
    for (size_t i = 0; i < r->n; i++) {
        if (!r->details[i].present) continue;
        bool is_new;
        uint64_t *const at =
            xpl_map_put(r->scratch, &r->chip_index, r->details[i].core.local_chip_id, 0, &is_new);
        if (!at) return false;
        if (is_new) {
            struct chip *const chip = xpl_vec_push(r->scratch, &r->chips);
            if (!chip) return false;
            *chip = (struct chip){0};
            chip->duty.busy.arena = chip->duty.confident.arena = r->scratch;
            *at = r->chips.n - 1;
        }
        r->chips.v[*at].duty_lines += count_duty_lines(r->planes[i]);
    }
    return true;
}

static struct chip *chip_of(struct tpu_run *r, size_t i) {
    if (!r->details[i].present) return NULL;
    return &r->chips.v[*xpl_map_get(&r->chip_index, r->details[i].core.local_chip_id, 0)];
}

// Intervals are kept only where several lines share a chip; one line's come in order and are added
// up as they come.
static bool keeps_intervals(struct tpu_run *r, size_t i) {
    const struct chip *const chip = chip_of(r, i);
    if ((chip ? chip->duty_lines : count_duty_lines(r->planes[i])) > 1) return true;
    for (uint32_t k = 0; k < r->planes[i]->n_lines; k++)
        if (line_is(&r->planes[i]->lines[k], XPL_STR(XPL_LINE_SPARSE_CORE_OPS))) return true;
    return false;
}

static void init_plane(struct tpu_run *r, size_t i, struct tpu_plane *t) {
    const struct xpl_plane *const p = r->planes[i];
    *t = (struct tpu_plane){
        .c = r->c,
        .plane = p,
        .offloads = &r->offloads,
        .is_sparse = p->kind == XPL_PLANE_SPARSE_CORE,
        .sorted = p->kind == XPL_PLANE_TPU_CORE && !r->arrives_grouped,
    };
    xpl_arena_init(&t->arena, r->c->scratch_limit);
}

// Adds what a plane gave to the whole.
static xpl_status_t merge_plane(struct tpu_run *r, size_t i, struct tpu_plane *t,
                                struct xpl_error *err) {
    if (t->piece.status != XPL_OK) {
        if (err && err->code == XPL_OK) *err = t->piece.error;
        return t->piece.status;
    }
    for (size_t k = 0; k < t->results.n; k++) {
        struct offload o = t->results.v[k];
        o.db = xpl_arena_alloc(r->scratch, sizeof *o.db);
        if (!o.db || !xpl_op_metrics_db_copy(t->results.v[k].db, r->scratch, o.db) ||
            !xpl_offloads_put(&r->offloads, r->scratch, o))
            XPL_RETURN_OOM(err, "SparseCore op metrics");
    }
    if (!xpl_op_metrics_combine(&r->builder, &t->db, true)) XPL_RETURN_OOM(err, "TPU op metrics");
    struct chip *const chip = chip_of(r, i);
    if (!chip) add_times(r->db, &t->duty);
    if (chip && !xpl_duty_plane_join(&chip->duty, &t->duty)) XPL_RETURN_OOM(err, "duty cycle");
    return XPL_OK;
}

static xpl_status_t run_batch(struct tpu_run *r, const size_t *ids, size_t n,
                              struct xpl_error *err) {
    for (size_t k = 0; k < n; k++) {
        init_plane(r, ids[k], &r->batch[k]);
        if (keeps_intervals(r, ids[k]))
            r->batch[k].duty.busy.arena = r->batch[k].duty.confident.arena = &r->batch[k].arena;
    }
    xpl_exec_run(r->c->exec, n, run_plane, r->batch);
    xpl_status_t st = XPL_OK;
    for (size_t k = 0; k < n; k++) {
        if (st == XPL_OK) st = merge_plane(r, ids[k], &r->batch[k], err);
        xpl_arena_fini(&r->batch[k].arena);
    }
    return st;
}

// SparseCores first: ops of TensorCores include the ops that they had run there.
static xpl_status_t run_kind(struct tpu_run *r, bool sparse, struct xpl_error *err) {
    size_t ids[BATCH], n = 0;
    for (size_t i = 0; i < r->n; i++) {
        if ((r->planes[i]->kind == XPL_PLANE_SPARSE_CORE) != sparse) continue;
        ids[n++] = i;
        if (n < BATCH) continue;
        XPL_TRY(run_batch(r, ids, n, err));
        n = 0;
    }
    return run_batch(r, ids, n, err);
}

xpl_status_t xpl_device_tpu(const struct xpl_convert *c, const struct xpl_plane *const *planes,
                            const struct xpl_plane_details *details, size_t n,
                            struct xpl_opstats *s, struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch = {0};
    xpl_arena_init(&scratch, c->scratch_limit);
    struct tpu_run *const r = xpl_arena_zalloc(&scratch, sizeof *r);
    if (!r) XPL_RETURN_OOM(err, "TPU planes");
    r->c = c, r->planes = planes, r->details = details, r->n = n, r->scratch = &scratch;
    r->db = &s->device_op_metrics_db;
    r->arrives_grouped = arrives_grouped(c->xs);
    xpl_op_metrics_begin(&r->builder, r->db, XPL_OP_METRICS_COPY, c->result, &scratch);
    if (!index_chips(r)) XPL_RETURN_OOM(err, "TPU chips");
    XPL_TRY(run_kind(r, true, err));
    XPL_TRY(run_kind(r, false, err));
    for (size_t i = 0; i < r->chips.n; i++)
        add_times(r->db, &r->chips.v[i].duty);
    return XPL_OK;
}
