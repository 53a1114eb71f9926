// SPDX-License-Identifier: Apache-2.0
// Google Visualization DataTables as JSON, written straight into the answer: the form in which
// nearly every tool answers (XProf: convert/data_table_utils.cc).  Keys stand in alphabetical
// order and nothing is kept, so the order of calls is fixed:
//   begin with columns, properties, then rows, each followed by its cells, end.
// Nothing here fails by itself: the buffer remembers (xpl_buf.failed) and the caller asks once.
#ifndef XPL_ANALYSIS_TOOLS_LIB_GVIZ_H_
#define XPL_ANALYSIS_TOOLS_LIB_GVIZ_H_

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"
#include "base/vec.h"

struct xpl_arena;

// A column.  Only this row has the unit of its numbers: XProf's labels are not always right, and
// its JSON has no member for it.  xpl_tool_unit finds it for code that prints a table.
struct xpl_column {
    const char *id, *type, *label;
    const char *unit; // "ps", "us", "ms", "bytes", "%", XPL_FRACTION, or as people write it, such
                      // as "GiB/s"; NULL: none
    unsigned only;    // 0: of every table; else of those that are begun with one of these bits
    const char *role; // its property role, such as "tooltip"; NULL: none
};
#define XPL_FRACTION "fraction of 1"
#define XPL_COLUMN(ID, TYPE, LABEL, UNIT, ONLY)                                                    \
    { .id = ID, .type = TYPE, .label = LABEL, .unit = UNIT, .only = ONLY }
#define XPL_TEXTS(ID, LABEL)         XPL_COLUMN(ID, "string", LABEL, NULL, 0)
#define XPL_NUMBERS(ID, LABEL, UNIT) XPL_COLUMN(ID, "number", LABEL, UNIT, 0)
#define XPL_TRUTHS(ID, LABEL)        XPL_COLUMN(ID, "boolean", LABEL, NULL, 0)

// A table being written.  Lives on the caller's stack; one thread.
struct xpl_gviz {
    struct xpl_buf *out;
    bool in_rows, any_column, any_row, any_cell;
};

// Table properties: texts by name.  A name set twice keeps its last value.
struct xpl_gviz_prop {
    xpl_str_t name, value;
    size_t order; // of calls
};
struct xpl_gviz_props {
    struct xpl_arena *arena;
    XPL_VEC(struct xpl_gviz_prop) props;
    bool failed;
};

// `columns` end with one that has no id; NULL: none.
void xpl_gviz_begin(struct xpl_gviz *g, struct xpl_buf *out, const struct xpl_column *columns,
                    unsigned only);
// One more column, of those that the profile names.
void xpl_gviz_column(struct xpl_gviz *g, const struct xpl_column *c);
// Writes the properties, sorted by name.  Without properties the call may be left out.
void xpl_gviz_put_props(struct xpl_gviz *g, struct xpl_gviz_props *p);
void xpl_gviz_row(struct xpl_gviz *g);
void xpl_gviz_number(struct xpl_gviz *g, double v); // null when not finite
// A number that is shown as `shown`.
void xpl_gviz_number_as(struct xpl_gviz *g, double v, xpl_str_t shown);
void xpl_gviz_text(struct xpl_gviz *g, xpl_str_t s);
void xpl_gviz_bool(struct xpl_gviz *g, bool v);
void xpl_gviz_end(struct xpl_gviz *g);

// Prepares an empty set; it and formatted values live in `arena`.
void xpl_gviz_props_init(struct xpl_gviz_props *p, struct xpl_arena *arena);
// `name` must be a literal.  `value` must live until the properties are put.
void xpl_gviz_prop(struct xpl_gviz_props *p, const char *name, xpl_str_t value);
void xpl_gviz_prop_printf(struct xpl_gviz_props *p, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
