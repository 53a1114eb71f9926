#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs whose answer is known, and what our tools say of their profiles.  Usage: run.py BUILD PYTHON TORCH [NAME...]

BUILD has cli/xplanectl, PYTHON has TensorFlow and Keras, TORCH has PyTorch/XLA ("-": there is none).  The last line is "N passed, N failed, N skipped"."""
import json
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "capture"))
from harness import Results, Skip, scratch  # noqa: E402

BOUND = {"python": True, "ops": True, "parallel": True, "interleave": True, "prefetch": False}
POINTS = 10  # percent of the steps' time by which our share may differ from the measured one
TIMEOUT_S = 300
# Program and case; the framework and the kind that findings must tell first, None: no finding of 5% or more; by how many
# points its share may be beside what the program measured, 100: any share, None: it is at least a third of the time.
TOLD = (
    ("keras_job.py", "loader", "tensorflow", "input_wait", 15),
    ("keras_job.py", "healthy", "tensorflow", None, None),
    ("torch_job.py", "loader", "pytorch", "input_wait", 15),
    ("torch_job.py", "recompile", "pytorch", "recompilation", None),
    ("torch_job.py", "healthy", "pytorch", None, None),
    ("profiler_job.py", "loader", "pytorch", "input_wait", 15),
    ("profiler_job.py", "rank", "pytorch", "stragglers", 15),
    ("profiler_job.py", "tiny", "pytorch", "launch_bound", 100),
    ("profiler_job.py", "item", "pytorch", "launch_bound", 100),
    ("profiler_job.py", "healthy", "pytorch", None, None),
)
TRIES = 5  # another process may take the program's cores


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


def profiled(python, program, case, logdir):
    """(what the program measured, the directory of its profile)"""
    done = subprocess.run([python, HERE / program, case, logdir], check=True, capture_output=True, text=True, timeout=TIMEOUT_S)
    return json.loads(done.stdout.splitlines()[-1]), next(logdir.glob("**/plugins/profile/*"), logdir)


def judge(answer, measured, framework, kind, points, said):
    assert answer["framework"] == framework and answer["steps"] >= 12, answer
    if kind is None:  # steps that another process made long are outliers indeed
        assert not [f for f in answer["findings"] if f["share_percent"] >= 5 and f["kind"] != "step_outliers"], said
        return
    first, lost = answer["findings"][0], 100 * measured["lost_ms"] / measured["wall_ms"]
    assert first["kind"] == kind, said
    assert first["share_percent"] > 33 if points is None else abs(first["share_percent"] - lost) <= points, said


def check_findings(build, python, program, case, framework, kind, points):
    if python == "-":
        raise Skip("it could not be installed")
    for i in range(TRIES):
        measured, directory = profiled(python, program, case, scratch() / f"{program}-{case}-{i}")
        asked = [build / "cli" / "xplanectl", "findings", directory, "--format", "json"]
        answer = json.loads(subprocess.run(asked, check=True, capture_output=True, timeout=60).stdout)
        shares = {f["kind"]: round(f["share_percent"], 1) for f in answer["findings"]}
        said = f"{program} {case}: lost {measured['lost_ms']:.0f} of {measured['wall_ms']:.0f} ms; findings {shares}"
        print(said, flush=True)
        try:
            judge(answer, measured, framework, kind, points, said)
        except AssertionError:
            if i + 1 == TRIES:
                raise
        else:
            break
    if program == "keras_job.py":
        verdict = pipeline(build, directory)[1]
        assert ("NOT input-bound" in verdict) == (kind is None), verdict


# Ops of CPUs that do the work of one that torch counts.
CPU_CONVOLUTIONS = ("aten::mkldnn_convolution", "aten::_convolution")
# torch counts an op and its only child as one, if they have one name.
MERGED = {"aten::sum"}


def device_ops(build, trace, *options):
    asked = [build / "cli" / "xplanectl", "analyze", "framework_op_stats", trace, *options]
    table = json.loads(subprocess.run(asked, check=True, capture_output=True, timeout=60).stdout)[1]
    names = [c["id"] for c in table["cols"]]
    rows = [dict(zip(names, (c and c.get("v") for c in r["c"]))) for r in table["rows"]]
    return {r["operation"]: r for r in rows if r["host_or_device"] == "Device"}


def shapes_of(call):
    """"aten::mm", "[[4,8],[8,2]]" of "aten::mm(f32[4,8], f32[8,2])", without types and values."""
    name, args = call.removesuffix(")").split("(", 1)
    shape = lambda a: (re.search(r"(?<=[A-Za-z0-9])\[.*", a) or ["[]"])[0]
    return name, "[" + ",".join(map(shape, args.split(", ") if args else [])) + "]"


def check_torch_shapes(ours, theirs):
    """Rows by shape; rows of one shape that differ by values are summed."""
    total = {}
    for call, r in ours.items():
        if "(" in call:
            sums = total.setdefault(shapes_of(call), [0, 0, 0])
            for i, key in enumerate(("occurrences", "total_self_time", "total_time")):
                sums[i] += r[key]
    n = 0
    for name, shapes, count, self_us, total_us in theirs:
        key = name, json.dumps(shapes, separators=(",", ":"))
        if name in MERGED or not shapes:
            continue
        sums = total[key]
        assert sums[0] == count, (key, count, sums)
        assert abs(sums[1] - self_us) < 0.01 * count and abs(sums[2] - total_us) < 0.01 * count, (key, self_us, total_us, sums)
        n += 1
    assert n > 20, n


def check_torch_ops(build, torch):
    """Ops of a trace of torch.profiler against torch's own sums: runs, times, operations; by name, and by shape."""
    if torch == "-":
        raise Skip("no PyTorch")
    trace = scratch() / "torch_ops.pt.trace.json"
    done = subprocess.run([torch, HERE / "torch_ops.py", trace], check=True, capture_output=True, text=True, timeout=TIMEOUT_S)
    theirs = json.loads(done.stdout.splitlines()[-1])
    ours = device_ops(build, trace)
    check_torch_shapes(device_ops(build, trace, "--option", "group_by=shape"), theirs["shapes"])
    for name, (count, self_us) in theirs["ops"].items():
        assert name in MERGED or ours[name]["occurrences"] == count, (name, count, ours[name])
        assert abs(ours[name]["total_self_time"] - self_us) < 0.01 * count, (name, self_us, ours[name])
    flops = {name: round(r["measured_flop_rate"] * r["total_time"] * 1e3) for name, r in ours.items()}
    flops["aten::convolution"] = sum(flops.get(name, 0) for name in CPU_CONVOLUTIONS)
    for name, count in theirs["flops"].items():
        assert flops[name] == count, (name, count, flops[name])
    assert len(theirs["flops"]) >= 6, theirs["flops"]
    print(f"{len(theirs['ops'])} ops, {sum(theirs['flops'].values())} operations", flush=True)


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    build, python, torch, results = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3], Results(sys.argv[4:])
    for name in BOUND:
        results.run(f"TensorFlow's input, {name}", check, build, python, name)
    for program, case, framework, *told in TOLD:
        results.run(f"findings of {framework}: {program} {case}", check_findings, build,
                    torch if program in ("torch_job.py", "profiler_job.py") else python,
                    program, case, framework, *told)
    results.run("PyTorch's own sums of ops", check_torch_ops, build, torch)
    results.finish()


if __name__ == "__main__":
    main()
