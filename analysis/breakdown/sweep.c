// SPDX-License-Identifier: Apache-2.0
// One walk over the time of each device: its work, or the cause of its idle time.
#include <string.h>

#include "analysis/breakdown/impl.h"
#include "base/vec.h"

// Of all steps, the times between them, and the times before and after.
struct part {
    uint64_t begin, end;
    uint32_t row; // of the device
};

struct evidence {
    enum xpl_time_cause cause;
    uint32_t md;
    uint64_t ps, count;
};

// The longest stretch of a cause, and all of its time.
struct longest {
    uint64_t begin, ps, sum;
};

struct sweep {
    struct xpl_breaking *k;
    const struct part *parts;
    // Where the host was at, by cause and name.
    struct xpl_map by_name; // (cause, md) to index + 1
    XPL_VEC(struct evidence) evidence;
    size_t last;     // index of the evidence that was added to last
    uint64_t budget; // of host spans that may be walked over: more devices know no causes

    // Of the device.
    const struct xpl_device_time *d;
    struct xpl_time_device *out;
    struct xpl_time_row *rows;
    struct xpl_span_place layers[XPL_LAYERS], host[XPL_HOST_LAYERS];
    uint8_t in_use[XPL_LAYERS]; // those of layers that the device has
    size_t n_in_use;
    size_t main_at, aside_at, launch_at, part_at;
    bool synced;             // the device ran dry while the host waited for it,
    uint32_t sync_md;        // in this
    uint64_t *sync_ps;       // by metadata of the host
    enum xpl_time_cause run; // the cause since run_begin
    uint64_t run_begin, run_end;
    bool run_idle, idle;                        // the device does nothing during that, from here on
    struct longest longest[2][XPL_TIME_CAUSES]; // of ops, of idle time
    bool detailed;
};

// ---- adding up ----

static void end_run(struct sweep *s) {
    const uint64_t ps = s->run_end - s->run_begin;
    struct longest *const l = &s->longest[s->run_idle][s->run];
    l->sum += ps;
    if (ps <= l->ps) return;
    l->ps = ps;
    l->begin = s->run_begin;
}

// A cause is seen where most of it is: where ops of the device are it, or where it makes idle time.
static void end_device(struct sweep *s) {
    end_run(s);
    for (size_t c = 0; c < XPL_TIME_CAUSES; c++) {
        const struct longest *const l = &s->longest[s->longest[1][c].sum > s->longest[0][c].sum][c];
        s->out->begin_ps[c] = l->begin;
        s->out->longest_ps[c] = l->ps;
    }
}

static void add(struct sweep *s, uint64_t begin, uint64_t end, enum xpl_time_cause cause) {
    if (begin >= end) return;
    if (s->run != cause || s->run_end != begin || s->run_idle != s->idle) {
        end_run(s);
        s->run = cause;
        s->run_idle = s->idle;
        s->run_begin = begin;
    }
    s->run_end = end;
    while (begin < end) {
        while (s->parts[s->part_at].end <= begin)
            s->part_at++;
        const struct part *const p = &s->parts[s->part_at];
        const uint64_t until = end < p->end ? end : p->end;
        s->rows[p->row].ps[cause] += until - begin;
        s->rows[p->row].wall_ps += until - begin;
        begin = until;
    }
}

// Sets s->last.
static bool find_evidence(struct sweep *s, enum xpl_time_cause cause, uint32_t md) {
    bool is_new;
    uint64_t *const at =
        xpl_map_put(s->k->scratch, &s->by_name, (uint64_t)cause, (uint64_t)md, &is_new);
    if (!at) return false;
    if (is_new) {
        struct evidence *const slot = xpl_vec_push(s->k->scratch, &s->evidence);
        if (!slot) return false;
        *slot = (struct evidence){.cause = cause, .md = md};
        *at = s->evidence.n;
    }
    s->last = (size_t)*at - 1;
    return true;
}

static bool add_evidence(struct sweep *s, enum xpl_time_cause cause, uint32_t md, uint64_t ps) {
    struct evidence *const last = s->last < s->evidence.n ? &s->evidence.v[s->last] : NULL;
    if ((!last || last->cause != cause || last->md != md) && !find_evidence(s, cause, md))
        return false;
    s->evidence.v[s->last].ps += ps;
    s->evidence.v[s->last].count++;
    return true;
}

// ---- idle ----

struct reason {
    enum xpl_time_cause cause;
    uint32_t md;
    bool has_md;
};

// Whether the main line copies, or waits for a copy. It waits for results until the device has
// them, so a fetch that continues when the next op begins, at `end`, is not a copy yet.
static bool copies(const struct xpl_main_span *main, uint64_t end) {
    return main &&
           (main->work == XPL_WORK_COPY || (main->work == XPL_WORK_FETCH && main->end <= end));
}

// Where the main line starts nothing, the work of the other line counts: autograd's thread starts
// the backward pass while the main one waits.
static const struct xpl_main_span *which(const struct xpl_main_span *main,
                                         const struct xpl_main_span *aside) {
    if (!aside || aside->work < XPL_WORK_LAUNCH || aside->work > XPL_WORK_COPY) return main;
    return main && (main->work > XPL_WORK_READY || main->slow) ? main : aside;
}

// What the host says of an instant of an idle time until `end`; docs/findings.md has the order.
static struct reason judge(const struct sweep *s, const struct xpl_main_span *main,
                           const bool *layer, uint64_t end) {
    const struct xpl_host_time *const h = &s->k->host;
    const enum xpl_host_work work = main ? main->work : XPL_WORK_NONE;
    const uint32_t md = main ? main->md : 0;
    // The main line has no recorded work, or waits: the cause is the other threads' work.
    const bool rests = work == XPL_WORK_NONE || work == XPL_WORK_WAIT;
    if (layer[XPL_HOST_RUNS] && !layer[XPL_HOST_CALLBACKS])
        return (struct reason){.cause = XPL_TIME_COMPUTE}; // a CPU that is not idle at all
    if (work == XPL_WORK_CHECKPOINT) return (struct reason){XPL_TIME_CHECKPOINT, md, true};
    if (work == XPL_WORK_COMPILE) return (struct reason){XPL_TIME_COMPILE, md, true};
    if (work == XPL_WORK_INPUT) return (struct reason){XPL_TIME_INPUT, md, true};
    if (layer[XPL_HOST_INPUT_WAIT])
        return (struct reason){XPL_TIME_INPUT, h->layer_md[XPL_HOST_INPUT_WAIT], true};
    if (layer[XPL_HOST_COMPILES])
        return (struct reason){XPL_TIME_COMPILE, h->layer_md[XPL_HOST_COMPILES], true};
    if (work == XPL_WORK_CALLBACK) return (struct reason){XPL_TIME_CALLBACK, md, true};
    if (layer[XPL_HOST_CALLBACKS])
        return (struct reason){XPL_TIME_CALLBACK, h->layer_md[XPL_HOST_CALLBACKS], true};
    if (main && main->takes && h->has_feeder)
        return (struct reason){XPL_TIME_INPUT, h->feeder_md, true};
    if (rests && layer[XPL_HOST_INPUT_APART])
        return (struct reason){XPL_TIME_INPUT, h->layer_md[XPL_HOST_INPUT_APART], true};
    if (main && main->slow) return (struct reason){XPL_TIME_HOST, md, true};
    if (copies(main, end)) return (struct reason){XPL_TIME_HOST_COPIES, md, true};
    if (work == XPL_WORK_LAUNCH) return (struct reason){XPL_TIME_LAUNCH, md, true};
    if (work <= XPL_WORK_OTHER && layer[XPL_HOST_DISPATCH])
        return (struct reason){XPL_TIME_LAUNCH, h->layer_md[XPL_HOST_DISPATCH], true};
    if ((rests || work == XPL_WORK_READY) && layer[XPL_HOST_COPIES_APART])
        return (struct reason){XPL_TIME_HOST_COPIES, h->layer_md[XPL_HOST_COPIES_APART], true};
    // A host that waits for a device of which nothing is recorded does not say why either.
    if (work == XPL_WORK_NONE || work == XPL_WORK_READY || work == XPL_WORK_FETCH)
        return (struct reason){.cause = XPL_TIME_UNKNOWN};
    return (struct reason){XPL_TIME_HOST, md, true};
}

// The span at `t`.  *at is a place in the spans that only moves on; *next, where the answer
// changes, is lowered.
static const struct xpl_main_span *main_at(const struct xpl_main_spans *of, size_t *at, uint64_t t,
                                           uint64_t *next) {
    size_t low = *at, high = of->n;
    if (low < high && of->v[low].end <= t && ++low < high && of->v[low].end <= t)
        while (low < high) { // far ahead: the device was busy
            const size_t mid = low + (high - low) / 2;
            if (of->v[mid].end <= t)
                low = mid + 1;
            else
                high = mid;
        }
    *at = low;
    if (low == of->n) return NULL;
    const struct xpl_main_span *const m = &of->v[low];
    const uint64_t change = m->begin <= t ? m->end : m->begin;
    if (change < *next) *next = change;
    return m->begin <= t ? m : NULL;
}

static const struct xpl_main_span *host_at(struct sweep *s, uint64_t t, uint64_t *next) {
    const struct xpl_host_time *const h = &s->k->host;
    const struct xpl_main_span *const main = main_at(&h->main, &s->main_at, t, next),
                                      *const aside = main_at(&h->aside, &s->aside_at, t, next);
    return which(main, aside);
}

// Counts idle time that follows on a wait of the host for the device.
static void count_synced(struct sweep *s, enum xpl_time_cause cause, uint64_t ps) {
    if (s->synced &&
        (cause == XPL_TIME_LAUNCH || cause == XPL_TIME_HOST || cause == XPL_TIME_HOST_COPIES))
        s->sync_ps[s->sync_md] += ps;
}

static bool ask_host(struct sweep *s, uint64_t t, uint64_t end) {
    if (!s->detailed) {
        add(s, t, end, XPL_TIME_UNKNOWN);
        return true;
    }
    while (t < end) {
        uint64_t next = end;
        bool layer[XPL_HOST_LAYERS];
        for (size_t i = 0; i < XPL_HOST_LAYERS; i++)
            layer[i] = xpl_spans_at(&s->k->host.layers[i], &s->host[i], t, &next);
        const struct xpl_main_span *const main = host_at(s, t, &next);
        const struct reason why = judge(s, main, layer, end);
        add(s, t, next, why.cause);
        count_synced(s, why.cause, next - t);
        if (why.cause == XPL_TIME_INPUT && main && main->takes) s->k->b->queue_ps += next - t;
        if (why.has_md && !add_evidence(s, why.cause, why.md, next - t)) return false;
        t = next;
    }
    return true;
}

// Until when the launch at `t` is something else than starting work: it loads the kernel, say.
static uint64_t launched_slowly(struct sweep *s, uint64_t t, uint64_t end) {
    uint64_t next = end;
    const struct xpl_main_span *const m = s->detailed ? host_at(s, t, &next) : NULL;
    return m && m->slow ? (m->end < end ? m->end : end) : t;
}

// Notes whether the host waits for the device when that has done all it was given.
static void note_sync(struct sweep *s, uint64_t t) {
    uint64_t next = UINT64_MAX;
    const struct xpl_main_span *const m = s->sync_ps && s->detailed ? host_at(s, t, &next) : NULL;
    s->synced = m && (m->work == XPL_WORK_FETCH || m->work == XPL_WORK_READY);
    s->sync_md = s->synced ? m->md : 0;
}

// The device is idle until `end`, where its next op begins or its window ends.
static bool add_idle(struct sweep *s, uint64_t begin, uint64_t end) {
    note_sync(s, begin);
    const struct xpl_device_time *const d = s->d;
    while (s->launch_at < d->launches.n && d->launches.v[s->launch_at].begin < end)
        s->launch_at++;
    const struct xpl_launch *const l =
        s->launch_at < d->launches.n ? &d->launches.v[s->launch_at] : NULL;
    if (!l || l->begin != end || l->launched >= end) return ask_host(s, begin, end);
    if (l->launched <= begin) {
        add(s, begin, end, XPL_TIME_QUEUED);
        if (s->launch_at && l[-1].launched == l->launched) s->k->b->graph_ps += end - begin;
        return true;
    }
    if (!ask_host(s, begin, l->launched)) return false;
    const uint64_t from = launched_slowly(s, l->launched, end);
    if (!ask_host(s, l->launched, from)) return false;
    add(s, from, end, XPL_TIME_LAUNCH);
    count_synced(s, XPL_TIME_LAUNCH, end - from);
    return true;
}

// ---- a device ----

static enum xpl_time_cause cause_of(const bool *layer) {
    if (layer[XPL_LAYER_COMPUTE])
        return layer[XPL_LAYER_COLLECTIVE] ? XPL_TIME_OVERLAPPED : XPL_TIME_COMPUTE;
    if (layer[XPL_LAYER_COLLECTIVE]) return XPL_TIME_COLLECTIVES;
    if (layer[XPL_LAYER_HOST_COPY]) return XPL_TIME_HOST_COPIES;
    if (layer[XPL_LAYER_DEVICE_COPY]) return XPL_TIME_DEVICE_COPIES;
    if (layer[XPL_LAYER_INFEED]) return XPL_TIME_INPUT;
    if (layer[XPL_LAYER_CALLBACK]) return XPL_TIME_CALLBACK;
    return XPL_TIME_COMPUTE; // a container
}

// The cores that count as the device make the input, and run PyTorch's ops without their data while
// it compiles: a program that waits for these waits, whatever the cores compute meanwhile.  *next
// is lowered to where that changes.
static bool cpu_waits(struct sweep *s, uint64_t t, uint64_t *next, unsigned *ret_layer) {
    static const unsigned layers[] = {XPL_HOST_INPUT_WAIT, XPL_HOST_COMPILES};
    const size_t n = s->k->is_torch ? 2 : 1;
    bool any = false;
    if (s->d->kind != XPL_DEVICE_CPU || !s->detailed) return false;
    for (size_t i = n; i; i--) { // the first one that is there counts
        const unsigned k = layers[i - 1];
        if (!xpl_spans_at(&s->k->host.layers[k], &s->host[k], t, next)) continue;
        *ret_layer = k;
        any = true;
    }
    return any;
}

static bool add_wait(struct sweep *s, uint64_t begin, uint64_t end, unsigned layer) {
    const enum xpl_time_cause cause =
        layer == XPL_HOST_COMPILES ? XPL_TIME_COMPILE : XPL_TIME_INPUT;
    add(s, begin, end, cause);
    return add_evidence(s, cause, s->k->host.layer_md[layer], end - begin);
}

enum { CANCEL_EVERY = 8192 };

static xpl_status_t walk_device(struct sweep *s, struct xpl_error *err) {
    const uint64_t end = s->k->b->end_ps;
    unsigned steps = 0;
    for (uint64_t t = s->k->b->begin_ps; t < end;) {
        bool layer[XPL_LAYERS] = {0}, any = false;
        uint64_t next = end;
        if (++steps % CANCEL_EVERY == 0 && xpl_exec_cancelled(s->k->exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "time breakdown: cancelled");
        for (size_t k = 0; k < s->n_in_use; k++) {
            const unsigned i = s->in_use[k];
            any |= layer[i] = xpl_spans_at(&s->d->layers[i], &s->layers[i], t, &next);
        }
        unsigned host = 0;
        const bool waits = any && cpu_waits(s, t, &next, &host);
        s->idle = !any || waits;
        if (any && !waits)
            add(s, t, next, cause_of(layer));
        else if (!(waits ? add_wait(s, t, next, host) : add_idle(s, t, next)))
            XPL_RETURN_OOM(err, "time breakdown");
        t = next;
    }
    end_device(s);
    return XPL_OK;
}

static xpl_status_t begin_device(struct sweep *s, size_t i, size_t n_rows, struct xpl_error *err) {
    struct xpl_time_breakdown *const b = s->k->b;
    s->d = &s->k->devices[i];
    s->out = &b->devices.v[i];
    if (!xpl_vec_reserve(s->k->result, &b->rows, n_rows)) XPL_RETURN_OOM(err, "time breakdown");
    s->rows = &b->rows.v[b->rows.n];
    b->rows.n += n_rows;
    for (size_t r = 0; r < n_rows; r++)
        s->rows[r] = (struct xpl_time_row){
            .device = (uint32_t)i,
            .step = r + 1 < n_rows ? (uint32_t)r : XPL_BETWEEN_STEPS,
        };
    s->n_in_use = 0;
    for (size_t k = 0; k < XPL_LAYERS; k++) {
        s->layers[k] = (struct xpl_span_place){0};
        if (s->d->layers[k].v.n) s->in_use[s->n_in_use++] = (uint8_t)k;
    }
    for (size_t k = 0; k < XPL_HOST_LAYERS; k++)
        s->host[k] = (struct xpl_span_place){0};
    s->main_at = s->aside_at = s->launch_at = s->part_at = 0;
    s->run = XPL_TIME_COMPUTE;
    s->run_begin = s->run_end = b->begin_ps;
    s->run_idle = s->idle = false;
    memset(s->longest, 0, sizeof s->longest);
    uint64_t spans = s->k->host.main.n + s->k->host.aside.n + 1;
    for (size_t k = 0; k < XPL_HOST_LAYERS; k++)
        spans += s->k->host.layers[k].v.n;
    s->detailed = spans <= s->budget;
    if (s->detailed) s->budget -= spans;
    return XPL_OK;
}

// ---- parts and evidence ----

// The window, cut at the steps: steps that have rows are rows 0..n-1, the rest is row n.
static const struct part *make_parts(struct xpl_breaking *k, size_t n_steps) {
    const struct xpl_time_breakdown *const b = k->b;
    struct part *const p = xpl_arena_array(k->scratch, 2 * n_steps + 1, sizeof *p);
    const uint32_t rest = (uint32_t)n_steps;
    uint64_t at = b->begin_ps;
    size_t n = 0;
    for (size_t i = 0; p && i < n_steps; i++) {
        const struct xpl_time_step *const s = &b->steps.v[i];
        if (s->begin_ps > at) p[n++] = (struct part){at, s->begin_ps, rest};
        if (s->end_ps > s->begin_ps) p[n++] = (struct part){s->begin_ps, s->end_ps, (uint32_t)i};
        at = s->end_ps;
    }
    if (p) p[n] = (struct part){at, UINT64_MAX, rest};
    return p;
}

static int by_cause(const void *a, const void *b) {
    const struct evidence *const x = a, *const y = b;
    if (x->cause != y->cause) return x->cause < y->cause ? -1 : 1;
    if (x->ps != y->ps) return x->ps > y->ps ? -1 : 1;
    return (x->md > y->md) - (x->md < y->md);
}

static bool keep_evidence(struct sweep *s) {
    struct xpl_time_breakdown *const b = s->k->b;
    size_t of_cause = 0;
    xpl_sort(s->evidence.v, s->evidence.n, sizeof *s->evidence.v, by_cause);
    for (size_t i = 0; i < s->evidence.n; i++) {
        const struct evidence *const e = &s->evidence.v[i];
        of_cause = i && e->cause == s->evidence.v[i - 1].cause ? of_cause + 1 : 0;
        if (of_cause >= XPL_TIME_MAX_EVIDENCE) continue;
        struct xpl_time_evidence *const slot = xpl_vec_push(s->k->result, &b->evidence);
        if (!slot) return false;
        *slot = (struct xpl_time_evidence){.cause = e->cause, .ps = e->ps, .count = e->count};
        if (!xpl_arena_str(s->k->result, s->k->host.plane->event_md[e->md].name, &slot->name))
            return false;
    }
    return true;
}

// In what the host waited most, of all waits after which devices were idle.
static bool sum_up_syncs(struct sweep *s) {
    const struct xpl_plane *const p = s->k->host.plane;
    struct xpl_time_breakdown *const b = s->k->b;
    uint32_t most = 0;
    for (uint32_t i = 0; s->sync_ps && i < p->n_event_md; i++) {
        b->sync_ps += s->sync_ps[i];
        if (s->sync_ps[i] > s->sync_ps[most]) most = i;
    }
    return !b->sync_ps || xpl_arena_str(s->k->result, p->event_md[most].name, &b->sync_name);
}

xpl_status_t xpl_breaking_sweep(struct xpl_breaking *k, struct xpl_error *err) {
    struct xpl_time_breakdown *const b = k->b;
    struct sweep s = {.k = k, .budget = UINT64_C(1) << 28};
    size_t n_steps = b->steps.n;
    if (b->devices.n == 0 || b->begin_ps >= b->end_ps) return XPL_OK;
    if (n_steps > XPL_TIME_MAX_ROWS / b->devices.n - 1)
        n_steps = XPL_TIME_MAX_ROWS / b->devices.n - 1;
    b->steps.n = n_steps;
    s.parts = make_parts(k, n_steps);
    const uint32_t n_md = k->is_torch && k->host.plane ? k->host.plane->n_event_md : 0;
    if (n_md) s.sync_ps = xpl_arena_zalloc(k->scratch, n_md * sizeof *s.sync_ps);
    if (!s.parts || (n_md && !s.sync_ps)) XPL_RETURN_OOM(err, "time breakdown");
    for (size_t i = 0; i < b->devices.n; i++) {
        XPL_TRY(begin_device(&s, i, n_steps + 1, err));
        XPL_TRY(walk_device(&s, err));
    }
    if (!keep_evidence(&s) || !sum_up_syncs(&s)) XPL_RETURN_OOM(err, "time breakdown");
    return XPL_OK;
}
