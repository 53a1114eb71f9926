# SPDX-License-Identifier: Apache-2.0
"""One request to both sides, and what the two answers mean together."""
import os
import re
import subprocess
import tempfile
import time

import differences
import hash_order
from compare import apart, compare, parse, signature
from protos import pb
import tool_table

EXACT = {"cpu_as_device": "false", "xprof_exact": "true"}
PLAIN = {"cpu_as_device": "false"}
PATIENCE_S = 60
# Messages for a profile that cannot be read, by itself or as the only one.
UNREADABLE = re.compile(rb"corrupt|truncated|not a profile|can be read")


class Verdict:
    """kind: equal, excluded, unstable, different, xprof crash, our crash."""

    def __init__(self, kind, tool, lines=(), name="", answer=None, ours=None):
        self.kind, self.tool, self.lines, self.name = kind, tool, list(lines), name
        self.answer, self.ours = answer, ours

    @property
    def signature(self):
        if self.kind == "our crash":
            return f"{self.tool} crash"
        return signature(self.tool, self.lines)


class Judge:
    def __init__(self, xprof, ours, comparer=None, scratch=None, retries=96, remember=False):
        self.xprof, self.ours, self.comparer, self.scratch, self.retries = xprof, ours, comparer, scratch, retries
        self.remember, self.request, self.reply = remember, None, None

    def reference(self, tool, paths, options):
        """XProf's answer; with `remember`, for files that stay as they are, the same request twice in a row is asked once."""
        if not self.remember or self.request != (tool, paths, options):
            self.reply = self.xprof.ask(tool, paths, options)
            self.request = (tool, list(paths), dict(options))
        return self.reply

    def differ(self, tool, expected, got):
        """Lines; the outside comparer has the last word where one is given."""
        a, b = parse(expected or b""), parse(got or b"")
        lines = compare(tool, a, b)
        if not self.comparer:
            return lines
        with tempfile.TemporaryDirectory(dir=self.scratch) as d:
            names = [os.path.join(d, n) for n in ("expected", "actual")]
            for n, data in zip(names, (expected, got)):
                with open(n, "wb") as f:
                    f.write(data or b"")
            p = subprocess.run([os.sys.executable, self.comparer, tool, *names], capture_output=True, text=True)
            return [] if p.returncode == 0 else (lines or [": " + l for l in p.stdout.splitlines()[1:]] or [": " + p.stderr])

    def ask(self, tool, paths, options=None, ours_options=None):
        """A Verdict on one tool's answer for these hosts."""
        shared = options or {}
        status, expected = self.reference(tool, paths, shared)
        if status in ("crash", "timeout"):
            return Verdict("xprof crash", tool, name=status)
        ours, got = self.ask_ours(tool, paths, shared, ours_options)
        if ours in ("crash", "timeout"):
            return Verdict("our crash", tool, [": " + got.decode("utf-8", "replace")[-2000:]], answer=expected)
        if ours == "none":
            # These of XProf's tools do not report an unreadable file; ours report the error
            # (broken_hosts).
            if not expected or UNREADABLE.search(got) and says_nothing(tool, expected):
                return Verdict("equal", tool, answer=expected)
            return Verdict("different", tool, [": we refuse: " + got.decode("utf-8", "replace").strip()], answer=expected)
        lines = self.differ(tool, expected, got)
        if not lines:
            return Verdict("equal", tool, answer=expected, ours=got)
        name = differences.excuse(tool, expected, got, paths, shared)
        if name:
            return Verdict("excluded", tool, lines, name, expected, got)
        name = self.deliberate(tool, paths, shared) if ours_options == PLAIN else ""
        if name:
            return Verdict("excluded", tool, lines, name, expected, got)
        if self.program_id_twice(tool, paths, shared, ours_options, (expected, got)):
            return Verdict("excluded", tool, lines, "program_id_twice", expected, got)
        if self.op_twice(tool, paths, shared, ours_options, (expected, got)):
            return Verdict("excluded", tool, lines, "op_twice", expected, got)
        return Verdict(*self.again(tool, paths, shared, expected, got, lines))

    def program_id_twice(self, tool, paths, options, ours_options, answers):
        """Whether the answers differ only because several metadata entries get one program's id, of which XProf keeps the last in
        hash order.  With one entry left there is no such choice: both sides are asked of these profiles, must agree on all, and
        each of the two answers must be that of one of them."""
        expected, got = answers
        met_expected = met_got = False
        with tempfile.TemporaryDirectory(dir=self.scratch) as folder:
            for files in hash_order.resolutions(paths, folder):
                theirs, mine = self.both(tool, files, options, ours_options)
                if not theirs or not mine or not self.alike(tool, theirs, mine, files, options):
                    return False
                met_expected = met_expected or self.alike(tool, expected, theirs, files, options)
                met_got = met_got or not self.differ(tool, got, mine)
        return met_expected and met_got

    def op_twice(self, tool, paths, options, ours_options, answers):
        """Whether the answers differ only because XProf takes the words of ops with one name in hash order.  Where only one of them has
        words there is no such choice: for each answer those are sought with which ours comes closest to it, and with these both sides
        must give it.  Of many ops with one name they are not sought."""
        spaces = hash_order.read(paths)
        choices = hash_order.op_choices(spaces)
        if not choices or hash_order.too_many(choices):
            return False
        with tempfile.TemporaryDirectory(dir=self.scratch) as folder:
            def files_of(chosen):
                return hash_order.in_order(paths, spaces, choices, chosen, tempfile.mkdtemp(dir=folder))

            def given(answer):
                like = parse(answer)
                chosen = hash_order.closest(choices, lambda o: apart(like, parse(self.ask_ours(tool, files_of(o), options, ours_options)[1])))
                files = files_of(chosen)
                theirs, mine = self.both(tool, files, options, ours_options)
                return theirs and mine and self.alike(tool, answer, mine, files, options) and self.alike(tool, theirs, mine, files, options)
            return all(given(x) for x in answers)

    def ask_ours(self, tool, paths, options, ours_options):
        return self.ours.ask(tool, paths, {**options, **(EXACT if ours_options is None else ours_options)})

    def deliberate(self, tool, paths, options):
        """The name of the deliberate difference that our plain answer may have, "" where the exact one is not XProf's either."""
        name = differences.deliberate(differences.Told(tool, paths, lambda t, files: self.ours.ask(t, files, PLAIN)[1]))
        same = name and self.ask(tool, paths, options, EXACT).kind in ("equal", "excluded", "unstable")
        return name if same else ""

    def both(self, tool, paths, options, ours_options):
        """XProf's answer and ours, each None where there is none."""
        asked = self.xprof.ask(tool, paths, options), self.ask_ours(tool, paths, options, ours_options)
        return [data if status == "answer" else None for status, data in asked]

    def alike(self, tool, a, b, paths, options):
        return not self.differ(tool, a, b) or bool(differences.excuse(tool, a, b, paths, options))

    def again(self, tool, paths, options, expected, got, lines):
        """What a difference is when XProf is asked again and again: "equal" never, "unstable" when XProf also says what we say
        ("ours" is its name then) or disagrees with itself in at least the places in which we differ, else "different".  The seeds
        of its hash tables go on counting inside a process, so asking the same one again helps and a fresh one does not: that
        always begins alike."""
        moving, seen, end = set(), False, time.monotonic() + PATIENCE_S
        for i in range(3 * self.retries):
            if i >= self.retries and (not seen or time.monotonic() > end):
                break
            status, again = self.xprof.ask(tool, paths, options)
            if status != "answer":
                continue
            if not self.differ(tool, again, got) or differences.excuse(tool, again, got, paths, options):
                return "unstable", tool, lines, "ours", expected, got
            found = compare(tool, parse(expected or b""), parse(again or b""), limit=10000)
            seen = seen or bool(found)
            moving |= places(found)
        fixed = places(compare(tool, parse(expected or b""), parse(got or b""), limit=10000)) - moving
        if seen and not fixed:
            return "unstable", tool, lines, "", expected, got
        return "different", tool, lines, "", expected, got


def says_nothing(tool, answer):
    """Whether XProf's answer is what these tools give when there is nothing."""
    return tool == "perf_counters" and b'"rows":[{' not in answer or tool == "smart_suggestion" and answer == b'{"suggestions":[]}'


def places(lines):
    """Where lines of compare() say that answers differ: which column or field, in whatever row or child."""
    return {re.sub(r"(rows|children|[a-zA-Z]+s)\[[0-9]+\]", r"\1[]", line.split(": ")[0]) for line in lines}


def questions(xplanectl, hosts, rng=None, most=None):
    """[(tool, [paths], options)]: each host alone, then all together; `most` limits the hosts asked alone."""
    alone = list(hosts)
    if most is not None and rng is not None and len(alone) > most:
        alone = rng.sample(alone, most)
    sets = [[h] for h in alone] + ([list(hosts)] if len(hosts) > 1 else [])
    for paths in sets:
        for tool in tool_table.pages(xplanectl):
            if len(paths) > 1 and tool in tool_table.of_one_host(xplanectl):
                continue
            for options in tool_table.choices(xplanectl, tool):
                if options.get("perfetto") != "true":  # bytes: megascale_perfetto.py compares them
                    yield tool, paths, options


def trace_questions(hosts, rng, most):
    """The same for the two trace viewers: what the page asks when it opens, moves about, searches and selects."""
    alone = rng.sample(list(hosts), min(most, len(hosts)))
    names = sorted(event_names(alone[0])) or [""]
    for h in alone:
        yield "trace_viewer", [h], {}
    for paths in [[h] for h in alone] + ([list(hosts)] if len(hosts) > 1 else []):
        yield "trace_viewer@", paths, {}
        for _ in range(3):
            o = {"resolution": str(rng.choice((0, 1, 10, 100, 8000, 100.5)))}
            begin = rng.uniform(-1, 60)
            if rng.random() < 0.8:
                o["start_time_ms"] = repr(round(begin, rng.choice((0, 3, 9))))
            if rng.random() < 0.8:
                o["end_time_ms"] = repr(begin + rng.choice((0, 1e-6, 1e-3, 1, 10, 1e4)) * rng.random())
            for k, share in (("full_dma", 0.3), ("mpmd_pipeline_view", 0.2)):
                if rng.random() < share:
                    o[k] = rng.choice(("true", "false"))
            if rng.random() < 0.3:
                o["format"] = "pb"
            yield "trace_viewer@", paths, o
        name = rng.choice(names)
        if name.isascii():
            yield "trace_viewer@", paths, {"search_prefix": name[:rng.randint(1, 12)], "search_metadata": rng.choice(("true", "false"))}


def event_names(path):
    out = set()
    with open(path, "rb") as f:
        space = pb.XSpace.FromString(f.read())
    for p in space.planes:
        for m in p.event_metadata.values():
            out.add(m.display_name or m.name)
    return out


def filled(tool, data):
    """Which kind of table the answer is of, and whether it has anything in it; None for other tools."""
    x = parse(data or b"")
    try:
        if tool == "input_pipeline_analyzer":
            return "step", bool(x[1]["rows"])
        if tool == "framework_op_stats":
            return "op", bool(x[0]["rows"])
        if tool == "kernel_stats":
            return "kernel", bool(x["rows"])
        if tool == "memory_profile":
            return "memory", bool(isinstance(x, dict) and x.get("memoryProfilePerAllocator"))
    except (KeyError, IndexError, TypeError):
        pass
    return None
