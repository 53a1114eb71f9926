#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Captures loops as people write them, and compares what findings says with what they measured.
Usage: battery.py BUILD PYTHON LIBRARIES [NAME...]

BUILD has cli/xplanectl, PYTHON has JAX (idioms_job.py, loops_job.py), LIBRARIES has what the other programs import ("-": none).
Prints a line for each program and the table of docs/findings.md.  The last line is "N passed, N failed, N skipped"."""
import json
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "capture"))
from harness import Results, Skip, scratch  # noqa: E402

PROGRAMS = "idioms_job.py", "loops_job.py"
OF_LIBRARIES = "practice_job.py", "everyday_job.py", "library_job.py", "framework_job.py"
TIMEOUT_S = 600
FALSE_FROM = 5  # percent that a finding of a healthy program offers to save; less is lost to no cause either
STEP_ERROR = 2, 5  # percent, of ten steps or more, of fewer
SHARE_ERROR = 15  # points
TRIES = 5  # another process may take the program's cores


def allowed(case):
    """Kinds that are the machine's: its other processes make steps longer; eight devices that share its cores wait for each other."""
    return {"step_outliers", "exposed_collectives", "stragglers"} if case.startswith("devices") else {"step_outliers"}


def ask(build, *arguments):
    asked = [build / "cli" / "xplanectl", *arguments]
    return json.loads(subprocess.run(asked, check=True, capture_output=True, timeout=60).stdout)


def step_times(build, directory):
    """In ms, of the slowest host."""
    times = {}
    for host in ask(build, "analyze", "time_breakdown", directory, "--option", "view=steps")["hosts"]:
        for step, ps in zip(host["steps"]["step"], host["steps"]["wall_ps"]):
            times[step] = max(times.get(step, 0), ps / 1e9)
    return list(times.values())


def judge(build, directory, m):
    """Compares our findings on a program with what the program measured itself."""
    answer, times = ask(build, "findings", directory, "--format", "json"), step_times(build, directory)
    found, lost, measured = answer["findings"], 100 * m["lost_ms"] / m["wall_ms"], m["wall_ms"] / m["steps"]
    cause = m["cause"] if lost >= FALSE_FROM else None
    share = next((f["share_percent"] for f in found if f["kind"] == cause), 0)
    false = [f["kind"] for f in found if f["saving_percent"] >= FALSE_FROM and f["kind"] not in allowed(m["case"])]
    # A finding that the profile cannot quantify saves nothing, and follows those that do.
    first = max(found, key=lambda f: f["share_percent"] if cause == "idle_unknown" else f["saving_percent"], default={"kind": None})
    return {
        "case": m["case"], "cause": cause, "false": [] if cause else false,
        "right": first["kind"] == cause if cause else not false,
        "share_error": abs(share - lost) if cause else None,
        # A call of a library that runs several programs is not one step for us: then the counts differ.
        "step_error": 100 * abs(statistics.fmean(times) / measured - 1) if len(times) == m["steps"] else None,
        "said": f"{m['case']}: {cause} {lost:.1f}%, {len(times)} steps of {statistics.fmean(times or [0]):.2f} ms; measured {m['steps']} of "
                f"{measured:.2f} ms; findings { {f['kind']: round(f['share_percent'], 1) for f in found} }",
        "steps": m["steps"],
    }


def is_good(j):
    """Whether our findings are near enough.  A program cannot measure which part of a slow call is compiling, launching or a callback, so
    that these shares are not compared."""
    limit = STEP_ERROR[j["steps"] < 10]
    share = j["share_error"] is None or j["share_error"] <= SHARE_ERROR or j["cause"] in ("recompilation", "launch_bound", "host_callback")
    return j["right"] and share and (j["step_error"] is None or j["step_error"] <= limit)


def captured(python, program, names, logdir):
    done = subprocess.run([python, HERE / program, logdir, *names], capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stderr[-2000:]
    return {m["case"]: m for m in map(json.loads, (s for s in done.stdout.splitlines() if s[:1] == "{"))}


def groups(cases):
    """Those that a process can capture: of eight devices, of TensorFlow and of a package apart from others."""
    by_first = {}
    for c in cases:
        by_first.setdefault(c if c.startswith("keras") else c.split("_")[0] if c.startswith(("devices", "tf_", "orbax")) else "", []).append(c)
    return by_first.values()


def check(build, python, program, case, first, judged):
    """first: (its measurements, where its group was captured)"""
    for i in range(TRIES):
        if first:
            (m, logdir), first = first, None
        else:
            logdir = scratch() / f"{case}-{i}"
            m = captured(python, program, [case], logdir)[case]
        j = judged[case] = judge(build, next((logdir / case).glob("**/plugins/profile/*")), m)
        print(j["said"], flush=True)
        if is_good(j):
            return
    raise AssertionError(j["said"])


def write_table(program, judged):
    """The rows of docs/findings.md, "The battery", of one program."""
    print(f"\n{program}\n| programs | tried | first finding right | false findings | error of the share | error of the step time |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, is_kind in (("healthy", lambda j: not j["cause"]), ("slow", lambda j: j["cause"])):
        some = [j for j in judged.values() if is_kind(j)]
        errors = {k: [j[k] for j in some if j[k] is not None] for k in ("share_error", "step_error")}
        share, step = ("median %.1f, most %.1f" % (statistics.median(v), max(v)) if v else "–" for v in errors.values())
        print(f"| {name} | {len(some)} | {sum(j['right'] for j in some)} | {sum(len(j['false']) for j in some)} | {share} | {step} |", flush=True)


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    build, results = pathlib.Path(sys.argv[1]), Results(sys.argv[4:])
    for python, program in [(sys.argv[2], p) for p in PROGRAMS] + [(sys.argv[3], p) for p in OF_LIBRARIES]:
        if python == "-":
            results.run(f"battery: {program}", no_libraries)
            continue
        judged = {}
        cases = subprocess.run([python, HERE / program, "--list"], check=True, capture_output=True, text=True).stdout.split()
        chosen = [c for c in cases if not sys.argv[4:] or any(n in f"battery: {c}" for n in sys.argv[4:])]
        for group in groups(chosen):
            logdir = scratch() / f"{program}-{group[0]}-all"
            measured = captured(python, program, group, logdir)
            for case in group:
                results.run(f"battery: {case}", check, build, python, program, case, (measured[case], logdir), judged)
        write_table(program, judged)
    results.finish()


def no_libraries():
    raise Skip("the libraries are not installed")


if __name__ == "__main__":
    main()
