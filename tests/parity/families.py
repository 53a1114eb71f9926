# SPDX-License-Identifier: Apache-2.0
"""Sessions of hosts with GPUs, with TPUs, with neither; see generator.py."""
from gpu import gpu_planes
from hlo import Module
from host import HostThreads
from pools import ODD_NAMES
from protos import pb
from tpu import TpuProgram, tpu_planes
from xspace import Plane

MS = 10 ** 9  # ps


class Session:
    def __init__(self, rng, knobs, real_hlo=()):
        self.r, self.k, self.real_hlo = rng, knobs, real_hlo
        r = rng
        self.family = "gpu" if r.random() < knobs["gpu"] else "tpu" if r.random() < knobs["tpu"] / max(1e-9, 1 - knobs["gpu"]) else "cpu"
        self.odd = r.random() < knobs["odd"]
        self.tf = r.random() < knobs["tf"]
        self.has_steps = r.random() < knobs["steps"]
        self.size = knobs["size"]
        self.memory = r.random() < knobs["memory"]
        self.big = r.random() < knobs["big"]
        self.grouped = r.random() < knobs["grouped"]
        self.names = self.host_names()
        self.step_number = r.choice([0, 0, 1, 7, 1000, 2 ** 31 + 5])
        self.root_name = r.choice(["train", "train", "train_step", "test", "step", "my step/x", "TraceContext", "étape", "FunctionRun"])
        self.steps = self.make_steps()
        self.programs = self.make_programs()
        self.hosts = [Host(self, i, name) for i, name in enumerate(self.names)]
        self.about = {"family": self.family, "odd": self.odd, "tf": self.tf, "steps": len(self.steps), "hosts": self.names,
                      "kinds": [h.kind for h in self.hosts]}

    def chance(self, name):
        return self.r.random() < self.k[name]

    def host_names(self):
        r = self.r
        n = r.choice([2, 2, 2, 3, 3, 4, 5, 8]) if self.chance("several_hosts") else 1
        style = r.choice(["host-{}", "worker{}.cluster.local", "127.0.0.1_{}", "h{}", "vm{}"])
        return [style.format(i) for i in range(n)]

    def make_steps(self):
        """[(begin, end)] in ps, on the common clock."""
        r = self.r
        n = max(1, int(r.choice([1, 2, 3, 4, 5, 6, 7, 8, 10, 12]) * self.size))
        length = r.choice([MS // 20, MS, 5 * MS, 40 * MS])
        t, out = r.choice([0, 0, 10 ** 9, 10 ** 12]) + r.randint(0, MS), []
        for _ in range(n):
            d = max(1000, int(length * r.choice([1, 1, 1, r.uniform(0.2, 3)]) * r.uniform(0.9, 1.1)))
            out.append((t, t + d))
            t += d + r.choice([0, 1000, length // 10, length // 2])
        return out

    def make_programs(self):
        r, out = self.r, []
        for i in range(r.choice([1, 1, 2, 3])):
            pid = r.choice([i + 1, 77 + i, 10 ** 9 + i, 2 ** 63 + 11 + i])
            name = r.choice(["jit_step", "jit_train", "pjit_f", "cluster_1", "main", "jit_generate", "jit_ü"])
            if self.real_hlo and self.family != "tpu" and not self.tf and r.random() < 0.15:
                out.append(r.choice(self.real_hlo))
            elif self.family == "tpu":
                out.append(TpuProgram(r, name, pid, self.odd, self.size, self.big))
            else:
                out.append(Module(r, f"{name}", pid, "opaque" if self.chance("opaque_hlo") else "costed", jax=not self.tf))
        return out

    def files(self):
        return {f"{h.name}.xplane.pb": h.space.SerializeToString() for h in self.hosts}


class Host:
    def __init__(self, session, index, name):
        self.s, self.r, self.index, self.name = session, session.r, index, name
        self.space = pb.XSpace()
        r = self.r
        if r.random() < 0.95:
            self.space.hostnames.append(name if r.random() < 0.9 else r.choice(["localhost", "other:9101", "hôst"]))
        self.kind = session.family
        if index and session.chance("foreign_host"):
            self.kind = r.choice(["idle", "idle", "cpu", "cpu", "gpu" if session.family != "gpu" else "cpu", "nosteps"])
        self.clock = r.choice([0, 0, 0, r.randint(0, MS), r.randint(0, 50 * MS)])
        self.steps = self.make_steps()
        self.next_context = 1 + index * 1000
        self.next_plane_id = r.choice([0, 1, 10])
        self.build()

    def chance(self, name):
        return self.s.chance(name)

    def make_steps(self):
        """This host's view of the session's steps: [(number, begin, end)]."""
        r = self.r
        out = [(self.s.step_number + i, b + self.clock, e + self.clock) for i, (b, e) in enumerate(self.s.steps)]
        if len(self.s.names) > 1:
            if r.random() < 0.2:
                del out[0]
            if r.random() < 0.2:
                del out[-1:]
            if r.random() < 0.3:
                out = [(n, b, max(b + 1000, int(e + (e - b) * r.uniform(-0.2, 0.5)))) for n, b, e in out]
                out = [(n, b, min(e, out[i + 1][1]) if i + 1 < len(out) else e) for i, (n, b, e) in enumerate(out)]
        return out

    def context(self):
        self.next_context += 1
        return self.next_context

    def plane(self, name, pid=None, ref_share=None):
        self.next_plane_id += 1
        return Plane(self.space, name, self.next_plane_id if pid is None else pid, self.r,
                     self.r.choice([0, 0.3, 1]) if ref_share is None else ref_share)

    def build(self):
        r = self.r
        parts = []
        if self.kind != "idle":
            threads = HostThreads(self)
            if self.kind == "gpu" and self.s.family != "tpu" or self.kind == "nosteps" and self.s.family == "gpu":
                parts.append(lambda: gpu_planes(self, threads))
            elif self.s.family == "tpu" and self.kind in ("tpu", "nosteps"):
                parts.append(lambda: tpu_planes(self, threads))
            for p in parts:
                p()
            threads.finish()
        if self.kind != "idle" or r.random() < 0.5:
            self.metadata_plane()
        self.other_planes()
        if self.s.grouped:
            self.group()
        if r.random() < 0.1:
            planes = list(self.space.planes)
            r.shuffle(planes)
            del self.space.planes[:]
            self.space.planes.extend(planes)
        self.messages()

    def group(self):
        """As an XSpace that was preprocessed before: every host and device plane knows group_id."""
        steps = self.steps
        for plane in self.space.planes:
            if not (plane.name.startswith("/device:") or plane.name.startswith("/host:CPU")):
                continue
            ids = {m.name: k for k, m in plane.stat_metadata.items()}
            gid = ids.get("group_id") or max(plane.stat_metadata, default=0) + 1
            plane.stat_metadata[gid].id, plane.stat_metadata[gid].name = gid, "group_id"
            for line in plane.lines:
                for e in line.events:
                    t = line.timestamp_ns * 1000 + e.offset_ps
                    n = next((i for i, (_, b, end) in enumerate(steps) if b <= t < end), None)
                    if n is not None and self.r.random() < 0.97:
                        e.stats.add(metadata_id=gid, int64_value=n)

    def messages(self):
        r = self.r
        for field, words in ((self.space.errors, ["device lost", "out of <buffers> & more", "dropped 12 events"]),
                             (self.space.warnings, ["slow disk", "capture was late", "Verwässert"])):
            if r.random() < 0.06:
                field.append(r.choice(words))

    def metadata_plane(self):
        r = self.r
        if self.s.family == "tpu" and r.random() < 0.4 or not self.chance("hlo") and self.s.family != "gpu":
            return
        if self.s.family == "gpu" and self.s.tf and r.random() < 0.5:
            return
        p = self.plane("/host:metadata")
        stat = r.choice(["Hlo Proto", "Hlo Proto", "HLO Proto"])
        for m in self.s.programs:
            if not hasattr(m, "proto"):
                continue
            if r.random() < 0.05:
                continue
            name = f"{m.name}({m.program_id})" if r.random() < 0.9 else m.name
            self.hlo_entry(p, stat, name, m.program_id, m.proto.SerializeToString())
        if self.s.odd and r.random() < 0.3:
            p.event("broken(5)", stats={stat: b"\x0a\x05abc"}, key="broken")
            p.event("nothing(6)", key="nothing")

    def hlo_entry(self, p, stat, name, pid, data):
        key = pid - 2 ** 64 if pid >= 2 ** 63 else pid
        if self.r.random() < 0.15:
            key = 3 + self.r.randint(0, 50)    # libtpu's older numbering; the name has the program id
        m = p.p.event_metadata[key]
        m.id, m.name = key, name
        p.fill(m.stats, {stat: data})

    def other_planes(self):
        r = self.r
        if r.random() < 0.2:
            p = self.plane(r.choice(["/host:python-tracer", "/host:CUPTI", "#Chip0", "/device:CUSTOM:x", "Task Environment", "Syscalls",
                                     "/host:tfstreamz", "", "/host:__ScopeRangeCallStack__"]))
            line = p.line("main", 1, r.randint(0, 1000))
            for i in range(r.randint(0, 5)):
                line.add(line.l.timestamp_ns * 1000 + i * 1000, 500, r.choice(["x", "train", "MatMul:MatMul"]), {"group_id": 1} if r.random() < 0.02 else ())
            line.done()
        if self.s.odd and r.random() < 0.5:
            self.plane(r.choice(ODD_NAMES + ["/host:CPU2", "/device:GPU", "/device:TPU"]))
