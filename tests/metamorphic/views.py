# SPDX-License-Identifier: Apache-2.0
"""Everything that can be asked of a session, as parsed answers that are equal where a user sees no difference."""
import concurrent.futures
import csv
import io
import json
import pathlib
import re
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "parity"))
import compare as parity  # noqa: E402

OPTIONS = {"trace_viewer@": {"resolution": "0"}, "memory_viewer": None, "graph_viewer": None}  # None: wants a program's name
SQL = {
    "events": "SELECT host, plane, line, name, start_ps, duration_ps FROM events ORDER BY 1, 2, 3, 5, 6, 4",
    "stats": "SELECT host, plane, line, event, name, count(*), count(DISTINCT value) FROM stats WHERE name != 'of_a_later_version' GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5",
    "hlo_instructions": "SELECT host, module, name, opcode, occurrences, time_ps, self_time_ps, flops, bytes_accessed FROM hlo_instructions "
                        "ORDER BY 1, 2, 3, 4, 5, 6, 7, 8, 9",
    "run_metrics": "SELECT metric, unit, value FROM run_metrics ORDER BY 1, 2",
    "memory": "SELECT host, name, peak_bytes, capacity_bytes FROM memory ORDER BY 1, 2",
}


class Views:
    def __init__(self, program):
        self.program = str(program)
        listed = json.loads(self.run("tools", "--all", "--json"))
        self.tools = [t for t in listed["tools"] if not t["name"].startswith("iree_") and t["content_type"] == "application/json"]
        self.tools = [t for t in self.tools if OPTIONS.get(t["name"], {}) is not None]

    def run(self, *args, statuses=(0,)):
        """Standard output; of a status that is not expected the status and the last line of standard error."""
        p = subprocess.run([self.program, *map(str, args)], stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
        if p.returncode in statuses:
            return p.stdout
        return re.sub(rb"[^ ]*/", b"", b"status %d: " % p.returncode + p.stderr.strip()[-200:])

    def ask(self, view, files, *more):
        """The answer, parsed."""
        kind, _, name = view.partition(" ")
        if kind == "tool":
            options = [f"--option={k}={v}" for k, v in OPTIONS.get(name, {}).items()]
            return parity.parse(self.run("analyze", name, *files, *options, *more))
        if kind == "sql":
            return parity.parse(self.run("sql", "--json", *files, SQL[name]))
        if kind == "aggregate" and len(files) > 1:
            files = [files[0].parent]  # several files are several runs
        return parity.parse(self.run(kind, "--json", *files, *more))

    def rows(self, files, statement):
        return json.loads(self.run("sql", "--json", *files, statement))["rows"]

    def sql(self, files, statement):
        """The one value of a statement."""
        return self.rows(files, statement)[0][0]

    def all(self, some, files):
        """{view: answer}, asked side by side."""
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return dict(zip(some, pool.map(lambda v: self.ask(v, files), some)))

    def names(self, many):
        """The views of a session, of several hosts (`many`) or of one."""
        out = [f"tool {t['name']}" for t in self.tools if not many or t["hosts"] in ("all", "each_or_all")]
        return out + [f"sql {name}" for name in SQL] + ["findings", "summary", "aggregate"]


# Members that say when, not how long: a change of the instant from which times count may move them.
INSTANTS = ("begin_ps", "ts", "timeOffsetPs", "peakStatsTimePs", "fullTimespan", "startTimePs", "endTimePs", "device_offset_ps")
LINKS = ("correlation_id", "run_id", "flow", "_p", "_c", "producer_id", "consumer_id")


def clear(x, keys):
    """Without these members, wherever they are; runs of programs are numbered by their place in the file."""
    if isinstance(x, dict):
        return {k: sorted((clear(m, ("id", *keys)) for m in v), key=str) if k == "hloModules" else clear(v, keys)
                for k, v in x.items() if k not in keys}
    return [clear(v, keys) for v in x] if isinstance(x, list) else x


def normal(view, x):
    """Without what a user does not see: the order of what has no order, the size of the file, what the changes add to a trace.
    The peak of an allocator's lifetime is what the last event of the file says in XProf's memory_profile; in SQL it is the
    greatest, and compared."""
    if isinstance(x, bytes):
        return x
    x = clear(x, ("session_bytes", "of_a_later_version", "peakBytesUsageLifetime"))
    if "trace_viewer" in view:
        x = clear(x, LINKS)
        x = {**x, "traceEvents": [{k: v for k, v in e.items() if v != {}} for e in x["traceEvents"]]}
    if view == "tool events":
        x = {**x, "planes": sorted((p for p in x["planes"] if p != "of a later version"))}
    if view == "tool op_list":
        x = {"ops": sorted(x["ops"], key=str)}
    if view == "summary":
        x = {**x, **{k: sorted(x[k], key=str) for k in ("device_ops", "host_ops")}}
    if view == "tool time_breakdown":
        x = {"hosts": [{**h, "devices": sorted(h.get("devices", ()), key=str)} for h in x["hosts"]]}
    if view == "tool kernel_utilization":
        x = {**x, "devices": sorted(x["devices"], key=str)}
    if view == "tool launches":
        x = [{**t, "rows": sorted(t["rows"], key=str)} for t in x]
    return x


def timeless(view, x):
    """Tables without their instants."""
    if view != "tool trace_search":
        return x
    place = [c["id"] for c in x["cols"]].index("start_us")
    return {**x, "rows": [{"c": r["c"][:place] + r["c"][place + 1:]} for r in x["rows"]]}


def differences(view, expected, got, instants=True):
    """Lines that say where two answers differ; without `instants` only the times between two are compared."""
    expected, got = normal(view, expected), normal(view, got)
    if not instants and not isinstance(got, bytes):
        expected, got = (timeless(view, clear(x, INSTANTS)) for x in (expected, got))
    return parity.compare(view.removeprefix("tool "), expected, got, limit=4)


def table_of_csv(data):
    """Rows of CSV as dictionaries."""
    return list(csv.DictReader(io.StringIO(data.decode())))
