#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs whose answer is known, and what our tools say of their profiles.  Usage: run.py BUILD PYTHON [NAME...]

BUILD has cli/xplanectl, PYTHON has TensorFlow.  The last line is "N passed, N failed, N skipped"."""
import json
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "capture"))
from harness import Results, scratch  # noqa: E402

BOUND = {"python": True, "ops": True, "parallel": True, "interleave": True, "prefetch": False}
POINTS = 10  # percent of the steps' time by which our share may be beside the measured one
TIMEOUT_S = 300


def pipeline(build, directory, *options):
    """(share of the steps' time in percent, verdict) by input_pipeline_analyzer."""
    asked = [build / "cli" / "xplanectl", "analyze", "input_pipeline_analyzer", directory, *options]
    tables = json.loads(subprocess.run(asked, check=True, capture_output=True, timeout=60).stdout)
    steps = next(t for t in tables if "input_conclusion" in t.get("p", {}))
    names = [c["id"] for c in steps["cols"]]
    rows = [{n: c["v"] for n, c in zip(names, row["c"])} for row in steps["rows"]]
    total = sum(r["stepTimeMs"] for r in rows)
    return 100 * sum(r["infeedTimeMs"] for r in rows) / total, steps["p"]["input_conclusion"], len(rows)


def check(build, python, name):
    logdir = scratch() / name
    done = subprocess.run([python, HERE / "tf_input.py", name, logdir], check=True, capture_output=True, text=True, timeout=TIMEOUT_S)
    measured = json.loads(done.stdout.splitlines()[-1])
    directory = next(logdir.glob("plugins/profile/*"))
    share, verdict, steps = pipeline(build, directory)
    expected = 100 * measured["input_share"]
    said = f"measured {expected:.1f}% of {measured['step_ms']:.0f} ms, ours {share:.1f}%: {verdict}"
    print(said, flush=True)
    assert steps == measured["steps"], (steps, measured)
    assert abs(share - expected) <= POINTS, said
    assert bool(re.search(r"is HIGHLY input-bound", verdict)) == BOUND[name], said
    assert BOUND[name] or "NOT input-bound" in verdict, said


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    build, python, results = pathlib.Path(sys.argv[1]), sys.argv[2], Results(sys.argv[3:])
    for name in BOUND:
        results.run(f"TensorFlow's input, {name}", check, build, python, name)
    results.finish()


if __name__ == "__main__":
    main()
