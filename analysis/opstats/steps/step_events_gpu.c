// SPDX-License-Identifier: Apache-2.0
// Steps of GPU streams: what each kernel and memory copy was, by its name and statistics.
#include <strings.h>

#include "analysis/opstats/steps/step_events_gpu.h"
#include "analysis/opstats/steps/step_markers.h"
#include "analysis/xplane/tf_op.h"

enum { CANCEL_EVERY = 8192 };

// Decided once per metadata entry; compute kernels without tensor shapes are recognized only by
// name.
struct gpu_md {
    uint8_t kind; // enum xpl_span_type
    bool compute; // statistic `shape` may change the precision
};

static enum xpl_span_type precision_of(xpl_str_t name, xpl_str_t shapes) {
    const bool half =
        shapes.len ? xpl_str_has(shapes, XPL_STR("half"))
                   : xpl_str_has(name, XPL_STR("half")) || xpl_str_has(name, XPL_STR("fp16"));
    return half ? XPL_SPAN_DEVICE_COMPUTE_16 : XPL_SPAN_DEVICE_COMPUTE_32;
}

static struct gpu_md classify(xpl_str_t name) {
    switch (xpl_tf_op_parse(name).category) {
        case XPL_TF_OP_MEMCPY_HTOD: return (struct gpu_md){XPL_SPAN_HOST_TO_DEVICE, false};
        case XPL_TF_OP_MEMCPY_DTOH: return (struct gpu_md){XPL_SPAN_DEVICE_TO_HOST, false};
        case XPL_TF_OP_MEMCPY_DTOD: return (struct gpu_md){XPL_SPAN_DEVICE_TO_DEVICE, false};
        case XPL_TF_OP_UNKNOWN:
        case XPL_TF_OP_PYTORCH:
        case XPL_TF_OP_TENSORFLOW:
        case XPL_TF_OP_JAX:
        case XPL_TF_OP_TF_DATA:
        case XPL_TF_OP_MEMCPY_HTOH: break;
    }
    if (name.len >= 4 && strncasecmp(name.ptr, "nccl", 4) == 0)
        return (struct gpu_md){XPL_SPAN_DEVICE_COLLECTIVES, false};
    return (struct gpu_md){(uint8_t)precision_of(name, (xpl_str_t){"", 0}), true};
}

static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

// A decimal number as absl::SimpleAtoi reads it; 0 for anything else.
static uint64_t parse_u64(xpl_str_t s) {
    size_t i = 0;
    while (i < s.len && is_space(s.ptr[i]))
        i++;
    while (s.len > i && is_space(s.ptr[s.len - 1]))
        s.len--;
    if (i < s.len && s.ptr[i] == '+') i++;
    uint64_t v = 0;
    for (; i < s.len; i++) {
        const unsigned digit = (unsigned)(s.ptr[i] - '0');
        if (digit > 9 || v > (UINT64_MAX - digit) / 10) return 0;
        v = v * 10 + digit;
    }
    return v;
}

// The part of `s` from *at up to a colon or line end; moves *at behind that.
static xpl_str_t next_part(xpl_str_t s, size_t *at) {
    const size_t from = *at;
    size_t end = from;
    while (end < s.len && s.ptr[end] != ':' && s.ptr[end] != '\n')
        end++;
    *at = end + 1;
    return xpl_str_sub(s, from, end - from);
}

// The value of "num_bytes" in a text of names and values, all apart by colons and line ends.
static uint64_t transferred_bytes(xpl_str_t details) {
    for (size_t at = 0; at < details.len;) {
        const xpl_str_t name = next_part(details, &at);
        const xpl_str_t value = at <= details.len ? next_part(details, &at) : (xpl_str_t){"", 0};
        if (xpl_str_eq(name, XPL_STR("num_bytes"))) return parse_u64(value);
    }
    return 0;
}

struct gpu_event {
    int64_t correlation_id;
    xpl_str_t shapes, memcpy_details;
};

static struct gpu_event read_stats(const struct xpl_event *ev) {
    struct gpu_event e = {.correlation_id = -1};
    struct xpl_stats stats = ev->stats;
    struct xpl_stat s;
    while (xpl_stats_next(&stats, &s) == XPL_WIRE_FIELD)
        switch ((int)s.md->type) {
            case XPL_STAT_CORRELATION_ID: e.correlation_id = xpl_stat_int(&s); break;
            case XPL_STAT_TENSOR_SHAPES: e.shapes = xpl_op_text(xpl_stat_str(&s)); break;
            case XPL_STAT_MEMCPY_DETAILS: e.memcpy_details = xpl_op_text(xpl_stat_str(&s)); break;
            default: break;
        }
    return e;
}

static bool add_event(struct xpl_steps *steps, const struct xpl_line *line,
                      const struct xpl_event *ev, const struct gpu_event *e, struct gpu_md md,
                      int64_t group) {
    struct xpl_step *st = xpl_steps_put(steps, group);
    if (!st) return false;
    enum xpl_span_type kind = md.kind;
    if (md.compute && e->shapes.len)
        kind = precision_of(xpl_op_text(line->plane->event_md[ev->md].name), e->shapes);
    const struct xpl_timespan span = {(uint64_t)xpl_event_begin_ps(line, ev),
                                      (uint64_t)ev->duration_ps};
    xpl_step_add_work(st, span);
    if (!xpl_step_add_span(st, kind, span, steps->arena)) return false;
    if (kind == XPL_SPAN_DEVICE_COLLECTIVES) {
        // The end is relative to its line, unlike the start: upstream mixes the two.
        const struct xpl_all_reduce_info info = {.start_time_ps = span.begin_ps,
                                                 .end_time_ps = (uint64_t)ev->offset_ps +
                                                                (uint64_t)ev->duration_ps};
        return xpl_step_add_collective(st, (uint32_t)line->plane->id, &info, steps->arena);
    }
    return kind != XPL_SPAN_HOST_TO_DEVICE && kind != XPL_SPAN_DEVICE_TO_HOST &&
                   kind != XPL_SPAN_DEVICE_TO_DEVICE
               ? true
               : xpl_step_add_transfer(st, kind, span, transferred_bytes(e->memcpy_details),
                                       steps->arena);
}

// Of each metadata entry of the plane; *ret is NULL for a line of fewer events, which classifies
// these: a plane may have as many lines as names.
static bool classify_all(const struct xpl_line *line, struct xpl_arena *arena,
                         struct gpu_md **ret) {
    const struct xpl_plane *const p = line->plane;
    *ret = NULL;
    if (line->n_events < p->n_event_md) return true;
    *ret = xpl_arena_array(arena, p->n_event_md, sizeof **ret);
    for (uint32_t i = 0; *ret && i < p->n_event_md; i++)
        (*ret)[i] = classify(xpl_op_text(p->event_md[i].name));
    return *ret;
}

xpl_status_t xpl_stream_steps(const struct xpl_convert *c, const struct xpl_line *line,
                              const struct xpl_steps *markers, struct xpl_steps *ret,
                              struct xpl_error *err) {
    struct xpl_marked marked = {.markers = markers};
    struct gpu_md *md;
    if (!classify_all(line, ret->arena, &md)) XPL_RETURN_OOM(err, "GPU steps");
    struct xpl_group_cursor *groups;
    XPL_TRY(xpl_group_cursor_new(c->groups, line, ret->arena, &groups, err));
    struct xpl_event_cursor cur = xpl_events_of(line);
    struct xpl_event ev;
    enum xpl_wire_result r;
    while ((r = xpl_events_next(&cur, &ev)) == XPL_WIRE_FIELD) {
        struct xpl_event_group g;
        if (ev.index % CANCEL_EVERY == 0 && xpl_exec_cancelled(c->exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "GPU steps: cancelled");
        xpl_group_cursor_next(groups, &ev, &g);
        xpl_place_in_execution(markers->executions, line, &ev, &g);
        if (!g.has_group || g.group_id < 0 || !xpl_is_marked(&marked, g.group_id)) continue;
        const struct gpu_event e = read_stats(&ev);
        if (e.correlation_id < 0 || !xpl_convert_is_possible(c, &ev)) continue;
        const struct gpu_md is =
            md ? md[ev.md] : classify(xpl_op_text(line->plane->event_md[ev.md].name));
        if (!add_event(ret, line, &ev, &e, is, g.group_id)) XPL_RETURN_OOM(err, "GPU steps");
    }
    if (r == XPL_WIRE_MALFORMED) return xpl_events_error(&cur, err);
    if (!xpl_group_cursor_ok(groups)) XPL_RETURN_OOM(err, "groups of events");
    return XPL_OK;
}
