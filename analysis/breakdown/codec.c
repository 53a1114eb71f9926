// SPDX-License-Identifier: Apache-2.0
// A breakdown as bytes, for the store: a message of protobuf, whose lists of numbers are packed.
#include "analysis/breakdown/breakdown.h"
#include "analysis/wire/wire.h"
#include "analysis/wire/writer.h"
#include "base/arena.h"

enum { NUMBERS = 1, STEP = 2, DEVICE = 3, ROW = 4, EVIDENCE = 5, MEMORY = 6 }; // of the message
enum { PACKED = 1, NAME = 2 };                                                 // of its parts
enum { MAX_NUMBERS = 3 + 2 * XPL_TIME_CAUSES };

// ---- writing ----

static void put(struct xpl_writer *w, uint32_t num, const uint64_t *v, size_t n, xpl_str_t name) {
    const struct xpl_writer_mark m = xpl_writer_open(w, num);
    xpl_writer_packed(w, PACKED, v, n);
    if (name.len) xpl_writer_bytes(w, NAME, name.ptr, name.len);
    xpl_writer_close(w, m);
}

static void put_device(struct xpl_writer *w, const struct xpl_time_device *d) {
    uint64_t v[MAX_NUMBERS] = {(uint64_t)d->kind, d->n_ops, d->core_id};
    for (size_t c = 0; c < XPL_TIME_CAUSES; c++) {
        v[3 + 2 * c] = d->begin_ps[c];
        v[4 + 2 * c] = d->longest_ps[c];
    }
    put(w, DEVICE, v, MAX_NUMBERS, d->name);
}

static void put_row(struct xpl_writer *w, const struct xpl_time_row *r) {
    uint64_t v[2 + XPL_TIME_CAUSES] = {r->device, r->step};
    for (size_t c = 0; c < XPL_TIME_CAUSES; c++)
        v[2 + c] = r->ps[c]; // their sum is the wall time
    put(w, ROW, v, sizeof v / sizeof *v, XPL_STR(""));
}

static void put_all(struct xpl_writer *w, const struct xpl_time_breakdown *b) {
    const uint64_t v[] = {(uint64_t)b->framework,
                          b->base_ps,
                          b->begin_ps,
                          b->end_ps,
                          b->n_compiles,
                          b->devices_left_out,
                          b->compile_ps,
                          b->all_compiles,
                          b->queue_ps,
                          b->has_python,
                          b->graph_ps,
                          b->n_impossible,
                          b->op_ps,
                          b->outside_ps,
                          b->sync_ps,
                          b->n_graph_breaks};
    put(w, NUMBERS, v, sizeof v / sizeof *v, b->sync_name);
    for (size_t i = 0; i < b->steps.n; i++) {
        const struct xpl_time_step *const s = &b->steps.v[i];
        const uint64_t n[] = {(uint64_t)s->number, s->begin_ps, s->end_ps, s->n_compiles,
                              s->work_ps};
        put(w, STEP, n, sizeof n / sizeof *n, s->name);
    }
    for (size_t i = 0; i < b->devices.n; i++)
        put_device(w, &b->devices.v[i]);
    for (size_t i = 0; i < b->rows.n; i++)
        put_row(w, &b->rows.v[i]);
    for (size_t i = 0; i < b->evidence.n; i++) {
        const struct xpl_time_evidence *const e = &b->evidence.v[i];
        const uint64_t n[] = {(uint64_t)e->cause, e->ps, e->count};
        put(w, EVIDENCE, n, 3, e->name);
    }
    for (size_t i = 0; i < b->memory.n; i++) {
        const struct xpl_time_memory *const m = &b->memory.v[i];
        const uint64_t n[] = {m->peak_bytes, m->capacity_bytes};
        put(w, MEMORY, n, 2, m->name);
    }
}

xpl_status_t xpl_time_breakdown_encode(const struct xpl_time_breakdown *b, struct xpl_buf *out,
                                       struct xpl_error *err) {
    struct xpl_writer w;
    xpl_writer_init(&w, out);
    put_all(&w, b);
    if (xpl_writer_measured(&w)) put_all(&w, b);
    if (!xpl_writer_fini(&w)) XPL_RETURN_OOM(err, "time breakdown");
    return XPL_OK;
}

// ---- reading ----

struct part {
    uint64_t v[MAX_NUMBERS];
    size_t n;
    xpl_str_t name;
};

static bool read_part(xpl_bytes_t bytes, struct part *ret) {
    struct xpl_wire w = xpl_wire_begin(bytes);
    struct xpl_field f;
    enum xpl_wire_result r;
    ret->n = 0;
    ret->name = XPL_STR("");
    while ((r = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD) {
        if (f.type != XPL_WIRE_LEN) return false;
        if (f.num == NAME) {
            ret->name = (xpl_str_t){(const char *)f.len.ptr, f.len.len};
            continue;
        }
        if (!xpl_wire_packed(f.len, ret->v, MAX_NUMBERS, &ret->n)) return false;
    }
    return r == XPL_WIRE_END;
}

// Each field is checked, so that readers of the value can rely on it.
enum got { GOOD, BAD, FULL };

static enum got read_numbers(const struct part *p, struct xpl_time_breakdown *b,
                             struct xpl_arena *a) {
    if (p->n != 16 || p->v[0] >= XPL_FRAMEWORKS || p->v[2] > p->v[3]) return BAD;
    b->framework = (enum xpl_framework)p->v[0];
    b->base_ps = p->v[1];
    b->begin_ps = p->v[2];
    b->end_ps = p->v[3];
    b->n_compiles = p->v[4];
    b->devices_left_out = p->v[5];
    b->compile_ps = p->v[6];
    b->all_compiles = p->v[7];
    b->queue_ps = p->v[8];
    b->has_python = p->v[9];
    b->graph_ps = p->v[10];
    b->n_impossible = p->v[11];
    b->op_ps = p->v[12];
    b->outside_ps = p->v[13];
    b->sync_ps = p->v[14];
    b->n_graph_breaks = p->v[15];
    return xpl_arena_str(a, p->name, &b->sync_name) ? GOOD : FULL;
}

static enum got read_step(const struct part *p, struct xpl_time_breakdown *b, struct xpl_arena *a) {
    if (p->n != 5 || p->v[1] > p->v[2]) return BAD;
    struct xpl_time_step *const s = xpl_vec_push(a, &b->steps);
    if (!s) return FULL;
    *s = (struct xpl_time_step){(int64_t)p->v[0], {0}, p->v[1], p->v[2], p->v[3], p->v[4]};
    return xpl_arena_str(a, p->name, &s->name) ? GOOD : FULL;
}

static enum got read_device(const struct part *p, struct xpl_time_breakdown *b,
                            struct xpl_arena *a) {
    if (p->n != MAX_NUMBERS || p->v[0] > XPL_DEVICE_TPU || p->v[2] > UINT32_MAX) return BAD;
    struct xpl_time_device *const d = xpl_vec_push(a, &b->devices);
    if (!d) return FULL;
    *d = (struct xpl_time_device){
        .kind = (enum xpl_device_kind)p->v[0], .n_ops = p->v[1], .core_id = (uint32_t)p->v[2]};
    for (size_t c = 0; c < XPL_TIME_CAUSES; c++) {
        d->begin_ps[c] = p->v[3 + 2 * c];
        d->longest_ps[c] = p->v[4 + 2 * c];
    }
    return xpl_arena_str(a, p->name, &d->name) ? GOOD : FULL;
}

static enum got read_row(const struct part *p, struct xpl_time_breakdown *b, struct xpl_arena *a) {
    if (p->n != 2 + XPL_TIME_CAUSES || p->v[0] >= b->devices.n ||
        (p->v[1] >= b->steps.n && p->v[1] != XPL_BETWEEN_STEPS))
        return BAD;
    if (b->rows.n && p->v[0] < b->rows.v[b->rows.n - 1].device) return BAD; // they come by device
    struct xpl_time_row *const r = xpl_vec_push(a, &b->rows);
    if (!r) return FULL;
    *r = (struct xpl_time_row){.device = (uint32_t)p->v[0], .step = (uint32_t)p->v[1]};
    for (size_t c = 0; c < XPL_TIME_CAUSES; c++) {
        r->ps[c] = p->v[2 + c];
        if (r->ps[c] > INT64_MAX || r->wall_ps > INT64_MAX - r->ps[c]) return BAD;
        r->wall_ps += r->ps[c];
    }
    return GOOD;
}

static enum got read_evidence(const struct part *p, struct xpl_time_breakdown *b,
                              struct xpl_arena *a) {
    if (p->n != 3 || p->v[0] >= XPL_TIME_CAUSES) return BAD;
    struct xpl_time_evidence *const e = xpl_vec_push(a, &b->evidence);
    if (!e) return FULL;
    *e = (struct xpl_time_evidence){
        .cause = (enum xpl_time_cause)p->v[0], .ps = p->v[1], .count = p->v[2]};
    return xpl_arena_str(a, p->name, &e->name) ? GOOD : FULL;
}

static enum got read_memory(const struct part *p, struct xpl_time_breakdown *b,
                            struct xpl_arena *a) {
    if (p->n != 2) return BAD;
    struct xpl_time_memory *const m = xpl_vec_push(a, &b->memory);
    if (!m) return FULL;
    *m = (struct xpl_time_memory){.peak_bytes = p->v[0], .capacity_bytes = p->v[1]};
    return xpl_arena_str(a, p->name, &m->name) ? GOOD : FULL;
}

static enum got read_field(const struct xpl_field *f, struct xpl_time_breakdown *b,
                           struct xpl_arena *a) {
    struct part p;
    if (f->type != XPL_WIRE_LEN || !read_part(f->len, &p)) return BAD;
    switch (f->num) {
        case NUMBERS: return read_numbers(&p, b, a);
        case STEP: return read_step(&p, b, a);
        case DEVICE: return read_device(&p, b, a);
        case ROW: return read_row(&p, b, a);
        case EVIDENCE: return read_evidence(&p, b, a);
        case MEMORY: return read_memory(&p, b, a);
        default: return BAD;
    }
}

xpl_status_t xpl_time_breakdown_decode(xpl_bytes_t bytes, struct xpl_arena *arena,
                                       struct xpl_time_breakdown **ret, struct xpl_error *err) {
    struct xpl_wire w = xpl_wire_begin(bytes);
    struct xpl_time_breakdown *const b = xpl_arena_zalloc(arena, sizeof *b);
    struct xpl_field f;
    enum xpl_wire_result r;
    if (!b) XPL_RETURN_OOM(err, "time breakdown");
    while ((r = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD) {
        const enum got got = read_field(&f, b, arena);
        if (got == FULL) XPL_RETURN_OOM(err, "time breakdown");
        if (got == BAD) break;
    }
    if (r != XPL_WIRE_END) XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "no time breakdown");
    *ret = b;
    return XPL_OK;
}
