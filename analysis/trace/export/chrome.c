// SPDX-License-Identifier: Apache-2.0
// Chrome's JSON trace format: one object per event, numbers as numbers, flows as "s" and "f" events
// at the beginning of the slices that they bind to, samples of counters as "C" events.
#include <inttypes.h>
#include <math.h>

#include "analysis/trace/export/impl.h"
#include "base/json.h"

struct writer {
    struct xpl_exporter *x;
};

static struct xpl_buf *begin_element(struct writer *w, const char *ph) {
    struct xpl_buf *const b = &w->x->out;
    xpl_buf_str(b, w->x->e->any ? XPL_STR(",\n") : XPL_STR(""));
    w->x->e->any = true;
    xpl_buf_printf(b, "{\"ph\":\"%s\",\"pid\":%" PRIu32, ph, w->x->pid);
    return b;
}

static void put_us(struct xpl_buf *b, uint64_t ps) {
    xpl_json_gviz_number(b, (double)ps / 1e6);
}

static bool put_name(struct writer *w, const char *what, xpl_str_t name, bool thread) {
    struct xpl_buf *const b = begin_element(w, "M");
    if (thread) xpl_buf_printf(b, ",\"tid\":%" PRIu32, w->x->tid);
    xpl_buf_printf(b, ",\"name\":\"%s\",\"args\":{\"name\":", what);
    xpl_json_str(b, name, false);
    xpl_buf_str(b, XPL_STR("}}"));
    return !b->failed;
}

static bool put_plane(void *ctx) {
    struct writer *const w = ctx;
    const xpl_str_t plane = w->x->plane->recorded->name;
    xpl_str_t name;
    return w->x->host.len <= INT32_MAX && plane.len <= INT32_MAX &&
           xpl_arena_printf(w->x->arena, &name, "%.*s %.*s", XPL_STR_FMT(w->x->host),
                            XPL_STR_FMT(plane)) &&
           put_name(w, "process_name", name, false);
}

static bool put_line(void *ctx) {
    struct writer *const w = ctx;
    return w->x->counters || put_name(w, "thread_name", w->x->line->display_name, true);
}

static void put_number_or_text(struct xpl_buf *b, bool negative, uint64_t v) {
    const bool exact = v <= UINT64_C(1) << 53; // exact in every reader of JSON
    xpl_buf_printf(b, "%s%s%" PRIu64 "%s", exact ? "" : "\"", negative ? "-" : "", v,
                   exact ? "" : "\"");
}

static void put_value(struct xpl_buf *b, const struct xpl_stat *s) {
    switch (s->kind) {
        case XPL_VALUE_INT:
            put_number_or_text(b, s->i < 0, s->i < 0 ? 0 - (uint64_t)s->i : (uint64_t)s->i);
            break;
        case XPL_VALUE_UINT: put_number_or_text(b, false, s->u); break;
        case XPL_VALUE_DOUBLE: xpl_json_gviz_number(b, s->d); break;
        case XPL_VALUE_STR:
        case XPL_VALUE_REF: xpl_json_str(b, s->str, false); break;
        case XPL_VALUE_BYTES: xpl_buf_str(b, XPL_STR("\"<opaque bytes>\"")); break;
        case XPL_VALUE_NONE: xpl_buf_str(b, XPL_STR("null")); break;
    }
}

// Writes the arguments; returns the step's name if it is one of them, else "".
static xpl_str_t put_args(struct writer *w, struct xpl_buf *b, const struct xpl_derived_event *ev,
                          const struct xpl_derived_md *md, bool numbers) {
    struct xpl_derived_stats it;
    struct xpl_stat s;
    xpl_str_t step = {"", 0};
    bool any = false;
    xpl_buf_str(b, XPL_STR(",\"args\":{"));
    if (md->display_name.len && md->name.len && !numbers) {
        xpl_buf_str(b, XPL_STR("\"long_name\":"));
        xpl_json_str(b, md->name, false);
        any = true;
    }
    xpl_derived_stats_begin(&it, w->x->plane, ev);
    while (xpl_derived_stats_next(&it, &s)) {
        if (s.md->type == XPL_STAT_STEP_NAME) step = xpl_stat_str(&s);
        if (s.md->type == XPL_STAT_FLOW) continue;
        if (numbers && s.kind != XPL_VALUE_INT && s.kind != XPL_VALUE_UINT &&
            (s.kind != XPL_VALUE_DOUBLE || !isfinite(s.d)))
            continue;
        if (any) xpl_buf_putc(b, ',');
        any = true;
        xpl_json_str(b, s.md->name, false);
        xpl_buf_putc(b, ':');
        put_value(b, &s);
    }
    xpl_buf_putc(b, '}');
    return step;
}

static void put_flow(struct writer *w, const struct xpl_flow *f, uint64_t ps) {
    const bool out = f->direction == XPL_FLOW_OUT;
    struct xpl_buf *const b = begin_element(w, out ? "s" : "f");
    xpl_buf_printf(b, ",\"tid\":%" PRIu32 ",\"id\":\"0x%" PRIx64 "\",\"cat\":\"flow\"", w->x->tid,
                   f->id);
    xpl_buf_str(b, XPL_STR(",\"name\":\"flow\",\"ts\":"));
    put_us(b, ps);
    xpl_buf_str(b, out ? XPL_STR("}") : XPL_STR(",\"bp\":\"e\"}"));
}

static bool put_event(void *ctx, const struct xpl_derived_event *ev,
                      const struct xpl_derived_md *md) {
    struct writer *const w = ctx;
    const uint64_t begin = (uint64_t)ev->begin_ps + 1000 * w->x->zero_ns;
    const bool counter = w->x->counters, slice = ev->duration_ps > 0;
    struct xpl_buf *const b = begin_element(w, counter ? "C" : slice ? "X" : "i");
    if (!counter) xpl_buf_printf(b, ",\"tid\":%" PRIu32, w->x->tid);
    xpl_buf_str(b, XPL_STR(",\"ts\":"));
    put_us(b, begin);
    if (slice && !counter) {
        xpl_buf_str(b, XPL_STR(",\"dur\":"));
        put_us(b, (uint64_t)ev->duration_ps);
    } else if (!counter) {
        xpl_buf_str(b, XPL_STR(",\"s\":\"t\""));
    }
    const xpl_str_t step = put_args(w, b, ev, md, counter);
    xpl_buf_str(b, XPL_STR(",\"name\":"));
    xpl_json_str(b, step.len ? step : md->display_name.len ? md->display_name : md->name, false);
    xpl_buf_putc(b, '}');
    for (uint32_t i = 0; i < ev->n_flows && !counter; i++)
        put_flow(w, &ev->flows[i], begin);
    return !b->failed;
}

static bool end_line(void *ctx) {
    (void)ctx;
    return true;
}

static void *begin_host(struct xpl_exporter *x, struct xpl_arena *arena) {
    struct writer *const w = xpl_arena_zalloc(arena, sizeof *w);
    if (w) w->x = x;
    return w;
}

static void end_host(void *ctx) {
    (void)ctx;
}

const struct xpl_export_writer xpl_export_chrome = {
    .begin = begin_host,
    .plane = put_plane,
    .line = put_line,
    .event = put_event,
    .line_end = end_line,
    .end = end_host,
};
