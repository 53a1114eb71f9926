# SPDX-License-Identifier: Apache-2.0
"""The threads of a host: steps, framework ops, tf.data, launches, memory, thread pools."""
from pools import HOST_NOISE, ITERATORS, ODD_NAMES, jax_op, tf_op
from xspace import U

EXECUTOR, THREADPOOL, TPU_LAUNCH, TPU_STREAM = 2, 15, 12, 11


class HostThreads:
    """Builds /host:CPU.  Device code adds launches through `launch`; `finish` writes the plane."""

    def __init__(self, host):
        self.h, self.r, self.s = host, host.r, host.s
        r = self.r
        self.plane = host.plane("/host:CPU", pid=r.choice([0, 1, 701]))
        self.base_ns = r.choice([0, 0, host.clock // 1000])
        self.lines, self.next_line = [], r.choice([1, 1000, 139000])
        self.main = self.line(r.choice(["python", "python3/4711", "main", "tf_main"]))
        self.pool = [self.line(f"tf_XLATfrt/{i}") for i in range(r.choice([0, 1, 2, 4]))]
        self.launcher = self.line("launch thread") if r.random() < 0.4 else self.main
        self.linked = r.random() < 0.9       # the launch thread's work is connected to the steps
        self.loops = r.random() < 0.07       # a TF loop: executor events with iteration numbers
        self.roots = host.kind != "nosteps" and self.s.has_steps
        self.tf_data_on = host.chance("tf_data")
        self.correlation = r.choice([1, 1, 1000, 2 ** 32])
        self.windows = []        # per step, where launches may go: (begin, end)
        self.step_ids = {}       # TF step id per step
        self.eager = r.choice([None, None, 0, 1])
        for n, b, e in host.steps:
            self.step(n, b, e)
        if r.random() < 0.3 and host.steps:
            t = host.steps[-1][2]
            self.noise(self.main, t + 1000, t + 10 ** 9, 3)

    def line(self, name):
        self.next_line += 1
        l = self.plane.line(name, self.next_line, self.base_ns, display_name=self.r.choice(["", "", name + " display"]))
        self.lines.append(l)
        return l

    # ---- one step ----

    def step(self, number, b, e):
        r = self.r
        inner_b, inner_e = b + (e - b) // 50, e - (e - b) // 50
        if self.roots:
            self.root(number, b, e)
        if r.random() < 0.9:
            self.noise(self.main, inner_b, inner_e, r.choice([0, 1, 4]))
        if self.s.tf:
            self.tf_step(number, inner_b, inner_e)
        elif r.random() < 0.7:
            self.worker_events(number, inner_b, inner_e)
        if self.tf_data_on:
            self.tf_data(number, inner_b, inner_e)
        if r.random() < 0.3:
            self.infeed(number, inner_b, inner_e)
        if self.launcher is not self.main and self.linked:
            out, into = self.producer(r.choice([EXECUTOR, 5]))
            self.main.add(inner_b + 3, (e - b) // 20 + 1, "Enqueue launch", out)
            self.launcher.add(inner_b + 4, e - b, "RunLaunches", into)
        self.windows.append((inner_b, inner_e))

    def root(self, number, b, e):
        r, name = self.r, self.s.root_name
        stats = {}
        if name not in ("TraceContext",) or r.random() < 0.3:
            stats["_r"] = r.choice([1, 1, 1, True])
        which = r.random()
        if which < 0.8:
            stats["step_num"] = number
        elif which < 0.9:
            stats["iter_num"], stats["id"] = number, 5
        if r.random() < 0.1:
            stats["graph_type"] = "train_function"
        if self.s.odd and r.random() < 0.2:
            stats["step_num"] = r.choice([-1, "7", U(2 ** 63), None])
        self.main.add(b, e - b, name, stats)

    def noise(self, line, b, e, n):
        """Nested events without meaning, now and then with a tf_op stat."""
        r = self.r
        t = b
        for _ in range(n):
            d = (e - b) // (n + 1)
            self.nest(line, t, t + d, r.choice([1, 1, 2, 4]))
            t += d

    def nest(self, line, b, e, depth):
        r = self.r
        if e - b < 10:
            return
        name = r.choice(HOST_NOISE) if not (self.s.odd and r.random() < 0.3) else r.choice(ODD_NAMES)
        stats = {}
        if r.random() < 0.05:
            stats["tf_op"] = r.choice([jax_op(r) + ":", "a/b:Op", "", "x"])
        if r.random() < 0.05:
            stats["tf_function_call"] = r.choice(["eager", "concrete", "traced-xla", "traced-nonXla", "notTraced-nonXla", "notTraced-xla", "odd"])
            stats["tracing_count"] = r.randint(0, 5)
        if name.startswith("EagerExecute") and r.random() < 0.7:
            stats["is_func"] = r.choice([0, 1])
        if self.s.odd and r.random() < 0.1:
            stats["_a"] = 1
        line.add(b, e - b, name, stats)
        if depth > 1:
            cut = r.randint(b, e)
            self.nest(line, b + r.choice([0, 1, (cut - b) // 4]), cut, depth - 1)
            if r.random() < 0.5:
                self.nest(line, cut, e - r.choice([0, (e - cut) // 3]), depth - 1)

    def producer(self, kind):
        c = self.h.context()
        pid = {"_pid": self.r.choice([4711, 5])} if self.r.random() < 0.01 else {}
        return {"_pt": kind, "_p": U(c)}, {"_ct": kind, "_c": U(c), **pid}

    def worker_events(self, number, b, e):
        """Work handed to a pool thread through a producer and consumer pair."""
        r = self.r
        if not self.pool:
            return
        out, into = self.producer(r.choice([EXECUTOR, THREADPOOL, 5]))
        self.main.add(b + 5, (e - b) // 20 + 1, "Dispatch", out)
        line = r.choice(self.pool)
        mid = (b + e) // 2
        if r.random() < 0.3:
            c = U(self.h.context())
            self.main.add(b + 6, 10, "ThreadpoolListener::Record", {"_pt": THREADPOOL, "_p": c})
            line.add(b + 7, 0, "ThreadpoolListener::StartRegion", {"_ct": THREADPOOL, "_c": c} if r.random() < 0.9 else {})
            line.add(mid, 0, "ThreadpoolListener::StopRegion", ())
        line.add(b + 10, mid - b, r.choice(["ExecuteHelper", "TfrtCpuExecutable::ExecuteHelper", "ThunkExecutor::Execute (task)"]), into)
        if r.random() < (0.9 if self.h.kind == "cpu" else 0.1):
            self.thunks(line, number, b + 20, mid)
        else:
            self.nest(line, b + 20, mid, r.choice([1, 2, 3]))

    def thunks(self, line, number, b, e):
        """XLA ops on the host, as the CPU backend writes them; some contain others."""
        r = self.r
        modules = [m for m in self.s.programs if hasattr(m, "kernels")]
        if not modules or e - b < 1000:
            return
        m = r.choice(modules)
        pid = {"program_id": U(m.program_id) if m.program_id >= 2 ** 63 or r.random() < 0.3 else m.program_id}
        if r.random() < 0.1:
            pid = {}
        n = max(1, int(r.choice([1, 4, 10]) * self.s.size))
        for i in range(n):
            name, _, opcode = r.choice(m.kernels)
            t, d = b + (e - b) * i // n, (e - b) // n - r.choice([0, 1, (e - b) // (3 * n)])
            stats = {"hlo_op": name, "hlo_module": m.name, **pid, "run_id": number, "device_ordinal": r.choice([0, 0, 1])}
            if self.s.odd and r.random() < 0.05:
                del stats[r.choice(sorted(stats))]
            out, into = self.producer(THREADPOOL)
            line.add(t, d, r.choice([name, name, "call_" + name]), {**stats, **out})
            if (opcode in ("while", "call", "fusion") or r.random() < 0.1) and d > 100:
                inner, _, _ = r.choice(m.kernels)
                line.add(t + d // 5, d // 2, inner, {**stats, "hlo_op": inner})
            if r.random() < 0.5:
                line.add(t + d, 0, f"end: {name}", into)

    def tf_step(self, number, b, e):
        r = self.r
        step_id = r.choice([number * 2 + 1, number * 2 + 1, 42])
        self.step_ids[number] = step_id
        span = e - b
        at = b
        if r.random() < 0.5:
            stats = {} if self.eager is None else {"is_func": self.eager}
            self.main.add(at, span, "EagerExecute", stats)
        if r.random() < 0.5:
            self.main.add(at + 1, span - 2, r.choice(["train_function", "test_function", "f<g>"]),
                          {"tf_function_call": r.choice(["traced-nonXla", "notTraced-nonXla", "notTraced-xla", "concrete"]), "tracing_count": r.randint(1, 3)})
        out, into = self.producer(EXECUTOR)
        self.main.add(at + 2, span // 2, "FunctionRun", {"id": step_id, **(out if r.random() < 0.9 else {})})
        lines = self.pool or [self.main]
        for line in lines[:2]:
            begin = at + 10 + span // 100
            end = begin + span * r.randint(20, 80) // 100
            stats = {"id": step_id, "iter_num": number if self.loops else 0, **(into if r.random() < 0.9 else {})}
            line.add(begin, end - begin, "ExecutorState::Process", stats)
            t = begin
            if self.h.kind == "cpu" and r.random() < 0.3:
                self.thunks(line, number, begin, end)
                continue
            for _ in range(max(1, int(r.choice([2, 5, 12]) * self.s.size)) * (20 if self.s.big else 1)):
                d = (end - begin) // r.choice([10, 20, 40]) // (20 if self.s.big else 1)
                if t + d > end:
                    break
                self.tf_event(line, t, d, step_id)
                t += d + r.choice([0, 0, d // 3])

    def tf_event(self, line, t, d, step_id):
        r = self.r
        name, kind = tf_op(r)
        if self.s.big:
            name = f"scope_{r.randint(0, 900)}/{name}"
        stats = {}
        if r.random() < 0.2:
            stats["id"] = step_id
        if r.random() < 0.1:
            stats["is_eager"] = r.choice([0, 1])
        if r.random() < 0.3:
            stats["shape"] = r.choice(["(float[8,16];half[16,4])", "(float[1])", ""])
        line.add(t, d, f"{name}:{kind}", stats)
        if r.random() < 0.2 and d > 100:
            inner, kind = tf_op(r)
            line.add(t + d // 4, d // 2, f"{inner}:{kind}")

    # ---- input ----

    def tf_data(self, number, b, e):
        r = self.r
        span = (e - b) // 8
        if span < 100:
            return
        if not hasattr(self, "data_line"):
            self.data_line = self.line("tf_data_iterator_resource")
            self.ipl = r.random() < 0.5
            self.element = 0
        step_id = self.step_ids.get(number, number)
        self.main.add(b + span, span, r.choice(["IteratorGetNext:IteratorGetNext", "IteratorGetNextOp::DoCompute", "IteratorGetNextAsOptionalOp::DoCompute"]),
                      {"id": step_id, "iter_num": 0})
        if self.ipl:
            self.pipeline_stages(b, span)
            return
        self.element += 1
        consume, produce = r.choice([("PrefetchConsume", "PrefetchProduce"), ("ParallelMapConsume", "ParallelMapProduce"),
                                     ("MapAndBatchConsume", "MapAndBatchProduce"), ("ParallelInterleaveConsume", "ParallelInterleaveProduce")])
        it = r.choice(ITERATORS)
        self.main.add(b + span + 10, span // 2, it, {"id": 7, "parent_id": 3})
        self.main.add(b + span + 20, span // 4, consume, {"element_id": self.element})
        t = b + r.randint(0, span)
        self.data_line.add(t, span, produce, {"element_id": self.element})
        self.data_line.add(t + 1, span - 2, r.choice(ITERATORS), {"id": 9, "parent_id": 7})
        if r.random() < 0.4:
            self.data_line.add(t + 5, span // 3, "InstantiatedCapturedFunction::Run", {"id": 1000 + number})
            self.data_line.add(t + 6, span // 4, "ExecutorState::Process", {"id": 1000 + number, "iter_num": 0})
            self.data_line.add(t + 7, span // 5, "map/Cast:Cast")

    def pipeline_stages(self, b, span):
        r = self.r
        t, d, sid = b + 30, span, 1
        out, into = self.producer(5)
        for depth in range(r.randint(1, 4)):
            stats = {"_ipl_stage_id": r.choice([sid, sid, 2 ** 33]), "_ipl_stage_name": f"stage {depth}", "_ipl_stage_cat":
                     r.choice(["Enqueue", "enqueue", "Read", "Preprocessing", "unknown", "Demanded file read", "Advanced file read", ""])}
            if r.random() < 0.1:
                del stats[r.choice(sorted(stats))]
            if depth == 0:
                stats.update(out)
            self.main.add(t, d, r.choice([f"Stage{depth}", "Enqueue", "Iterator::Root::Map"]), stats)
            t, d, sid = t + d // 10 + 1, d // 2, sid + 1
        self.data_line.add(b + 40, span // 2, "AsyncStage", {"_ipl_stage_id": 99, "_ipl_stage_name": "async", "_ipl_stage_cat": "read", **into})

    def infeed(self, number, b, e):
        r = self.r
        if not hasattr(self, "infeed_line"):
            self.infeed_line = self.line("infeed")
        d = (e - b) // r.choice([5, 10, 30]) + 1
        kind = r.choice(["InfeedEnqueueTuple", "InfeedEnqueue", "InfeedEnqueuePrelinearizedBuffer"])
        self.infeed_line.add(b + d // 3, d, f"input/{kind}:{kind}")
        if r.random() < 0.3:
            self.infeed_line.add(b + 2 * d, d // 2, "MemcpyHToD")
        if r.random() < 0.2:
            self.infeed_line.add(b + 3 * d, d // 2, r.choice(["TransferToDevice", "Linearize", "LinearizeIntoBuffers", "MemcpyHToH"]))

    # ---- launches ----

    def launch(self, t, name, device, extra=None):
        """A host event that launches device work; returns its correlation id."""
        r = self.r
        self.correlation += r.choice([1, 1, 3])
        stats = {"correlation_id": self.correlation, "device_id": r.choice([device, U(device)])}
        if r.random() < 0.5:
            stats["context_id"] = "$$1"
        stats.update(extra or {})
        if r.random() < 0.03:
            del stats[r.choice(["correlation_id", "device_id"])]
        self.launcher.add(t, r.choice([1000, 5000, 20000]), name, stats)
        return self.correlation

    # ---- memory ----

    def memory(self):
        r = self.r
        allocators = r.sample(["GPU_0_bfc", "cpu", "gpu_host_bfc", "allocator é"], r.choice([1, 1, 2, 3]))
        lines = [self.main] + self.pool[:1]
        for n, a in enumerate(allocators):
            used, peak, live, total = 0, 0, [], r.choice([2 ** 20, 2 ** 34])
            count = max(2, int(r.choice([2, 8, 20, 60, 60, 1200 if r.random() < 0.1 else 30]) * self.s.size))
            b, e = self.h.steps[0][1], self.h.steps[-1][2]
            reserved = r.choice([0, 0, 0, 4096])
            for i in range(count):
                t = b + (e - b) * i // count + r.choice([0, 0, 7])
                line = r.choice(lines)
                stats = {"allocator_name": a}
                if n and r.random() < 0.1:
                    stats = {r.choice(["index_on_host", "device_ordinal"]): n}
                release = live and r.random() < 0.45
                if release:
                    size, addr, meta = live.pop(r.randrange(len(live)))
                    used -= size
                else:
                    size, addr = r.choice([256, 1024, 4096, 65536, r.randint(1, 10 ** 6)]), r.choice([r.randint(1, 2 ** 47), 4096 + i])
                    used += size
                    meta = {"tf_op": r.choice(["a/MatMul", "b/Conv2D", "", "jit(f)/add"]), "region_type": r.choice(["output", "temp", "persist/dynamic", "dynamic"]),
                            "data_type": r.choice([0, 1, 3, 14, 19, 99]), "shape": r.choice(["(float[8])", "[2,2]", ""])}
                    live.append((size, addr, meta))
                peak = max(peak, used)
                stats.update({"bytes_reserved": reserved, "bytes_allocated": used, "bytes_available": total - used,
                              "fragmentation": r.choice([0.0, 0.25, r.random()]), "peak_bytes_in_use": peak,
                              "requested_bytes": size - r.choice([0, 0, 16, size // 4]), "allocation_bytes": size, "addr": addr})
                if not release:
                    stats.update(meta)
                if self.s.odd and r.random() < 0.1:
                    del stats[r.choice(sorted(stats))]
                if self.s.odd and r.random() < 0.03:
                    stats["fragmentation"] = 1
                line.add(t, r.choice([0, 0, 100]), "MemoryDeallocation" if release else "MemoryAllocation", stats)

    # ---- the end ----

    def finish(self):
        r = self.r
        if self.s.memory and self.h.steps:
            self.memory()
        if r.random() < 0.1:
            self.plane.stats({"matrix_unit_utilization_percent": r.random() * 100, "hbm_utilization_percent": r.random() * 100})
        if r.random() < 0.05:
            self.plane.stats({"process_id": 4711})
        if r.random() < 0.3:
            self.line("idle thread")
        if self.s.odd:
            self.oddities()
        if r.random() < 0.02:
            self.plane.event(r.choice(["ForOp", "WhileOp-StartBody", "ParallelForOp"]))
        for l in self.lines:
            l.done(self.disorder if self.s.odd and r.random() < 0.15 else None)

    def disorder(self, events):
        """Two neighbours the wrong way round, and one that overlaps the next."""
        r = self.r
        if len(events) > 3:
            i = r.randrange(len(events) - 1)
            events[i], events[i + 1] = events[i + 1], events[i]
            i = r.randrange(len(events) - 1)
            b, d, md, st = events[i]
            events[i] = (b, d + d // 2, md, st)

    def oddities(self):
        r = self.r
        b, e = (self.h.steps[0][1], self.h.steps[-1][2]) if self.h.steps else (0, 1000)
        line = self.line(r.choice(ODD_NAMES))
        for _ in range(r.randint(0, 12)):
            t = r.randint(b, e)
            name = r.choice(ODD_NAMES)
            stats = r.choice([{}, {"": 1}, {"unknown stat": "x"}, {"group_id": 3} if r.random() < 0.05 else {}, {"_pt": 2}, {"tf_op": 5}, {"step_name": "x"},
                              {"correlation_id": "text"}, {"_r": 3, "step_num": 1}, {"_c": 5, "_ct": 99}])
            line.add(t, r.choice([0, 0, 1, 999, 10 ** 6]), name, stats)
        if r.random() < 0.3:
            line.add(b, 10, 987654321)       # no such metadata
        if r.random() < 0.1:
            line.add(b, 50, "ProcessBatch", {"id": 1})
            line.add(b + 60, 50, r.choice(["BatchingSessionRun", "SessionRun", "RunGraph", "OrbaxServing::ProcessBatch"]))
