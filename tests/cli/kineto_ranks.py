# SPDX-License-Identifier: Apache-2.0
"""Traces of the ranks of a job, as torch.profiler writes them: made for tests whose numbers are counted by hand."""
import gzip
import json

BASE_NS = 1_700_000_000_000_000_000
STEP_US, LENGTH, RING = 1000, 1_000_000, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def at_s(seconds):
    """The nanoseconds since 1970 that stand in names."""
    return BASE_NS + int(seconds * 1e9)


def ddp(rank, world, begin_s=0.0, late_us=0, steps=3, ahead_us=0, said=True, seq=False, members=None):
    """Each step computes 100 us, a late rank longer, and reduces twice: until 410 us after the step's begin, and from
    420 us on for 100 us.  The second kernels of all ranks begin together."""
    events, base_us = [], begin_s * 1e6 + ahead_us
    members = members or list(range(world))

    def add(cat, name, tid, ts, dur, **args):
        pid = rank if cat == "kernel" else 100 + rank
        events.append({"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": round(base_us + ts, 3),
                       "dur": dur, "args": args})

    for step in range(steps):
        begin, device, thread = step * STEP_US, {"device": rank, "stream": 7}, 100 + rank
        add("user_annotation", f"ProfilerStep#{step + 1}", thread, begin, STEP_US)
        compute = 100 + late_us
        spans = [(10 + compute, 410), (420, 520)]
        for k, name in enumerate(["aten::mm", "c10d::allreduce_", "c10d::allreduce_"]):
            correlation = 10 * step + k + 1
            add("cpu_op", name, thread, begin + 1 + 3 * k, 2)
            add("cuda_runtime", "cudaLaunchKernel", thread, begin + 2 + 3 * k, 1, correlation=correlation)
            if not k:
                add("kernel", "gemm", 7, begin + 10, compute, correlation=correlation, **device)
                continue
            more = {"Seq": 2 * step + k} if seq else {}
            add("kernel", RING, 20, begin + spans[k - 1][0], spans[k - 1][1] - spans[k - 1][0],
                **{"device": rank, "stream": 20, "correlation": correlation, "Collective name": "allreduce",
                   "In msg nelems": LENGTH, "Out msg nelems": LENGTH, "Group size": len(members), "dtype": "Float",
                   "In split size": "[]", "Process Group Name": "0",
                   "Process Group Ranks": str(members)}, **more)
    about = {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": world}} if said else {}
    return {"schemaVersion": 1, "deviceProperties": [{"id": rank, "name": "NVIDIA H100"}], **about,
            "host_name": f"node{rank}", "baseTimeNanoseconds": BASE_NS, "traceEvents": events}


def write(path, trace):
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(trace).encode()
    path.write_bytes(gzip.compress(text, 1) if path.name.endswith(".gz") else text)
