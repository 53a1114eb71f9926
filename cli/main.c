// SPDX-License-Identifier: Apache-2.0
// xplanectl: calls a daemon, or analyses files by itself.
#include <stdio.h>
#include <string.h>

#include "base/std_fds.h"
#include "base/text/near.h"
#include "cli/args.h"
#include "cli/tool_list.h"

static const struct command {
    const char *name;
    int (*run)(const struct xpl_args *);
    size_t min, max; // arguments after the name
    const char *arguments, *help;
} commands[] = {
    {"sessions", xpl_cmd_sessions, 0, 0, "", "list profile sessions, newest first"},
    {"hosts", xpl_cmd_hosts, 1, 1, "SESSION", "list a session's hosts"},
    {"tools", xpl_cmd_tools, 0, 1, "SESSION|--all",
     "list the tools that answer for a session; --all: those of this program, with options"},
    {"tool", xpl_cmd_tool, 2, 2, "TOOL SESSION", "a tool's answer, byte for byte"},
    {"summary", xpl_cmd_summary, 1, 1, "SESSION",
     "findings, then ops, kernels, steps and memory as tables"},
    {"findings", xpl_cmd_findings, 1, 1, "SESSION|PATH",
     "what makes a run slow, ranked, with evidence and advice"},
    {"compare", xpl_cmd_compare, 2, 2, "A B",
     "two runs (sessions or paths), or groups of them (A1,A2), beside each other"},
    {"analyze", xpl_cmd_analyze, 2, 4096, "TOOL PATH...",
     "a tool's answer from files or one run directory, without a daemon"},
    {"capture", xpl_cmd_capture, 1, 1024, "TARGET[,TARGET...]",
     "profile running programs (HOST:PORT of their profiler servers); prints the session's name"},
    {"captures", xpl_cmd_captures, 0, 0, "", "the history of captures, newest first"},
    {"cancel", xpl_cmd_cancel, 1, 1, "ID", "end a capture that is under way"},
    {"schedules", xpl_cmd_schedules, 0, 0, "", "captures that begin by themselves (--every)"},
    {"unschedule", xpl_cmd_unschedule, 1, 1, "ID", "end a schedule; its sessions stay"},
    {"import", xpl_cmd_import, 1, 4096, "FILE|DIR...", "store profiles as a session of the daemon"},
    {"delete", xpl_cmd_delete, 1, 1, "SESSION", "remove a session (daemon with --allow-delete)"},
    {"export", xpl_cmd_export, 2, 4096, "FORMAT PATH...",
     "perfetto or chrome: the trace of files, one run directory or a session of --logdir"},
    {"hlo", xpl_cmd_hlo, 1, 2, "SESSION|PATH [MODULE]",
     "the HLO programs of a session or of files; MODULE, NAME(ID) or ID: one of them as text"},
    {"iree", xpl_cmd_iree, 0, 2, "REPORT FILE|SESSION",
     "a report on a profile bundle of IREE (*.ireeprof), as iree-profile gives it"},
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

// Options, by the command that they belong to; NULL: all.
static const struct section {
    const char *command, *text;
} sections[] = {
    {NULL,
     "\nOptions:\n"
     "  --server ADDR        HOST:PORT or unix:/PATH [$XPLANED_SERVER, 127.0.0.1:50551]\n"
     "  --host HOST          only this host; may be given several times\n"
     "  --option KEY=VALUE   option of the tool; may be given several times\n"
     "  -o, --output FILE    where the answer goes [standard output]\n"
     "  -j, --jobs N         threads for analyze and export [one per processor]\n"
     "  --logdir DIR         export, iree: where to find the session that is named instead of\n"
     "                       paths; capture --direct: where it goes\n"
     "  --json               listings as JSON\n"
     "  --table              tool, analyze: the answer's tables as text for a person\n"
     "  --all                tools: all of this program, without a daemon\n"
     "  --timeout-ms N       give up after this long [300000]\n"
     "  --tls-roots FILE     use TLS, trusting these PEM roots\n"
     "  --tls-cert FILE, --tls-key FILE, --tls-name NAME\n"
     "  --token-file FILE    send the bearer token in FILE\n"
     "  --help, --version\n"},
    {"capture",
     "\nOptions of capture (times: 500ms, 2s, 1m):\n"
     "  --direct             ask the targets from here, without a daemon; needs --logdir\n"
     "  --duration TIME      [1s]\n"
     "  --delay TIME         begin so much later [0s]\n"
     "  --session NAME       [the time]\n"
     "  --host-names A,B     what the files are called [the targets]\n"
     "  --retries N          ask hosts again that are unreachable, busy or idle [0]\n"
     "  --host-tracer N, --device-tracer N, --python-tracer N   levels [2, 1, 0]\n"
     "  --advanced KEY=VALUE of the profiler servers; may be given several times\n"
     "  --connect-timeout TIME, --answer-timeout TIME   [10s; 60s or twice the duration]\n"
     "  --remote-logdir DIR  the log directory as the hosts see it, for old servers\n"
     "  --every TIME         again and again, by the daemon; prints the schedule's number\n"
     "  --continuous         with --every: fetch what the servers record all the time\n"
     "  --keep N, --keep-age TIME, --keep-bytes SIZE   which of a schedule's sessions stay\n"
     "  --detach             go on when this command is ended\n"
     "  --quiet              no progress\n"},
    {"hlo",
     "\nOptions of hlo: --text short|long|pbtxt|pb|json [short], of a MODULE; --json: the list\n"
     "  --memory lines|ops   what holds the most memory that MODULE needs, by source line or by "
     "op,\n"
     "                       as a table; --json: as a DataTable\n"
     "  --other MODULE       beside that of another program\n"},
    {"iree", "\nOptions of iree: --format text|jsonl (of export: ireeperf-jsonl|perfetto|chrome),\n"
             "  --filter GLOB, --id N, --dispatch_events,\n"
             "  --counter_samples, --unfinished (what follows the end that the header states)\n"},
    {"findings",
     "\nOptions of findings: --format table|json [table]; --json is the same as json\n"},
    {"compare",
     "\nOptions of compare: --format table|json [table]; --fail-if 'step_time>5%', or a cause of\n"
     "  docs/findings.md in place of step_time: exit status 4 when it is met\n"},
    {"import", "\nOptions of import: --session NAME, --retries N [3]\n"},
};

static const char EXIT_STATUS[] = "\nExit status: 0 done, 1 the request failed, 2 wrong usage, "
                                  "3 partly done (capture), or a\ndamaged bundle (iree), "
                                  "4 a threshold is met (compare).\n";

static void help(FILE *out) {
    (void)fputs("Usage: xplanectl [options] COMMAND ...\n\nCommands:\n", out);
    for (size_t i = 0; i < N_COMMANDS; i++)
        (void)fprintf(out, "  %-10s %-13s %s\n", commands[i].name, commands[i].arguments,
                      commands[i].help);
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        (void)fputs(sections[i].text, out);
    (void)fputs("\nTools and their options (--option):\n", out);
    xpl_help_tools(out);
    (void)fputs(EXIT_STATUS, out);
}

// Of one command: what it takes, its own options, those of all.
static void help_command(const struct command *c) {
    (void)printf("Usage: xplanectl [options] %s %s\n%s\n", c->name, c->arguments, c->help);
    for (size_t i = sizeof sections / sizeof *sections; i-- > 0;)
        if (!sections[i].command || strcmp(sections[i].command, c->name) == 0)
            (void)fputs(sections[i].text, stdout);
    if (strcmp(c->name, "tool") == 0 || strcmp(c->name, "analyze") == 0) {
        (void)fputs("\nTools and their options (--option):\n", stdout);
        xpl_help_tools(stdout);
    }
    (void)fputs(EXIT_STATUS, stdout);
}

static const struct command *find_command(const char *name) {
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0) return &commands[i];
    return NULL;
}

static int unknown_command(const char *name) {
    struct xpl_near near = xpl_near_begin(xpl_str_from(name));
    char hint[XPL_NEAR_TEXT];
    for (size_t i = 0; i < N_COMMANDS; i++)
        xpl_near_add(&near, xpl_str_from(commands[i].name));
    (void)fprintf(stderr, "xplanectl: unknown command \"%s\"%s\nTry: xplanectl --help\n", name,
                  xpl_near_text(&near, hint));
    return XPL_EXIT_USAGE;
}

static int dispatch(const struct xpl_args *a) {
    const struct command *const c = a->n_rest ? find_command(a->rest[0]) : NULL;
    if (a->help) {
        if (c)
            help_command(c);
        else
            help(stdout);
        return XPL_EXIT_OK;
    }
    if (a->help_man) { // for docs/man
        xpl_man_tools(stdout);
        return XPL_EXIT_OK;
    }
    if (a->version) {
        (void)puts("xplanectl " XPL_VERSION);
        return XPL_EXIT_OK;
    }
    if (a->n_rest == 0) {
        help(stderr);
        return XPL_EXIT_USAGE;
    }
    if (!c) return unknown_command(a->rest[0]);
    if (a->n_rest - 1 >= c->min && a->n_rest - 1 <= c->max) return c->run(a);
    (void)fprintf(stderr, "Usage: xplanectl %s %s\n", c->name, c->arguments);
    return XPL_EXIT_USAGE;
}

int main(int argc, char **argv) {
    struct xpl_args a;
    xpl_std_fds_open();
    const int status = xpl_args_parse(&a, argc, argv) ? dispatch(&a) : XPL_EXIT_USAGE;
    xpl_args_fini(&a);
    return status;
}
