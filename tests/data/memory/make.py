#!/usr/bin/env python3
"""Makes the XSpaces of this folder anew, and asks the real XProf for memory_profile of each.

    make.py        needs the python that tests/parity/setup.sh prints

One allocator and no two equal allocations in a case: XProf's answer is then the same bytes every time.
"""
import os
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "parity"))
from protos import pb
from xprof.convert import raw_to_tool_data as convert


class Plane:
    def __init__(self, space, name):
        self.p, self.events, self.stats = space.planes.add(name=name), {}, {}

    def event_id(self, name):
        if name not in self.events:
            self.events[name] = len(self.events) + 1
            m = self.p.event_metadata[self.events[name]]
            m.id, m.name = self.events[name], name
        return self.events[name]

    def stat_id(self, name):
        if name not in self.stats:
            self.stats[name] = len(self.stats) + 1
            m = self.p.stat_metadata[self.stats[name]]
            m.id, m.name = self.stats[name], name
        return self.stats[name]

    def line(self, name):
        return self.p.lines.add(id=len(self.p.lines) + 1, name=name, timestamp_ns=1000)

    def event(self, line, name, offset_ps, duration_ps=0, **stats):
        e = line.events.add(metadata_id=self.event_id(name), offset_ps=offset_ps, duration_ps=duration_ps)
        for k, v in stats.items():
            s = e.stats.add(metadata_id=self.stat_id(k))
            if isinstance(v, tuple):
                s.ref_value = self.stat_id(v[0])
            elif isinstance(v, str):
                s.str_value = v
            elif isinstance(v, float):
                s.double_value = v
            else:
                s.int64_value = v
        return e


def allocation(p, line, at, address, size, used, alive=True, **more):
    stats = dict(allocator_name=("GPU_0_bfc",), bytes_reserved=0, bytes_allocated=used, bytes_available=1 << 30, fragmentation=0.25,
                 peak_bytes_in_use=1 << 33, requested_bytes=size - 3, allocation_bytes=size, addr=address)
    p.event(line, "MemoryAllocation" if alive else "MemoryDeallocation", at, **{**stats, **more})


def steps(space):
    """Steps, matched and unmatched frees, texts of both kinds, memory that nothing accounts for."""
    p = Plane(space, "/host:CPU")
    p.stat_id("group_id")
    a, b = p.line("t1"), p.line("t2")
    allocation(p, a, 10, 4096, 512, 512, tf_op="before/any:step", region_type="persist", data_type=1, shape="[1,2]")
    allocation(p, a, 20, 8192, 1024, 5536, group_id=4, tf_op=("a/MatMul<>",), region_type="output", data_type=103, shape="[]")
    allocation(p, b, 25, 8192, 100, 5636, group_id=4, tf_op="second at one address", data_type=77, bytes_reserved=64)
    allocation(p, a, 30, 4096, 512, 5024, alive=False)
    allocation(p, b, 40, 12288, 256, 5280, group_id=5, tf_op="late", region_type="temp", data_type=0, shape="[é]")
    allocation(p, b, 50, 16384, 2048, 7328, group_id=5, tf_op="peak", region_type="temp", bytes_reserved=64)
    allocation(p, a, 60, 8192, 1024, 6304, alive=False, group_id=5)
    allocation(p, a, 70, 777, 10, 6294, alive=False)
    allocation(p, a, 80, 12288, 128, 7328, group_id=5, tf_op="after the peak")
    p.event(a, "Other", 90, 5, bytes_reserved=1 << 40)


def negative(space):
    """Numbers that no allocator gives, and an event that stands for several."""
    p = Plane(space, "/host:CPU")
    line = p.line("t")
    allocation(p, line, 5, -4096, 1, -7, bytes_available=-1, tf_op="x")
    allocation(p, line, 6, 1, 3 - (1 << 63), 1 << 62, bytes_reserved=1 << 61, device_ordinal=-3)
    e = p.event(line, "MemoryAllocation", 7, 0, allocation_bytes=5, device_ordinal=-3)
    e.num_occurrences = 4
    p.event(line, "MemoryDeallocation", 8, 0, device_ordinal=-3, fragmentation=1)
    del line.events[0]


def ties(space):
    """More events at equal times than a stable sort would leave in order."""
    p = Plane(space, "/host:CPU")
    for n in range(3):
        line = p.line(f"t{n}")
        for i in range(14):
            allocation(p, line, i // 5 * 10, 256 * (20 * n + i), 100 + 20 * n + i, 1000 * (i % 4) + n, alive=(i + n) % 4 > 0, tf_op=f"op{n}.{i}")


def modules(space):
    """Programs on TPUs beside a host that allocates nothing."""
    Plane(space, "/host:CPU").line("t")
    for name in ("/device:TPU:0", "/device:TPU:1 SparseCore 0", "/device:GPU:0"):
        p = Plane(space, name)
        for title in ("XLA Modules", "XLA Ops"):
            line = p.line(title)
            p.event(line, "jit_f(7)<\u2028>", 1000, 500)
            p.event(line, "jit_g(8)", 2000, -700).offset_ps = -5


def ask(data):
    with tempfile.TemporaryDirectory() as top:
        run = os.path.join(top, "plugins", "profile", "run")
        os.makedirs(run)
        path = os.path.join(run, "h.xplane.pb")
        with open(path, "wb") as f:
            f.write(data)
        answer, _ = convert.xspace_to_tool_data([path], "memory_profile", {"use_saved_result": False})
    return answer if isinstance(answer, bytes) else answer.encode()


def main():
    for make in (steps, negative, ties, modules):
        space = pb.XSpace()
        make(space)
        data = space.SerializeToString(deterministic=True)
        for suffix, content in (("pb", data), ("json", ask(data))):
            with open(os.path.join(HERE, f"{make.__name__}.{suffix}"), "wb") as f:
                f.write(content)


if __name__ == "__main__":
    main()
