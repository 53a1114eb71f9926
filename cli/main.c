// SPDX-License-Identifier: Apache-2.0
// xplanectl: calls a daemon, or analyses files by itself.
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/heap.h"
#include "base/std_fds.h"
#include "base/text/near.h"
#include "base/text/terminal.h"
#include "cli/agents/skill.h"
#include "cli/args.h"
#include "cli/commands/commands.h"
#include "cli/commands/complete.h"
#include "cli/commands/flags.h"
#include "cli/commands/help.h"
#include "cli/runs/place.h"

static const struct xpl_command *find_command(const char *name) {
    for (size_t i = 0; i < xpl_n_commands; i++)
        if (strcmp(xpl_command_rows[i].name, name) == 0) return &xpl_command_rows[i];
    return NULL;
}

static int unknown_command(const char *name) {
    struct xpl_near near = xpl_near_begin(xpl_str_from(name));
    char hint[XPL_NEAR_TEXT];
    for (size_t i = 0; i < xpl_n_commands; i++)
        xpl_near_add(&near, xpl_str_from(xpl_command_rows[i].name));
    xpl_near_add(&near, XPL_STR("help"));
    xpl_commands_near_topics(&near);
    (void)fprintf(stderr, "xplanectl: unknown command \"%s\"%s\nTry: xplanectl --help\n", name,
                  xpl_near_text(&near, hint));
    return XPL_EXIT_USAGE;
}

static struct xpl_commands all_commands(void) {
    return (struct xpl_commands){xpl_command_rows, xpl_n_commands};
}

// Of the command's row, or of all when it is NULL.
static bool print_help(const void *row, FILE *out) {
    if (row)
        xpl_commands_show_one(row, out);
    else
        xpl_commands_show_all(all_commands(), out);
    return true;
}

static bool print_topic(const void *name, FILE *out) {
    return xpl_commands_show_topic(all_commands(), name, out);
}

// `xplanectl help [COMMAND|TOPIC]`.
static int help_of(const struct xpl_args *a) {
    if (a->n_rest == 2 && xpl_commands_show_topic(all_commands(), a->rest[1], NULL))
        return xpl_write_text(a, print_topic, a->rest[1]);
    const struct xpl_command *const c = a->n_rest > 1 ? find_command(a->rest[1]) : NULL;
    if (a->n_rest > 1 && !c) return unknown_command(a->rest[1]);
    if (a->n_rest > 2) {
        (void)fputs("Usage: xplanectl help [COMMAND|TOPIC]\n", stderr);
        return XPL_EXIT_USAGE;
    }
    return a->json || (a->format && strcmp(a->format, "json") == 0)
               ? xpl_commands_json(a, all_commands())
               : xpl_write_text(a, print_help, c);
}

// ---- formats ----

// Whether `word` is one of "a|b|c".
static bool is_one_of(const char *list, const char *word) {
    const size_t n = strlen(word);
    for (const char *p = list;; p++) {
        if (strncmp(p, word, n) == 0 && (p[n] == '|' || !p[n])) return true;
        if (!(p = strchr(p, '|'))) return false;
    }
}

static bool refuse_format(const struct xpl_command *c, const char *format) {
    char hint[XPL_NEAR_TEXT];
    (void)fprintf(stderr, "xplanectl: --format of %s is ", c->name);
    for (const char *p = c->formats; *p; p++) {
        if (*p == '|')
            (void)fputs(strchr(p + 1, '|') ? ", " : " or ", stderr);
        else
            (void)fputc(*p, stderr);
    }
    (void)fprintf(stderr, ", not %s%s\n", format, xpl_near_of(format, c->formats, hint));
    return false;
}

static bool contradicts(const char *flag, const char *format) {
    (void)fprintf(stderr, "xplanectl: --%s and --format %s contradict each other\n", flag, format);
    return false;
}

// Checks --format against the command's row, and makes one of it, --json and --table.
static bool choose_format(const struct xpl_command *c, struct xpl_args *a) {
    a->command = c;
    if (!c->formats || !a->format) return true;
    if (!is_one_of(c->formats, a->format)) return refuse_format(c, a->format);
    const bool json = strcmp(a->format, "json") == 0, table = strcmp(a->format, "table") == 0;
    if (a->json && !json) return contradicts("json", a->format);
    if (a->table && !table) return contradicts("table", a->format);
    a->json = json;
    a->csv = strcmp(a->format, "csv") == 0;
    a->table = table && strncmp(c->formats, "table", 5) != 0; // the default is not a choice
    return true;
}

// Checks --section: one that the row has, or, of tables without names, a number.
static bool choose_section(const struct xpl_command *c, const struct xpl_args *a) {
    if (!a->section) return true;
    if (!a->csv || !c->sections) {
        (void)fputs("xplanectl: --section is of commands with tables, with --format csv\n", stderr);
        return false;
    }
    struct xpl_near near = xpl_near_begin(xpl_str_from(a->section));
    char hint[XPL_NEAR_TEXT];
    for (const struct xpl_section *s = c->sections; s->name; s++) {
        if (strcmp(s->name, a->section) == 0) return true;
        if (!s->keys && *a->section && strspn(a->section, "123456789") == strlen(a->section))
            return true;
        xpl_near_add(&near, xpl_str_from(s->name));
    }
    (void)fprintf(stderr, "xplanectl: --section of %s is ", c->name);
    for (const struct xpl_section *s = c->sections; s->name; s++)
        (void)fprintf(stderr, "%s%s", s->name, !s[1].name ? "" : s[2].name ? ", " : " or ");
    (void)fprintf(stderr, ", not %s%s\n", a->section, xpl_near_text(&near, hint));
    return false;
}

// ---- the program ----

static int write_word(const struct xpl_args *a, const char *word) {
    return xpl_write_line(a, word, strlen(word)) ? XPL_EXIT_OK : XPL_EXIT_FAILED;
}

static int run(const struct xpl_command *c, struct xpl_args *a) {
    if (!xpl_flags_check(a, c)) return XPL_EXIT_USAGE;
    if (a->n_rest - 1 >= c->min && a->n_rest - 1 <= c->max)
        return choose_format(c, a) && choose_section(c, a) && xpl_run_join(a) ? c->run(a)
                                                                              : XPL_EXIT_USAGE;
    const size_t bound = a->n_rest - 1 < c->min ? c->min : c->max;
    (void)fprintf(stderr, "xplanectl: %s needs %s%zu argument%s, not %zu\n", c->name,
                  c->min == c->max  ? ""
                  : bound == c->min ? "at least "
                                    : "at most ",
                  bound, bound == 1 ? "" : "s", a->n_rest - 1);
    (void)fprintf(stderr, "Usage: xplanectl %s%s%s\nTry: xplanectl %s --help\n", c->name,
                  *c->arguments ? " " : "", c->arguments, c->name);
    return XPL_EXIT_USAGE;
}

static int dispatch(struct xpl_args *a) {
    const struct xpl_command *const c = a->n_rest ? find_command(a->rest[0]) : NULL;
    if (a->help) return xpl_write_text(a, print_help, c);
    if (a->help_man) { // for docs/man
        xpl_commands_man(all_commands(), stdout);
        return XPL_EXIT_OK;
    }
    if (a->agents_md)
        return xpl_write_out(a, xpl_skill, xpl_skill_len) ? XPL_EXIT_OK : XPL_EXIT_FAILED;
    if (a->version) return write_word(a, "xplanectl " XPL_VERSION);
    if (a->n_rest == 0) {
        const int status = xpl_cmd_newest(a);
        if (status == XPL_EXIT_USAGE) xpl_commands_show_all(all_commands(), stderr);
        return status;
    }
    if (strcmp(a->rest[0], "help") == 0) return help_of(a);
    if (strcmp(a->rest[0], "__complete") == 0) // for the scripts of shells
        return xpl_commands_complete(a, all_commands());
    return c ? run(c, a) : unknown_command(a->rest[0]);
}

int main(int argc, char **argv) {
    struct xpl_args a;
    xpl_std_fds_open();
    xpl_terminal_guard();
    // A profile that needs more is refused; the kernel would end this program, or another one.
    xpl_heap_set_budget(xpl_heap_machine() / 8 * 7);
    // A reader that ends early (`| head`) ends this program silently, also where the parent ignores
    // the signal, as Python does.
    (void)signal(SIGPIPE, SIG_DFL);
    const int status = xpl_flags_parse(&a, argc, argv) ? dispatch(&a) : XPL_EXIT_USAGE;
    xpl_args_fini(&a);
    return xpl_std_out_end("xplanectl", status,
                           status == XPL_EXIT_FAILED || status == XPL_EXIT_USAGE);
}
