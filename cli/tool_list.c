// SPDX-License-Identifier: Apache-2.0
#include "cli/tool_list.h"

#include "analysis/formats/format.h"
#include "analysis/tools/tool.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "cli/csv/csv.h"

enum { MAX_LISTING = 1 << 20 };

static const char *const kHosts[] = {
    [XPL_HOSTS_ONE] = "one",
    [XPL_HOSTS_EACH] = "each",
    [XPL_HOSTS_EACH_OR_ALL] = "each_or_all",
    [XPL_HOSTS_ALL] = "all",
};
static const char *const kShown[] = {
    [XPL_SHOWN_NEVER] = "never",
    [XPL_SHOWN_UNLISTED] = "unlisted",
    [XPL_SHOWN_ALWAYS] = "always",
    [XPL_SHOWN_WITHOUT_STREAMING] = "without_streaming",
};
static const char *const kShapes[] = {
    [XPL_SHAPES_ANSWER] = "answer",
    [XPL_SHAPES_PRODUCT] = "product",
    [XPL_SHAPES_NOTHING] = "nothing",
};

// ---- JSON ----

static void put_text(struct xpl_buf *b, const char *key, const char *value) {
    xpl_json_field(b, key, xpl_str_from(value ? value : ""));
    xpl_buf_putc(b, ',');
}

static void put_bool(struct xpl_buf *b, const char *key, bool value) {
    xpl_buf_printf(b, "\"%s\":%s", key, value ? "true" : "false");
}

// The NULL-terminated `names` as a list.
static void put_names(struct xpl_buf *b, const char *key, const char *const *names) {
    xpl_buf_printf(b, "\"%s\":[", key);
    for (size_t i = 0; names && names[i]; i++) {
        if (i) xpl_buf_putc(b, ',');
        xpl_json_str(b, xpl_str_from(names[i]), false);
    }
    xpl_buf_str(b, XPL_STR("],"));
}

static void put_option(struct xpl_buf *b, const struct xpl_tool *t, size_t i) {
    const struct xpl_tool_option *const o = xpl_tool_option_at(t, i);
    xpl_buf_putc(b, '{');
    put_text(b, "key", o->key);
    put_text(b, "values", o->values);
    put_text(b, "default", o->preset);
    put_text(b, "shapes", xpl_tool_option_shapes(t, i) ? kShapes[o->shapes] : "nothing");
    put_text(b, "help", o->help);
    put_bool(b, "common", i >= t->n_options);
    xpl_buf_putc(b, ',');
    put_bool(b, "ours", o->ours);
    xpl_buf_putc(b, '}');
}

static void put_options(struct xpl_buf *b, const struct xpl_tool *t) {
    bool first = true;
    xpl_buf_str(b, XPL_STR("\"options\":["));
    for (size_t i = 0; i < xpl_tool_n_options(t); i++) {
        if (xpl_tool_option_at(t, i)->internal) continue;
        if (!first) xpl_buf_putc(b, ',');
        first = false;
        put_option(b, t, i);
    }
    xpl_buf_putc(b, ']');
}

static void put_needs(struct xpl_buf *b, const struct xpl_tool *t) {
    const char *needs[XPL_TOOL_MAX_NEEDS + 1] = {NULL};
    for (size_t i = 0; i < XPL_TOOL_MAX_NEEDS && t->needs[i]; i++)
        needs[i] = t->needs[i]->name;
    put_names(b, "needs", needs);
}

static void put_tool(struct xpl_buf *b, const struct xpl_tool *t) {
    xpl_buf_putc(b, '{');
    put_text(b, "name", t->name);
    put_names(b, "aliases", t->aliases);
    xpl_buf_printf(b, "\"version\":%u,\"answer_version\":%u,", t->version,
                   xpl_tool_answer_version(t));
    put_needs(b, t);
    put_text(b, "fact", xpl_fact_name(t->facts));
    put_text(b, "hosts", kHosts[t->hosts]);
    put_text(b, "shown", kShown[t->shown]);
    xpl_buf_printf(b, "\"list_position\":%u,", t->list_position);
    put_text(b, "content_type", t->content_type);
    put_bool(b, "worker_served", t->worker_served);
    xpl_buf_putc(b, ',');
    put_options(b, t);
    xpl_buf_putc(b, '}');
}

// The tools that no client asks for by name: their answers are stored, too.
static void put_hidden(struct xpl_buf *b) {
    const struct xpl_tool *const hidden[] = {&xpl_tool_op_stats, &xpl_tool_worker_op_stats};
    xpl_buf_str(b, XPL_STR("\"hidden\":["));
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++) {
        xpl_buf_str(b, i ? XPL_STR(",{") : XPL_STR("{"));
        put_text(b, "name", hidden[i]->name);
        put_needs(b, hidden[i]);
        xpl_buf_printf(b, "\"version\":%u}", hidden[i]->version);
    }
    xpl_buf_str(b, XPL_STR("],"));
}

static void put_products(struct xpl_buf *b) {
    size_t n;
    const struct xpl_product *const *const products = xpl_products(&n);
    xpl_buf_str(b, XPL_STR("\"products\":["));
    for (size_t i = 0; i < n; i++) {
        xpl_buf_str(b, i ? XPL_STR(",{") : XPL_STR("{"));
        put_text(b, "name", products[i]->name);
        xpl_buf_printf(b, "\"version\":%u}", products[i]->version);
    }
    xpl_buf_str(b, XPL_STR("]"));
}

// Those that have a version: products of the other formats depend only on the bytes.
static void put_formats(struct xpl_buf *b) {
    size_t n;
    const struct xpl_format *const *const formats = xpl_formats(&n);
    bool any = false;
    xpl_buf_str(b, XPL_STR(",\"formats\":["));
    for (size_t i = 0; i < n; i++) {
        if (!formats[i]->version) continue;
        xpl_buf_str(b, any ? XPL_STR(",{") : XPL_STR("{"));
        put_text(b, "name", formats[i]->name);
        xpl_buf_printf(b, "\"version\":%u}", formats[i]->version);
        any = true;
    }
    xpl_buf_str(b, XPL_STR("]"));
}

static void put_json(struct xpl_buf *b) {
    size_t n;
    const struct xpl_tool *const *const tools = xpl_tools(&n);
    xpl_buf_str(b, XPL_STR("{\"tools\":["));
    for (size_t i = 0; i < n; i++) {
        if (i) xpl_buf_putc(b, ',');
        put_tool(b, tools[i]);
    }
    xpl_buf_str(b, XPL_STR("],"));
    put_hidden(b);
    put_products(b);
    put_formats(b);
    xpl_buf_str(b, XPL_STR("}\n"));
}

// ---- text ----

static void put_option_line(struct xpl_buf *b, const struct xpl_tool_option *o) {
    char head[64];
    (void)snprintf(head, sizeof head, "%s=%s", o->key, o->values);
    xpl_buf_printf(b, "      %-42s %s", head, o->help);
    if (o->preset) xpl_buf_printf(b, " [%s]", o->preset);
    xpl_buf_putc(b, '\n');
}

static void put_lines(struct xpl_buf *b) {
    size_t n;
    const struct xpl_tool *const *const tools = xpl_tools(&n);
    for (size_t i = 0; i < n; i++) {
        const struct xpl_tool *const t = tools[i];
        xpl_buf_printf(b, "  %s", t->name);
        for (const char *const *a = t->aliases; a && *a; a++)
            xpl_buf_printf(b, ", %s", *a);
        xpl_buf_str(b,
                    t->hosts == XPL_HOSTS_ONE ? XPL_STR(" (one host at a time)\n") : XPL_STR("\n"));
        for (size_t k = 0; k < t->n_options; k++)
            if (!t->options[k].internal) put_option_line(b, &t->options[k]);
    }
    xpl_buf_str(b, XPL_STR("  all of them\n"));
    for (size_t k = 0; k < XPL_N_COMMON_OPTIONS; k++)
        put_option_line(b, &xpl_common_option_rows[k]);
}

// Text in which the manual page's markup means nothing.
static void put_man(struct xpl_buf *b, const char *text) {
    for (const char *p = text; *p; p++) {
        if (*p == '-' || *p == '\\') xpl_buf_putc(b, '\\');
        xpl_buf_putc(b, *p);
    }
}

static void put_man_option(struct xpl_buf *b, const struct xpl_tool_option *o) {
    xpl_buf_str(b, XPL_STR(".br\n\\fB"));
    put_man(b, o->key);
    xpl_buf_str(b, XPL_STR("\\fR="));
    put_man(b, o->values);
    xpl_buf_str(b, XPL_STR(": "));
    put_man(b, o->help);
    if (o->preset) {
        xpl_buf_str(b, XPL_STR(" ["));
        put_man(b, o->preset);
        xpl_buf_putc(b, ']');
    }
    xpl_buf_putc(b, '\n');
}

static void put_man_tool(struct xpl_buf *b, const struct xpl_tool *t) {
    xpl_buf_str(b, XPL_STR(".TP\n.B "));
    put_man(b, t->name);
    xpl_buf_putc(b, '\n');
    for (const char *const *a = t->aliases; a && *a; a++) {
        xpl_buf_str(b, XPL_STR("Also called "));
        put_man(b, *a);
        xpl_buf_str(b, XPL_STR(".\n"));
    }
    if (t->hosts == XPL_HOSTS_ONE) xpl_buf_str(b, XPL_STR("One host at a time.\n"));
    for (size_t k = 0; k < t->n_options; k++)
        if (!t->options[k].internal) put_man_option(b, &t->options[k]);
}

void xpl_man_tools(FILE *out) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(MAX_LISTING);
    size_t n;
    const struct xpl_tool *const *const tools = xpl_tools(&n);
    for (size_t i = 0; i < n; i++)
        put_man_tool(&b, tools[i]);
    xpl_buf_str(&b, XPL_STR(".TP\nall of them\n"));
    for (size_t k = 0; k < XPL_N_COMMON_OPTIONS; k++)
        put_man_option(&b, &xpl_common_option_rows[k]);
    if (!b.failed) (void)fwrite(b.p, 1, b.n, out);
}

void xpl_help_tools(FILE *out) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(MAX_LISTING);
    put_lines(&b);
    if (!b.failed) (void)fwrite(b.p, 1, b.n, out);
}

int xpl_list_tools(const struct xpl_args *a) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(MAX_LISTING);
    if (a->json || a->csv)
        put_json(&b);
    else
        put_lines(&b);
    return b.failed ? XPL_EXIT_FAILED : xpl_csv_show_text(a, b.p, b.n, "all");
}
