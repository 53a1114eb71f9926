# SPDX-License-Identifier: Apache-2.0
"""Random traces of PyTorch's profiler, and what tables must say of them by docs/pytorch.md: slow and simple."""
import random

LAUNCHES = ["cudaLaunchKernel", "cuLaunchKernelEx", "hipLaunchKernel", "cudaMemcpyAsync"]
OPS = ["aten::mm", "aten::add", "aten::copy_", "aten::linear", "vllm::moe", "c10d::allreduce_", "Backward0"]
KERNELS = ["gemm", "add", "Memcpy HtoD (Pageable -> Device)", "Memset (Device)", "ncclDevKernel_AllReduce"]


def make(seed):
    """A trace whose events may cross, miss their launches or ops, and come in any order. Times are in ns."""
    r = random.Random(seed)
    unit = r.choice([1, 1000])  # whole microseconds have many equal times
    events, correlation = [], 0
    for thread in range(r.randint(1, 3)):
        at = r.randint(0, 50)
        for _ in range(r.randint(1, 40)):
            at += r.randint(0, 12)
            kind = r.choice(["cpu_op"] * 5 + ["cuda_runtime"] * 5 + ["user_annotation", "python_function"])
            name = {"cpu_op": r.choice(OPS), "cuda_runtime": r.choice(LAUNCHES), "user_annotation": "forward",
                    "python_function": "train.py(3): step"}[kind]
            event = {"cat": kind, "name": name, "tid": 100 + thread, "ts": at * unit, "dur": r.randint(0, 40) * unit}
            if kind == "cuda_runtime" and r.random() < 0.9:
                correlation += 1
                event["correlation"] = correlation
            events.append(event)
    taken = list(range(0, correlation + 3))
    r.shuffle(taken)
    for stream in range(r.randint(1, 2)):
        at = r.randint(0, 30)
        for c in taken[:r.randint(0, 20)]:
            at += r.randint(0, 20)
            name = r.choice(KERNELS)
            kind = {"C": "gpu_memcpy", "S": "gpu_memset"}.get(name[3].upper()) if name.startswith("Mem") else "kernel"
            events.append({"cat": kind, "name": name, "tid": 7 + stream, "ts": at * unit, "dur": r.randint(1, 30) * unit,
                           "correlation": c, "device": 0})
            at += events[-1]["dur"] // unit
        taken = taken[20:]
    if r.random() < 0.3:
        r.shuffle(events)
    return events


def as_json(events):
    rows = []
    for e in events:
        device = "device" in e
        args = {k: e[k] for k in ("correlation", "device") if k in e} | ({"stream": e["tid"]} if device else {})
        rows.append({"ph": "X", "cat": e["cat"], "name": e["name"], "pid": 0 if device else 9, "tid": e["tid"],
                     "ts": f"{e['ts'] // 1000}.{e['ts'] % 1000:03}", "dur": e["dur"] / 1000, "args": args})
    return {"schemaVersion": 1, "traceEvents": rows}


def end(e):
    return e["ts"] + e["dur"]


def op_of(events, launch):
    """The innermost op of the launch's thread that is open when the launch begins."""
    order = {id(e): i for i, e in enumerate(events)}
    is_open = [e for e in events if e["cat"] == "cpu_op" and e["tid"] == launch["tid"]
               and (e["ts"], -e["dur"], order[id(e)]) < (launch["ts"], -launch["dur"], order[id(launch)])
               and end(e) > launch["ts"]]
    return max(is_open, key=lambda e: (e["ts"], -e["dur"], order[id(e)]))["name"] if is_open else None


def device_ops(events):
    """{op: ns} of the kernels, copies and sets of the device."""
    launches, sums = {}, {}
    for e in events:
        c = e.get("correlation", 0)
        if e["cat"] == "cuda_runtime" and c and (c not in launches or e["ts"] < launches[c]["ts"]):
            launches[c] = e
    for e in events:
        if "device" not in e:
            continue
        launch = launches.get(e["correlation"])
        name = "(launch not recorded)" if launch is None else op_of(events, launch) or "(no op)"
        sums[name] = sums.get(name, 0) + e["dur"]
    return sums


def host_ops(events):
    """{op: (occurrences, ns in all)} of the host."""
    sums = {}
    for e in events:
        if e["cat"] == "cpu_op":
            n, ns = sums.get(e["name"], (0, 0))
            sums[e["name"]] = n + 1, ns + e["dur"]
    return sums
