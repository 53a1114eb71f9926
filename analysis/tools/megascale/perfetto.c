// SPDX-License-Identifier: Apache-2.0
#include "analysis/tools/megascale/perfetto.h"

#include <stdio.h>

#include "analysis/tools/megascale/names.h"
#include "analysis/tools/megascale/perfetto_writer.h"
#include "analysis/tools/megascale/trace.h"
#include "analysis/wire/zlib.h"
#include "base/cleanup.h"

enum { TINY_PS = 1000, END_GAP_PS = 1000 };

struct maker {
    struct xpl_arena arena;
    struct xpl_mgtrace trace;
    struct xpl_perfetto_writer w;
    bool group_tiny;
    uint64_t last_track; // uuid
};

// XProf cuts towards 0.
static uint64_t ns(int64_t ps) {
    return (uint64_t)(ps / 1000);
}

static int64_t later(int64_t ps, int64_t by) {
    return (int64_t)((uint64_t)ps + (uint64_t)by);
}

static xpl_status_t new_track(struct maker *m, uint64_t parent, xpl_str_t name, uint64_t *ret,
                              struct xpl_error *err) {
    *ret = ++m->last_track;
    if (!xpl_perfetto_track(&m->w, *ret, parent, name)) XPL_RETURN_OOM(err, "megascale");
    return XPL_OK;
}

// ---- counters ----

static const struct {
    const char *name, *unit, *scale;
} kCounters[XPL_MGTRACE_COUNTERS] = {
    [XPL_MGTRACE_BYTES_RX] = {"Outstanding Bytes RX", "bytes", "outstanding_bytes"},
    [XPL_MGTRACE_BYTES_TX] = {"Outstanding Bytes TX", "bytes", "outstanding_bytes"},
    [XPL_MGTRACE_RATE_RX] = {"Bandwidth RX (Gbps)", "Gbps", "bandwidth"},
    [XPL_MGTRACE_RATE_TX] = {"Bandwidth TX (Gbps)", "Gbps", "bandwidth"},
    [XPL_MGTRACE_EXECUTIONS] = {"Inflight Collectives", "count", "inflight_collectives"},
    [XPL_MGTRACE_PAYLOAD] = {"Inflight Collective Payload", "bytes", "inflight_collective_payload"},
};

static xpl_status_t put_counter(struct maker *m, size_t i, uint64_t parent, struct xpl_error *err) {
    const struct xpl_mgtrace_values *const c = &m->trace.counters[i];
    const bool rate = i == XPL_MGTRACE_RATE_RX || i == XPL_MGTRACE_RATE_TX;
    const uint64_t track = ++m->last_track;
    bool ok =
        xpl_perfetto_counter(&m->w, track, parent, xpl_str_from(kCounters[i].name),
                             xpl_str_from(kCounters[i].unit), xpl_str_from(kCounters[i].scale));
    for (size_t k = 0; ok && k < c->v.n; k++)
        ok = rate ? xpl_perfetto_rate(&m->w, track, ns(c->v.v[k].ps), c->v.v[k].rate)
                  : xpl_perfetto_count(&m->w, track, ns(c->v.v[k].ps), c->v.v[k].count);
    if (!ok) XPL_RETURN_OOM(err, "megascale");
    return XPL_OK;
}

// Those of [first, end) that have values, below a track of that name.
static xpl_status_t put_counters(struct maker *m, const char *name, size_t first, size_t end,
                                 uint64_t parent, struct xpl_error *err) {
    uint64_t track = 0;
    for (size_t i = first; i < end; i++) {
        if (!m->trace.counters[i].v.n) continue;
        if (!track) XPL_TRY(new_track(m, parent, xpl_str_from(name), &track, err));
        XPL_TRY(put_counter(m, i, track, err));
    }
    return XPL_OK;
}

static xpl_status_t put_all_counters(struct maker *m, struct xpl_error *err) {
    uint64_t track;
    size_t n = 0;
    for (size_t i = 0; i < XPL_MGTRACE_COUNTERS; i++)
        n += m->trace.counters[i].v.n;
    if (!n) return XPL_OK;
    XPL_TRY(new_track(m, 0, XPL_STR("1. Global Counters"), &track, err));
    XPL_TRY(put_counters(m, "Network", XPL_MGTRACE_BYTES_RX, XPL_MGTRACE_EXECUTIONS, track, err));
    return put_counters(m, "Megascale", XPL_MGTRACE_EXECUTIONS, XPL_MGTRACE_COUNTERS, track, err);
}

// ---- events ----

// Arrows of an event are among its arguments.
static bool name_flows(struct maker *m, const struct xpl_mgtrace_flows *flows) {
    for (uint32_t i = flows->first; i;) {
        const struct xpl_mgtrace_flow *const f = &m->trace.flows.v[i - 1];
        if (!xpl_perfetto_int(&m->w, f->in ? XPL_STR("flow_in") : XPL_STR("flow_out"), f->id))
            return false;
        i = f->next;
    }
    return true;
}

// Arrows that end at an event do so where it begins, others begin where it ends.
static bool put_flows(struct maker *m, const struct xpl_mgtrace_flows *flows, bool in, bool out) {
    for (uint32_t i = flows->first; i;) {
        const struct xpl_mgtrace_flow *const f = &m->trace.flows.v[i - 1];
        if ((f->in ? in : out) && !xpl_perfetto_flow(&m->w, (uint64_t)f->id)) return false;
        i = f->next;
    }
    return true;
}

static bool put_span(struct maker *m, uint64_t track, xpl_str_t name, int64_t begin_ps,
                     int64_t duration_ps, const struct xpl_mgtrace_flows *flows) {
    if (!put_flows(m, flows, true, duration_ps == 0) ||
        !xpl_perfetto_begin(&m->w, track, name, ns(begin_ps), duration_ps == 0))
        return false;
    return duration_ps == 0 || (put_flows(m, flows, false, true) &&
                                xpl_perfetto_end(&m->w, track, ns(later(begin_ps, duration_ps))));
}

static bool put_last(struct maker *m, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (!xpl_perfetto_int(&m->w, XPL_STR("is_last_instance"), 1)) return false;
    return true;
}

static xpl_status_t put_event(struct maker *m, uint64_t track, const struct xpl_mgtrace_event *e,
                              struct xpl_error *err) {
    struct xpl_event ev;
    XPL_TRY(xpl_event_at(e->line, e->at, &ev, err));
    const struct xpl_event_md *const md = xpl_mgtrace_md(e);
    bool ok = true;
    if (md->display_name.len) ok = xpl_perfetto_text(&m->w, XPL_STR("long_name"), md->name);
    ok = ok && xpl_perfetto_stats(&m->w, xpl_event_md_stats(e->line->plane, md)) &&
         xpl_perfetto_stats(&m->w, ev.stats) &&
         (!e->has_run || e->own_run || xpl_perfetto_int(&m->w, XPL_STR("run_id"), e->run)) &&
         put_last(m, e->last_of) && name_flows(m, &e->flows);
    if (!ok || !put_span(m, track, xpl_mgtrace_name(e), e->begin_ps, e->duration_ps, &e->flows))
        XPL_RETURN_OOM(err, "megascale");
    return XPL_OK;
}

// ---- tiny events ----

// Transfers are never hidden.
static bool may_hide(const struct maker *m, const struct xpl_mgtrace_track *t,
                     const struct xpl_mgtrace_event *e) {
    return m->group_tiny && (t->kind == XPL_MGTRACE_OPS || t->kind == XPL_MGTRACE_MARKS) &&
           e->duration_ps < TINY_PS &&
           xpl_mgtrace_op_of(xpl_mgtrace_name(e)) == XPL_MGTRACE_OP_OTHER;
}

// Behind the events of the same nanosecond and run that hide with the one at `i`.
static size_t group_end(const struct maker *m, const struct xpl_mgtrace_track *t, size_t i) {
    const struct xpl_mgtrace_event *const first = &t->v.v[i];
    size_t end = i + 1;
    if (!may_hide(m, t, first)) return end;
    for (; end < t->v.n; end++) {
        const struct xpl_mgtrace_event *const e = &t->v.v[end];
        if (ns(e->begin_ps) != ns(first->begin_ps) || e->run != first->run || !may_hide(m, t, e))
            break;
    }
    return end;
}

static xpl_status_t put_group(struct maker *m, const struct xpl_mgtrace_track *t, uint64_t track,
                              size_t i, size_t end, struct xpl_error *err) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf names = xpl_buf_of(m->w.limit);
    const struct xpl_mgtrace_event *const v = t->v.v;
    const struct xpl_mgtrace_flows none = {0};
    int64_t last = xpl_mgtrace_end_ps(&v[i]);
    char title[60];
    for (size_t k = i; k < end; k++) {
        if (k > i) xpl_buf_str(&names, XPL_STR(", "));
        xpl_buf_str(&names, xpl_mgtrace_name(&v[k]));
        if (xpl_mgtrace_end_ps(&v[k]) > last) last = xpl_mgtrace_end_ps(&v[k]);
    }
    const int n = snprintf(title, sizeof title, "%zu events are hidden", end - i);
    const int64_t lasts = (int64_t)((uint64_t)last - (uint64_t)v[i].begin_ps);
    if (names.failed ||
        !xpl_perfetto_text(&m->w, XPL_STR("description"),
                           XPL_STR("Neighbours of less than a nanosecond. "
                                   "group_tiny_events=false shows each.")) ||
        !xpl_perfetto_text(&m->w, XPL_STR("hidden_events"),
                           (xpl_str_t){(const char *)names.p, names.n}) ||
        !put_span(m, track, (xpl_str_t){title, (size_t)n}, v[i].begin_ps, lasts, &none))
        XPL_RETURN_OOM(err, "megascale");
    return XPL_OK;
}

// ---- tracks ----

// Instants behind the events that wait for copies.
static xpl_status_t put_ends(struct maker *m, const struct xpl_mgtrace_track *t, uint64_t track,
                             struct xpl_error *err) {
    for (size_t i = 0; i < t->ends.n; i++) {
        const struct xpl_mgtrace_end *const end = &t->ends.v[i];
        const struct xpl_mgtrace_event *const e = &t->v.v[end->event];
        xpl_str_t name;
        if (!xpl_arena_printf(&m->arena, &name, "%.*s END", XPL_STR_FMT(xpl_mgtrace_name(e))) ||
            !xpl_perfetto_int(&m->w, XPL_STR("run_id"), e->run) || !name_flows(m, &end->flows) ||
            !put_span(m, track, name, later(xpl_mgtrace_end_ps(e), END_GAP_PS), 0, &end->flows))
            XPL_RETURN_OOM(err, "megascale");
    }
    return XPL_OK;
}

static xpl_status_t put_track(struct maker *m, const struct xpl_mgtrace_track *t, uint64_t parent,
                              struct xpl_error *err) {
    uint64_t track;
    XPL_TRY(new_track(m, parent, t->name, &track, err));
    for (size_t i = 0, end; i < t->v.n; i = end) {
        XPL_TRY(xpl_mgtrace_cancelled(&m->trace, err));
        end = group_end(m, t, i);
        if (end - i > 1)
            XPL_TRY(put_group(m, t, track, i, end, err));
        else
            XPL_TRY(put_event(m, track, &t->v.v[i], err));
    }
    return put_ends(m, t, track, err);
}

static xpl_status_t put_device(struct maker *m, const struct xpl_mgtrace_device *d, uint64_t parent,
                               struct xpl_error *err) {
    char name[40];
    uint64_t track, host;
    const int n = snprintf(name, sizeof name, "/device:TPU:%lld", (long long)d->number);
    XPL_TRY(new_track(m, parent, (xpl_str_t){name, (size_t)n}, &track, err));
    for (size_t i = 0; i < d->tracks.n; i++)
        XPL_TRY(put_track(m, &d->tracks.v[i], track, err));
    if (!d->host_tracks.n) return XPL_OK;
    XPL_TRY(new_track(m, track, XPL_STR("Megascale"), &host, err));
    for (size_t i = 0; i < d->host_tracks.n; i++)
        XPL_TRY(put_track(m, &d->host_tracks.v[i], host, err));
    return XPL_OK;
}

// ---- gzip ----

static bool compress_all(const struct xpl_buf *in, struct xpl_buf *out) {
    z_stream z = xpl_zlib_stream();
    uint8_t piece[1 << 14];
    size_t at = 0;
    int st = Z_OK;
    if (deflateInit2(&z, 1, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return false;
    while (st == Z_OK && !out->failed) {
        if (z.avail_in == 0 && at < in->n) {
            const size_t n = in->n - at < 1 << 30 ? in->n - at : 1 << 30;
            z.next_in = in->p + at;
            z.avail_in = (uInt)n;
            at += n;
        }
        z.next_out = piece;
        z.avail_out = sizeof piece;
        st = deflate(&z, at == in->n ? Z_FINISH : Z_NO_FLUSH);
        xpl_buf_put(out, piece, sizeof piece - z.avail_out);
    }
    (void)deflateEnd(&z);
    return st == Z_STREAM_END && !out->failed;
}

// ---- all ----

static xpl_status_t read_all(struct maker *m, const struct xpl_xspace *xs, struct xpl_error *err) {
    struct xpl_mgtrace *const t = &m->trace;
    XPL_TRY(xpl_mgtrace_read_tpus(t, xs, err));
    XPL_TRY(xpl_mgtrace_read_host(t, xs, err));
    XPL_TRY(xpl_mgtrace_number_runs(t, err));
    XPL_TRY(xpl_mgtrace_join(t, err));
    return xpl_mgtrace_count(t, err);
}

static xpl_status_t make_trace(struct maker *m, xpl_bytes_t profile, struct xpl_buf *trace,
                               size_t limit, struct xpl_error *err) {
    struct xpl_xspace *xs;
    uint64_t track;
    XPL_TRY(xpl_xspace_open(profile, &m->arena, m->trace.exec, &xs, err));
    XPL_TRY(read_all(m, xs, err));
    if (!xpl_perfetto_writer_init(&m->w, trace, &m->arena, limit)) XPL_RETURN_OOM(err, "megascale");
    XPL_TRY(put_all_counters(m, err));
    if (!m->trace.devices.n) return XPL_OK;
    XPL_TRY(new_track(m, 0, XPL_STR("2. TPUs"), &track, err));
    for (size_t i = 0; i < m->trace.devices.n; i++)
        XPL_TRY(put_device(m, &m->trace.devices.v[i], track, err));
    return XPL_OK;
}

xpl_status_t xpl_megascale_perfetto(xpl_bytes_t profile,
                                    const struct xpl_megascale_perfetto_options *options,
                                    struct xpl_exec *exec, size_t limit, struct xpl_buf *out,
                                    struct xpl_error *err) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf trace;
    struct maker m = {.trace = {.exec = exec, .exact = options->exact},
                      .group_tiny = options->group_tiny};
    xpl_buf_init(&trace, limit);
    xpl_arena_init(&m.arena, limit);
    m.trace.arena = &m.arena;
    const xpl_status_t st = make_trace(&m, profile, &trace, limit, err);
    xpl_perfetto_writer_fini(&m.w);
    xpl_arena_fini(&m.arena);
    if (st == XPL_OK && !compress_all(&trace, out)) XPL_RETURN_OOM(err, "megascale");
    return st;
}
