// SPDX-License-Identifier: Apache-2.0
#include "analysis/tools/lib/gviz.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/vec.h"

static inline void put_lit(struct xpl_buf *b, const char *z) {
    xpl_buf_str(b, xpl_str_from(z));
}

static void put_quoted(struct xpl_buf *b, const char *z) {
    xpl_json_str(b, xpl_str_from(z), false);
}

void xpl_gviz_column(struct xpl_gviz *g, const struct xpl_column *c) {
    struct xpl_buf *b = g->out;
    put_lit(b, g->any_column ? ",{\"id\":" : "{\"id\":");
    g->any_column = true;
    put_quoted(b, c->id);
    put_lit(b, ",\"label\":");
    put_quoted(b, c->label);
    if (c->role) {
        put_lit(b, ",\"p\":{\"role\":");
        put_quoted(b, c->role);
        xpl_buf_putc(b, '}');
    }
    put_lit(b, ",\"type\":");
    put_quoted(b, c->type);
    xpl_buf_putc(b, '}');
}

void xpl_gviz_begin(struct xpl_gviz *g, struct xpl_buf *out, const struct xpl_column *columns,
                    unsigned only) {
    *g = (struct xpl_gviz){.out = out};
    put_lit(out, "{\"cols\":[");
    for (; columns && columns->id; columns++)
        if (!columns->only || (columns->only & only)) xpl_gviz_column(g, columns);
}

static void open_rows(struct xpl_gviz *g) {
    if (g->in_rows) return;
    g->in_rows = true;
    put_lit(g->out, "],\"rows\":[");
}

static int by_name(const void *pa, const void *pb) {
    const struct xpl_gviz_prop *a = pa, *b = pb;
    const int c = xpl_str_cmp(a->name, b->name);
    return c ? c : (a->order > b->order) - (a->order < b->order);
}

void xpl_gviz_put_props(struct xpl_gviz *g, struct xpl_gviz_props *p) {
    struct xpl_buf *b = g->out;
    if (p->failed) b->failed = true;
    if (!p->props.n) return;
    xpl_sort(p->props.v, p->props.n, sizeof *p->props.v, by_name);
    put_lit(b, "],\"p\":{");
    bool any = false;
    for (size_t i = 0; i < p->props.n; i++) {
        const struct xpl_gviz_prop *prop = &p->props.v[i];
        if (i + 1 < p->props.n && xpl_str_eq(prop->name, prop[1].name)) continue;
        if (any) xpl_buf_putc(b, ',');
        any = true;
        xpl_json_str(b, prop->name, false);
        xpl_buf_putc(b, ':');
        xpl_json_str(b, prop->value, false);
    }
    put_lit(b, "},\"rows\":[");
    g->in_rows = true;
}

void xpl_gviz_row(struct xpl_gviz *g) {
    open_rows(g);
    put_lit(g->out, g->any_row ? "]},{\"c\":[" : "{\"c\":[");
    g->any_row = true;
    g->any_cell = false;
}

static void open_cell(struct xpl_gviz *g) {
    put_lit(g->out, g->any_cell ? ",{\"v\":" : "{\"v\":");
    g->any_cell = true;
}

void xpl_gviz_number(struct xpl_gviz *g, double v) {
    open_cell(g);
    xpl_json_gviz_number(g->out, v);
    xpl_buf_putc(g->out, '}');
}

void xpl_gviz_number_as(struct xpl_gviz *g, double v, xpl_str_t shown) {
    put_lit(g->out, g->any_cell ? ",{\"f\":" : "{\"f\":");
    g->any_cell = true;
    xpl_json_str(g->out, shown, false);
    put_lit(g->out, ",\"v\":");
    xpl_json_gviz_number(g->out, v);
    xpl_buf_putc(g->out, '}');
}

void xpl_gviz_text(struct xpl_gviz *g, xpl_str_t s) {
    open_cell(g);
    xpl_json_str(g->out, s, false);
    xpl_buf_putc(g->out, '}');
}

void xpl_gviz_bool(struct xpl_gviz *g, bool v) {
    open_cell(g);
    put_lit(g->out, v ? "true}" : "false}");
}

void xpl_gviz_end(struct xpl_gviz *g) {
    open_rows(g);
    put_lit(g->out, g->any_row ? "]}]}" : "]}");
}

void xpl_gviz_props_init(struct xpl_gviz_props *p, struct xpl_arena *arena) {
    *p = (struct xpl_gviz_props){.arena = arena};
}

void xpl_gviz_prop(struct xpl_gviz_props *p, const char *name, xpl_str_t value) {
    struct xpl_gviz_prop *prop = p->failed ? NULL : xpl_vec_push(p->arena, &p->props);
    if (!prop) {
        p->failed = true;
        return;
    }
    *prop = (struct xpl_gviz_prop){xpl_str_from(name), value, p->props.n};
}

void xpl_gviz_prop_printf(struct xpl_gviz_props *p, const char *name, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    char small[512];
    const int n = vsnprintf(small, sizeof small, fmt, ap);
    va_end(ap);
    xpl_str_t value;
    if (n < 0 || (size_t)n >= sizeof small ||
        !xpl_arena_str(p->arena, (xpl_str_t){small, (size_t)n}, &value)) {
        p->failed = true;
        return;
    }
    xpl_gviz_prop(p, name, value);
}
