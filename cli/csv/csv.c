// SPDX-License-Identifier: Apache-2.0
#include "cli/csv/csv.h"

#include <stdlib.h>
#include <string.h>

#include "cli/commands/command.h"
#include "cli/csv/cells.h"
#include "cli/document/document.h"
#include "cli/output.h"

enum { KEY_LENGTH = 64 };

// The member of `row` that `key` names: "a.b" is one of a member, "a.0" the first of a list.  A row
// that is a text or a number is its own first column.
static const json_t *member(const json_t *row, const char *key, size_t n, bool first) {
    char name[KEY_LENGTH];
    if (json_is_array(row)) return json_array_get(row, strtoul(key, NULL, 10));
    if (!json_is_object(row)) return first ? row : NULL;
    const char *const dot = memchr(key, '.', n);
    const size_t head = dot ? (size_t)(dot - key) : n;
    (void)snprintf(name, sizeof name, "%.*s", (int)head, key);
    row = json_object_get(row, name);
    return dot ? member(row, dot + 1, n - head - 1, false) : row;
}

static void put_row(FILE *out, const char *keys, const json_t *row) {
    for (const char *p = keys; *p;) {
        const size_t n = strcspn(p, "|");
        if (p != keys) (void)fputc(',', out);
        xpl_csv_value(out, member(row, p, n, p == keys));
        p += n + (p[n] == '|');
    }
    xpl_csv_end_line(out);
}

static void put_header(FILE *out, const char *keys) {
    for (; *keys; keys++)
        (void)fputc(*keys == '|' ? ',' : *keys, out);
    xpl_csv_end_line(out);
}

static const struct xpl_section *find(const struct xpl_args *a, const char *preset) {
    const char *const name = a->section ? a->section : preset;
    const struct xpl_section *s = a->command->sections;
    while (name && s->name && strcmp(s->name, name) != 0)
        s++;
    return s->name ? s : a->command->sections;
}

// Whether rows have the columns: some documents are of one of two kinds.
static bool fits(const char *keys, const json_t *rows) {
    const json_t *const first = json_is_array(rows) ? json_array_get(rows, 0) : rows;
    return !first || member(first, keys, strcspn(keys, "|"), true);
}

static bool put_section(const struct xpl_section *s, const json_t *doc, FILE *out) {
    const json_t *const rows = *s->path ? json_object_get(doc, s->path) : doc;
    if (!rows || json_is_null(rows) || !fits(s->keys, rows)) return false;
    put_header(out, s->keys);
    if (json_is_object(rows)) put_row(out, s->keys, rows);
    for (size_t i = 0; i < json_array_size(rows); i++)
        put_row(out, s->keys, json_array_get(rows, i));
    return true;
}

int xpl_csv_show(const struct xpl_args *a, const json_t *doc, const char *preset) {
    const struct xpl_section *const s = find(a, preset);
    struct xpl_output o;
    if (!xpl_output_open(&o, a->out)) return XPL_EXIT_FAILED;
    if (put_section(s, doc, o.f)) return xpl_output_commit(&o) ? XPL_EXIT_OK : XPL_EXIT_FAILED;
    xpl_output_abort(&o);
    (void)fprintf(stderr, "xplanectl: this answer has no table \"%s\"\n", s->name);
    return XPL_EXIT_FAILED;
}

int xpl_csv_show_text(const struct xpl_args *a, const void *p, size_t n, const char *preset) {
    if (!a->csv) return xpl_write_out(a, p, n) ? XPL_EXIT_OK : XPL_EXIT_FAILED;
    json_auto_t *doc = xpl_document_read(p, n);
    if (!doc) return XPL_EXIT_FAILED;
    return xpl_csv_show(a, doc, preset);
}
