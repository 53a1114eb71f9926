// SPDX-License-Identifier: Apache-2.0
// The value as bytes, for the store: a message of protobuf, whose lists of numbers are packed.
#include "analysis/inference/inference.h"
#include "analysis/wire/wire.h"
#include "analysis/wire/writer.h"
#include "base/arena.h"

enum { MODEL = 1, PATTERN = 2, REQUEST = 3, BATCH = 4 }; // of the message
enum { NUMBERS = 1, NAME = 2, LIST = 3 };                // of its parts
enum { MODEL_NUMBERS = 5, REQUEST_NUMBERS = 16, BATCH_NUMBERS = 10 };
enum { MAX_NUMBERS = REQUEST_NUMBERS };

// ---- writing ----

static uint64_t signed_number(int64_t v) {
    return (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
}

static void put_request(struct xpl_writer *w, const struct xpl_inference *v,
                        const struct xpl_infer_request *r) {
    const uint64_t n[REQUEST_NUMBERS] = {
        signed_number(r->id),
        signed_number(r->model),
        signed_number(r->size),
        r->begin_ps,
        r->end_ps,
        r->delay_ps,
        r->preprocess_ps,
        r->formation_ps,
        r->runtime_ps,
        r->postprocess_ps,
        r->h2d_ps,
        r->d2h_ps,
        r->device_ps,
        r->idle_ps,
        signed_number(r->pattern),
        r->tensor_ps,
    };
    const struct xpl_writer_mark m = xpl_writer_open(w, REQUEST);
    xpl_writer_packed(w, NUMBERS, n, REQUEST_NUMBERS);
    if (r->n_batches) {
        const struct xpl_writer_mark p = xpl_writer_open(w, LIST);
        for (uint32_t i = 0; i < r->n_batches; i++)
            xpl_writer_raw_varint(w, signed_number(v->batch_ids.v[r->first_batch + i]));
        xpl_writer_close(w, p);
    }
    xpl_writer_close(w, m);
}

static void put_batch(struct xpl_writer *w, const struct xpl_inference *v,
                      const struct xpl_infer_batch *b) {
    const uint64_t n[BATCH_NUMBERS] = {
        signed_number(b->id),
        signed_number(b->model),
        signed_number(b->padding),
        signed_number(b->size),
        b->begin_ps,
        b->end_ps,
        b->delay_ps,
        b->device_ps,
        signed_number(b->pattern),
        b->tensor_ps,
    };
    const struct xpl_writer_mark m = xpl_writer_open(w, BATCH);
    xpl_writer_packed(w, NUMBERS, n, BATCH_NUMBERS);
    if (b->n_programs) xpl_writer_packed(w, LIST, &v->programs.v[b->first_program], b->n_programs);
    xpl_writer_close(w, m);
}

static void put_model(struct xpl_writer *w, const struct xpl_infer_model *v) {
    const uint64_t n[MODEL_NUMBERS] = {
        v->has_params, signed_number(v->batch_threads), signed_number(v->timeout_us),
        signed_number(v->max_batch_size), signed_number(v->max_enqueued)};
    const struct xpl_writer_mark m = xpl_writer_open(w, MODEL);
    xpl_writer_packed(w, NUMBERS, n, MODEL_NUMBERS);
    xpl_writer_bytes(w, NAME, v->name.ptr, v->name.len);
    xpl_writer_bytes(w, LIST, v->allowed_sizes.ptr, v->allowed_sizes.len);
    xpl_writer_close(w, m);
}

static void put_all(struct xpl_writer *w, const struct xpl_inference *v) {
    for (size_t i = 0; i < v->models.n; i++)
        put_model(w, &v->models.v[i]);
    for (size_t i = 0; i < v->patterns.n; i++)
        xpl_writer_bytes(w, PATTERN, v->patterns.v[i].ptr, v->patterns.v[i].len);
    for (size_t i = 0; i < v->requests.n; i++)
        put_request(w, v, &v->requests.v[i]);
    for (size_t i = 0; i < v->batches.n; i++)
        put_batch(w, v, &v->batches.v[i]);
}

xpl_status_t xpl_inference_encode(const struct xpl_inference *v, struct xpl_buf *out,
                                  struct xpl_error *err) {
    struct xpl_writer w;
    xpl_writer_init(&w, out);
    put_all(&w, v);
    if (xpl_writer_measured(&w)) put_all(&w, v);
    if (!xpl_writer_fini(&w)) XPL_RETURN_OOM(err, "inference");
    return XPL_OK;
}

// ---- reading ----

struct part {
    uint64_t v[MAX_NUMBERS];
    size_t n;
    xpl_str_t name;
    xpl_bytes_t list;
};

// Each field is checked, so that readers of the value can rely on it.
enum got { GOOD, BAD, FULL };

static bool read_part(xpl_bytes_t bytes, struct part *ret) {
    struct xpl_wire w = xpl_wire_begin(bytes);
    struct xpl_field f;
    enum xpl_wire_result r;
    *ret = (struct part){.name = XPL_STR(""), .list.ptr = (const uint8_t *)""};
    while ((r = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD) {
        if (f.type != XPL_WIRE_LEN) return false;
        if (f.num == NAME)
            ret->name = (xpl_str_t){(const char *)f.len.ptr, f.len.len};
        else if (f.num == LIST)
            ret->list = f.len;
        else if (f.num != NUMBERS || !xpl_wire_packed(f.len, ret->v, MAX_NUMBERS, &ret->n))
            return false;
    }
    return r == XPL_WIRE_END;
}

static int64_t unsigned_number(uint64_t v) {
    return (int64_t)(v >> 1 ^ (UINT64_C(0) - (v & 1)));
}

// Reads a number of 32 bits that is at least -1 and less than `n`.
static bool read_index(uint64_t v, size_t n, int32_t *ret) {
    const int64_t i = unsigned_number(v);
    if (i < -1 || i > INT32_MAX || (i >= 0 && (uint64_t)i >= n)) return false;
    *ret = (int32_t)i;
    return true;
}

static bool read_int32(uint64_t v, int32_t *ret) {
    const int64_t i = unsigned_number(v);
    *ret = (int32_t)i;
    return i >= INT32_MIN && i <= INT32_MAX;
}

static enum got read_model(const struct part *p, struct xpl_inference *v, struct xpl_arena *a) {
    if (p->n != MODEL_NUMBERS || p->v[0] > 1 || !p->name.len) return BAD;
    struct xpl_infer_model *const m = xpl_vec_push(a, &v->models);
    if (!m) return FULL;
    *m = (struct xpl_infer_model){.has_params = p->v[0] != 0,
                                  .batch_threads = unsigned_number(p->v[1]),
                                  .timeout_us = unsigned_number(p->v[2]),
                                  .max_batch_size = unsigned_number(p->v[3]),
                                  .max_enqueued = unsigned_number(p->v[4])};
    const xpl_str_t sizes = {(const char *)p->list.ptr, p->list.len};
    return xpl_arena_str(a, p->name, &m->name) && xpl_arena_str(a, sizes, &m->allowed_sizes) ? GOOD
                                                                                             : FULL;
}

static enum got read_pattern(xpl_bytes_t bytes, struct xpl_inference *v, struct xpl_arena *a) {
    xpl_str_t *const s = xpl_vec_push(a, &v->patterns);
    if (!s) return FULL;
    return xpl_arena_str(a, (xpl_str_t){(const char *)bytes.ptr, bytes.len}, s) ? GOOD : FULL;
}

// Index 0 means the first model also where there is none: requests without any.
static bool read_model_index(uint64_t v, const struct xpl_inference *all, int32_t *ret) {
    return read_index(v, all->models.n ? all->models.n : 1, ret);
}

static enum got read_request(const struct part *p, struct xpl_inference *v, struct xpl_arena *a) {
    struct xpl_infer_request r = {.first_batch = (uint32_t)v->batch_ids.n};
    if (p->n != REQUEST_NUMBERS || !read_model_index(p->v[1], v, &r.model) ||
        !read_int32(p->v[2], &r.size) || !read_index(p->v[14], v->patterns.n, &r.pattern))
        return BAD;
    r.id = unsigned_number(p->v[0]);
    r.begin_ps = p->v[3], r.end_ps = p->v[4], r.delay_ps = p->v[5];
    r.preprocess_ps = p->v[6], r.formation_ps = p->v[7], r.runtime_ps = p->v[8];
    r.postprocess_ps = p->v[9], r.h2d_ps = p->v[10], r.d2h_ps = p->v[11];
    r.device_ps = p->v[12], r.idle_ps = p->v[13], r.tensor_ps = p->v[15];
    const uint8_t *at = p->list.ptr, *const end = at + p->list.len;
    while (at != end) {
        const struct xpl_varint n = xpl_varint_read(at, end);
        int64_t *const slot = n.p ? xpl_vec_push(a, &v->batch_ids) : NULL;
        if (!slot || v->batch_ids.n >= UINT32_MAX) return n.p ? FULL : BAD;
        *slot = unsigned_number(n.v);
        at = n.p;
        r.n_batches++;
    }
    struct xpl_infer_request *const slot = xpl_vec_push(a, &v->requests);
    if (!slot) return FULL;
    *slot = r;
    return GOOD;
}

static enum got read_batch(const struct part *p, struct xpl_inference *v, struct xpl_arena *a) {
    struct xpl_infer_batch b = {.first_program = (uint32_t)v->programs.n};
    if (p->n != BATCH_NUMBERS || !read_model_index(p->v[1], v, &b.model) ||
        !read_int32(p->v[2], &b.padding) || !read_int32(p->v[3], &b.size) ||
        !read_index(p->v[8], v->patterns.n, &b.pattern))
        return BAD;
    b.id = unsigned_number(p->v[0]);
    b.begin_ps = p->v[4], b.end_ps = p->v[5], b.delay_ps = p->v[6], b.device_ps = p->v[7];
    b.tensor_ps = p->v[9];
    const uint8_t *at = p->list.ptr, *const end = at + p->list.len;
    while (at != end) {
        const struct xpl_varint n = xpl_varint_read(at, end);
        uint64_t *const slot = n.p ? xpl_vec_push(a, &v->programs) : NULL;
        if (!slot || v->programs.n >= UINT32_MAX) return n.p ? FULL : BAD;
        *slot = n.v;
        at = n.p;
        b.n_programs++;
    }
    struct xpl_infer_batch *const slot = xpl_vec_push(a, &v->batches);
    if (!slot) return FULL;
    *slot = b;
    return GOOD;
}

static enum got read_field(const struct xpl_field *f, struct xpl_inference *v,
                           struct xpl_arena *a) {
    struct part p;
    if (f->type != XPL_WIRE_LEN) return BAD;
    if (f->num == PATTERN) return read_pattern(f->len, v, a);
    if (!read_part(f->len, &p)) return BAD;
    switch (f->num) {
        case MODEL: return read_model(&p, v, a);
        case REQUEST: return read_request(&p, v, a);
        case BATCH: return read_batch(&p, v, a);
        default: return BAD;
    }
}

xpl_status_t xpl_inference_decode(xpl_bytes_t bytes, struct xpl_arena *arena,
                                  struct xpl_inference **ret, struct xpl_error *err) {
    struct xpl_wire w = xpl_wire_begin(bytes);
    struct xpl_inference *const v = xpl_arena_zalloc(arena, sizeof *v);
    struct xpl_field f;
    enum xpl_wire_result r;
    if (!v) XPL_RETURN_OOM(err, "inference");
    while ((r = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD) {
        const enum got got = read_field(&f, v, arena);
        if (got == FULL) XPL_RETURN_OOM(err, "inference");
        if (got == BAD) break;
    }
    if (r != XPL_WIRE_END) XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "no inference statistics");
    *ret = v;
    return XPL_OK;
}
