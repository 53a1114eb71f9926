// SPDX-License-Identifier: Apache-2.0
#include "analysis/opstats/codec/codec.h"

#include <string.h>

#include "analysis/opstats/codec/schema.h"
#include "analysis/wire/wire.h"
#include "analysis/wire/writer.h"
#include "base/arena.h"
#include "base/std_sort.h"

// Every XPL_VEC has this shape.
struct vec {
    void *v;
    size_t n, cap;
};

// The type names in an Any.
static const struct {
    const char *url;
    enum xpl_breakdown kind;
} breakdowns[] = {
    {"type.googleapis.com/tensorflow.profiler.GenericStepBreakdown", XPL_BREAKDOWN_GENERIC},
    {"type.googleapis.com/tensorflow.profiler.TpuStepBreakdown", XPL_BREAKDOWN_TPU},
    {"type.googleapis.com/tensorflow.profiler.SparseCoreStepBreakdown", XPL_BREAKDOWN_SPARSE_CORE},
};

static uint8_t *member_at(void *base, size_t off) {
    return (uint8_t *)base + off;
}
static const uint8_t *at_const(const void *base, size_t off) {
    return (const uint8_t *)base + off;
}

// ---- decoding ----

struct decoder {
    struct xpl_arena *arena;
    const uint8_t *start;
    struct xpl_error *err;
    unsigned nesting; // of OpMetrics.children
};

static xpl_status_t decode(struct decoder *d, const struct xpl_codec_message *m, xpl_bytes_t in,
                           void *base);

static xpl_status_t malformed(const struct decoder *d, const uint8_t *p) {
    XPL_RETURN_ERROR_AT(d->err, XPL_DATA_LOSS, (uint64_t)(p - d->start),
                        "malformed OpStats message");
}
static xpl_status_t fail_without_memory(const struct decoder *d) {
    XPL_RETURN_OOM(d->err, "OpStats");
}

// A new zeroed element of a vector of structs; NULL at the arena's limit.
static void *push(struct decoder *d, struct vec *v, size_t size) {
    if (v->n == v->cap) {
        void *const grown = xpl_vec_room_(d->arena, v->v, v->n, &v->cap, 1, size);
        if (!grown) return NULL;
        v->v = grown;
    }
    return memset((uint8_t *)v->v + size * v->n++, 0, size);
}

static xpl_status_t copy_str(struct decoder *d, xpl_bytes_t b, xpl_str_t *ret) {
    *ret = (xpl_str_t){0};
    if (b.len && !xpl_arena_str(d->arena, (xpl_str_t){(const char *)b.ptr, b.len}, ret))
        return fail_without_memory(d);
    return XPL_OK;
}

static xpl_status_t copy_bytes(struct decoder *d, xpl_bytes_t b, xpl_bytes_t *ret) {
    xpl_str_t s;
    XPL_TRY(copy_str(d, b, &s));
    *ret = (xpl_bytes_t){(const uint8_t *)s.ptr, s.len};
    return XPL_OK;
}

static size_t elem_size(const struct xpl_codec_field *f) {
    switch (f->kind) {
        case XPL_CODEC_STRS:
        case XPL_CODEC_BLOBS: return sizeof(xpl_str_t);
        case XPL_CODEC_REP:
        case XPL_CODEC_MAP: return f->size;
        default: return 0;
    }
}

// Counts repeated fields ahead, so that their arrays are made once and at their size.
static xpl_status_t reserve(struct decoder *d, const struct xpl_codec_message *m, xpl_bytes_t in,
                            void *base) {
    size_t count[XPL_CODEC_MAX_FIELDS] = {0};
    struct xpl_wire w = xpl_wire_begin(in);
    struct xpl_field f;
    enum xpl_wire_result r;
    while ((r = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD)
        if (f.num < m->n) count[f.num] += f.type == XPL_WIRE_LEN;
    if (r == XPL_WIRE_MALFORMED) return malformed(d, w.p);
    for (uint32_t i = 0; i < m->n; i++) {
        const size_t size = elem_size(&m->fields[i]);
        struct vec *const v = (void *)member_at(base, m->fields[i].off);
        if (!size || !count[i] || v->v) continue; // given in pieces: grows as it comes
        v->v = xpl_arena_array(d->arena, count[i], size);
        if (!v->v) return fail_without_memory(d);
        v->cap = count[i];
    }
    return XPL_OK;
}

static xpl_status_t decode_packed(struct decoder *d, const struct xpl_field *f, struct vec *v) {
    const uint8_t *p = f->len.ptr;
    size_t n = f->len.len / sizeof(double);
    if (f->type == XPL_WIRE_I64) {
        p = (const uint8_t *)&f->u;
        n = 1;
    } else if (f->type != XPL_WIRE_LEN) {
        return XPL_OK;
    } else if (f->len.len % sizeof(double)) {
        return malformed(d, p);
    }
    if (!n) return XPL_OK;
    void *const grown = xpl_vec_room_(d->arena, v->v, v->n, &v->cap, n, sizeof(double));
    if (!grown) return fail_without_memory(d);
    v->v = grown;
    memcpy((double *)grown + v->n, p, n * sizeof(double));
    v->n += n;
    return XPL_OK;
}

// Three dimensions are all that anyone reads; more are dropped.
static void put_dim(uint32_t *dim, uint8_t *n, uint64_t value) {
    if (*n < 3) dim[(*n)++] = (uint32_t)value;
}

static xpl_status_t decode_dim3(struct decoder *d, const struct xpl_field *f, uint32_t *dim,
                                uint8_t *n) {
    if (f->type == XPL_WIRE_VARINT) put_dim(dim, n, f->u);
    if (f->type != XPL_WIRE_LEN) return XPL_OK;
    for (const uint8_t *p = f->len.ptr, *const end = p + f->len.len; p != end;) {
        uint64_t value = 0;
        unsigned shift = 0;
        for (uint8_t b = 0x80; b & 0x80; shift += 7) {
            if (p == end || shift > 63) return malformed(d, p);
            b = *p++;
            value |= (uint64_t)(b & 0x7f) << shift;
        }
        put_dim(dim, n, value);
    }
    return XPL_OK;
}

static xpl_status_t decode_ptr(struct decoder *d, const struct xpl_codec_field *f, xpl_bytes_t in,
                               void **slot) {
    if (f->nests && d->nesting == XPL_OPSTATS_MAX_DEPTH)
        XPL_RETURN_ERROR_AT(d->err, XPL_DATA_LOSS, (uint64_t)(in.ptr - d->start),
                            "OpStats: ops nested deeper than %d", (int)XPL_OPSTATS_MAX_DEPTH);
    if (!*slot && !(*slot = xpl_arena_zalloc(d->arena, f->size))) return fail_without_memory(d);
    d->nesting += f->nests;
    XPL_TRY(decode(d, f->sub, in, *slot));
    d->nesting -= f->nests;
    return XPL_OK;
}

static xpl_status_t decode_breakdown(struct decoder *d, xpl_str_t url, xpl_bytes_t value,
                                     struct xpl_step_info *s) {
    s->breakdown = XPL_BREAKDOWN_NONE;
    for (size_t i = 0; i < sizeof breakdowns / sizeof *breakdowns; i++)
        if (xpl_str_eq(url, xpl_str_from(breakdowns[i].url))) s->breakdown = breakdowns[i].kind;
    switch (s->breakdown) {
        case XPL_BREAKDOWN_NONE: break;
        case XPL_BREAKDOWN_GENERIC:
            s->type_ps.n = 0;
            s->category_ps.n = 0;
            return decode(d, &xpl_codec_generic_breakdown, value, s);
        case XPL_BREAKDOWN_TPU:
            s->tpu = xpl_arena_zalloc(d->arena, sizeof *s->tpu);
            return s->tpu ? decode(d, &xpl_codec_tpu_breakdown, value, s->tpu)
                          : fail_without_memory(d);
        case XPL_BREAKDOWN_SPARSE_CORE:
            s->sparse = xpl_arena_zalloc(d->arena, sizeof *s->sparse);
            return s->sparse ? decode(d, &xpl_codec_sparse_core_breakdown, value, s->sparse)
                             : fail_without_memory(d);
    }
    return XPL_OK;
}

static xpl_status_t decode_any(struct decoder *d, xpl_bytes_t in, struct xpl_step_info *s) {
    xpl_bytes_t value = {in.ptr, 0};
    xpl_str_t url = {0};
    struct xpl_wire w = xpl_wire_begin(in);
    struct xpl_field f;
    enum xpl_wire_result r;
    while ((r = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD) {
        if (f.type != XPL_WIRE_LEN) continue;
        if (f.num == 1) url = (xpl_str_t){(const char *)f.len.ptr, f.len.len};
        if (f.num == 2) value = f.len;
    }
    if (r == XPL_WIRE_MALFORMED) return malformed(d, w.p);
    return decode_breakdown(d, url, value, s);
}

static void set_scalar(enum xpl_codec_kind kind, uint8_t *p, uint64_t u) {
    const uint32_t u32 = (uint32_t)u;
    if (kind == XPL_CODEC_BOOL)
        *(bool *)p = u != 0;
    else if (kind == XPL_CODEC_U32 || kind == XPL_CODEC_I32 || kind == XPL_CODEC_FLOAT)
        memcpy(p, &u32, sizeof u32);
    else
        memcpy(p, &u, sizeof u);
}

// The wire type a field is written with; a field of another type is as good as unknown.
static bool type_fits(enum xpl_codec_kind kind, uint32_t type) {
    switch (kind) {
        case XPL_CODEC_U64:
        case XPL_CODEC_I64:
        case XPL_CODEC_U32:
        case XPL_CODEC_I32:
        case XPL_CODEC_BOOL: return type == XPL_WIRE_VARINT;
        case XPL_CODEC_DOUBLE: return type == XPL_WIRE_I64;
        case XPL_CODEC_FLOAT: return type == XPL_WIRE_I32;
        case XPL_CODEC_STR:
        case XPL_CODEC_BYTES:
        case XPL_CODEC_MSG:
        case XPL_CODEC_PTR:
        case XPL_CODEC_REP:
        case XPL_CODEC_MAP:
        case XPL_CODEC_STRS:
        case XPL_CODEC_BLOBS:
        case XPL_CODEC_ANY: return type == XPL_WIRE_LEN;
        case XPL_CODEC_PACKED:
        case XPL_CODEC_DIM3: return true; // both types are checked where they are read
        case XPL_CODEC_NONE:
        case XPL_CODEC_TRUE: return false;
    }
    return false;
}

static xpl_status_t decode_field(struct decoder *d, const struct xpl_codec_field *f,
                                 const struct xpl_field *in, void *base) {
    uint8_t *const p = member_at(base, f->off);
    void *elem;
    if (!type_fits(f->kind, in->type)) return XPL_OK;
    if (f->has && f->kind != XPL_CODEC_DIM3) *(bool *)member_at(base, f->has) = true;
    switch ((enum xpl_codec_kind)f->kind) {
        case XPL_CODEC_NONE:
        case XPL_CODEC_TRUE: return XPL_OK;
        case XPL_CODEC_U64:
        case XPL_CODEC_I64:
        case XPL_CODEC_U32:
        case XPL_CODEC_I32:
        case XPL_CODEC_BOOL:
        case XPL_CODEC_DOUBLE:
        case XPL_CODEC_FLOAT: set_scalar(f->kind, p, in->u); return XPL_OK;
        case XPL_CODEC_STR: return copy_str(d, in->len, (xpl_str_t *)(void *)p);
        case XPL_CODEC_BYTES: return copy_bytes(d, in->len, (xpl_bytes_t *)(void *)p);
        case XPL_CODEC_MSG: return decode(d, f->sub, in->len, p);
        case XPL_CODEC_PTR: return decode_ptr(d, f, in->len, (void **)(void *)p);
        case XPL_CODEC_REP:
        case XPL_CODEC_MAP:
            elem = push(d, (void *)p, f->size);
            return elem ? decode(d, f->sub, in->len, elem) : fail_without_memory(d);
        case XPL_CODEC_STRS:
            elem = push(d, (void *)p, sizeof(xpl_str_t));
            return elem ? copy_str(d, in->len, elem) : fail_without_memory(d);
        case XPL_CODEC_BLOBS:
            elem = push(d, (void *)p, sizeof(xpl_bytes_t));
            return elem ? copy_bytes(d, in->len, elem) : fail_without_memory(d);
        case XPL_CODEC_PACKED: return decode_packed(d, in, (void *)p);
        case XPL_CODEC_DIM3:
            return decode_dim3(d, in, (uint32_t *)(void *)p, member_at(base, f->has));
        case XPL_CODEC_ANY: return decode_any(d, in->len, base);
    }
    return XPL_OK;
}

struct keyed {
    const uint8_t *elem;
    int (*cmp)(const void *, const void *);
};
static bool by_key_then_place(const void *ctx, const void *a, const void *b) {
    const struct keyed *const x = a, *const y = b;
    (void)ctx;
    const int c = x->cmp(x->elem, y->elem);
    return c ? c < 0 : x->elem < y->elem;
}

// In a map later entries replace earlier ones of the same key.
static xpl_status_t finish_map(struct decoder *d, const struct xpl_codec_field *f, struct vec *v) {
    uint8_t *const old = v->v;
    bool sorted = true;
    for (size_t i = 1; sorted && i < v->n; i++)
        sorted = f->cmp(old + (i - 1) * f->size, old + i * f->size) < 0;
    if (sorted) return XPL_OK;
    struct keyed *const k = xpl_arena_array(d->arena, v->n, sizeof *k);
    uint8_t *const unique = xpl_arena_array(d->arena, v->n, f->size);
    if (!k || !unique) return fail_without_memory(d);
    for (size_t i = 0; i < v->n; i++)
        k[i] = (struct keyed){old + i * f->size, f->cmp};
    xpl_std_sort(k, v->n, sizeof *k, by_key_then_place, NULL);
    size_t n = 0;
    for (size_t i = 0; i < v->n; i++) {
        if (i + 1 < v->n && f->cmp(k[i].elem, k[i + 1].elem) == 0) continue;
        memcpy(unique + n++ * f->size, k[i].elem, f->size);
    }
    *v = (struct vec){unique, n, v->n};
    return XPL_OK;
}

static xpl_status_t decode(struct decoder *d, const struct xpl_codec_message *m, xpl_bytes_t in,
                           void *base) {
    if (m->repeats) XPL_TRY(reserve(d, m, in, base));
    struct xpl_wire w = xpl_wire_begin(in);
    struct xpl_field f;
    enum xpl_wire_result r;
    while ((r = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD)
        if (f.num < m->n) XPL_TRY(decode_field(d, &m->fields[f.num], &f, base));
    if (r == XPL_WIRE_MALFORMED) return malformed(d, w.p);
    if (m->repeats)
        for (uint32_t i = 0; i < m->n; i++)
            if (m->fields[i].kind == XPL_CODEC_MAP)
                XPL_TRY(finish_map(d, &m->fields[i], (void *)member_at(base, m->fields[i].off)));
    return XPL_OK;
}

xpl_status_t xpl_opstats_decode(xpl_bytes_t in, struct xpl_arena *arena, struct xpl_opstats **ret,
                                struct xpl_error *err) {
    struct decoder d = {.arena = arena, .start = in.ptr, .err = err};
    struct xpl_opstats *const s = xpl_arena_zalloc(arena, sizeof *s);
    if (!s) return fail_without_memory(&d);
    XPL_TRY(decode(&d, &xpl_codec_opstats, in, s));
    *ret = s;
    return XPL_OK;
}

// ---- encoding ----

struct encoder {
    struct xpl_writer w;
    unsigned nesting;
    bool too_deep;
};

static void encode(struct encoder *e, const struct xpl_codec_message *m, const void *base);

static uint64_t get_scalar(enum xpl_codec_kind kind, const uint8_t *p) {
    uint64_t u = 0;
    uint32_t u32;
    int32_t i32;
    if (kind == XPL_CODEC_BOOL) return *(const bool *)p;
    if (kind == XPL_CODEC_I32) {
        memcpy(&i32, p, sizeof i32);
        return (uint64_t)(int64_t)i32; // negative numbers take ten bytes
    }
    if (kind == XPL_CODEC_U32 || kind == XPL_CODEC_FLOAT) {
        memcpy(&u32, p, sizeof u32);
        return u32;
    }
    memcpy(&u, p, sizeof u);
    return u;
}

static bool is_set(const struct xpl_codec_field *f, const void *base) {
    const uint8_t *const p = at_const(base, f->off);
    if (f->always) return true;
    if (f->kind == XPL_CODEC_DIM3) return *at_const(base, f->has) > 0;
    if (f->has) return *(const bool *)at_const(base, f->has);
    switch ((enum xpl_codec_kind)f->kind) {
        case XPL_CODEC_NONE:
        case XPL_CODEC_TRUE: return false;
        case XPL_CODEC_STR:
        case XPL_CODEC_BYTES: return ((const xpl_str_t *)(const void *)p)->len > 0;
        case XPL_CODEC_PTR: return *(void *const *)(const void *)p != NULL;
        case XPL_CODEC_REP:
        case XPL_CODEC_MAP:
        case XPL_CODEC_STRS:
        case XPL_CODEC_BLOBS:
        case XPL_CODEC_PACKED: return ((const struct vec *)(const void *)p)->n > 0;
        case XPL_CODEC_ANY:
            return ((const struct xpl_step_info *)base)->breakdown != XPL_BREAKDOWN_NONE;
        case XPL_CODEC_MSG:
            for (uint32_t i = 0; i < f->sub->n; i++)
                if (is_set(&f->sub->fields[i], p)) return true;
            return false;
        case XPL_CODEC_U64:
        case XPL_CODEC_I64:
        case XPL_CODEC_U32:
        case XPL_CODEC_I32:
        case XPL_CODEC_BOOL:
        case XPL_CODEC_DOUBLE:
        case XPL_CODEC_FLOAT:
        case XPL_CODEC_DIM3: break;
    }
    return get_scalar(f->kind, p) != 0;
}

static void encode_sub(struct encoder *e, uint32_t num, const struct xpl_codec_message *m,
                       const void *base) {
    const struct xpl_writer_mark mark = xpl_writer_open(&e->w, num);
    encode(e, m, base);
    xpl_writer_close(&e->w, mark);
}

static void encode_ptr(struct encoder *e, uint32_t num, const struct xpl_codec_field *f,
                       const void *base) {
    if (f->nests && e->nesting == XPL_OPSTATS_MAX_DEPTH) {
        e->too_deep = true;
        return;
    }
    e->nesting += f->nests;
    encode_sub(e, num, f->sub, base);
    e->nesting -= f->nests;
}

static void encode_any(struct encoder *e, uint32_t num, const struct xpl_step_info *s) {
    const struct xpl_writer_mark mark = xpl_writer_open(&e->w, num);
    for (size_t i = 0; i < sizeof breakdowns / sizeof *breakdowns; i++)
        if (breakdowns[i].kind == s->breakdown)
            xpl_writer_bytes(&e->w, 1, breakdowns[i].url, strlen(breakdowns[i].url));
    switch (s->breakdown) {
        case XPL_BREAKDOWN_NONE: break;
        case XPL_BREAKDOWN_GENERIC: encode_sub(e, 2, &xpl_codec_generic_breakdown, s); break;
        case XPL_BREAKDOWN_TPU:
            if (s->tpu) encode_sub(e, 2, &xpl_codec_tpu_breakdown, s->tpu);
            break;
        case XPL_BREAKDOWN_SPARSE_CORE:
            if (s->sparse) encode_sub(e, 2, &xpl_codec_sparse_core_breakdown, s->sparse);
            break;
    }
    xpl_writer_close(&e->w, mark);
}

static void encode_packed(struct encoder *e, uint32_t num, const struct vec *v) {
    const struct xpl_writer_mark mark = xpl_writer_open(&e->w, num);
    for (size_t i = 0; i < v->n; i++)
        xpl_writer_raw64(&e->w,
                         get_scalar(XPL_CODEC_DOUBLE, (const uint8_t *)v->v + i * sizeof(double)));
    xpl_writer_close(&e->w, mark);
}

static void encode_dim3(struct encoder *e, uint32_t num, const uint32_t *dim, uint8_t n) {
    const struct xpl_writer_mark mark = xpl_writer_open(&e->w, num);
    for (uint8_t i = 0; i < n && i < 3; i++)
        xpl_writer_raw_varint(&e->w, dim[i]);
    xpl_writer_close(&e->w, mark);
}

static void encode_field(struct encoder *e, uint32_t num, const struct xpl_codec_field *f,
                         const void *base) {
    const uint8_t *const p = at_const(base, f->off);
    const xpl_str_t *const str = (const void *)p;
    const struct vec *const v = (const void *)p;
    switch ((enum xpl_codec_kind)f->kind) {
        case XPL_CODEC_NONE: return;
        case XPL_CODEC_TRUE: xpl_writer_varint(&e->w, num, 1); return;
        case XPL_CODEC_U64:
        case XPL_CODEC_I64:
        case XPL_CODEC_U32:
        case XPL_CODEC_I32:
        case XPL_CODEC_BOOL: xpl_writer_varint(&e->w, num, get_scalar(f->kind, p)); return;
        case XPL_CODEC_DOUBLE: xpl_writer_fixed64(&e->w, num, get_scalar(f->kind, p)); return;
        case XPL_CODEC_FLOAT:
            xpl_writer_fixed32(&e->w, num, (uint32_t)get_scalar(f->kind, p));
            return;
        case XPL_CODEC_STR:
        case XPL_CODEC_BYTES: xpl_writer_bytes(&e->w, num, str->ptr, str->len); return;
        case XPL_CODEC_MSG: encode_sub(e, num, f->sub, p); return;
        case XPL_CODEC_PTR: encode_ptr(e, num, f, *(void *const *)(const void *)p); return;
        case XPL_CODEC_REP:
        case XPL_CODEC_MAP:
            for (size_t i = 0; i < v->n; i++)
                encode_sub(e, num, f->sub, (const uint8_t *)v->v + i * f->size);
            return;
        case XPL_CODEC_STRS:
        case XPL_CODEC_BLOBS:
            for (size_t i = 0; i < v->n; i++)
                xpl_writer_bytes(&e->w, num, ((xpl_str_t *)v->v)[i].ptr,
                                 ((xpl_str_t *)v->v)[i].len);
            return;
        case XPL_CODEC_PACKED: encode_packed(e, num, v); return;
        case XPL_CODEC_DIM3:
            encode_dim3(e, num, (const uint32_t *)(const void *)p, *at_const(base, f->has));
            return;
        case XPL_CODEC_ANY: encode_any(e, num, base); return;
    }
}

static void encode(struct encoder *e, const struct xpl_codec_message *m, const void *base) {
    for (uint32_t i = 0; i < m->n; i++)
        if (is_set(&m->fields[i], base)) encode_field(e, i, &m->fields[i], base);
}

xpl_status_t xpl_opstats_encode(const struct xpl_opstats *s, struct xpl_buf *out,
                                struct xpl_error *err) {
    struct encoder e = {0};
    const size_t before = out->n;
    xpl_writer_init(&e.w, out);
    encode(&e, &xpl_codec_opstats, s);
    if (!e.too_deep && xpl_writer_measured(&e.w)) encode(&e, &xpl_codec_opstats, s);
    const bool ok = xpl_writer_fini(&e.w);
    if (ok) return XPL_OK;
    out->n = before;
    if (e.too_deep)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED, "OpStats: ops nested deeper than %d",
                         (int)XPL_OPSTATS_MAX_DEPTH);
    XPL_RETURN_OOM(err, "OpStats");
}
