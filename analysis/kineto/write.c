// SPDX-License-Identifier: Apache-2.0
// The XSpace: a plane of the host with a line for each thread, and for each device a plane with a
// line for each stream and one for its other events.
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "analysis/kineto/impl.h"
#include "analysis/wire/wire.h"
#include "analysis/wire/writer.h"
#include "analysis/xplane/captured.h"
#include "analysis/xplane/fields.h"
#include "analysis/xplane/schema.h"
#include "analysis/xplane/writer.h"
#include "base/hash.h"
#include "base/text/parse.h"
#include "base/text/utf8.h"
#include "base/vec.h"

enum {
    MAX_WARNING = 512,
    RELEASE_EVERY = 1 << 12, // events
    MOST_ADDED = 24,         // bytes of an XStat that the store does not have
    FIRST_UNNUMBERED = 1 << 30,
    MOST_PLANES = 256, // the last one has the rows of all further devices
    // Each plane has all texts and steps of its kind: more planes than FEW_PLANES may have so many
    // bytes of them together, about.
    FEW_PLANES = 16,
    MOST_REPEATED = 32 << 20,
    STEP_BYTES = 64, // with its name
    MOST_DIGITS = 20,
    LEAST_APART_NS = 10000000,
};

// When a device begins with a step, and when it is done with it.
struct device_step {
    int64_t first, last, begin;
    bool any;
};

struct writer {
    struct trace *t;
    struct xpl_xspace_writer w;
    uint32_t *by_name; // rows with events, in the order of the XSpace
    size_t n_rows;
    int64_t max_planes;
    struct device_step *device_steps;
    uint8_t *name_used; // by name: of this plane
    struct xpl_buf text;
    struct xpl_buf *out;
    size_t counted; // bytes of `out`, against the budget
    bool full;
    int64_t earlier; // ns: how much the clock of a device is, if clocks differ
    bool grouped;    // the XSpace says which step events are of
};

// ---- texts ----

static xpl_str_t valid(struct writer *w, xpl_str_t s) {
    if (xpl_utf8_valid(s)) return s;
    w->text.n = 0;
    xpl_utf8_clean(&w->text, s, SIZE_MAX);
    return (xpl_str_t){(const char *)w->text.p, w->text.n};
}

static void put_warning(struct writer *w, bool error, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void put_warning(struct writer *w, bool error, const char *fmt, ...) {
    char text[MAX_WARNING];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    const xpl_str_t s = xpl_utf8_whole(xpl_str_from(text));
    if (error)
        xpl_xspace_writer_error(&w->w, s);
    else
        xpl_xspace_writer_warning(&w->w, s);
}

// ---- metadata ----

static void put_names(struct writer *w) {
    struct trace *const t = w->t;
    for (uint32_t i = 0; i <= t->n_names && !xpl_kineto_cancelled_at(t, i); i++) {
        if (!w->name_used[i]) continue;
        const xpl_str_t name = valid(w, xpl_intern_get(t->names, (xpl_strid_t){i}));
        xpl_xspace_writer_begin_event_md(&w->w, (int64_t)i + 1, name, XPL_STR(""));
        xpl_xspace_writer_end_event_md(&w->w);
    }
}

static void put_texts(struct writer *w, unsigned kinds) {
    struct trace *const t = w->t;
    for (uint32_t i = 1; i < t->text_cap && !xpl_kineto_cancelled_at(t, i); i++)
        if (t->text_used[i] & kinds)
            xpl_xspace_writer_stat_md(&w->w, (int64_t)i + 1, valid(w, xpl_kineto_text_of(t, i)),
                                      XPL_STR(""));
}

static int64_t md_of(struct writer *w, enum text text, enum row_kind kind) {
    use_text(w->t, text, kind);
    return (int64_t)text + 1;
}

static void put_int(struct writer *w, enum text text, enum row_kind kind, int64_t v) {
    xpl_xspace_writer_int(&w->w, md_of(w, text, kind), v);
}

static void put_str(struct writer *w, enum text text, enum row_kind kind, xpl_str_t v) {
    xpl_xspace_writer_str(&w->w, md_of(w, text, kind), valid(w, v));
}

static void put_ref(struct writer *w, enum text text, enum row_kind kind, uint32_t v) {
    use_text(w->t, v, kind);
    xpl_xspace_writer_ref(&w->w, md_of(w, text, kind), (uint64_t)v + 1);
}

// ---- statistics of events ----

static uint8_t tag(unsigned field, enum xpl_wire_type type) {
    return (uint8_t)(field << 3 | type);
}

// The begin of an XStat in an event, of `n` bytes for its value.
static uint8_t *put_head(uint8_t *p, uint32_t name, size_t n) {
    const uint64_t id = (uint64_t)name + 1;
    *p++ = tag(XEVENT_STATS, XPL_WIRE_LEN);
    p = xpl_varint_put(p, 1 + xpl_varint_size(id) + n);
    *p++ = tag(XSTAT_MD_ID, XPL_WIRE_VARINT);
    return xpl_varint_put(p, id);
}

// Both write it at `p`, where it has MOST_ADDED bytes and its text's; where it ends.
static uint8_t *put_text_stat(uint8_t *p, const struct stat *s) {
    const size_t n = s->text.len;
    const bool is_str = s->kind == STAT_STR;
    p = put_head(p, s->name, 1 + (is_str ? xpl_varint_size(n) : 0) + n);
    *p++ = is_str ? tag(XSTAT_STR, XPL_WIRE_LEN) : tag(XSTAT_DOUBLE, XPL_WIRE_I64);
    if (is_str) p = xpl_varint_put(p, n);
    if (n) memcpy(p, s->text.ptr, n);
    return p + n;
}

static uint8_t *put_stat(uint8_t *p, const struct stat *s) {
    static const uint8_t fields[] = {
        [STAT_INT] = XSTAT_INT, [STAT_UINT] = XSTAT_UINT, [STAT_REF] = XSTAT_REF};
    if (s->kind == STAT_STR || s->kind == STAT_DOUBLE) return put_text_stat(p, s);
    const uint64_t v = s->number + (s->kind == STAT_REF); // ids of texts are numbers plus 1
    p = put_head(p, s->name, 1 + xpl_varint_size(v));
    *p++ = tag(fields[s->kind], XPL_WIRE_VARINT);
    return xpl_varint_put(p, v);
}

static void put_args(struct writer *w, const struct event *e) {
    struct stats stats = xpl_kineto_stats(w->t, e);
    uint8_t *p = xpl_xspace_writer_stats_room(&w->w, stats.size + (size_t)stats.n * MOST_ADDED);
    struct stat s;
    if (!p) return;
    while (xpl_kineto_next_stat(&stats, &s))
        p = put_stat(p, &s);
    xpl_xspace_writer_stats_end(&w->w, p);
    xpl_kineto_release_stats(w->t, e);
}

// Where an event of the host stands.
struct place {
    int64_t outer_end; // of the outermost event that is open
    size_t step;       // as of xpl_kineto_step_at
    size_t flow;       // the first one that is not before the event
};

// The step in which an outermost event of another thread begins: its launches belong to the step.
static const struct step *step_at(const struct trace *t, const struct event *e, uint32_t row) {
    size_t low = 0, high = t->steps.n;
    while (low < high) { // the first one that ends later
        const size_t middle = low + (high - low) / 2;
        if (t->steps.v[middle].latest_end <= e->begin)
            low = middle + 1;
        else
            high = middle;
    }
    const struct step *const s = low < t->steps.n ? &t->steps.v[low] : NULL;
    return s && s->begin <= e->begin && s->row != row ? s : NULL;
}

// Without device events grouping defines steps: the annotation, and the events that begin in it on
// other threads.
static void put_step(struct writer *w, int64_t number, const struct step *consumer) {
    if (consumer) {
        put_int(w, TEXT_CONSUMER_TYPE, ROW_HOST, XPL_CONTEXT_GENERIC);
        put_int(w, TEXT_CONSUMER_ID, ROW_HOST, consumer->number);
        return;
    }
    put_int(w, TEXT_IS_ROOT, ROW_HOST, 1);
    put_int(w, TEXT_STEP_NUM, ROW_HOST, number);
    put_ref(w, TEXT_GRAPH_TYPE, ROW_HOST, TEXT_PROFILER_STEP);
    put_int(w, TEXT_PRODUCER_TYPE, ROW_HOST, XPL_CONTEXT_GENERIC);
    put_int(w, TEXT_PRODUCER_ID, ROW_HOST, number);
}

static const char *device_name(const struct memory *m, char *text, size_t size) {
    static const char *const names[] = {[0] = "CPU",  [1] = "GPU",  [6] = "GPU",   [12] = "XPU",
                                        [13] = "MPS", [15] = "HPU", [19] = "MTIA", [20] = "NPU"};
    const size_t n = sizeof names / sizeof *names;
    const char *const name =
        m->device_type >= 0 && (size_t)m->device_type < n ? names[m->device_type] : NULL;
    if (m->device_type == 0) return names[0];
    if (name)
        (void)snprintf(text, size, "%s %" PRId32, name, m->device_id);
    else
        (void)snprintf(text, size, "device %" PRId32 ":%" PRId32, m->device_type, m->device_id);
    return text;
}

// Devices of one name differ in nothing that counts.  ROCm's traces number the devices of kernels
// as the machine does, and list those that the process sees, from 0.
static const struct device_properties *properties_of(const struct trace *t, int64_t device) {
    const struct device_properties *const v = t->devices.v;
    size_t alike = 0;
    for (size_t i = 0; i < t->devices.n; i++) {
        if (v[i].id == device) return &v[i];
        alike += xpl_str_eq(v[i].name, v[0].name);
    }
    return alike && alike == t->devices.n ? v : NULL;
}

static int64_t capacity(const struct trace *t, const struct memory *m) {
    const struct device_properties *const d =
        m->device_type != 0 ? properties_of(t, m->device_id) : NULL;
    return d ? xpl_kineto_bytes(d->memory) : 0;
}

static void put_memory(struct writer *w, const struct memory *m) {
    struct trace *const t = w->t;
    char text[64];
    const int64_t total = capacity(t, m), size = m->bytes < 0 ? -m->bytes : m->bytes;
    put_str(w, TEXT_ALLOCATOR, ROW_HOST, xpl_str_from(device_name(m, text, sizeof text)));
    put_int(w, TEXT_BYTES_ALLOCATED, ROW_HOST, m->allocated);
    put_int(w, TEXT_BYTES_RESERVED, ROW_HOST, 0);
    if (total) // of the host it is unknown
        put_int(w, TEXT_BYTES_AVAILABLE, ROW_HOST, total > m->allocated ? total - m->allocated : 0);
    put_int(w, TEXT_PEAK_BYTES, ROW_HOST, m->peak);
    put_int(w, TEXT_ALLOCATION_BYTES, ROW_HOST, size);
    put_int(w, TEXT_REQUESTED_BYTES, ROW_HOST, size);
    put_int(w, TEXT_ADDRESS, ROW_HOST, (int64_t)m->address);
    if (m->has_reserved && m->reserved > 0 && m->reserved >= m->allocated)
        xpl_xspace_writer_double(&w->w, md_of(w, TEXT_FRAGMENTATION, ROW_HOST),
                                 (double)(m->reserved - m->allocated) / (double)m->reserved);
    // Under a name that makes no op of the event.
    if (m->tf_op) put_ref(w, TEXT_TF_OP_NAME, ROW_HOST, m->tf_op);
    if (m->call) put_ref(w, TEXT_SHAPE, ROW_HOST, m->call);
}

static void put_group(struct writer *w, enum row_kind kind, uint32_t step) {
    if (step) put_int(w, TEXT_GROUP_ID, kind, w->t->steps.v[step - 1].number);
}

static void add_to_step(struct device_step *s, const struct event *e) {
    const int64_t end = e->begin + e->length;
    if (!s->any || e->begin < s->first) s->first = e->begin;
    if (!s->any || end > s->last) s->last = end;
    s->any = true;
}

static void put_device_op(struct writer *w, const struct device_op *d, const struct event *e) {
    if (d->step) add_to_step(&w->device_steps[d->step - 1], e);
    put_ref(w, TEXT_TF_OP, ROW_STREAM, d->tf_op);
    if (d->call) put_ref(w, TEXT_CALL, ROW_STREAM, d->call);
    if (d->is_run) put_int(w, TEXT_RUN, ROW_STREAM, 1);
    if (w->grouped) put_group(w, ROW_STREAM, d->step);
}

// As an op of XLA on a CPU, so that it counts as one of a device (docs/cpu-as-device.md).
static void put_cpu_op(struct writer *w, const struct event *e) {
    if (!e->aux) return;
    const struct cpu_op *const op = &w->t->cpu_ops.v[e->aux - 1];
    put_ref(w, TEXT_HLO_OP, ROW_HOST, op->hlo_op);
    put_ref(w, TEXT_HLO_MODULE, ROW_HOST, TEXT_PYTORCH);
    put_ref(w, TEXT_TF_OP, ROW_HOST, op->tf_op);
}

static void put_own_stats(struct writer *w, const struct event *e) {
    struct trace *const t = w->t;
    size_t hint = 0;
    uint32_t step;
    switch ((enum category)e->category) {
        case CAT_OP:
            if (is_of_cpu(t))
                put_cpu_op(w, e);
            else if (t->op_text[e->name])
                put_ref(w, TEXT_TF_OP, ROW_HOST, t->op_text[e->name]);
            break;
        case CAT_ANNOTATION:
            if (is_of_cpu(t)) put_cpu_op(w, e);
            if (!w->grouped && e->is_step && (step = xpl_kineto_step_at(t, e->begin, &hint)))
                put_step(w, t->steps.v[step - 1].number, NULL);
            break;
        case CAT_MEMORY:
            if (e->aux) put_memory(w, &t->memory.v[e->aux - 1]);
            break;
        case CAT_KERNEL:
        case CAT_COPY:
        case CAT_SET: put_device_op(w, &t->device_ops.v[e->aux - 1], e); break;
        case CAT_OTHER:
        case CAT_DEVICE_ANNOTATION:
        case CAT_PYTHON:
        case CAT_RUNTIME:
        case CAT_SYNC:
        case CAT_MARKER:
        case CAT_OVERHEAD:
        case CAT_SPAN:
        case CAT_COUNTER:
        case N_CATEGORIES: break;
    }
}

// ---- lines ----

static uint32_t name_of(const struct trace *t, const struct event *e) {
    if (e->category != CAT_MEMORY || !e->aux) return e->name;
    return t->memory.v[e->aux - 1].bytes < 0 ? t->deallocation : t->allocation;
}

// Since 1970; 0: the trace counts from another time, and its XSpace from its first event.
static int64_t start_ns(const struct trace *t) {
    const int64_t ns = t->base_ns + t->first_ns;
    return xpl_ns_is_date(ns) ? ns : 0;
}

// The value of a stat "flow", as XProf has it: direction, id, category.  Processes that are shown
// together number their flows alike: the id is of the process, too.
static uint64_t flow_value(const struct trace *t, const struct flow *f) {
    enum { IN = 1, OUT = 2, DIRECTION_BITS = 2, UNUSED_BITS = 8 };
    const uint64_t odd = UINT64_C(0xa0761d6478bd642f);
    const uint64_t process = xpl_hash_fold((uint64_t)t->rank ^ odd, (uint64_t)start_ns(t) ^ odd);
    const uint64_t id = xpl_hash_fold(f->id ^ odd, process | 1) >> UNUSED_BITS;
    return id << DIRECTION_BITS | (f->ends ? IN : OUT);
}

// The arrow from a forward op to its backward op.
static void put_flow(struct writer *w, uint32_t row, const struct event *e, struct place *p) {
    const struct trace *const t = w->t;
    const struct flow *const v = t->flows.v;
    while (p->flow < t->flows.n &&
           (v[p->flow].row < row || (v[p->flow].row == row && v[p->flow].at < e->begin)))
        p->flow++;
    const size_t end =
        t->flows.n - p->flow < XPL_KINETO_FLOWS ? t->flows.n : p->flow + XPL_KINETO_FLOWS;
    for (size_t i = p->flow; i < end && v[i].row == row && v[i].at == e->begin; i++) {
        if (v[i].op != e) continue;
        xpl_xspace_writer_uint(&w->w, md_of(w, TEXT_FLOW, ROW_HOST), flow_value(t, &v[i]));
        return; // an event has one
    }
}

static void put_event(struct writer *w, const struct row *r, uint32_t row, const struct event *e,
                      struct place *p) {
    struct trace *const t = w->t;
    const uint32_t name = name_of(t, e);
    w->name_used[name] = 1;
    xpl_xspace_writer_begin_event(&w->w, (int64_t)name + 1, (e->begin - t->first_ns) * 1000,
                                  e->length * 1000);
    if (e->chunk) put_args(w, e);
    put_own_stats(w, e);
    if (e->category == CAT_OP && t->flows.n) put_flow(w, row, e, p);
    if (w->grouped && r->kind == ROW_HOST)
        put_group(w, ROW_HOST, xpl_kineto_step_at(t, e->begin, &p->step));
    if (!w->grouped && r->kind == ROW_HOST && t->steps.n && e->begin >= p->outer_end) {
        const struct step *const s = step_at(t, e, row);
        p->outer_end = e->begin + e->length;
        if (s) put_step(w, 0, s);
    }
    xpl_xspace_writer_end_event(&w->w);
}

static int64_t number_of(xpl_str_t s, int64_t other) {
    int64_t v;
    const xpl_str_t stream = XPL_STR("stream ");
    if (xpl_str_starts(s, stream)) s = xpl_str_sub(s, stream.len, SIZE_MAX);
    if (s.len > MOST_DIGITS) return other; // rows are compared by it, often
    return xpl_parse_int(s, INT64_MIN, INT64_MAX, &v) ? v : other;
}

static int64_t line_id(const struct row *r, uint32_t row) {
    const int64_t id = number_of(r->tid, (int64_t)FIRST_UNNUMBERED + row);
    return xpl_is_derived_line_id(id) ? (int64_t)FIRST_UNNUMBERED + row : id;
}

static xpl_str_t line_name(struct writer *w, const struct row *r, char *text, size_t size) {
    if (r->kind == ROW_COUNTERS) return XPL_STR(XPL_LINE_COUNTERS);
    const xpl_str_t tid = xpl_str_sub(r->tid, 0, 128);
    const int64_t stream = number_of(tid, INT64_MIN);
    if (r->kind == ROW_STREAM && stream != INT64_MIN)
        (void)snprintf(text, size, "Stream #%" PRId64, stream);
    else if (r->name.len)
        return valid(w, xpl_str_strip(r->name));
    else
        (void)snprintf(text, size, "%s %.*s", r->kind == ROW_HOST ? "thread" : "stream",
                       XPL_STR_FMT(tid));
    return valid(w, xpl_str_from(text));
}

// Counts the bytes written so far; the first n events of the row are not needed any more.  False at
// the limit.
static bool release_events(struct writer *w, const struct row *r, uint64_t n) {
    if (n) xpl_sys_discard(&r->events[n - RELEASE_EVERY], RELEASE_EVERY * sizeof *r->events);
    w->full |= !xpl_kineto_take(w->t, w->out->n - w->counted);
    w->counted = w->out->n;
    return !w->full;
}

static void put_line(struct writer *w, uint32_t row) {
    struct trace *const t = w->t;
    struct row *const r = &t->rows.v[row];
    char text[192];
    struct place p = {.outer_end = INT64_MIN};
    const struct xpl_xspace_writer_line line = {.id = line_id(r, row),
                                                .name = line_name(w, r, text, sizeof text),
                                                .timestamp_ns = start_ns(t)};
    xpl_xspace_writer_begin_line(&w->w, &line);
    for (uint64_t i = 0; i < r->n && !xpl_kineto_cancelled_at(t, i); i++) {
        if (i % RELEASE_EVERY == 0 && !release_events(w, r, i)) break;
        put_event(w, r, row, &r->events[i], &p);
    }
    xpl_sys_free(r->events);
    r->events = NULL;
    xpl_xspace_writer_end_line(&w->w);
}

// ---- steps of a device ----

// A step begins with its annotation if the device has finished the earlier ones by then, else with
// its first op, and one without ops when the earlier ones end (docs/steps.md).  It lasts until the
// next one begins, the last until host and device are done.
static void set_begins(const struct trace *t, struct device_step *of, bool apart) {
    int64_t busy_until = INT64_MIN, begin = INT64_MIN;
    for (size_t i = 0; i < t->steps.n; i++) {
        const int64_t host = t->steps.v[i].begin;
        const int64_t first = of[i].any ? of[i].first : busy_until;
        const bool is_host = !apart && (busy_until <= host || first < host);
        const int64_t at = is_host ? host : first;
        if (of[i].any && of[i].last > busy_until) busy_until = of[i].last;
        if (at > begin) begin = at;
        of[i].begin = begin;
    }
}

// How much earlier the device's work begins than the step that launched it, if that is more than
// all of the work takes: the clocks of host and device differ. Else 0. Work that begins later
// proves nothing: the device may be busy with other work.
static int64_t clocks_apart(const struct trace *t, const struct device_step *of) {
    const struct step *step = NULL;
    int64_t first = INT64_MAX, last = INT64_MIN;
    for (size_t i = 0; i < t->steps.n; i++) {
        if (!of[i].any) continue;
        if (!step) step = &t->steps.v[i];
        if (of[i].first < first) first = of[i].first;
        if (of[i].last > last) last = of[i].last;
    }
    if (!step) return 0;
    const int64_t least = last - first > LEAST_APART_NS ? last - first : LEAST_APART_NS;
    return step->begin - first > least ? step->begin - first : 0;
}

static int64_t step_end(const struct trace *t, const struct device_step *of, size_t i, bool apart) {
    if (i + 1 < t->steps.n) return of[i + 1].begin;
    if (apart) return of[i].any ? of[i].last : of[i].begin;
    return of[i].any && of[i].last > t->steps.v[i].end ? of[i].last : t->steps.v[i].end;
}

static void put_steps(struct writer *w) {
    struct trace *const t = w->t;
    struct device_step *const of = w->device_steps;
    const struct xpl_xspace_writer_line line = {
        .id = XPL_LINE_ID_STEPS, .name = XPL_STR(XPL_LINE_STEPS), .timestamp_ns = start_ns(t)};
    const int64_t earlier = clocks_apart(t, of);
    const bool apart = earlier != 0;
    if (!w->earlier) w->earlier = earlier;
    set_begins(t, of, apart);
    xpl_xspace_writer_begin_line(&w->w, &line);
    for (size_t i = 0; i < t->steps.n && !xpl_kineto_cancelled_at(t, i); i++) {
        const int64_t begin = of[i].begin, end = step_end(t, of, i, apart);
        w->name_used[t->steps.v[i].name] = 1;
        xpl_xspace_writer_begin_event(&w->w, (int64_t)t->steps.v[i].name + 1,
                                      (begin - t->first_ns) * 1000,
                                      end > begin ? (end - begin) * 1000 : 0);
        put_int(w, TEXT_GROUP_ID, ROW_STREAM, t->steps.v[i].number);
        xpl_xspace_writer_end_event(&w->w);
    }
    xpl_xspace_writer_end_line(&w->w);
}

// ---- planes ----

static int32_t device_of(const struct row *r) {
    if (r->device >= 0) return r->device;
    const int64_t pid = number_of(r->pid, 0);
    return pid < 0 || pid > INT32_MAX ? 0 : (int32_t)pid;
}

static bool is_of_host(const struct row *r) {
    return r->kind == ROW_HOST || r->kind == ROW_COUNTERS;
}

// Rows by kind, then device and stream.
static int by_plane(const void *pa, const void *pb, void *ctx) {
    const struct trace *const t = ctx;
    const uint32_t x = *(const uint32_t *)pa, y = *(const uint32_t *)pb;
    const struct row *const a = &t->rows.v[x], *const b = &t->rows.v[y];
    const bool host_a = is_of_host(a), host_b = is_of_host(b);
    if (host_a != host_b) return host_a ? -1 : 1;
    if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
    if (!host_a && device_of(a) != device_of(b)) return device_of(a) < device_of(b) ? -1 : 1;
    const int64_t i = line_id(a, x), k = line_id(b, y);
    if (i != k) return i < k ? -1 : 1;
    return (x > y) - (x < y);
}

static bool has_property(const struct trace *t, const char *part) {
    for (size_t i = 0; i < t->properties.n; i++)
        if (xpl_str_has(xpl_kineto_text_of(t, t->properties.v[i].key), xpl_str_from(part)))
            return true;
    return false;
}

static xpl_str_t vendor_of(const struct trace *t, const struct device_properties *d) {
    const xpl_str_t name = d ? d->name : XPL_STR("");
    if (t->has_amd || has_property(t, "hip_") || has_property(t, "roctracer") ||
        xpl_str_has(name, XPL_STR("AMD")))
        return XPL_STR(XPL_VENDOR_AMD);
    if (t->has_cuda || has_property(t, "cuda_") || xpl_str_has(name, XPL_STR("NVIDIA")))
        return XPL_STR(XPL_VENDOR_NVIDIA);
    return XPL_STR("");
}

static void put_device(struct writer *w, int32_t device) {
    const struct trace *const t = w->t;
    const struct device_properties *const d = properties_of(t, device);
    const xpl_str_t vendor = vendor_of(t, d);
    struct device_rates rates;
    if (vendor.len) put_str(w, TEXT_VENDOR, ROW_STREAM, vendor);
    if (!d) return;
    if (d->name.len) put_str(w, TEXT_GPU_NAME, ROW_STREAM, d->name);
    if (d->cores) put_int(w, TEXT_CORE_COUNT, ROW_STREAM, d->cores);
    if (d->memory) put_int(w, TEXT_MEMORY_SIZE, ROW_STREAM, d->memory);
    put_int(w, TEXT_CAP_MAJOR, ROW_STREAM, d->major);
    put_int(w, TEXT_CAP_MINOR, ROW_STREAM, d->minor);
    if (!xpl_kineto_device_rates(d, &rates)) return;
    put_int(w, TEXT_CLOCK_RATE, ROW_STREAM, rates.khz);
    put_int(w, TEXT_MEMORY_BANDWIDTH, ROW_STREAM, rates.bytes_s);
    if (rates.tflops > 0)
        xpl_xspace_writer_double(&w->w, md_of(w, TEXT_PEAK_TFLOPS, ROW_STREAM), rates.tflops);
}

// A plane of the rows from `first` on that belong together; returns how many.
static size_t put_plane(struct writer *w, size_t first, int64_t id) {
    const struct trace *const t = w->t;
    const struct row *const r = &t->rows.v[w->by_name[first]];
    const bool host = is_of_host(r);
    char name[64] = XPL_PLANE_NAME_HOST_THREADS;
    size_t n = first;
    if (!host)
        (void)snprintf(name, sizeof name, "%s%" PRId32,
                       r->kind == ROW_STREAM ? XPL_PLANE_NAME_GPU_PREFIX
                                             : "Annotations and waits of GPU ",
                       device_of(r));
    memset(w->name_used, 0, (size_t)t->n_names + 1);
    memset(w->device_steps, 0, t->steps.n * sizeof *w->device_steps);
    xpl_xspace_writer_begin_plane(&w->w, id, xpl_str_from(name));
    for (; n < w->n_rows; n++) {
        const struct row *const next = &t->rows.v[w->by_name[n]];
        if (host != is_of_host(next)) break;
        if (!host &&
            (next->kind != r->kind || (device_of(next) != device_of(r) && id < w->max_planes)))
            break;
        put_line(w, w->by_name[n]);
    }
    if (r->kind == ROW_STREAM && t->steps.n) put_steps(w);
    if (r->kind == ROW_STREAM) put_device(w, device_of(r));
    put_names(w);
    put_texts(w, host ? 1u << ROW_HOST | 1u << ROW_COUNTERS : 1u << r->kind);
    xpl_xspace_writer_end_plane(&w->w);
    return n - first;
}

static void put_fact_md(struct writer *w, enum text text) {
    xpl_xspace_writer_stat_md(&w->w, (int64_t)text + 1, xpl_kineto_text_of(w->t, text),
                              XPL_STR(""));
}

static void put_environment(struct writer *w, int64_t id) {
    const struct trace *const t = w->t;
    uint32_t last = TEXT_NONE;
    xpl_xspace_writer_begin_plane(&w->w, id, XPL_STR(XPL_PLANE_NAME_TASK_ENV));
    if (t->n_events) xpl_xspace_writer_uint(&w->w, TEXT_START_TIME + 1, (uint64_t)start_ns(t));
    if (t->has_kineto) xpl_xspace_writer_str(&w->w, TEXT_FRAMEWORK + 1, XPL_STR("pytorch"));
    if (t->rank >= 0) xpl_xspace_writer_int(&w->w, TEXT_RANK + 1, t->rank);
    if (t->world_size > 0) xpl_xspace_writer_int(&w->w, TEXT_WORLD_SIZE + 1, t->world_size);
    for (size_t i = 0; i < t->properties.n; i++)
        xpl_xspace_writer_str(&w->w, (int64_t)t->properties.v[i].key + 1,
                              valid(w, t->properties.v[i].text));
    put_fact_md(w, TEXT_START_TIME);
    put_fact_md(w, TEXT_FRAMEWORK);
    put_fact_md(w, TEXT_RANK);
    put_fact_md(w, TEXT_WORLD_SIZE);
    for (size_t i = 0; i < t->properties.n; i++) {
        const uint32_t key = t->properties.v[i].key;
        if (key == last) continue;
        last = key;
        xpl_xspace_writer_stat_md(&w->w, (int64_t)key + 1, valid(w, xpl_kineto_text_of(t, key)),
                                  XPL_STR(""));
    }
    xpl_xspace_writer_end_plane(&w->w);
}

// ---- warnings ----

static void put_losses(struct writer *w) {
    const struct losses *const l = &w->t->lost;
    if (l->damaged)
        put_warning(w, true,
                    "damaged events that were left out: %" PRIu64 ", the first at byte %" PRIu64,
                    l->damaged, l->first_damaged_at);
    if (l->cut)
        put_warning(w, true,
                    "the trace ends at byte %" PRIu64
                    " within a value: its writer was stopped, or the file was cut.  All events "
                    "before that are here",
                    l->cut_at);
    if (l->broken)
        put_warning(w, true, "the trace could not be decompressed to its end: %s",
                    w->t->r->err ? w->t->r->err->msg : "");
    if (l->behind_at)
        put_warning(
            w, true,
            "the file goes on behind the trace, and the rest is left out, from byte %" PRIu64,
            l->behind_at);
    if (l->calls)
        put_warning(w, false,
                    "tables have no shapes for %" PRIu64
                    " ops and allocations: they are called with "
                    "more than %d different ones",
                    l->calls, XPL_KINETO_MAX_TEXTS);
    if (l->untimed)
        put_warning(w, false, "%" PRIu64 " events without a time were left out", l->untimed);
}

static void put_warnings(struct writer *w) {
    const struct trace *const t = w->t;
    put_losses(w);
    for (size_t i = 0; i < t->log_errors.n; i++)
        xpl_xspace_writer_error(&w->w, valid(w, t->log_errors.v[i]));
    for (size_t i = 0; i < t->log_warnings.n; i++)
        xpl_xspace_writer_warning(&w->w, valid(w, t->log_warnings.v[i]));
    if (w->earlier)
        put_warning(
            w, false,
            "the clocks of host and device differ: the work of the first step begins %.6f s before "
            "the step; the causes of idle time are not known",
            (double)w->earlier / 1e9);
    if (t->has_ranges && !t->has_kernels)
        put_warning(
            w, false,
            "the kernels have counters (CUPTI's profiler ranges), but no times: each has an "
            "equal share of the time, so that shares and the verdict say nothing");
    if (t->has_ops && is_of_cpu(t) && (t->devices.n || t->has_cuda || t->has_amd))
        put_warning(w, false,
                    "the trace has nothing of the GPU, only what the CPU did: profile with "
                    "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], and not beside "
                    "another profiler");
    if (!t->has_kineto)
        put_warning(w, false,
                    "no PyTorch events: the trace is another program's, and only its "
                    "events are shown");
    if (t->host_name.len) xpl_xspace_writer_hostname(&w->w, valid(w, t->host_name));
}

// ---- the whole ----

static void emit(struct writer *w) {
    int64_t id = 1;
    if (!w->n_rows || !is_of_host(&w->t->rows.v[w->by_name[0]])) { // readers look for it
        xpl_xspace_writer_begin_plane(&w->w, id++, XPL_STR(XPL_PLANE_NAME_HOST_THREADS));
        xpl_xspace_writer_end_plane(&w->w);
    }
    for (size_t i = 0; i < w->n_rows && !w->t->cancelled && !w->full;)
        i += put_plane(w, i, id++);
    put_environment(w, id);
    put_warnings(w);
}

// How many planes there may be.
static int64_t max_planes(const struct trace *t) {
    uint64_t n = t->steps.n * STEP_BYTES;
    for (uint32_t i = 1; i < t->text_cap; i++)
        if (t->text_used[i]) n += xpl_kineto_text_of(t, i).len;
    const uint64_t most = MOST_REPEATED / (n + 1);
    return most < FEW_PLANES ? FEW_PLANES : most > MOST_PLANES ? MOST_PLANES : (int64_t)most;
}

static bool prepare(struct writer *w) {
    static const enum text of_devices[] = {
        TEXT_VENDOR,      TEXT_GPU_NAME,  TEXT_CORE_COUNT, TEXT_MEMORY_SIZE,
        TEXT_CAP_MAJOR,   TEXT_CAP_MINOR, TEXT_CLOCK_RATE, TEXT_MEMORY_BANDWIDTH,
        TEXT_PEAK_TFLOPS, TEXT_TF_OP,     TEXT_GROUP_ID};
    struct trace *const t = w->t;
    // Each plane has all that one of its kind uses, in both passes.
    for (size_t i = 0; i < sizeof of_devices / sizeof *of_devices; i++)
        if (of_devices[i] != TEXT_GROUP_ID || (t->device_ops.n && t->steps.n))
            use_text(t, of_devices[i], ROW_STREAM);
    w->by_name = xpl_arena_array(&t->arena, t->rows.n, sizeof *w->by_name);
    w->name_used = xpl_arena_zalloc(&t->arena, (size_t)t->n_names + 1);
    xpl_buf_init(&w->text, SIZE_MAX / 2);
    w->device_steps = xpl_arena_array(&t->arena, t->steps.n, sizeof *w->device_steps);
    w->grouped = t->device_ops.n && t->steps.n;
    w->max_planes = max_planes(t);
    if (!w->by_name || !w->name_used || !w->device_steps) return false;
    // Readers ask whether planes have the statistic: in all of them, or in none.
    if (w->grouped) use_text(t, TEXT_GROUP_ID, ROW_HOST);
    for (uint32_t i = 0; i < t->rows.n; i++)
        if (t->rows.v[i].n) w->by_name[w->n_rows++] = i;
    xpl_sort_r(w->by_name, w->n_rows, sizeof *w->by_name, by_plane, t);
    return true;
}

xpl_status_t xpl_kineto_write(struct trace *t, struct xpl_buf *out) {
    struct writer w = {.t = t, .out = out};
    if (!prepare(&w)) return xpl_kineto_failure(t);
    xpl_xspace_writer_init_whole(&w.w, out);
    emit(&w);
    const bool ok = xpl_xspace_writer_fini(&w.w) && !w.text.failed;
    xpl_buf_fini(&w.text);
    if (t->cancelled) return xpl_kineto_failure(t);
    if (w.full || !xpl_kineto_take(t, out->n - w.counted))
        XPL_RETURN_ERROR(t->err, XPL_RESOURCE_EXHAUSTED,
                         "the trace and its XSpace have more than %zu bytes, the limit of memory",
                         t->options->max_bytes);
    if (!ok) XPL_RETURN_OOM(t->err, "PyTorch trace");
    return XPL_OK;
}
