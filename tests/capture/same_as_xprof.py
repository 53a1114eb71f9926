# SPDX-License-Identifier: Apache-2.0
"""Sessions that we captured, opened by the real XProf: every tool's answer is ours."""
import pathlib

from harness import ROOT  # first: it makes the modules of tests/parity known

from compare import compare, parse
from judge import EXACT, PLAIN, Judge, questions
from ours import Ours
from xprof_worker import XProf

VIEWERS = ("trace_viewer", "trace_viewer@")


def check(build, directory, scratch):
    """Raises with the first differences of a session's directory; returns how many answers were compared."""
    files = sorted(str(f) for f in pathlib.Path(directory).glob("*.xplane.pb"))
    assert files, f"no profile in {directory}"
    with XProf(scratch=scratch) as xprof:
        ours = Ours(str(build), str(scratch))
        judge = Judge(xprof, ours, remember=True)
        asked = [tool(judge, *q) for q in questions(pathlib.Path(build) / "cli" / "xplanectl", files)]
        asked += [viewer(xprof, ours, name, [f]) for f in files for name in VIEWERS]
    different = [a for a in asked if a]
    assert not different, f"{len(different)} of {len(asked)} answers differ from XProf's: {different[:3]}"
    return len(asked)


def tool(judge, name, files, options):
    """"" when equal, else what is different: as XProf says it, and plainly but for what is deliberate."""
    exact = judge.ask(name, files, options, EXACT)
    if exact.kind not in ("equal", "unstable", "excluded"):
        return f"{name} {options} of {len(files)} hosts: {exact.kind} {exact.lines[:3]}"
    plain = judge.ask(name, files, options, PLAIN)
    if plain.kind == "different":
        return f"{name} {options} of {len(files)} hosts, plainly: {plain.lines[:3]}"
    return ""


def viewer(xprof, ours, name, files):
    said, expected = xprof.ask(name, files, {})
    if (said, expected) == ("none", None):
        return f"{name}: XProf has no answer"
    status, got = ours.ask(name, files, {})
    if status != "answer":
        return f"{name}: {status} {got[-300:]}"
    lines = compare(name, parse(expected), parse(got))
    return f"{name}: {lines[:3]}" if lines else ""


__all__ = ["ROOT", "check"]
