// SPDX-License-Identifier: Apache-2.0
#include "analysis/trace/export/export.h"

#include "analysis/trace/export/impl.h"
#include "base/cleanup.h"

enum { CANCEL_EVERY = 4096 };
#define DAY_NS (INT64_C(24) * 3600 * 1000000000)

// Writes x->out to the sink and empties it.
static bool export_flush(struct xpl_exporter *x) {
    const bool ok =
        !x->out.failed && (x->out.n == 0 || x->e->sink.write(x->e->sink.ctx, x->out.p, x->out.n));
    x->out.n = 0;
    return ok;
}

static xpl_status_t flush(struct xpl_exporter *x) {
    if (x->out.failed) XPL_RETURN_OOM(x->err, "export");
    if (!export_flush(x)) XPL_RETURN_ERROR(x->err, XPL_ABORTED, "the output could not be written");
    return XPL_OK;
}

static xpl_status_t put_text(struct xpl_export *e, xpl_str_t s, struct xpl_error *err) {
    if (!e->sink.write(e->sink.ctx, s.ptr, s.len))
        XPL_RETURN_ERROR(err, XPL_ABORTED, "the output could not be written");
    return XPL_OK;
}

xpl_status_t xpl_export_begin(struct xpl_export *e, struct xpl_error *err) {
    if (e->format != XPL_EXPORT_CHROME) return XPL_OK;
    return put_text(e, XPL_STR("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"), err);
}

xpl_status_t xpl_export_end(struct xpl_export *e, struct xpl_error *err) {
    if (e->format != XPL_EXPORT_CHROME) return XPL_OK;
    return put_text(e, XPL_STR("\n]}\n"), err);
}

// ---- lines ----

static xpl_status_t failed(struct xpl_exporter *x, const struct xpl_derived_cursor *c,
                           enum xpl_wire_result r) {
    if (r == XPL_WIRE_MALFORMED) return xpl_derived_cursor_error(c, x->err);
    XPL_RETURN_OOM(x->err, "export");
}

// Whether cursors yield the line by time, the longer first.
static xpl_status_t is_in_order(struct xpl_exporter *x, struct xpl_arena *arena, bool *ret) {
    uint64_t begin = 0, duration = UINT64_MAX, n = 0;
    *ret = true;
    for (uint32_t i = 0; i < x->line->n_pieces && *ret; i++) {
        struct xpl_derived_cursor *c;
        struct xpl_derived_event ev;
        enum xpl_wire_result r = XPL_WIRE_END;
        XPL_TRY(xpl_derived_cursor_new(x->line, i, arena, &c, x->err));
        while (*ret && (r = xpl_derived_cursor_next(c, &ev)) == XPL_WIRE_FIELD) {
            const uint64_t b = (uint64_t)ev.begin_ps, d = (uint64_t)ev.duration_ps;
            if ((++n & (CANCEL_EVERY - 1)) == 0 && xpl_exec_cancelled(x->exec))
                XPL_RETURN_ERROR(x->err, XPL_CANCELLED, "cancelled");
            *ret = b > begin || (b == begin && d <= duration);
            begin = b, duration = d;
        }
        if (r == XPL_WIRE_MALFORMED) return failed(x, c, r);
    }
    return XPL_OK;
}

static xpl_status_t write_events(struct xpl_exporter *x, const struct xpl_export_writer *f, void *w,
                                 struct xpl_derived_cursor *c) {
    struct xpl_derived_event ev;
    enum xpl_wire_result r;
    uint64_t n = 0;
    while ((r = xpl_derived_cursor_next(c, &ev)) == XPL_WIRE_FIELD) {
        const struct xpl_derived_md md = xpl_derived_md_at(x->plane, ev.md);
        if ((++n & (CANCEL_EVERY - 1)) == 0 && xpl_exec_cancelled(x->exec))
            XPL_RETURN_ERROR(x->err, XPL_CANCELLED, "cancelled");
        if (xpl_derived_is_internal_event(md.type)) continue;
        x->e->n_early +=
            xpl_derived_keep_from_zero(x->line->timestamp_ns, &ev.begin_ps, &ev.duration_ps);
        if (!f->event(w, &ev, &md)) return failed(x, c, r);
        if (x->out.n >= XPL_EXPORT_CHUNK) XPL_TRY(flush(x));
    }
    return r == XPL_WIRE_MALFORMED ? failed(x, c, r) : XPL_OK;
}

static xpl_status_t write_line(struct xpl_exporter *x, const struct xpl_export_writer *f, void *w) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(x->limit);
    struct xpl_derived_cursor *c;
    bool in_order;
    XPL_TRY(is_in_order(x, &arena, &in_order));
    xpl_arena_fini(&arena);
    xpl_arena_init(&arena, x->limit);
    x->tid = ++x->n_tids;
    x->counters = xpl_str_eq(x->line->name, XPL_STR(XPL_LINE_COUNTERS));
    if (!f->line(w)) XPL_RETURN_OOM(x->err, "export");
    for (uint32_t i = 0; i < (in_order ? x->line->n_pieces : 1); i++) {
        XPL_TRY(in_order ? xpl_derived_cursor_new(x->line, i, &arena, &c, x->err)
                         : xpl_derived_cursor_new_sorted(x->line, &arena, &c, x->err));
        XPL_TRY(write_events(x, f, w, c));
    }
    if (!f->line_end(w)) XPL_RETURN_OOM(x->err, "export");
    return flush(x);
}

// ---- planes ----

static bool has_events(const struct xpl_derived_plane *p) {
    for (uint32_t i = 0; i < p->n_lines; i++)
        if (p->lines[i].n_events) return true;
    return false;
}

static xpl_status_t write_plane(struct xpl_exporter *x, const struct xpl_export_writer *f,
                                void *w) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(x->limit);
    x->arena = &arena;
    x->pid = ++x->n_pids | x->e->n_hosts << 12;
    if (!f->plane(w)) XPL_RETURN_OOM(x->err, "export");
    for (uint32_t i = 0; i < x->plane->n_lines; i++) {
        x->line = &x->plane->lines[i];
        if (x->line->n_events) XPL_TRY(write_line(x, f, w));
    }
    return XPL_OK;
}

static xpl_status_t write_planes(struct xpl_exporter *x, const struct xpl_export_writer *f,
                                 const struct xpl_derived *d, struct xpl_arena *arena) {
    uint32_t n;
    const struct xpl_derived_plane *const planes = xpl_derived_planes(d, &n);
    xpl_status_t status = XPL_OK;
    void *const w = f->begin(x, arena);
    if (!w) XPL_RETURN_OOM(x->err, "export");
    for (uint32_t i = 0; i < n && status == XPL_OK; i++) {
        x->plane = &planes[i];
        if (has_events(x->plane)) status = write_plane(x, f, w);
    }
    f->end(w);
    return status;
}

// When the host's time 0 is in the output.
static uint64_t zero_of(struct xpl_export *e, int64_t start_ns) {
    if (!e->n_hosts) e->first_ns = start_ns;
    const int64_t later = start_ns - e->first_ns;
    const bool near = start_ns && e->first_ns && later <= DAY_NS && later >= -DAY_NS;
    const int64_t zero = near ? start_ns : e->first_ns;
    if (e->format == XPL_EXPORT_PERFETTO || !e->first_ns) return (uint64_t)zero;
    return (uint64_t)(zero - e->first_ns + (e->several ? DAY_NS : 0));
}

static void free_map(struct xpl_hlo_map **m) {
    xpl_hlo_map_free(*m);
}

xpl_status_t xpl_export_host(struct xpl_export *e, const struct xpl_xspace *xs, xpl_str_t host,
                             struct xpl_exec *exec, size_t limit, struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(limit);
    XPL_AUTO(free_map) struct xpl_hlo_map *hlo = NULL;
    struct xpl_groups *groups;
    struct xpl_derived *d;
    XPL_TRY(xpl_groups_build(xs, &arena, exec, &groups, err));
    XPL_TRY(xpl_hlo_map_new(xs, limit, &hlo, err));
    XPL_TRY(xpl_derived_build(xs, groups, hlo, &arena, exec, &d, err));
    struct xpl_exporter x = {.e = e, .host = host, .exec = exec, .limit = limit, .err = err};
    x.zero_ns = zero_of(e, xs->was_absolute || e->several ? xs->start_ns : 0);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(limit);
    x.out = out;
    const xpl_status_t status = write_planes(
        &x, e->format == XPL_EXPORT_CHROME ? &xpl_export_chrome : &xpl_export_perfetto, d, &arena);
    const xpl_status_t flushed = status == XPL_OK ? flush(&x) : status;
    out = x.out;
    e->n_hosts++;
    return flushed;
}
