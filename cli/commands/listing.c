// SPDX-License-Identifier: Apache-2.0
// `xplanectl help --format json`: the tables of commands and options as one document.
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "cli/commands/flags.h"
#include "cli/commands/help.h"
#include "cli/commands/words.h"

enum { MAX_LISTING = 1 << 20 };

static void put_text(struct xpl_buf *b, const char *key, const char *text) {
    xpl_buf_putc(b, ',');
    xpl_json_field(b, key, xpl_str_from(text ? text : ""));
}

// The parts of `text` between `separator`s as a list; none of NULL.
static void put_list(struct xpl_buf *b, const char *key, const char *text, char separator) {
    const char ends[] = {separator, 0};
    xpl_buf_printf(b, ",\"%s\":[", key);
    for (const char *p = text ? text : ""; *p;) {
        const size_t n = strcspn(p, ends);
        if (p != text) xpl_buf_putc(b, ',');
        xpl_json_str(b, (xpl_str_t){p, n}, false);
        p += n + (p[n] != 0);
    }
    xpl_buf_putc(b, ']');
}

static void put_flag(struct xpl_buf *b, const struct xpl_flag *f, const struct xpl_command *c) {
    const char letter[] = {f->letter, 0};
    xpl_buf_putc(b, '{');
    xpl_json_field(b, "name", xpl_str_from(f->name));
    put_text(b, "letter", letter);
    put_text(b, "value", f->value);
    char known[XPL_FLAG_VALUES];
    put_list(b, "values", xpl_flag_values(f, c, known), '|');
    put_text(b, "default", f->preset);
    put_text(b, "help", f->help);
    xpl_buf_putc(b, '}');
}

// The options of a command, or, of NULL, of all.
static void put_flags(struct xpl_buf *b, const struct xpl_command *c) {
    bool first = true;
    xpl_buf_str(b, XPL_STR(",\"options\":["));
    for (size_t i = 0; i < xpl_n_flags; i++) {
        const struct xpl_flag *const f = &xpl_flag_rows[i];
        if (c ? !xpl_flag_is_for(f, c) : f->commands || !f->help) continue;
        if (!first) xpl_buf_putc(b, ',');
        first = false;
        put_flag(b, f, c);
    }
    xpl_buf_putc(b, ']');
}

static void put_sections(struct xpl_buf *b, const struct xpl_command *c) {
    xpl_buf_str(b, XPL_STR(",\"sections\":["));
    for (const struct xpl_section *s = c->sections; s && s->name; s++) {
        xpl_buf_str(b, s == c->sections ? XPL_STR("{") : XPL_STR(",{"));
        xpl_json_field(b, "name", xpl_str_from(s->name));
        put_list(b, "columns", s->keys, '|');
        xpl_buf_putc(b, '}');
    }
    xpl_buf_putc(b, ']');
}

static void put_command(struct xpl_buf *b, const struct xpl_command *c) {
    xpl_buf_putc(b, '{');
    xpl_json_field(b, "name", xpl_str_from(c->name));
    put_text(b, "arguments", c->arguments);
    put_text(b, "help", c->help);
    put_text(b, "about", c->about);
    put_list(b, "formats", c->formats, '|');
    put_sections(b, c);
    put_flags(b, c);
    put_list(b, "examples", c->examples, '\n');
    xpl_buf_putc(b, '}');
}

int xpl_commands_json(const struct xpl_args *a, struct xpl_commands all) {
    struct xpl_buf b = xpl_buf_of(MAX_LISTING);
    xpl_buf_str(&b, XPL_STR("{\"commands\":["));
    for (size_t i = 0; i < all.n; i++) {
        if (i) xpl_buf_putc(&b, ',');
        put_command(&b, &all.rows[i]);
    }
    xpl_buf_putc(&b, ']');
    put_flags(&b, NULL);
    xpl_buf_str(&b, XPL_STR(",\"exit_status\":["));
    for (size_t i = 0; i < XPL_N_EXITS; i++) {
        if (i) xpl_buf_putc(&b, ',');
        xpl_json_str(&b, xpl_str_from(xpl_exit_meanings[i]), false);
    }
    xpl_buf_str(&b, XPL_STR("]}\n"));
    const bool ok = !b.failed && xpl_write_out(a, b.p, b.n);
    xpl_buf_fini(&b);
    return ok ? XPL_EXIT_OK : XPL_EXIT_FAILED;
}
