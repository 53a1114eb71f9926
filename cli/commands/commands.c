// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/commands.h"

#include "cli/args.h"
#include "cli/iree/command.h"

// ---- tables of their answers ----

static const struct xpl_section sessions_tables[] = {
    {"sessions", "",
     "name|kind|hosts|bytes|captured_unix_ms|modified_unix_ms|state|progress|labels"},
    {NULL, NULL, NULL}};
static const struct xpl_section label_tables[] = {
    {"labels", "", "label|sessions|newest|newest_captured_unix_ms"},
    {"session", "", "session|labels"},
    {NULL, NULL, NULL}};
static const struct xpl_section fleet_tables[] = {
    {"daemons", "daemons", "name|role|version|jobs|expires_ms"},
    {"work", "work", "state|daemon|session|host|files|attempt|queued_ms"},
    {"leases", "leases", "kind|name|daemon|expires_ms"},
    {NULL, NULL, NULL}};
static const struct xpl_section convert_tables[] = {{"left", "left", "session|host|why"},
                                                    {NULL, NULL, NULL}};
static const struct xpl_section hosts_tables[] = {
    {"hosts", "", "name|kind|bytes|modified_unix_ms|state|error"}, {NULL, NULL, NULL}};
static const struct xpl_section tools_tables[] = {
    {"session", "", "name"},
    {"all", "tools", "name|aliases|version|answer_version|hosts|shown|content_type|worker_served"},
    {NULL, NULL, NULL}};
static const struct xpl_section numbered_tables[] = {{"N", NULL, NULL}, {NULL, NULL, NULL}};
static const struct xpl_section summary_tables[] = {
    {"device_ops", "device_ops",
     "name|category|framework_op|occurrences|time_ps|self_time_ps|gigaflops_per_second|"
     "gibibytes_per_second|no_rates|bound_by"},
    {"host_ops", "host_ops", "name|category|framework_op|occurrences|time_ps|self_time_ps"},
    {"kernels", "kernels",
     "name|op|occurrences|total_ns|min_ns|max_ns|grid|block|registers_per_thread|"
     "static_shared_bytes|dynamic_shared_bytes|occupancy_percent|tensor_core"},
    {"steps", "steps", "step|name|mean_of_cores_ps|slowest_core_ps|cores"},
    {"memory", "memory",
     "host|allocator|peak_bytes|capacity_bytes|heap_bytes|stack_bytes|fragmentation_percent"},
    {"findings", "findings",
     "kind|title|share_percent|saving_percent|time_ps|saving_ps|text|advice|link|within"},
    {NULL, NULL, NULL}};
static const struct xpl_section findings_tables[] = {
    {"findings", "findings",
     "kind|title|share_percent|saving_percent|time_ps|saving_ps|text|advice|link|within"},
    {NULL, NULL, NULL}};
static const struct xpl_section compare_tables[] = {
    {"ops", "ops",
     "op|category|source_file|source_line|shape|state|a_ps|b_ps|difference_ps|a_count|b_count|"
     "a_name"},
    {"kernels", "kernels", "kernel|op|state|a_ps|b_ps|difference_ps|a_count|b_count|a_name"},
    {"times", "times",
     "cause|a_ps|b_ps|difference_ps|difference_percent|interval_ps.0|interval_ps.1|detectable_ps|"
     "noise"},
    {"memory", "memory",
     "allocator|state|a_peak_bytes|b_peak_bytes|difference_bytes|difference_percent"},
    {"steps", "",
     "a.steps|a.mean_step_ps|a.median_step_ps|a.std_step_ps|b.steps|b.mean_step_ps|"
     "b.median_step_ps|b.std_step_ps|step_time.difference_ps|step_time.difference_percent|"
     "step_time.interval_ps.0|step_time.interval_ps.1|step_time.a_ps|step_time.b_ps|"
     "step_time.detectable_ps|step_time.noise|median_step_time.a_ps|median_step_time.b_ps"},
    {NULL, NULL, NULL}};
static const struct xpl_section aggregate_tables[] = {
    {"runtime", "",
     "runs|hosts|devices|runtime.of|runtime.samples|runtime.mean_ps|runtime.min_ps|"
     "runtime.max_ps|runtime.std_ps|compile.count|compile.total_ps|flops.model_flops|"
     "flops.bf16_flops|flops.busy_ps|flops.model_flops_per_second|flops.bf16_flops_per_second|"
     "flops.peak_flops_per_second|flops.utilization_percent|flops.uncapped_utilization_percent"},
    {"times", "times", "cause|mean_ps"},
    {"memory", "memory", "allocator|peak_bytes|capacity_bytes"},
    {NULL, NULL, NULL}};
static const struct xpl_section captures_tables[] = {
    {"captures", "", "id|begin_unix_ms|end_unix_ms|state|session|schedule_id|message"},
    {NULL, NULL, NULL}};
static const struct xpl_section schedules_tables[] = {
    {"schedules", "", "id|every_ms|next_unix_ms|continuous|last_capture_id|sessions|bytes|targets"},
    {NULL, NULL, NULL}};
static const struct xpl_section hlo_tables[] = {
    {"programs", "", "module|name|host|program_id|self_time_ps|bytes|computations|instructions"},
    {NULL, NULL, NULL}};

// ---- the commands ----

const struct xpl_command xpl_command_rows[] = {
    {.name = "sessions",
     .run = xpl_cmd_sessions,
     .arguments = "",
     .help = "list profile sessions, newest first",
     .about =
         "Shows each session's kind (the format of its files), hosts, size, capture time (from the "
         "profile, else from its name, else from its file) and conversion state. A session is "
         "partial if its capture lost hosts; the command hosts lists them with the reasons.",
     .formats = "table|csv|json",
     .sections = sessions_tables,
     .examples = "xplanectl sessions\nxplanectl sessions --label nightly --last 20\n"},
    {.name = "label",
     .run = xpl_runs_label,
     .max = 64,
     .arguments = "[SESSION [LABEL...]]",
     .help = "label a session to group it with others, or list labels",
     .about =
         "Without LABEL, lists the session's labels; without SESSION, all labels. A label is a "
         "letter or digit, followed by up to 63 letters, digits and . _ - + = @ : /",
     .formats = "table|csv|json",
     .sections = label_tables,
     .examples = "xplanectl label my_run nightly main\n"
                 "xplanectl label my_run --remove nightly\nxplanectl label\n"},
    {.name = "fleet",
     .run = xpl_runs_fleet,
     .arguments = "",
     .help = "list the daemons that share a database, and the work of each",
     .about = "Needs a daemon with --store postgresql://...; docs/scale.md describes the roles.",
     .formats = "table|csv|json",
     .sections = fleet_tables,
     .examples = "xplanectl fleet\nxplanectl fleet --section work --format csv\n"},
    {.name = "convert",
     .run = xpl_runs_convert,
     .min = 1,
     .max = 4096,
     .arguments = "SESSION...",
     .help = "convert the hosts of sessions for daemons that share a database, as a batch job",
     .about = "Runs xplaned (next to xplanectl, or of $PATH) on this machine, which makes the "
              "products of each host that tools read, and stores them in --store. Stored products "
              "are not made again: an interrupted run can be repeated. Lists hosts that are left, "
              "with status 3. docs/scale.md has jobs of Kubernetes and Slurm.",
     .formats = "table|csv|json",
     .sections = convert_tables,
     .examples =
         "xplanectl convert my_run --logdir /shared/logs --store postgresql://xplaned@db/xplaned\n"
         "xplanectl convert my_run --shard $SLURM_ARRAY_TASK_ID/16\n"},
    {.name = "hosts",
     .run = xpl_runs_hosts,
     .min = 1,
     .max = 1,
     .arguments = "RUN",
     .help = "list a run's hosts",
     .about = "Hosts that the capture lost are listed last, with the reason.",
     .formats = "table|csv|json",
     .sections = hosts_tables,
     .examples = "xplanectl hosts my_run\n"},
    {.name = "tools",
     .run = xpl_runs_tools,
     .max = 1,
     .arguments = "RUN|--all",
     .help = "list the tools available for a run; --all: all tools of this program, with options",
     .formats = "table|csv|json",
     .sections = tools_tables,
     .examples = "xplanectl tools my_run\nxplanectl tools --all\n"},
    {.name = "tool",
     .run = xpl_runs_tool,
     .min = 2,
     .max = 2,
     .arguments = "TOOL RUN",
     .help = "a tool's answer, byte for byte",
     .about = "The answer is JSON for nearly all tools. --format table and csv print its tables "
              "instead.",
     .formats = "json|table|csv",
     .sections = numbered_tables,
     .examples = "xplanectl tool op_profile my_run --option group_by=category -o op_profile.json\n"
                 "xplanectl tool hlo_stats my_run --format table\n"},
    {.name = "summary",
     .run = xpl_cmd_summary,
     .min = 1,
     .max = 4096,
     .joins = true,
     .arguments = "RUN...",
     .help = "findings, then ops, kernels, steps and memory as tables",
     .about = "Several RUNs, all sessions or all paths, are the hosts of one.",
     .formats = "table|csv|json",
     .sections = summary_tables,
     .examples = "xplanectl summary 2026_01_31_12_00_00\n"},
    {.name = "findings",
     .run = xpl_cmd_findings,
     .min = 1,
     .max = 4096,
     .joins = true,
     .arguments = "RUN...",
     .help = "rank the causes that make a run slow, with evidence and advice",
     .about =
         "Lists the greatest saving first. Each finding has its kind, its share of the time of "
         "all devices, the most it could save, the ops, steps and trace window where it "
         "shows, and advice. Several RUNs, all sessions or all paths, are the hosts of one.",
     .formats = "table|csv|json",
     .sections = findings_tables,
     .examples = "xplanectl findings my_run\nxplanectl findings profiles/my_run --json\n"},
    {.name = "report",
     .run = xpl_report_run,
     .min = 1,
     .max = 1,
     .arguments = "RUN",
     .help = "write one HTML file about a run: verdict, findings, tables, trace windows",
     .about =
         "The file needs no network and no JavaScript, and has at most 2 MB: it can be mailed, "
         "or kept with a change. With --base it begins with the comparison.",
     .examples = "xplanectl report my_run -o report.html\n"
                 "xplanectl report after --base before -o report.html\n"},
    {.name = "compare",
     .run = xpl_runs_compare,
     .min = 2,
     .max = 2,
     .arguments = "RUN[,RUN...] RUN[,RUN...]",
     .help = "compare two runs, or two groups of runs, A and B",
     .about = "Shows step times with a 95% interval of their difference, the time breakdown of a "
              "step, and ops, matched by properties that stay the same between compilations. Give "
              "three to five runs a side: the interval comes from the noise between runs.",
     .formats = "table|csv|json",
     .sections = compare_tables,
     .examples = "xplanectl compare before after\n"
                 "xplanectl compare a1,a2,a3 b1,b2,b3 --fail-if 'step_time>5%'\n"},
    {.name = "gate",
     .run = xpl_runs_gate,
     .min = 1,
     .max = 1024,
     .arguments = "RUN...",
     .help = "judge runs against a baseline, for CI: a table in Markdown, and an exit status",
     .about =
         "The baseline is --base, or the newest sessions of --label. A RUN that is a directory "
         "of runs means the newest of them. Without --fail-if the threshold is "
         "step_time>5%. The exit status is that of compare.",
     .formats = "markdown|json",
     .examples = "xplanectl gate run1 run2 run3 --base old1,old2,old3 -o gate.md\n"
                 "xplanectl gate profiles --label main --fail-if 'step_time>3%'\n"},
    {.name = "history",
     .run = xpl_runs_history,
     .arguments = "",
     .help =
         "show metrics over sessions in order of time, changes of level, and the causes and ops "
         "behind them",
     .about =
         "Covers the sessions with a label, of a schedule or below a directory, or all if they "
         "are of one program. Metrics are "
         "step_time, peak_memory and others of every profile, a cause of the time breakdown, "
         "op:NAME, kernel:NAME and memory:ALLOCATOR.",
     .formats = "table|csv|json",
     .examples = "xplanectl history --label nightly\n"
                 "xplanectl history --schedule 1 --metric peak_memory --last 30\n"
                 "xplanectl history --dir profiles --metric step_time --metric compute\n"},
    {.name = "aggregate",
     .run = xpl_runs_aggregate,
     .min = 1,
     .max = 1024,
     .arguments = "RUN...",
     .help = "aggregate repeated runs: runtime, compile time, FLOPs and rates, memory",
     .about = "Shows mean, minimum and deviation of the step times, compile time, FLOPs and their "
              "rates, utilization (capped at 100% and uncapped), and peak memory.",
     .formats = "table|csv|json",
     .sections = aggregate_tables,
     .examples = "xplanectl aggregate run_1 run_2 run_3\n"},
    {.name = "events",
     .run = xpl_named_events,
     .min = 1,
     .max = 4096,
     .arguments = "RUN...",
     .help = "count events and sum up their times, by name or by the number in a name",
     .about = "Nested events of one name count once. --plane selects planes.",
     .formats = "table|csv|json",
     .examples = "xplanectl events my_run --plane gpu --format csv\n"},
    {.name = "sql",
     .run = xpl_statement_run,
     .min = 1,
     .max = 4096,
     .arguments = "RUN... 'SELECT ...'",
     .help = "run a SQL statement over the events of profiles; docs/sql.md lists the tables",
     .about = "Runs one read-only SQLite statement over the tables events, stats, lines, planes, "
              "hlo_instructions and memory. Give only paths or only sessions. A daemon also has "
              "its tables of all sessions.",
     .formats = "table|csv|json",
     .examples =
         "xplanectl sql my_run 'SELECT name, sum(duration_ps) FROM events GROUP BY name'\n"},
    {.name = "analyze",
     .run = xpl_cmd_analyze,
     .min = 2,
     .max = 4096,
     .arguments = "TOOL PATH...",
     .help = "a tool's answer from files or one run directory, without a daemon",
     .about = "Gives the same answer as tool. Each file is a host, named after the file; two equal "
              "names are wrong usage.",
     .formats = "json|table|csv",
     .sections = numbered_tables,
     .examples = "xplanectl analyze framework_op_stats profiles/my_run\n"
                 "xplanectl analyze hlo_stats profiles/my_run --format table\n"},
    {.name = "capture",
     .run = xpl_cmd_capture,
     .min = 1,
     .max = 1024,
     .arguments = "TARGET[,TARGET...]",
     .help = "profile running programs (HOST:PORT of their profiler servers); prints the session's "
             "name",
     .about = "Captures all targets at the same time, through their profiler servers "
              "(jax.profiler.start_server and the like), as one session. A TARGET is HOST:PORT, "
              "[IPV6]:PORT or unix:/PATH; pytorch:HOST[:PORT] is an xplaned-agent --pytorch, whose "
              "PyTorch processes become the session's hosts. Standard output gets only the "
              "session's name; standard "
              "error gets the outcome of each host. A host that is down, idle, busy or slow is "
              "reported with the reason and a remedy; the other hosts are stored. The daemon "
              "captures into its log directory; with --direct, this command captures into "
              "--logdir. An interrupt (Ctrl-C) cancels the capture, leaves no session and frees "
              "the hosts. Times are written as 500ms, 2s, 1m, 1h.",
     .formats = "text|json",
     .examples = "xplanectl capture host1:9999,host2:9999 --duration 2s\n"
                 "xplanectl capture host1:9999 --direct --logdir ~/logs\n"
                 "xplanectl capture pytorch:host1 --duration 1s\n"
                 "xplanectl capture host1:9999,host2:9999 --every 10m --keep 50\n"},
    {.name = "captures",
     .run = xpl_cmd_captures,
     .arguments = "",
     .help = "list the history of captures, newest first",
     .about = "--format json also shows each host's outcome.",
     .formats = "table|csv|json",
     .sections = captures_tables,
     .examples = "xplanectl captures\n"},
    {.name = "cancel",
     .run = xpl_cmd_cancel,
     .min = 1,
     .max = 1,
     .arguments = "ID",
     .help = "cancel a running capture, by its number",
     .examples = "xplanectl cancel 7\n"},
    {.name = "schedules",
     .run = xpl_cmd_schedules,
     .arguments = "",
     .help = "list the schedules of repeated captures (capture --every)",
     .formats = "table|csv|json",
     .sections = schedules_tables,
     .examples = "xplanectl schedules\n"},
    {.name = "unschedule",
     .run = xpl_cmd_unschedule,
     .min = 1,
     .max = 1,
     .arguments = "ID",
     .help = "end a schedule, by its number; its sessions stay",
     .examples = "xplanectl unschedule 2\n"},
    {.name = "import",
     .run = xpl_cmd_import,
     .min = 1,
     .max = 4096,
     .arguments = "FILE|DIR...",
     .help = "store profiles as a session of the daemon",
     .about =
         "Takes profile files, or all those of a run directory. The daemon checks them; either "
         "all appear or none. An interrupted import resumes when repeated.",
     .examples = "xplanectl import profiles/my_run --session my_run\n"},
    {.name = "join",
     .run = xpl_runs_join,
     .min = 2,
     .max = 4096,
     .arguments = "SESSION|PATH...",
     .help = "make one session of runs whose processes wrote into separate directories",
     .about = "The session appears in --logdir. Its files are links to those of the runs (copies, "
              "if they are on another file system): nothing is moved or removed. A SESSION is one "
              "of --logdir. A daemon with --join joins such runs by "
              "itself, if they are of one program and overlap in time.",
     .examples = "xplanectl join out/rank0 out/rank1 --logdir ~/logs --session my_job\n"},
    {.name = "delete",
     .run = xpl_cmd_delete,
     .min = 1,
     .max = 1,
     .arguments = "SESSION",
     .help = "remove a session; the daemon must have been started with --allow-delete",
     .examples = "xplanectl delete my_run\n"},
    {.name = "export",
     .run = xpl_cmd_export,
     .min = 2,
     .max = 4096,
     .arguments = "perfetto|chrome PATH...",
     .help =
         "write a trace for other viewers, from files, one run directory or a session of --logdir",
     .about = "Needs no daemon. Format perfetto is Perfetto's protobuf format "
              "(ui.perfetto.dev, trace_processor), with times in whole nanoseconds; chrome is "
              "Chrome's JSON trace format. Planes become processes, lines become threads; derived "
              "lines (steps, modules, ops, name scopes, source code), flows, counters and all "
              "arguments are included. Perfetto's format shows events that overlap without "
              "nesting on further tracks below the thread. The output is streamed; an incomplete "
              "file is removed.",
     .examples = "xplanectl export perfetto profiles/my_run -o my_run.pftrace\n"
                 "xplanectl export chrome --logdir ~/logs my_run -o my_run.json\n"},
    {.name = "hlo",
     .run = xpl_cmd_hlo,
     .min = 1,
     .max = 2,
     .arguments = "RUN [MODULE]",
     .help = "list the HLO programs of a run, or print one",
     .about =
         "Without MODULE, lists the programs, those that devices ran longest first. MODULE is a "
         "program's NAME(ID) or just its program id. It is printed as short text, "
         "long text, protobuf text format, protobuf bytes, JSON or a graph.",
     .formats = "table|csv|json",
     .sections = hlo_tables,
     .examples = "xplanectl hlo my_run\nxplanectl hlo my_run 'jit_step(10)' --text long\n"
                 "xplanectl hlo my_run 10 --memory lines\n"},
    {.name = "iree",
     .run = xpl_bundle_command,
     .report = xpl_bundle_report_name,
     .max = 4096,
     .arguments = "REPORT RUN or capture -- PROGRAM...",
     .help = "a report on a profile bundle of IREE (*.ireeprof), or a capture of one",
     .about = "Prints a report on a bundle (*.ireeprof, or its rows, *.ireeperf.jsonl), as "
              "iree-profile does; without arguments, lists the reports. A report on a truncated, "
              "unfinished or damaged bundle covers the part before the damage, warns and exits "
              "with status 3. iree capture runs a program that takes the profiling flags of IREE's "
              "tools; its bundle becomes a session of the daemon or, with --logdir, of that "
              "directory. Session names are printed; the program's output goes to standard error. "
              "The data of a program that failed or was interrupted is kept (status 3). Formats of "
              "export: "
              "ireeperf-jsonl, perfetto, chrome, xspace; of other reports: text, jsonl.",
     .formats = "text|jsonl|ireeperf-jsonl|perfetto|chrome|xspace",
     .examples =
         "xplanectl iree summary model.ireeprof\n"
         "xplanectl iree capture --session my_run -- iree-run-module --device=local-task\n"},
    {.name = "agents",
     .run = xpl_agents_run,
     .min = 1,
     .max = 2,
     .arguments = "install [DIR]",
     .help = "install a skill for AI agents, and print the configuration of the MCP server",
     .about =
         "Writes .claude/skills/xplaned/SKILL.md and .agents/skills/xplaned/SKILL.md below DIR, "
         "a project's directory or [$HOME]. Files of that name that xplanectl did not write "
         "are left unchanged. --agents-md prints the same text.",
     .examples = "xplanectl agents install --dry-run\n"
                 "xplanectl agents install ~/my-project\n"},
    {.name = "completion",
     .run = xpl_commands_completion,
     .min = 1,
     .max = 1,
     .arguments = "bash|zsh|fish",
     .help = "print a shell script that completes commands, options, sessions and tools",
     .about = "Packages install the script. It queries the daemon for sessions and hosts, for less "
              "than a second.",
     .examples = "xplanectl completion bash >~/.local/share/bash-completion/completions/xplanectl\n"
                 "xplanectl completion fish >~/.config/fish/completions/xplanectl.fish\n"},
};
const size_t xpl_n_commands = sizeof xpl_command_rows / sizeof *xpl_command_rows;
