// SPDX-License-Identifier: Apache-2.0
// The trace from its begin to its end: the members other than events, and recovery after damage.
#include <inttypes.h>
#include <string.h>

#include "analysis/kineto/impl.h"
#include "base/text/parse.h"

enum {
    CANCEL_EVERY = 1024,
    MAX_LOG = 32,        // lines
    MAX_PROPERTY = 4096, // bytes
    MAX_PROPERTIES = 64,
    MAX_DEVICES = 1024,
    MAX_REREAD = 256 << 20, // bytes that are read again behind damaged events, all together
    RESYNC_KEEP = 64, // bytes at the end of the buffer that may belong to the next event's begin
};

// ---- going on after damage ----

static bool is_blank(char c) {
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static const char *skip_blanks(const char *p, const char *end) {
    while (p < end && is_blank(*p))
        p++;
    return p;
}

// Zeros behind the trace are padding, as those behind gzip are.
static bool is_padding(char c) {
    return !c || is_blank(c);
}

static const char *skip_padding(const char *p, const char *end) {
    while (p < end && is_padding(*p))
        p++;
    return p;
}

static const char *back_over_blanks(const char *p, const char *from) {
    while (p > from && is_blank(p[-1]))
        p--;
    return p;
}

// Whether one of the keys, quoted, is at `p`.
static bool has_key(const char *p, const char *end, const char *const *keys, size_t n) {
    if (p == end || *p != '"') return false;
    for (size_t i = 0; i < n; i++) {
        const size_t len = strlen(keys[i]);
        if ((size_t)(end - p) > len + 1 && memcmp(p + 1, keys[i], len) == 0 && p[len + 1] == '"')
            return true;
    }
    return false;
}

// Whether an event begins at the brace.
static bool begins_event(const char *brace, const char *from, const char *end) {
    static const char *const keys[] = {"ph", "cat", "name", "pid", "tid",
                                       "ts", "dur", "args", "id"};
    const char *const before = back_over_blanks(brace, from), *const key =
                                                                  skip_blanks(brace + 1, end);
    // The C++ writer begins each event on a line, with its phase.
    if (memchr(before, '\n', (size_t)(brace - before)) && has_key(key, end, keys, 1)) return true;
    if (before == from || before[-1] != ',') return false;
    const char *const last = back_over_blanks(before - 1, from);
    return last > from && last[-1] == '}' && has_key(key, end, keys, sizeof keys / sizeof *keys);
}

// Whether the array of events ends at the bracket.
static bool ends_events(const char *bracket, const char *end) {
    static const char *const keys[] = {"traceName",        "baseTimeNanoseconds", "displayTimeUnit",
                                       "deviceProperties", "distributedInfo",     "schemaVersion",
                                       "trace_id",         "record_shapes",       "with_stack"};
    const char *p = skip_blanks(bracket + 1, end);
    if (p == end) return false; // of an array in args, as likely
    if (*p == '}') return skip_padding(p + 1, end) == end;
    return *p == ',' && has_key(skip_blanks(p + 1, end), end, keys, sizeof keys / sizeof *keys);
}

// The next place behind `from` where an event begins, or the array of them ends; NULL: none in the
// buffer.
static const char *find_next(const char *from, const char *end) {
    for (const char *p = from + 1; p < end; p++) {
        if (*p == '{' && begins_event(p, from, end)) return p;
        if (*p == ']' && ends_events(p, end)) return p;
    }
    return NULL;
}

// Goes on behind an event that is damaged.  False when nothing follows.
static bool resync(struct trace *t, const char *event, unsigned depth) {
    struct xpl_json_reader *const r = t->r;
    for (;;) {
        const char *const p = find_next(event, r->end);
        if (p) {
            xpl_json_reader_resume(r, p, depth);
            return true;
        }
        if (r->ended) return false;
        const size_t left = (size_t)(r->end - event);
        xpl_json_reader_resume(r, r->end - (left < RESYNC_KEEP ? left : RESYNC_KEEP), depth);
        xpl_json_reader_release(r);
        xpl_json_reader_hold(r);
        event = r->p;
    }
}

static void note_damage(struct trace *t, uint64_t at) {
    if (!t->lost.damaged++) t->lost.first_damaged_at = at;
}

static void note_cut(struct trace *t, uint64_t at) {
    t->lost.cut = true;
    t->lost.cut_at = at;
}

static uint64_t end_of_text(const struct trace *t) {
    return t->r->base + (uint64_t)(t->r->end - t->r->begin);
}

// Whether the text ends, before padding, as a trace or its list of events does.
static bool is_closed(const struct xpl_json_reader *r) {
    const char *p = r->end;
    while (p > r->begin && is_padding(p[-1]))
        p--;
    return p > r->begin && (p[-1] == '}' || p[-1] == ']');
}

// ---- events ----

// Goes on behind a damaged event, which was read up to `behind`; false when nothing follows, or
// when damage makes the reader read the same bytes again and again.
static bool go_on(struct trace *t, const char *from, uint64_t behind, unsigned depth) {
    if (!resync(t, from, depth)) return false;
    const uint64_t at = xpl_json_reader_offset(t->r);
    t->lost.reread += behind > at ? behind - at : 0;
    return t->lost.reread <= MAX_REREAD;
}

// An event is at most XPL_JSON_READER_AHEAD bytes long, whether the text is here or comes from a
// source: the reader sees no more, so that one that does not end costs no more.  *ret_end: nothing
// follows that can be read.
static xpl_status_t read_events(struct trace *t, bool *ret_end) {
    struct xpl_json_reader *const r = t->r;
    const unsigned depth = r->depth;
    for (uint64_t n = 0;; n++) {
        bool oom = false;
        if (n % CANCEL_EVERY == 0 && xpl_kineto_cancelled(t)) return xpl_kineto_failure(t);
        xpl_json_reader_hold(r);
        const char *const from = r->p, *const end = r->end;
        const char *event = from; // its brace
        const uint64_t at = xpl_json_reader_offset(r);
        const bool is_whole = end - from <= XPL_JSON_READER_AHEAD;
        if (!is_whole) r->end = from + XPL_JSON_READER_AHEAD;
        const enum xpl_json_at token = xpl_json_reader_next(r);
        const bool is_event = token == XPL_JSON_AT_OBJECT;
        if (is_event) event = r->p - 1;
        const bool ok = is_event ? xpl_kineto_read_event(t, &oom)
                                 : token > XPL_JSON_AT_END && token != XPL_JSON_AT_ARRAY;
        const uint64_t behind = at + (uint64_t)((r->cut ? r->end : r->p) - from);
        r->end = end;
        if (token == XPL_JSON_AT_ARRAY_END) break;
        if (oom) return xpl_kineto_failure(t);
        if (!ok) {
            const bool cut = r->cut && r->ended && is_whole;
            const uint64_t event_at = at + (uint64_t)(event - from);
            *ret_end = !go_on(t, event, behind, depth);
            if (*ret_end && cut)
                note_cut(t, end_of_text(t));
            else if (*ret_end && t->lost.reread <= MAX_REREAD && !is_closed(r))
                note_cut(t, event_at);
            else
                note_damage(t, event_at);
            if (*ret_end) break;
        }
        xpl_json_reader_release(r);
    }
    xpl_json_reader_release(r);
    return XPL_OK;
}

// ---- the other members ----

static bool copy_text(struct trace *t, xpl_str_t text, bool plain, xpl_str_t *ret) {
    if (!plain) {
        t->scratch.n = 0;
        xpl_json_reader_unescape(text, &t->scratch);
        text = (xpl_str_t){(const char *)t->scratch.p, t->scratch.n};
    }
    return !t->scratch.failed && xpl_arena_str(&t->arena, text, ret);
}

static bool is_text(enum xpl_json_at at) {
    return at == XPL_JSON_AT_STRING || at == XPL_JSON_AT_NUMBER || at == XPL_JSON_AT_WORD;
}

typedef bool (*member_fn)(struct trace *t, void *ctx, xpl_str_t key, bool *ret_oom);

// Reads the members of the object whose opening brace was the last token; `fn` each value.
static bool read_members(struct trace *t, member_fn fn, void *ctx, bool *ret_oom) {
    for (;;) {
        const enum xpl_json_at at = xpl_json_reader_next(t->r);
        char key[64];
        if (at == XPL_JSON_AT_OBJECT_END) return true;
        if (at != XPL_JSON_AT_KEY) return false;
        const xpl_str_t name = xpl_str_sub(t->r->text, 0, sizeof key);
        memcpy(key, name.ptr, name.len); // the reader may move on
        if (!fn(t, ctx, (xpl_str_t){key, name.len}, ret_oom)) return false;
    }
}

static bool read_int_value(struct trace *t, int64_t *ret) {
    const enum xpl_json_at at = xpl_json_reader_next(t->r);
    if (at == XPL_JSON_AT_OBJECT || at == XPL_JSON_AT_ARRAY) return xpl_json_reader_skip(t->r);
    if (!is_text(at)) return false;
    (void)xpl_parse_int(t->r->text, INT64_MIN, INT64_MAX, ret);
    return true;
}

static bool read_str_value(struct trace *t, xpl_str_t *ret, bool *ret_oom) {
    const enum xpl_json_at at = xpl_json_reader_next(t->r);
    if (at == XPL_JSON_AT_OBJECT || at == XPL_JSON_AT_ARRAY) return xpl_json_reader_skip(t->r);
    if (!is_text(at)) return false;
    const bool ok = copy_text(t, xpl_str_sub(t->r->text, 0, MAX_PROPERTY), t->r->plain, ret);
    *ret_oom |= !ok;
    return ok;
}

static bool read_device_member(struct trace *t, void *ctx, xpl_str_t key, bool *ret_oom) {
    struct device_properties *const d = ctx;
    if (xpl_str_eq(key, XPL_STR("name"))) return read_str_value(t, &d->name, ret_oom);
    int64_t *const to = xpl_str_eq(key, XPL_STR("id"))               ? &d->id
                        : xpl_str_eq(key, XPL_STR("totalGlobalMem")) ? &d->memory
                        : xpl_str_eq(key, XPL_STR("computeMajor"))   ? &d->major
                        : xpl_str_eq(key, XPL_STR("computeMinor"))   ? &d->minor
                        : xpl_str_eq(key, XPL_STR("numSms"))         ? &d->cores
                                                                     : NULL;
    return to ? read_int_value(t, to) : xpl_json_reader_skip(t->r);
}

static bool read_devices(struct trace *t, bool *ret_oom) {
    for (;;) {
        struct device_properties d = {.id = (int64_t)t->devices.n};
        const enum xpl_json_at at = xpl_json_reader_next(t->r);
        if (at == XPL_JSON_AT_ARRAY_END) return true;
        if (at != XPL_JSON_AT_OBJECT || !read_members(t, read_device_member, &d, ret_oom))
            return false;
        if (t->devices.n >= MAX_DEVICES) continue;
        struct device_properties *const slot = xpl_vec_push(&t->arena, &t->devices);
        if (!slot) return *ret_oom = true, false;
        *slot = d;
    }
}

static bool add_property(struct trace *t, xpl_str_t key, xpl_str_t text, bool plain,
                         bool *ret_oom) {
    if (t->properties.n >= MAX_PROPERTIES || text.len > MAX_PROPERTY) return true;
    const uint32_t id = xpl_kineto_text(t, key);
    struct property *const p = id ? xpl_vec_push(&t->arena, &t->properties) : NULL;
    if (p) *p = (struct property){.key = id};
    if (!p || !copy_text(t, text, plain, &p->text)) return *ret_oom = true, false;
    return true;
}

static bool read_distributed_member(struct trace *t, void *ctx, xpl_str_t key, bool *ret_oom) {
    (void)ctx;
    if (xpl_str_eq(key, XPL_STR("rank"))) return read_int_value(t, &t->rank);
    if (xpl_str_eq(key, XPL_STR("world_size"))) return read_int_value(t, &t->world_size);
    if (!xpl_str_eq(key, XPL_STR("backend"))) return xpl_json_reader_skip(t->r);
    const enum xpl_json_at at = xpl_json_reader_next(t->r);
    return is_text(at) && add_property(t, XPL_STR("backend"), t->r->text, t->r->plain, ret_oom);
}

static bool read_log(struct trace *t, bool errors, bool *ret_oom) {
    for (;;) {
        const enum xpl_json_at at = xpl_json_reader_next(t->r);
        if (at == XPL_JSON_AT_ARRAY_END) return true;
        if (at == XPL_JSON_AT_OBJECT || at == XPL_JSON_AT_ARRAY) {
            if (!xpl_json_reader_skip(t->r)) return false;
            continue;
        }
        if (!is_text(at)) return false;
        if ((errors ? t->log_errors.n : t->log_warnings.n) >= MAX_LOG) continue;
        xpl_str_t *const slot = errors ? xpl_vec_push(&t->arena, &t->log_errors)
                                       : xpl_vec_push(&t->arena, &t->log_warnings);
        if (!slot || !copy_text(t, xpl_str_sub(t->r->text, 0, MAX_PROPERTY), t->r->plain, slot))
            return *ret_oom = true, false;
    }
}

static bool read_base(struct trace *t) {
    int64_t v = 0;
    if (!read_int_value(t, &v)) return false;
    if (v < 0 || v > XPL_KINETO_LATEST_NS) v = 0;
    t->base_ns = v;
    return true;
}

// A value that is kept as text, where it is short.
static bool read_property(struct trace *t, xpl_str_t key, enum xpl_json_at at, bool *ret_oom) {
    if (at == XPL_JSON_AT_OBJECT || at == XPL_JSON_AT_ARRAY) return xpl_json_reader_skip(t->r);
    if (!is_text(at)) return false;
    t->has_shapes |= xpl_str_eq(key, XPL_STR("record_shapes"));
    return add_property(t, key, t->r->text, t->r->plain, ret_oom);
}

struct top {
    xpl_status_t status;
    bool end;
};

static bool read_top_member(struct trace *t, void *ctx, xpl_str_t key, bool *ret_oom) {
    struct top *const top = ctx;
    if (xpl_str_eq(key, XPL_STR("baseTimeNanoseconds"))) return read_base(t);
    const enum xpl_json_at at = xpl_json_reader_next(t->r);
    if (at == XPL_JSON_AT_ARRAY) {
        if (xpl_str_eq(key, XPL_STR("traceEvents"))) {
            t->has_events = true;
            top->status = read_events(t, &top->end);
            return top->status == XPL_OK && !top->end;
        }
        if (xpl_str_eq(key, XPL_STR("deviceProperties"))) return read_devices(t, ret_oom);
        if (xpl_str_eq(key, XPL_STR("WARNING"))) return read_log(t, false, ret_oom);
        if (xpl_str_eq(key, XPL_STR("ERROR"))) return read_log(t, true, ret_oom);
    }
    if (at == XPL_JSON_AT_OBJECT && xpl_str_eq(key, XPL_STR("distributedInfo")))
        return read_members(t, read_distributed_member, NULL, ret_oom);
    if (at == XPL_JSON_AT_STRING && xpl_str_eq(key, XPL_STR("host_name"))) {
        const bool ok = copy_text(t, t->r->text, t->r->plain, &t->host_name);
        *ret_oom |= !ok;
        return ok;
    }
    return read_property(t, key, at, ret_oom);
}

// After damage outside the events: the next known member of the outermost object.
static bool resync_top(struct trace *t) {
    static const char *const keys[] = {"traceEvents",      "traceName",       "baseTimeNanoseconds",
                                       "deviceProperties", "distributedInfo", "displayTimeUnit",
                                       "record_shapes",    "with_stack",      "trace_id",
                                       "host_name",        "schemaVersion"};
    struct xpl_json_reader *const r = t->r;
    const size_t n = sizeof keys / sizeof *keys;
    for (;;) {
        for (const char *p = r->p; p < r->end; p++)
            if (*p == '"' && has_key(p, r->end, keys, n)) {
                xpl_json_reader_resume(r, p, 1);
                return true;
            }
        if (r->ended) return false;
        const size_t left = (size_t)(r->end - r->p);
        xpl_json_reader_resume(r, r->end - (left < RESYNC_KEEP ? left : RESYNC_KEEP), 1);
        xpl_json_reader_release(r);
        xpl_json_reader_hold(r);
        xpl_json_reader_release(r);
    }
}

static xpl_status_t read_top(struct trace *t) {
    struct xpl_json_reader *const r = t->r;
    struct top top = {.status = XPL_OK};
    for (;;) {
        bool oom = false;
        const uint64_t at = xpl_json_reader_offset(r);
        if (read_members(t, read_top_member, &top, &oom)) return XPL_OK;
        XPL_TRY(top.status);
        if (oom) return xpl_kineto_failure(t);
        if (top.end) return XPL_OK;
        const bool cut = r->cut && r->ended;
        const uint64_t behind = xpl_json_reader_offset(r);
        if (!resync_top(t) || xpl_json_reader_offset(r) == at) {
            if (cut)
                note_cut(t, end_of_text(t));
            else if (!t->lost.damaged)
                note_damage(t, behind);
            return XPL_OK;
        }
        note_damage(t, behind);
    }
}

static void read_padding(struct xpl_json_reader *r) {
    do {
        xpl_json_reader_hold(r);
        r->p = skip_padding(r->p, r->end);
        xpl_json_reader_release(r);
    } while (r->p == r->end && !r->ended);
}

// A second trace behind the first one would have other times and threads.
static void note_behind(struct trace *t) {
    struct xpl_json_reader *const r = t->r;
    if (r->depth || r->fault) return;
    read_padding(r);
    if (xpl_json_reader_next(r) == XPL_JSON_AT_END) return;
    t->lost.behind_at = xpl_json_reader_offset(r);
}

// If the source was cancelled or ran out of memory, the trace is not damaged.
static xpl_status_t check_source(const struct trace *t) {
    const xpl_status_t st = t->r->status;
    if (st != XPL_CANCELLED && st != XPL_RESOURCE_EXHAUSTED) return XPL_OK;
    XPL_RETURN_ERROR(t->err, st, "%s", t->r->err ? t->r->err->msg : "");
}

xpl_status_t xpl_kineto_read(struct trace *t) {
    struct xpl_json_reader *const r = t->r;
    bool end = false;
    xpl_json_reader_hold(r);
    const char *const why =
        xpl_kineto_refusal((xpl_bytes_t){(const uint8_t *)r->p, (size_t)(r->end - r->p)});
    if (r->end - r->p >= 3 && memcmp(r->p, "\xef\xbb\xbf", 3) == 0) r->p += 3;
    xpl_json_reader_release(r);
    const enum xpl_json_at at = xpl_json_reader_next(r);
    XPL_TRY(check_source(t));
    if (at != XPL_JSON_AT_OBJECT && at != XPL_JSON_AT_ARRAY)
        XPL_RETURN_ERROR_AT(t->err, XPL_DATA_LOSS, 0, "%s", why);
    XPL_TRY(at == XPL_JSON_AT_OBJECT ? read_top(t) : read_events(t, &end));
    note_behind(t);
    XPL_TRY(check_source(t));
    if (r->status != XPL_OK) {
        t->lost.broken = true;
        t->lost.cut = false; // that is why
    }
    if (at == XPL_JSON_AT_OBJECT && !t->has_events && !is_damaged(&t->lost))
        XPL_RETURN_ERROR_AT(t->err, XPL_DATA_LOSS, 0,
                            "the file is not a trace: it has no list of traceEvents");
    return XPL_OK;
}
