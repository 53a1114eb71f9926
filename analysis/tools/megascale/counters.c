// SPDX-License-Identifier: Apache-2.0
// Counters of the network, and of executions under way.

#include "analysis/tools/megascale/names.h"
#include "analysis/tools/megascale/trace.h"
#include "base/vec.h"

enum { CANCEL_EVERY = 256 };

// Sums wrap, as XProf's do.
static int64_t plus(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a + (uint64_t)b);
}
static int64_t minus(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

// Adds an interval to a counter.
static bool add_interval(struct xpl_mgtrace *t, enum xpl_mgtrace_counter counter, int64_t from_ps,
                         int64_t to_ps, int64_t count, double rate) {
    struct xpl_mgtrace_values *const c = &t->counters[counter];
    struct xpl_mgtrace_value *const up = xpl_vec_push(t->arena, &c->v);
    if (!up) return false;
    *up = (struct xpl_mgtrace_value){from_ps, count, rate};
    struct xpl_mgtrace_value *const down = xpl_vec_push(t->arena, &c->v);
    if (!down) return false;
    *down = (struct xpl_mgtrace_value){to_ps, minus(0, count), -rate};
    return true;
}

static xpl_status_t count_execution(struct xpl_mgtrace *t, const struct xpl_mgtrace_event *e,
                                    struct xpl_error *err) {
    const int64_t end = xpl_mgtrace_end_ps(e);
    struct xpl_stat size;
    bool said;
    XPL_TRY(xpl_mgtrace_find(e, XPL_STR("input_size"), XPL_VALUE_INT, &size, &said, err));
    if (!add_interval(t, XPL_MGTRACE_EXECUTIONS, e->begin_ps, end, 1, 0) ||
        (said && !add_interval(t, XPL_MGTRACE_PAYLOAD, e->begin_ps, end, size.i, 0)))
        XPL_RETURN_OOM(err, "megascale");
    return XPL_OK;
}

static bool add_buffer(struct xpl_mgtrace *t, bool sends, int64_t end_ps, int64_t took_ns,
                       int64_t bytes) {
    // Rates above, which one event says, come from durations that cannot be.
    static const double most_gbps = 200;
    const int64_t from = minus(end_ps, (int64_t)((uint64_t)took_ns * 1000));
    const double gbps = took_ns > 0 ? (double)bytes * 8 / (double)took_ns : 0;
    if (!add_interval(t, sends ? XPL_MGTRACE_BYTES_TX : XPL_MGTRACE_BYTES_RX, from, end_ps, bytes,
                      0))
        return false;
    return took_ns <= 0 || gbps > most_gbps ||
           add_interval(t, sends ? XPL_MGTRACE_RATE_TX : XPL_MGTRACE_RATE_RX, from, end_ps, 0,
                        gbps);
}

static xpl_status_t count_transfer(struct xpl_mgtrace *t, const struct xpl_mgtrace_event *e,
                                   bool sends, struct xpl_error *err) {
    struct xpl_stat time, list;
    struct xpl_mgtrace_buffer b;
    bool said;
    XPL_TRY(
        sends ? xpl_mgtrace_find(e, XPL_STR("action_duration_ns"), XPL_VALUE_INT, &time, &said, err)
              : xpl_mgtrace_find(e, XPL_STR("network_transport_latency_us"), XPL_VALUE_UINT, &time,
                                 &said, err));
    if (!said) return XPL_OK;
    const int64_t took_ns = sends ? time.i : (int64_t)(time.u * 1000);
    XPL_TRY(xpl_mgtrace_find(e, XPL_STR("buffer_sizes"), XPL_VALUE_STR, &list, &said, err));
    if (!said) return XPL_OK;
    for (size_t at = 0; xpl_mgtrace_next_buffer(list.str, &at, &b);)
        if (b.from != b.to && !add_buffer(t, sends, xpl_mgtrace_end_ps(e), took_ns, b.bytes))
            XPL_RETURN_OOM(err, "megascale");
    return XPL_OK;
}

static xpl_status_t count_event(struct xpl_mgtrace *t, const struct xpl_mgtrace_event *e,
                                struct xpl_error *err) {
    const xpl_str_t name = xpl_mgtrace_name(e);
    struct xpl_mgtrace_graph graph;
    if (xpl_mgtrace_is_graph(name, &graph)) return count_execution(t, e, err);
    if (xpl_str_eq(name, XPL_STR("NetworkReceive END"))) return count_transfer(t, e, false, err);
    if (xpl_str_eq(name, XPL_STR("NetworkSend END"))) return count_transfer(t, e, true, err);
    return XPL_OK;
}

// The order decides how rates are rounded.
static int by_time(const void *a, const void *b) {
    const struct xpl_mgtrace_value *const x = a, *const y = b;
    if (x->ps != y->ps) return x->ps < y->ps ? -1 : 1;
    if (x->count != y->count) return x->count < y->count ? -1 : 1;
    return (x->rate > y->rate) - (x->rate < y->rate);
}

// Makes of changes the values that the counter then has, one for each time.
static void sum_up(struct xpl_mgtrace_values *c) {
    struct xpl_mgtrace_value sum = {0};
    size_t n = 0;
    xpl_sort(c->v.v, c->v.n, sizeof *c->v.v, by_time);
    for (size_t i = 0; i < c->v.n; i++) {
        const struct xpl_mgtrace_value *const x = &c->v.v[i];
        sum = (struct xpl_mgtrace_value){x->ps, plus(sum.count, x->count), sum.rate + x->rate};
        if (i + 1 == c->v.n || c->v.v[i + 1].ps != sum.ps) c->v.v[n++] = sum;
    }
    c->v.n = n;
}

xpl_status_t xpl_mgtrace_count(struct xpl_mgtrace *t, struct xpl_error *err) {
    uint64_t n = 0;
    for (size_t i = 0; i < t->devices.n; i++)
        for (size_t k = 0; k < t->devices.v[i].host_tracks.n; k++) {
            const struct xpl_mgtrace_track *const track = &t->devices.v[i].host_tracks.v[k];
            for (size_t e = 0; e < track->v.n; e++) {
                if (n++ % CANCEL_EVERY == 0) XPL_TRY(xpl_mgtrace_cancelled(t, err));
                XPL_TRY(count_event(t, &track->v.v[e], err));
            }
        }
    for (size_t i = 0; i < XPL_MGTRACE_COUNTERS; i++)
        sum_up(&t->counters[i]);
    return XPL_OK;
}
