// SPDX-License-Identifier: Apache-2.0
// Which events an answer shows (XProf: convert/trace_view_options.cc, DoLoadFromLevelDbTable,
// DoSearchInLevelDbTable, DoReadFullEventFromLevelDbTable).
#include <math.h>

#include "analysis/grouping/flows.h"
#include "analysis/trace/index/read.h"
#include "analysis/trace/index/visibility.h"
#include "base/exec.h"
#include "base/map.h"
#include "base/vec.h"

enum {
    STREAMING_EVENTS = 500000, // below, everything in the window is shown
    CANCEL_EVERY = 16,         // blocks
};

struct window { // ps
    uint64_t begin, end;
    uint64_t resolution; // minimum distance of events of a row, 0: none
};

struct selection {
    const struct xpl_trace *t;
    const struct xpl_trace_options *o;
    struct xpl_arena *arena;
    struct xpl_exec *exec;
    uint32_t blocks; // that were read
    bool *tpu;       // per device: a TPU's, whose flows have ends only
    bool tpu_core;   // one of them is a core
    XPL_VEC(struct trc_event) shown;
    struct window window;
    struct vis_row *rows; // per track
    struct xpl_map flows;
};

// ---- devices ----

static bool either_has(xpl_str_t a, xpl_str_t b, const char *what) {
    const xpl_str_t w = xpl_str_from(what);
    return xpl_str_has(a, w) || xpl_str_has(b, w);
}

static xpl_status_t classify_devices(struct selection *s, xpl_str_t host, struct xpl_error *err) {
    s->tpu = xpl_arena_zalloc(s->arena, (size_t)s->t->n[TRC_DEVICES]);
    if (!s->tpu) XPL_RETURN_OOM(err, "trace devices");
    for (uint64_t i = 0; i < s->t->n[TRC_DEVICES]; i++) {
        const xpl_str_t name = trc_str(s->t, s->t->devices[i].name);
        const bool core = either_has(host, name, "/device:TPU:") ||
                          either_has(host, name, "TensorNode") ||
                          either_has(host, name, "TPU Core");
        const bool other = either_has(host, name, "#Chip") &&
                           (either_has(host, name, "Host Interface") ||
                            either_has(host, name, "HBM") || either_has(host, name, "ICI Router"));
        s->tpu[i] = core || other;
        s->tpu_core |= core;
    }
    return XPL_OK;
}

static bool is_middle(const struct selection *s, const struct trc_event *e) {
    return (e->flags & TRC_HAS_FLOW) && (e->flow & 3) == XPL_FLOW_INOUT &&
           s->tpu[s->t->tracks[e->track].device];
}

static xpl_status_t add_shown(struct selection *s, const struct trc_event *e,
                              struct xpl_error *err) {
    struct trc_event *const slot = xpl_vec_push(s->arena, &s->shown);
    if (!slot) XPL_RETURN_OOM(err, "trace answer");
    *slot = *e;
    return XPL_OK;
}

// Called before a block is read: CANCELLED once the answer is not needed any more.
static xpl_status_t check_cancelled(struct selection *s, struct xpl_error *err) {
    if (s->blocks++ % CANCEL_EVERY == 0 && xpl_exec_cancelled(s->exec))
        XPL_RETURN_ERROR(err, XPL_CANCELLED, "trace_viewer@: cancelled");
    return XPL_OK;
}

// ---- a window ----

// Milliseconds to picoseconds like upstream's conversion: a negative number wraps, and a number
// that is too large for 64 bits becomes 2^63.
static uint64_t to_ps(double ms) {
    const double ps = ms * 1e9;
    if (ps < 0) return ps > -9223372036854775808.0 ? (uint64_t)(int64_t)ps : UINT64_C(1) << 63;
    return ps < 18446744073709551616.0 ? (uint64_t)ps : UINT64_C(1) << 63;
}

// Hosts that say when they began are on one clock: some may have no event in a window that others
// have events in.  Of other hosts such a window is an instant, as in XProf.
static bool is_outside(const struct trc_footer *f, uint64_t later_ps,
                       const struct xpl_trace_options *o) {
    const uint64_t begin = to_ps(o->start_time_ms), end = to_ps(o->end_time_ms);
    if (!f->start_ns) return false;
    return (f->has_max && begin > f->max_ts + later_ps) ||
           (f->has_min && end != 0 && end < f->min_ts + later_ps);
}

static struct window window_of(const struct trc_footer *f, uint64_t later_ps,
                               const struct xpl_trace_options *o) {
    uint64_t begin = to_ps(o->start_time_ms), end = to_ps(o->end_time_ms), resolution = 0;
    if (begin > end) end = begin;
    if (f->has_min && begin < f->min_ts + later_ps) begin = f->min_ts + later_ps;
    if (f->has_max && (end == 0 || end > f->max_ts + later_ps)) end = f->max_ts + later_ps;
    if (begin > end) end = begin;
    if (o->resolution && f->n_events >= STREAMING_EVENTS) {
        const double r = (double)(end - begin) / (double)o->resolution;
        resolution = r < 9e18 ? (uint64_t)llround(r) : 0;
    }
    return (struct window){begin, end, resolution};
}

unsigned trc_levels_shown(const struct trc_footer *f, const struct xpl_trace_options *o) {
    const uint64_t resolution = window_of(f, 0, o).resolution;
    unsigned level = 0;
    if (o->event_name.len || o->search_prefix.len) return TRC_LEVELS;
    while (level < TRC_LEVELS && resolution < trc_resolutions[level])
        level++;
    return level < TRC_LEVELS ? level + 1 : TRC_LEVELS;
}

static xpl_status_t far_enough(struct selection *s, const struct trc_event *e, bool *ret,
                               struct xpl_error *err) {
    struct vis_row *const row = &s->rows[e->track];
    const uint64_t end = e->ts + e->dur, res = s->window.resolution;
    if (s->t->tracks[e->track].named) {
        *ret = vis_counter(row, e->ts, res);
        return XPL_OK;
    }
    const uint32_t depth = vis_depth(row, e->ts);
    bool visible = e->dur >= res || vis_apart(row, depth, e->ts, res);
    if (e->flags & TRC_HAS_FLOW) {
        bool added;
        uint64_t *const state = xpl_map_put(s->arena, &s->flows, e->flow >> 8, 0, &added);
        if (!state) XPL_RETURN_OOM(err, "trace flows");
        uint8_t now = (uint8_t)*state;
        visible = vis_flow(row, &now, visible, (e->flow & 3) == XPL_FLOW_IN, end, res);
        *state = now;
    }
    *ret = visible;
    if (visible && !vis_set(row, depth, end, s->arena)) XPL_RETURN_OOM(err, "trace rows");
    return XPL_OK;
}

static xpl_status_t visible(struct selection *s, const struct trc_event *e, bool *ret,
                            struct xpl_error *err) {
    if (is_middle(s, e)) {
        *ret = s->o->full_dma;
        return XPL_OK;
    }
    *ret = s->window.begin == s->window.end; // an instant shows all its events
    if (*ret) return XPL_OK;
    if (s->window.begin > e->ts + e->dur || e->ts > s->window.end) return XPL_OK;
    *ret = s->window.resolution == 0;
    return *ret ? XPL_OK : far_enough(s, e, ret, err);
}

// Events of one level in the window, in order.
struct stream {
    uint64_t block, end_block;
    uint32_t i;
    struct trc_view view;
    struct trc_event e;
};

static xpl_status_t next_event(struct selection *s, struct stream *st, uint64_t from,
                               bool *ret_more, struct xpl_error *err) {
    for (;;) {
        if (st->i >= st->view.n) {
            if (st->block >= st->end_block || trc_first_ts(s->t, st->block) > s->window.end) break;
            XPL_TRY(check_cancelled(s, err));
            XPL_TRY(trc_view_block(s->t, st->block++, &st->view, err));
            st->i = 0;
        }
        const uint64_t ts = trc_get(&st->view, TRC_TS, st->i);
        if (ts > s->window.end) break;
        if (ts < from) {
            st->i++;
            continue;
        }
        *ret_more = true;
        return trc_get_event(s->t, &st->view, st->i++, &st->e, err);
    }
    *ret_more = false;
    return XPL_OK;
}

// The order of events among levels.  Ties that upstream's order leaves open go by track and name.
static bool later(const struct selection *s, const struct trc_event *a, const struct trc_event *b) {
    if (a->ts != b->ts) return a->ts > b->ts;
    if (a->dur != b->dur) return a->dur < b->dur;
    if (a->track != b->track) return a->track > b->track;
    const xpl_str_t x = trc_str(s->t, a->name), y = trc_str(s->t, b->name);
    return xpl_str_cmp(x.len > 32 ? (xpl_str_t){"", 0} : x, y.len > 32 ? (xpl_str_t){"", 0} : y) >
           0;
}

struct merge {
    struct stream streams[TRC_LEVELS];
    uint64_t from[TRC_LEVELS];
    struct stream *heap[TRC_LEVELS]; // the earliest on top, as upstream's heap orders them
    unsigned n;
};

static void sift_down(const struct selection *s, struct merge *m, unsigned hole) {
    struct stream *const value = m->heap[hole];
    for (;;) {
        const unsigned left = 2 * hole + 1, right = left + 1;
        unsigned best = left;
        if (right < m->n && later(s, &m->heap[left]->e, &m->heap[right]->e)) best = right;
        if (best >= m->n || !later(s, &value->e, &m->heap[best]->e)) break;
        m->heap[hole] = m->heap[best];
        hole = best;
    }
    m->heap[hole] = value;
}

static xpl_status_t open_streams(struct selection *s, struct merge *m, struct xpl_error *err) {
    for (unsigned level = 0; level < TRC_LEVELS; level++) {
        struct stream *const st = &m->streams[level];
        // An event first visible at a level is shorter than the resolution of the level before.
        const uint64_t reach = level ? trc_resolutions[level - 1] : UINT64_MAX;
        const uint64_t from = s->window.begin > reach ? s->window.begin - reach : 0;
        bool more;
        m->from[level] = from;
        *st = (struct stream){.block = trc_find_block(s->t, level, from),
                              .end_block = s->t->footer->level_first[level + 1]};
        XPL_TRY(next_event(s, st, from, &more, err));
        if (more) m->heap[m->n++] = st;
        if (s->window.resolution >= trc_resolutions[level]) break;
    }
    for (unsigned i = m->n / 2; i-- > 0;)
        sift_down(s, m, i);
    return XPL_OK;
}

static xpl_status_t select_window(struct selection *s, struct xpl_error *err) {
    struct merge m = {.n = 0};
    if (is_outside(s->t->footer, s->t->later_ps, s->o)) return XPL_OK;
    s->window = window_of(s->t->footer, s->t->later_ps, s->o);
    s->rows = xpl_arena_zalloc(s->arena, (size_t)s->t->n[TRC_TRACKS] * sizeof *s->rows);
    if (!s->rows) XPL_RETURN_OOM(err, "trace rows");
    XPL_TRY(open_streams(s, &m, err));
    while (m.n) {
        struct stream *const st = m.heap[0];
        bool yes = false, more;
        if (!(s->tpu_core && !s->o->full_dma && is_middle(s, &st->e)))
            XPL_TRY(visible(s, &st->e, &yes, err));
        if (yes) XPL_TRY(add_shown(s, &st->e, err));
        XPL_TRY(next_event(s, st, m.from[st - m.streams], &more, err));
        if (!more) m.heap[0] = m.heap[--m.n];
        if (m.n) sift_down(s, &m, 0);
    }
    return XPL_OK;
}

// ---- a search ----

// Names [*ret_first, *ret_end) begin with the prefix.
static void find_prefix(const struct xpl_trace *t, xpl_str_t prefix, uint64_t *ret_first,
                        uint64_t *ret_end) {
    uint64_t lo = 0, hi = t->n[TRC_NAMES];
    while (lo < hi) {
        const uint64_t mid = lo + (hi - lo) / 2;
        if (xpl_str_cmp(trc_str(t, t->names[mid].string), prefix) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    *ret_first = lo;
    for (hi = t->n[TRC_NAMES]; lo < hi;) {
        const uint64_t mid = lo + (hi - lo) / 2;
        if (xpl_str_starts(trc_str(t, t->names[mid].string), prefix))
            lo = mid + 1;
        else
            hi = mid;
    }
    *ret_end = lo;
}

static void set_bit(uint64_t *bits, uint64_t i) {
    bits[i / 64] |= UINT64_C(1) << i % 64;
}

static bool has_bit(const uint64_t *bits, uint64_t i) {
    return bits[i / 64] >> i % 64 & 1;
}

// Adds the blocks that have events of that name.
static xpl_status_t add_blocks(const struct xpl_trace *t, const struct trc_name *name,
                               uint64_t *blocks, struct xpl_error *err) {
    const uint8_t *p = t->name_blocks + name->first;
    const uint8_t *const end = p + name->len;
    bool valid = trc_sum(p, (size_t)name->len) == name->sum;
    for (uint64_t block = UINT64_MAX; valid && p < end;) {
        uint64_t step = 0;
        unsigned shift = 0;
        for (; p < end && shift < 63 && *p & 0x80; shift += 7)
            step |= (uint64_t)(*p++ & 0x7f) << shift;
        if (p < end) step |= (uint64_t)*p++ << shift;
        block += step;
        valid = block < t->n[TRC_BLOCKS];
        if (valid) set_bit(blocks, block);
    }
    if (!valid)
        XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "trace index: the blocks of a name are damaged");
    return XPL_OK;
}

static xpl_status_t search_block(struct selection *s, uint64_t block, const uint64_t *names,
                                 struct xpl_error *err) {
    struct trc_view v;
    XPL_TRY(check_cancelled(s, err));
    XPL_TRY(trc_view_block(s->t, block, &v, err));
    for (uint32_t i = 0; i < v.n; i++) {
        const uint64_t name = trc_get(&v, TRC_NAME, i);
        struct trc_event e;
        if (name >= s->t->n[TRC_STRINGS] || !has_bit(names, name)) continue;
        XPL_TRY(trc_get_event(s->t, &v, i, &e, err));
        if (s->tpu_core && !s->o->full_dma && is_middle(s, &e)) continue;
        XPL_TRY(add_shown(s, &e, err));
    }
    return XPL_OK;
}

static xpl_status_t select_prefix(struct selection *s, struct xpl_error *err) {
    const struct xpl_trace *const t = s->t;
    const size_t words = (size_t)t->n[TRC_BLOCKS] / 64 + 1;
    uint64_t first, end;
    uint64_t *const names = xpl_arena_zalloc(s->arena, (size_t)(t->n[TRC_STRINGS] / 64 + 1) * 8);
    uint64_t *const blocks = xpl_arena_zalloc(s->arena, words * 8);
    if (!names || !blocks) XPL_RETURN_OOM(err, "trace search");
    find_prefix(t, s->o->search_prefix, &first, &end);
    for (; first < end; first++) {
        set_bit(names, t->names[first].string);
        XPL_TRY(add_blocks(t, &t->names[first], blocks, err));
    }
    for (size_t i = 0; i < words; i++)
        for (uint64_t left = blocks[i]; left; left &= left - 1)
            XPL_TRY(search_block(s, i * 64 + (unsigned)__builtin_ctzll(left), names, err));
    return XPL_OK;
}

// ---- one event ----

static xpl_status_t find_in_level(struct selection *s, unsigned level, uint64_t ts, uint64_t dur,
                                  bool *ret_found, struct xpl_error *err) {
    const struct xpl_trace *const t = s->t;
    for (uint64_t b = trc_find_block(t, level, ts); b < t->footer->level_first[level + 1]; b++) {
        struct trc_view v;
        if (trc_first_ts(t, b) > ts) break;
        XPL_TRY(check_cancelled(s, err));
        XPL_TRY(trc_view_block(t, b, &v, err));
        for (uint32_t i = 0; i < v.n; i++) {
            struct trc_event e;
            if (trc_get(&v, TRC_TS, i) != ts) continue;
            XPL_TRY(trc_get_event(t, &v, i, &e, err));
            if (e.serial != s->o->unique_id) continue;
            if (e.dur != dur || !xpl_str_eq(trc_str(t, e.name), s->o->event_name)) return XPL_OK;
            *ret_found = true;
            return add_shown(s, &e, err);
        }
    }
    return XPL_OK;
}

// Nearest picosecond.
static uint64_t round_ps(double ms) {
    const double ps = round(ms * 1e9);
    return ps >= 1 && ps < 18446744073709551616.0 ? (uint64_t)ps : 0;
}

static xpl_status_t select_one(struct selection *s, struct xpl_error *err) {
    const uint64_t ts = round_ps(s->o->start_time_ms), dur = round_ps(s->o->duration_ms);
    bool found = false;
    for (unsigned level = 0; !found && level < TRC_LEVELS; level++)
        XPL_TRY(find_in_level(s, level, ts, dur, &found, err));
    if (!found) XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "no such event in the trace");
    return XPL_OK;
}

// ---- rows ----

// Orders the events row by row, each row in the order found: this is upstream's order.  Counters
// come before the other rows of a device.
static xpl_status_t by_row(struct selection *s, struct trc_shown *ret, struct xpl_error *err) {
    const uint64_t tracks = s->t->n[TRC_TRACKS];
    size_t *const at = xpl_arena_zalloc(s->arena, ((size_t)tracks + 1) * sizeof *at);
    struct trc_event *const v = xpl_arena_array(s->arena, s->shown.n, sizeof *v);
    if (!at || !v) XPL_RETURN_OOM(err, "trace answer");
    for (size_t i = 0; i < s->shown.n; i++)
        at[s->shown.v[i].track]++;
    size_t n = 0;
    for (uint64_t i = 0, end; i < tracks; i = end) { // tracks of a device are neighbours
        for (end = i; end < tracks && s->t->tracks[end].device == s->t->tracks[i].device;)
            end++;
        for (unsigned named = 2; named-- > 0;)
            for (uint64_t k = i; k < end; k++) {
                if ((s->t->tracks[k].named != 0) != named) continue;
                const size_t here = at[k];
                at[k] = n;
                n += here;
            }
    }
    for (size_t i = 0; i < s->shown.n; i++)
        v[at[s->shown.v[i].track]++] = s->shown.v[i];
    ret->events = v;
    ret->n = s->shown.n;
    return XPL_OK;
}

xpl_status_t trc_select(const struct xpl_trace *t, xpl_str_t host,
                        const struct xpl_trace_options *o, struct xpl_exec *exec,
                        struct xpl_arena *arena, struct trc_shown *ret, struct xpl_error *err) {
    struct selection s = {.t = t, .o = o, .exec = exec, .arena = arena};
    *ret = (struct trc_shown){.one = o->event_name.len != 0};
    XPL_TRY(classify_devices(&s, host, err));
    if (o->event_name.len)
        XPL_TRY(select_one(&s, err));
    else if (o->search_prefix.len)
        XPL_TRY(select_prefix(&s, err));
    else
        XPL_TRY(select_window(&s, err));
    return by_row(&s, ret, err);
}
