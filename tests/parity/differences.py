# SPDX-License-Identifier: Apache-2.0
"""Where our answers are allowed to differ from XProf's: one named predicate for each entry of docs/differences.md.

A predicate inspects the parsed answers and the input and returns both with the excused places made equal; when nothing
else differs, the difference is excluded under that name.  They are tried one by one, then all that apply together.
"""
import collections
import copy
import math
import re

from compare import compare, parse
from hash_order import framework_types
from protos import pb
from suggestions import figures_of

class Input:
    """What the predicates ask of the profiles, found out when first asked."""

    def __init__(self, paths, options):
        self.paths, self.options, self._spaces = paths, options or {}, None

    @property
    def spaces(self):
        if self._spaces is None:
            self._spaces = []
            for p in self.paths:
                with open(p, "rb") as f:
                    try:
                        self._spaces.append(pb.XSpace.FromString(f.read()))
                    except Exception:
                        self._spaces.append(pb.XSpace())
        return self._spaces

    def has_plane(self, prefix):
        return any(p.name.startswith(prefix) for s in self.spaces for p in s.planes)


def tensor_patterns(tool, expected, got, given):
    """XProf numbers patterns of tensors, and shows them, in the order of a hash table."""
    if tool != "inference_profile":
        return None
    for answer in (expected, got):
        for table in answer:
            if any(c["id"] == "tensor_pattern" for c in table["cols"]):
                table["rows"].sort(key=lambda row: row["c"][1]["v"])
                for i, row in enumerate(table["rows"]):
                    row["c"][0]["v"] = float(i)
    return expected, got


def truncated_sums(tool, expected, got, given):
    """XProf adds fractions of picoseconds to an integer in hash order and truncates after each; the sum depends on it."""
    if tool != "op_profile":
        return None
    a, b = (x.get("aggDvfsTimeScaleMultiplier") for x in (expected, got))
    if not (isinstance(a, (int, float)) and isinstance(b, (int, float)) and abs(a - b) <= 1e-5 * abs(a)):
        return None
    got["aggDvfsTimeScaleMultiplier"] = a
    return expected, got


DESCRIBED = ("TPU v6 Lite", "TPU v7x")


def counter_descriptions(tool, expected, got, given):
    """XProf describes the counters of two types of TPUs in words of its own; ours are the profile's."""
    stats = [(p, s) for x in given.spaces for p in x.planes for s in p.stats]
    if tool != "perf_counters" or not any((s.str_value or p.stat_metadata[s.ref_value].name) in DESCRIBED for p, s in stats):
        return None
    for answer in (expected, got):
        for row in answer.get("rows", []):
            row["c"][6:8] = [None, None]
    return expected, got


def suggestion_text(tool, expected, got, given):
    """The words of suggestions are ours; rules and figures must be XProf's."""
    if tool != "smart_suggestion" or figures_of(expected) != figures_of(got):
        return None
    return expected, copy.deepcopy(expected)


TYPE_AND_NAME = {"framework_op_stats": ("type", "operation"), "overview_page": ("category", "operation")}


def framework_type(tool, expected, got, given):
    """Device ops of one framework op give it several types, and the first decides: XProf goes through them in the order of a hash
    table.  Both answers must have a type that one of those ops gives."""
    if tool not in TYPE_AND_NAME or not given.has_plane("/device:TPU:"):
        return None
    open_types = framework_types(given.spaces)
    if not open_types:
        return None
    for x in (expected, got):
        for t in x if isinstance(x, list) else [x]:
            hide_types(t, TYPE_AND_NAME[tool], open_types)
    return expected, got


def hide_types(t, columns, open_types):
    """Takes the type out of the rows of device ops that have one of several."""
    ids = [c.get("id") for c in t.get("cols", [])] if isinstance(t, dict) else []
    if not set(columns) <= set(ids):
        return
    kind, name = (ids.index(c) for c in columns)
    where = ids.index("host_or_device") if "host_or_device" in ids else None
    for row in t.get("rows", []):
        cells = row.get("c", [])
        if where is not None and cells[where].get("v") != "Device":
            continue
        if cells[kind].get("v") in open_types.get(cells[name].get("v"), ()):
            cells[kind] = None


COPIES = ("MemcpyHToD", "MemcpyDToH", "MemcpyDToD", "MemcpyHToH")
NAME_AND_SUMS = {
    "framework_op_stats": ("operation", ("occurrences", "total_time", "total_self_time", "host_total_self_time_percent")),
    "input_pipeline_analyzer": ("opName", ("count", "timeInMs", "timeInPercent", "selfTimeInMs", "selfTimeInPercent")),
}
PLACE_IN_TABLE = ("rank", "device_cumulative_total_self_time_percent", "Host_cumulative_total_self_time_percent")


def copy_rows(tool, expected, got, given):
    """XProf keys the host's events that are named as copies by a number that it never sets, so that those of one name are one row or
    two by what was read before them.  Ours are one, with the same sums."""
    if tool not in NAME_AND_SUMS:
        return None
    name, sums = NAME_AND_SUMS[tool]
    apart = [take_copies(x, name, sums) for x in (expected, got)]
    if not any(len(rows) > 1 for rows in apart[0].values()) or any(len(rows) > 1 for rows in apart[1].values()):
        return None
    totals = [{k: [math.fsum(column) for column in zip(*rows)] for k, rows in x.items()} for x in apart]
    if totals[0].keys() != totals[1].keys() or not all(
            math.isclose(a, b, rel_tol=1e-9) for k in totals[0] for a, b in zip(totals[0][k], totals[1][k])):
        return None
    return expected, got


def take_copies(tables, name, sums):
    """Takes the host's copies out of the tables that have them, and out of the others' rows their place; returns the sums of each by table
    and name."""
    out = collections.defaultdict(list)
    for i, t in enumerate(tables):
        ids = [c.get("id") for c in t.get("cols", [])] if isinstance(t, dict) else []
        if not {name, *sums} <= set(ids):
            continue
        where = ids.index("host_or_device") if "host_or_device" in ids else None
        kept = []
        for row in t["rows"]:
            v = [c and c.get("v") for c in row["c"]]  # None: a cell that another excuse has taken
            if v[ids.index(name)] in COPIES and (where is None or v[where] == "Host"):
                out[i, v[ids.index(name)]].append([v[ids.index(c)] for c in sums])
            else:
                kept.append({**row, "c": [None if ids[k] in PLACE_IN_TABLE else c for k, c in enumerate(row["c"])]})
        t["rows"] = kept
    return out


LAUNCH_STATS = "Launch Stats for "
WINDOW = ("start_time_ms", "end_time_ms")


def last_begin(options):
    """Where an event of the window may begin at the latest, in picoseconds; None: anywhere, the window is none or an instant.  Windows
    also show what ends before them: of a coarse level all that begins up to the resolution of the next coarser one before the window.
    Of a window without an end that is all there is."""
    begin, end = (float(options.get(k) or 0) for k in WINDOW)
    if begin < 0 or end < 0 or (end and end <= begin) or not (begin or end):
        return None
    return (end or begin) * 1e9


def unsorted_begins(spaces):
    """When events of lines begin that are recorded out of order, in picoseconds."""
    out = set()
    for line in (line for s in spaces for p in s.planes for line in p.lines):
        begins = [line.timestamp_ns * 1000 + e.offset_ps for e in line.events]
        if any(b < a for a, b in zip(begins, begins[1:])):
            out.update(begins)
    return out


def take_rows(x, begins):
    """Takes the Launch Stats out of a trace, and what begins at one of `begins`; returns each as (when it began, in picoseconds, name, how
    long it took, likewise, process and thread)."""
    def taken(begin, name):
        return begin in begins or (name or "").startswith(LAUNCH_STATS)
    out, keep = [], []
    for e in x.get("traceEvents", []):
        begin = round(e["ts"] * 1e6) if e.get("ph") == "X" else None
        if begin is not None and taken(begin, e["name"]):
            out.append((begin, e["name"], round((e.get("dur") or 0) * 1e6), e.get("pid"), e.get("tid")))
        else:
            keep.append(e)
    if "traceEvents" in x:
        x["traceEvents"] = keep
        x["returnedEventsSize"] -= len(out)
    rows = []
    for row in x.get("complete_events", []):
        mine = [e for e in row["events"] if taken(e[0], e[2])]
        out += [(e[0], e[2], e[1] or 0, row.get("process"), row.get("thread")) for e in mine]
        row["events"] = [e for e in row["events"] if e not in mine]
        rows += [row] if row["events"] else []
    if "complete_events" in x:
        x["complete_events"] = rows
    return out


def hide_numbers(x, begins):
    """Events that begin together are numbered: without those that were taken, numbers of the others say nothing."""
    for e in x.get("traceEvents", []):
        if e.get("ph") == "X" and round(e["ts"] * 1e6) in begins:
            e.pop("z", None)
            e.get("args", {}).pop("uid", None)


def begins_with(name, options):
    """Whether a search may find it; one of metadata finds what has other names, too."""
    prefix = options.get("search_prefix")
    return not prefix or options.get("search_metadata") == "true" or (name or "").startswith(prefix)


def lies_in(event, options):
    """Whether an event that was taken must be shown: it overlaps the window and has a name that was searched for.  Of a
    window that is none, or an instant, that is not known."""
    first, last = float(options.get("start_time_ms") or 0) * 1e9, last_begin(options)
    begin, name, length, *_ = event
    if any(options.get(k) for k in WINDOW) and (last is None or not (begin <= last and begin + length >= first)):
        return False
    return (name or "").startswith(options.get("search_prefix") or "")


def missed(theirs, ours, options):
    """What XProf shows rightly and ours does not; of a search, where XProf may have another length, by when it begins and its name."""
    known = 2 if options.get("search_prefix") else 5
    have = collections.Counter(e[:known] for e in ours)
    wanted = collections.Counter(e[:known] for e in theirs if lies_in(e, options))
    return set(wanted) - set(have) if options.get("search_prefix") else wanted - have


def trace_rows(tool, expected, got, given):
    """XProf stores Launch Stats in the order of a hash table, and lines that are recorded out of order as they are, so that windows show
    some that lie outside and miss others, and searches show others that begin at the same time.  Ours must have what XProf shows rightly, may
    not begin behind the window, must begin with what was searched, and has names of the profile."""
    asked = any(given.options.get(k) for k in (*WINDOW, "search_prefix"))
    if tool != "trace_viewer@" or not isinstance(expected, dict) or not isinstance(got, dict) or not asked:
        return None
    begins, last, names = unsorted_begins(given.spaces), last_begin(given.options), names_of(given.spaces)
    theirs, ours = take_rows(expected, begins), take_rows(got, begins)
    for answer in (expected, got):
        hide_numbers(answer, {begin for begin, *_ in theirs + ours})
    right = all((last is None or e[0] <= last + 1e3) and begins_with(e[1], given.options) for e in ours)
    named = all(e in theirs or (e[1] or "").startswith(LAUNCH_STATS) or e[1] in names for e in ours)
    return (expected, got) if theirs != ours and right and named and not missed(theirs, ours, given.options) else None


def names_of(spaces):
    return {n for s in spaces for p in s.planes for m in p.event_metadata.values() for n in (m.name, m.display_name)}


def trace_search(tool, expected, got, given):
    """XProf searches in a table that a name with bytes beyond ASCII breaks: it may miss others, and show something else that begins at the
    same time in their place.  What ours finds beyond it must begin so."""
    if tool != "trace_viewer@" or not given.options.get("search_prefix") or not isinstance(expected, dict) or not isinstance(got, dict):
        return None
    if all(n.isascii() for n in names_of(given.spaces)):
        return None
    def place(e):
        return e.get("pid"), e.get("tid"), e.get("ts"), e.get("dur"), e["name"]
    def beyond(one, other):
        known = {place(e) for e in other.get("traceEvents", []) if e.get("ph") == "X"}
        return [e for e in one.get("traceEvents", []) if e.get("ph") == "X" and place(e) not in known]
    more, wrong = beyond(got, expected), beyond(expected, got)
    times = {e["ts"] for e in more}
    if not more or not all(begins_with(e["name"], given.options) for e in more) or not all(e["ts"] in times for e in wrong):
        return None
    found = {(e["ts"], e["name"]) for e in more}
    if any(e["name"].startswith(given.options["search_prefix"]) and (e["ts"], e["name"]) not in found for e in wrong):
        return None
    for answer, out in ((got, more), (expected, wrong)):
        answer["traceEvents"] = [e for e in answer["traceEvents"] if e not in out]
        answer["returnedEventsSize"] -= len(out)
        hide_numbers(answer, {round(t * 1e6) for t in times})
    return expected, got


PREDICATES = [tensor_patterns, suggestion_text, counter_descriptions, truncated_sums, framework_type, copy_rows, trace_rows, trace_search]


def excuse(tool, expected, got, paths, options=None):
    """The name of what excuses the difference, or ""."""
    a, b = parse(expected or b""), parse(got or b"")
    if isinstance(a, bytes) or isinstance(b, bytes):
        return ""
    given = Input(paths, options)
    both, names = (copy.deepcopy(a), copy.deepcopy(b)), []
    for p in PREDICATES:
        one = p(tool, copy.deepcopy(a), copy.deepcopy(b), given)
        if one is None:
            continue
        if not compare(tool, *one):
            return p.__name__
        together = p(tool, *both, given)
        if together:
            both = together
            names.append(p.__name__)
    if len(names) > 1 and not compare(tool, *both):
        return "+".join(names)
    return ""


# ---- where we are wiser than XProf unless asked with xprof_exact=true: our answers say so themselves ----

OF_STEPS = ("input_pipeline_analyzer", "overview_page", "pod_viewer", "roofline_model", "smart_suggestion")
OF_COSTS = ("framework_op_stats", "hlo_stats", "op_profile", "overview_page", "roofline_model")


class Told:
    """What an answer of `tool` is excused by: the diagnostics and the steps' names of our overview_page, and more where a predicate asks
    for it.  `ask(tool, paths)`: our answer as it is plainly."""

    def __init__(self, tool, paths, ask):
        self.tool, self.paths, self.ask = tool, paths, ask
        tables = [t for t in parse(ask("overview_page", paths) or b"") or [] if isinstance(t, dict)]
        self.diagnostics = "\n".join(str(cell.get("v")) for t in tables[-1:] for row in t.get("rows", []) for cell in row.get("c", []))
        self.steps = [str(row["c"][0].get("v")) for t in tables[1:2] for row in t.get("rows", [])]


def idle_hosts(told):
    """A host without steps empties XProf's step tables; ours leaves it out and names it in the diagnostics."""
    return "is left out, it was idle" in told.diagnostics or "has no steps; the step tables are those of the other hosts" in told.diagnostics


def stragglers(told):
    """So does a host whose steps overlap no other host's."""
    return "straggles: its steps overlap no other host's steps" in told.diagnostics


def profiled_batches(told):
    """Events of Keras' TensorBoard callback are no steps to XProf; ours have their name."""
    return any(name.startswith("Profiled batch") for name in told.steps)


def step_numbers(told):
    """XProf aligns the steps of several hosts by time; ours are those that all hosts have, by name and number."""
    if told.tool not in OF_STEPS or len(told.paths) < 2:
        return False
    hosts = [steps for steps in (Told(told.tool, [p], told.ask).steps for p in told.paths) if steps]
    numbered = all(re.search("[0-9]$", name) for steps in hosts for name in steps)
    return len(hosts) > 1 and numbered and set(told.steps) == set.intersection(*map(set, hosts))


def step_series(told):
    """XProf averages steps of all annotations; ours those of the series with most."""
    return told.tool in ("input_pipeline_analyzer", "overview_page") and len({re.sub(" ?-?[0-9]+$", "", name) for name in told.steps}) > 1


def devices(told):
    hosts = (parse(told.ask("time_breakdown", told.paths) or b"") or {}).get("hosts", [])
    return [device for host in hosts for device in host.get("devices", [])]


def slowest_core(told):
    """XProf averages the slowest core of each step; ours is the core that is the slowest in total."""
    return told.tool in ("input_pipeline_analyzer", "overview_page") and len(devices(told)) > 1


def program_steps(told):
    """XProf has no steps where nothing marks them; ours are executions of a program."""
    return told.tool in OF_STEPS and any(step["name"].startswith("execution of ") for device in devices(told) for step in device["steps"])


def older_gemms(told):
    """XProf knows no costs of __cublas$gemm; ours has flops of each."""
    if told.tool not in OF_COSTS:
        return False
    table = parse(told.ask("hlo_stats", told.paths))
    ids = [c["id"] for c in table["cols"]]
    text, flops = ids.index("hlo_op_expression"), ids.index("model_flop_rate")
    gemms = [row["c"][flops]["v"] for row in table["rows"] if '"__cublas$gemm"' in row["c"][text]["v"]]
    return bool(gemms) and min(gemms) > 0


def no_hlo(told):
    """XProf drops ops whose program the profile does not have; ours have the category "no HLO"."""
    return told.tool in OF_COSTS + ("pod_viewer", "smart_suggestion") and b'"no HLO"' in (told.ask("op_list", told.paths) or b"")


def host_names(told):
    """Cores of several hosts have the names of the session's hosts."""
    return told.tool == "pod_viewer" and len(told.paths) > 1


def pod_causes(told):
    """Times in pod_viewer are those of time_breakdown."""
    return told.tool == "pod_viewer"


DELIBERATE = [idle_hosts, stragglers, profiled_batches, step_numbers, step_series, slowest_core, program_steps, older_gemms, no_hlo, host_names, pod_causes]


def deliberate(told):
    """The name of the deliberate difference that a Told shows, or ""; asked only when xprof_exact=true gives XProf's answer."""
    return next((p.__name__ for p in DELIBERATE if p(told)), "")
