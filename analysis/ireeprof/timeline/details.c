// SPDX-License-Identifier: Apache-2.0
// What an event is called, its flows and its arguments: the members of its row in ireeperf-jsonl,
// and some that are derived.
#include <inttypes.h>
#include <stdio.h>

#include "analysis/ireeprof/fields.h"
#include "analysis/ireeprof/timeline/impl.h"

#define TIME_DOMAIN "iree_perfetto_time_domain"
#define HOST_TIME   "iree_host_time_ns"
static const struct xpl_iree_field device_time[] = {
    XPL_F_CONST(TIME_DOMAIN, "iree_host_time_from_device_clock_fit")};
static const struct xpl_iree_field host_time[] = {XPL_F_CONST(TIME_DOMAIN, HOST_TIME)};

// ---- arguments ----

static bool is_left_out(const char *name) {
    static const char *const names[] = {"schema_version", "record_type", "key", "name"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (name[0] == names[i][0] && strcmp(name, names[i]) == 0) return true;
    return false;
}

// Arrays are of whole numbers; they become a text.
static void put_element(struct xpl_iree_sink *s, const struct xpl_iree_member *m) {
    if (s->list.n > 1) xpl_buf_str(&s->list, XPL_STR(", "));
    if (m->kind == XPL_IREE_MEMBER_U64 && xpl_buf_room(&s->list, XPL_IREE_DIGITS))
        s->list.n = (size_t)(xpl_iree_digits(s->list.p + s->list.n, m->u64) - s->list.p);
}

void xpl_iree_timeline_member(void *ctx, const struct xpl_iree_member *m) {
    struct xpl_iree_sink *const s = ctx;
    struct xpl_iree_member shown = *m;
    if (m->kind == XPL_IREE_MEMBER_OPEN && s->depth++ == 0) {
        s->list.n = 0;
        s->array = m->name;
        xpl_buf_putc(&s->list, '[');
        return;
    }
    if (m->kind == XPL_IREE_MEMBER_CLOSE) {
        if (--s->depth) return;
        xpl_buf_putc(&s->list, ']');
        shown = (struct xpl_iree_member){.name = s->array,
                                         .kind = XPL_IREE_MEMBER_TEXT,
                                         .text = {(const char *)s->list.p, s->list.n}};
    } else if (s->depth) {
        put_element(s, m);
        return;
    }
    if (shown.kind == XPL_IREE_MEMBER_NULL || is_left_out(shown.name)) return;
    for (const struct xpl_iree_renamed *r = s->renamed; r; r++) {
        if (!r->member) return;
        if (r->member[0] != shown.name[0] || strcmp(r->member, shown.name) != 0) continue;
        shown.name = r->as;
        break;
    }
    s->writer->argument(s, &shown);
}

size_t xpl_iree_timeline_fields(void *ctx, const struct xpl_iree_field *fields, size_t n,
                                const uint8_t *record) {
    struct xpl_iree_sink *const s = ctx;
    return s->writer->fields && !s->renamed && !s->depth ? s->writer->fields(s, fields, n, record)
                                                         : 0;
}

static void put_text(struct xpl_iree_sink *s, const char *name, xpl_str_t text) {
    const struct xpl_iree_member m = {.name = name, .kind = XPL_IREE_MEMBER_TEXT, .text = text};
    s->writer->argument(s, &m);
}
static void put_z(struct xpl_iree_sink *s, const char *name, const char *z) {
    put_text(s, name, xpl_str_from(z));
}
static void put_u64(struct xpl_iree_sink *s, const char *name, uint64_t v) {
    const struct xpl_iree_member m = {.name = name, .kind = XPL_IREE_MEMBER_U64, .u64 = v};
    s->writer->argument(s, &m);
}

// The file record that the chunk's events are of; records of one chunk mostly follow each other.
static const struct xpl_iree_record *chunk_at(struct xpl_iree_sink *s, uint32_t chunk) {
    const struct xpl_iree_chunk_place *const c =
        (const struct xpl_iree_chunk_place *)s->t->chunks.v + chunk;
    struct xpl_iree_cursor cursor = {.bundle = s->t->run->bundle, .at = c->at, .index = c->index};
    if (s->chunk_plus_1 == chunk + 1) return &s->record;
    s->chunk_plus_1 = xpl_iree_next(&cursor, &s->record) ? chunk + 1 : 0;
    return s->chunk_plus_1 ? &s->record : NULL;
}

// The members of the row of a typed record: all, or those that are renamed.
static void put_row(struct xpl_iree_sink *s, uint32_t chunk, uint64_t at,
                    const struct xpl_iree_renamed *renamed) {
    const struct xpl_iree_item item = {.p = s->t->run->bundle->bytes.ptr + at,
                                       .tail = {s->t->run->bundle->bytes.ptr + at, 0}};
    const struct xpl_iree_record *const h = chunk_at(s, chunk);
    s->renamed = renamed;
    if (h && h->chunk < XPL_IREE_N_CHUNK_TYPES) xpl_iree_export_item(&s->t->x, h, &item);
    s->renamed = NULL;
}

// Members by a table of the typed record.
#define PUT_FIELDS(s, table, at)                                                                   \
    XPL_ROW_FIELDS(&(s)->t->members, table, (s)->t->run->bundle->bytes.ptr + (at))

// ---- names ----

enum { MOST_PREFIX = 80, MOST_NAME = 320 };
struct name {
    char text[MOST_PREFIX + MOST_NAME];
    xpl_str_t shown;
};

static const void *record_at(const struct xpl_iree_sink *s, uint64_t at, void *ret, size_t size) {
    return memcpy(ret, s->t->run->bundle->bytes.ptr + at, size);
}

// The last description in the session; the model has the first.
static const struct xpl_iree_timeline_function *function_of(const struct xpl_iree_sink *s,
                                                            uint64_t executable, uint32_t ordinal) {
    const struct xpl_iree_function_key key = {
        executable, ordinal,
        xpl_iree_model_scope(&s->t->x.model, XPL_IREE_SCOPE_FUNCTION, executable, ordinal)};
    return xpl_iree_table_get(&s->t->functions, &key);
}

// NULL for the id 0, which is none.
static const struct xpl_iree_timeline_buffer *
buffer_of(const struct xpl_iree_sink *s, enum xpl_iree_scope_kind kind, uint64_t id) {
    const struct xpl_iree_buffer_key key = {id, xpl_iree_model_scope(&s->t->x.model, kind, id, 0)};
    return id ? xpl_iree_table_get(&s->t->buffers, &key) : NULL;
}

// What a command operation is called.
static xpl_str_t operation_name(struct xpl_iree_sink *s,
                                const struct xpl_iree_command_operation *op,
                                struct xpl_iree_key_text *text) {
    const struct xpl_iree_timeline_function *const f =
        function_of(s, op->executable_id, op->function_ordinal);
    if (f && f->name.len) return f->name;
    return xpl_iree_operation_key(&s->t->x.model, s->t->x.run, op, text);
}

// "PREFIX NAME", NAME cut where it is long.
static void join(struct name *n, const char *prefix, xpl_str_t name) {
    const size_t all = strlen(prefix), before = all < MOST_PREFIX ? all : MOST_PREFIX;
    const size_t len = strnlen(name.ptr, name.len < MOST_NAME ? name.len : MOST_NAME);
    memcpy(n->text, prefix, before);
    memcpy(n->text + before, name.ptr, len);
    n->shown = (xpl_str_t){n->text, before + len};
}

static void name_execution(struct xpl_iree_sink *s, const struct xpl_iree_host_event *e,
                           struct name *n) {
    const struct xpl_iree_timeline_buffer *const b =
        buffer_of(s, XPL_IREE_SCOPE_OPERATIONS, e->command_buffer_id);
    struct xpl_iree_command_operation op;
    struct xpl_iree_key_text text;
    char prefix[MOST_PREFIX];
    if (e->type != XPL_IREE_OP_EXECUTE || !b || b->operations == 0) {
        join(n, "host:", xpl_str_from(xpl_iree_name(XPL_IREE_NAMES_OP, e->type)));
    } else if (b->dispatches == 1) {
        (void)snprintf(prefix, sizeof prefix, "execute cb#%" PRIu64 ": ", e->command_buffer_id);
        record_at(s, b->dispatch.at, &op, sizeof op);
        join(n, prefix, operation_name(s, &op, &text));
    } else {
        (void)snprintf(prefix, sizeof prefix,
                       "execute cb#%" PRIu64 " (%" PRIu64 " ops, %" PRIu64 " dispatches)",
                       e->command_buffer_id, b->operations, b->dispatches);
        join(n, prefix, XPL_STR(""));
    }
}

// ---- slices ----

bool xpl_iree_timeline_put_stopped(struct xpl_iree_sink *s) {
    return xpl_iree_timeline_stopped(s->t) || s->t->run->rows->failed ||
           s->t->run->rows->out->failed || s->packet.body.failed;
}

static void put_flows_of(struct xpl_iree_sink *s, const struct xpl_iree_endpoint *end) {
    const struct xpl_iree_flow *const flows = s->t->flows.v;
    for (uint32_t i = end ? end->first_plus_1 : 0; i && !xpl_iree_timeline_put_stopped(s);
         i = flows[i - 1].next_plus_1)
        s->writer->flow(s, flows[i - 1].id);
}

// Flows that the bundle describes; else one that follows from the submission's id.
static void put_flows(struct xpl_iree_sink *s, struct xpl_iree_endpoint_key key,
                      uint64_t submission, bool derived) {
    key.session = s->t->x.model.session;
    const struct xpl_iree_endpoint *const own =
        key.id ? xpl_iree_table_get(&s->t->endpoints, &key) : NULL;
    const bool queue = key.type == XPL_IREE_END_QUEUE_EVENT;
    key.type = XPL_IREE_END_SUBMISSION, key.id = submission;
    const struct xpl_iree_endpoint *const all =
        submission ? xpl_iree_table_get(&s->t->endpoints, &key) : NULL;
    put_flows_of(s, queue ? all : NULL);
    put_flows_of(s, own);
    if (!derived || own || all || !submission) return;
    uint64_t id = xpl_pf_mix(xpl_pf_mix(2, key.stream_id), submission);
    id = xpl_pf_mix(xpl_pf_mix(id, key.device), key.queue);
    if (key.session) id = xpl_pf_mix(id, key.session); // each session numbers its submissions
    s->writer->flow(s, id | 1);
}

static struct xpl_iree_endpoint_key end_of(uint32_t type, uint32_t device, uint32_t queue,
                                           uint64_t stream, uint64_t id) {
    return (struct xpl_iree_endpoint_key){.type = type,
                                          .device = xpl_iree_device_or_first(device),
                                          .queue = queue,
                                          .stream_id = stream,
                                          .id = id};
}

static void put_buffer(struct xpl_iree_sink *s, uint64_t id) {
    const struct xpl_iree_timeline_buffer *b = buffer_of(s, XPL_IREE_SCOPE_BUFFER, id);
    if (!id) return;
    put_u64(s, "iree_command_buffer_id", id);
    if (b && b->described) {
        put_u64(s, "iree_command_buffer_flags", b->record.flags);
        put_u64(s, "iree_command_buffer_categories", b->record.command_categories);
    }
    b = buffer_of(s, XPL_IREE_SCOPE_OPERATIONS, id);
    if (!b || !b->operations) return;
    put_u64(s, "iree_command_buffer_operation_count", b->operations);
    put_u64(s, "iree_command_buffer_dispatch_count", b->dispatches);
}

static void put_host(struct xpl_iree_sink *s, const struct xpl_iree_event *e, uint64_t ns) {
    struct xpl_iree_host_event h;
    struct xpl_iree_key_text text;
    struct name n;
    record_at(s, e->at, &h, sizeof h);
    const struct xpl_iree_function_key key = {h.executable_id, h.function_ordinal, 0};
    if (h.executable_id && h.function_ordinal != XPL_IREE_NONE)
        n.shown = xpl_iree_dispatch_key(&s->t->x.model, s->t->x.run, h.physical_device_ordinal, key,
                                        &text);
    else
        name_execution(s, &h, &n);
    s->writer->event(s, e, ns, n.shown);
    // A dispatch within an execution is reached by its own arrow: that of the submission.
    put_flows(s,
              end_of(XPL_IREE_END_HOST, h.physical_device_ordinal, h.queue_ordinal, h.stream_id,
                     h.event_id),
              h.submission_id, h.type != XPL_IREE_OP_DISPATCH || h.command_buffer_id == 0);
    put_row(s, e->chunk, e->at, NULL);
    PUT_FIELDS(s, host_time, e->at);
    if (h.type == XPL_IREE_OP_EXECUTE) put_buffer(s, h.command_buffer_id);
}

static void put_dispatch(struct xpl_iree_sink *s, const struct xpl_iree_event *e, uint64_t ns) {
    const struct xpl_iree_record *const h = chunk_at(s, e->chunk);
    struct xpl_iree_dispatch_event d;
    struct xpl_iree_key_text text;
    if (!h) return;
    record_at(s, e->at, &d, sizeof d);
    const struct xpl_iree_function_key key = {d.executable_id, d.function_ordinal, 0};
    s->writer->event(
        s, e, ns,
        xpl_iree_dispatch_key(&s->t->x.model, s->t->x.run, h->physical_device_ordinal, key, &text));
    put_flows(s,
              end_of(XPL_IREE_END_DISPATCH, h->physical_device_ordinal, h->queue_ordinal,
                     h->stream_id, d.event_id),
              d.submission_id, !s->t->has_queue_device);
    put_row(s, e->chunk, e->at, NULL);
    PUT_FIELDS(s, device_time, e->at);
}

static void put_queue_device(struct xpl_iree_sink *s, const struct xpl_iree_event *e, uint64_t ns) {
    struct xpl_iree_queue_device_event q;
    struct name n;
    record_at(s, e->at, &q, sizeof q);
    join(&n, "queue-device:", xpl_str_from(xpl_iree_name(XPL_IREE_NAMES_OP, q.type)));
    s->writer->event(s, e, ns, n.shown);
    put_flows(s,
              end_of(XPL_IREE_END_QUEUE_DEVICE, q.physical_device_ordinal, q.queue_ordinal,
                     q.stream_id, q.event_id),
              q.submission_id, true);
    put_row(s, e->chunk, e->at, NULL);
    PUT_FIELDS(s, device_time, e->at);
}

static void put_slice(struct xpl_iree_sink *s, const struct xpl_iree_event *e, uint64_t ns) {
    const uint32_t kind = xpl_iree_track_at(s->t, e->track)->key.kind;
    if (kind == XPL_IREE_TRACK_HOST)
        put_host(s, e, ns);
    else if (kind == XPL_IREE_TRACK_DISPATCH)
        put_dispatch(s, e, ns);
    else
        put_queue_device(s, e, ns);
}

// ---- instants ----

static void put_queue(struct xpl_iree_sink *s, const struct xpl_iree_event *e, uint64_t ns) {
    const bool ready = e->kind == XPL_IREE_EVENT_READY;
    struct xpl_iree_queue_event q;
    struct name n;
    record_at(s, e->at, &q, sizeof q);
    join(&n,
         ready ? "queue_ready:" : "queue:", xpl_str_from(xpl_iree_name(XPL_IREE_NAMES_OP, q.type)));
    s->writer->event(s, e, ns, n.shown);
    put_flows(s,
              end_of(XPL_IREE_END_QUEUE_EVENT, q.physical_device_ordinal, q.queue_ordinal,
                     q.stream_id, q.event_id),
              q.submission_id, true);
    put_row(s, e->chunk, e->at, NULL);
    PUT_FIELDS(s, host_time, e->at);
}

static void put_memory(struct xpl_iree_sink *s, const struct xpl_iree_event *e, uint64_t ns) {
    struct xpl_iree_memory_event m;
    struct name n;
    record_at(s, e->at, &m, sizeof m);
    join(&n, "memory:", xpl_str_from(xpl_iree_name(XPL_IREE_NAMES_MEMORY, m.type)));
    s->writer->event(s, e, ns, n.shown);
    put_row(s, e->chunk, e->at, NULL);
    PUT_FIELDS(s, host_time, e->at);
}

static void put_operation(struct xpl_iree_sink *s, const struct xpl_iree_event *e, uint64_t ns) {
    static const struct xpl_iree_field host[] = {
        XPL_F_AS(U64, host_event, event_id, "iree_host_execution_event_id"),
        XPL_F_AS(U64, host_event, submission_id, "iree_host_submission_id"),
        XPL_F_CONST(TIME_DOMAIN, HOST_TIME),
        XPL_F_SPAN(host_event, start_host_time_ns, "iree_host_duration_ns"),
        XPL_F_AS(U64, host_event, tile_count, "iree_host_tile_count"),
        XPL_F_AS(I64, host_event, tile_duration_sum_ns, "iree_host_tile_duration_sum_ns"),
        XPL_F_CONST("iree_perfetto_timing_source", "host_execution_event")};
    struct xpl_iree_command_operation op;
    struct xpl_iree_key_text text;
    struct name n;
    char prefix[MOST_PREFIX];
    record_at(s, e->at, &op, sizeof op);
    (void)snprintf(prefix, sizeof prefix, "cb#%" PRIu64 " op%" PRIu32 " %s ", op.command_buffer_id,
                   op.command_index, xpl_iree_name(XPL_IREE_NAMES_COMMAND, op.type));
    join(&n, prefix, operation_name(s, &op, &text));
    s->writer->event(s, e, ns, n.shown);
    put_row(s, e->chunk, e->at, NULL);
    PUT_FIELDS(s, host, e->value);
}

static void put_diagnostic(struct xpl_iree_sink *s, const struct xpl_iree_event *e, uint64_t ns) {
    char text[320];
    s->writer->event(s, e, ns, XPL_STR("diagnostic"));
    if (e->extra < XPL_IREE_N_DIAGNOSTICS) {
        const struct xpl_iree_record *const h = chunk_at(s, e->chunk);
        if (h)
            (void)xpl_iree_export_diagnostic(&s->t->members, h, (enum xpl_iree_diagnostic)e->extra);
        return;
    }
    const struct xpl_iree_run whole = {.bundle = s->t->run->bundle, .damage = s->t->run->damage};
    if (!xpl_iree_warning(&whole, e->extra - XPL_IREE_N_DIAGNOSTICS, text, sizeof text)) return;
    put_z(s, "severity", "warning");
    put_z(s, "category", "bundle");
    put_z(s, "message", text);
}

// ---- counters ----

__extension__ typedef unsigned __int128 u128;

enum { SUM_DIGITS = 40 };

// The digits of a sum, in the room's end.
static xpl_str_t digits_of(u128 sum, char room[SUM_DIGITS]) {
    size_t at = SUM_DIGITS;
    do
        room[--at] = (char)('0' + (int)(sum % 10));
    while ((sum /= 10) > 0);
    return (xpl_str_t){room + at, SUM_DIGITS - at};
}

static void put_counter(struct xpl_iree_sink *s, const struct xpl_iree_event *e, uint64_t ns) {
    static const struct xpl_iree_renamed common[] = {
        {"sample_id", "iree_counter_sample_id"},
        {"counter_set_id", "iree_counter_set_id"},
        {"scope", "iree_counter_sample_scope"},
        {"scope_value", "iree_counter_sample_scope_value"},
        {"flags", "iree_counter_sample_flags"},
        {"stream_id", "iree_stream_id"},
        {"duration_ticks", "iree_duration_ticks"},
        {"duration_ns", "iree_duration_ns"},
        {NULL, NULL}};
    static const struct xpl_iree_renamed dispatch[] = {
        {"dispatch_event_id", "iree_dispatch_event_id"},
        {"submission_id", "iree_submission_id"},
        {"command_buffer_id", "iree_command_buffer_id"},
        {"command_index", "iree_command_index"},
        {"executable_id", "iree_executable_id"},
        {"function_ordinal", "iree_function_ordinal"},
        {NULL, NULL}};
    static const struct xpl_iree_renamed range[] = {
        {"physical_device_ordinal", "iree_physical_device_ordinal"},
        {"queue_ordinal", "iree_queue_ordinal"},
        {NULL, NULL}};
    const bool is_range = e->kind == XPL_IREE_EVENT_RANGE;
    const struct xpl_iree_timeline_counter *const c =
        (const struct xpl_iree_timeline_counter *)s->t->counters.v + e->extra;
    const struct xpl_iree_set_key set_key = {c->record.counter_set_id, c->session};
    const struct xpl_iree_timeline_set *const set = xpl_iree_table_get(&s->t->sets, &set_key);
    struct xpl_iree_counter_sample sample;
    char digits[SUM_DIGITS];
    u128 sum = 0;
    record_at(s, e->at, &sample, sizeof sample);
    const uint64_t from = e->at + sizeof sample + 8 * (uint64_t)c->record.sample_value_offset;
    for (uint64_t i = 0; i < c->record.sample_value_count; i++) {
        uint64_t v = 0;
        if (from + 8 * (i + 1) <= s->t->run->bundle->bytes.len) record_at(s, from + 8 * i, &v, 8);
        sum += v;
    }
    const bool whole = sum <= UINT64_MAX;
    struct xpl_iree_member m = {.name = "iree_counter_value", .kind = XPL_IREE_MEMBER_DOUBLE};
    if (whole)
        m.kind = XPL_IREE_MEMBER_U64, m.u64 = (uint64_t)sum;
    else
        m.number = (double)sum;
    s->writer->event(s, e, ns, XPL_STR(""));
    s->writer->value(s, &m);
    put_row(s, e->chunk, e->at, common);
    put_row(s, e->chunk, e->at, is_range ? range : dispatch);
    if (set) put_text(s, "iree_counter_set_name", set->name);
    put_u64(s, "iree_counter_ordinal", c->record.counter_ordinal);
    put_text(s, "iree_counter_name", c->name);
    put_text(s, "iree_counter_block", c->block);
    put_u64(s, "iree_counter_unit", c->record.unit);
    put_z(s, "iree_counter_value_aggregation", "sum");
    if (whole)
        s->writer->argument(s, &m);
    else // the renderer's number has no limit
        put_text(s, m.name, digits_of(sum, digits));
    put_u64(s, "iree_counter_raw_value_offset", c->record.sample_value_offset);
    put_u64(s, "iree_counter_raw_value_count", c->record.sample_value_count);
    if (!is_range) {
        const struct xpl_iree_timeline_function *const f =
            function_of(s, sample.executable_id, sample.function_ordinal);
        if (f) put_text(s, "iree_executable_function_name", f->name);
    }
    PUT_FIELDS(s, device_time, e->at);
    put_z(s, "iree_perfetto_timing_source",
          is_range ? "range_counter_sample_midpoint" : "dispatch_scoped_counter_sample_midpoint");
}

static const struct xpl_iree_renamed kSample[] = {
    {"source_id", "iree_metric_source_id"},
    {"sample_id", "iree_metric_sample_id"},
    {"flags", "iree_metric_sample_flags"},
    {"host_time_uncertainty_ns", "iree_metric_host_time_uncertainty_ns"},
    {NULL, NULL}};

static void put_source(struct xpl_iree_sink *s, uint64_t id) {
    const struct xpl_iree_source_key key = {
        id, xpl_iree_model_scope(&s->t->x.model, XPL_IREE_SCOPE_SOURCE, id, 0)};
    const struct xpl_iree_timeline_source *const source = xpl_iree_table_get(&s->t->sources, &key);
    if (source) put_text(s, "iree_metric_source_name", source->name);
}

static void put_metric(struct xpl_iree_sink *s, const struct xpl_iree_event *e, uint64_t ns) {
    struct xpl_iree_metric_sample sample;
    struct xpl_iree_metric_value v = {0};
    record_at(s, e->at, &sample, sizeof sample);
    const uint64_t at = e->at + sizeof sample + e->extra * sizeof v;
    if (at + sizeof v <= s->t->run->bundle->bytes.len) record_at(s, at, &v, sizeof v);
    const struct xpl_iree_metric_row *const m =
        xpl_iree_model_metric(&s->t->x.model, sample.source_id, v.metric_id);
    struct xpl_iree_member value = {.kind = XPL_IREE_MEMBER_U64, .u64 = v.value_bits};
    if (!m) return;
    if (m->record.value_kind == XPL_IREE_METRIC_F64)
        value.kind = XPL_IREE_MEMBER_DOUBLE, memcpy(&value.number, &v.value_bits, 8);
    else if (m->record.value_kind == XPL_IREE_METRIC_I64)
        value.kind = XPL_IREE_MEMBER_I64, value.i64 = (int64_t)v.value_bits;
    s->writer->event(s, e, ns, XPL_STR(""));
    s->writer->value(s, &value);
    put_row(s, e->chunk, e->at, kSample);
    put_source(s, sample.source_id);
    put_u64(s, "iree_metric_id", v.metric_id);
    put_text(s, "iree_metric_name", m->name);
    put_z(s, "iree_metric_unit", xpl_iree_name(XPL_IREE_NAMES_METRIC_UNIT, m->record.unit));
    put_z(s, "iree_metric_value_kind",
          xpl_iree_name(XPL_IREE_NAMES_METRIC_KIND, m->record.value_kind));
    put_z(s, "iree_metric_semantic",
          xpl_iree_name(XPL_IREE_NAMES_METRIC_SEMANTIC, m->record.semantic));
    put_z(s, "iree_metric_plot_hint", xpl_iree_name(XPL_IREE_NAMES_PLOT_HINT, m->record.plot_hint));
    put_u64(s, "iree_metric_value_flags", v.flags);
    PUT_FIELDS(s, host_time, e->at);
    put_z(s, "iree_perfetto_timing_source", "device_metric_sample_midpoint");
}

static void put_partial(struct xpl_iree_sink *s, const struct xpl_iree_event *e, uint64_t ns) {
    struct xpl_iree_metric_sample sample;
    record_at(s, e->at, &sample, sizeof sample);
    s->writer->event(s, e, ns, XPL_STR("device metrics partial sample"));
    put_row(s, e->chunk, e->at, kSample);
    put_source(s, sample.source_id);
}

static void put_allocated(struct xpl_iree_sink *s, const struct xpl_iree_event *e, uint64_t ns) {
    const struct xpl_iree_member m = {.kind = XPL_IREE_MEMBER_U64, .u64 = e->value};
    s->writer->event(s, e, ns, XPL_STR(""));
    s->writer->value(s, &m);
}

void xpl_iree_timeline_put(struct xpl_iree_sink *s, const struct xpl_iree_event *e, uint64_t ns) {
    s->event = e;
    s->t->x.model.session = e->session;
    switch ((enum xpl_iree_event_kind)e->kind) {
        case XPL_IREE_EVENT_END: s->writer->event(s, e, ns, XPL_STR("")); break;
        case XPL_IREE_EVENT_SLICE: put_slice(s, e, ns); break;
        case XPL_IREE_EVENT_CLOCK:
            s->writer->event(s, e, ns, XPL_STR("clock correlation"));
            put_row(s, e->chunk, e->at, NULL);
            break;
        case XPL_IREE_EVENT_OPERATION: put_operation(s, e, ns); break;
        case XPL_IREE_EVENT_ALLOCATED: put_allocated(s, e, ns); break;
        case XPL_IREE_EVENT_METRIC: put_metric(s, e, ns); break;
        case XPL_IREE_EVENT_PARTIAL: put_partial(s, e, ns); break;
        case XPL_IREE_EVENT_DIAGNOSTIC: put_diagnostic(s, e, ns); break;
        case XPL_IREE_EVENT_COUNTER:
        case XPL_IREE_EVENT_RANGE: put_counter(s, e, ns); break;
        case XPL_IREE_EVENT_MEMORY: put_memory(s, e, ns); break;
        case XPL_IREE_EVENT_QUEUE:
        case XPL_IREE_EVENT_READY: put_queue(s, e, ns); break;
    }
    s->writer->event_end(s, ns);
}
