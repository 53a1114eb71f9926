// SPDX-License-Identifier: Apache-2.0
#include "cli/data_table.h"

#include <ctype.h>
#include <string.h>

#include "analysis/tools/lib/columns.h"
#include "base/arena.h"
#include "cli/csv/cells.h"
#include "cli/document/parse.h"
#include "cli/table.h"

enum { MOST_COLUMNS = 64, TEXT_WIDTH = 60 };
#define LIMIT ((size_t)256 << 20)

struct printer {
    FILE *out;
    struct xpl_arena arena;
    size_t n_tables;
    bool failed;
    size_t number; // of the table among several; 0: it is the only one
    bool first;    // nothing but the first table that has columns
};

static const json_t *value_of(const json_t *row, size_t column) {
    return json_object_get(json_array_get(json_object_get(row, "c"), column), "v");
}

static bool says_nothing(const json_t *v) {
    return !v || json_is_null(v) || json_is_false(v) ||
           (json_is_number(v) && json_number_value(v) == 0) ||
           (json_is_string(v) && json_string_length(v) == 0);
}

static bool is_shown(const json_t *table, size_t column) {
    const json_t *const rows = json_object_get(table, "rows");
    for (size_t i = 0; i < json_array_size(rows); i++)
        if (!says_nothing(value_of(json_array_get(rows, i), column))) return true;
    return false;
}

// ---- units ----

// What the numbers of a column are: ids and labels say so, each table in its own way.
enum column_unit {
    COLUMN_NUMBER,
    COLUMN_PS,
    COLUMN_US,
    COLUMN_MS,
    COLUMN_BYTES,
    COLUMN_FRACTION, // 1 is all
    COLUMN_PERCENT,  // 100 is all
};

static bool ends(const char *text, const char *tail) {
    const size_t n = strlen(text), m = strlen(tail);
    return n >= m && strcmp(text + n - m, tail) == 0;
}

static bool is_listed(const char *id, const char *const *list) {
    for (; *list; list++)
        if (strcmp(id, *list) == 0) return true;
    return false;
}

// `of_steps`: as xpl_column_is_fraction has it.
static enum column_unit share_of(const char *id, bool of_steps) {
    static const char *const percents[] = {"infeedPercentAverage",
                                           "infeedPercentMin",
                                           "infeedPercentMax",
                                           "occupancy_pct",
                                           "share",
                                           "total_self_time_percent",
                                           "cumulative_total_self_time_percent",
                                           NULL};
    if (xpl_column_is_fraction(xpl_str_from(id), of_steps)) return COLUMN_FRACTION;
    return is_listed(id, percents) ? COLUMN_PERCENT : COLUMN_NUMBER;
}

static enum column_unit column_unit_of(const char *id, const char *label, bool of_steps) {
    if (strstr(label, "(us)") || strstr(label, "(\xce\xbcs)") || ends(id, "_us")) return COLUMN_US;
    if (strstr(label, "(in ms)") || strstr(label, "(ms)") || ends(id, "TimeMs")) return COLUMN_MS;
    if (ends(id, "_ps")) return COLUMN_PS;
    if (ends(id, "_bytes")) return COLUMN_BYTES;
    return share_of(id, of_steps);
}

static const char *text_member(const json_t *column, const char *key) {
    const char *const text = json_string_value(json_object_get(column, key));
    return text ? text : "";
}

static enum column_unit unit_of(const json_t *column, bool of_steps) {
    return column_unit_of(text_member(column, "id"), text_member(column, "label"), of_steps);
}

// The unit at the end of a label whose cells are bare numbers, "(GiB/s)"; or "".
static const char *bare_unit(const json_t *column) {
    const char *const label = json_string_value(json_object_get(column, "label"));
    const char *const open = label ? strrchr(label, '(') : NULL;
    bool is = open && strchr(open, '/') && label[strlen(label) - 1] == ')';
    for (const char *c = open; is && *c; c++)
        is = isprint((unsigned char)*c) != 0;
    return is ? open : "";
}

// The column's id, which is shorter than its label, and its unit.
static const char *heading(struct printer *p, const json_t *column) {
    const char *const id = json_string_value(json_object_get(column, "id"));
    const char *const type = json_string_value(json_object_get(column, "type"));
    const bool right = type && strcmp(type, "number") == 0;
    xpl_str_t s;
    if (!xpl_arena_printf(&p->arena, &s, "%s%s", right ? ">" : "", id ? id : "")) return NULL;
    // The cells name the unit.
    const enum column_unit unit = unit_of(column, false);
    if (unit == COLUMN_PS || (unit == COLUMN_US && xpl_str_ends(s, XPL_STR("_us"))))
        s.len -= 3;
    else if (unit == COLUMN_MS && xpl_str_ends(s, XPL_STR("Ms")))
        s.len -= 2;
    char *const text = xpl_arena_zalloc(&p->arena, s.len + 1);
    for (size_t i = 0; text && i < s.len; i++)
        text[i] = (char)(isgraph((unsigned char)s.ptr[i]) && s.ptr[i] != '_'
                             ? toupper((unsigned char)s.ptr[i])
                             : ' ');
    if (!text || !*bare_unit(column)) return text;
    xpl_str_t whole;
    return xpl_arena_printf(&p->arena, &whole, "%s %s", text, bare_unit(column)) ? whole.ptr : NULL;
}

// A text without the tags of HTML that some cells have; what is escaped in them stays so.
static void put_text(struct printer *p, struct xpl_table *t, const json_t *v) {
    const char *s = json_string_value(v);
    size_t n = json_string_length(v), kept = 0;
    char *const copy = xpl_arena_alloc(&p->arena, n + 1);
    if (!copy) {
        p->failed = true;
        return;
    }
    if (n >= 4 && memcmp(s, "<div", 4) == 0) {
        const char *const open = memchr(s, '>', n);
        if (open) n -= (size_t)(open + 1 - s), s = open + 1;
        if (n >= 6 && memcmp(s + n - 6, "</div>", 6) == 0) n -= 6;
    }
    for (size_t i = 0; i < n; i++)
        copy[kept++] = s[i];
    xpl_table_text(t, (xpl_str_t){copy, kept}, TEXT_WIDTH);
}

// A number as people read it: "5.5%", "1.2 ms", "48 KiB".
static void put_number(struct xpl_table *t, double v, enum column_unit unit) {
    const bool fits = v > 0 && v < 0x1p43; // of us in ps; what does not is shown as it is
    switch (unit) {
        case COLUMN_FRACTION: xpl_table_percent(t, v); return;
        case COLUMN_PERCENT: xpl_table_percent(t, v / 100); return;
        case COLUMN_PS: xpl_table_time_ps(t, v > 0 && v < 0x1p63 ? (uint64_t)v : 0); return;
        case COLUMN_US:
            if (fits) xpl_table_time_ps(t, (uint64_t)(v * 1e6 + 0.5));
            break;
        case COLUMN_MS:
            if (fits && v < 0x1p33) xpl_table_time_ps(t, (uint64_t)(v * 1e9 + 0.5));
            break;
        case COLUMN_BYTES:
            if (fits) xpl_table_bytes(t, (uint64_t)v);
            break;
        case COLUMN_NUMBER: break;
    }
    if (unit == COLUMN_NUMBER || !fits || (unit == COLUMN_MS && v >= 0x1p33))
        xpl_table_printf(t, "%.7g", v);
}

static void put_cell(struct printer *p, struct xpl_table *t, const json_t *v,
                     enum column_unit unit) {
    if (json_is_number(v) && unit)
        put_number(t, json_number_value(v), unit);
    else if (json_is_number(v))
        xpl_table_printf(t, "%.7g", json_number_value(v));
    else if (json_is_boolean(v))
        xpl_table_printf(t, "%s", json_is_true(v) ? "yes" : "no");
    else if (json_is_string(v))
        put_text(p, t, v);
    else
        xpl_table_text(t, XPL_STR(""), TEXT_WIDTH);
}

static void finish(struct printer *p, struct xpl_table *t) {
    if (p->n_tables++) (void)fputc('\n', p->out);
    if (p->number) (void)fprintf(p->out, "Table %zu\n", p->number);
    if (t && xpl_table_rows(t) == 0)
        (void)fputs("no rows\n", p->out);
    else if (!t || !xpl_table_print(t, p->out))
        p->failed = true;
    xpl_table_free(t);
}

static bool has_column(const json_t *columns, const char *id) {
    for (size_t i = 0; i < json_array_size(columns); i++)
        if (strcmp(text_member(json_array_get(columns, i), "id"), id) == 0) return true;
    return false;
}

static bool is_of_steps(const json_t *table) {
    return has_column(json_object_get(table, "cols"), "step") && !json_object_get(table, "whole");
}

static void print_table(struct printer *p, const json_t *table) {
    const json_t *const columns = json_object_get(table, "cols");
    const json_t *const rows = json_object_get(table, "rows");
    const char *names[MOST_COLUMNS];
    size_t shown[MOST_COLUMNS], n = 0;
    enum column_unit units[MOST_COLUMNS];
    const bool of_steps = is_of_steps(table);
    if (!json_array_size(columns)) return;
    for (size_t i = 0; i < json_array_size(columns) && n < MOST_COLUMNS; i++) {
        const bool whole = json_object_get(table, "whole"); // a table made here
        if (!whole && json_array_size(rows) && !is_shown(table, i)) continue;
        shown[n] = i;
        units[n] = unit_of(json_array_get(columns, i), of_steps);
        if (!(names[n++] = heading(p, json_array_get(columns, i)))) p->failed = true;
    }
    if (p->failed) return;
    struct xpl_table *const t = xpl_table_new(names, n);
    for (size_t i = 0; t && n && i < json_array_size(rows); i++)
        for (size_t k = 0; k < n; k++)
            put_cell(p, t, value_of(json_array_get(rows, i), shown[k]), units[k]);
    finish(p, t);
}

// ---- answers of other shapes, as the tables that they are ----

static json_t *column(const char *id, bool number) {
    const char *const label = strcmp(id, "share") == 0 ? "Share (%)" : "";
    return json_pack("{ss ss ss}", "id", id, "label", label, "type", number ? "number" : "string");
}

// An empty table, whose columns are "number" or ".text".
static json_t *new_table(const char *const *ids) {
    json_t *const cols = json_array();
    for (; *ids; ids++)
        (void)json_array_append_new(cols, column(*ids + (**ids == '.'), **ids != '.'));
    return json_pack("{so s[] sb}", "cols", cols, "rows", "whole", 1);
}

static json_t *new_row(json_t *table) {
    json_t *const cells = json_array();
    (void)json_array_append_new(json_object_get(table, "rows"), json_pack("{so}", "c", cells));
    return cells;
}

static void add_cell(json_t *row, json_t *v) {
    (void)json_array_append_new(row, json_pack("{so?}", "v", v));
}

static void add_member(json_t *row, const json_t *of, const char *key) {
    add_cell(row, json_incref(json_object_get(of, key)));
}

// pod_viewer: a row for each core of each step, a column for each kind of time.
static json_t *pod_table(const json_t *answer) {
    static const char *const ids[] = {"step",
                                      ".core",
                                      ".host",
                                      ".bottleneck",
                                      "duration_us",
                                      "compute_us",
                                      "device2device_us",
                                      "collectives_us",
                                      "host_us",
                                      "launch_us",
                                      "input_us",
                                      "output_us",
                                      "compilation_us",
                                      "others_us",
                                      NULL};
    static const char *const kinds[] = {"1", "2", "3", "4", "5", "6", "7", "8", "9"};
    json_t *const table = new_table(ids);
    const json_t *const steps =
        json_object_get(json_object_get(answer, "podStatsSequence"), "podStatsMap");
    for (size_t i = 0; i < json_array_size(steps); i++) {
        json_t *const cores = json_object_get(json_array_get(steps, i), "podStatsPerCore");
        const char *core;
        json_t *c;
        json_object_foreach(cores, core, c) {
            json_t *const row = new_row(table);
            add_member(row, c, "stepNum");
            add_cell(row, json_string(core));
            add_member(row, c, "hostName");
            add_member(row, c, "bottleneck");
            add_member(row, c, "totalDurationUs");
            for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
                add_member(row, json_object_get(c, "stepBreakdownUs"), kinds[k]);
        }
    }
    return table;
}

// time_breakdown: a row for each device, a column for each cause.
static json_t *breakdown_table(const json_t *hosts) {
    static const char *const ids[] = {".host",
                                      ".device",
                                      "wall_ps",
                                      "compute_ps",
                                      "overlapped_collectives_ps",
                                      "exposed_collectives_ps",
                                      "host_copies_ps",
                                      "device_copies_ps",
                                      "callback_ps",
                                      "input_ps",
                                      "checkpoint_ps",
                                      "compile_ps",
                                      "launch_ps",
                                      "queued_ps",
                                      "host_ps",
                                      "unknown_ps",
                                      NULL};
    json_t *const table = new_table(ids);
    for (size_t i = 0; i < json_array_size(hosts); i++) {
        const json_t *const host = json_array_get(hosts, i);
        const json_t *const devices = json_object_get(host, "devices");
        for (size_t k = 0; k < json_array_size(devices); k++) {
            json_t *const row = new_row(table);
            add_member(row, host, "host");
            for (size_t c = 1; ids[c]; c++)
                add_member(row, json_array_get(devices, k), ids[c] + (ids[c][0] == '.'));
        }
    }
    return table;
}

// Of one unit, `name` in sample `k` of a device.
static json_t *unit_row(json_t *table, const json_t *device, size_t k, const char *name) {
    json_t *const row = new_row(table);
    add_member(row, device, "device_id");
    add_member(row, device, "device_type");
    add_cell(row, json_integer((json_int_t)k + 1));
    add_cell(row, json_string(name));
    return row;
}

// kernel_utilization: for each sample of each device a row for the matrix unit and each other.
static json_t *kernel_table(const json_t *devices) {
    static const char *const ids[] = {"device", ".type",       "sample", ".unit",
                                      "share",  "duration_us", NULL};
    json_t *const table = new_table(ids);
    for (size_t i = 0; i < json_array_size(devices); i++) {
        const json_t *const d = json_array_get(devices, i);
        const json_t *const kernels = json_object_get(d, "kernels");
        for (size_t k = 0; k < json_array_size(kernels); k++) {
            json_t *const kernel = json_array_get(kernels, k), *share;
            const char *unit;
            json_t *row = unit_row(table, d, k, "MXU");
            add_member(row, kernel, "mxu_utilization");
            add_member(row, kernel, "duration_us");
            json_object_foreach(json_object_get(kernel, "other_metrics"), unit, share) {
                row = unit_row(table, d, k, unit);
                add_cell(row, json_incref(share));
                add_cell(row, NULL);
            }
        }
    }
    return table;
}

// The table that `v` is; NULL: it is none.  The caller's to release.
static json_t *table_of(json_t *v) {
    if (json_object_get(v, "cols")) return json_incref(v);
    if (json_object_get(v, "podStatsSequence")) return pod_table(v);
    const json_t *const hosts = json_object_get(v, "hosts");
    if (json_object_get(json_array_get(hosts, 0), "devices")) return breakdown_table(hosts);
    const json_t *const devices = json_object_get(v, "devices"); // in other answers how many
    return json_is_array(devices) ? kernel_table(devices) : NULL;
}

// ---- CSV ----

// The unit at the end of a label, "us" of "Time (us)" and "GFLOP/s" of "Model GFLOP/s", unless the
// column's id ends in it.  Labels of fractions say "%", which is not true of what a cell has.
static xpl_str_t csv_unit(const json_t *column, bool of_steps) {
    if (unit_of(column, of_steps) == COLUMN_FRACTION) return XPL_STR("fraction of 1");
    const xpl_str_t label = xpl_str_from(text_member(column, "label")),
                    id = xpl_str_from(text_member(column, "id"));
    const char *const open = strrchr(label.ptr, '('), *const word = strrchr(label.ptr, ' ');
    xpl_str_t unit = {NULL, 0};
    if (open && label.ptr[label.len - 1] == ')')
        unit = (xpl_str_t){open + 1, (size_t)(label.ptr + label.len - 1 - (open + 1))};
    else if (word && xpl_str_ends(label, XPL_STR("/s")))
        unit = xpl_str_from(word + 1);
    if (xpl_str_eq(unit, XPL_STR("\xce\xbcs"))) unit = XPL_STR("us");
    if (xpl_str_eq(unit, XPL_STR("in ms"))) unit = XPL_STR("ms");
    if (xpl_str_eq(unit, XPL_STR("%")) && xpl_str_ends(id, XPL_STR("percent"))) unit.len = 0;
    return xpl_str_ends(id, unit) ? (xpl_str_t){NULL, 0} : unit;
}

static void csv_table(struct printer *p, const json_t *table) {
    const json_t *const columns = json_object_get(table, "cols");
    const json_t *const rows = json_object_get(table, "rows");
    const bool of_steps = is_of_steps(table);
    if (p->first && (p->n_tables || !json_array_size(columns))) return;
    for (size_t k = 0; k < json_array_size(columns); k++) {
        const json_t *const column = json_array_get(columns, k);
        const xpl_str_t unit = csv_unit(column, of_steps);
        xpl_str_t name;
        if (!xpl_arena_printf(&p->arena, &name, unit.len ? "%s (%.*s)" : "%s%.*s",
                              text_member(column, "id"), XPL_STR_FMT(unit)))
            p->failed = true;
        if (k) (void)fputc(',', p->out);
        if (!p->failed) xpl_csv_text(p->out, name.ptr, name.len);
    }
    xpl_csv_end_line(p->out);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        for (size_t k = 0; k < json_array_size(columns); k++) {
            if (k) (void)fputc(',', p->out);
            xpl_csv_value(p->out, value_of(json_array_get(rows, i), k));
        }
        xpl_csv_end_line(p->out);
    }
    p->n_tables++;
}

// ---- all tables ----

// Gives `print` the table number `only` of an answer, counted from 1; all of 0.
static bool each_table(json_t *v, size_t only, struct printer p,
                       void (*print)(struct printer *p, const json_t *table)) {
    const bool list = json_is_array(v);
    size_t seen = 0;
    xpl_arena_init(&p.arena, LIMIT);
    for (size_t i = 0; i < (list ? json_array_size(v) : 1); i++) {
        json_t *const table = table_of(list ? json_array_get(v, i) : v);
        if (!table) continue;
        seen++;
        if (list && json_array_size(v) > 1) p.number = seen;
        if (seen == only || !only) print(&p, table);
        json_decref(table);
    }
    xpl_arena_fini(&p.arena);
    return p.n_tables && !p.failed;
}

bool xpl_data_table_print(const void *answer, size_t n, FILE *out) {
    json_t *const v = xpl_document_parse(answer, n, NULL);
    const bool printed = v && each_table(v, 0, (struct printer){.out = out}, print_table);
    json_decref(v);
    return printed;
}

bool xpl_data_table_csv(const void *answer, size_t n, size_t only, FILE *out) {
    json_t *const v = xpl_document_parse(answer, n, NULL);
    const bool printed =
        v && each_table(v, only, (struct printer){.out = out, .first = !only}, csv_table);
    json_decref(v);
    return printed;
}
