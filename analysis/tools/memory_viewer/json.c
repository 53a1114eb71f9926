// SPDX-License-Identifier: Apache-2.0
// XProf's answer: a PreprocessResult as JSON
// (plugin/xprof/protobuf/memory_viewer_preprocess.proto), whose fields come in the order of their
// numbers, those without a value left out.
#include <inttypes.h>

#include "analysis/tools/memory_viewer/impl.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/map.h"
#include "base/std_sort.h"

#define MIB 0x1p20

// ---- fields ----

// Begins a member of the current object.
static void put_key(struct xpl_buf *out, const char *key) {
    const xpl_str_t name = xpl_str_from(key);
    if (!xpl_buf_room(out, name.len + 4)) return;
    uint8_t *p = out->p + out->n;
    if (out->n && p[-1] != '{') *p++ = ',';
    *p++ = '"';
    memcpy(p, name.ptr, name.len);
    p += name.len;
    *p++ = '"';
    *p++ = ':';
    out->n = (size_t)(p - out->p);
}
static void put_digits(struct xpl_buf *out, int64_t v) {
    char text[24], *p = text + sizeof text;
    uint64_t rest = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    do
        *--p = (char)('0' + rest % 10);
    while (rest /= 10);
    if (v < 0) *--p = '-';
    xpl_buf_put(out, p, (size_t)(text + sizeof text - p));
}

// Sizes repeat: the text of one is made once.
static void put_real(struct memview *v, double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    struct memview_number *const slot =
        &v->numbers[(bits * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - MEMVIEW_NUMBER_BITS)];
    const size_t at = v->out->n;
    if (slot->length && slot->bits == bits) {
        xpl_buf_put(v->out, slot->text, slot->length);
        return;
    }
    xpl_json_proto_double(v->out, x);
    const size_t n = v->out->n - at;
    if (v->out->failed || n > sizeof slot->text) return;
    slot->bits = bits;
    slot->length = (uint8_t)n;
    memcpy(slot->text, v->out->p + at, n);
}
static void put_double(struct memview *v, const char *key, double x) {
    if (!(x < 0 || x > 0)) return;
    put_key(v->out, key);
    put_real(v, x);
}
static void put_mib(struct memview *v, const char *key, int64_t bytes) {
    put_double(v, key, (double)bytes / MIB);
}
static void put_int(struct xpl_buf *out, const char *key, int64_t x) {
    if (!x) return;
    put_key(out, key);
    put_digits(out, x);
}
static void put_id(struct xpl_buf *out, const char *key, int64_t x) {
    if (!x) return;
    put_key(out, key);
    xpl_json_proto_int64(out, x);
}
static void put_text(struct xpl_buf *out, const char *key, xpl_str_t s) {
    if (!s.len) return;
    put_key(out, key);
    xpl_json_str(out, s, true);
}

// The contents of the scratch buffer.
static xpl_str_t scratch_text(const struct memview *v) {
    return (xpl_str_t){(const char *)v->scratch.p, v->scratch.n};
}

// Asked for each text of a shape: reading one takes time that the answer's size does not tell.
static xpl_status_t shape_text(struct memview *v, xpl_bytes_t shape, struct xpl_error *err) {
    if (xpl_exec_cancelled(v->exec))
        XPL_RETURN_ERROR(err, XPL_CANCELLED, "memory of an HLO module cancelled");
    if (v->out->failed || v->scratch.failed) XPL_RETURN_OOM(err, "memory of an HLO module");
    return xpl_hlo_text_shape(shape, v->cache, &v->scratch, err);
}

// ---- buffers ----

static xpl_status_t put_shape(struct memview *v, xpl_bytes_t shape, struct xpl_error *err) {
    v->scratch.n = 0;
    XPL_TRY(shape_text(v, shape, err));
    put_text(v->out, "shapeString", scratch_text(v));
    return XPL_OK;
}

static xpl_status_t put_source(struct memview *v, const struct hlo_buffer *b,
                               struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(v->arena->limit);
    struct xpl_hlo_buffer_source s;
    if (!xpl_hlo_buffer_source(v->m, b, &arena, &s)) XPL_RETURN_OOM(err, "stack of a buffer");
    if (!s.file.len) return XPL_OK;
    put_key(v->out, "sourceInfo");
    xpl_buf_putc(v->out, '{');
    put_text(v->out, "fileName", s.file);
    put_int(v->out, "lineNumber", s.line);
    put_text(v->out, "stackFrame", s.stack);
    xpl_buf_putc(v->out, '}');
    return XPL_OK;
}

static void put_name(struct memview *v, const char *key, const struct hlo_buffer *b) {
    v->scratch.n = 0;
    xpl_memview_name(b, &v->scratch);
    put_text(v->out, key, scratch_text(v));
}

// A HeapObject, which XProf numbers with 32 bits.
static xpl_status_t put_object(struct memview *v, const struct hlo_buffer *b, uint32_t number,
                               struct xpl_error *err) {
    struct xpl_buf *const out = v->out;
    xpl_buf_str(out, XPL_STR("{\"numbered\":"));
    put_digits(out, number);
    v->scratch.n = 0;
    xpl_buf_str(&v->scratch, b->op.name);
    xpl_buf_str(&v->scratch, XPL_STR(": "));
    XPL_TRY(shape_text(v, b->shape, err));
    xpl_buf_str(&v->scratch, XPL_STR(" # "));
    xpl_buf_str(&v->scratch, b->op.op_name);
    put_text(out, "label", scratch_text(v));
    put_int(out, "logicalBufferId", (int32_t)b->id);
    put_mib(v, "logicalBufferSizeMib", b->size);
    put_mib(v, "unpaddedShapeMib", b->unpadded);
    put_name(v, "instructionName", b);
    XPL_TRY(put_shape(v, b->shape, err));
    put_text(out, "tfOpName", b->op.op_name);
    put_text(out, "groupName", xpl_memview_category(&v->m->allocations[b->allocation]));
    put_text(out, "opCode", b->op.opcode);
    XPL_TRY(put_source(v, b, err));
    xpl_buf_putc(out, '}');
    return XPL_OK;
}

// ---- the objects at the peak ----

struct object {
    double mib;
    size_t at, length; // its text in the answer
    uint32_t number;
};
struct objects {
    struct object *v;
    uint32_t n;
};

static bool is_larger(const void *ctx, const void *a, const void *b) {
    (void)ctx;
    return ((const struct object *)a)->mib > ((const struct object *)b)->mib;
}

static void end_object(struct memview *v, struct objects *list, size_t at, int64_t bytes) {
    list->v[list->n] = (struct object){(double)bytes / MIB, at, v->out->n - at, list->n};
    list->n++;
}

static xpl_status_t put_max_heap(struct memview *v, struct objects *list, struct xpl_error *err) {
    const struct xpl_hlo_memory *const m = v->m;
    struct xpl_buf *const out = v->out;
    for (uint32_t i = m->first_shown; i < m->n_held; i++) {
        const struct hlo_buffer *const b = &m->buffers[m->held[i]];
        if (b->size < XPL_HLO_MEMORY_SMALL) continue;
        if (list->n) xpl_buf_putc(out, ',');
        const size_t at = out->n;
        XPL_TRY(put_object(v, b, list->n, err));
        end_object(v, list, at, b->size);
    }
    if (!m->small) return XPL_OK;
    if (list->n) xpl_buf_putc(out, ',');
    const size_t at = out->n;
    xpl_buf_printf(out, "{\"numbered\":%" PRIu32, list->n);
    v->scratch.n = 0;
    xpl_buf_printf(&v->scratch, "small (<%d bytes)", XPL_HLO_MEMORY_SMALL);
    put_text(out, "label", scratch_text(v));
    put_int(out, "logicalBufferId", -1);
    put_mib(v, "logicalBufferSizeMib", m->small);
    xpl_buf_putc(out, '}');
    end_object(v, list, at, m->small);
    return XPL_OK;
}

static void put_numbers(struct xpl_buf *out, const char *key, const uint32_t *v, uint32_t n) {
    if (!n) return;
    put_key(out, key);
    for (uint32_t i = 0; i < n; i++) {
        xpl_buf_putc(out, i ? ',' : '[');
        put_digits(out, v[i]);
    }
    xpl_buf_putc(out, ']');
}

// The same objects by size: of equal sizes in the order in which std::sort leaves them.
static xpl_status_t put_by_size(struct memview *v, struct objects *list, struct xpl_error *err) {
    struct xpl_buf *const out = v->out;
    if (!list->n) return XPL_OK;
    xpl_std_sort(list->v, list->n, sizeof *list->v, is_larger, NULL);
    put_key(out, "maxHeapBySize");
    for (uint32_t i = 0; i < list->n; i++) {
        const struct object o = list->v[i];
        xpl_buf_putc(out, i ? ',' : '[');
        if (!xpl_buf_room(out, o.length)) break; // `o.at` stays valid when the buffer moves
        memcpy(out->p + out->n, out->p + o.at, o.length);
        out->n += o.length;
    }
    xpl_buf_putc(out, ']');
    if (out->failed) XPL_RETURN_OOM(err, "memory of an HLO module");
    return XPL_OK;
}

static bool has_wide_ids(const struct xpl_hlo_memory *m) {
    for (uint32_t i = 0; i < m->n_buffers; i++)
        if (m->buffers[i].id != (int32_t)m->buffers[i].id) return true;
    return false;
}

static void put_span(struct memview *v, const struct hlo_buffer *b, bool is_first) {
    struct xpl_buf *const out = v->out;
    if (is_first) {
        put_key(out, "logicalBufferSpans");
        xpl_buf_putc(out, '{');
    }
    xpl_buf_str(out, is_first ? XPL_STR("\"") : XPL_STR(",\""));
    put_digits(out, (int32_t)b->id);
    xpl_buf_str(out, XPL_STR("\":{"));
    put_int(out, "start", b->first);
    put_int(out, "limit", b->last);
    xpl_buf_putc(out, '}');
}

// BufferSpans by the low 32 bits of ids; XProf's come in the order of a hash table.  Of several
// buffers with the same bits the first has one, in XProf any.
static xpl_status_t put_spans(struct memview *v, struct xpl_error *err) {
    const struct xpl_hlo_memory *const m = v->m;
    const bool is_wide = has_wide_ids(m);
    struct xpl_map seen = {0};
    bool any = false;
    for (uint32_t i = 0; i < m->n_buffers; i++) {
        const struct hlo_buffer *const b = &m->buffers[i];
        bool is_new = true;
        if (!b->lives) continue;
        if (is_wide && !xpl_map_put(v->arena, &seen, (uint32_t)b->id, 0, &is_new))
            XPL_RETURN_OOM(err, "memory of an HLO module");
        if (is_new) put_span(v, b, !any);
        any = true;
    }
    if (any) xpl_buf_putc(v->out, '}');
    return XPL_OK;
}

static xpl_status_t put_peak(struct memview *v, struct xpl_error *err) {
    struct objects list = {.v =
                               xpl_arena_array(v->arena, (size_t)v->m->n_held + 1, sizeof *list.v)};
    struct xpl_buf *const out = v->out;
    if (!list.v) XPL_RETURN_OOM(err, "memory of an HLO module");
    const size_t begin = out->n;
    put_key(out, "maxHeap");
    xpl_buf_putc(out, '[');
    XPL_TRY(put_max_heap(v, &list, err));
    if (list.n)
        xpl_buf_putc(out, ']');
    else
        out->n = out->failed ? out->n : begin;
    XPL_TRY(put_by_size(v, &list, err));
    XPL_TRY(put_spans(v, err));
    uint32_t *const places = xpl_arena_array(v->arena, list.n, sizeof *places);
    uint32_t *const numbers = xpl_arena_array(v->arena, list.n, sizeof *numbers);
    if (!places || !numbers) XPL_RETURN_OOM(err, "memory of an HLO module");
    for (uint32_t i = 0; i < list.n; i++) {
        numbers[i] = list.v[i].number;
        places[list.v[i].number] = i;
    }
    put_numbers(out, "maxHeapToBySize", places, list.n);
    put_numbers(out, "bySizeToMaxHeap", numbers, list.n);
    return XPL_OK;
}

// ---- sizes over time ----

static void put_sizes(struct memview *v, const char *key, const int64_t *bytes, uint32_t n,
                      double add) {
    if (!n) return;
    put_key(v->out, key);
    for (uint32_t i = 0; i < n; i++) {
        xpl_buf_putc(v->out, i ? ',' : '[');
        put_real(v, (double)bytes[i] / MIB + add);
    }
    xpl_buf_putc(v->out, ']');
}

static void put_names(struct xpl_buf *out, const xpl_str_t *v, uint32_t n) {
    if (!n) return;
    put_key(out, "hloInstructionNames");
    for (uint32_t i = 0; i < n; i++) {
        xpl_buf_putc(out, i ? ',' : '[');
        xpl_json_str(out, v[i], true);
    }
    xpl_buf_putc(out, ']');
}

// ---- allocations ----

struct sums {
    int64_t parameters, not_reusable, live_out, all, lasting;
};

static bool add_to(int64_t *sum, int64_t v, bool counts) {
    return !counts || !__builtin_add_overflow(*sum, v, sum);
}

// The sum of all allocations excludes those local to threads.
static xpl_status_t sum_up(const struct xpl_hlo_memory *m, struct sums *s, struct xpl_error *err) {
    bool ok = true;
    for (uint32_t i = 0; ok && i < m->n_allocations; i++) {
        const struct hlo_allocation *const a = &m->allocations[i];
        if (a->color != m->color) continue;
        ok = add_to(&s->not_reusable, a->size, a->local || a->tuple) &&
             add_to(&s->parameters, a->size, a->parameter) &&
             add_to(&s->live_out, a->size, a->live_out) && add_to(&s->all, a->size, !a->local) &&
             add_to(&s->lasting, a->size, !a->local && xpl_hlo_allocation_lasts(a));
    }
    if (ok) return XPL_OK;
    XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "buffer assignment: more than 2^63 bytes");
}

static void put_attributes(struct xpl_buf *out, const struct hlo_allocation *a) {
    const struct {
        bool is;
        const char *name;
    } list[] = {{a->parameter, "entry computation parameter"},
                {a->live_out, "may-be live out"},
                {!a->local && !a->tuple, "reusable"}};
    bool any = false;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        if (!list[i].is) continue;
        if (!any) put_key(out, "attributes");
        xpl_buf_printf(out, "%c\"%s\"", any ? ',' : '[', list[i].name);
        any = true;
    }
    if (any) xpl_buf_putc(out, ']');
}

// A LogicalBuffer: the assignment, and the buffer's properties if its id is known.
static xpl_status_t put_assigned(struct memview *v, const struct hlo_assigned *s,
                                 struct xpl_error *err) {
    struct xpl_buf *const out = v->out;
    const struct hlo_buffer *const b = s->buffer == UINT32_MAX ? NULL : &v->m->buffers[s->buffer];
    xpl_buf_putc(out, '{');
    put_id(out, "id", s->id);
    v->scratch.n = 0;
    if (b) XPL_TRY(shape_text(v, b->shape, err));
    put_text(out, "shape", scratch_text(v));
    put_mib(v, "sizeMib", s->size);
    if (b) {
        struct xpl_hlo_ints index = xpl_hlo_buffer_index(b);
        bool any = false;
        put_text(out, "hloName", b->op.name);
        for (int64_t k; xpl_hlo_ints_next(&index, &k); any = true) {
            if (any)
                xpl_buf_putc(out, ',');
            else
                put_key(out, "shapeIndex");
            if (!any) xpl_buf_putc(out, '[');
            xpl_json_proto_int64(out, k);
        }
        if (any) xpl_buf_putc(out, ']');
    }
    xpl_buf_putc(out, '}');
    return XPL_OK;
}

// Compares shapes by their texts, as XProf does; an unknown buffer has none.
static xpl_status_t common_shape(struct memview *v, const struct hlo_allocation *a, xpl_str_t *ret,
                                 struct xpl_error *err) {
    size_t first = 0;
    v->scratch.n = 0;
    *ret = (xpl_str_t){"", 0};
    for (uint32_t i = a->first; i < a->first + a->n; i++) {
        const uint32_t b = v->m->assigned[i].buffer;
        if (b == UINT32_MAX) return XPL_OK;
        const size_t at = v->scratch.n;
        XPL_TRY(shape_text(v, v->m->buffers[b].shape, err));
        if (v->scratch.failed) XPL_RETURN_OOM(err, "memory of an HLO module");
        if (i == a->first) {
            first = v->scratch.n;
            continue;
        }
        if (v->scratch.n - at != first || memcmp(v->scratch.p, v->scratch.p + at, first) != 0)
            return XPL_OK;
        v->scratch.n = first;
    }
    *ret = scratch_text(v);
    return XPL_OK;
}

static xpl_status_t put_lasting(struct memview *v, struct xpl_error *err) {
    const struct xpl_hlo_memory *const m = v->m;
    struct xpl_buf *const out = v->out;
    bool any = false;
    for (uint32_t i = 0; i < m->n_allocations; i++) {
        const struct hlo_allocation *const a = &m->allocations[i];
        if (a->color != m->color || !xpl_hlo_allocation_lasts(a)) continue;
        if (!any) put_key(out, "indefiniteLifetimes");
        xpl_buf_str(out, any ? XPL_STR(",{") : XPL_STR("[{"));
        any = true;
        put_id(out, "id", a->index);
        put_mib(v, "sizeMib", a->size);
        put_attributes(out, a);
        for (uint32_t k = 0; k < a->n; k++) {
            if (k)
                xpl_buf_putc(out, ',');
            else
                put_key(out, "logicalBuffers");
            if (!k) xpl_buf_putc(out, '[');
            XPL_TRY(put_assigned(v, &m->assigned[a->first + k], err));
        }
        if (a->n) xpl_buf_putc(out, ']');
        xpl_str_t shape;
        XPL_TRY(common_shape(v, a, &shape, err));
        put_text(out, "commonShape", shape);
        xpl_buf_putc(out, '}');
    }
    if (any) xpl_buf_putc(out, ']');
    return XPL_OK;
}

// ---- the picture ----

static void put_color(struct xpl_buf *out, uint32_t color) {
    char text[] = "\"#000000\"";
    for (unsigned i = 0; i < 6; i++)
        text[7 - i] = "0123456789abcdef"[color >> (4 * i) & 15];
    xpl_buf_put(out, text, sizeof text - 1);
}

static xpl_status_t put_block(struct memview *v, const struct memview_block *k,
                              struct xpl_error *err) {
    const struct xpl_hlo_memory *const m = v->m;
    const struct hlo_buffer *const b = k->buffer == UINT32_MAX ? NULL : &m->buffers[k->buffer];
    const xpl_str_t category = xpl_memview_category(&m->allocations[k->allocation]);
    struct xpl_buf *const out = v->out;
    xpl_buf_putc(out, '{');
    put_int(out, "logicalBufferId", b ? (int32_t)b->id : -1);
    if (b)
        put_name(v, "name", b);
    else
        put_text(out, "name", category);
    put_double(v, "offset", (double)k->offset);
    put_double(v, "size", (double)k->size);
    put_int(out, "startStep", k->from);
    put_int(out, "endStep", k->to);
    if (b) put_text(out, "tfOpName", b->op.op_name);
    put_text(out, "category", category);
    if (b) XPL_TRY(put_source(v, b, err));
    if (b) XPL_TRY(put_shape(v, b->shape, err));
    if (b) put_double(v, "unpaddedSize", (double)b->unpadded);
    put_key(out, "color");
    put_color(out, k->color);
    xpl_buf_putc(out, '}');
    return XPL_OK;
}

static xpl_status_t put_blocks(struct memview *v, struct xpl_error *err) {
    if (!v->blocks.n) return XPL_OK;
    put_key(v->out, "bufferBlocks");
    for (uint32_t i = 0; i < v->blocks.n; i++) {
        xpl_buf_putc(v->out, i ? ',' : '[');
        XPL_TRY(put_block(v, &v->blocks.v[i], err));
        if (v->out->failed) XPL_RETURN_OOM(err, "memory of an HLO module");
    }
    xpl_buf_putc(v->out, ']');
    return XPL_OK;
}

// ---- all ----

static xpl_status_t put_scoped(struct memview *v, struct xpl_error *err) {
    int64_t bytes;
    xpl_str_t name;
    if (v->m->color != 1) return XPL_OK;
    XPL_TRY(xpl_memview_scoped(v->module, v->exec, v->arena->limit, &bytes, &name, err));
    put_mib(v, "maxScopedVmemAllocationMib", bytes);
    put_text(v->out, "maxScopedVmemInstructionName", name);
    return XPL_OK;
}

xpl_status_t xpl_memview_json(struct memview *v, struct xpl_error *err) {
    const struct xpl_hlo_memory *const m = v->m;
    const double add = (double)m->lasting / MIB;
    struct xpl_buf *const out = v->out;
    struct sums s = {0};
    XPL_TRY(sum_up(m, &s, err));
    xpl_buf_putc(out, '{');
    put_sizes(v, "heapSizes", m->heap, m->n_steps, add);
    put_sizes(v, "unpaddedHeapSizes", m->unpadded_heap, m->n_steps, add);
    XPL_TRY(put_peak(v, err));
    put_text(out, "moduleName", m->module);
    put_text(out, "entryComputationName", m->entry);
    put_double(v, "peakHeapMib", (double)m->peak / MIB + add);
    put_double(v, "peakUnpaddedHeapMib", (double)m->unpadded_peak / MIB + add);
    put_int(out, "peakHeapSizePosition", m->peak_step);
    put_mib(v, "entryComputationParametersMib", s.parameters);
    put_mib(v, "nonReusableMib", s.not_reusable);
    put_mib(v, "maybeLiveOutMib", s.live_out);
    XPL_TRY(put_lasting(v, err));
    put_mib(v, "totalBufferAllocationMib", s.all);
    put_mib(v, "indefiniteBufferAllocationMib", s.lasting);
    put_names(out, m->names, m->n_steps);
    XPL_TRY(put_scoped(v, err));
    XPL_TRY(put_blocks(v, err));
    xpl_buf_putc(out, '}');
    if (out->failed || v->scratch.failed) XPL_RETURN_OOM(err, "memory of an HLO module");
    return XPL_OK;
}
