// SPDX-License-Identifier: Apache-2.0
// A summary as bytes: a message of protobuf, whose lists of numbers are packed.  What a newer
// program adds is skipped.
#include <string.h>

#include "analysis/compare/compare.h"
#include "analysis/wire/wire.h"
#include "analysis/wire/writer.h"
#include "base/arena.h"

enum {
    NUMBERS = 1,
    STEPS = 2,
    TIME = 3,
    OP = 4,
    KERNEL = 5,
    MEMORY = 6,
    SERIES = 7
};                             // of the message
enum { PACKED = 1, NAME = 2 }; // of its parts; the texts that follow the name count on
enum { MAX_NUMBERS = 16, MAX_TEXTS = XPL_RUN_TEXTS };

// ---- writing ----

struct texts {
    xpl_str_t v[MAX_TEXTS];
};

static void put(struct xpl_writer *w, uint32_t num, const uint64_t *v, size_t n, struct texts t) {
    const struct xpl_writer_mark m = xpl_writer_open(w, num);
    xpl_writer_packed(w, PACKED, v, n);
    for (uint32_t i = 0; i < MAX_TEXTS; i++)
        if (t.v[i].len) xpl_writer_bytes(w, NAME + i, t.v[i].ptr, t.v[i].len);
    xpl_writer_close(w, m);
}

static void put_rows(struct xpl_writer *w, uint32_t num, const struct xpl_run_rows *rows) {
    for (size_t i = 0; i < rows->n; i++) {
        const struct xpl_run_row *const r = &rows->v[i];
        const uint64_t n[] = {r->ps, r->count, r->source_line};
        struct texts t;
        memcpy(t.v, r->text, sizeof t.v);
        put(w, num, n, 3, t);
    }
}

static void put_all(struct xpl_writer *w, const struct xpl_run_summary *s) {
    const uint64_t v[] = {s->n_hosts,
                          s->n_devices,
                          s->units,
                          s->wall_ps,
                          s->n_compiles,
                          s->compile_ps,
                          s->busy_ps,
                          s->model_flops,
                          s->bf16_flops,
                          s->bf16_flops_per_second,
                          s->peak_flops_per_second};
    put(w, NUMBERS, v, sizeof v / sizeof *v, (struct texts){0});
    xpl_writer_packed(w, STEPS, s->steps.v, s->steps.n);
    for (size_t i = 0; i < s->times.n; i++)
        put(w, TIME, &s->times.v[i].ps, 1, (struct texts){{s->times.v[i].cause}});
    put_rows(w, OP, &s->ops);
    put_rows(w, KERNEL, &s->kernels);
    for (size_t i = 0; i < s->memory.n; i++) {
        const struct xpl_run_memory *const m = &s->memory.v[i];
        const uint64_t n[] = {m->peak_bytes, m->capacity_bytes};
        put(w, MEMORY, n, 2, (struct texts){{m->name}});
    }
    for (size_t i = 0; i < s->series.n; i++) {
        const uint64_t n[] = {s->series.v[i].n_steps, s->series.v[i].ps};
        put(w, SERIES, n, 2, (struct texts){{s->series.v[i].name}});
    }
}

xpl_status_t xpl_run_summary_encode(const struct xpl_run_summary *s, struct xpl_buf *out,
                                    struct xpl_error *err) {
    struct xpl_writer w;
    xpl_writer_init(&w, out);
    put_all(&w, s);
    if (xpl_writer_measured(&w)) put_all(&w, s);
    if (!xpl_writer_fini(&w)) XPL_RETURN_OOM(err, "run summary");
    return XPL_OK;
}

// ---- reading ----

enum got { GOOD, BAD, FULL };

struct part {
    uint64_t v[MAX_NUMBERS]; // 0 where there are fewer
    xpl_str_t text[MAX_TEXTS];
};

static enum got read_part(xpl_bytes_t bytes, struct xpl_arena *arena, struct part *ret) {
    struct xpl_wire w = xpl_wire_begin(bytes);
    struct xpl_field f;
    enum xpl_wire_result r;
    *ret = (struct part){0};
    while ((r = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD) {
        if (f.type != XPL_WIRE_LEN) continue;
        if (f.num == PACKED) {
            size_t n = 0;
            if (!xpl_wire_packed(f.len, ret->v, MAX_NUMBERS, &n)) return BAD;
        } else if (f.num >= NAME && f.num < NAME + MAX_TEXTS) {
            if (!xpl_arena_str(arena, xpl_wire_str(&f), &ret->text[f.num - NAME])) return FULL;
        }
    }
    return r == XPL_WIRE_END ? GOOD : BAD;
}

static enum got read_steps(xpl_bytes_t bytes, struct xpl_run_summary *s, struct xpl_arena *arena) {
    const uint8_t *p = bytes.ptr, *const end = bytes.ptr + bytes.len;
    while (bytes.len && p != end) {
        const struct xpl_varint v = xpl_varint_read(p, end);
        if (!v.p) return BAD;
        uint64_t *const slot = xpl_vec_push(arena, &s->steps);
        if (!slot) return FULL;
        *slot = v.v;
        p = v.p;
    }
    return GOOD;
}

static bool add_part(uint32_t num, const struct part *p, struct xpl_run_summary *s,
                     struct xpl_arena *arena) {
    if (num == NUMBERS) {
        s->n_hosts = p->v[0];
        s->n_devices = p->v[1];
        s->units = p->v[2];
        s->wall_ps = p->v[3];
        s->n_compiles = p->v[4];
        s->compile_ps = p->v[5];
        s->busy_ps = p->v[6];
        s->model_flops = p->v[7];
        s->bf16_flops = p->v[8];
        s->bf16_flops_per_second = p->v[9];
        s->peak_flops_per_second = p->v[10];
    } else if (num == TIME) {
        struct xpl_run_time *const t = xpl_vec_push(arena, &s->times);
        if (t) *t = (struct xpl_run_time){p->text[0], p->v[0]};
        return t;
    } else if (num == OP || num == KERNEL) {
        struct xpl_run_row *const r = xpl_vec_push(arena, num == OP ? &s->ops : &s->kernels);
        if (!r) return false;
        *r = (struct xpl_run_row){.ps = p->v[0], .count = p->v[1], .source_line = p->v[2]};
        memcpy(r->text, p->text, sizeof r->text);
    } else if (num == MEMORY) {
        struct xpl_run_memory *const m = xpl_vec_push(arena, &s->memory);
        if (m) *m = (struct xpl_run_memory){p->text[0], p->v[0], p->v[1]};
        return m;
    } else if (num == SERIES) {
        struct xpl_run_series *const l = xpl_vec_push(arena, &s->series);
        if (l) *l = (struct xpl_run_series){p->text[0], p->v[0], p->v[1]};
        return l;
    }
    return true;
}

static enum got read_field(const struct xpl_field *f, struct xpl_run_summary *s,
                           struct xpl_arena *arena) {
    struct part p;
    if (f->type != XPL_WIRE_LEN || f->num > SERIES) return GOOD;
    if (f->num == STEPS) return read_steps(f->len, s, arena);
    const enum got got = read_part(f->len, arena, &p);
    if (got != GOOD) return got;
    return add_part(f->num, &p, s, arena) ? GOOD : FULL;
}

xpl_status_t xpl_run_summary_decode(xpl_bytes_t bytes, struct xpl_arena *arena,
                                    struct xpl_run_summary **ret, struct xpl_error *err) {
    struct xpl_wire w = xpl_wire_begin(bytes);
    struct xpl_run_summary *const s = xpl_arena_zalloc(arena, sizeof *s);
    struct xpl_field f;
    enum xpl_wire_result r;
    if (!s) XPL_RETURN_OOM(err, "run summary");
    while ((r = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD) {
        const enum got got = read_field(&f, s, arena);
        if (got == FULL) XPL_RETURN_OOM(err, "run summary");
        if (got == BAD) break;
    }
    if (r != XPL_WIRE_END) XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "no run summary");
    *ret = s;
    return XPL_OK;
}
