# SPDX-License-Identifier: Apache-2.0
"""What must hold between answers: each relation yields lines that say where it does not."""
import collections
import json
import random
import shutil

import transforms
import views

MOVES_INSTANTS = ("later", "line_origins")  # an answer may say when something was, and that changes
MOVES_MEMORY = ("order_of_planes", "line_origins")  # memory events of several lines may come in another order

VERDICTS = ("findings", "aggregate", "sql run_metrics", "sql hlo_instructions", "tool time_breakdown", "tool overview_page", "tool op_list",
            "tool pod_viewer", "tool input_pipeline_analyzer", "tool kernel_stats", "tool collectives", "tool launches", "tool hlo_stats")


def changed(session, change, out, seed):
    """The files of a session after a change."""
    session.has_tpu, files = False, []
    for path in session.files:
        space = transforms.read(path)
        session.has_tpu |= any(p.name.startswith("/device:TPU") for p in space.planes)
        change(space, random.Random(seed))
        files.append(transforms.write(space, out / change.__name__ / session.name, path))
    return files


def same_answers(session, change, asked, out, seed):
    """Every view says of a changed profile what it says of the profile."""
    files = changed(session, change, out, seed)
    todo, unlike = list(session.views), ()
    if change.__name__ in MOVES_MEMORY:
        todo, unlike = [v for v in todo if v != "tool memory_profile"], ("memory", "pid", "tid")  # numbers of a trace's rows
    if change is transforms.line_origins:
        todo.remove("sql events")  # counts from the first line's instant
    if change is transforms.bystander:
        todo = [v for v in todo if v in VERDICTS]
    if change is transforms.order_of_events and session.has_tpu:
        todo = [v for v in todo if "trace" not in v]
    got = asked.all(todo, files)
    for view in todo:
        expected, answer = (views.clear(x[view], unlike if view == "summary" or "trace" in view else ()) for x in (session.answers, got))
        for line in views.differences(view, expected, answer, change.__name__ not in MOVES_INSTANTS):
            yield f"{view}: {line}"
    if session.answers["sql run_metrics"] != got["sql run_metrics"]:
        return
    yield from no_difference(asked.ask("compare", [session.folder, files[0] if len(files) == 1 else files[0].parent]))
    shutil.rmtree(out / change.__name__)


def other_jobs(session, asked):
    """The number of threads does not change an answer, and neither does the order in which hosts are named."""
    for name, files, more in (("1 thread", session.files, ["--jobs=1"]), ("5 threads", session.files, ["--jobs=5"]),
                              ("hosts in another order", session.files[::-1], [])):
        for view in [v for v in session.views if v.startswith("tool ")] if more or len(files) > 1 else []:
            for line in views.differences(view, session.answers[view], asked.ask(view, files, *more)):
                yield f"{name}: {view}: {line}"


def no_difference(answer):
    """`compare` of a run with itself: no difference, A and B have the same values, and no op is new."""
    def walk(x, path):
        if isinstance(x, dict):
            for k, v in x.items():
                if k.startswith("difference_") and v:
                    yield f"compare{path}.{k}: {v} of equal runs"
                if k.startswith("a_") and v != x.get("b" + k[1:], v) or k == "a" and v != x["b"]:
                    yield f"compare{path}.{k}: {str(v)[:80]} is not that of B"
                if k == "state" and v != "both":
                    yield f"compare{path}: {x.get('op') or x.get('kernel') or x}: {v} of equal runs"
                yield from walk(v, f"{path}.{k}")
        elif isinstance(x, list):
            for i, v in enumerate(x):
                yield from walk(v, f"{path}[{i}]")
    if not isinstance(answer, bytes):
        yield from walk(answer, "")


def compare_itself(session, asked):
    """compare(A, A) is 0."""
    yield from no_difference(asked.ask("compare", [session.folder, session.folder]))


def compare_back(a, b, asked):
    """compare(A, B) is -compare(B, A)."""
    there, back = asked.ask("compare", [a.folder, b.folder]), asked.ask("compare", [b.folder, a.folder])
    if isinstance(there, bytes) or isinstance(back, bytes):
        return
    for k in ("step_time", "median_step_time"):
        if there[k]["difference_ps"] != back[k]["difference_ps"] and there[k]["difference_ps"] != -back[k]["difference_ps"]:
            yield f"{k}: {there[k]['difference_ps']} there, {back[k]['difference_ps']} back"
    for x, y in zip(there["times"], back["times"]):
        if (x["difference_ps"] or 0) != -(y["difference_ps"] or 0):
            yield f"{x['cause']}: {x['difference_ps']} there, {y['difference_ps']} back"


# ---- parts and wholes ----

def op_times(answer):
    """Runs and time of each op of a program."""
    out = collections.Counter()
    for op in answer["ops"] if not isinstance(answer, bytes) else ():
        out[op["program_id"], op["name"], "runs"] += op["occurrences"]
        out[op["program_id"], op["name"], "ps"] += op["self_time_ps"]
    return out


def kernel_times(answer):
    out = collections.Counter()
    for row in answer["rows"] if not isinstance(answer, bytes) else ():
        cells = dict(zip((c["id"] for c in answer["cols"]), views.parity.values(row)))
        for k in ("occurrences", "total_duration_us"):
            out[cells["kernel_name"], cells["op_name"], k] += cells[k]
    return out


def apart(what, whole, parts, tolerance=0):
    """The places where counters differ."""
    for k in sorted(set(whole) | set(parts), key=str):
        if abs(whole[k] - parts[k]) > tolerance * max(1, abs(whole[k])):
            yield f"{what}: {k} is {whole[k]} in one host, {parts[k]} in two"


def split_hosts(session, asked, out, rnd):
    """A profile whose devices are divided among the files of two hosts has the ops, kernels and events of the one."""
    path, = session.files
    first, second = transforms.read(path), transforms.read(path)
    devices = [p.name for p in first.planes if p.name.startswith("/device:")]
    moved = set(devices[::2])
    transforms.keep_planes(first, lambda name: name not in moved)
    transforms.keep_planes(second, lambda name: name in moved or name == transforms.PROGRAMS)
    folder = out / "split" / session.name
    folder.mkdir(parents=True)
    files = [folder / "one.xplane.pb", folder / "two.xplane.pb"]
    for f, space in zip(files, (first, second)):
        f.write_bytes(space.SerializeToString())
    one, two = ([asked.ask(f"tool {t}", some) for t in ("op_list", "kernel_stats")] for some in (session.files, files))
    yield from apart("op_list", op_times(one[0]), op_times(two[0]))
    yield from apart("kernel_stats", kernel_times(one[1]), kernel_times(two[1]), 1e-9)
    yield from same_events(session.files, files, asked)


def split_lines(session, asked, out, rnd):
    """The lines of a host's threads in the files of two hosts: the events are those of the one."""
    path, = session.files
    folder = out / "lines" / session.name
    folder.mkdir(parents=True)
    files = [folder / "one.xplane.pb", folder / "two.xplane.pb"]
    for rest, f in enumerate(files):
        space = transforms.read(path)
        transforms.keep_lines(space, lambda i: i % 2 == rest)
        f.write_bytes(space.SerializeToString())
    yield from same_events(session.files, files, asked)


def same_events(one, two, asked):
    total = "SELECT name, count(*), sum(duration_ps) FROM events GROUP BY name ORDER BY name"
    a, b = (asked.rows(some, total) for some in (one, two))
    if a != b:
        yield f"events: {[x for x in a if x not in b][:3]} in one host, {[x for x in b if x not in a][:3]} in two"


def twins(session, asked, out, rnd):
    """Two hosts with one profile: steps and shares are those of the one, sums are twice as much."""
    path, = session.files
    folder = out / "twins" / session.name
    folder.mkdir(parents=True)
    files = [folder / "one.xplane.pb", folder / "two.xplane.pb"]
    for f in files:
        shutil.copy(path, f)
    one, two = ({v: asked.ask(v, some) for v in ("findings", "aggregate", "tool op_list", "tool time_breakdown")} for some in (session.files, files))
    if isinstance(one["findings"], bytes) or isinstance(one["tool time_breakdown"], bytes):
        return
    doubled = collections.Counter({k: 2 * n for k, n in op_times(one["tool op_list"]).items()})
    for line in apart("op_list", doubled, op_times(two["tool op_list"])):
        yield line
    a, b = ({f["kind"]: round(f["share_percent"], 6) for f in x["findings"]} for x in (one["findings"], two["findings"]))
    if a != b:
        yield f"findings: {a} of one host, {b} of two alike"
    if one["aggregate"]["runtime"] != two["aggregate"]["runtime"]:
        yield f"aggregate: {one['aggregate']['runtime']} of one host, {two['aggregate']['runtime']} of two alike"
    for host in two["tool time_breakdown"]["hosts"]:
        for line in views.differences("hosts", {**one["tool time_breakdown"]["hosts"][0], "host": ""}, {**host, "host": ""}):
            yield f"time_breakdown: {line}"


# ---- windows ----

def windows(session, asked, rnd):
    """[a, b] and [b, c] have what [a, c] has: sums of names, and the rows of SQL."""
    for path in session.files:
        def sums(a, b):
            answer = asked.ask("tool trace_sums", [path], f"--option=start_time_ms={a}", f"--option=end_time_ms={b}", "--option=limit=100000")
            if isinstance(answer, bytes):
                return None, {}
            cells = [views.parity.values(r) for r in answer["rows"]]
            return int(answer["p"]["total_ps"]), {c[0]: c[2] for c in cells}
        end = asked.ask("tool trace_viewer@", [path])
        if isinstance(end, bytes) or not end.get("fullTimespan"):
            continue
        first, last = end["fullTimespan"]
        for _ in range(3):
            a, b, c = sorted(round(rnd.uniform(first, last), 6) for _ in range(3))
            if not a < b < c:
                continue
            (x, left), (y, right), (whole, both) = sums(a, b), sums(b, c), sums(a, c)
            if None in (x, y, whole) or x + y != whole:
                yield f"trace_sums: {x} + {y} ps of [{a}, {b}], [{b}, {c}], {whole} of both"
            for name in both:
                if abs(left.get(name, 0) + right.get(name, 0) - both[name]) > 1e-5 * max(1, both[name]):
                    yield f"trace_sums: {name}: {left.get(name, 0)} + {right.get(name, 0)} us, {both[name]} of both"
        yield from sql_windows(path, asked, rnd)


def sql_windows(path, asked, rnd):
    def rows(condition):
        return asked.rows([path], f"SELECT count(*), total(duration_ps), min(start_ps), max(end_ps) FROM events {condition}")[0]
    n, _, first, last = rows("")
    if not n or first is None or last <= first:
        return
    cut = rnd.randrange(first, last)
    for column in ("start_ps", "end_ps"):
        timed = rows(f"WHERE {column} IS NOT NULL")
        left, right = rows(f"WHERE {column} < {cut}"), rows(f"WHERE {column} >= {cut}")
        if left[0] + right[0] != timed[0] or left[1] + right[1] != timed[1]:
            yield f"sql: {left[0]} + {right[0]} events with {column} before and from {cut}, {timed[0]} of both"


# ---- one total in all forms ----

def device_times(answer):
    """The self time of a table's device ops in microseconds, without the row IDLE; None: it has no such table."""
    tables = answer if isinstance(answer, list) else [answer]
    for t in tables if not isinstance(answer, bytes) else ():
        if isinstance(t, dict) and any(c["id"] == "total_self_time" for c in t.get("cols", ())):
            ids = [c["id"] for c in t["cols"]]
            rows = [dict(zip(ids, views.parity.values(r))) for r in t["rows"]]
            return sum(r["total_self_time"] for r in rows if r.get("host_or_device", "Device") == "Device" and r.get("type") != "IDLE")
    return None


def csv_times(data):
    def column(row, name):
        return next((v for k, v in row.items() if k.split(" (")[0] == name), "")
    rows = views.table_of_csv(data)
    return sum(float(column(r, "total_self_time") or column(r, "Total self time")) for r in rows
               if (column(r, "host_or_device") or "Device") == "Device" and column(r, "type") != "IDLE")


def op_totals(session, served, python, asked):
    """The tools, their CSV, SQL over files, the daemon's tables and the Python client have one total of the ops' self times."""
    answer = asked.ask("tool op_list", session.files)
    if isinstance(answer, bytes) or not answer["ops"]:
        return
    out = {"op_list": sum(op["self_time_ps"] for op in answer["ops"])}
    table = device_times(asked.ask("tool framework_op_stats", session.files))
    out["framework_op_stats"] = round(table * 1e6)
    out["its CSV"] = round(1e6 * csv_times(asked.run("analyze", "framework_op_stats", *session.files, "--format=csv")))
    instructions = {"SQL of files": asked.sql(session.files, "SELECT total(self_time_ps) FROM hlo_instructions")}
    if served:
        out["daemon"] = sum(op["self_time_ps"] for op in json.loads(served.tool("op_list", session.served))["ops"])
        table = f"FROM ops WHERE on_device AND session = '{session.served}'"
        out["table ops"] = served.sql(f"SELECT total(self_time_ps) {table}")
        instructions["table ops"] = served.sql(f"SELECT total(self_time_ps) {table} AND module IS NOT NULL")
    if python:
        out["Python"] = python[session.served]["ops"]
    if len({round(v) for v in out.values()}) > 1:
        yield f"self times of device ops: {out}"
    if len(set(instructions.values())) > 1:
        yield f"self times of instructions: {instructions}"


def step_totals(session, served, python, asked):
    """time_breakdown, the daemon's table of steps, `aggregate` and the Python client have one time of all steps, each on its slowest
    device.  In a session of several hosts all but the breakdown may leave some out."""
    answer = asked.ask("tool time_breakdown", session.files)
    if isinstance(answer, bytes) or len(session.files) > 1:
        return
    longest = {}  # device of each step
    for host in answer["hosts"]:
        for device in host.get("devices", ()):
            for i, step in enumerate(s for s in device["steps"] if s["step"] is not None):
                longest[i] = max(longest.get(i, 0), step["wall_ps"])
    if not longest:
        return
    out = {"time_breakdown": sum(longest.values())}
    series = asked.ask("compare", [session.folder, session.folder])["a"]["series"]
    out["compare"] = sum(s["steps"] * s["mean_step_ps"] for s in series)
    if len(series) == 1:  # of several it takes the one with most steps
        runtime = asked.ask("aggregate", session.files)["runtime"]
        out["aggregate"] = runtime["mean_ps"] * runtime["samples"]
    if served:
        out["table steps"] = served.sql("SELECT total(ps) FROM (SELECT max(duration_ps) AS ps FROM steps WHERE session = "
                                        f"'{session.served}' GROUP BY name, step_num)")
    if python:
        out["Python"] = python[session.served]["steps"]
    if len({f"{v:.9g}" for v in out.values()}) > 1:
        yield f"times of steps: {out}"


def kernel_totals(session, served, python, asked):
    """kernel_stats, its CSV and the daemon's table have one total of the kernels' times."""
    answer = asked.ask("tool kernel_stats", session.files)
    if isinstance(answer, bytes) or not answer.get("rows"):
        return
    out = {"kernel_stats": sum(n for (*_, k), n in kernel_times(answer).items() if k == "total_duration_us")}
    rows = views.table_of_csv(asked.run("analyze", "kernel_stats", *session.files, "--format=csv"))
    out["its CSV"] = sum(float(v) for r in rows for k, v in r.items() if k.startswith("total_duration_us") or k.startswith("Total Duration"))
    if served:
        out["table kernels"] = served.sql(f"SELECT total(total_ns) / 1e3 FROM kernels WHERE session = '{session.served}'")
    if len({f"{v:.9g}" for v in out.values()}) > 1:
        yield f"times of kernels: {out}"


TOTALS = [op_totals, step_totals, kernel_totals]
