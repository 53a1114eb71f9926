// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/flags.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/near.h"
#include "base/text/parse.h"
#include "base/text/units.h"
#include "capture/capture.h"

#define DAY_MS    86400000L
#define AT(field) offsetof(struct xpl_args, field)

#define OF_RUNS                                                                                    \
    "tool summary findings report compare gate aggregate events sql analyze export hlo reports"
#define OF_TOOLS  "tool summary findings report compare gate aggregate events analyze hlo"
#define OF_PATHS  OF_TOOLS " sql export"
#define OF_EVENTS "events"
// Of the commands whose rows have formats, JSON among them, or sections.
#define OF_FORMATS  "+formats"
#define OF_JSON     "+json"
#define OF_SECTIONS "+sections"
#define OF_REPORTS  "reports" // of the command that has some

// In the order of help.
const struct xpl_flag xpl_flag_rows[] = {
    // Of all commands.
    {"server", 0, XPL_FLAG_TEXT, AT(server), 0, 0, NULL, "ADDR", NULL,
     "$XPLANED_SERVER, 127.0.0.1:50551", "the daemon: HOST:PORT or unix:/PATH"},
    {"output", 'o', XPL_FLAG_TEXT, AT(out), 0, 0, NULL, "FILE", NULL, "standard output",
     "output file, written atomically"},
    {"timeout-ms", 0, XPL_FLAG_NUMBER, AT(timeout_ms), 0, DAY_MS, NULL, "N", NULL, "300000",
     "time limit in milliseconds"},
    {"tls-roots", 0, XPL_FLAG_TEXT, AT(tls_roots), 0, 0, NULL, "FILE", NULL, NULL,
     "use TLS, trusting these PEM roots"},
    {"tls-cert", 0, XPL_FLAG_TEXT, AT(tls_cert), 0, 0, NULL, "FILE", NULL, NULL,
     "client certificate, PEM"},
    {"tls-key", 0, XPL_FLAG_TEXT, AT(tls_key), 0, 0, NULL, "FILE", NULL, NULL,
     "private key of --tls-cert, PEM"},
    {"tls-name", 0, XPL_FLAG_TEXT, AT(tls_name), 0, 0, NULL, "NAME", NULL, NULL,
     "host name in the daemon's certificate"},
    {"token-file", 0, XPL_FLAG_TEXT, AT(token_file), 0, 0, NULL, "FILE", NULL, NULL,
     "send the bearer token in the first line of FILE"},
    {"help", 'h', XPL_FLAG_SWITCH, AT(help), 0, 0, NULL, NULL, NULL, NULL,
     "show help; with a command, the help of that command"},
    {"version", 0, XPL_FLAG_SWITCH, AT(version), 0, 0, NULL, NULL, NULL, NULL, "show the version"},
    {"agents-md", 0, XPL_FLAG_SWITCH, AT(agents_md), 0, 0, NULL, NULL, NULL, NULL,
     "print a Markdown guide for AI agents: workflow, commands with sample output, traps"},
    {"help-man", 0, XPL_FLAG_SWITCH, AT(help_man), 0, 0, "", NULL, NULL, NULL, NULL},
    // Of several.
    {"format", 0, XPL_FLAG_TEXT, AT(format), 0, 0, OF_FORMATS, "FORMAT", NULL, NULL,
     "the form of the answer"},
    {"json", 0, XPL_FLAG_SWITCH, AT(json), 0, 0, OF_JSON, NULL, NULL, NULL,
     "the same as --format json"},
    {"section", 0, XPL_FLAG_TEXT, AT(section), 0, 0, OF_SECTIONS, "NAME", NULL, NULL,
     "with --format csv: the table to write, by name, or by number if tables have no names"},
    {"host", 0, XPL_FLAG_HOST, 0, 0, 0, OF_RUNS, "HOST", NULL, "all, combined",
     "only this host; may be given several times"},
    {"option", 0, XPL_FLAG_OPTION, 0, 0, 0, OF_TOOLS, "KEY=VALUE", NULL, NULL,
     "option of the tool; may be given several times"},
    {"jobs", 'j', XPL_FLAG_NUMBER, AT(jobs), 0, 1024, OF_PATHS " history convert", "N", NULL,
     "one per processor", "number of threads when no daemon is used"},
    {"logdir", 0, XPL_FLAG_TEXT, AT(logdir), 0, 0, "export reports join", "DIR", NULL, NULL,
     "log directory of the session, if a session is named instead of paths"},
    {"logdir", 0, XPL_FLAG_TEXT, AT(logdir), 0, 0, "convert", "DIR", NULL, "$XPLANED_LOGDIR",
     "log directory or bucket of the sessions"},
    {"store", 0, XPL_FLAG_TEXT, AT(store), 0, 0, "convert", "URL", NULL, "$XPLANED_STORE",
     "the database of the daemons that are to answer: postgresql://USER@HOST:PORT/DATABASE"},
    {"shard", 0, XPL_FLAG_TEXT, AT(shard), 0, 0, "convert", "I/N", NULL, "0/1",
     "only the I-th of N parts of the hosts, from 0"},
    {"join", 0, XPL_FLAG_SWITCH, AT(join), 0, 0, "summary findings analyze export", NULL, NULL,
     NULL,
     "a directory of runs means the newest of them, with those of the same job that were captured "
     "at the same time into separate directories"},
    {"strict", 0, XPL_FLAG_SWITCH, AT(strict), 0, 0, "tool summary findings analyze", NULL, NULL,
     NULL, "fail if the answer lacks a host or has another warning"},
    {"table", 0, XPL_FLAG_SWITCH, AT(table), 0, 0, "tool analyze", NULL, NULL, NULL,
     NULL}, // the older form of --format table
    {"all", 0, XPL_FLAG_SWITCH, AT(all), 0, 0, "tools", NULL, NULL, NULL,
     "all tools of this program, without a daemon"},
    // Of captures and imports.
    {"direct", 0, XPL_FLAG_SWITCH, AT(direct), 0, 0, "capture", NULL, NULL, NULL,
     "contact the targets directly, without a daemon; needs --logdir"},
    {"logdir", 0, XPL_FLAG_TEXT, AT(logdir), 0, 0, "capture", "DIR", NULL, NULL,
     "with --direct: directory for the session"},
    {"duration", 0, XPL_FLAG_TIME, AT(duration_ms), 1, XPL_CAPTURE_MAX_DURATION_MS, "capture",
     "TIME", NULL, "1s", "how long to record, at most one hour"},
    {"delay", 0, XPL_FLAG_TIME, AT(delay_ms), 0, XPL_CAPTURE_MAX_DURATION_MS, "capture", "TIME",
     NULL, "0s", "wait this long before recording"},
    {"session", 0, XPL_FLAG_TEXT, AT(session), 0, 0, "capture import join reports", "NAME", NULL,
     "the time", "session name; a capture appends a number if the name is taken"},
    {"host-names", 0, XPL_FLAG_TEXT, AT(host_names), 0, 0, "capture", "A,B", NULL,
     "the targets, with _ for the colon", "names for the hosts' files, one per target"},
    {"retries", 0, XPL_FLAG_NUMBER, AT(retries), 0, XPL_CAPTURE_MAX_RETRIES, "capture", "N", NULL,
     "0", "retry hosts that are unreachable, busy or idle"},
    {"retries", 0, XPL_FLAG_NUMBER, AT(retries), 0, XPL_CAPTURE_MAX_RETRIES, "import", "N", NULL,
     "3", "resume up to N times if the connection breaks"},
    {"host-tracer", 0, XPL_FLAG_NUMBER, AT(host_tracer), 0, 1000, "capture", "N", NULL, "2",
     "level of the host's tracer; 0 is off"},
    {"device-tracer", 0, XPL_FLAG_NUMBER, AT(device_tracer), 0, 1000, "capture", "N", NULL, "1",
     "level of the devices' tracer; 0 is off"},
    {"python-tracer", 0, XPL_FLAG_NUMBER, AT(python_tracer), 0, 1000, "capture", "N", NULL, "0",
     "level of Python's tracer; 0 is off"},
    {"advanced", 0, XPL_FLAG_ADVANCED, 0, 0, 0, "capture", "KEY=VALUE", NULL, NULL,
     "an entry of the servers' advanced_configuration: true, false, a whole number, or text; may "
     "be given several times"},
    {"connect-timeout", 0, XPL_FLAG_TIME, AT(connect_timeout_ms), 0, DAY_MS, "capture", "TIME",
     NULL, "10s", "with --direct: time limit for connecting to a host"},
    {"answer-timeout", 0, XPL_FLAG_TIME, AT(answer_timeout_ms), 0, DAY_MS, "capture", "TIME", NULL,
     "60s, or twice the duration if that is longer",
     "with --direct: time limit for a host's answer after the end of the capture"},
    {"remote-logdir", 0, XPL_FLAG_TEXT, AT(remote_logdir), 0, 0, "capture", "DIR", NULL, NULL,
     "log directory as the hosts see it; for old servers, which write the profile themselves"},
    {"every", 0, XPL_FLAG_TIME, AT(every_ms), 1000, 366 * DAY_MS, "capture", "TIME", NULL, NULL,
     "repeat the capture at this interval until unschedule, also across restarts of the daemon; "
     "prints the schedule's number"},
    {"continuous", 0, XPL_FLAG_SWITCH, AT(continuous), 0, 0, "capture", NULL, NULL, NULL,
     "with --every: the servers record all the time, and the daemon fetches their recordings"},
    {"keep", 0, XPL_FLAG_NUMBER, AT(keep), 0, 1000000, "capture", "N", NULL, NULL,
     "with --every: how many of the schedule's sessions to keep; the newest is always kept"},
    {"keep-age", 0, XPL_FLAG_TIME, AT(keep_age_ms), 0, 3660 * DAY_MS, "capture", "TIME", NULL, NULL,
     "with --every: how long to keep the schedule's sessions"},
    {"keep-bytes", 0, XPL_FLAG_SIZE, AT(keep_bytes), 0, 1L << 60, "capture", "SIZE", NULL, NULL,
     "with --every: maximum size of the schedule's sessions, such as 20GiB"},
    {"detach", 0, XPL_FLAG_SWITCH, AT(detach), 0, 0, "capture", NULL, NULL, NULL,
     "the daemon keeps capturing after this command exits"},
    {"quiet", 0, XPL_FLAG_SWITCH, AT(quiet), 0, 0, OF_RUNS " hosts tools history capture import",
     NULL, NULL, NULL,
     "do not show progress (only shown on a terminal); for captures print only the result"},
    {"dry-run", 0, XPL_FLAG_SWITCH, AT(dry_run), 0, 0, "agents", NULL, NULL, NULL,
     "only print what would be written"},
    // Of programs.
    {"text", 0, XPL_FLAG_TEXT, AT(text), 0, 0, "hlo", "FORM", "short|long|pbtxt|pb|json|dot|html",
     "short", "output form of MODULE; --option show_metadata=true adds the source of each op"},
    {"memory", 0, XPL_FLAG_TEXT, AT(memory), 0, 0, "hlo", "BY", "lines|ops", NULL,
     "table of the memory in use at MODULE's peak, by source line or by op and shape"},
    {"other", 0, XPL_FLAG_TEXT, AT(other), 0, 0, "hlo", "MODULE", NULL, NULL,
     "with --memory: compare with this program, largest difference first"},
    // Of runs.
    {"label", 0, XPL_FLAG_TEXT, AT(label), 0, 0, "history gate sessions", "LABEL", NULL, NULL,
     "only sessions with this label"},
    {"schedule", 0, XPL_FLAG_NUMBER, AT(schedule), 1, LONG_MAX, "history", "ID", NULL, NULL,
     "only sessions of this schedule"},
    {"dir", 0, XPL_FLAG_TEXT, AT(dir), 0, 0, "history", "DIR", NULL, NULL,
     "only sessions below this directory of the log directory; a local directory needs no daemon"},
    {"metric", 0, XPL_FLAG_METRIC, 0, 0, 0, "history", "NAME", NULL, "step_time",
     "metric to show, see docs/history.md; may be given several times"},
    {"since", 0, XPL_FLAG_TIME, AT(since_ms), 1, 36600 * DAY_MS, "history", "TIME", NULL, NULL,
     "only sessions captured within this time, such as 30d"},
    {"last", 0, XPL_FLAG_NUMBER, AT(last), 1, 1024, "history gate sessions", "N", NULL,
     "100; of gate 10; of sessions as csv and json all", "only the newest N sessions"},
    {"remove", 0, XPL_FLAG_REMOVED, 0, 0, 0, "label", "LABEL", NULL, NULL,
     "remove a label; may be given several times"},
    {"base", 0, XPL_FLAG_TEXT, AT(base), 0, 0, "gate report", "RUN[,RUN...]", NULL, NULL,
     "the baseline: runs, or a directory of runs; of report one run"},
    {"fail-if", 0, XPL_FLAG_TEXT, AT(fail_if), 0, 0, "compare gate", "'METRIC>N%'", NULL, NULL,
     "exit with status 4 if step_time, median_step_time or a cause of docs/findings.md certainly "
     "grew, and by more than N percent (< for less), with 5 if that cannot be told from noise"},
    {"fail-if-possible", 0, XPL_FLAG_TEXT, AT(fail_if_possible), 0, 0, "compare gate",
     "'METRIC>N%'", NULL, NULL,
     "exit with status 4 if the 95% interval has a difference of more than N percent"},
    {"allow-single", 0, XPL_FLAG_SWITCH, AT(allow_single), 0, 0, "compare gate", NULL, NULL, NULL,
     "judge one run a side by the noise within it, which is less than that between runs"},
    {"plane", 0, XPL_FLAG_TEXT, AT(plane), 0, 0, OF_EVENTS, "TEXT", NULL, "all",
     "only planes whose names contain TEXT, ignoring case, such as gpu"},
    {"prefix", 0, XPL_FLAG_TEXT, AT(prefix), 0, 0, OF_EVENTS, "TEXT", NULL, "all; of ejkernel jit_",
     "only names that begin with TEXT"},
    {"match", 0, XPL_FLAG_TEXT, AT(match), 0, 0, OF_EVENTS, "REGEX", NULL, "all",
     "only names that match REGEX"},
    {"min-duration", 0, XPL_FLAG_TEXT, AT(min_duration), 0, 0, OF_EVENTS, "TIME", NULL,
     "0; of ejkernel 1us", "only events at least this long, such as 1us"},
    {"max-events", 0, XPL_FLAG_TEXT, AT(max_events), 0, 0, OF_EVENTS, "N", NULL,
     "all; of ejkernel 10000", "only the first N events of each profile"},
    {"by", 0, XPL_FLAG_TEXT, AT(by), 0, 0, OF_EVENTS, "KEY", "name|id", "name",
     "group rows by name, or by NAME(PROGRAM-SCOPE)"},
    {"by-id", 0, XPL_FLAG_TEXT, AT(by_id), 0, 0, OF_EVENTS, "REGEX", NULL, NULL,
     "additionally group times by the first capture group, over all runs, without the extremes if "
     "there are more than two"},
    {"rules", 0, XPL_FLAG_TEXT, AT(rules), 0, 0, OF_EVENTS, "RULES", "own|ejkernel", "own",
     "ejkernel: count exactly as ejKernel's profiler does"},
    // Of reports on files of one format, and of captures of these.
    {"filter", 0, XPL_FLAG_TEXT, AT(filter), 0, 0, OF_REPORTS, "GLOB", NULL, NULL,
     "only functions, operations or kinds of events whose names match; * and ? are wildcards"},
    {"id", 0, XPL_FLAG_TEXT, AT(id), 0, 0, OF_REPORTS, "N", NULL, NULL,
     "only that dispatch event, executable, command buffer, submission, memory event, allocation "
     "or counter sample"},
    {"dispatch_events", 0, XPL_FLAG_SWITCH, AT(dispatch_events), 0, 0, OF_REPORTS, NULL, NULL, NULL,
     "list each dispatch instead of totals; needs --format jsonl"},
    {"counter_samples", 0, XPL_FLAG_SWITCH, AT(counter_samples), 0, 0, OF_REPORTS, NULL, NULL, NULL,
     "list each counter sample in addition to the totals; needs --format jsonl"},
    {"unfinished", 0, XPL_FLAG_SWITCH, AT(unfinished), 0, 0, OF_REPORTS, NULL, NULL, NULL,
     "also read data after the end that the file's header states"},
    {"rocm_library_path", 0, XPL_FLAG_TEXT, AT(rocm_library_path), 0, 0, OF_REPORTS, "PATH", NULL,
     NULL, NULL},
    // As the format's own program calls it.
    {"agents_md", 0, XPL_FLAG_SWITCH, AT(agents_md), 0, 0, OF_REPORTS, NULL, NULL, NULL, NULL},
    {"mode", 0, XPL_FLAG_TEXT, AT(mode), 0, 0, OF_REPORTS, "MODE,...", NULL,
     "all that the driver of the program's --device can record",
     "capture: data to record, by the runtime's names"},
    {"host-names", 0, XPL_FLAG_TEXT, AT(host_names), 0, 0, OF_REPORTS, "NAME", NULL,
     "this machine's name", "capture: name of the session's host"},
    {"counter", 0, XPL_FLAG_COUNTER, 0, 0, 0, OF_REPORTS, "NAME", NULL, NULL,
     "capture: a hardware counter, for the mode counters or counter-ranges; may be given several "
     "times"},
    {"filter_function", 0, XPL_FLAG_TEXT, AT(filter_function), 0, 0, OF_REPORTS, "GLOB", NULL, NULL,
     "capture: record details only of these functions, if the driver supports it"},
    {"filter_command_buffer", 0, XPL_FLAG_TEXT, AT(filter_command_buffer), 0, 0, OF_REPORTS, "ID",
     NULL, NULL, "capture: the same for a command buffer"},
    {"filter_command_index", 0, XPL_FLAG_TEXT, AT(filter_command_index), 0, 0, OF_REPORTS, "N",
     NULL, NULL, "capture: the same for a command of its buffer"},
    {"filter_physical_device", 0, XPL_FLAG_TEXT, AT(filter_physical_device), 0, 0, OF_REPORTS, "N",
     NULL, NULL, "capture: the same for a device"},
    {"filter_queue", 0, XPL_FLAG_TEXT, AT(filter_queue), 0, 0, OF_REPORTS, "N", NULL, NULL,
     "capture: the same for a queue"},
    {"flush_interval", 0, XPL_FLAG_TIME, AT(flush_interval_ms), 1, DAY_MS, OF_REPORTS, "TIME", NULL,
     NULL,
     "capture: how often the program writes its data; a session of --logdir shows it at once"},
    {"repeat", 0, XPL_FLAG_NUMBER, AT(repeat), 1, 100000, OF_REPORTS, "N", NULL, NULL,
     "capture: run the program N times, as sessions NAME_1, NAME_2 and so on of --session NAME"},
};
const size_t xpl_n_flags = sizeof xpl_flag_rows / sizeof *xpl_flag_rows;

// ---- which are for which ----

static bool has_word(const char *list, const char *word) {
    const size_t n = strlen(word);
    for (const char *p = list; (p = strstr(p, word)); p += n)
        if ((p == list || strchr(" |", p[-1])) && (!p[n] || strchr(" |", p[n]))) return true;
    return false;
}

static bool is_named(const struct xpl_flag *f, const struct xpl_command *c) {
    return has_word(f->commands, c->name) || (c->report && has_word(f->commands, OF_REPORTS));
}

bool xpl_flag_is_for(const struct xpl_flag *f, const struct xpl_command *c) {
    if (!f->commands || !f->help) return false;
    if (strcmp(f->commands, OF_FORMATS) == 0) return c->formats;
    if (strcmp(f->commands, OF_JSON) == 0) return c->formats && has_word(c->formats, "json");
    if (strcmp(f->commands, OF_SECTIONS) == 0)
        return c->sections && (c->sections[1].name || !c->sections[0].keys);
    return is_named(f, c);
}

const char *xpl_flag_values(const struct xpl_flag *f, const struct xpl_command *c,
                            char buf[XPL_FLAG_VALUES]) {
    if (c && strcmp(f->name, "format") == 0) return c->formats;
    if (!c || strcmp(f->name, "section") != 0 || !c->sections[0].keys) return f->values;
    size_t n = 0;
    for (const struct xpl_section *s = c->sections; s->name && n < XPL_FLAG_VALUES; s++)
        n += (size_t)snprintf(buf + n, XPL_FLAG_VALUES - n, "%s%s", n ? "|" : "", s->name);
    return buf;
}

// Those that are not for users are for commands, too.
static bool is_taken(const struct xpl_flag *f, const struct xpl_command *c) {
    return !f->commands || xpl_flag_is_for(f, c) || (!f->help && is_named(f, c));
}

// The parser takes the first row of a name: another one may be the command's.
static bool is_name_taken(const char *name, const struct xpl_command *c) {
    for (size_t i = 0; i < xpl_n_flags; i++)
        if (strcmp(xpl_flag_rows[i].name, name) == 0 && is_taken(&xpl_flag_rows[i], c)) return true;
    return false;
}

static bool refuse_flag(const char *name, const struct xpl_command *c) {
    struct xpl_near near = xpl_near_begin(xpl_str_from(name));
    char hint[XPL_NEAR_TEXT];
    for (size_t i = 0; i < xpl_n_flags; i++)
        if (xpl_flag_rows[i].help && is_taken(&xpl_flag_rows[i], c))
            xpl_near_add(&near, xpl_str_from(xpl_flag_rows[i].name));
    (void)fprintf(stderr, "xplanectl: --%s is not an option of %s%s\nTry: xplanectl %s --help\n",
                  name, c->name, xpl_near_flag(&near, hint), c->name);
    return false;
}

bool xpl_flags_check(const struct xpl_args *a, const struct xpl_command *c) {
    for (size_t i = 0; i < a->n_given; i++)
        if (!is_name_taken(a->given[i]->name, c)) return refuse_flag(a->given[i]->name, c);
    return true;
}

// ---- reading them ----

static bool usage(const char *what, const char *arg) {
    (void)fprintf(stderr, "xplanectl: %s%s%s\nTry: xplanectl --help\n", what, arg ? ": " : "",
                  arg ? arg : "");
    return false;
}

static bool add_pair(const char **list, size_t *n, const char *name, const char *kv) {
    const char *const eq = strchr(kv, '=');
    if (!eq || eq == kv) return usage(name, kv);
    char *key = xpl_sys_alloc(strlen(kv) + 1);
    if (!key) return usage("out of memory", NULL);
    strcpy(key, kv);
    key[eq - kv] = 0;
    list[2 * *n] = key;
    list[2 * *n + 1] = key + (eq - kv) + 1;
    ++*n;
    return true;
}

static bool unknown(const char *arg, const char *name) {
    struct xpl_near near = xpl_near_begin(xpl_str_from(name));
    char hint[XPL_NEAR_TEXT];
    for (size_t i = 0; i < xpl_n_flags; i++)
        if (xpl_flag_rows[i].help) xpl_near_add(&near, xpl_str_from(xpl_flag_rows[i].name));
    (void)fprintf(stderr, "xplanectl: unknown option \"%s\"%s\nTry: xplanectl --help\n", arg,
                  xpl_near_flag(&near, hint));
    return false;
}

static bool refuse(const struct xpl_flag *row, const char *value, const char *why) {
    (void)fprintf(stderr, "xplanectl: --%s %s: %s\nTry: xplanectl --help\n", row->name, value, why);
    return false;
}

static bool number(const struct xpl_flag *row, const char *value, long *ret) {
    char why[64];
    int64_t v;
    if (xpl_parse_int(xpl_str_from(value), row->min, row->max, &v)) {
        *ret = (long)v;
        return true;
    }
    (void)snprintf(why, sizeof why, "not a number from %ld to %ld", row->min, row->max);
    return refuse(row, value, why);
}

// A time or a size, with its unit.
static bool scaled(const struct xpl_flag *row, const char *value, enum xpl_unit_kind kind,
                   long *ret) {
    uint64_t v;
    const enum xpl_unit_result r = xpl_units_parse(value, kind, &v);
    char why[XPL_UNITS_TEXT], min[XPL_UNITS_VALUE], max[XPL_UNITS_VALUE];
    if (r != XPL_UNIT_OK) return refuse(row, value, xpl_units_explain(value, kind, r, why));
    if (v >= (uint64_t)row->min && v <= (uint64_t)row->max) {
        *ret = (long)v;
        return true;
    }
    (void)snprintf(why, sizeof why, "not from %s to %s",
                   xpl_units_show((uint64_t)row->min, kind, min),
                   xpl_units_show((uint64_t)row->max, kind, max));
    return refuse(row, value, why);
}

static bool assign(struct xpl_args *a, const struct xpl_flag *row, const char *value) {
    void *const to = (char *)a + row->at;
    switch (row->kind) {
        case XPL_FLAG_TEXT: *(const char **)to = value; return true;
        case XPL_FLAG_NUMBER: return number(row, value, to);
        case XPL_FLAG_TIME: return scaled(row, value, XPL_UNIT_TIME, to);
        case XPL_FLAG_SIZE: return scaled(row, value, XPL_UNIT_SIZE, to);
        case XPL_FLAG_HOST: a->hosts[a->n_hosts++] = value; return true;
        case XPL_FLAG_REMOVED: a->removed[a->n_removed++] = value; return true;
        case XPL_FLAG_METRIC: a->metrics[a->n_metrics++] = value; return true;
        case XPL_FLAG_COUNTER: a->counters[a->n_counters++] = value; return true;
        case XPL_FLAG_OPTION:
            return add_pair(a->options, &a->n_options, "--option needs key=value", value);
        case XPL_FLAG_ADVANCED:
            return add_pair(a->advanced, &a->n_advanced, "--advanced needs key=value", value);
        case XPL_FLAG_SWITCH: break;
    }
    return false;
}

static const struct xpl_flag *find_row(const char *name, size_t len) {
    for (size_t i = 0; i < xpl_n_flags; i++)
        if (strlen(xpl_flag_rows[i].name) == len && memcmp(xpl_flag_rows[i].name, name, len) == 0)
            return &xpl_flag_rows[i];
    return NULL;
}

// The long name of "-o", or "".
static const char *long_name(char c) {
    for (size_t i = 0; i < xpl_n_flags; i++)
        if (c && xpl_flag_rows[i].letter == c) return xpl_flag_rows[i].name;
    return "";
}

static bool flag(struct xpl_args *a, int argc, char **argv, int *at) {
    const char *const arg = argv[(*at)++];
    const bool is_long = arg[1] == '-';
    const char *const name = is_long ? arg + 2 : long_name(arg[1]);
    const char *const eq = is_long ? strchr(name, '=') : NULL;
    const struct xpl_flag *const row = find_row(name, eq ? (size_t)(eq - name) : strlen(name));
    const char *value = eq ? eq + 1 : !is_long && arg[2] ? arg + 2 : NULL;
    if (!row) return unknown(arg, name);
    a->given[a->n_given++] = row;
    if (row->kind == XPL_FLAG_SWITCH) {
        if (value) return usage("option takes no value", arg);
        *(bool *)((char *)a + row->at) = true;
        return true;
    }
    if (!value) {
        if (*at >= argc) return usage("option needs a value", arg);
        value = argv[(*at)++];
    }
    return assign(a, row, value);
}

bool xpl_flags_parse(struct xpl_args *a, int argc, char **argv) {
    *a = (struct xpl_args){.host_tracer = -1, .device_tracer = -1, .python_tracer = -1};
    const size_t n = (size_t)argc + 1;
    a->hosts = xpl_sys_alloc(n * sizeof *a->hosts);
    a->counters = xpl_sys_alloc(n * sizeof *a->counters);
    a->removed = xpl_sys_alloc(n * sizeof *a->removed);
    a->metrics = xpl_sys_alloc(n * sizeof *a->metrics);
    a->options = xpl_sys_alloc(2 * n * sizeof *a->options);
    a->advanced = xpl_sys_alloc(2 * n * sizeof *a->advanced);
    a->rest = xpl_sys_alloc(n * sizeof *a->rest);
    a->given = xpl_sys_alloc(n * sizeof *a->given);
    if (!a->hosts || !a->counters || !a->removed || !a->metrics || !a->options || !a->advanced ||
        !a->rest || !a->given)
        return usage("out of memory", NULL);
    bool flags = true;
    for (int at = 1; at < argc;) {
        const char *const arg = argv[at];
        if (flags && strcmp(arg, "--") == 0) {
            flags = false;
            at++;
        } else if (flags && arg[0] == '-' && arg[1]) {
            if (!flag(a, argc, argv, &at)) return false;
        } else {
            a->rest[a->n_rest++] = argv[at++];
        }
    }
    return true;
}
