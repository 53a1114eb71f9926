// SPDX-License-Identifier: Apache-2.0
// As XProf's convert/csv_writer.py writes it: every cell quoted, numbers and truth values as Python
// prints them. With other bytes an answer says which cells are fractions.
#include "server/http/csv.h"

#include <string.h>

#include "analysis/tools/lib/gviz.h"
#include "base/json.h"
#include "base/text/json_value.h"

static void put_text(struct xpl_buf *out, xpl_str_t s) {
    while (s.len) {
        const size_t quote = xpl_str_find(s, XPL_STR("\""), 0);
        const size_t n = quote == SIZE_MAX ? s.len : quote + 1;
        xpl_buf_put(out, s.ptr, n);
        if (quote != SIZE_MAX) xpl_buf_putc(out, '"');
        s = xpl_str_sub(s, n, SIZE_MAX);
    }
}

// A text that spreadsheets would run as a formula.
static bool is_formula(const struct xpl_json_value *v) {
    return v && v->type == XPL_JSON_STRING && v->text.len && memchr("=+-@\t\r", v->text.ptr[0], 6);
}

// `guarded`: formulas get an apostrophe, as in the exports of the pages and of xplanectl.
static void put_value(struct xpl_buf *out, const struct xpl_json_value *v, bool guarded) {
    xpl_buf_putc(out, '"');
    if (guarded && is_formula(v)) xpl_buf_putc(out, '\'');
    switch (v ? v->type : XPL_JSON_NULL) {
        case XPL_JSON_NULL: break;
        case XPL_JSON_BOOL: xpl_buf_str(out, v->b ? XPL_STR("True") : XPL_STR("False")); break;
        case XPL_JSON_INT: xpl_buf_str(out, v->text); break;
        case XPL_JSON_REAL: xpl_json_python_number(out, v->real); break;
        case XPL_JSON_STRING: put_text(out, v->text); break;
        case XPL_JSON_ARRAY:
        case XPL_JSON_OBJECT: { // no table has them
            struct xpl_buf text = xpl_buf_of(out->max);
            xpl_json_value_write(v, &text);
            put_text(out, (xpl_str_t){(char *)text.p, text.n});
            out->failed = out->failed || text.failed;
            xpl_buf_fini(&text);
            break;
        }
    }
    xpl_buf_putc(out, '"');
}

static const struct xpl_json_value *member(const struct xpl_json_value *v, const char *key) {
    return v->type == XPL_JSON_OBJECT ? xpl_json_value_member(v, xpl_str_from(key)) : NULL;
}

static xpl_str_t text_of(const struct xpl_json_value *v) {
    return v && v->type == XPL_JSON_STRING ? v->text : (xpl_str_t){NULL, 0};
}

// "Time (%)" as "Time (fraction of 1)"; also of labels that speak of "% of" something, or of
// nothing.
static void put_fraction(struct xpl_buf *out, xpl_str_t label) {
    const xpl_str_t percent = XPL_STR("(%)");
    const size_t at = xpl_str_find(label, XPL_STR("%"), 0);
    xpl_buf_putc(out, '"');
    if (xpl_str_ends(label, percent)) label.len -= percent.len;
    if (label.len && label.ptr[label.len - 1] == ' ') label.len--;
    if (at < label.len) {
        put_text(out, xpl_str_sub(label, 0, at));
        xpl_buf_str(out, XPL_STR("fraction"));
        put_text(out, xpl_str_sub(label, at + 1, SIZE_MAX));
    } else {
        put_text(out, label);
        xpl_buf_str(out, XPL_STR(" (fraction of 1)"));
    }
    xpl_buf_putc(out, '"');
}

static void put_header(struct xpl_buf *out, const struct xpl_json_value *columns,
                       const struct xpl_tool *tool) {
    for (size_t i = 0; i < columns->n; i++) {
        const struct xpl_json_value *const c = &columns->children[i], *const id = member(c, "id");
        const struct xpl_json_value *label = member(c, "label");
        if (!label) label = id;
        if (i) xpl_buf_putc(out, ',');
        const char *const unit = xpl_tool_unit(tool, text_of(id));
        if (unit && strcmp(unit, XPL_FRACTION) == 0)
            put_fraction(out, text_of(label));
        else
            put_value(out, label, tool != NULL);
    }
    xpl_buf_putc(out, '\n');
}

static void put_row(struct xpl_buf *out, const struct xpl_json_value *row, bool guarded) {
    const struct xpl_json_value *const cells = member(row, "c");
    if (!cells || cells->type != XPL_JSON_ARRAY || !cells->n) return;
    for (size_t i = 0; i < cells->n; i++) {
        if (i) xpl_buf_putc(out, ',');
        put_value(out, member(&cells->children[i], "v"), guarded);
    }
    xpl_buf_putc(out, '\n');
}

xpl_status_t xpl_http_csv(xpl_str_t json, const struct xpl_tool *tool, struct xpl_arena *scratch,
                          struct xpl_buf *out, struct xpl_error *err) {
    struct xpl_json_value all;
    switch (xpl_json_value_parse(json, scratch, &all)) {
        case XPL_JSON_OK: break;
        case XPL_JSON_OOM: XPL_RETURN_OOM(err, "csv");
        case XPL_JSON_INVALID: XPL_RETURN_ERROR(err, XPL_INTERNAL, "the answer is not valid JSON");
    }
    const struct xpl_json_value *table = &all;
    if (all.type == XPL_JSON_ARRAY) {
        if (!all.n) return XPL_OK;
        table = &all.children[0];
    }
    const struct xpl_json_value *const columns = member(table, "cols"), *const rows =
                                                                            member(table, "rows");
    if (!columns || columns->type != XPL_JSON_ARRAY)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                         "Data format not suitable for CSV (missing 'cols')");
    put_header(out, columns, tool);
    for (size_t i = 0; rows && rows->type == XPL_JSON_ARRAY && i < rows->n; i++)
        put_row(out, &rows->children[i], tool != NULL);
    if (out->failed) XPL_RETURN_OOM(err, "csv");
    return XPL_OK;
}
