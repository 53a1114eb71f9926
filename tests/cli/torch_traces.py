# SPDX-License-Identifier: Apache-2.0
"""Small traces as PyTorch's profiler writes them, of programs whose time is known. Times are in us."""
import json

MAIN, AUTOGRAD = 100, 200


class Trace:
    def __init__(self, device="NVIDIA H100"):
        self.events, self.correlation, self.idle_from = [], 0, 0.0
        self.head = {"schemaVersion": 1, "record_shapes": 1,
                     "deviceProperties": [{"id": 0, "name": device, "totalGlobalMem": 80 << 30, "computeMajor": 9,
                                           "computeMinor": 0, "numSms": 132}] if device else []}

    def add(self, cat, name, ts, dur, tid=MAIN, pid=1, **args):
        self.events.append({"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": round(ts, 3),
                            "dur": round(dur, 3), "args": args})

    def op(self, name, ts, dur, tid=MAIN, **args):
        self.add("cpu_op", name, ts, dur, tid, **args)

    def note(self, name, ts, dur, tid=MAIN):
        self.add("user_annotation", name, ts, dur, tid)

    def python(self, name, ts, dur, tid=MAIN):
        self.add("python_function", name, ts, dur, tid)

    def call(self, name, ts, dur, tid=MAIN):
        self.add("cuda_runtime", name, ts, dur, tid)

    def device(self, cat, name, begin, dur, **args):
        """A kernel or a copy, when the stream is free; returns when it ends."""
        begin = max(begin, self.idle_from)
        self.idle_from = begin + dur
        self.add(cat, name, begin, dur, 7, 0, device=0, stream=7, correlation=self.correlation, **args)
        return self.idle_from

    def launch(self, op, kernel, ts, dur, tid=MAIN, host=10, call=4, cat="kernel", begin=None, **args):
        """An op of `host` us that launches one kernel; returns when the kernel ends."""
        self.correlation += 1
        self.op(op, ts, host, tid)
        self.add("cuda_runtime", "cudaMemcpyAsync" if cat == "gpu_memcpy" else "cudaLaunchKernel",
                 ts + 3, call, tid, correlation=self.correlation)
        return self.device(cat, kernel, ts + 3 + call + 1 if begin is None else begin, dur, **args)

    def write(self, path):
        path.write_text(json.dumps({**self.head, "traceEvents": self.events}))
        return path


def inputs(*args):
    """Args of an op with inputs ("c10::BFloat16", [128, 256]), or ("ScalarList", [], "[1, 1]") with a value."""
    return {"Input type": [a[0] for a in args], "Input Dims": [a[1] for a in args],
            "Concrete Inputs": [a[2] if len(a) > 2 else "" for a in args]}


def modules(kernel="sm90_gemm", device="NVIDIA H100 80GB HBM3", **given):
    """Two layers of one module, of which the first runs two shapes, and an op of no module; `given` is put into each
    op's args."""
    t, bf16 = Trace(device), "c10::BFloat16"
    t.python("nn.Module: Net_0", 0, 500)
    t.python("nn.Module: Linear_0", 10, 200)
    t.python("nn.Module: Linear_1", 250, 200)
    for at, rows, dur in (20, 128, 40), (60, 128, 44), (100, 64, 20), (260, 128, 60), (600, 128, 50):
        shapes = given or inputs((bf16, [rows, 256]), (bf16, [256, 512]))
        t.op("aten::linear", at, 30)
        t.correlation += 1
        t.op("aten::mm", at + 2, 20, **shapes)
        for k, (name, part) in enumerate((("memset", 2), (kernel, dur))):
            t.correlation += 1
            t.add("cuda_runtime", "cudaLaunchKernel", at + 5 + 5 * k, 2, correlation=t.correlation)
            t.device("kernel", name, at + 10, part)
    return t


def steps(body, n=5, device="NVIDIA H100"):
    """n steps, each of which `body(trace, begin, number)` fills; it returns when the step ends."""
    t, at = Trace(device), 1000.0
    for k in range(n):
        end = body(t, at, k)
        t.note(f"ProfilerStep#{k + 3}", at, end - at)
        at = end + 2
    return t


def forward(t, at, kernels=20, dur=100.0, tid=MAIN, every=12):
    """Ops that keep the device busy; returns when the host has launched them."""
    for k in range(kernels):
        t.launch("aten::mm", "sm90_gemm", at + every * k, dur, tid)
    return at + every * kernels


def healthy(t, at, k):
    """The host is ahead of the device by almost a step."""
    forward(t, at)
    return at + 2000


def dataloader(t, at, k):
    t.note("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", at, 4000)
    forward(t, at + 4000)
    return at + 6010


def backward(t, at, k):
    """The main thread waits while autograd's launches small kernels."""
    end = forward(t, at, 10, 8)
    t.python("<built-in method run_backward of torch._C._EngineBase object at 0x7f>", end, 3000)
    for i in range(100):
        begin = end + 30 * i
        t.op("autograd::engine::evaluate_function: AddmmBackward0", begin, 25, AUTOGRAD)
        t.launch("aten::mm", "sm90_gemm", begin + 5, 3, AUTOGRAD)
    return end + 3010


def first_call(t, at, k):
    if k:
        return healthy(t, at, k)
    end = t.launch("aten::conv2d", "implicit_gemm", at, 100, host=30000, call=29990)
    return forward(t, end) + 1900


def item(t, at, k):
    """Each of 20 parts of a step ends with .item(), and the host prepares the next one for long."""
    for _ in range(20):
        end = t.launch("aten::mm", "sm90_gemm", at, 60)
        t.op("aten::item", at + 12, end - at)
        t.op("aten::_local_scalar_dense", at + 13, end - at - 2)
        t.call("cudaStreamSynchronize", at + 14, end - at - 4)
        at = end + 20
        for _ in range(20):
            t.op("aten::empty", at, 9)
            at += 10
    return at


def allocations(t, at, k):
    for i in range(10):
        t.op("aten::empty", at, 900)
        t.call("cudaMalloc", at + 10, 880)
        t.launch("aten::mm", "sm90_gemm", at + 905, 90)
        at += 1000
    return at


def pageable(t, at, k):
    t.op("aten::to", at, 3000)
    t.op("aten::copy_", at + 5, 2990)
    t.launch("aten::_to_copy", "Memcpy HtoD (Pageable -> Device)", at + 10, 2900, host=2980, call=2950,
             cat="gpu_memcpy", begin=at + 40, bytes=100 << 20)
    t.call("cudaStreamSynchronize", at + 2965, 20)
    return forward(t, at + 3010) + 1800


def small_kernels(t, at, k):
    for i in range(300):
        t.launch("aten::add", "vectorized_elementwise_kernel", at + 10 * i, 2)
    return at + 3010


def compile_again(t, at, k):
    t.python("torch/_dynamo/convert_frame.py(1100): _compile", at, 3000)
    t.python("torch/_inductor/compile_fx.py(2735): wrapper", at + 3010, 300)
    forward(t, at + 3020)
    return at + 5030


def pinned(t, at, k):
    t.launch("aten::_to_copy", "Memcpy HtoD (Pinned -> Device)", at, 30, cat="gpu_memcpy", bytes=1 << 20)
    return healthy(t, at + 40, k)


def fused(t, at, k):
    """An optimizer of one kernel."""
    end = forward(t, at)
    t.note("Optimizer.step#AdamW.step", end, 60)
    t.launch("aten::_fused_adamw_", "multi_tensor_apply_kernel", end + 5, 200)
    return at + 2200


def rare_item(t, at, k):
    """One of five steps reads a result."""
    if k == 4:
        t.op("aten::item", at + 260, 1740)
        t.op("aten::_local_scalar_dense", at + 261, 1738)
        t.call("cudaStreamSynchronize", at + 262, 1736)
    return healthy(t, at, k)


def short_garbage(t, at, k):
    t.python("<built-in method collect of module object at 0x7f>", at + 300, 400)
    return healthy(t, at, k)


def compile_first(t, at, k):
    return healthy(t, at, k) if k else compile_again(t, at, k)


def graph_breaks(t, at, k):
    """Compiled code that goes on behind a graph break, twice in a step."""
    for i in range(2):
        t.python(f"train.py({12 + i}): torch_dynamo_resume_in_forward_at_{12 + i}", at + 500 * i, 400)
    return healthy(t, at, k)


def whole_graph(t, at, k):
    t.python("torch/_dynamo/eval_frame.py(745): compile_wrapper", at, 400)
    t.note("Torch-Compiled Region: 0/0", at + 1, 390)
    return healthy(t, at, k)


def float32(kernel):
    def body(t, at, k):
        for i in range(20):
            t.launch("aten::mm", kernel, at + 12 * i, 100)
        return at + 2000
    return body


def words(t, at, k):
    """Functions whose names have the words of loaders, and load nothing; the device waits for launches."""
    for i in range(40):
        t.python("vllm/v1/worker/gpu_model_runner.py(1297): _prepare_input_ids", at + 50 * i, 20)
        t.python("vllm/v1/sample/sampler.py(90): sample", at + 50 * i + 20, 18)
        t.launch("aten::add", "vectorized_elementwise_kernel", at + 50 * i + 39, 2)
    return at + 2010


def cpu_healthy(t, at, k):
    """Ops one after the other, of which half are inside another one's."""
    for i in range(10):
        t.op("aten::linear", at + 100 * i, 100)
        t.op("aten::addmm", at + 100 * i + 5, 90)
    return at + 1001


def cpu_dataloader(t, at, k):
    """The dataset's own ops run in the iterator: they are input."""
    t.note("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, 3000)
    t.op("aten::stack", at + 10, 2500)
    return cpu_healthy(t, at + 3000, k)


def cpu_compile(t, at, k):
    """torch.compile runs ops without their data: they are no work of the step."""
    t.python("torch/_dynamo/convert_frame.py(1100): _compile", at, 3000)
    t.op("aten::mm", at + 10, 2500)
    return cpu_healthy(t, at + 3000, k)


def cpu_launches(t, at, k):
    """Python between small ops."""
    for i in range(100):
        t.op("aten::add", at + 50 * i, 10)
    return at + 5000


def cpu_item(t, at, k):
    """Python reads numbers one by one."""
    for i in range(100):
        t.op("aten::item", at + 50 * i, 10)
        t.op("aten::_local_scalar_dense", at + 50 * i + 2, 5)
    return at + 5000


def cpu_gloo(t, at, k):
    """An all-reduce on its own thread, for which the main one waits in Python."""
    end = cpu_healthy(t, at, k)
    t.note("gloo:all_reduce", end, 4000, 300)
    t.python("torch/distributed/distributed_c10d.py(2900): all_reduce", end, 4000)
    return end + 4001


def iterations(name, n=4, device="NVIDIA H100"):
    """A loop without ProfilerStep, annotated by `name` of its number; each turn has a part of its own."""
    t = Trace(device)
    for k in range(n):
        at = 1000.0 + 500 * k
        t.note(name(k), at, 450)
        t.note(f"decode_part_{k}", at + 10, 100)
        forward(t, at, 5, 20)
    return t


def optimizer(t, at, k):
    """An optimizer that starts three small kernels for each of 100 parameters."""
    end = forward(t, at, 10, 40)
    t.note("Optimizer.step#Adam.step", end, 3010)
    for i in range(300):
        t.launch("aten::mul_", "vectorized_elementwise_kernel", end + 10 * i, 2)
    return end + 3020


def garbage(t, at, k):
    forward(t, at)
    t.python("<built-in method collect of module object at 0x7f>", at + 1900, 3000)
    return at + 4910


def recompute(t, at, k):
    """Modules and ops with the word of checkpoints, which is that of activations."""
    t.python("nn.Module: CheckpointWrapper_0", at, 3000)
    for i in range(100):
        t.op("CheckpointFunction", at + 30 * i, 29)
        t.launch("aten::mm", "sm90_gemm", at + 30 * i + 5, 3)
    return at + 3010
