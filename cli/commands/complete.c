// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/complete.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/tools/tool.h"
#include "base/text/utf8.h"
#include "cli/commands/flags.h"
#include "cli/remote.h"

enum { MOST_WORDS = 256, PREFIX = 256, PATIENCE_MS = 700 };

struct request {
    struct xpl_commands all;
    const char *words[MOST_WORDS + 1]; // before the one that is completed; the program's name first
    size_t n_words;
    const struct xpl_command *command;
    const char *arguments[MOST_WORDS]; // of the command
    size_t n_arguments;
    bool help;                   // "help": a command follows
    bool dashes;                 // after "--"
    const struct xpl_flag *flag; // the word is its value
    char prefix[PREFIX];         // of the word, which each candidate gets
    const char *word;            // the text after it
};

// ---- candidates ----

// A name with control characters is not offered: scripts of shells read lines and tabs.
static void offer_ending(const struct request *q, const char *name, const char *ending,
                         const char *help) {
    if (strncmp(name, q->word, strlen(q->word)) == 0 && xpl_utf8_is_shown(xpl_str_from(name)))
        (void)printf("%s%s%s\t%s\n", q->prefix, name, ending, help ? help : "");
}

static void offer(const struct request *q, const char *name, const char *help) {
    offer_ending(q, name, "", help);
}

static void offer_files(void) {
    (void)puts("\tfiles");
}

// Each literal of "a|b|c": of "SESSION|--all" the second.
static void offer_list(const struct request *q, const char *list) {
    char one[64];
    while (*list) {
        const size_t n = strcspn(list, "|");
        (void)snprintf(one, sizeof one, "%.*s", (int)n, list);
        if (!isupper((unsigned char)one[0]) && strspn(one, "[]'.") == 0) offer(q, one, "");
        list += n + (list[n] == '|');
    }
}

// Moves the text up to the last `mark` of the word into the prefix.
static void split_word(struct request *q, char mark) {
    const char *const at = strrchr(q->word, mark);
    const size_t n = strlen(q->prefix);
    if (!at || n + (size_t)(at - q->word) + 2 > sizeof q->prefix) return;
    (void)snprintf(q->prefix + n, sizeof q->prefix - n, "%.*s", (int)(at + 1 - q->word), q->word);
    q->word = at + 1;
}

// ---- what a daemon knows ----

// The daemon that the words before name; NULL: none.
static xpl_client *open_client(const struct request *q, struct xpl_args *given) {
    if (!xpl_flags_parse(given, (int)q->n_words, (char **)(uintptr_t)q->words)) return NULL;
    given->timeout_ms = PATIENCE_MS;
    return xpl_remote_open(given);
}

static void offer_sessions(const struct request *q) {
    struct xpl_args given;
    xpl_sessions *list = NULL;
    xpl_result r;
    (void)fflush(stdout); // the library may be missing, which ends the program
    xpl_client *const c = open_client(q, &given);
    if (c && xpl_client_sessions(c, &list, &r) == 0)
        for (size_t i = 0; i < xpl_sessions_count(list); i++)
            offer(q, xpl_sessions_get(list, i)->name, xpl_sessions_get(list, i)->kind);
    if (c) {
        xpl_sessions_free(list);
        xpl_client_close(c);
    }
    xpl_args_fini(&given);
}

// Hosts of the session that is named last.
static void offer_hosts(const struct request *q) {
    struct xpl_args given;
    xpl_sessions *one = NULL;
    xpl_result r;
    if (!q->n_arguments) return;
    (void)fflush(stdout);
    xpl_client *const c = open_client(q, &given);
    if (c && xpl_client_session(c, q->arguments[q->n_arguments - 1], &one, &r) == 0) {
        const xpl_session_info *const s = xpl_sessions_get(one, 0);
        for (size_t i = 0; i < s->n_hosts; i++)
            offer(q, s->hosts[i].name, "");
    }
    if (c) {
        xpl_sessions_free(one);
        xpl_client_close(c);
    }
    xpl_args_fini(&given);
}

// ---- tools ----

static void offer_tools(const struct request *q) {
    size_t n;
    const struct xpl_tool *const *const tools = xpl_tools(&n);
    for (size_t i = 0; i < n; i++)
        offer(q, tools[i]->name, "");
}

// KEY=, or after that the values of the key.
static void offer_options(struct request *q) {
    const bool is_first = q->n_arguments && q->command->arguments[0] == 'T';
    const struct xpl_tool *const t =
        xpl_tool_find(xpl_str_from(is_first ? q->arguments[0] : q->command->name));
    const char *const eq = strchr(q->word, '=');
    for (size_t i = 0; t && i < xpl_tool_n_options(t); i++) {
        const struct xpl_tool_option *const o = xpl_tool_option_at(t, i);
        if (o->internal) continue;
        if (!eq) {
            offer_ending(q, o->key, "=", o->help);
        } else if (strncmp(o->key, q->word, (size_t)(eq - q->word)) == 0 && !o->key[eq - q->word]) {
            split_word(q, '=');
            offer_list(q, o->values);
            return;
        }
    }
}

// ---- options ----

static bool is_known(const struct request *q, const struct xpl_flag *f) {
    return f->help && (!f->commands || (q->command && xpl_flag_is_for(f, q->command)));
}

// The row of "--NAME" or "-N", up to `n`; of several that which the command has.
static const struct xpl_flag *find_flag(const struct request *q, const char *arg, size_t n) {
    const struct xpl_flag *any = NULL;
    for (size_t i = 0; i < xpl_n_flags; i++) {
        const struct xpl_flag *const f = &xpl_flag_rows[i];
        const bool is = arg[1] == '-' ? strncmp(f->name, arg + 2, n - 2) == 0 && !f->name[n - 2]
                                      : n == 2 && f->letter == arg[1];
        if (is && is_known(q, f)) return f;
        if (is) any = f;
    }
    return any;
}

static void offer_flags(const struct request *q) {
    char name[64];
    for (size_t i = 0; i < xpl_n_flags; i++) {
        if (!is_known(q, &xpl_flag_rows[i])) continue;
        (void)snprintf(name, sizeof name, "--%s", xpl_flag_rows[i].name);
        offer(q, name, xpl_flag_rows[i].help);
    }
}

static void offer_values(struct request *q) {
    char known[XPL_FLAG_VALUES];
    const struct xpl_flag *const f = q->flag;
    const char *const values = xpl_flag_values(f, q->command, known);
    if (values)
        offer_list(q, values);
    else if (f->kind == XPL_FLAG_HOST)
        offer_hosts(q);
    else if (f->kind == XPL_FLAG_OPTION && q->command)
        offer_options(q);
    else if (f->value && (strcmp(f->value, "FILE") == 0 || strcmp(f->value, "DIR") == 0))
        offer_files();
}

// ---- arguments ----

static void offer_commands(const struct request *q) {
    for (size_t i = 0; i < q->all.n; i++)
        offer(q, q->all.rows[i].name, q->all.rows[i].help);
    if (!q->help) offer(q, "help", "show help; with a command, the help of that command");
}

static void offer_reports(const struct request *q) {
    const char *name, *help;
    for (size_t i = 0; (name = q->command->report(i, &help)); i++)
        offer(q, name, help);
    offer(q, "capture", "run a program and capture it");
}

// The part of the usage that the argument `at` is, "" of one too many; one with "..." is all that
// follow, too.
static void find_usage(const char *usage, size_t at, char *out, size_t size) {
    for (const char *p = usage; *p; at--) {
        const size_t n = strcspn(p, " ");
        (void)snprintf(out, size, "%.*s", (int)n, p);
        if (!at || strstr(out, "...")) return;
        p += n + (p[n] == ' ');
    }
    out[0] = 0;
}

static void offer_arguments(struct request *q) {
    char usage[64];
    find_usage(q->command->arguments, q->n_arguments, usage, sizeof usage);
    if (strchr(usage, ',')) split_word(q, ',');
    offer_list(q, usage);
    if (strstr(usage, "TOOL")) offer_tools(q);
    if (q->command->report && strstr(usage, "REPORT")) offer_reports(q);
    if (strstr(usage, "PATH") || strstr(usage, "FILE") || strstr(usage, "DIR") ||
        strstr(usage, "RUN") || strstr(usage, "PROGRAM"))
        offer_files();
    // A path is not a session's name.
    if ((strstr(usage, "SESSION") || strstr(usage, "RUN")) && !strchr(q->word, '/'))
        offer_sessions(q);
}

// ---- the line ----

static void read_word(struct request *q, const char *word) {
    if (q->flag) {
        q->flag = NULL; // this was its value
    } else if (!q->dashes && strcmp(word, "--") == 0) {
        q->dashes = true;
    } else if (!q->dashes && word[0] == '-' && word[1]) {
        const struct xpl_flag *const f = find_flag(q, word, strlen(word));
        if (f && f->kind != XPL_FLAG_SWITCH) q->flag = f;
    } else if (q->command) {
        q->arguments[q->n_arguments++] = word;
    } else if (strcmp(word, "help") == 0) {
        q->help = true;
    } else {
        for (size_t i = 0; i < q->all.n; i++)
            if (strcmp(q->all.rows[i].name, word) == 0) q->command = &q->all.rows[i];
    }
}

static void complete(struct request *q) {
    const size_t n = strcspn(q->word, "=");
    if (!q->flag && !q->dashes && strncmp(q->word, "--", 2) == 0 && q->word[n]) {
        q->flag = find_flag(q, q->word, n);
        if (!q->flag || q->flag->kind == XPL_FLAG_SWITCH) return;
        (void)snprintf(q->prefix, sizeof q->prefix, "%.*s", (int)n + 1, q->word);
        q->word += n + 1;
    }
    if (q->flag)
        offer_values(q);
    else if (!q->dashes && q->word[0] == '-')
        offer_flags(q);
    else if (!q->command)
        offer_commands(q);
    else if (!q->help)
        offer_arguments(q);
}

// Cuts a line into words, in place, as a shell does: quotes and backslashes.  Returns how many.
static size_t cut_line(char *line, const char **words) {
    size_t n = 0;
    char *to = line, *p = line, quote = 0;
    for (;;) {
        while (isspace((unsigned char)*p))
            p++;
        if (n == MOST_WORDS) return n;
        words[n++] = to;
        for (; *p && (quote || !isspace((unsigned char)*p)); p++) {
            if (*p == quote)
                quote = 0;
            else if (!quote && (*p == '"' || *p == '\''))
                quote = *p;
            else
                *to++ = *p == '\\' && quote != '\'' && p[1] ? *++p : *p;
        }
        const bool more = *p;
        if (more) p++; // before it is overwritten
        *to++ = 0;
        if (!more) return n;
    }
}

// Messages about an incomplete command line would disturb it.
static bool silence_stderr(void) {
    const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    const bool done = null >= 0 && dup2(null, STDERR_FILENO) >= 0;
    if (null >= 0) (void)close(null);
    return done;
}

int xpl_commands_complete(const struct xpl_args *a, struct xpl_commands all) {
    struct request q = {.all = all};
    const char *cut[MOST_WORDS];
    const char *const *words = a->n_rest > 2 ? a->rest + 2 : cut;
    size_t n = a->n_rest > 2 ? a->n_rest - 2 : 0;
    char *const line = n ? strdup(a->rest[2]) : NULL;
    if (line && strcmp(a->rest[1], "bash") == 0) {
        n = cut_line(line, cut) - 1; // without the program's name
        words = cut + 1;
    }
    if (line && n && n < MOST_WORDS && silence_stderr()) {
        q.words[q.n_words++] = "xplanectl";
        for (size_t i = 0; i + 1 < n; i++) {
            read_word(&q, words[i]);
            q.words[q.n_words++] = words[i];
        }
        q.word = words[n - 1];
        if (q.flag) q.n_words--; // without its value the line is incomplete
        complete(&q);
    }
    free(line);
    return XPL_EXIT_OK;
}
