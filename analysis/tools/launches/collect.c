// SPDX-License-Identifier: Apache-2.0
// Ops of GPUs and their launches, read from a profile.
#include <math.h>

#include "analysis/tools/launches/launches.h"
#include "analysis/xplane/plane_kind.h"
#include "analysis/xplane/schema.h"

enum { CANCEL_EVERY = 8192 };

// ---- sums ----

static uint64_t add(uint64_t a, uint64_t b) {
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static void launch_sum_add(struct xpl_launch_sum *s, uint64_t ps) {
    if (!s->n || ps < s->min_ps) s->min_ps = ps;
    if (ps > s->max_ps) s->max_ps = ps;
    s->total_ps = add(s->total_ps, ps);
    s->n++;
}

double xpl_launch_sum_mean(const struct xpl_launch_sum *s) {
    return s->n ? (double)s->total_ps / (double)s->n : (double)NAN;
}

// `of` has some.
static void add_sum(struct xpl_launch_sum *s, const struct xpl_launch_sum *of) {
    if (!s->n || of->min_ps < s->min_ps) s->min_ps = of->min_ps;
    if (of->max_ps > s->max_ps) s->max_ps = of->max_ps;
    s->total_ps = add(s->total_ps, of->total_ps);
    s->n += of->n;
}

bool xpl_launches_init(struct xpl_launch_stats *l, struct xpl_arena *arena, struct xpl_exec *exec) {
    *l = (struct xpl_launch_stats){
        .arena = arena, .exec = exec, .names = xpl_intern_new(arena, xpl_hash_seed())};
    return l->names != NULL;
}

// ---- a host ----

struct span {
    uint64_t begin, end;
};

struct launch {
    struct span at;
    uint64_t n_ops; // more than one of a graph
    uint64_t first; // when the first of them begins
};

// Times of a profile count from any instant, and wrap: here they lie around the middle.
#define MIDDLE (UINT64_C(1) << 60)
#define END    (UINT64_C(1) << 61)

struct host {
    struct xpl_launch_stats *l;
    xpl_str_t name;
    struct xpl_map by_correlation; // to the position in `launches`, plus 1
    XPL_VEC(struct launch) launches;
    uint64_t base; // what times are counted from
    bool any;
    uint64_t begin, end; // of launches and ops
    size_t first_stream;
    const uint32_t *kernel_of; // by metadata of the plane that is read: the id of its name
};

// Events further than 13 days from the first stream are passed over.
static bool span_of(const struct host *h, const struct xpl_line *line, const struct xpl_event *ev,
                    struct span *ret) {
    const uint64_t begin = (uint64_t)xpl_event_begin_ps(line, ev) - h->base;
    if (ev->has_occurrences || ev->duration_ps < 0 || begin >= END ||
        (uint64_t)ev->duration_ps > END - begin)
        return false;
    *ret = (struct span){begin, begin + (uint64_t)ev->duration_ps};
    return true;
}

static void widen(struct host *h, struct span s) {
    if (!h->any || s.begin < h->begin) h->begin = s.begin;
    if (!h->any || s.end > h->end) h->end = s.end;
    h->any = true;
}

typedef bool (*event_fn)(struct host *, struct xpl_launch_stream *, const struct xpl_event *,
                         struct span);

static xpl_status_t walk(struct host *h, const struct xpl_line *line, event_fn fn,
                         struct xpl_launch_stream *stream, struct xpl_error *err) {
    struct xpl_event_cursor cur = xpl_events_of(line);
    struct xpl_event ev;
    enum xpl_wire_result r;
    while ((r = xpl_events_next(&cur, &ev)) == XPL_WIRE_FIELD) {
        struct span span;
        if (ev.index % CANCEL_EVERY == 0 && xpl_exec_cancelled(h->l->exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "launches: cancelled");
        if (span_of(h, line, &ev, &span) && !fn(h, stream, &ev, span))
            XPL_RETURN_OOM(err, "launches");
    }
    return r == XPL_WIRE_MALFORMED ? xpl_events_error(&cur, err) : XPL_OK;
}

// Of several events of the host with one id the first to begin is the launch.
static bool read_launch(struct host *h, struct xpl_launch_stream *unused,
                        const struct xpl_event *ev, struct span span) {
    struct xpl_stat s;
    bool is_new;
    (void)unused;
    if (!xpl_stats_get(ev->stats, XPL_STAT_CORRELATION_ID, &s)) return true;
    uint64_t *const at =
        xpl_map_put(h->l->arena, &h->by_correlation, xpl_stat_int_or_uint(&s), 0, &is_new);
    if (!at) return false;
    if (!is_new) {
        struct launch *const known = &h->launches.v[*at - 1];
        if (span.begin < known->at.begin) known->at = span;
        return true;
    }
    struct launch *const slot = xpl_vec_push(h->l->arena, &h->launches);
    if (!slot) return false;
    *slot = (struct launch){.at = span};
    *at = h->launches.n;
    return true;
}

static struct launch *launch_of(const struct host *h, const struct xpl_event *ev) {
    struct xpl_stat s;
    if (!h->launches.n || !xpl_stats_get(ev->stats, XPL_STAT_CORRELATION_ID, &s)) return NULL;
    const uint64_t *const at = xpl_map_get(&h->by_correlation, xpl_stat_int_or_uint(&s), 0);
    return at ? &h->launches.v[*at - 1] : NULL;
}

static bool count_op(struct host *h, struct xpl_launch_stream *unused, const struct xpl_event *ev,
                     struct span span) {
    struct launch *const launch = launch_of(h, ev);
    (void)unused;
    if (!launch) return true;
    if (!launch->n_ops++ || span.begin < launch->first) launch->first = span.begin;
    return true;
}

static bool read_op(struct host *h, struct xpl_launch_stream *stream, const struct xpl_event *ev,
                    struct span span) {
    struct xpl_launch_times *const k = &h->l->kernels.v[h->kernel_of[ev->md]].here;
    const uint64_t ps = span.end - span.begin;
    const struct launch *const launch = launch_of(h, ev);
    launch_sum_add(&k->op, ps);
    stream->n_ops++;
    widen(h, span);
    if (!launch) return true;
    widen(h, launch->at);
    const uint64_t launch_ps = launch->at.end - launch->at.begin;
    stream->n_launched++;
    k->n_short += ps < launch_ps / launch->n_ops; // of a graph each has a part of it
    launch_sum_add(&k->launch, launch_ps);
    if (span.begin == launch->first) // the others wait for those before them
        launch_sum_add(&k->delay, span.begin > launch->at.end ? span.begin - launch->at.end : 0);
    if (span.begin <= launch->at.begin) return true; // clocks differ
    struct xpl_launch_wait *const w = xpl_vec_push(h->l->arena, &stream->waits);
    // Counted from the window's begin as soon as that is known.
    if (w) *w = (struct xpl_launch_wait){launch->at.begin, span.begin};
    return w != NULL;
}

// ---- planes ----

static bool find_kernels(struct host *h, const struct xpl_plane *p) {
    uint32_t *const of = xpl_arena_array(h->l->arena, p->n_event_md, sizeof *of);
    h->kernel_of = of;
    for (uint32_t i = 0; of && i < p->n_event_md; i++) {
        xpl_strid_t id;
        if (!xpl_intern_put(h->l->names, p->event_md[i].name, &id)) return false;
        while (h->l->kernels.n <= id.v) { // ids are dense
            struct xpl_launch_kernel *const k = xpl_vec_push(h->l->arena, &h->l->kernels);
            if (!k) return false;
            *k = (struct xpl_launch_kernel){0};
        }
        h->l->kernels.v[id.v].name = xpl_intern_get(h->l->names, id);
        of[i] = id.v;
    }
    return of != NULL;
}

static xpl_status_t count_ops(struct host *h, const struct xpl_plane *p, struct xpl_error *err) {
    for (uint32_t i = 0; h->launches.n && i < p->n_lines; i++)
        if (xpl_line_is_stream(&p->lines[i])) XPL_TRY(walk(h, &p->lines[i], count_op, NULL, err));
    return XPL_OK;
}

static xpl_status_t read_device(struct host *h, const struct xpl_plane *p, struct xpl_error *err) {
    if (!find_kernels(h, p)) XPL_RETURN_OOM(err, "launches");
    for (uint32_t i = 0; i < p->n_lines; i++) {
        const struct xpl_line *const line = &p->lines[i];
        struct xpl_launch_stream stream = {.host = h->name, .device = p->name, .name = line->name};
        if (!xpl_line_is_stream(line)) continue;
        XPL_TRY(walk(h, line, read_op, &stream, err));
        if (!stream.n_ops) continue;
        struct xpl_launch_stream *const slot = xpl_vec_push(h->l->arena, &h->l->streams);
        if (!slot) XPL_RETURN_OOM(err, "launches");
        *slot = stream;
    }
    return XPL_OK;
}

// Adds what one host did with ops of a name to what all did.
static void join_kernel(const struct host *h, struct xpl_launch_kernel *k) {
    const double mean = xpl_launch_sum_mean(&k->here.op);
    if (!k->n_hosts || mean > k->slowest_ps) k->slowest_ps = mean, k->slowest_host = h->name;
    if (!k->n_hosts || mean < k->fastest_ps) k->fastest_ps = mean, k->fastest_host = h->name;
    k->n_hosts++;
    add_sum(&k->all.op, &k->here.op);
    if (k->here.launch.n) add_sum(&k->all.launch, &k->here.launch);
    if (k->here.delay.n) add_sum(&k->all.delay, &k->here.delay);
    k->all.n_short += k->here.n_short;
}

static void end_host(struct host *h) {
    for (size_t i = h->first_stream; i < h->l->streams.n; i++) {
        struct xpl_launch_stream *const s = &h->l->streams.v[i];
        s->window_ps = h->end - h->begin;
        for (size_t k = 0; k < s->waits.n; k++) {
            s->waits.v[k].from -= h->begin;
            s->waits.v[k].to -= h->begin;
        }
    }
    for (size_t i = 0; i < h->l->kernels.n; i++)
        if (h->l->kernels.v[i].here.op.n) join_kernel(h, &h->l->kernels.v[i]);
}

// False when no GPU did anything.
static bool find_base(struct host *h, const struct xpl_xspace *xs) {
    for (uint32_t i = 0; i < xs->n_planes; i++)
        for (uint32_t k = 0; xs->planes[i].kind == XPL_PLANE_GPU && k < xs->planes[i].n_lines;
             k++) {
            const struct xpl_line *const line = &xs->planes[i].lines[k];
            if (!line->n_events || !xpl_line_is_stream(line)) continue;
            h->base = (uint64_t)line->timestamp_ns * 1000 - MIDDLE;
            return true;
        }
    return false;
}

static xpl_status_t read_host(struct host *h, const struct xpl_xspace *xs, struct xpl_error *err) {
    const struct xpl_plane *const threads =
        xpl_xspace_plane(xs, XPL_STR(XPL_PLANE_NAME_HOST_THREADS));
    if (!find_base(h, xs)) return XPL_OK;
    for (uint32_t i = 0; threads && i < threads->n_lines; i++)
        XPL_TRY(walk(h, &threads->lines[i], read_launch, NULL, err));
    for (uint32_t i = 0; i < xs->n_planes; i++)
        if (xs->planes[i].kind == XPL_PLANE_GPU) XPL_TRY(count_ops(h, &xs->planes[i], err));
    for (uint32_t i = 0; i < xs->n_planes; i++)
        if (xs->planes[i].kind == XPL_PLANE_GPU) XPL_TRY(read_device(h, &xs->planes[i], err));
    return XPL_OK;
}

xpl_status_t xpl_launches_add(struct xpl_launch_stats *l, xpl_str_t name,
                              const struct xpl_xspace *xs, struct xpl_error *err) {
    struct host h = {.l = l, .name = name, .first_stream = l->streams.n};
    const xpl_status_t st = read_host(&h, xs, err);
    if (st == XPL_OK)
        end_host(&h);
    else
        l->streams.n = h.first_stream;
    for (size_t i = 0; i < l->kernels.n; i++)
        l->kernels.v[i].here = (struct xpl_launch_times){0};
    return st;
}
