// SPDX-License-Identifier: Apache-2.0
// By the tables that the export writes rows with.
#include "analysis/ireeprof/ireeperf/row.h"

#include "analysis/ireeprof/reports/export/export_fields.h"

// Strings that follow a record, in their order.
static const char *const texts[XPL_IREE_N_CHUNK_TYPES][XPL_IREEPERF_TEXTS] = {
    [XPL_IREE_FUNCTIONS] = {"name"},
    [XPL_IREE_COUNTER_SETS] = {"name"},
    [XPL_IREE_COUNTERS] = {"block", "name", "description"},
    [XPL_IREE_METRIC_SOURCES] = {"name"},
    [XPL_IREE_METRIC_DESCRIPTORS] = {"name", "description"}};

static bool is_named(const struct xpl_iree_field *f, xpl_str_t name) {
    const size_t n = f->name_length ? f->name_length : f->name ? strlen(f->name) : 0;
    return n == name.len && n && memcmp(f->name, name.ptr, n) == 0;
}

// ---- numbers ----

static bool put_u32(uint64_t v, uint8_t *to) {
    const uint32_t low = (uint32_t)v;
    memcpy(to, &low, sizeof low);
    return v == low;
}

static bool put_unsigned(const struct xpl_ireeperf_token *t, bool wide, uint8_t *to) {
    uint64_t v;
    if (!xpl_ireeperf_token_u64(t, &v)) return false;
    if (!wide) return put_u32(v, to);
    memcpy(to, &v, sizeof v);
    return true;
}

static bool put_signed(const struct xpl_ireeperf_token *t, bool wide, uint8_t *to) {
    int64_t v;
    if (!xpl_ireeperf_token_i64(t, &v)) return false;
    const int32_t low = (int32_t)v;
    if (wide)
        memcpy(to, &v, sizeof v);
    else
        memcpy(to, &low, sizeof low);
    return wide || v == low;
}

static bool put_list(struct xpl_ireeperf_line *l, const struct xpl_ireeperf_token *t, size_t n,
                     uint8_t *to) {
    struct xpl_ireeperf_token v;
    size_t i = 0;
    if (t->kind != XPL_IREEPERF_TOKEN_ARRAY) return false;
    while (xpl_ireeperf_line_element(l, &v)) {
        if (i == n || !put_unsigned(&v, false, to + 4 * i)) return false;
        i++;
    }
    return i == n;
}

// 16 bytes as 32 digits; null: none.  A hash is two numbers, a UUID bytes.
static bool put_hash(const struct xpl_ireeperf_token *t, bool bytes, uint8_t *to) {
    uint64_t halves[2] = {0};
    if (t->kind == XPL_IREEPERF_TOKEN_WORD) return true;
    if (t->kind != XPL_IREEPERF_TOKEN_STRING || t->text.len != 32) return false;
    for (size_t i = 0; i < 32; i++) {
        const char c = t->text.ptr[i], low = (char)(c | 0x20);
        const bool digit = c >= '0' && c <= '9';
        if (!digit && (low < 'a' || low > 'f')) return false;
        halves[i / 16] = halves[i / 16] << 4 | (uint64_t)(digit ? c - '0' : low - 'a' + 10);
    }
    if (bytes) halves[0] = __builtin_bswap64(halves[0]), halves[1] = __builtin_bswap64(halves[1]);
    memcpy(to, halves, sizeof halves);
    return true;
}

// ---- members ----

// Members of an object of the row: fields[from, to).
struct level {
    const struct xpl_iree_field *from, *to, *next; // next: the expected one
};

// Behind the end of the object that begins at f.
static const struct xpl_iree_field *past(const struct xpl_iree_field *f,
                                         const struct xpl_iree_field *to) {
    int depth = 0;
    do {
        depth += (f->kind == XPL_IREE_OBJECT) - (f->kind == XPL_IREE_END);
        f++;
    } while (depth > 0 && f < to);
    return f;
}

// Unedited rows have their members in the order of the table.
static const struct xpl_iree_field *find(struct level *l, xpl_str_t name) {
    if (l->next < l->to && is_named(l->next, name)) {
        const struct xpl_iree_field *const f = l->next;
        l->next = past(f, l->to);
        return f;
    }
    for (const struct xpl_iree_field *f = l->from; f < l->to; f = past(f, l->to)) {
        if (!is_named(f, name)) continue;
        l->next = past(f, l->to);
        return f;
    }
    return NULL;
}

// A member of the record. Members about the record, such as its position, are skipped.
static bool store(struct xpl_ireeperf_row *row, struct xpl_ireeperf_line *l,
                  const struct xpl_iree_field *f, const struct xpl_ireeperf_token *t) {
    uint8_t *const to = row->record + f->offset;
    switch (f->kind) {
        case XPL_IREE_U32:
        case XPL_IREE_U64: return put_unsigned(t, f->kind == XPL_IREE_U64, to);
        case XPL_IREE_I32:
        case XPL_IREE_I64: return put_signed(t, f->kind == XPL_IREE_I64, to);
        case XPL_IREE_3U32: return put_list(l, t, 3, to);
        case XPL_IREE_8U32: return put_list(l, t, 8, to);
        case XPL_IREE_ENUM:
            if (t->kind != XPL_IREEPERF_TOKEN_STRING) return false;
            return put_u32(xpl_iree_number(f->names, t->text), to); // a number may follow
        case XPL_IREE_BIT:
        case XPL_IREE_CONST:
        case XPL_IREE_OBJECT:
        case XPL_IREE_END:
        case XPL_IREE_SPAN:
        case XPL_IREE_IS_SPAN: break;
    }
    xpl_ireeperf_line_skip(l, t);
    return true;
}

static bool store_place(struct xpl_ireeperf_row *row, xpl_str_t name,
                        const struct xpl_ireeperf_token *t, bool *ret_ok) {
    uint64_t v = 0;
    const bool device = xpl_str_eq(name, XPL_STR("physical_device_ordinal"));
    const bool queue = xpl_str_eq(name, XPL_STR("queue_ordinal"));
    if (row->head.chunk != XPL_IREE_DISPATCH_EVENTS ||
        (!device && !queue && !xpl_str_eq(name, XPL_STR("stream_id"))))
        return false;
    *ret_ok = xpl_ireeperf_token_u64(t, &v) && ((!device && !queue) || v <= UINT32_MAX);
    if (device)
        row->head.device = (uint32_t)v;
    else if (queue)
        row->head.queue = (uint32_t)v;
    else
        row->head.stream_id = v;
    return true;
}

static bool store_hash(struct xpl_ireeperf_row *row, xpl_str_t name,
                       const struct xpl_ireeperf_token *t, bool *ret_ok) {
    const bool uuid = xpl_str_eq(name, XPL_STR("physical_device_uuid"));
    size_t offset;
    if (row->head.chunk == XPL_IREE_DEVICES && uuid)
        offset = offsetof(struct xpl_iree_device, physical_device_uuid);
    else if (row->head.chunk == XPL_IREE_EXECUTABLES &&
             xpl_str_eq(name, XPL_STR("code_object_hash")))
        offset = offsetof(struct xpl_iree_executable, code_object_hash);
    else if (row->head.chunk == XPL_IREE_FUNCTIONS && xpl_str_eq(name, XPL_STR("function_hash")))
        offset = offsetof(struct xpl_iree_function, function_hash);
    else
        return false;
    *ret_ok = put_hash(t, uuid, row->record + offset);
    return true;
}

// A member that no table has: one that follows the record, or was computed.
static bool store_other(struct xpl_ireeperf_row *row, struct xpl_ireeperf_line *l, xpl_str_t name,
                        const struct xpl_ireeperf_token *t) {
    const enum xpl_iree_chunk chunk = row->head.chunk;
    const bool lists = chunk == XPL_IREE_COUNTER_SAMPLES || chunk == XPL_IREE_METRIC_SAMPLES;
    bool ok = true;
    if (store_place(row, name, t, &ok) || store_hash(row, name, t, &ok)) return ok;
    for (size_t i = 0; i < XPL_IREEPERF_TEXTS && texts[chunk][i]; i++) {
        if (!xpl_str_eq(name, xpl_str_from(texts[chunk][i]))) continue;
        row->texts[i] = t->text;
        return t->kind == XPL_IREEPERF_TOKEN_STRING;
    }
    if (lists && xpl_str_eq(name, XPL_STR("values"))) {
        row->values = *l;
        ok = t->kind == XPL_IREEPERF_TOKEN_ARRAY;
    }
    xpl_ireeperf_line_skip(l, t);
    return ok;
}

const char *xpl_ireeperf_row_read(xpl_str_t line, struct xpl_ireeperf_row *row) {
    enum { DEPTH = 4 };
    const struct xpl_iree_export_row *const kind = &xpl_iree_export_rows[row->head.chunk];
    struct level levels[DEPTH] = {{kind->fields, kind->fields + kind->n, kind->fields}};
    struct xpl_ireeperf_line l;
    struct xpl_ireeperf_token t;
    xpl_str_t name;
    (void)xpl_ireeperf_line_begin(&l, line);
    for (size_t depth = 1; depth && !l.bad;) {
        struct level *const level = &levels[depth - 1];
        if (!xpl_ireeperf_line_member(&l, &name, &t)) {
            depth--;
            continue;
        }
        const struct xpl_iree_field *const f = find(level, name);
        const bool opens = f && f->kind == XPL_IREE_OBJECT && t.kind == XPL_IREEPERF_TOKEN_OBJECT;
        if (opens && depth < DEPTH)
            levels[depth++] = (struct level){f + 1, past(f, level->to) - 1, f + 1};
        else if (!(f ? store(row, &l, f, &t) : store_other(row, &l, name, &t)) && !l.bad)
            return "a member has the wrong type, or its number is out of range";
    }
    if (!l.bad) xpl_ireeperf_line_end(&l);
    return l.bad;
}

// ---- the fields after the record ----

static const char *put_metric_value(struct xpl_ireeperf_line *l, struct xpl_buf *out) {
    static const struct xpl_iree_field fields[] = {
        {.name = "metric_id", .offset = offsetof(struct xpl_iree_metric_value, metric_id)},
        {.name = "flags", .offset = offsetof(struct xpl_iree_metric_value, flags)},
        {.name = "value_bits", .offset = offsetof(struct xpl_iree_metric_value, value_bits)}};
    enum { FLAGS = 1, N = sizeof fields / sizeof *fields };
    uint8_t value[sizeof(struct xpl_iree_metric_value)] = {0};
    struct xpl_ireeperf_token t;
    xpl_str_t name;
    while (xpl_ireeperf_line_member(l, &name, &t)) {
        size_t i = 0;
        while (i < N && !is_named(&fields[i], name))
            i++;
        if (i == N)
            xpl_ireeperf_line_skip(l, &t);
        else if (!put_unsigned(&t, i != FLAGS, value + fields[i].offset))
            return "a metric's value is not a number";
    }
    xpl_buf_put(out, value, sizeof value);
    return l->bad;
}

static const char *put_values(const struct xpl_ireeperf_row *row, struct xpl_buf *out,
                              uint32_t *ret_n) {
    struct xpl_ireeperf_line l = row->values;
    struct xpl_ireeperf_token t;
    const char *bad = NULL;
    *ret_n = 0;
    while (!bad && l.r.p && xpl_ireeperf_line_element(&l, &t)) {
        uint8_t v[8];
        if (row->head.chunk == XPL_IREE_METRIC_SAMPLES)
            bad = t.kind == XPL_IREEPERF_TOKEN_OBJECT ? put_metric_value(&l, out)
                                                      : "a metric's value is not an object";
        else if (put_unsigned(&t, true, v))
            xpl_buf_put(out, v, sizeof v);
        else
            bad = "a counter's value is not a number";
        (*ret_n)++;
    }
    return bad ? bad : l.bad;
}

// Strings and values, and how many bytes or values these are.
static const char *put_tail(const struct xpl_ireeperf_row *row, struct xpl_buf *out,
                            uint8_t *record) {
    const struct xpl_iree_chunk_type *const type = &xpl_iree_chunk_types[row->head.chunk];
    const char *bad = NULL;
    uint32_t n;
    if (type->length_scale > 1) { // values
        bad = put_values(row, out, &n);
        (void)put_u32(n, record + type->lengths[0]);
        return bad;
    }
    for (size_t i = 0; i < XPL_IREEPERF_TEXTS && texts[row->head.chunk][i] && !bad; i++) {
        const size_t from = out->n;
        if (!xpl_ireeperf_token_text(row->texts[i], out)) bad = "a string has a wrong escape";
        (void)put_u32(out->n - from, record + type->lengths[i]);
    }
    return bad;
}

const char *xpl_ireeperf_row_put(const struct xpl_ireeperf_row *row,
                                 struct xpl_ireeperf_records *w) {
    const size_t size = xpl_iree_chunk_types[row->head.chunk].size;
    uint8_t record[sizeof row->record];
    xpl_ireeperf_record(w, &row->head);
    const size_t at = w->out->n;
    memcpy(record, row->record, size);
    xpl_buf_put(w->out, record, size);
    const char *const bad = put_tail(row, w->out, record);
    if (w->out->failed) return NULL; // said at the end
    if (bad) {
        w->out->n = at;
        return bad;
    }
    (void)put_u32(w->out->n - at, record); // record_length comes first
    memcpy(w->out->p + at, record, size);
    return NULL;
}
