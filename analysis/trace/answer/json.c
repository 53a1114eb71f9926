// SPDX-License-Identifier: Apache-2.0
// trace_viewer@'s JSON (XProf: convert/trace_viewer/trace_events_to_json.{h,cc}).
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "analysis/grouping/flows.h"
#include "analysis/trace/answer/impl.h"
#include "base/arena.h"
#include "base/intern.h"
#include "base/json.h"
#include "base/map.h"

enum { MAX_COUNTERS = 10000000, EVENT_ROOM = 512 };

// ---- small texts, into room that is there ----

static char *put_str(char *p, xpl_str_t s) {
    memcpy(p, s.ptr, s.len);
    return p + s.len;
}

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

// ,"args":{...} with all the event's arguments; the first that is a stack frame follows as "sf".
static xpl_status_t put_all_args(struct writer *w, struct shown_host *h, const struct trc_event *e,
                                 struct xpl_error *err) {
    struct xpl_buf *const b = w->out;
    uint32_t frame = 0;
    size_t n;
    XPL_TRY(trc_event_values(w, h, e, &n, err));
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
        struct xpl_buf b = xpl_buf_of(SIZE_MAX / 2);
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

static char *put_category(char *p, const struct trc_event *e, bool always) {
    const char *const name = trc_category_name((unsigned)(e->flow >> 2 & 63));
    if (!*name && !always) return p;
    p = put_str(p, XPL_STR(",\"cat\":\""));
    p = put_str(p, xpl_str_from(name));
    *p++ = '"';
    return p;
}

static char *put_flow(char *p, const struct trc_event *e) {
    p = put_str(p, XPL_STR(",\"bind_id\":"));
    p = put_u64(p, e->flow >> 8);
    p = put_category(p, e, false);
    switch ((unsigned)(e->flow & 3)) {
        case XPL_FLOW_OUT: return put_str(p, XPL_STR(",\"flow_out\":true"));
        case XPL_FLOW_INOUT: return put_str(p, XPL_STR(",\"flow_in\":true,\"flow_out\":true"));
        case XPL_FLOW_IN: return put_str(p, XPL_STR(",\"flow_in\":true"));
        default: return p;
    }
}

static char *put_async(char *p, const struct trc_event *e) {
    p = put_str(p, XPL_STR(",\"id\":"));
    p = put_u64(p, e->flow >> 8);
    p = put_category(p, e, true);
    switch ((unsigned)(e->flow & 3)) {
        case XPL_FLOW_OUT:
        case XPL_FLOW_INOUT: return put_str(p, XPL_STR(",\"ph\":\"b\""));
        case XPL_FLOW_IN: return put_str(p, XPL_STR(",\"ph\":\"e\""));
        default: return p;
    }
}

// Arguments of an event in a window or in a search for names: group and uid, both from the index.
static char *put_few_args(char *p, const struct trc_event *e, bool uid) {
    if (!uid && !(e->flags & TRC_HAS_GROUP)) return p;
    p = put_str(p, XPL_STR(",\"args\":{"));
    if (e->flags & TRC_HAS_GROUP) {
        const int64_t group = (int64_t)e->group;
        p = put_str(p, XPL_STR("\"group_id\":"));
        if (group < 0) *p++ = '-';
        p = put_u64(p, group < 0 ? 0 - (uint64_t)group : (uint64_t)group);
        if (uid) *p++ = ',';
    }
    if (uid) {
        p = put_str(p, XPL_STR("\"uid\":"));
        p = put_u64(p, e->serial);
    }
    *p++ = '}';
    return p;
}

// The part of an event that comes before its arguments.
static char *put_head(char *p, const struct shown_host *h, const struct trc_event *e,
                      xpl_str_t name) {
    const struct trc_track *const t = &h->host->trace->tracks[e->track];
    p = put_str(p, XPL_STR("{\"pid\":"));
    p = put_u64(p, (uint32_t)(h->first_pid + h->host->trace->devices[t->device].id));
    if (!t->named) {
        p = put_str(p, XPL_STR(",\"tid\":"));
        p = put_u64(p, t->id);
    }
    p = put_str(p, name);
    p = put_str(p, XPL_STR(",\"ts\":"));
    p = put_us(p, e->ts);
    if (t->named) return put_async(p, e);
    p = put_str(p, XPL_STR(",\"dur\":"));
    p = put_us(p, e->dur ? e->dur : 1); // without a duration it would not end
    if (e->flags & TRC_HAS_FLOW) p = put_flow(p, e);
    return put_str(p, XPL_STR(",\"ph\":\"X\""));
}

static void advance(struct writer *w, const char *p) {
    w->out->n = (size_t)((const uint8_t *)p - w->out->p);
}

static bool full_args(const struct writer *w) {
    return w->o->event_name.len || (w->o->search_prefix.len && w->o->search_metadata);
}

// As xpl_buf_room, which a million events need not call.
static inline bool has_room(struct xpl_buf *b, size_t n) {
    return (!b->failed && b->cap - b->n >= n) || xpl_buf_room(b, n);
}

static xpl_status_t put_event(struct writer *w, struct shown_host *h, const struct trc_event *e,
                              bool bare, struct xpl_error *err) {
    xpl_str_t name;
    if (!name_of(w, h, e->name, &name)) XPL_RETURN_OOM(err, "trace names");
    separate(w);
    if (!has_room(w->out, name.len + EVENT_ROOM)) return XPL_OK; // reported at the end
    char *p = put_head((char *)(w->out->p + w->out->n), h, e, name);
    if (!bare && full_args(w)) {
        advance(w, p);
        XPL_TRY(put_all_args(w, h, e, err));
        if (!has_room(w->out, EVENT_ROOM)) return XPL_OK;
        p = (char *)(w->out->p + w->out->n);
    } else {
        p = put_few_args(p, e, !bare);
    }
    if (e->serial) {
        p = put_str(p, XPL_STR(",\"z\":"));
        p = put_u64(p, e->serial);
    }
    *p++ = '}';
    advance(w, p);
    // An event that begins and ends a flow is written as two.
    if (bare || !(e->flags & TRC_ASYNC) || (e->flow & 3) != XPL_FLOW_INOUT) return XPL_OK;
    struct trc_event end = *e;
    end.flow = (end.flow & ~(uint64_t)3) | XPL_FLOW_IN;
    end.ts += end.dur;
    return put_event(w, h, &end, true, err);
}

// ---- counters: one object for all values of one name ----

static xpl_status_t put_counters(struct writer *w, struct shown_host *h, size_t *at,
                                 struct xpl_error *err) {
    const struct trc_event *const v = h->shown.events;
    const struct trc_event *const first = &v[*at];
    const struct trc_track *const t = &h->host->trace->tracks[first->track];
    bool first_entry = true;
    size_t n;
    separate(w);
    XPL_TRY(trc_event_values(w, h, first, &n, err));
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
        XPL_TRY(trc_check_cancelled(w, err));
        XPL_TRY(trc_event_values(w, h, &v[*at], &n, err));
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
            XPL_TRY(trc_check_cancelled(w, err));
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

static void put_number(struct xpl_buf *b, uint64_t v) {
    char digits[20];
    xpl_buf_put(b, digits, (size_t)(put_u64(digits, v) - digits));
}

static void put_row(struct xpl_buf *b, uint32_t pid, const struct trc_resource *row,
                    xpl_str_t name) {
    xpl_buf_str(b, XPL_STR(",{\"args\":{\"name\":"));
    xpl_json_str(b, name, true);
    xpl_buf_str(b, XPL_STR("},\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":"));
    put_number(b, pid);
    xpl_buf_str(b, XPL_STR(",\"tid\":"));
    put_number(b, row->id);
    xpl_buf_str(b, XPL_STR("},{\"args\":{\"sort_index\":"));
    put_number(b, row->id);
    xpl_buf_str(b, XPL_STR("},\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":"));
    put_number(b, pid);
    xpl_buf_str(b, XPL_STR(",\"tid\":"));
    put_number(b, row->id);
    xpl_buf_putc(b, '}');
}

static void put_device(struct writer *w, const struct device_line *l) {
    const struct xpl_trace *const t = l->h->host->trace;
    struct xpl_buf *const b = w->out;
    xpl_str_t name = {"", 0};
    separate(w);
    xpl_buf_str(b, XPL_STR("{\"args\":{\"name\":"));
    if (trc_device_name(w, l, &name)) xpl_json_str(b, name, true);
    xpl_buf_str(b, XPL_STR("},\"name\":\"process_name\",\"ph\":\"M\",\"pid\":"));
    put_number(b, l->pid);
    xpl_buf_str(b, XPL_STR(",\"thread_count\":"));
    put_number(b, l->n_rows);
    xpl_buf_putc(b, '}');
    if (l->has_order) {
        xpl_buf_str(b, XPL_STR(",{\"args\":{\"sort_index\":"));
        put_number(b, l->order);
        xpl_buf_str(b, XPL_STR("},\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":"));
        put_number(b, l->pid);
        xpl_buf_putc(b, '}');
    }
    for (size_t i = 0; i < l->n_rows; i++)
        put_row(b, l->pid, &l->rows[i], trc_str(t, l->rows[i].name));
}

static xpl_status_t put_devices(struct writer *w, struct xpl_error *err) {
    struct device_line *v = NULL;
    size_t n = 0;
    XPL_TRY(trc_device_lines(w, &v, &n, err));
    for (size_t i = 0; i < n; i++) {
        XPL_TRY(trc_check_cancelled(w, err));
        put_device(w, &v[i]);
    }
    return XPL_OK;
}

// ---- stack frames and the header, before the events ----

// Which frames of a host are written: all, or for a single event those that it refers to.
static xpl_status_t choose_frames(struct writer *w, struct shown_host *h, bool **ret,
                                  struct xpl_error *err) {
    const size_t n_frames = (size_t)h->host->trace->n[TRC_FRAMES];
    size_t n = 0;
    bool *const chosen = xpl_arena_zalloc(w->arena, n_frames + 1);
    if (!chosen) XPL_RETURN_OOM(err, "stack frames");
    *ret = chosen;
    if (!h->shown.one) memset(chosen, 1, n_frames);
    if (!h->shown.one || h->shown.n == 0) return XPL_OK;
    XPL_TRY(trc_event_values(w, h, &h->shown.events[0], &n, err));
    for (size_t i = 0; i < n; i++)
        if (h->values[i].frame) chosen[h->values[i].frame - 1] = true;
    return XPL_OK;
}

static xpl_status_t put_host_frames(struct writer *w, struct shown_host *h, struct xpl_intern *all,
                                    uint32_t *n_written, struct xpl_error *err) {
    const struct xpl_trace *const t = h->host->trace;
    // The first host's numbers are its own: the index has the text of all its frames.
    const bool ready = *n_written == 0 && !h->shown.one && t->n[TRC_FRAMES_JSON];
    bool *chosen = NULL;
    h->frames = xpl_arena_zalloc(w->arena, (size_t)t->n[TRC_FRAMES] * sizeof *h->frames);
    if (!h->frames) XPL_RETURN_OOM(err, "stack frames");
    XPL_TRY(choose_frames(w, h, &chosen, err));
    if (ready) xpl_buf_put(w->out, t->frames_json, (size_t)t->n[TRC_FRAMES_JSON]);
    for (uint64_t k = 0; k < t->n[TRC_FRAMES]; k++) {
        xpl_strid_t id = {*n_written + 1};
        if (!chosen[k]) continue;
        if (all && !xpl_intern_put(all, trc_str(t, t->frames[k]), &id))
            XPL_RETURN_OOM(err, "stack frames");
        h->frames[k] = id.v;
        if (id.v <= *n_written) continue;
        *n_written = id.v;
        if (!ready) trc_put_frame(w->out, id.v, trc_str(t, t->frames[k]));
    }
    return XPL_OK;
}

// Hosts share the frames they have in common.
static xpl_status_t put_frames(struct writer *w, struct xpl_error *err) {
    struct xpl_intern *const all = w->n > 1 ? xpl_intern_new(w->arena, xpl_hash_seed()) : NULL;
    uint32_t n_written = 0;
    if (w->n > 1 && !all) XPL_RETURN_OOM(err, "stack frames");
    xpl_buf_str(w->out, XPL_STR("\"stackFrames\":{"));
    for (size_t i = 0; i < w->n; i++)
        XPL_TRY(put_host_frames(w, &w->hosts[i], all, &n_written, err));
    xpl_buf_str(w->out, XPL_STR("},"));
    return XPL_OK;
}

static void put_header(struct writer *w) {
    struct trc_detail details[TRC_MAX_DETAILS];
    const size_t n_details = trc_details(w, details);
    uint64_t n = 0, min, max;
    for (size_t i = 0; i < w->n; i++)
        n += w->hosts[i].shown.n;
    (void)trc_full_span(w, &min, &max);
    xpl_buf_printf(w->out,
                   "{\"displayTimeUnit\":\"ns\",\"metadata\":{\"highres-ticks\":true}, "
                   "\"codeLink\":\"\",\"useNewBackend\": false,%s\"details\":[",
                   w->o->mpmd_pipeline_view ? "\"mpmdPipelineView\": true," : "");
    for (size_t i = 0; i < n_details; i++)
        xpl_buf_printf(w->out, "%s{\"name\":\"%s\",\"value\":%s}", i ? "," : "", details[i].name,
                       details[i].value ? "true" : "false");
    xpl_buf_printf(w->out,
                   "],\"returnedEventsSize\":%" PRIu64
                   ",\"filteredByVisibility\":true,\"fullTimespan\":[%g,%g],",
                   n, (double)min / 1e9, (double)max / 1e9);
}

xpl_status_t trc_put_json(struct writer *w, struct xpl_error *err) {
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
