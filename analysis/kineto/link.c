// SPDX-License-Identifier: Apache-2.0
// The host's op and the modules of a device's op: by the correlation of its launch, and by the open
// events of the launch's thread at that time. The id that events carry for it leads to wrong ops in
// traces of 2022 and 2023, and counts only where time says nothing.
#include <stdio.h>
#include <string.h>

#include "analysis/kineto/impl.h"
#include "base/vec.h"

enum {
    MAX_PATH = 1024,
    MAX_WINDOWS = 8,
};
#define FARTHEST_NS (INT64_C(30) * 24 * 3600 * 1000000000) // between the first event and the last

static xpl_str_t name_of(const struct trace *t, const struct event *e) {
    return xpl_intern_get(t->names, (xpl_strid_t){e->name});
}

// ---- order ----

static int outer_first(const void *pa, const void *pb, void *ctx) {
    const struct event *const v = ctx;
    const uint32_t i = *(const uint32_t *)pa, k = *(const uint32_t *)pb;
    const struct event *const a = &v[i], *const b = &v[k];
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    if (a->length != b->length) return a->length > b->length ? -1 : 1;
    return (i > k) - (i < k);
}

static bool in_order(const struct event *v, uint64_t n) {
    for (uint64_t i = 1; i < n; i++)
        if (v[i - 1].begin > v[i].begin ||
            (v[i - 1].begin == v[i].begin && v[i - 1].length < v[i].length))
            return false;
    return true;
}

// Moves each event to its place: order[i] is the one that belongs to i.
static void arrange(struct event *v, uint32_t *order, size_t n) {
    for (uint32_t i = 0; i < n; i++) {
        const struct event first = v[i];
        uint32_t to = i;
        for (uint32_t from; (from = order[to]) != i; to = from) {
            v[to] = v[from];
            order[to] = to;
        }
        v[to] = first;
        order[to] = to;
    }
}

static bool sort_row(struct trace *t, struct row *r) {
    if (in_order(r->events, r->n)) return true;
    const size_t size = r->n * sizeof(uint32_t);
    uint32_t *const order = xpl_kineto_take(t, size) ? xpl_sys_alloc(size) : NULL;
    if (!order) return false;
    for (uint32_t i = 0; i < r->n; i++)
        order[i] = i;
    xpl_sort_r(order, r->n, sizeof *order, outer_first, r->events);
    arrange(r->events, order, r->n);
    xpl_sys_free(order);
    xpl_kineto_give(t, size);
    return true;
}

static bool sort_rows(struct trace *t) {
    for (size_t i = 0; i < t->rows.n; i++)
        if (xpl_kineto_cancelled_at(t, i) || !sort_row(t, &t->rows.v[i])) return false;
    return true;
}

// The latest time such that most events are in the weeks before it.
static int64_t latest_time(struct trace *t) {
    int64_t last = 0, below = INT64_MAX;
    for (unsigned attempt = 0; attempt < MAX_WINDOWS && !xpl_kineto_cancelled(t); attempt++) {
        struct event_cursor all = {0}, near = {0};
        const struct event *e;
        size_t n = 0;
        int64_t next = INT64_MIN;
        while ((e = xpl_kineto_next_event(t, &all)))
            if (e->begin < below && e->begin > next) next = e->begin;
        if (next == INT64_MIN) break;
        last = next;
        while ((e = xpl_kineto_next_event(t, &near)))
            n += e->begin <= last && e->begin >= last - FARTHEST_NS;
        if (n >= t->n_events - n) break;
        below = last - FARTHEST_NS;
    }
    return last;
}

// Events that have begun and not ended reach to the end of the trace.
static void end_begun(struct trace *t, const struct row *r, int64_t end) {
    for (size_t i = 0; i < r->begun.n; i++) {
        struct event *const e = &r->events[r->begun.v[i]];
        if (e->begin != INT64_MIN) xpl_kineto_end_event(t, e, end);
    }
}

// Events that are weeks away from most others have no time.
static void find_window(struct trace *t) {
    const int64_t last = latest_time(t);
    int64_t first = INT64_MAX, end = INT64_MIN;
    size_t n = 0;
    struct event_cursor all = {0}, lost = {0};
    struct event *e;
    while ((e = xpl_kineto_next_event(t, &all))) {
        if (e->begin < last - FARTHEST_NS || e->begin > last) {
            t->lost.untimed++;
            e->begin = INT64_MIN;
            e->length = 0;
            n++;
        } else {
            if (e->begin < first) first = e->begin;
            if (e->begin + e->length > end) end = e->begin + e->length;
        }
    }
    t->first_ns = first == INT64_MAX ? 0 : first;
    for (size_t i = 0; i < t->rows.n; i++)
        end_begun(t, &t->rows.v[i], end);
    while (n && (e = xpl_kineto_next_event(t, &lost)))
        if (e->begin == INT64_MIN) e->begin = t->first_ns;
}

// ---- steps ----

uint32_t xpl_kineto_step_at(const struct trace *t, int64_t at, size_t *hint) {
    const struct step *const v = t->steps.v;
    const size_t n = t->steps.n;
    size_t low = *hint <= n ? *hint : 0, high = n;
    if (low && v[low - 1].begin > at) high = low - 1, low = 0;
    if (low < n && v[low].begin > at) high = low;
    while (low < high) { // the number of steps that begin by then
        const size_t middle = low + (high - low) / 2;
        if (v[middle].begin <= at)
            low = middle + 1;
        else
            high = middle;
    }
    *hint = low;
    return low && at < v[low - 1].end ? (uint32_t)low : 0;
}

// ---- paths of modules ----

// The path of `part`, made of `name`, within `path`; 0 without memory.
static uint32_t path_in(struct trace *t, uint32_t path, uint32_t name, xpl_str_t part) {
    bool is_new;
    uint64_t *const at = xpl_map_put(&t->links, &t->path_of, path, name, &is_new);
    if (!at) return 0;
    if (!is_new) return (uint32_t)*at;
    const xpl_str_t outer = path ? t->paths.v[path] : XPL_STR("");
    if (!t->paths.n) { // the empty path
        xpl_str_t *const none = xpl_vec_push(&t->links, &t->paths);
        if (!none) return 0;
        *none = XPL_STR("");
    }
    const bool fits = outer.len + part.len + 1 <= MAX_PATH;
    char *const p = xpl_arena_alloc(&t->links, outer.len + (fits ? part.len + 1 : 0));
    xpl_str_t *const slot = p ? xpl_vec_push(&t->links, &t->paths) : NULL;
    if (!slot) return 0;
    size_t n = 0;
    if (outer.len) memcpy(p, outer.ptr, outer.len);
    n += outer.len;
    if (fits) {
        if (n) p[n++] = '/';
        for (size_t i = 0; i < part.len; i++) // a slash would be another scope
            p[n++] = part.ptr[i] == '/' || part.ptr[i] == ':' ? '|' : part.ptr[i];
    }
    *slot = (xpl_str_t){p, n};
    *at = t->paths.n - 1;
    return (uint32_t)*at;
}

// ---- walking a thread ----

struct open {
    int64_t end;
    struct event *event;
    uint32_t path;
    uint32_t outer_op; // the next op outside of it: index in the stack plus 1
};

struct walk {
    struct trace *t;
    XPL_VEC(struct open) v;      // the innermost last
    struct xpl_map path_of_flow; // of forward ops
    size_t step;                 // of the last launch
    struct flow *flows;          // of the row, by time
    size_t n_flows;
    bool forward; // looks for the begins of flows only
};

// The innermost op of the stack, open or not: its index plus 1, 0 without one.
static uint32_t top_op(const struct walk *w) {
    if (!w->v.n) return 0;
    const struct open *const top = &w->v.v[w->v.n - 1];
    return top->event->category == CAT_OP ? (uint32_t)w->v.n : top->outer_op;
}

// The innermost op that is open at `at`, NULL without one.  Ops that have ended below others stay
// ended: they are passed once.
static struct event *op_at(struct walk *w, int64_t at) {
    const uint32_t first = top_op(w);
    uint32_t found = first, next;
    while (found && w->v.v[found - 1].end <= at)
        found = w->v.v[found - 1].outer_op;
    for (uint32_t i = first; i != found; i = next) {
        next = w->v.v[i - 1].outer_op;
        w->v.v[i - 1].outer_op = found;
    }
    return found ? w->v.v[found - 1].event : NULL;
}

static const xpl_str_t kModule = {"nn.Module: ", sizeof "nn.Module: " - 1};

static bool is_module(const struct trace *t, const struct event *e) {
    return (e->category == CAT_PYTHON || e->category == CAT_ANNOTATION) &&
           xpl_str_starts(name_of(t, e), kModule);
}

static uint32_t module_in(struct trace *t, uint32_t path, const struct event *e) {
    return path_in(t, path, e->name, xpl_str_sub(name_of(t, e), kModule.len, SIZE_MAX));
}

// Inference servers launch graphs outside of ops and modules, in an annotation of the iteration,
// which replaces these.  False without memory.
static bool enter_graph(const struct walk *w, const struct event *launch, uint32_t *path) {
    struct trace *const t = w->t;
    if (*path) return true;
    for (size_t i = w->v.n; i; i--) {
        const struct event *const e = w->v.v[i - 1].event;
        char buf[XPL_KINETO_MAX_PATTERN];
        if (e->category != CAT_ANNOTATION || e->is_step || w->v.v[i - 1].end <= launch->begin)
            continue;
        const xpl_str_t part = xpl_kineto_pattern(name_of(t, e), buf);
        if (part.len) return (*path = path_in(t, 0, e->name, part)) != 0;
    }
    return true;
}

// Flows that begin or end at the event: forward ops give their modules to the backward ones.
static bool pass_flows(struct walk *w, const struct event *e, uint32_t *path) {
    while (w->n_flows && w->flows->at < e->begin)
        w->flows++, w->n_flows--;
    const size_t n = w->n_flows < XPL_KINETO_FLOWS ? w->n_flows : XPL_KINETO_FLOWS;
    for (size_t i = 0; i < n && w->flows[i].at == e->begin; i++) {
        struct flow *const f = &w->flows[i];
        bool is_new;
        if (f->ends != w->forward && e->category == CAT_OP && !f->op) f->op = e;
        if (!f->ends && w->forward && e->category == CAT_OP) {
            uint64_t *const at = xpl_map_put(&w->t->links, &w->path_of_flow, f->id, 0, &is_new);
            if (!at) return false;
            *at = *path;
        } else if (f->ends && !w->forward) {
            const uint64_t *const at = xpl_map_get(&w->path_of_flow, f->id, 0);
            if (at && *at) *path = (uint32_t)*at;
        }
    }
    return true;
}

static uint32_t framework_op(struct trace *t, const struct event *op, uint32_t path);

// The text "PATH/OP" of an op of a CPU, or with its call; 0 without memory.
static uint32_t cpu_op_name(struct trace *t, uint32_t tf_op, uint32_t call, uint32_t path) {
    const xpl_str_t type = XPL_STR(":torch.");
    const xpl_str_t text = xpl_kineto_text_of(t, tf_op);
    size_t n = text.len;
    if (call) {
        t->scratch.n = 0;
        if (path) xpl_buf_str(&t->scratch, t->paths.v[path]);
        if (path) xpl_buf_putc(&t->scratch, '/');
        xpl_buf_str(&t->scratch, xpl_kineto_text_of(t, call));
        if (t->scratch.failed) return 0;
        return xpl_kineto_text(t, (xpl_str_t){(const char *)t->scratch.p, t->scratch.n});
    }
    while (n && !xpl_str_starts(xpl_str_sub(text, n, SIZE_MAX), type))
        n--;
    return xpl_kineto_text(t, xpl_str_sub(text, 0, n));
}

// The op of a CPU that counts as the device: its index plus 1, 0 without memory.
static uint32_t cpu_op(struct trace *t, const struct event *e, uint32_t path) {
    bool is_new;
    uint32_t call;
    if (!xpl_kineto_call(t, e, &call)) return 0;
    uint64_t *const at =
        xpl_map_put(&t->links, &t->cpu_op_of, (uint64_t)call << 32 | e->name, path, &is_new);
    if (!at) return 0;
    if (!is_new) return (uint32_t)*at;
    const uint32_t tf_op = framework_op(t, e, path);
    const uint32_t hlo_op = tf_op ? cpu_op_name(t, tf_op, call, path) : 0;
    struct cpu_op *const slot = hlo_op ? xpl_vec_push(&t->arena, &t->cpu_ops) : NULL;
    if (!slot) return 0;
    *slot = (struct cpu_op){hlo_op, tf_op};
    use_text(t, hlo_op, ROW_HOST);
    use_text(t, tf_op, ROW_HOST);
    *at = t->cpu_ops.n;
    return (uint32_t)*at;
}

static bool is_cpu_op(const struct trace *t, const struct event *e) {
    return is_of_cpu(t) &&
           (e->category == CAT_OP ||
            (e->category == CAT_ANNOTATION &&
             xpl_kineto_is_cpu_collective(xpl_intern_get(t->names, (xpl_strid_t){e->name}))));
}

static bool walk_event(struct walk *w, struct event *e) {
    struct trace *const t = w->t;
    while (w->v.n && w->v.v[w->v.n - 1].end <= e->begin)
        w->v.n--;
    uint32_t path = w->v.n ? w->v.v[w->v.n - 1].path : 0;
    if (is_module(t, e) && !(path = module_in(t, path, e))) return false;
    if (!pass_flows(w, e, &path)) return false;
    if (!w->forward && e->category == CAT_RUNTIME && e->aux) {
        struct launch *const l = &t->launches.v[e->aux - 1];
        l->begin = e->begin;
        l->op = op_at(w, e->begin);
        l->is_graph = !l->op && xpl_kineto_is_graph_launch(name_of(t, e));
        if (l->is_graph && !enter_graph(w, e, &path)) return false;
        l->path = path;
        l->step = xpl_kineto_step_at(t, e->begin, &w->step);
    }
    if (!w->forward && e->category == CAT_MEMORY && e->aux) {
        struct memory *const m = &t->memory.v[e->aux - 1];
        m->begin = e->begin;
        m->op = op_at(w, e->begin);
        m->path = path;
    }
    if (!w->forward && is_cpu_op(t, e) && !(e->aux = cpu_op(t, e, path))) return false;
    if (e->length <= 0) return true;
    const uint32_t outer_op = top_op(w);
    struct open *const slot = xpl_vec_push(&t->links, &w->v);
    if (slot) *slot = (struct open){e->begin + e->length, e, path, outer_op};
    return slot != NULL;
}

static int by_row(const void *pa, const void *pb) {
    const struct flow *const a = pa, *const b = pb;
    if (a->row != b->row) return a->row < b->row ? -1 : 1;
    return (a->at > b->at) - (a->at < b->at);
}

static xpl_status_t walk_rows(struct walk *w) {
    struct trace *const t = w->t;
    size_t flow = 0;
    for (uint32_t i = 0; i < t->rows.n; i++) {
        const struct row *const r = &t->rows.v[i];
        while (flow < t->flows.n && t->flows.v[flow].row < i)
            flow++;
        const size_t first = flow;
        while (flow < t->flows.n && t->flows.v[flow].row == i)
            flow++;
        w->flows = t->flows.n ? t->flows.v + first : NULL;
        w->n_flows = flow - first;
        w->v.n = 0;
        if (r->kind != ROW_HOST || (w->forward && !w->n_flows)) continue;
        for (uint64_t k = 0; k < r->n; k++) {
            if (xpl_kineto_cancelled_at(t, k) || !walk_event(w, &r->events[k]))
                return xpl_kineto_failure(t);
        }
    }
    return XPL_OK;
}

static xpl_status_t walk_threads(struct trace *t) {
    struct walk w = {.t = t, .forward = true};
    xpl_sort(t->flows.v, t->flows.n, sizeof *t->flows.v, by_row);
    if (t->flows.n) XPL_TRY(walk_rows(&w));
    w.forward = false;
    return walk_rows(&w);
}

// ---- device ops ----

// The text "PATH/NAME:torch.TYPE" of an op within modules; 0 without memory.
static uint32_t typed_name(struct trace *t, xpl_str_t name, const char *type, uint32_t path) {
    const xpl_str_t outer = path ? t->paths.v[path] : XPL_STR("");
    t->scratch.n = 0;
    xpl_buf_str(&t->scratch, outer);
    if (outer.len) xpl_buf_putc(&t->scratch, '/');
    for (size_t i = 0; i < name.len && i < MAX_PATH; i++)
        xpl_buf_putc(&t->scratch, name.ptr[i] == '/' ? '|' : name.ptr[i]);
    xpl_buf_printf(&t->scratch, ":torch.%s", type);
    if (t->scratch.failed) return 0;
    return xpl_kineto_text(t, (xpl_str_t){(const char *)t->scratch.p, t->scratch.n});
}

static uint32_t framework_op(struct trace *t, const struct event *op, uint32_t path) {
    if (!op) return typed_name(t, XPL_STR("(no op)"), "Other", path);
    const xpl_str_t name = name_of(t, op);
    return typed_name(t, name, xpl_kineto_op_type(name), path);
}

// Of a kernel that a graph has without its op: "(graph) GEMM".
static uint32_t graph_op(struct trace *t, const struct device_op *d, uint32_t path) {
    const char *const type =
        xpl_kineto_kernel_type(xpl_intern_get(t->names, (xpl_strid_t){d->name}));
    char name[64];
    const int n = snprintf(name, sizeof name, "(graph) %s", type);
    return typed_name(t, (xpl_str_t){name, (size_t)n}, type, path);
}

// Launches and ops are found in sorted arrays, which take a fraction of the memory of maps, and
// which are often in order already.
struct id_op {
    uint32_t id, order; // order: of all events
    struct event *op;
};

struct linker {
    struct trace *t;
    size_t launch;          // the last one that was found
    struct xpl_map text_of; // by name of the op and path
    struct id_op *ops;      // by External id
    size_t n_ops;
    bool has_ops;
    uint32_t not_recorded;
};

static int by_correlation(const void *pa, const void *pb) {
    const struct launch *const a = pa, *const b = pb;
    if (a->correlation != b->correlation) return a->correlation < b->correlation ? -1 : 1;
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

// Events no longer lead to their launches after that.
static bool sort_launches(struct trace *t) {
    const struct launch *const v = t->launches.v;
    bool in_order = true;
    for (size_t i = 1; in_order && i < t->launches.n; i++) {
        if (xpl_kineto_cancelled_at(t, i)) return false;
        in_order = by_correlation(&v[i - 1], &v[i]) <= 0;
    }
    if (!in_order) xpl_sort(t->launches.v, t->launches.n, sizeof *v, by_correlation);
    return true;
}

// The first launch with the correlation to begin; NULL: none.
static const struct launch *launch_of(struct linker *k, uint64_t correlation) {
    const struct launch *const v = k->t->launches.v;
    const size_t n = k->t->launches.n;
    size_t low = 0, high = n;
    if (!correlation) return NULL;
    // The next one, mostly: device ops are in order, too.
    if (k->launch + 1 < n && v[k->launch].correlation < correlation &&
        v[k->launch + 1].correlation >= correlation)
        low = high = k->launch + 1;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (v[middle].correlation < correlation)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == n || v[low].correlation != correlation) return NULL;
    k->launch = low;
    return &v[low];
}

static int by_id(const void *pa, const void *pb) {
    const struct id_op *const a = pa, *const b = pb;
    if (a->id != b->id) return a->id < b->id ? -1 : 1;
    if (a->op->begin != b->op->begin) return a->op->begin < b->op->begin ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

// Of several ops with an id the first to begin has it.
static bool index_external(struct linker *k) {
    struct trace *const t = k->t;
    struct event_cursor count = {0}, all = {0};
    struct event *e;
    size_t n = 0;
    bool in_order = true;
    while ((e = xpl_kineto_next_event(t, &count)))
        n += e->category == CAT_OP && e->aux;
    k->ops = xpl_arena_array(&t->links, n, sizeof *k->ops);
    k->has_ops = k->ops != NULL;
    for (uint32_t i = 0; k->ops && (e = xpl_kineto_next_event(t, &all)); i++) {
        if (e->category != CAT_OP || !e->aux) continue;
        struct id_op *const o = &k->ops[k->n_ops++];
        *o = (struct id_op){e->aux, i, e};
        in_order &= k->n_ops == 1 || by_id(o - 1, o) <= 0;
    }
    if (!k->ops || t->cancelled) return false;
    if (!in_order) xpl_sort(k->ops, n, sizeof *k->ops, by_id);
    return true;
}

// The op that the External id names, which is to be trusted where time names none.
static bool op_of_external(struct linker *k, const struct device_op *d, struct event **ret) {
    if (!d->external || d->external == d->correlation) return true;
    if (!k->has_ops && !index_external(k)) return false;
    size_t low = 0, high = k->n_ops;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (k->ops[middle].id < d->external)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < k->n_ops && k->ops[low].id == d->external) *ret = k->ops[low].op;
    return true;
}

static bool link_device_op(struct linker *k, struct device_op *d) {
    struct trace *const t = k->t;
    const struct launch *const l = launch_of(k, d->correlation);
    struct event *op = l ? l->op : NULL;
    bool is_new;
    d->step = l ? l->step : 0;
    if (!op && !op_of_external(k, d, &op)) return false;
    d->op = op;
    if (op && !xpl_kineto_call(t, op, &d->call)) return false;
    if (!l && !op) {
        if (!k->not_recorded)
            k->not_recorded = xpl_kineto_text(t, XPL_STR("(launch not recorded):torch.Other"));
        d->tf_op = k->not_recorded;
        return d->tf_op != 0;
    }
    const uint32_t path = l ? l->path : 0;
    const bool in_graph = l && !op && l->is_graph;
    // Kernels of graphs differ by their names.
    const uint64_t name = op ? op->name : in_graph ? UINT64_C(1) << 32 | d->name : 0;
    uint64_t *const text = xpl_map_put(&t->links, &k->text_of, name, path, &is_new);
    if (!text) return false;
    if (is_new) *text = in_graph ? graph_op(t, d, path) : framework_op(t, op, path);
    d->tf_op = (uint32_t)*text;
    return d->tf_op != 0;
}

// Ops of the host, by their names.
static bool name_ops(struct trace *t) {
    xpl_strid_t alloc, dealloc;
    if (!xpl_intern_put(t->names, XPL_STR("MemoryDeallocation"), &dealloc) ||
        !xpl_intern_put(t->names, XPL_STR("MemoryAllocation"), &alloc))
        return false;
    t->allocation = alloc.v;
    t->deallocation = dealloc.v;
    t->n_names = alloc.v > dealloc.v ? alloc.v : dealloc.v;
    struct event_cursor all = {0}, ops = {0};
    const struct event *e;
    while ((e = xpl_kineto_next_event(t, &all)))
        if (e->name > t->n_names) t->n_names = e->name;
    for (size_t i = 0; i < t->steps.n; i++)
        if (t->steps.v[i].name > t->n_names) t->n_names = t->steps.v[i].name;
    t->op_text = xpl_arena_zalloc(&t->arena, ((size_t)t->n_names + 1) * sizeof *t->op_text);
    while (t->op_text && (e = xpl_kineto_next_event(t, &ops))) {
        if (e->category != CAT_OP || t->op_text[e->name]) continue;
        t->op_text[e->name] = framework_op(t, e, 0);
        if (!t->op_text[e->name]) return false;
        use_text(t, t->op_text[e->name], ROW_HOST);
    }
    return t->op_text != NULL && !t->cancelled;
}

// Marks the longest device op of each op of the host: the marks count the runs of ops, and carry
// their costs.  Without an op each device op is a run.
static bool find_runs(struct trace *t) {
    if (is_of_cpu(t)) return true;
    use_text(t, TEXT_CALL, ROW_STREAM);
    use_text(t, TEXT_RUN, ROW_STREAM);
    struct event_cursor all = {0};
    struct event *e;
    while ((e = xpl_kineto_next_event(t, &all)))
        if (e->category == CAT_OP) e->aux = 0; // the ids are not needed any more
    for (uint32_t i = 0; i < t->device_ops.n; i++) {
        struct device_op *const d = &t->device_ops.v[i];
        if (xpl_kineto_cancelled_at(t, i)) return false;
        struct device_op *const longest =
            d->op && d->op->aux ? &t->device_ops.v[d->op->aux - 1] : NULL;
        if (longest && d->length <= longest->length) continue;
        if (longest) longest->is_run = false;
        d->is_run = true;
        if (d->op) d->op->aux = i + 1;
    }
    return true;
}

static bool link_device_ops(struct trace *t) {
    struct linker k = {.t = t};
    if (!sort_launches(t)) return false;
    for (size_t i = 0; i < t->device_ops.n; i++) {
        if (xpl_kineto_cancelled_at(t, i) || !link_device_op(&k, &t->device_ops.v[i])) return false;
        use_text(t, t->device_ops.v[i].tf_op, ROW_STREAM);
        if (t->device_ops.v[i].call) use_text(t, t->device_ops.v[i].call, ROW_STREAM);
    }
    return find_runs(t);
}

// ---- memory ----

// The ops and modules that allocate, and with what inputs.
static bool name_memory(struct trace *t) {
    struct xpl_map text_of = {0};
    for (size_t i = 0; i < t->memory.n; i++) {
        struct memory *const m = &t->memory.v[i];
        bool is_new;
        if (xpl_kineto_cancelled_at(t, i)) return false;
        if (!m->op) continue;
        uint64_t *const text = xpl_map_put(&t->links, &text_of, m->op->name, m->path, &is_new);
        if (!text) return false;
        if (is_new) *text = framework_op(t, m->op, m->path);
        m->tf_op = (uint32_t)*text;
        if (!m->tf_op || !xpl_kineto_call(t, m->op, &m->call)) return false;
    }
    return true;
}

struct memory_key {
    int64_t at;
    uint32_t index;
};

static int by_time(const void *pa, const void *pb) {
    const struct memory_key *const a = pa, *const b = pb;
    if (a->at != b->at) return a->at < b->at ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

// Totals where the trace has none, and peaks.
static bool sum_up_memory(struct trace *t) {
    struct xpl_map of_device = {0};
    XPL_VEC(struct memory) state = {0};
    struct memory_key *const keys = xpl_arena_array(&t->links, t->memory.n, sizeof *keys);
    if (!keys) return false;
    for (uint32_t i = 0; i < t->memory.n && !xpl_kineto_cancelled_at(t, i); i++)
        keys[i] = (struct memory_key){t->memory.v[i].begin, i};
    if (t->cancelled) return false;
    xpl_sort(keys, t->memory.n, sizeof *keys, by_time);
    for (size_t i = 0; i < t->memory.n; i++) {
        struct memory *const m = &t->memory.v[keys[i].index];
        bool is_new;
        if (xpl_kineto_cancelled_at(t, i)) return false;
        uint64_t *const at = xpl_map_put(&t->links, &of_device, (uint64_t)m->device_type,
                                         (uint64_t)m->device_id, &is_new);
        struct memory *slot = NULL;
        if (at && is_new) {
            slot = xpl_vec_push(&t->links, &state);
            if (slot) *slot = (struct memory){0};
            *at = state.n;
        }
        if (!at || (is_new && !slot)) return false;
        struct memory *const s = &state.v[*at - 1];
        s->allocated = xpl_kineto_bytes(s->allocated + m->bytes);
        if (!m->has_allocated) m->allocated = s->allocated;
        if (m->allocated > s->peak) s->peak = m->allocated;
        m->peak = s->peak;
    }
    return true;
}

xpl_status_t xpl_kineto_link(struct trace *t) {
    find_window(t);
    if (!sort_rows(t) || !xpl_kineto_find_steps(t)) return xpl_kineto_failure(t);
    XPL_TRY(walk_threads(t));
    if (!link_device_ops(t) || !name_ops(t) || !name_memory(t) || !sum_up_memory(t))
        return xpl_kineto_failure(t);
    xpl_arena_fini(&t->links);
    return XPL_OK;
}
