// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/help.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "cli/commands/flags.h"
#include "cli/commands/words.h"
#include "cli/tool_list.h"

enum { HEAD = 23 };

// ---- one option ----

static void put_flag(const struct xpl_flag *f, const struct xpl_command *c, FILE *out) {
    char head[80], list[200];
    char letter[] = {'-', f->letter, ',', ' ', 0};
    char known[XPL_FLAG_VALUES];
    const char *const values = xpl_flag_values(f, c, known);
    (void)snprintf(head, sizeof head, "  %s--%s%s%s", f->letter ? letter : "", f->name,
                   f->value ? " " : "", f->value ? f->value : "");
    struct xpl_words line = xpl_words_begin(out, head, HEAD);
    xpl_words_put(&line, f->help);
    if (values) {
        xpl_words_list(values, list, sizeof list);
        xpl_words_put(&line, "-");
        xpl_words_put(&line, list);
    }
    const char *const preset = f->preset || values == f->values ? f->preset : values;
    if (preset) {
        (void)snprintf(list, sizeof list, "[%.*s]", (int)(strcspn(preset, "|")), preset);
        xpl_words_put(&line, list);
    }
    (void)fputc('\n', out);
}

// Whether several commands have it.
static bool is_shared(const struct xpl_flag *f) {
    return f->commands && f->help && strpbrk(f->commands, " +");
}

// Those of one command; `all`: with those that others have, too.
static void put_own(const struct xpl_command *c, bool all, FILE *out) {
    bool any = false;
    for (size_t i = 0; i < xpl_n_flags; i++) {
        if (!xpl_flag_is_for(&xpl_flag_rows[i], c) || (!all && is_shared(&xpl_flag_rows[i])))
            continue;
        if (!any) (void)fprintf(out, "\nOptions of %s:\n", c->name);
        any = true;
        put_flag(&xpl_flag_rows[i], c, out);
    }
}

static void put_topic_options(struct xpl_commands all, FILE *out) {
    (void)fputs("Options of all commands:\n", out);
    for (size_t i = 0; i < xpl_n_flags; i++)
        if (!xpl_flag_rows[i].commands && xpl_flag_rows[i].help)
            put_flag(&xpl_flag_rows[i], NULL, out);
    (void)fputs("\nOptions of several commands:\n", out);
    for (size_t i = 0; i < xpl_n_flags; i++)
        if (is_shared(&xpl_flag_rows[i])) put_flag(&xpl_flag_rows[i], NULL, out);
    for (size_t i = 0; i < all.n; i++)
        put_own(&all.rows[i], false, out);
}

static void put_topic_tools(struct xpl_commands unused, FILE *out) {
    (void)unused;
    (void)fputs("Tools and their options (--option):\n", out);
    xpl_help_tools(out);
}

static void put_topic_status(struct xpl_commands unused, FILE *out) {
    (void)unused;
    (void)fputs("Exit statuses of all commands:\n", out);
    for (size_t i = 0; i < XPL_N_EXITS; i++) {
        struct xpl_words line = xpl_words_begin(out, "", 2);
        xpl_words_put(&line, xpl_exit_meanings[i]);
        (void)fputc('\n', out);
    }
}

static const struct topic {
    const char *name, *help;
    void (*put)(struct xpl_commands all, FILE *out);
} topics[] = {
    {"options", "all options", put_topic_options},
    {"tool-options", "the tools of tool and analyze, with their options", put_topic_tools},
    {"status", "exit statuses", put_topic_status},
};
enum { N_TOPICS = sizeof topics / sizeof *topics };

// ---- help ----

bool xpl_commands_show_topic(struct xpl_commands all, const char *name, FILE *out) {
    for (size_t i = 0; i < N_TOPICS; i++) {
        if (strcmp(topics[i].name, name) != 0) continue;
        if (out) topics[i].put(all, out);
        return true;
    }
    return false;
}

void xpl_commands_near_topics(struct xpl_near *near) {
    for (size_t i = 0; i < N_TOPICS; i++)
        xpl_near_add(near, xpl_str_from(topics[i].name));
}

// The options that a newcomer needs; the topic "options" has all of them.
static void put_usual(FILE *out) {
    static const char *const usual[] = {"server", "output", "format", "json", "host", "help"};
    (void)fputs("\nOptions of most commands:\n", out);
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        size_t k = 0;
        while (strcmp(xpl_flag_rows[k].name, usual[i]) != 0)
            k++;
        put_flag(&xpl_flag_rows[k], NULL, out);
    }
}

void xpl_commands_show_all(struct xpl_commands all, FILE *out) {
    (void)fputs("Usage: xplanectl [options] COMMAND ...\n"
                "       xplanectl              shows the verdict on the daemon's newest session\n"
                "\nCommands:\n",
                out);
    for (size_t i = 0; i < all.n; i++) {
        char head[80];
        (void)snprintf(head, sizeof head, "  %s ", all.rows[i].name);
        struct xpl_words line = xpl_words_begin(out, head, 14);
        xpl_words_put(&line, all.rows[i].help);
        (void)fputc('\n', out);
    }
    put_usual(out);
    (void)fputs("\nxplanectl COMMAND --help describes a command, xplanectl help TOPIC a topic:\n",
                out);
    for (size_t i = 0; i < N_TOPICS; i++)
        (void)fprintf(out, "  %-12s  %s\n", topics[i].name, topics[i].help);
}

static void put_examples(const struct xpl_command *c, FILE *out) {
    const char *p = c->examples;
    (void)fprintf(out, "\nExample%s:\n", strchr(p, '\n')[1] ? "s" : "");
    for (; *p; p += strcspn(p, "\n") + 1)
        (void)fprintf(out, "  %.*s\n", (int)strcspn(p, "\n"), p);
}

void xpl_commands_show_one(const struct xpl_command *c, FILE *out) {
    (void)fprintf(out, "Usage: xplanectl [options] %s%s%s\n\n", c->name, *c->arguments ? " " : "",
                  c->arguments);
    struct xpl_words line = {out, 0, 0};
    xpl_words_put_sentence(&line, c->help);
    (void)fputc('\n', out);
    if (c->about) {
        line.column = 0;
        (void)fputc('\n', out);
        xpl_words_put(&line, c->about);
        (void)fputc('\n', out);
    }
    if (strstr(c->arguments, "RUN")) {
        line.column = 0;
        (void)fputc('\n', out);
        xpl_words_put(&line, XPL_RUN_MEANING);
        (void)fputc('\n', out);
    }
    put_own(c, true, out);
    put_examples(c, out);
    (void)fputs("\nxplanectl help options lists the options of all commands (--server, --output, "
                "TLS)",
                out);
    if (strcmp(c->name, "tool") == 0 || strcmp(c->name, "analyze") == 0)
        (void)fputs(",\nxplanectl help tool-options the tools with their options", out);
    (void)fputs(".\n", out);
}

// ---- the manual page ----

static void put_roff(const char *text, FILE *out) {
    if (*text == '.' || *text == '\'') (void)fputs("\\&", out);
    for (; *text; text++) {
        if (*text == '-' || *text == '\\') (void)fputc('\\', out);
        (void)fputc(*text, out);
    }
}

static void man_flag(const struct xpl_flag *f, const struct xpl_command *c, FILE *out) {
    char list[200];
    char known[XPL_FLAG_VALUES];
    const char *const values = xpl_flag_values(f, c, known);
    (void)fputs(".TP\n\\fB", out);
    if (f->letter) (void)fprintf(out, "\\-%c\\fR, \\fB", f->letter);
    (void)fputs("\\-\\-", out);
    put_roff(f->name, out);
    (void)fputs("\\fR", out);
    if (f->value) {
        (void)fputs(" \\fI", out);
        put_roff(f->value, out);
        (void)fputs("\\fR", out);
    }
    (void)fputc('\n', out);
    put_roff(f->help, out);
    if (values) {
        xpl_words_list(values, list, sizeof list);
        (void)fputs(": ", out);
        put_roff(list, out);
    }
    (void)fputs(".\n", out);
    if (f->preset) {
        (void)fputs("Default: ", out);
        put_roff(f->preset, out);
        (void)fputs(".\n", out);
    }
}

static void man_commands(struct xpl_commands all, FILE *out) {
    for (size_t i = 0; i < all.n; i++) {
        const struct xpl_command *const c = &all.rows[i];
        (void)fprintf(out, ".TP\n.B %s\n", c->name);
        if (*c->arguments) {
            (void)fputs("\\fI", out);
            put_roff(c->arguments, out);
            (void)fputs("\\fR\n.br\n", out);
        }
        (void)fputc(toupper((unsigned char)c->help[0]), out);
        put_roff(c->help + 1, out);
        (void)fputs(".\n", out);
        if (!c->about) continue;
        put_roff(c->about, out);
        (void)fputc('\n', out);
    }
}

static void man_options(struct xpl_commands all, FILE *out) {
    (void)fputs(".SH OPTIONS\n", out);
    for (size_t i = 0; i < xpl_n_flags; i++)
        if (!xpl_flag_rows[i].commands && xpl_flag_rows[i].help)
            man_flag(&xpl_flag_rows[i], NULL, out);
    for (size_t i = 0; i < all.n; i++) {
        bool any = false;
        for (size_t k = 0; k < xpl_n_flags; k++) {
            if (!xpl_flag_is_for(&xpl_flag_rows[k], &all.rows[i])) continue;
            if (!any) (void)fprintf(out, ".SS Options of %s\n", all.rows[i].name);
            any = true;
            man_flag(&xpl_flag_rows[k], &all.rows[i], out);
        }
    }
}

static void man_synopsis(struct xpl_commands all, FILE *out) {
    for (size_t i = 0; i < all.n; i++) {
        (void)fprintf(out, "%s.B xplanectl\n[\\fIoptions\\fR] \\fB%s\\fR \\fI", i ? ".br\n" : "",
                      all.rows[i].name);
        put_roff(all.rows[i].arguments, out);
        (void)fputs("\\fR\n", out);
    }
}

static void man_examples(struct xpl_commands all, FILE *out) {
    for (size_t i = 0; i < all.n; i++)
        put_roff(all.rows[i].examples, out);
}

void xpl_commands_man(struct xpl_commands all, FILE *out) {
    (void)fputs("@SYNOPSIS@\n", out);
    man_synopsis(all, out);
    (void)fputs("@RUN@\n" XPL_RUN_MEANING "\n@COMMANDS@\n", out);
    man_commands(all, out);
    (void)fputs("@OPTIONS@\n", out);
    man_options(all, out);
    (void)fputs("@TOOLS@\n", out);
    xpl_man_tools(out);
    (void)fputs("@EXITS@\n", out);
    for (size_t i = 0; i < XPL_N_EXITS; i++)
        (void)fprintf(out, "%s%s\n", xpl_exit_meanings[i], i + 1 < XPL_N_EXITS ? "," : ".");
    (void)fputs("@EXAMPLES@\n", out);
    man_examples(all, out);
}
