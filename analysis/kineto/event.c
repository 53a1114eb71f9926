// SPDX-License-Identifier: Apache-2.0
// One event of the trace.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/kineto/impl.h"
#include "base/text/parse.h"

enum {
    MAX_NAME = 60000,     // bytes
    MAX_KEYS = 256,       // of args that are kept
    MAX_REF = 4096,       // bytes of a value that is numbered
    MAX_VALUE = 64 << 10, // bytes of any other value
};
#define LONGEST_NS (INT64_C(7) * 24 * 3600 * 1000000000) // of an event

// ---- numbers ----

// The usual form: at most 16 digits, then at most three decimals.
static bool read_usual_ns(xpl_str_t s, int64_t *ret) {
    size_t i = 0;
    uint64_t v = 0;
    for (; i < s.len && i < 16 && s.ptr[i] >= '0' && s.ptr[i] <= '9'; i++)
        v = v * 10 + (uint64_t)(s.ptr[i] - '0');
    if (!i || (i < s.len && s.ptr[i++] != '.') || s.len - i > 3) return false;
    for (unsigned places = 0; places < 3; places++) {
        const char c = i < s.len ? s.ptr[i++] : '0';
        if (c < '0' || c > '9') return false;
        v = v * 10 + (uint64_t)(c - '0');
    }
    *ret = (int64_t)v;
    return v < XPL_KINETO_LATEST_NS;
}

// Microseconds as nanoseconds, rounded; false if the text is not a number or is too large.
static bool read_ns(xpl_str_t s, int64_t *ret) {
    if (read_usual_ns(s, ret)) return true;
    const char *p = s.ptr, *const end = s.ptr + s.len;
    const bool minus = p < end && *p == '-';
    uint64_t v = 0;
    int places = -1, exponent = 0;
    bool up = false;
    if (p < end && (*p == '-' || *p == '+')) p++;
    if (p == end) return false;
    for (; p < end; p++) {
        if (*p == '.' && places < 0) {
            places = 0;
            continue;
        }
        if (*p < '0' || *p > '9') break;
        if (places >= 3) {
            if (places++ == 3) up = *p >= '5';
            continue;
        }
        if (__builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
            return false;
        if (places >= 0) places++;
    }
    if (p < end) { // an exponent
        char text[64], *behind;
        int32_t e;
        if ((*p != 'e' && *p != 'E') || s.len >= sizeof text ||
            !xpl_parse_i32(xpl_str_sub(s, (size_t)(p + 1 - s.ptr), SIZE_MAX), &e))
            return false;
        memcpy(text, s.ptr, s.len);
        text[s.len] = 0;
        const long double x = strtold(text, &behind) * 1000;
        if (*behind || !(x < XPL_KINETO_LATEST_NS && x > -XPL_KINETO_LATEST_NS)) return false;
        *ret = (int64_t)(x < 0 ? x - 0.5L : x + 0.5L);
        return true;
    }
    for (exponent = places < 0 ? 0 : places; exponent < 3; exponent++)
        if (__builtin_mul_overflow(v, 10, &v)) return false;
    if (v >= XPL_KINETO_LATEST_NS) return false;
    v += up;
    *ret = minus ? -(int64_t)v : (int64_t)v;
    return true;
}

static bool read_int(xpl_str_t s, int64_t *ret) {
    return xpl_parse_int(s, INT64_MIN, INT64_MAX, ret);
}

static double read_double(xpl_str_t s) {
    char text[64];
    if (s.len >= sizeof text) return 0;
    memcpy(text, s.ptr, s.len);
    text[s.len] = 0;
    return strtod(text, NULL);
}

// An id, or another whole number: programs that edit traces write them with decimals, "7.0".
static bool read_whole(xpl_str_t s, int64_t *ret) {
    if (read_int(s, ret)) return true;
    if (!s.len || !memchr(s.ptr, '.', s.len) || s.ptr[0] == '[') return false;
    const double v = read_double(s);
    if (!(v >= -0x1p53 && v <= 0x1p53)) return false;
    const int64_t whole = (int64_t)v;
    if ((double)whole != v) return false;
    *ret = whole;
    return true;
}

// ---- texts ----

// The last key or string without its escapes; valid until the next one.
static xpl_str_t plain(struct trace *t, xpl_str_t text, bool is_plain) {
    if (is_plain) return text;
    t->scratch.n = 0;
    xpl_json_reader_unescape(text, &t->scratch);
    return (xpl_str_t){(const char *)t->scratch.p, t->scratch.n};
}

// JSON without the lines and blanks between its tokens, as other writers write it.
static xpl_str_t on_one_line(struct trace *t, xpl_str_t json) {
    bool in_string = false;
    if (!memchr(json.ptr, '\n', json.len)) return json;
    t->scratch.n = 0;
    for (size_t i = 0; i < json.len; i++) {
        const char c = json.ptr[i];
        const bool blank = c == ' ' || c == '\n' || c == '\r' || c == '\t';
        if (c == '"') in_string = !in_string;
        if (c == '\\' && i + 1 < json.len) xpl_buf_putc(&t->scratch, json.ptr[i++]);
        if (in_string || !blank) xpl_buf_putc(&t->scratch, json.ptr[i]);
        if (!in_string && (c == ',' || c == ':')) xpl_buf_putc(&t->scratch, ' ');
    }
    return (xpl_str_t){(const char *)t->scratch.p, t->scratch.n};
}

// ---- args ----

static bool put_str(struct trace *t, uint32_t key, xpl_str_t text, uint32_t *ret_ref) {
    *ret_ref = 0;
    if (text.len && text.len <= MAX_REF &&
        !xpl_kineto_text_within(t, &t->values_left, text, ret_ref))
        return false;
    if (*ret_ref) return xpl_kineto_put_number(t, key, STAT_REF, *ret_ref);
    return xpl_kineto_put_str(t, key, xpl_str_sub(text, 0, MAX_VALUE));
}

static bool put_number(struct trace *t, uint32_t key, xpl_str_t text) {
    int64_t v;
    return read_int(text, &v) ? xpl_kineto_put_int(t, key, v)
                              : xpl_kineto_put_double(t, key, read_double(text));
}

// Notes the value of a key that means something.
static void note(struct args *a, uint32_t key, xpl_str_t v) {
    int64_t n = 0;
    const bool is_int = read_whole(v, &n);
    switch ((int)key) { // most texts are not keys
        case TEXT_CORRELATION: a->correlation = (uint64_t)n; break;
        case TEXT_EXTERNAL_ID:
        case TEXT_LAST_KEY: a->external = (uint64_t)n; break;
        case TEXT_STREAM: a->stream = n; break;
        case TEXT_DEVICE: a->device = n; break;
        case TEXT_BYTES: a->bytes = n; break;
        case TEXT_GRID: a->grid = v; break;
        case TEXT_BLOCK: a->block = v; break;
        case TEXT_REGISTERS: a->registers = n; break;
        case TEXT_SHARED: a->shared = n; break;
        case TEXT_OCCUPANCY: a->occupancy = is_int ? (double)n : read_double(v); break;
        case TEXT_GRAPH_ID: a->graph_id = n; break;
        case TEXT_ADDR: a->address = (uint64_t)n; break;
        case TEXT_MEM_BYTES: a->mem_bytes = n; break;
        case TEXT_TOTAL_ALLOCATED: a->allocated = n; break;
        case TEXT_TOTAL_RESERVED: a->reserved = n; break;
        case TEXT_DEVICE_TYPE: a->device_type = n; break;
        case TEXT_DEVICE_ID: a->device_id = n; break;
        case TEXT_NAME: a->name = v; break;
        case TEXT_COLLECTIVE_NAME: a->collective = v; break;
        case TEXT_IN_NELEMS: a->in_nelems = n; break;
        case TEXT_OUT_NELEMS: a->out_nelems = n; break;
        case TEXT_GROUP_SIZE: a->group_size = n; break;
        case TEXT_DTYPE: a->dtype = v; break;
        case TEXT_TASK_TYPE: a->task_type = v; break;
        case TEXT_CONNECTION_ID: a->connection = (uint64_t)n; break;
        default: return;
    }
    a->has |= UINT64_C(1) << key;
}

// Under the name that tools know, in which 0 links nothing.
static enum text name_of_key(const struct args *a, uint32_t key) {
    return key == TEXT_CORRELATION && a->correlation ? TEXT_CORRELATION_ID : (enum text)key;
}

// Reads the value of `key` and appends it as a stat.
static bool read_arg(struct trace *t, struct args *a, uint32_t key, uint32_t *ret_ref,
                     bool *ret_oom) {
    struct xpl_json_reader *const r = t->r;
    bool ok = true;
    *ret_ref = 0;
    switch (xpl_json_reader_next(r)) {
        case XPL_JSON_AT_NUMBER:
            if (key <= TEXT_LAST_KEY) note(a, key, r->text);
            if (name_of_key(a, key) != key)
                ok = xpl_kineto_put_int(t, TEXT_CORRELATION_ID, (int64_t)a->correlation);
            else
                ok = put_number(t, key, r->text);
            break;
        case XPL_JSON_AT_STRING:
            if (key <= TEXT_LAST_KEY) note(a, key, r->text);
            if (name_of_key(a, key) != key)
                ok = xpl_kineto_put_int(t, TEXT_CORRELATION_ID, (int64_t)a->correlation);
            else
                ok = put_str(t, key, plain(t, r->text, r->plain), ret_ref);
            break;
        case XPL_JSON_AT_WORD:
            if (xpl_str_eq(r->text, XPL_STR("true")) || xpl_str_eq(r->text, XPL_STR("false")))
                ok = put_number(t, key, r->text.len == 4 ? XPL_STR("1") : XPL_STR("0"));
            break;
        case XPL_JSON_AT_OBJECT:
        case XPL_JSON_AT_ARRAY:
            if (!xpl_json_reader_skip_raw(r)) return false;
            if (key <= TEXT_LAST_KEY) note(a, key, r->text);
            ok = put_str(t, key, on_one_line(t, r->text), ret_ref);
            break;
        case XPL_JSON_AT_ERROR:
        case XPL_JSON_AT_END:
        case XPL_JSON_AT_OBJECT_END:
        case XPL_JSON_AT_ARRAY_END:
        case XPL_JSON_AT_KEY: return false;
    }
    *ret_oom |= !ok;
    return ok;
}

// Of the texts that the last args used, which rows of the event's kind then do.
struct used_texts {
    uint32_t v[2 * MAX_KEYS];
    size_t n;
};

static void add_used(struct used_texts *u, uint32_t text) {
    if (text && u->n < 2 * MAX_KEYS) u->v[u->n++] = text;
}

static bool read_args(struct trace *t, struct args *a, struct used_texts *used, bool *ret_oom) {
    struct xpl_json_reader *const r = t->r;
    size_t n = 0;
    uint32_t key = 0;
    for (;;) {
        const enum xpl_json_at at = xpl_json_reader_next(r);
        if (at == XPL_JSON_AT_OBJECT_END) return true;
        if (at != XPL_JSON_AT_KEY) return false;
        if (n++ >= MAX_KEYS || xpl_kineto_is_full(t)) {
            if (!xpl_json_reader_skip(r)) return false;
            continue;
        }
        const xpl_str_t name = plain(t, r->text, r->plain);
        // A counter's only argument may have no name.
        key = xpl_kineto_text_after(t, key, name.len ? name : XPL_STR("value"));
        uint32_t ref;
        if (!key) *ret_oom = true;
        if (!key || !read_arg(t, a, key, &ref, ret_oom)) return false;
        add_used(used, name_of_key(a, key));
        add_used(used, ref);
    }
}

// ---- rows ----

static struct row *row_of(struct trace *t, enum row_kind kind, xpl_str_t pid, xpl_str_t tid,
                          uint32_t *ret) {
    uint32_t *const last = &t->last_row[kind];
    if (*last) {
        struct row *const r = &t->rows.v[*last - 1];
        *ret = *last - 1;
        if (xpl_str_eq_short(r->tid, tid) && xpl_str_eq_short(r->pid, pid)) return r;
    }
    xpl_strid_t p, q;
    bool is_new;
    if (!xpl_intern_put(t->categories, pid, &p) || !xpl_intern_put(t->categories, tid, &q))
        return NULL;
    uint64_t *const at =
        xpl_map_put(&t->arena, &t->row_of, (uint64_t)p.v << 32 | q.v, kind, &is_new);
    if (!at) return NULL;
    if (is_new) {
        struct row *const r = xpl_vec_push(&t->arena, &t->rows);
        if (!r) return NULL;
        *r = (struct row){.pid = xpl_intern_get(t->categories, p),
                          .tid = xpl_intern_get(t->categories, q),
                          .kind = kind,
                          .device = -1};
        *at = t->rows.n;
    }
    *last = (uint32_t)*at;
    *ret = *last - 1;
    return &t->rows.v[*ret];
}

// ---- the event ----

struct raw {
    xpl_str_t name, cat, pid, tid, id;
    bool name_plain, has_ts, bad_time;
    int64_t ts, dur;
    char ph;
    struct args args;
    struct used_texts used;
};

// The category's text, 0 where there is none, and its meaning.
static bool read_category(struct trace *t, xpl_str_t cat, uint32_t *ret, enum category *ret_is) {
    *ret = 0;
    *ret_is = CAT_OTHER;
    if (!cat.len) return true;
    if (!t->last_category || !xpl_str_eq_short(xpl_kineto_text_of(t, t->last_category), cat)) {
        t->last_category = xpl_kineto_text(t, cat);
        t->last_category_is = xpl_kineto_category(cat);
    }
    *ret = t->last_category;
    *ret_is = t->last_category_is;
    return *ret != 0;
}

static uint64_t flow_id(xpl_str_t s) {
    int64_t v;
    return read_whole(s, &v) ? (uint64_t)v : 0;
}

static bool add_flow(struct trace *t, const struct raw *e) {
    uint32_t row;
    if (!xpl_str_eq(e->cat, XPL_STR("fwdbwd")) || !e->has_ts) return true;
    if (!row_of(t, ROW_HOST, e->pid, e->tid, &row)) return false;
    struct flow *const f = xpl_vec_push(&t->arena, &t->flows);
    if (!f) return false;
    *f = (struct flow){.id = flow_id(e->id), .at = e->ts, .row = row, .ends = e->ph == 'f'};
    return true;
}

// Names of rows: "thread 25738 (python)".
static bool add_metadata(struct trace *t, const struct raw *e) {
    if (!xpl_str_eq(e->name, XPL_STR("thread_name")) || !args_have(&e->args, TEXT_NAME))
        return true;
    const xpl_str_t name = plain(t, e->args.name, false);
    for (unsigned kind = 0; kind < ROW_COUNTERS; kind++) {
        uint32_t i;
        struct row *const r = row_of(t, (enum row_kind)kind, e->pid, e->tid, &i);
        if (!r || (!r->name.len && !xpl_arena_str(&t->arena, name, &r->name))) return false;
    }
    return true;
}

// ---- begins and ends ----

// The row on which the thread or stream has begun an event last: its index plus 1, 0 for none.
// False without memory.
static bool find_begun(struct trace *t, const struct raw *e, uint32_t *ret) {
    int64_t latest = INT64_MIN;
    *ret = 0;
    for (unsigned kind = 0; kind < ROW_COUNTERS; kind++) {
        uint32_t i;
        const struct row *const r = row_of(t, (enum row_kind)kind, e->pid, e->tid, &i);
        if (!r) return false;
        if (!r->begun.n || r->events[r->begun.v[r->begun.n - 1]].begin < latest) continue;
        latest = r->events[r->begun.v[r->begun.n - 1]].begin;
        *ret = i + 1;
    }
    return true;
}

void xpl_kineto_end_event(struct trace *t, struct event *e, int64_t at) {
    if (at <= e->begin || at - e->begin > LONGEST_NS) return;
    e->length = at - e->begin;
    if (xpl_kineto_row_kind((enum category)e->category) == ROW_STREAM)
        t->device_ops.v[e->aux - 1].length = e->length;
}

// A begin and an end (B and E) are one event, with the args of both.  Kineto writes none, but other
// programs and their converters do; an end may have no name.
static bool end_event(struct trace *t, const struct raw *e) {
    uint32_t row;
    if (!find_begun(t, e, &row)) return false;
    if (!row) return true;
    struct row *const r = &t->rows.v[row - 1];
    struct event *const begun = &r->events[r->begun.v[--r->begun.n]];
    xpl_kineto_end_event(t, begun, e->ts);
    for (size_t i = 0; i < e->used.n; i++)
        use_text(t, e->used.v[i], r->kind);
    return xpl_kineto_add_stats(t, r, begun);
}

static bool begin_event(struct trace *t, struct row *r) {
    uint32_t *const slot = xpl_vec_push(&t->links, &r->begun);
    if (slot) *slot = (uint32_t)(r->n - 1);
    return slot != NULL;
}

static bool add_aux(struct trace *t, struct event *e, const struct raw *raw) {
    const struct args *const a = &raw->args;
    switch ((enum category)e->category) {
        case CAT_OP: e->aux = a->external <= UINT32_MAX ? (uint32_t)a->external : 0; break;
        case CAT_RUNTIME: {
            if (!a->correlation) break;
            struct launch *const l = xpl_vec_push(&t->links, &t->launches);
            if (!l) return false;
            *l = (struct launch){.correlation = a->correlation, .order = (uint32_t)t->launches.n};
            e->aux = (uint32_t)t->launches.n;
            break;
        }
        case CAT_KERNEL:
        case CAT_COPY:
        case CAT_SET: {
            struct device_op *const d = xpl_vec_push(&t->arena, &t->device_ops);
            if (!d) return false;
            *d = (struct device_op){.correlation = a->correlation,
                                    .external = a->external,
                                    .length = e->length,
                                    .name = e->name};
            e->aux = (uint32_t)t->device_ops.n;
            break;
        }
        case CAT_MEMORY: {
            // [OutOfMemory] has the bytes that were refused.
            if (!args_have(a, TEXT_MEM_BYTES) || !xpl_str_eq(raw->name, XPL_STR("[memory]"))) break;
            struct memory *const m = xpl_vec_push(&t->arena, &t->memory);
            if (!m) return false;
            *m = (struct memory){.bytes = xpl_kineto_bytes(a->mem_bytes),
                                 .allocated = xpl_kineto_bytes(a->allocated),
                                 .reserved = xpl_kineto_bytes(a->reserved),
                                 .address = a->address,
                                 .device_type = (int32_t)a->device_type,
                                 .device_id = (int32_t)a->device_id,
                                 .has_allocated = args_have(a, TEXT_TOTAL_ALLOCATED),
                                 .has_reserved = args_have(a, TEXT_TOTAL_RESERVED)};
            e->aux = (uint32_t)t->memory.n;
            break;
        }
        case CAT_OTHER:
        case CAT_ANNOTATION:
        case CAT_PYTHON:
        case CAT_DEVICE_ANNOTATION:
        case CAT_SYNC:
        case CAT_MARKER:
        case CAT_OVERHEAD:
        case CAT_SPAN:
        case CAT_COUNTER:
        case N_CATEGORIES: break;
    }
    return true;
}

// "[1, 2, 3]" as "1,2,3"; the number of bytes.
static int put_dims(char *to, size_t size, const char *key, xpl_str_t dims) {
    size_t n = (size_t)snprintf(to, size, "%s:", key);
    for (size_t i = 0; i < dims.len && n + 2 < size; i++)
        if ((dims.ptr[i] >= '0' && dims.ptr[i] <= '9') || dims.ptr[i] == ',') to[n++] = dims.ptr[i];
    to[n++] = ' ';
    return (int)n;
}

// What the table of kernels reads: "regs:32 dynamic_shared:0 grid:1,1,1 block:128,1,1 occ_pct:50".
static bool put_kernel_details(struct trace *t, const struct args *a) {
    char text[256];
    int n = snprintf(text, sizeof text, "regs:%lld static_shared:0 dynamic_shared:%lld ",
                     (long long)a->registers, (long long)a->shared);
    if (a->grid.len) n += put_dims(text + n, 64, "grid", a->grid);
    if (a->block.len) n += put_dims(text + n, 64, "block", a->block);
    if (args_have(a, TEXT_OCCUPANCY))
        n += snprintf(text + n, sizeof text - (size_t)n, "occ_pct:%g ", a->occupancy);
    uint32_t ref;
    if (!put_str(t, TEXT_KERNEL_DETAILS, (xpl_str_t){text, (size_t)n - 1}, &ref)) return false;
    use_text(t, TEXT_KERNEL_DETAILS, ROW_STREAM);
    use_text(t, ref, ROW_STREAM);
    return true;
}

static bool put_own_stats(struct trace *t, const struct raw *raw, enum category c, uint32_t cat) {
    const enum row_kind kind = xpl_kineto_row_kind(c);
    if (cat) {
        if (!xpl_kineto_put_number(t, TEXT_CATEGORY, STAT_REF, cat)) return false;
        use_text(t, TEXT_CATEGORY, kind);
        use_text(t, cat, kind);
    }
    if (c != CAT_KERNEL) return true;
    if (args_have(&raw->args, TEXT_GRAPH_ID)) {
        const uint64_t id = (uint64_t)raw->args.graph_id;
        if (!xpl_kineto_put_number(t, TEXT_CUDA_GRAPH_ID, STAT_UINT, id)) return false;
        use_text(t, TEXT_CUDA_GRAPH_ID, kind);
    }
    return put_kernel_details(t, &raw->args);
}

// A kernel while the profiler counts: its time is a share of the range's, not its own.
static bool is_range(xpl_str_t category) {
    return xpl_str_eq(category, XPL_STR("cuda_profiler_range"));
}

// What kinds of events a trace has: for warnings, and the vendor of the device.
static void note_kind(struct trace *t, enum category c, const struct raw *raw) {
    t->has_kineto |= c != CAT_OTHER && c != CAT_COUNTER;
    t->has_ops |= c == CAT_OP;
    t->has_kernels |= c == CAT_KERNEL && !is_range(raw->cat);
    t->has_ranges |= is_range(raw->cat);
    t->has_stacks |= c == CAT_PYTHON;
    if (c != CAT_RUNTIME) return;
    t->has_amd |= xpl_str_starts(raw->name, XPL_STR("hip"));
    t->has_cuda |= xpl_str_starts(raw->name, XPL_STR("cu"));
}

// Events of torch_npu have these args and no category.
static bool is_npu(const struct raw *raw) {
    return raw->ph != 'C' && !raw->cat.len &&
           (args_have(&raw->args, TEXT_CONNECTION_ID) || args_have(&raw->args, TEXT_TASK_TYPE));
}

// By `cat`, or by the args of events that have none.
static enum category category_of(const struct raw *raw, enum category cat) {
    return raw->ph == 'C' ? CAT_COUNTER
           : is_npu(raw)  ? xpl_kineto_npu_category(raw->args.task_type, raw->name)
                          : xpl_kineto_category_of(cat, raw->cat.len != 0, raw->name);
}

// The connection of an event of torch_npu is its correlation.  Only after all members of the event
// its category is known.
static bool correlate(struct trace *t, struct raw *raw, enum row_kind kind) {
    if (!is_npu(raw) || !raw->args.connection || raw->args.correlation) return true;
    raw->args.correlation = raw->args.connection;
    use_text(t, TEXT_CORRELATION_ID, kind);
    return xpl_kineto_put_int(t, TEXT_CORRELATION_ID, (int64_t)raw->args.correlation);
}

static bool store(struct trace *t, struct raw *raw) {
    enum category c;
    uint32_t cat;
    if (!read_category(t, raw->cat, &cat, &c)) return false;
    c = category_of(raw, c);
    const enum row_kind kind = xpl_kineto_row_kind(c);
    xpl_strid_t name;
    uint32_t row;
    note_kind(t, c, raw);
    if (!correlate(t, raw, kind) || !put_own_stats(t, raw, c, cat)) return false;
    if (!raw->name_plain) {
        t->scratch.n = 0;
        xpl_json_reader_unescape(raw->name, &t->scratch);
        raw->name = (xpl_str_t){(const char *)t->scratch.p, t->scratch.n};
    }
    const bool counter = kind == ROW_COUNTERS; // all are on one
    struct row *const r =
        row_of(t, kind, counter ? XPL_STR("") : raw->pid, counter ? XPL_STR("") : raw->tid, &row);
    if (!r || !xpl_intern_put(t->names, xpl_str_sub(raw->name, 0, MAX_NAME), &name)) return false;
    struct event *const e = xpl_kineto_push(t, r);
    if (!e) return false;
    if (kind != ROW_HOST && args_have(&raw->args, TEXT_DEVICE))
        r->device = (int32_t)raw->args.device;
    else if (kind != ROW_HOST && args_have(&raw->args, TEXT_TASK_TYPE))
        r->device = 0; // the first: pid is not the index of a device
    for (size_t i = 0; i < raw->used.n; i++)
        use_text(t, raw->used.v[i], kind);
    *e = (struct event){.begin = raw->ts,
                        .length = raw->dur < 0 ? 0 : raw->dur,
                        .name = name.v,
                        .category = (unsigned)c & 127};
    return xpl_kineto_end_stats(t, r, e) && add_aux(t, e, raw) &&
           (raw->ph != 'B' || begin_event(t, r));
}

// A value that is a text, or a number as text.
static bool read_text(struct trace *t, xpl_str_t *ret) {
    const enum xpl_json_at at = xpl_json_reader_next(t->r);
    *ret = t->r->text;
    if (at == XPL_JSON_AT_OBJECT || at == XPL_JSON_AT_ARRAY) return xpl_json_reader_skip_raw(t->r);
    return at == XPL_JSON_AT_STRING || at == XPL_JSON_AT_NUMBER || at == XPL_JSON_AT_WORD;
}

static bool read_time(struct trace *t, struct raw *e, int64_t *ret, bool *ret_has) {
    xpl_str_t text;
    if (!read_text(t, &text)) return false;
    const bool ok = read_ns(text, ret);
    e->bad_time |= !ok;
    if (ret_has) *ret_has = ok;
    return true;
}

enum member { OTHER, PH, TS, DUR, NAME, CAT, PID, TID, ID, ARGS };

static bool is(xpl_str_t key, const char *name) {
    for (size_t i = 0; i < key.len; i++)
        if (key.ptr[i] != name[i]) return false;
    return true;
}

static enum member member_of(xpl_str_t key) {
    switch (key.len) {
        case 2: return is(key, "ph") ? PH : is(key, "ts") ? TS : is(key, "id") ? ID : OTHER;
        case 3:
            return is(key, "cat")   ? CAT
                   : is(key, "pid") ? PID
                   : is(key, "tid") ? TID
                   : is(key, "dur") ? DUR
                                    : OTHER;
        case 4: return is(key, "name") ? NAME : is(key, "args") ? ARGS : OTHER;
        default: return OTHER;
    }
}

static bool read_event_args(struct trace *t, struct raw *e, bool *ret_oom) {
    const enum xpl_json_at at = xpl_json_reader_next(t->r);
    if (at == XPL_JSON_AT_OBJECT) return read_args(t, &e->args, &e->used, ret_oom);
    if (at == XPL_JSON_AT_ARRAY) return xpl_json_reader_skip_raw(t->r);
    return at == XPL_JSON_AT_STRING || at == XPL_JSON_AT_NUMBER || at == XPL_JSON_AT_WORD;
}

static bool read_member(struct trace *t, struct raw *e, xpl_str_t key, bool *ret_oom) {
    xpl_str_t text;
    switch (member_of(key)) {
        case TS: return read_time(t, e, &e->ts, &e->has_ts);
        case DUR: return read_time(t, e, &e->dur, NULL);
        case NAME:
            if (!read_text(t, &e->name)) return false;
            e->name_plain = t->r->plain;
            return true;
        case CAT: return read_text(t, &e->cat);
        case PID: return read_text(t, &e->pid);
        case TID: return read_text(t, &e->tid);
        case ID: return read_text(t, &e->id);
        case PH:
            if (!read_text(t, &text)) return false;
            e->ph = text.len == 1 ? text.ptr[0] : 0;
            return true;
        case ARGS: return read_event_args(t, e, ret_oom);
        case OTHER: break;
    }
    return xpl_json_reader_skip(t->r);
}

bool xpl_kineto_read_event(struct trace *t, bool *ret_oom) {
    struct raw e;
    memset(&e, 0, offsetof(struct raw, used.v));
    e.used.n = 0;
    xpl_kineto_begin_stats(t);
    for (;;) {
        const enum xpl_json_at at = xpl_json_reader_next(t->r);
        if (at == XPL_JSON_AT_OBJECT_END) break;
        if (at != XPL_JSON_AT_KEY || !read_member(t, &e, t->r->text, ret_oom)) return false;
    }
    bool ok = true;
    if (e.ph == 'M')
        ok = add_metadata(t, &e);
    else if (e.ph == 's' || e.ph == 'f' || e.ph == 't')
        ok = add_flow(t, &e);
    else if (!e.has_ts || e.bad_time || e.dur > LONGEST_NS)
        t->lost.untimed++;
    else if (e.ph == 'E')
        ok = end_event(t, &e);
    else {
        ok = store(t, &e);
        *ret_oom |= !ok;
        return ok;
    }
    *ret_oom |= !ok;
    return ok;
}
