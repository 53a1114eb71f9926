// trace_viewer@'s JSON (XProf: convert/trace_viewer/trace_events_to_json.{h,cc}).
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/trace/read.h"
#include "analysis/xplane/flows.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/json.h"
#include "base/map.h"

enum { DEVICES_PER_HOST = 1000, MAX_COUNTERS = 10000000, EVENT_ROOM = 512 };

struct shown_host {
    const struct xpl_trace_host *host;
    struct trc_shown shown;
    uint32_t first_pid; // what device ids are counted from
    xpl_str_t *names;   // `,"name":"..."` of strings, as they are needed
    uint32_t *frames;   // numbers of its stack frames among all hosts'
    struct trc_value *values;
};

struct writer {
    struct xpl_buf *out;
    struct xpl_arena *arena;
    const struct xpl_trace_options *o;
    struct shown_host *hosts;
    size_t n;
    bool first; // of a list
    uint64_t n_counters;
};

// ---- small texts, into room that is there ----

static char *put_lit(char *p, const char *s, size_t n) {
    memcpy(p, s, n);
    return p + n;
}
#define LIT(p, s) put_lit((p), "" s, sizeof(s) - 1)

static char *put_u64(char *p, uint64_t v) {
    char digits[20];
    unsigned n = 0;
    do
        digits[n++] = (char)('0' + v % 10);
    while (v /= 10);
    while (n)
        *p++ = digits[--n];
    return p;
}

// Picoseconds as microseconds.  Below 2^53 the decimal number is exact, and reads as the number
// that upstream prints; above, its own division and %.17g.
static char *put_us(char *p, uint64_t ps) {
    if (ps >= UINT64_C(1) << 53) return p + sprintf(p, "%.17g", (double)ps / 1e6);
    p = put_u64(p, ps / 1000000);
    uint32_t rest = (uint32_t)(ps % 1000000);
    if (rest == 0) return p;
    *p++ = '.';
    for (uint32_t unit = 100000; rest; unit /= 10) {
        *p++ = (char)('0' + rest / unit);
        rest %= unit;
    }
    return p;
}

static void separate(struct writer *w) {
    if (!w->first) xpl_buf_putc(w->out, ',');
    w->first = false;
}

// ---- arguments ----

static bool is_perf_counter(xpl_str_t name) {
    return xpl_str_ends(name, XPL_STR("(util %)")) || xpl_str_ends(name, XPL_STR(" (MB/sec)"));
}

static void put_double(struct xpl_buf *b, xpl_str_t name, uint64_t bits) {
    double d;
    memcpy(&d, &bits, sizeof d);
    if (isfinite(d))
        xpl_buf_printf(b, is_perf_counter(name) ? "%.2f" : "%.17g", d);
    else
        xpl_buf_printf(b, "\"%s\"", isnan(d) ? "NaN" : d > 0 ? "Infinity" : "-Infinity");
}

// Numbers that a double cannot hold are text, but for those of counters.
static void put_value(struct xpl_buf *b, const struct trc_value *v, bool counter) {
    const uint64_t limit = counter ? UINT64_MAX : UINT64_C(1) << 53;
    const int64_t i = (int64_t)v->bits;
    const uint64_t size = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
    switch (v->kind) {
        case TRC_ARG_STR: xpl_json_str(b, v->text, true); break;
        case TRC_ARG_DOUBLE: put_double(b, v->name, v->bits); break;
        case TRC_ARG_INT:
            xpl_buf_printf(b, size > limit ? "\"%" PRId64 "\"" : "%" PRId64, i);
            break;
        default:
            xpl_buf_printf(b, v->bits > limit ? "\"%" PRIu64 "\"" : "%" PRIu64, v->bits);
            break;
    }
}

// ,"args":{...} with all the event's arguments; the first that is a stack frame stands behind.
static xpl_status_t put_all_args(struct writer *w, struct shown_host *h, const struct trc_event *e,
                                 struct xpl_error *err) {
    struct xpl_buf *const b = w->out;
    uint32_t frame = 0;
    size_t n;
    if (!h->values) {
        h->values = xpl_arena_array(w->arena, TRC_MAX_ARGS, sizeof *h->values);
        if (!h->values) XPL_FAIL_OOM(err, "trace arguments");
    }
    XPL_TRY(trc_read_args(h->host->trace, h->host->profile, e, h->values, &n, err));
    bool first = true;
    xpl_buf_str(b, XPL_STR(",\"args\":{"));
    if (e->flags & TRC_HAS_GROUP) {
        xpl_buf_printf(b, "\"group_id\":%" PRId64, (int64_t)e->group);
        first = false;
    }
    for (size_t i = 0; i < n; i++) {
        const struct trc_value *const v = &h->values[i];
        if (v->frame && !frame) {
            frame = v->frame;
            continue;
        }
        if (!first) xpl_buf_putc(b, ',');
        first = false;
        xpl_json_str(b, v->name, true);
        xpl_buf_putc(b, ':');
        put_value(b, v, false);
    }
    xpl_buf_putc(b, '}');
    if (frame) xpl_buf_printf(b, ",\"sf\":%" PRIu32, h->frames[frame - 1]);
    return XPL_OK;
}

// ---- events ----

// `,"name":"..."`, made once per name.
static bool name_of(struct writer *w, struct shown_host *h, uint32_t name, xpl_str_t *ret) {
    if (!h->names[name].ptr) {
        struct xpl_buf b;
        xpl_buf_init(&b, SIZE_MAX / 2);
        xpl_buf_str(&b, XPL_STR(",\"name\":"));
        xpl_json_str(&b, trc_str(h->host->trace, name), true);
        const xpl_str_t text = {(const char *)b.p, b.n};
        const bool ok = !b.failed && xpl_arena_str(w->arena, text, &h->names[name]);
        xpl_buf_fini(&b);
        if (!ok) return false;
    }
    *ret = h->names[name];
    return true;
}

// tsl/profiler/lib/context_types.cc
static const char *category_name(unsigned category) {
    static const char *const names[] = {
        [XPL_CONTEXT_TF_EXECUTOR] = "tf_exec",
        [XPL_CONTEXT_TFRT_EXECUTOR] = "tfrt_exec",
        [XPL_CONTEXT_SHARED_BATCH_SCHEDULER] = "batch_sched",
        [XPL_CONTEXT_PJRT] = "PjRt",
        [XPL_CONTEXT_ADAPTIVE_SHARED_BATCH_SCHEDULER] = "as_batch_sched",
        [XPL_CONTEXT_TFRT_TPU_RUNTIME] = "tfrt_rt",
        [XPL_CONTEXT_TPU_EMBEDDING_ENGINE] = "tpu_embed",
        [XPL_CONTEXT_GPU_LAUNCH] = "gpu_launch",
        [XPL_CONTEXT_BATCHER] = "batcher",
        [XPL_CONTEXT_TPU_STREAM] = "tpu_stream",
        [XPL_CONTEXT_TPU_LAUNCH] = "tpu_launch",
        [XPL_CONTEXT_PATHWAYS_EXECUTOR] = "pathways_exec",
        [XPL_CONTEXT_PJRT_LIBRARY_CALL] = "pjrt_library_call",
        [XPL_CONTEXT_THREADPOOL_EVENT] = "threadpool_event",
        [XPL_CONTEXT_JAX_SERVING_EXECUTOR] = "jax_exec",
        [XPL_CONTEXT_SC_OFFLOAD] = "sc_offload",
    };
    return category < sizeof names / sizeof *names && names[category] ? names[category] : "";
}

static char *put_category(char *p, const struct trc_event *e, bool always) {
    const char *const name = category_name((unsigned)(e->flow >> 2 & 63));
    if (!*name && !always) return p;
    p = LIT(p, ",\"cat\":\"");
    p = put_lit(p, name, strlen(name));
    *p++ = '"';
    return p;
}

static char *put_flow(char *p, const struct trc_event *e) {
    p = LIT(p, ",\"bind_id\":");
    p = put_u64(p, e->flow >> 8);
    p = put_category(p, e, false);
    switch ((unsigned)(e->flow & 3)) {
        case XPL_FLOW_OUT: return LIT(p, ",\"flow_out\":true");
        case XPL_FLOW_INOUT: return LIT(p, ",\"flow_in\":true,\"flow_out\":true");
        case XPL_FLOW_IN: return LIT(p, ",\"flow_in\":true");
        default: return p;
    }
}

static char *put_async(char *p, const struct trc_event *e) {
    p = LIT(p, ",\"id\":");
    p = put_u64(p, e->flow >> 8);
    p = put_category(p, e, true);
    switch ((unsigned)(e->flow & 3)) {
        case XPL_FLOW_OUT:
        case XPL_FLOW_INOUT: return LIT(p, ",\"ph\":\"b\"");
        case XPL_FLOW_IN: return LIT(p, ",\"ph\":\"e\"");
        default: return p;
    }
}

// Arguments of an event that nobody asked more of.
static char *put_few_args(char *p, const struct trc_event *e, bool uid) {
    if (!uid && !(e->flags & TRC_HAS_GROUP)) return p;
    p = LIT(p, ",\"args\":{");
    if (e->flags & TRC_HAS_GROUP) {
        const int64_t group = (int64_t)e->group;
        p = LIT(p, "\"group_id\":");
        if (group < 0) *p++ = '-';
        p = put_u64(p, group < 0 ? 0 - (uint64_t)group : (uint64_t)group);
        if (uid) *p++ = ',';
    }
    if (uid) {
        p = LIT(p, "\"uid\":");
        p = put_u64(p, e->serial);
    }
    *p++ = '}';
    return p;
}

// The part of an event that comes before its arguments.
static char *put_head(char *p, const struct shown_host *h, const struct trc_event *e,
                      xpl_str_t name) {
    const struct trc_track *const t = &h->host->trace->tracks[e->track];
    p = LIT(p, "{\"pid\":");
    p = put_u64(p, (uint32_t)(h->first_pid + h->host->trace->devices[t->device].id));
    if (!t->named) {
        p = LIT(p, ",\"tid\":");
        p = put_u64(p, t->id);
    }
    p = put_lit(p, name.ptr, name.len);
    p = LIT(p, ",\"ts\":");
    p = put_us(p, e->ts);
    if (t->named) return put_async(p, e);
    p = LIT(p, ",\"dur\":");
    p = put_us(p, e->dur ? e->dur : 1); // without a duration it would not end
    if (e->flags & TRC_HAS_FLOW) p = put_flow(p, e);
    return LIT(p, ",\"ph\":\"X\"");
}

static void advance(struct writer *w, const char *p) {
    w->out->n = (size_t)((const uint8_t *)p - w->out->p);
}

static bool full_args(const struct writer *w) {
    return w->o->event_name.len || (w->o->search_prefix.len && w->o->search_metadata);
}

static xpl_status_t put_event(struct writer *w, struct shown_host *h, const struct trc_event *e,
                              bool bare, struct xpl_error *err) {
    xpl_str_t name;
    if (!name_of(w, h, e->name, &name)) XPL_FAIL_OOM(err, "trace names");
    separate(w);
    if (!xpl_buf_room(w->out, name.len + EVENT_ROOM)) return XPL_OK; // told at the end
    char *p = put_head((char *)(w->out->p + w->out->n), h, e, name);
    if (!bare && full_args(w)) {
        advance(w, p);
        XPL_TRY(put_all_args(w, h, e, err));
        if (!xpl_buf_room(w->out, EVENT_ROOM)) return XPL_OK;
        p = (char *)(w->out->p + w->out->n);
    } else {
        p = put_few_args(p, e, !bare);
    }
    if (e->serial) {
        p = LIT(p, ",\"z\":");
        p = put_u64(p, e->serial);
    }
    *p++ = '}';
    advance(w, p);
    // What begins and ends at once is told as two.
    if (bare || !(e->flags & TRC_ASYNC) || (e->flow & 3) != XPL_FLOW_INOUT) return XPL_OK;
    struct trc_event end = *e;
    end.flow = (end.flow & ~(uint64_t)3) | XPL_FLOW_IN;
    end.ts += end.dur;
    return put_event(w, h, &end, true, err);
}

// ---- counters: one object for all values of one name ----

static xpl_status_t counter_values(struct writer *w, struct shown_host *h,
                                   const struct trc_event *e, size_t *ret_n,
                                   struct xpl_error *err) {
    if (!h->values) {
        h->values = xpl_arena_array(w->arena, TRC_MAX_ARGS, sizeof *h->values);
        if (!h->values) XPL_FAIL_OOM(err, "trace arguments");
    }
    return trc_read_args(h->host->trace, h->host->profile, e, h->values, ret_n, err);
}

static xpl_status_t put_counters(struct writer *w, struct shown_host *h, size_t *at,
                                 struct xpl_error *err) {
    const struct trc_event *const v = h->shown.events;
    const struct trc_event *const first = &v[*at];
    const struct trc_track *const t = &h->host->trace->tracks[first->track];
    bool first_entry = true;
    size_t n;
    separate(w);
    XPL_TRY(counter_values(w, h, first, &n, err));
    xpl_buf_printf(w->out, "{\"pid\":%" PRIu32 ",\"name\":",
                   h->first_pid + h->host->trace->devices[t->device].id);
    xpl_json_str(w->out, trc_str(h->host->trace, first->name), true);
    xpl_buf_str(w->out, XPL_STR(",\"ph\":\"C\""));
    if (n) {
        xpl_buf_str(w->out, XPL_STR(",\"event_stats\":"));
        xpl_json_str(w->out, h->values[0].name, true);
    }
    xpl_buf_str(w->out, XPL_STR(",\"entries\":["));
    for (; *at < h->shown.n && v[*at].track == first->track && (v[*at].flags & TRC_COUNTER);
         (*at)++) {
        char ts[40];
        w->n_counters++;
        XPL_TRY(counter_values(w, h, &v[*at], &n, err));
        if (n == 0) continue;
        if (!first_entry) xpl_buf_putc(w->out, ',');
        first_entry = false;
        xpl_buf_putc(w->out, '[');
        xpl_buf_put(w->out, ts, (size_t)(put_us(ts, v[*at].ts) - ts));
        for (size_t i = 0; i < n; i++) {
            xpl_buf_putc(w->out, ',');
            put_value(w->out, &h->values[i], true);
        }
        xpl_buf_putc(w->out, ']');
    }
    xpl_buf_str(w->out, XPL_STR("]}"));
    return XPL_OK;
}

static xpl_status_t put_events(struct writer *w, struct xpl_error *err) {
    for (size_t i = 0; i < w->n; i++) {
        struct shown_host *const h = &w->hosts[i];
        for (size_t k = 0; k < h->shown.n;) {
            if (h->shown.events[k].flags & TRC_COUNTER) {
                XPL_TRY(put_counters(w, h, &k, err));
                continue;
            }
            XPL_TRY(put_event(w, h, &h->shown.events[k], false, err));
            k++;
        }
    }
    return XPL_OK;
}

// ---- devices and rows ----

struct device_line {
    const struct shown_host *h;
    const struct trc_device *d;
    uint32_t index, pid;
};

static int by_pid(const void *pa, const void *pb) {
    const struct device_line *const a = pa, *const b = pb;
    if (a->pid != b->pid) return a->pid < b->pid ? -1 : 1;
    return (a->h > b->h) - (a->h < b->h);
}

static int by_row_id(const void *pa, const void *pb) {
    const struct trc_resource *const a = pa, *const b = pb;
    if (a->id != b->id) return a->id < b->id ? -1 : 1;
    return (a->device > b->device) - (a->device < b->device);
}

// Rows of a device by id; of several that share one the last gives the name.
static bool rows_of(struct writer *w, const struct device_line *l, struct trc_resource **ret,
                    size_t *ret_n) {
    const struct xpl_trace *const t = l->h->host->trace;
    size_t n = 0, out = 0;
    for (uint64_t i = 0; i < t->n[TRC_RESOURCES]; i++)
        n += t->resources[i].device == l->index;
    struct trc_resource *const v = xpl_arena_array(w->arena, n, sizeof *v);
    if (!v) return false;
    n = 0;
    for (uint64_t i = 0; i < t->n[TRC_RESOURCES]; i++)
        if (t->resources[i].device == l->index) {
            v[n] = t->resources[i];
            v[n].device = (uint32_t)n; // which came first
            n++;
        }
    if (n) qsort(v, n, sizeof *v, by_row_id);
    for (size_t i = 0; i < n; i++) {
        if (out && v[out - 1].id == v[i].id) out--;
        v[out++] = v[i];
    }
    *ret = v, *ret_n = out;
    return true;
}

static void put_device(struct writer *w, const struct device_line *l,
                       const struct trc_resource *rows, size_t n) {
    const struct xpl_trace *const t = l->h->host->trace;
    struct xpl_buf *const b = w->out;
    xpl_str_t name = {"", 0};
    separate(w);
    xpl_buf_str(b, XPL_STR("{\"args\":{\"name\":"));
    if (xpl_arena_printf(w->arena, &name, "%.*s %.*s", XPL_STR_FMT(l->h->host->name),
                         XPL_STR_FMT(trc_str(t, l->d->name))))
        xpl_json_str(b, name, true);
    xpl_buf_printf(
        b, "},\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%" PRIu32 ",\"thread_count\":%zu}",
        l->pid, n);
    if (!w->o->mpmd_pipeline_view) // there, only what runs layers of a model has an order
        xpl_buf_printf(b,
                       ",{\"args\":{\"sort_index\":%" PRIu32
                       "},\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":%" PRIu32 "}",
                       l->pid, l->pid);
    for (size_t i = 0; i < n; i++) {
        xpl_buf_str(b, XPL_STR(",{\"args\":{\"name\":"));
        xpl_json_str(b, trc_str(t, rows[i].name), true);
        xpl_buf_printf(b,
                       "},\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%" PRIu32
                       ",\"tid\":%" PRIu32 "},{\"args\":{\"sort_index\":%" PRIu32
                       "},\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":%" PRIu32
                       ",\"tid\":%" PRIu32 "}",
                       l->pid, rows[i].id, rows[i].id, l->pid, rows[i].id);
    }
}

static xpl_status_t put_devices(struct writer *w, struct xpl_error *err) {
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++)
        n += (size_t)w->hosts[i].host->trace->n[TRC_DEVICES];
    struct device_line *const v = xpl_arena_array(w->arena, n, sizeof *v);
    if (!v) XPL_FAIL_OOM(err, "trace devices");
    n = 0;
    for (size_t i = 0; i < w->n; i++) {
        const struct xpl_trace *const t = w->hosts[i].host->trace;
        for (uint64_t k = 0; k < t->n[TRC_DEVICES]; k++)
            v[n++] = (struct device_line){.h = &w->hosts[i],
                                          .d = &t->devices[k],
                                          .index = (uint32_t)k,
                                          .pid = w->hosts[i].first_pid + t->devices[k].id};
    }
    if (n) qsort(v, n, sizeof *v, by_pid);
    for (size_t i = 0; i < n; i++) {
        struct trc_resource *rows;
        size_t n_rows;
        if (i && v[i].pid == v[i - 1].pid) continue; // the first host's
        if (!rows_of(w, &v[i], &rows, &n_rows)) XPL_FAIL_OOM(err, "trace rows");
        put_device(w, &v[i], rows, n_rows);
    }
    return XPL_OK;
}

// ---- what stands before the events ----

// Hosts share the frames they have in common.
static xpl_status_t put_frames(struct writer *w, struct xpl_error *err) {
    struct xpl_intern *const all = w->n > 1 ? xpl_intern_new(w->arena, xpl_hash_seed()) : NULL;
    uint32_t told = 0;
    xpl_buf_str(w->out, XPL_STR("\"stackFrames\":{"));
    w->first = true;
    for (size_t i = 0; i < w->n; i++) {
        struct shown_host *const h = &w->hosts[i];
        const struct xpl_trace *const t = h->host->trace;
        h->frames = xpl_arena_array(w->arena, (size_t)t->n[TRC_FRAMES], sizeof *h->frames);
        if (!h->frames || (w->n > 1 && !all)) XPL_FAIL_OOM(err, "stack frames");
        for (uint64_t k = 0; k < t->n[TRC_FRAMES]; k++) {
            xpl_strid_t id = {told + 1};
            if (all && !xpl_intern_put(all, trc_str(t, t->frames[k]), &id))
                XPL_FAIL_OOM(err, "stack frames");
            h->frames[k] = id.v;
            if (id.v <= told) continue;
            told = id.v;
            separate(w);
            xpl_buf_printf(w->out, "\"%" PRIu32 "\":{\"name\":", id.v);
            xpl_json_str(w->out, trc_str(t, t->frames[k]), true);
            xpl_buf_putc(w->out, '}');
        }
    }
    xpl_buf_str(w->out, XPL_STR("},"));
    return XPL_OK;
}

static bool has_tpu_core(const struct writer *w) {
    static const char *const marks[] = {"/device:TPU:", "TensorNode", "TPU Core"};
    for (size_t i = 0; i < w->n; i++) {
        const struct xpl_trace *const t = w->hosts[i].host->trace;
        for (uint64_t k = 0; k < t->n[TRC_DEVICES]; k++)
            for (size_t m = 0; m < 3; m++)
                if (xpl_str_has(trc_str(t, t->devices[k].name), xpl_str_from(marks[m])) ||
                    xpl_str_has(w->hosts[i].host->name, xpl_str_from(marks[m])))
                    return true;
    }
    return false;
}

static void put_header(struct writer *w) {
    uint64_t n = 0, min = 0, max = 0;
    bool any = false;
    for (size_t i = 0; i < w->n; i++) {
        const struct trc_footer *const f = w->hosts[i].host->trace->footer;
        n += w->hosts[i].shown.n;
        if (!f->has_min || !f->has_max) continue;
        min = any && min < f->min_ts ? min : f->min_ts;
        max = any && max > f->max_ts ? max : f->max_ts;
        any = true;
    }
    xpl_buf_printf(w->out,
                   "{\"displayTimeUnit\":\"ns\",\"metadata\":{\"highres-ticks\":true}, "
                   "\"codeLink\":\"\",\"useNewBackend\": false,%s\"details\":[{\"name\":"
                   "\"mpmd_pipeline_view\",\"value\":%s}%s",
                   w->o->mpmd_pipeline_view ? "\"mpmdPipelineView\": true," : "",
                   w->o->mpmd_pipeline_view ? "true" : "false",
                   w->o->mpmd_pipeline_view
                       ? ",{\"name\":\"mpmd_single_device_per_stage\",\"value\":false}"
                       : "");
    if (has_tpu_core(w))
        xpl_buf_printf(w->out, ",{\"name\":\"full_dma\",\"value\":%s}",
                       w->o->full_dma ? "true" : "false");
    xpl_buf_printf(w->out,
                   "],\"returnedEventsSize\":%" PRIu64
                   ",\"filteredByVisibility\":true,\"fullTimespan\":[%g,%g],",
                   n, (double)min / 1e9, (double)max / 1e9);
}

static xpl_status_t put_answer(struct writer *w, struct xpl_error *err) {
    put_header(w);
    XPL_TRY(put_frames(w, err));
    xpl_buf_str(w->out, XPL_STR("\"traceEvents\":["));
    w->first = true;
    XPL_TRY(put_devices(w, err));
    XPL_TRY(put_events(w, err));
    xpl_buf_str(w->out, XPL_STR("], \"showCounterMessage\": \""));
    if (w->n_counters == MAX_COUNTERS)
        xpl_buf_printf(w->out, "Only %d counter events are shown. Zoom in or pan to see more.",
                       MAX_COUNTERS);
    xpl_buf_printf(w->out, "\" ,\"totalCounterEvents\":%" PRIu64 "}", w->n_counters);
    return XPL_OK;
}

static xpl_status_t select_host(struct writer *w, struct shown_host *h, size_t i,
                                const struct xpl_trace_host *host, struct xpl_error *err) {
    h->host = host;
    h->first_pid = (uint32_t)(i + 1) * DEVICES_PER_HOST;
    h->names = xpl_arena_zalloc(w->arena, (size_t)host->trace->n[TRC_STRINGS] * sizeof *h->names);
    if (!h->names) XPL_FAIL_OOM(err, "trace names");
    return trc_select(host->trace, host->name, w->o, w->arena, &h->shown, err);
}

xpl_status_t xpl_trace_answer(const struct xpl_trace_host *hosts, size_t n,
                              const struct xpl_trace_options *o, size_t limit, struct xpl_buf *out,
                              struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena;
    xpl_arena_init(&arena, limit);
    struct writer w = {.out = out, .arena = &arena, .o = o};
    w.hosts = xpl_arena_zalloc(&arena, n * sizeof *w.hosts);
    if (!w.hosts) XPL_FAIL_OOM(err, "trace hosts");
    size_t missing = 0;
    for (size_t i = 0; i < n; i++) {
        struct xpl_error why = {0};
        const xpl_status_t st = select_host(&w, &w.hosts[w.n], i, &hosts[i], &why);
        if (st == XPL_OK) {
            w.n++;
        } else if (st != XPL_NOT_FOUND || ++missing == n) { // an event is on one host
            if (err) *err = why;
            return st;
        }
    }
    XPL_TRY(put_answer(&w, err));
    if (out->failed)
        XPL_FAIL(err, XPL_RESOURCE_EXHAUSTED,
                 "trace_viewer@: the answer is over the limit of %zu bytes", limit);
    return XPL_OK;
}
