// SPDX-License-Identifier: Apache-2.0
#include "cli/data_table.h"

#include <ctype.h>
#include <string.h>

#include "analysis/tools/lib/gviz.h"
#include "analysis/tools/tool.h"
#include "base/arena.h"
#include "cli/csv/cells.h"
#include "cli/document/parse.h"
#include "cli/table.h"

enum { MOST_COLUMNS = 64, TEXT_WIDTH = 60 };
#define LIMIT ((size_t)256 << 20)

struct printer {
    FILE *out;
    const struct xpl_tool *tool; // whose columns say their units; NULL: none is known
    struct xpl_arena arena;
    size_t n_tables;
    bool failed;
    size_t number; // of the table among several; 0: it is the only one
    bool first;    // nothing but the first table that has columns
};

struct table {
    const struct xpl_column *columns;
    size_t n;
    json_t *rows; // of a DataTable; of a table made here each is a list of its cells
    bool whole;   // made here: all columns are shown
};

static const json_t *value_of(const json_t *row, size_t column) {
    if (json_is_array(row)) return json_array_get(row, column);
    return json_object_get(json_array_get(json_object_get(row, "c"), column), "v");
}

static bool says_nothing(const json_t *v) {
    return !v || json_is_null(v) || json_is_false(v) ||
           (json_is_number(v) && json_number_value(v) == 0) ||
           (json_is_string(v) && json_string_length(v) == 0);
}

static bool is_shown(const struct table *t, size_t column) {
    if (t->whole || !json_array_size(t->rows)) return true;
    for (size_t i = 0; i < json_array_size(t->rows); i++)
        if (!says_nothing(value_of(json_array_get(t->rows, i), column))) return true;
    return false;
}

// ---- units ----

static bool has_unit(const struct xpl_column *c, const char *unit) {
    return c->unit && strcmp(c->unit, unit) == 0;
}

// Whether a cell names the unit.
static bool is_converted(const struct xpl_column *c) {
    static const char *const units[] = {"ps", "us", "ms", "bytes", "%", XPL_FRACTION};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (has_unit(c, units[i])) return true;
    return false;
}

// The column's id, which is shorter than its label, without the unit if cells name it.
static const char *heading(struct printer *p, const struct xpl_column *c) {
    const bool right = strcmp(c->type, "number") == 0, converted = is_converted(c);
    xpl_str_t s = xpl_str_from(c->id), whole;
    if (converted && (xpl_str_ends(s, XPL_STR("_us")) || xpl_str_ends(s, XPL_STR("_ps")) ||
                      xpl_str_ends(s, XPL_STR("_ms"))))
        s.len -= 3;
    else if (has_unit(c, "ms") && xpl_str_ends(s, XPL_STR("Ms")))
        s.len -= 2;
    char *const text = xpl_arena_zalloc(&p->arena, s.len + 1);
    for (size_t i = 0; text && i < s.len; i++)
        text[i] = (char)(isgraph((unsigned char)s.ptr[i]) && s.ptr[i] != '_'
                             ? toupper((unsigned char)s.ptr[i])
                             : ' ');
    const bool named = c->unit && !converted;
    return text && xpl_arena_printf(&p->arena, &whole, named ? "%s%s (%s)" : "%s%s",
                                    right ? ">" : "", text, c->unit)
               ? whole.ptr
               : NULL;
}

// A text without the tags of HTML that some cells have; escapes in them stay.
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
static void put_number(struct xpl_table *t, double v, const struct xpl_column *c) {
    const double ps = has_unit(c, "ps")   ? v
                      : has_unit(c, "us") ? v * 1e6 + 0.5
                      : has_unit(c, "ms") ? v * 1e9 + 0.5
                                          : 0;
    if (has_unit(c, XPL_FRACTION))
        xpl_table_percent(t, v);
    else if (has_unit(c, "%"))
        xpl_table_percent(t, v / 100);
    else if (v > 0 && ps > 0 && ps < 0x1p63)
        xpl_table_time_ps(t, (uint64_t)ps);
    else if (v > 0 && v < 0x1p43 && has_unit(c, "bytes"))
        xpl_table_bytes(t, (uint64_t)v);
    else if (has_unit(c, "ps") && !(v > 0)) // no time, which 0 tells
        xpl_table_time_ps(t, 0);
    else // too large for a unit, or it has none
        xpl_table_printf(t, "%.7g", v);
}

static void put_cell(struct printer *p, struct xpl_table *t, const json_t *v,
                     const struct xpl_column *c) {
    if (json_is_number(v))
        put_number(t, json_number_value(v), c);
    else if (json_is_boolean(v))
        xpl_table_printf(t, "%s", json_is_true(v) ? "yes" : "no");
    else if (json_is_string(v))
        put_text(p, t, v);
    else
        xpl_table_text(t, XPL_STR(""), TEXT_WIDTH);
}

static const char *title_of(const struct printer *p) {
    const char *const *title = p->tool ? p->tool->titles : NULL;
    for (size_t i = 1; title && *title && i < p->number; i++)
        title++;
    return title && *title ? *title : "";
}

static void finish(struct printer *p, struct xpl_table *t) {
    if (p->n_tables++) (void)fputc('\n', p->out);
    const char *const title = title_of(p);
    if (p->number) (void)fprintf(p->out, "Table %zu%s%s\n", p->number, *title ? ": " : "", title);
    if (t && xpl_table_rows(t) == 0)
        (void)fputs("no rows\n", p->out);
    else if (!t || !xpl_table_print(t, p->out))
        p->failed = true;
    xpl_table_free(t);
}

static void print_table(struct printer *p, const struct table *table) {
    const char *names[MOST_COLUMNS];
    size_t shown[MOST_COLUMNS], n = 0;
    if (!table->n) return;
    for (size_t i = 0; i < table->n && n < MOST_COLUMNS; i++) {
        if (!is_shown(table, i)) continue;
        shown[n] = i;
        if (!(names[n++] = heading(p, &table->columns[i]))) p->failed = true;
    }
    if (p->failed) return;
    struct xpl_table *const t = xpl_table_new(names, n);
    for (size_t i = 0; t && n && i < json_array_size(table->rows); i++)
        for (size_t k = 0; k < n; k++)
            put_cell(p, t, value_of(json_array_get(table->rows, i), shown[k]),
                     &table->columns[shown[k]]);
    finish(p, t);
}

// ---- answers of other shapes, as the tables that they are ----

#define TEXT_COLUMN(id)         XPL_TEXTS(id, "")
#define NUMBER_COLUMN(id, unit) XPL_NUMBERS(id, "", unit)

static json_t *new_row(struct table *t) {
    json_t *const row = json_array();
    (void)json_array_append_new(t->rows, row);
    return row;
}

static void add_cell(json_t *row, json_t *v) {
    (void)json_array_append_new(row, v ? v : json_null());
}

static void add_member(json_t *row, const json_t *of, const char *key) {
    add_cell(row, json_incref(json_object_get(of, key)));
}

// pod_viewer: a row for each core of each step, a column for each kind of time.
static void pod_table(struct table *table, const json_t *answer) {
    static const struct xpl_column columns[] = {
        NUMBER_COLUMN("step", NULL),
        TEXT_COLUMN("core"),
        TEXT_COLUMN("host"),
        TEXT_COLUMN("bottleneck"),
        NUMBER_COLUMN("duration_us", "us"),
        NUMBER_COLUMN("compute_us", "us"),
        NUMBER_COLUMN("device2device_us", "us"),
        NUMBER_COLUMN("collectives_us", "us"),
        NUMBER_COLUMN("host_us", "us"),
        NUMBER_COLUMN("launch_us", "us"),
        NUMBER_COLUMN("input_us", "us"),
        NUMBER_COLUMN("output_us", "us"),
        NUMBER_COLUMN("compilation_us", "us"),
        NUMBER_COLUMN("others_us", "us"),
    };
    static const char *const kinds[] = {"1", "2", "3", "4", "5", "6", "7", "8", "9"};
    table->columns = columns;
    table->n = sizeof columns / sizeof *columns;
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
}

// time_breakdown: a row for each device, a column for each cause.
static void breakdown_table(struct table *table, const json_t *hosts) {
    static const struct xpl_column columns[] = {
        TEXT_COLUMN("host"),
        TEXT_COLUMN("device"),
        NUMBER_COLUMN("wall_ps", "ps"),
        NUMBER_COLUMN("compute_ps", "ps"),
        NUMBER_COLUMN("overlapped_collectives_ps", "ps"),
        NUMBER_COLUMN("exposed_collectives_ps", "ps"),
        NUMBER_COLUMN("host_copies_ps", "ps"),
        NUMBER_COLUMN("device_copies_ps", "ps"),
        NUMBER_COLUMN("callback_ps", "ps"),
        NUMBER_COLUMN("input_ps", "ps"),
        NUMBER_COLUMN("checkpoint_ps", "ps"),
        NUMBER_COLUMN("compile_ps", "ps"),
        NUMBER_COLUMN("launch_ps", "ps"),
        NUMBER_COLUMN("queued_ps", "ps"),
        NUMBER_COLUMN("host_ps", "ps"),
        NUMBER_COLUMN("unknown_ps", "ps"),
    };
    table->columns = columns;
    table->n = sizeof columns / sizeof *columns;
    for (size_t i = 0; i < json_array_size(hosts); i++) {
        const json_t *const host = json_array_get(hosts, i);
        const json_t *const devices = json_object_get(host, "devices");
        for (size_t k = 0; k < json_array_size(devices); k++) {
            json_t *const row = new_row(table);
            add_member(row, host, "host");
            for (size_t c = 1; c < table->n; c++)
                add_member(row, json_array_get(devices, k), columns[c].id);
        }
    }
}

// Of one unit, `name` in sample `k` of a device.
static json_t *unit_row(struct table *table, const json_t *device, size_t k, const char *name) {
    json_t *const row = new_row(table);
    add_member(row, device, "device_id");
    add_member(row, device, "device_type");
    add_cell(row, json_integer((json_int_t)k + 1));
    add_cell(row, json_string(name));
    return row;
}

// kernel_utilization: for each sample of each device a row for the matrix unit and each other.
static void kernel_table(struct table *table, const json_t *devices) {
    static const struct xpl_column columns[] = {
        NUMBER_COLUMN("device", NULL), TEXT_COLUMN("type"),
        NUMBER_COLUMN("sample", NULL), TEXT_COLUMN("unit"),
        NUMBER_COLUMN("share", "%"),   NUMBER_COLUMN("duration_us", "us"),
    };
    table->columns = columns;
    table->n = sizeof columns / sizeof *columns;
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
}

static const char *text_member(const json_t *column, const char *key) {
    const char *const text = json_string_value(json_object_get(column, key));
    return text ? text : "";
}

static void data_table(struct printer *p, struct table *t, const json_t *v) {
    const json_t *const columns = json_object_get(v, "cols");
    const size_t n = json_array_size(columns);
    struct xpl_column *const made = xpl_arena_array(&p->arena, n, sizeof *made);
    for (size_t i = 0; made && i < n; i++) {
        const json_t *const column = json_array_get(columns, i);
        const char *const id = text_member(column, "id");
        made[i] = (struct xpl_column){.id = id,
                                      .type = text_member(column, "type"),
                                      .unit = xpl_tool_unit(p->tool, xpl_str_from(id))};
    }
    *t = (struct table){made, n, json_incref(json_object_get(v, "rows")), false};
    if (!made) p->failed = true;
}

// The table that `v` is, whose rows are the caller's to release; false: it is none.
static bool table_of(struct printer *p, const json_t *v, struct table *t) {
    const json_t *const hosts = json_object_get(v, "hosts");
    const json_t *const devices = json_object_get(v, "devices"); // in other answers how many
    if (json_object_get(v, "cols")) {
        data_table(p, t, v);
        return !p->failed;
    }
    *t = (struct table){.rows = json_array(), .whole = true};
    if (json_object_get(v, "podStatsSequence"))
        pod_table(t, v);
    else if (json_object_get(json_array_get(hosts, 0), "devices"))
        breakdown_table(t, hosts);
    else if (json_is_array(devices))
        kernel_table(t, devices);
    else
        json_decref(t->rows);
    return t->columns != NULL;
}

// ---- CSV ----

// The column's id and unit, unless the id ends in it.
static void csv_heading(struct printer *p, const struct xpl_column *c) {
    const xpl_str_t id = xpl_str_from(c->id);
    const bool said = !c->unit || xpl_str_ends(id, xpl_str_from(c->unit)) ||
                      (has_unit(c, "%") && xpl_str_ends(id, XPL_STR("percent")));
    xpl_str_t name;
    if (!xpl_arena_printf(&p->arena, &name, said ? "%s" : "%s (%s)", c->id, c->unit))
        p->failed = true;
    else
        xpl_csv_text(p->out, name.ptr, name.len);
}

static void csv_table(struct printer *p, const struct table *t) {
    if (p->first && (p->n_tables || !t->n)) return;
    for (size_t k = 0; k < t->n; k++) {
        if (k) (void)fputc(',', p->out);
        csv_heading(p, &t->columns[k]);
    }
    xpl_csv_end_line(p->out);
    for (size_t i = 0; i < json_array_size(t->rows); i++) {
        for (size_t k = 0; k < t->n; k++) {
            if (k) (void)fputc(',', p->out);
            xpl_csv_value(p->out, value_of(json_array_get(t->rows, i), k));
        }
        xpl_csv_end_line(p->out);
    }
    p->n_tables++;
}

// ---- all tables ----

// Gives `print` the table number `only` of an answer, counted from 1; all of 0.
static bool each_table(const json_t *v, size_t only, struct printer p,
                       void (*print)(struct printer *p, const struct table *table)) {
    const bool list = json_is_array(v);
    size_t seen = 0;
    xpl_arena_init(&p.arena, LIMIT);
    for (size_t i = 0; i < (list ? json_array_size(v) : 1); i++) {
        struct table table;
        if (!table_of(&p, list ? json_array_get(v, i) : v, &table)) continue;
        seen++;
        if (list && json_array_size(v) > 1) p.number = seen;
        if (seen == only || !only) print(&p, &table);
        json_decref(table.rows);
    }
    xpl_arena_fini(&p.arena);
    return p.n_tables && !p.failed;
}

bool xpl_data_table_print(const char *tool, const void *answer, size_t n, FILE *out) {
    json_auto_t *v = xpl_document_parse(answer, n, NULL);
    const struct printer p = {.out = out, .tool = xpl_tool_find(xpl_str_from(tool))};
    return v && each_table(v, 0, p, print_table);
}

bool xpl_data_table_csv(const char *tool, const void *answer, size_t n, size_t only, FILE *out) {
    json_auto_t *v = xpl_document_parse(answer, n, NULL);
    const struct printer p = {
        .out = out, .tool = xpl_tool_find(xpl_str_from(tool)), .first = !only};
    return v && each_table(v, only, p, csv_table);
}
