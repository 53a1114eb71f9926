// SPDX-License-Identifier: Apache-2.0
// Command line of xplanectl, as all commands get it.
#ifndef XPL_CLI_ARGS_H_
#define XPL_CLI_ARGS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/status.h"
#include "base/str.h"

struct xpl_command;
struct xpl_flag;

enum {
    XPL_EXIT_OK = 0,
    XPL_EXIT_FAILED = 1,
    XPL_EXIT_USAGE = 2,
    XPL_EXIT_PARTLY = 3,
    XPL_EXIT_THRESHOLD = 4,
    XPL_EXIT_UNKNOWN = 5 // whether a threshold is met
};

struct xpl_args {
    const char *server, *token_file, *tls_roots, *tls_cert, *tls_key, *tls_name;
    const char *out;                                      // -o; NULL or "-": standard output
    const char *logdir;                                   // --logdir, for export and capture
    const char *format, *filter, *id, *rocm_library_path; // of reports
    const char *text, *memory, *other;                    // of hlo
    const char *fail_if, *fail_if_possible;               // of compare and gate
    const char **removed;                                 // --remove of label, in order
    size_t n_removed;
    const char *section;               // of --format csv
    const struct xpl_command *command; // its row; after the checks of main.c
    const char *label, *dir;           // of history
    long schedule, last, since_ms;
    const char **metrics; // --metric, in order
    size_t n_metrics;
    const char *prefix, *match, *min_duration, *max_events, *plane, *by, *by_id,
        *rules;         // of events
    const char **hosts; // --host, in order
    size_t n_hosts;
    const char **options; // --option key=value as key, value, ...; strings are owned
    size_t n_options;     // pairs
    const char **rest;    // what is no flag, the command's name first
    size_t n_rest;
    const struct xpl_flag **given; // what is one, in order
    size_t n_given;
    // Of captures and imports; times in milliseconds, 0 when not given.
    bool join; // of paths
    const char *session, *host_names, *remote_logdir;
    const char **advanced; // --advanced key=value, as `options`
    size_t n_advanced;
    long duration_ms, delay_ms, every_ms, keep_age_ms, keep, keep_bytes, retries;
    long connect_timeout_ms, answer_timeout_ms;
    long host_tracer, device_tracer, python_tracer; // -1: not given
    bool direct, continuous, detach, quiet;
    long jobs; // -j; 0: all processors
    long timeout_ms;
    bool dispatch_events, counter_samples, unfinished; // of reports
    // Of captures by reports' programs.
    const char *mode, *filter_function, *filter_command_buffer, *filter_command_index;
    const char *filter_physical_device, *filter_queue;
    const char **counters; // --counter, in order
    size_t n_counters;
    long flush_interval_ms, repeat;
    bool table;                // tool and analyze: tables as text
    bool strict;               // an answer with warnings is a failure
    bool json, csv;            // what --format says, too
    const char *base;          // of gate
    const char *store, *shard; // of convert
    bool allow_single;         // of compare and gate
    bool all, help, help_man, version, agents_md, dry_run;
};

// After xpl_flags_parse (cli/commands/flags.h), whatever it returned.
void xpl_args_fini(struct xpl_args *a);
// Whether the hosts that were named have `host` among them; all do when none was.
bool xpl_args_name_host(const struct xpl_args *a, xpl_str_t host);

// One command each; `a` has as many rest arguments as the command table says.
// Without a command; XPL_EXIT_USAGE when no daemon answers.
int xpl_cmd_newest(const struct xpl_args *a);
int xpl_report_run(const struct xpl_args *a);
int xpl_cmd_sessions(const struct xpl_args *a);
int xpl_runs_hosts(const struct xpl_args *a);
int xpl_runs_tools(const struct xpl_args *a);
int xpl_runs_tool(const struct xpl_args *a);
int xpl_cmd_summary(const struct xpl_args *a);
int xpl_cmd_analyze(const struct xpl_args *a);
int xpl_runs_label(const struct xpl_args *a);
int xpl_runs_fleet(const struct xpl_args *a);
int xpl_runs_convert(const struct xpl_args *a);
int xpl_runs_history(const struct xpl_args *a);
int xpl_runs_compare(const struct xpl_args *a);
int xpl_runs_gate(const struct xpl_args *a);
int xpl_runs_join(const struct xpl_args *a);
int xpl_runs_aggregate(const struct xpl_args *a);
int xpl_cmd_findings(const struct xpl_args *a);
int xpl_named_events(const struct xpl_args *a);
int xpl_statement_run(const struct xpl_args *a);
int xpl_cmd_export(const struct xpl_args *a);
int xpl_cmd_hlo(const struct xpl_args *a);
int xpl_cmd_capture(const struct xpl_args *a);
int xpl_cmd_captures(const struct xpl_args *a);
int xpl_cmd_cancel(const struct xpl_args *a);
int xpl_cmd_schedules(const struct xpl_args *a);
int xpl_cmd_unschedule(const struct xpl_args *a);
int xpl_cmd_import(const struct xpl_args *a);
int xpl_cmd_delete(const struct xpl_args *a);
int xpl_commands_completion(const struct xpl_args *a);
int xpl_agents_run(const struct xpl_args *a);

// The answer of a tool for paths, made here, with the flags' hosts and options; *out is the
// caller's to free in any case.  Says on stderr why there is none.  Returns the exit status.
struct xpl_buf;
int xpl_analyze(const struct xpl_args *a, const char *tool, const char *const *paths,
                size_t n_paths, struct xpl_buf *out);
// Writes a message to stderr as one line, after the program's name; what it quotes may be foreign
// (xpl_terminal_text).
void xpl_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
// Says on stderr why a request failed: the sentence alone, without the name that RPCs have for its
// kind.  Returns the exit status: XPL_EXIT_USAGE where what was asked is wrong whatever there is,
// XPL_EXIT_FAILED otherwise; the same of a daemon's refusal and of this program's.
int xpl_failed(xpl_status_t code, const char *message);
// The exit status of an answer, with or without warnings beside it: a damaged file that a report
// reads gives XPL_EXIT_PARTLY.
int xpl_answered(const char *tool, bool warned);
// Says that an answer with warnings is none for --strict.  Returns the exit status.
int xpl_refuse_partial(void);
// The exit status of two answers, of which the first is there.
int xpl_both_answered(int first, int second);
// Whether a status comes with an answer, be it of what a damaged file still has.
bool xpl_is_answered(int status);

// Says on stderr what the answer does without because of a host, once for each path of a run.
void xpl_warn_of_host(const char *run, xpl_str_t host, xpl_str_t text);
// Says on stderr what a file lost of which an XSpace was made (struct xpl_profile, partial): where
// and why, as a daemon does.
struct xpl_exec;
void xpl_warn_of_view(const char *run, xpl_str_t host, const char *path, xpl_bytes_t file,
                      xpl_bytes_t xspace, struct xpl_exec *exec);
// Says on stderr which files of a directory do not count.
struct xpl_inputs;
void xpl_warn_left_out(const struct xpl_inputs *in);
// Writes a text to -o or standard output.  False after saying why on stderr.
bool xpl_write_out(const struct xpl_args *a, const void *p, size_t n);
// The same of a text and the end of its line.
bool xpl_write_line(const struct xpl_args *a, const void *p, size_t n);
// Writes what `print` prints of `what` to -o or standard output.  It returns false when memory ran
// out, and then no file is left.  Returns the exit status, after saying on stderr why it is none.
int xpl_write_text(const struct xpl_args *a, bool (*print)(const void *what, FILE *out),
                   const void *what);
// A tool's answer: as it is, or its tables as --format says.
bool xpl_write_answer(const struct xpl_args *a, const char *tool, const void *p, size_t n);

#endif
