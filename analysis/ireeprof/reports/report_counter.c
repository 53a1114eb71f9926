// SPDX-License-Identifier: Apache-2.0
// Report counter: sets of hardware counters, and their samples summed up.
#include <string.h>

#include "analysis/ireeprof/model.h"
#include "analysis/ireeprof/reports/export/export_fields.h"
#include "analysis/ireeprof/reports/impl.h"

struct set {
    uint64_t counter_set_id; // the key
    struct xpl_iree_counter_set record;
    bool only_named;
    xpl_str_t name;
    uint32_t first_plus_1, last_plus_1; // its counters
};
struct counter_key {
    uint64_t counter_set_id, counter_ordinal;
};
struct counter {
    struct counter_key key;
    struct xpl_iree_counter record;
    xpl_str_t block, name, description;
    uint32_t next_plus_1; // of the same set
};
struct group_key {
    uint64_t stream_id, counter_set_id, executable_id, command_buffer_id;
    uint32_t physical_device_ordinal, queue_ordinal, scope, counter_ordinal, function_ordinal, zero;
};
struct group {
    struct group_key key;
    uint64_t samples, raw_values, first_sample_id, last_sample_id;
    double min, max, sum, mean, m2;
};

struct counters {
    struct xpl_iree_run *run;
    struct xpl_iree_model model;
    struct xpl_iree_table sets, counters, groups;
    uint64_t total, matched, truncated;
};

// ---- metadata; false on OOM ----

static bool add_set(struct counters *c, const struct xpl_iree_item *item) {
    struct xpl_iree_counter_set v;
    bool is_new;
    xpl_iree_copy(item, &v);
    struct set *const s = xpl_iree_table_put(&c->sets, &v.counter_set_id, &is_new);
    if (!s || (!is_new && !s->only_named)) return s != NULL;
    s->record = v;
    s->only_named = false;
    s->name = (xpl_str_t){(const char *)item->tail.ptr, item->tail.len};
    return true;
}

static bool add_counter(struct counters *c, const struct xpl_iree_item *item) {
    struct xpl_iree_counter v;
    bool is_new;
    xpl_iree_copy(item, &v);
    struct set *const s = xpl_iree_table_put(&c->sets, &v.counter_set_id, &is_new);
    if (!s) return false;
    if (is_new) {
        s->only_named = true;
        s->record.counter_set_id = v.counter_set_id;
        c->run->missing[XPL_IREE_MISSING_SET_OF_COUNTER]++;
    }
    const struct counter_key key = {v.counter_set_id, v.counter_ordinal};
    struct counter *const n = xpl_iree_table_put(&c->counters, &key, &is_new);
    if (!n || !is_new) return n != NULL;
    const xpl_str_t text = {(const char *)item->tail.ptr, item->tail.len};
    n->record = v;
    n->block = xpl_str_sub(text, 0, v.block_name_length);
    n->name = xpl_str_sub(text, v.block_name_length, v.name_length);
    n->description =
        xpl_str_sub(text, (size_t)v.block_name_length + v.name_length, v.description_length);
    const uint32_t self = (uint32_t)c->counters.n;
    if (s->last_plus_1)
        ((struct counter *)xpl_iree_table_at(&c->counters, s->last_plus_1 - 1))->next_plus_1 = self;
    else
        s->first_plus_1 = self;
    s->last_plus_1 = self;
    return true;
}

static xpl_status_t add_metadata(void *ctx, const struct xpl_iree_record *r,
                                 struct xpl_error *err) {
    struct counters *const c = ctx;
    struct xpl_iree_items items = xpl_iree_items_of(r);
    struct xpl_iree_item item;
    XPL_TRY(xpl_iree_model_add(&c->model, c->run, r, err));
    if (r->chunk != XPL_IREE_COUNTER_SETS && r->chunk != XPL_IREE_COUNTERS) return XPL_OK;
    while (xpl_iree_item_next(&items, &item, NULL))
        if (!(r->chunk == XPL_IREE_COUNTERS ? add_counter(c, &item) : add_set(c, &item)))
            XPL_RETURN_OOM(err, "counters of the bundle");
    return XPL_OK;
}

// ---- samples ----

struct sample {
    struct xpl_iree_counter_sample record;
    xpl_bytes_t values; // u64 each
    const struct set *set;
    const struct counter *counter;
    xpl_str_t key;
    double sum; // of the counter's values
};

static uint64_t value_at(const struct sample *s, uint32_t i) {
    uint64_t v;
    memcpy(&v, s->values.ptr + sizeof v * (s->counter->record.sample_value_offset + (size_t)i),
           sizeof v);
    return v;
}

static void write_sample(const struct counters *c, const struct sample *s) {
    struct xpl_iree_rows *const r = c->run->rows;
    const struct xpl_iree_counter_sample *const v = &s->record;
    const bool valid =
        (v->flags & XPL_IREE_SAMPLE_HAS_TICKS) && xpl_iree_ticks_valid(v->start_tick, v->end_tick);
    xpl_row_begin(r, "type", "counter_sample");
    xpl_row_u64(r, "sample_id", v->sample_id);
    xpl_row_u64(r, "counter_set_id", v->counter_set_id);
    xpl_row_str(r, "counter_set", s->set->name);
    xpl_row_u64(r, "counter_ordinal", s->counter->record.counter_ordinal);
    xpl_row_str(r, "counter", s->counter->name);
    xpl_row_str(r, "block", s->counter->block);
    xpl_row_text(r, "unit", xpl_iree_name(XPL_IREE_NAMES_COUNTER_UNIT, s->counter->record.unit));
    xpl_iree_row_members(r, XPL_IREE_COUNTER_SAMPLES, 2, 8, v); // scope to function_ordinal
    xpl_row_str(r, "key", s->key);
    xpl_iree_row_members(r, XPL_IREE_COUNTER_SAMPLES, 10, 8, v); // queue to end_tick
    xpl_row_u64(r, "duration_ticks", valid ? v->end_tick - v->start_tick : 0);
    xpl_row_bool(r, "device_tick_range_valid", valid);
    xpl_row_fixed(r, "value", s->sum, 3);
    xpl_row_open(r, "values", '[');
    for (uint32_t i = 0; i < s->counter->record.sample_value_count; i++)
        xpl_row_u64(r, NULL, value_at(s, i));
    xpl_row_close(r, ']');
    xpl_row_end(r);
}

static bool add_group(struct counters *c, const struct sample *s) {
    const struct group_key key = {.stream_id = s->record.stream_id,
                                  .counter_set_id = s->record.counter_set_id,
                                  .executable_id = s->record.executable_id,
                                  .command_buffer_id = s->record.command_buffer_id,
                                  .physical_device_ordinal = s->record.physical_device_ordinal,
                                  .queue_ordinal = s->record.queue_ordinal,
                                  .scope = s->record.scope,
                                  .counter_ordinal = s->counter->record.counter_ordinal,
                                  .function_ordinal = s->record.function_ordinal};
    bool is_new;
    struct group *const g = xpl_iree_table_put(&c->groups, &key, &is_new);
    if (!g) return false;
    g->samples++;
    g->raw_values += s->counter->record.sample_value_count;
    if (g->first_sample_id == 0) g->first_sample_id = s->record.sample_id;
    g->last_sample_id = s->record.sample_id;
    if (is_new || s->sum < g->min) g->min = s->sum;
    if (s->sum > g->max) g->max = s->sum;
    g->sum += s->sum;
    const double delta = s->sum - g->mean;
    g->mean += delta / (double)g->samples;
    g->m2 += delta * (s->sum - g->mean);
    return true;
}

// One counter of a sample.  *matched is set when --filter chooses it; false on OOM.
static bool add_value(struct counters *c, struct sample *s, bool *matched) {
    const xpl_str_t filter = c->run->options.filter;
    const struct xpl_iree_counter *const n = &s->counter->record;
    if (!xpl_iree_glob(s->key, filter) && !xpl_iree_glob(s->set->name, filter) &&
        !xpl_iree_glob(s->counter->block, filter) && !xpl_iree_glob(s->counter->name, filter))
        return true;
    if (n->sample_value_offset > s->record.sample_value_count ||
        s->record.sample_value_count - n->sample_value_offset < n->sample_value_count) {
        c->run->missing[XPL_IREE_BAD_COUNTER_LAYOUT]++;
        return true;
    }
    s->sum = 0;
    for (uint32_t i = 0; i < n->sample_value_count; i++)
        s->sum += (double)value_at(s, i);
    *matched = true;
    if (!add_group(c, s)) return false;
    if (c->run->options.counter_samples) write_sample(c, s);
    return true;
}

static bool has_id(const struct xpl_iree_run *run, const struct xpl_iree_counter_sample *v) {
    return xpl_iree_id_is(run, v->sample_id) || xpl_iree_id_is(run, v->dispatch_event_id) ||
           xpl_iree_id_is(run, v->submission_id) || xpl_iree_id_is(run, v->command_buffer_id);
}

// A copied sample's values, when the record still holds as many as it did when it was checked.
static bool sample_of(const struct xpl_iree_item *item, struct sample *ret) {
    xpl_iree_copy(item, &ret->record);
    ret->values = item->tail;
    return item->tail.len / sizeof(uint64_t) >= ret->record.sample_value_count;
}

static bool add_sample(struct counters *c, const struct xpl_iree_item *item, bool *matched) {
    struct sample s;
    struct xpl_iree_key_text text;
    if (!sample_of(item, &s)) return true;
    const struct xpl_iree_counter_sample *const v = &s.record;
    const struct xpl_iree_function_key key = {v->executable_id, v->function_ordinal, 0};
    s.set = xpl_iree_table_get(&c->sets, &v->counter_set_id);
    if (!s.set || !s.set->first_plus_1) {
        c->run->missing[XPL_IREE_MISSING_COUNTER_SET]++;
        return true;
    }
    if (s.set->record.sample_value_count != v->sample_value_count)
        c->run->missing[XPL_IREE_BAD_COUNTER_LAYOUT]++;
    s.key = XPL_STR("unattributed");
    if (v->executable_id && v->function_ordinal != XPL_IREE_NONE)
        s.key = xpl_iree_dispatch_key(&c->model, c->run, v->physical_device_ordinal, key, &text);
    if (!has_id(c->run, v)) return true;
    // Counters may share values, so that a sample takes as long as it has values times counters.
    for (uint32_t at = s.set->first_plus_1; at && !xpl_iree_stopped(c->run);
         at = s.counter->next_plus_1) {
        s.counter = xpl_iree_table_at(&c->counters, at - 1);
        if (!add_value(c, &s, matched)) return false;
    }
    return true;
}

static xpl_status_t add_samples(void *ctx, const struct xpl_iree_record *r, struct xpl_error *err) {
    struct counters *const c = ctx;
    struct xpl_iree_items items = xpl_iree_items_of(r);
    struct xpl_iree_item item;
    if (r->chunk != XPL_IREE_COUNTER_SAMPLES) return XPL_OK;
    while (xpl_iree_item_next(&items, &item, NULL)) {
        bool matched = false;
        c->total++;
        if (!add_sample(c, &item, &matched)) XPL_RETURN_OOM(err, "counters of the bundle");
        c->matched += matched;
        c->truncated += matched && xpl_iree_truncated(r);
    }
    return XPL_OK;
}

// ---- rows ----

static void write_summary(const struct counters *c) {
    struct xpl_iree_rows *const r = c->run->rows;
    xpl_row_begin(r, "type", "counter_summary");
    xpl_row_str(r, "filter", c->run->options.filter);
    xpl_row_i64(r, "id_filter", c->run->options.id);
    xpl_row_text(r, "mode", c->run->options.counter_samples ? "samples" : "aggregate");
    xpl_row_u64(r, "total_samples", c->total);
    xpl_row_u64(r, "matched_samples", c->matched);
    xpl_row_u64(r, "truncated_matched_samples", c->truncated);
    xpl_row_u64(r, "counter_sets", c->sets.n);
    xpl_row_u64(r, "counters", c->counters.n);
    xpl_row_u64(r, "aggregate_groups", c->groups.n);
    xpl_row_end(r);
}

static void write_metadata(const struct counters *c) {
    static const struct xpl_iree_field counter_fields[] = {
        XPL_F(U64, counter, counter_set_id),
        XPL_F(U32, counter, counter_ordinal),
        XPL_F(U32, counter, physical_device_ordinal),
        XPL_F(U32, counter, flags),
        XPL_F_NAME(counter, unit, "unit", COUNTER_UNIT),
        XPL_F_AS(U32, counter, unit, "unit_value"),
        XPL_F(U32, counter, sample_value_offset),
        XPL_F(U32, counter, sample_value_count)};
    struct xpl_iree_rows *const r = c->run->rows;
    for (size_t i = 0; i < c->sets.n; i++) {
        const struct set *const s = xpl_iree_table_at(&c->sets, i);
        xpl_row_begin(r, "type", "counter_set");
        xpl_iree_row_members(r, XPL_IREE_COUNTER_SETS, 0, 5, &s->record);
        xpl_row_str(r, "name", s->name);
        xpl_row_end(r);
    }
    for (size_t i = 0; i < c->counters.n; i++) {
        const struct counter *const n = xpl_iree_table_at(&c->counters, i);
        xpl_row_begin(r, "type", "counter");
        XPL_ROW_FIELDS(r, counter_fields, &n->record);
        xpl_row_str(r, "block", n->block);
        xpl_row_str(r, "name", n->name);
        xpl_row_str(r, "description", n->description);
        xpl_row_end(r);
    }
}

static void write_group(const struct counters *c, const struct group *g) {
    struct xpl_iree_rows *const r = c->run->rows;
    const struct group_key *const k = &g->key;
    const struct counter_key key = {k->counter_set_id, k->counter_ordinal};
    const struct counter *const n = xpl_iree_table_get(&c->counters, &key);
    const struct set *const s = xpl_iree_table_get(&c->sets, &k->counter_set_id);
    const struct xpl_iree_function_key function = {k->executable_id, k->function_ordinal, 0};
    const bool attributed = k->executable_id && k->function_ordinal != XPL_IREE_NONE;
    struct xpl_iree_key_text text;
    xpl_row_begin(r, "type", "counter_group");
    xpl_row_u64(r, "physical_device_ordinal", k->physical_device_ordinal);
    xpl_row_u64(r, "queue_ordinal", k->queue_ordinal);
    xpl_row_u64(r, "stream_id", k->stream_id);
    xpl_row_text(r, "scope", xpl_iree_name(XPL_IREE_NAMES_SCOPE, k->scope));
    xpl_row_u64(r, "scope_value", k->scope);
    xpl_row_u64(r, "counter_set_id", k->counter_set_id);
    xpl_row_str(r, "counter_set", s->name);
    xpl_row_u64(r, "counter_ordinal", k->counter_ordinal);
    xpl_row_str(r, "counter", n->name);
    xpl_row_str(r, "block", n->block);
    xpl_row_text(r, "unit", xpl_iree_name(XPL_IREE_NAMES_COUNTER_UNIT, n->record.unit));
    xpl_row_u64(r, "command_buffer_id", k->command_buffer_id);
    xpl_row_u64(r, "executable_id", k->executable_id);
    xpl_row_u64(r, "function_ordinal", k->function_ordinal);
    xpl_row_str(r, "key",
                attributed ? xpl_iree_key(xpl_iree_model_function(&c->model, k->executable_id,
                                                                  k->function_ordinal),
                                          k->physical_device_ordinal, function, &text)
                           : XPL_STR("unattributed"));
    xpl_row_u64(r, "samples", g->samples);
    xpl_row_u64(r, "raw_values", g->raw_values);
    xpl_row_fixed(r, "min", g->min, 3);
    xpl_row_fixed(r, "avg", g->mean, 3);
    xpl_row_fixed(r, "stddev", xpl_iree_root(g->samples > 1 ? g->m2 / (double)(g->samples - 1) : 0),
                  3);
    xpl_row_fixed(r, "max", g->max, 3);
    xpl_row_fixed(r, "sum", g->sum, 3);
    xpl_row_u64(r, "first_sample_id", g->first_sample_id);
    xpl_row_u64(r, "last_sample_id", g->last_sample_id);
    xpl_row_end(r);
}

xpl_status_t xpl_iree_report_counter(struct xpl_iree_run *run, struct xpl_error *err) {
    static const uint32_t kMetadata =
        XPL_IREE_MODEL_CHUNKS | 1u << XPL_IREE_COUNTER_SETS | 1u << XPL_IREE_COUNTERS;
    struct counters c = {
        .run = run,
        .sets = {.row_size = sizeof(struct set), .key_size = 8},
        .counters = {.row_size = sizeof(struct counter), .key_size = sizeof(struct counter_key)},
        .groups = {.row_size = sizeof(struct group), .key_size = sizeof(struct group_key)}};
    xpl_iree_model_init(&c.model);
    xpl_status_t st = xpl_iree_walk_chunks(run, kMetadata, add_metadata, &c, err);
    if (st == XPL_OK)
        st = xpl_iree_walk_chunks(run, 1u << XPL_IREE_COUNTER_SAMPLES, add_samples, &c, err);
    if (st == XPL_OK) {
        write_summary(&c);
        write_metadata(&c);
        for (size_t i = 0; i < c.groups.n; i++)
            write_group(&c, xpl_iree_table_at(&c.groups, i));
    }
    xpl_iree_table_fini(&c.sets);
    xpl_iree_table_fini(&c.counters);
    xpl_iree_table_fini(&c.groups);
    xpl_iree_model_fini(&c.model);
    return st;
}
