// SPDX-License-Identifier: Apache-2.0
// The guide of --agents-md: Markdown of the tables of commands and options.
#include <stdbool.h>
#include <string.h>

#include "cli/commands/flags.h"
#include "cli/commands/help.h"
#include "cli/commands/words.h"

static const char *const kNotes[] = {
    "SESSION is a name that `xplanectl sessions` lists; a daemon (`xplaned --logdir DIR`) answers "
    "for it. PATH is a profile or the directory of a run.",
    XPL_RUN_MEANING,
    "`--format json` is one document on standard output. Its keys end in their unit: `_ps` "
    "(picoseconds), `_bytes`, `_percent`. Keys are only added, never renamed; docs/cli-json.md "
    "lists them.",
    "Errors go to standard error, with the nearest name if one was mistyped; standard output then "
    "has no answer.",
    "`xplanectl tools --all --format json` has all tools with their options, `xplanectl help "
    "--format json` all commands with theirs.",
};

// Words of the table, in which Markdown's signs mean nothing.
static void put_text(struct xpl_words *w, const char *text) {
    char escaped[2048];
    size_t n = 0;
    for (; *text && n + 2 < sizeof escaped; text++) {
        if (strchr("*<[", *text)) escaped[n++] = '\\';
        escaped[n++] = *text;
    }
    escaped[n] = 0;
    xpl_words_put(w, escaped);
}

static void put_item(FILE *out, const char *text) {
    struct xpl_words w = xpl_words_begin(out, "*", 2);
    xpl_words_put(&w, text);
    (void)fputc('\n', out);
}

static void put_flag(const struct xpl_flag *f, const struct xpl_command *c, FILE *out) {
    char head[80], list[200];
    char known[XPL_FLAG_VALUES];
    const char *const values = xpl_flag_values(f, c, known);
    (void)snprintf(head, sizeof head, "`--%s%s%s`:", f->name, f->value ? " " : "",
                   f->value ? f->value : "");
    struct xpl_words w = xpl_words_begin(out, "*", 2);
    xpl_words_put(&w, head);
    put_text(&w, f->help);
    if (values) {
        xpl_words_list(values, list, sizeof list);
        xpl_words_put(&w, "-");
        put_text(&w, list);
    }
    if (f->preset) {
        (void)snprintf(list, sizeof list, "(default: %s)", f->preset);
        put_text(&w, list);
    }
    (void)fputc('\n', out);
}

static void put_command(const struct xpl_command *c, FILE *out) {
    struct xpl_words w = {out, 0, 0};
    (void)fprintf(out, "\n### %s\n\n    xplanectl %s%s%s\n\n", c->name, c->name,
                  *c->arguments ? " " : "", c->arguments);
    xpl_words_put_sentence(&w, c->help);
    (void)fputc('\n', out);
    if (c->about) {
        w.column = 0;
        (void)fputc('\n', out);
        put_text(&w, c->about);
        (void)fputc('\n', out);
    }
    bool any = false;
    for (size_t i = 0; i < xpl_n_flags; i++) {
        if (!xpl_flag_is_for(&xpl_flag_rows[i], c)) continue;
        if (!any) (void)fputc('\n', out);
        any = true;
        put_flag(&xpl_flag_rows[i], c, out);
    }
    (void)fprintf(out, "\n```\n%s```\n", c->examples);
}

void xpl_commands_guide(struct xpl_commands all, FILE *out) {
    (void)fputs(
        "# xplanectl\n\nProfiles of JAX, TensorFlow, PyTorch/XLA and IREE: capture them, ask "
        "a daemon for them, or\nread files.\n\n## What to know\n\n",
        out);
    for (size_t i = 0; i < sizeof kNotes / sizeof *kNotes; i++)
        put_item(out, kNotes[i]);
    (void)fputs("\nExit status:\n\n", out);
    for (size_t i = 0; i < XPL_N_EXITS; i++)
        put_item(out, xpl_exit_meanings[i]);
    (void)fputs("\n## Options of all commands\n\n", out);
    for (size_t i = 0; i < xpl_n_flags; i++)
        if (!xpl_flag_rows[i].commands && xpl_flag_rows[i].help)
            put_flag(&xpl_flag_rows[i], NULL, out);
    (void)fputs("\n## Commands\n", out);
    for (size_t i = 0; i < all.n; i++)
        put_command(&all.rows[i], out);
}
