#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs of JAX that are slow for a known reason, and what findings says of them.  Usage: run_jax.py BUILD PYTHON [NAME...]

BUILD has cli/xplanectl, PYTHON has JAX.  The last line is "N passed, N failed, N skipped"."""
import json
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "capture"))
from harness import Results, free_port, scratch  # noqa: E402

TIMEOUT_S = 300
# The kind that must come first, and by how many points its share may be beside what the program measured.  A busy
# machine adds idle time, so limits are wide; where None, the share is at least a third of the time.
SLOW = {
    "loader": ("input_wait", 15),
    "loader_apart": ("input_wait", 15),
    "recompile": ("recompilation", None),
    "callback": ("host_callback", 25),
    "debug_print": ("host_callback", 25),
    "tiny": ("launch_bound", None),
    "tiny_python": ("launch_bound", None),
    "tiny_eager": ("launch_bound", None),
    "augment": ("host_bound", 15),
    "gather": ("far_from_roofline", 25),
    "fetch": ("host_copies", 20),
    "outlier": ("step_outliers", 20),
    "checkpoint": ("checkpoint", 15),
}
NAMED = {"augment": "augment", "loader": "load_batch"}  # annotations in which the device waits most
HEALTHY = ("healthy", "healthy_scan", "healthy_python", "healthy_unmarked", "healthy_train", "healthy_conv", "healthy_ahead",
           "healthy_sort", "healthy_rows")
RANKS = 4  # of the program whose last process is late
PAIR = 2   # processes of hosts_job.py
# By how many points a saving may differ from the measured one.  While all copy, a fifth of the time counts as computing.
SAVING_POINTS = {"all_copy": 25}
TRIES = 5  # of a program: another process may take its cores


def job(python, logdir, *arguments, program="jax_job.py"):
    return subprocess.Popen([python, HERE / program, logdir, *map(str, arguments)], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def finish(process):
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, err[-2000:]
    return {m["case"]: m for m in map(json.loads, (s for s in out.splitlines() if s[:1] == "{"))}  # others print, too


def findings(build, directory):
    asked = [build / "cli" / "xplanectl", "findings", directory, "--format", "json"]
    return json.loads(subprocess.run(asked, check=True, capture_output=True, timeout=60).stdout)


def run_dir(logdir, case):
    return next((logdir / case).glob("plugins/profile/*"))


def told(case, answer, measured):
    shares = {f["kind"]: round(f["share_percent"], 1) for f in answer["findings"]}
    return f"{case}: lost {measured['lost_ms']:.0f} of {measured['wall_ms']:.0f} ms; findings {shares}"


def judge_slow(case, answer, measured, said):
    kind, points = SLOW[case]
    assert answer["framework"] == "jax" and answer["steps"] == 12, answer
    first = answer["findings"][0]
    assert first["kind"] == kind and "tf.data" not in first["advice"], said
    assert case not in NAMED or first["ops"][0]["name"] == NAMED[case], first
    lost = 100 * measured["lost_ms"] / measured["wall_ms"]
    assert first["share_percent"] > 33 if points is None else abs(first["share_percent"] - lost) <= points, said


def judge_healthy(_case, answer, _measured, said):
    # Steps that another process made long are outliers indeed.
    assert not [f for f in answer["findings"] if f["share_percent"] >= 5 and f["kind"] != "step_outliers"], said


def check(build, python, logdir, measured, case):
    for i in range(TRIES):
        answer = findings(build, run_dir(logdir, case))
        said = told(case, answer, measured[case])
        print(said, flush=True)
        try:
            return (judge_slow if case in SLOW else judge_healthy)(case, answer, measured[case], said)
        except AssertionError:
            if i + 1 == TRIES:
                raise
        logdir = scratch() / f"again{i}"
        measured = finish(job(python, logdir, case))


def again(judge):
    """Likewise of programs that run together: judge(build, python, directory of this try)."""
    def check_tries(build, python):
        for i in range(TRIES):
            try:
                return judge(build, python, scratch() / f"{judge.__name__}{i}")
            except AssertionError as e:
                if i + 1 == TRIES:
                    raise
                print(f"again, for {e}", flush=True)
    return check_tries


@again
def check_compare(build, python, logdir):
    """A program beside the same with a slow loader: what differs is input."""
    measured = finish(job(python, logdir, "loader_none", "loader"))
    asked = [build / "cli" / "xplanectl", "compare", run_dir(logdir, "loader_none"), run_dir(logdir, "loader"),
             "--format", "json", "--allow-single", "--fail-if", "step_time>5%"]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=60)
    assert done.returncode == 4, done
    answer = json.loads(done.stdout)
    times = {t["cause"]: t["difference_ps"] for t in answer["times"]}
    print("compare:", {c: round(ps / 1e9, 1) for c, ps in times.items() if ps}, flush=True)
    lost = measured["loader"]["lost_ms"] / 12
    assert abs(times["input"] / 1e9 - lost) < 0.25 * lost, (times, lost)
    assert max(times, key=times.get) == "input", times
    low, high = answer["step_time"]["interval_ps"]
    assert 0 < low < high, answer["step_time"]


def finish_all(jobs):
    try:
        return [finish(p) for p in jobs]
    finally:
        for p in jobs:
            p.kill()


def session_of(logdir, ranks, case):
    """All wrote the same name, as they share a host."""
    session = logdir / f"session-{case}"
    session.mkdir(parents=True)
    for rank in range(ranks):
        shutil.copy(next(run_dir(logdir / str(rank), case).glob("*.xplane.pb")), session / f"h{rank}.xplane.pb")
    return session


def check_hosts(build, python, case):
    """Two processes that wait for each other: what the loop without the cause saves."""
    @again
    def hosts(build, python, logdir):
        port = free_port()
        jobs = [job(python, logdir / case / str(rank), rank, PAIR, port, case, program="hosts_job.py") for rank in range(PAIR)]
        measured = [m[case] for m in finish_all(jobs)]
        answer, cause = findings(build, session_of(logdir / case, PAIR, case)), measured[0]["cause"]
        wall, without = (max(m[k] for m in measured) for k in ("wall_ms", "without_ms"))
        saved, steps = 100 * (1 - without / wall), measured[0]["steps"]
        found = {f["kind"]: round(f["saving_percent"], 1) for f in answer["findings"]}
        said = f"{case}: {wall / steps:.2f} ms, without the cause {saved:.1f}% less; {answer['verdict']['step_ps'] / 1e9:.2f} ms, savings {found}"
        print(said, flush=True)
        assert abs(answer["verdict"]["step_ps"] / 1e9 / (wall / steps) - 1) <= 0.02, said
        assert not cause or (answer["findings"][0]["kind"] == cause and abs(found[cause] - saved) <= SAVING_POINTS.get(case, 15)), said
    hosts(build, python)


@again
def check_straggler(build, python, logdir):
    """Four processes, each a host, of which the last one sleeps in every step."""
    port = free_port()
    measured = finish_all([job(python, logdir / str(rank), "straggler", rank, RANKS, port) for rank in range(RANKS)])
    measured = [m["straggler"] for m in measured]
    answer, late = findings(build, session_of(logdir, RANKS, "straggler")), RANKS - 1
    print(told("straggler", answer, measured[late]), flush=True)
    found = answer["findings"][0]
    assert found["kind"] == "stragglers", answer
    assert found["hosts"][0]["host"] == f"h{late}" and f"of h{late} in" in found["text"], found
    # All devices but one wait.
    expected = 100 * measured[late]["lost_ms"] / measured[late]["wall_ms"] * (RANKS - 1) / RANKS
    assert abs(found["share_percent"] - expected) <= 15 and found["share_percent"] > 10, (found, expected)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    build, python, results = pathlib.Path(sys.argv[1]), sys.argv[2], Results(sys.argv[3:])
    logdir = scratch() / "jax"
    measured = finish(job(python, logdir, *SLOW, *HEALTHY))
    for case in (*SLOW, *HEALTHY):
        results.run(f"findings of a JAX program: {case}", check, build, python, logdir, measured, case)
    results.run("comparison of two JAX programs", check_compare, build, python)
    results.run("findings of a JAX program: straggler", check_straggler, build, python)
    for case in subprocess.run([python, HERE / "hosts_job.py", "--list"], check=True, capture_output=True, text=True).stdout.split():
        results.run(f"findings of two JAX processes: {case}", check_hosts, build, python, case)
    results.finish()


if __name__ == "__main__":
    main()
