# SPDX-License-Identifier: Apache-2.0
"""Programs of JAX that are slow on purpose, or are not.  Usage: jax_job.py LOGDIR CASE... | LOGDIR straggler RANK COUNT PORT

Profiles STEPS steps of each into LOGDIR/CASE and prints one JSON object a line: {"case", "wall_ms": of the steps,
"lost_ms": of that, what the case wastes, measured by the program}.  Cases:
    loader        a loader that sleeps, in a TraceAnnotation, on the thread of the steps
    loader_none   the same steps without it
    loader_apart  a loader on a thread of its own; the steps wait for its queue
    recompile     each step has a shape that was never seen
    callback      a callback to Python that sleeps, inside the program
    debug_print   many jax.debug.print inside the program
    tiny          very many programs of almost no work each
    tiny_python   the same, while the profiler traces Python too
    tiny_eager    ops of almost no work one by one, with no jit around them, while it traces Python
    augment       Python that works in a TraceAnnotation between small programs, more than one in a millisecond
    gather        reads a table in random order, a number at a time
    fetch         each step puts a batch on the device that lies there in the other order
    outlier       three steps that do much more
    checkpoint    each fourth step writes a checkpoint
    straggler     of COUNT processes the last one sleeps before it takes part in the all-reduce
    healthy, healthy_scan, healthy_python, healthy_unmarked, healthy_train, healthy_conv, healthy_ahead, healthy_sort,
    healthy_rows  nothing of the kind; ahead: a loader of its own thread is always early; rows: of a table are read in random order
"""
import contextlib
import json
import os
import queue
import sys
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np

STEPS = 12


def work(times):
    """A compiled program of about `times` milliseconds on one core."""
    def run(x):
        return jax.lax.fori_loop(0, times, lambda _, y: jnp.tanh(y @ x) * 0.5, x)
    return jax.jit(run)


def data(side=192):
    return jnp.full((side, side), 0.01)


class Lost:
    """Adds up what is wasted."""

    def __init__(self):
        self.seconds = 0.0
        self.over = threading.Event()  # for threads

    def sleep(self, seconds):
        begin = time.perf_counter()
        time.sleep(seconds)
        self.seconds += time.perf_counter() - begin


def loader(lost):
    step, x = work(40), data()

    def one(_):
        with jax.profiler.TraceAnnotation("load_batch"):
            lost.sleep(0.06)
        step(x).block_until_ready()
    return one


def loader_none(_lost):
    step, x = work(40), data()
    return lambda _: step(x).block_until_ready()


def loader_apart(lost):
    step, x, batches = work(40), data(), queue.Queue(1)

    def produce():
        while not lost.over.is_set():
            with jax.profiler.TraceAnnotation("load_batch"):
                time.sleep(0.1)
            try:
                batches.put(x, timeout=1)
            except queue.Full:
                pass
    threading.Thread(target=produce, daemon=True).start()

    def one(_):
        begin = time.perf_counter()
        batch = batches.get()
        lost.seconds += time.perf_counter() - begin
        step(batch).block_until_ready()
    return one


def recompile(lost):
    steps = jax.jit(lambda x: jnp.sin(x @ x.T).sum())

    def one(i):
        x = jnp.ones((64 + max(i, 0), 64))
        begin = time.perf_counter()
        steps(x).block_until_ready()
        lost.seconds += time.perf_counter() - begin
    return one


def callback(lost):
    def wait(x):
        lost.sleep(0.06)
        return x
    inner = work(40)

    @jax.jit
    def step(x):
        y = jax.pure_callback(wait, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
        return inner(y)
    x = data()
    return lambda _: step(x).block_until_ready()


def debug_print(lost):
    """Each print is a callback that formats an array and is written; the program waits for it."""
    class Sink:
        def write(self, _text):
            lost.sleep(0.006)

        def flush(self):
            pass

    @jax.jit
    def step(x):
        for i in range(6):
            x = jnp.tanh(x @ x) * 0.5
            jax.debug.print("{} {}", i, x[0, 0])
        return x
    x, sink = data(), Sink()

    def one(_):
        with contextlib.redirect_stdout(sink):
            step(x).block_until_ready()
            jax.effects_barrier()
    return one


def tiny(lost):
    step, x = jax.jit(lambda x: x + 1), jnp.ones(4)

    def one(_):
        y = x
        begin = time.perf_counter()
        for _ in range(800):
            y = step(y)
        y.block_until_ready()
        lost.seconds += time.perf_counter() - begin
    return one


def tiny_eager(lost):
    x = jnp.ones(4)

    def one(_):
        y = x
        begin = time.perf_counter()
        for _ in range(300):
            y = jnp.tanh(y) + 1
        y.block_until_ready()
        lost.seconds += time.perf_counter() - begin
    return one


def augment(lost):
    """The device waits for Python, which has begun no program."""
    step, x = jax.jit(lambda x: jnp.tanh(x @ x)), data(32)

    def one(_):
        for _ in range(25):
            begin = time.perf_counter()
            with jax.profiler.TraceAnnotation("augment"):
                while time.perf_counter() - begin < 0.0006:
                    pass
            lost.seconds += time.perf_counter() - begin
            step(x).block_until_ready()
    return one


def gather(lost):
    table = jnp.zeros(1 << 28, jnp.uint8)  # more than caches keep, so that two or four cores do not make up for it
    index = jax.random.randint(jax.random.key(0), (1 << 21,), 0, table.size)
    read, step, x = jax.jit(lambda t, i: t[i]), work(5), data()

    def one(_):
        begin = time.perf_counter()
        read(table, index).block_until_ready()
        lost.seconds += time.perf_counter() - begin
        step(x).block_until_ready()
    return one


def fetch(lost):
    """A batch in the other order is copied number by number."""
    step, x, batch = work(10), data(), np.ones((1 << 12, 1 << 12), np.float32).T

    def one(_):
        step(x).block_until_ready()
        begin = time.perf_counter()
        jax.device_put(batch).block_until_ready()
        lost.seconds += time.perf_counter() - begin
    return one


def outlier(lost):
    step, x = work(40), data()

    def one(i):
        step(x).block_until_ready()
        if i in (4, 7, 9):
            begin = time.perf_counter()
            for _ in range(4):
                step(x).block_until_ready()
            lost.seconds += time.perf_counter() - begin
    return one


def checkpoint(lost):
    step, x = work(40), data()

    def one(i):
        step(x).block_until_ready()
        if i % 4 == 3:
            with jax.profiler.TraceAnnotation("save_checkpoint"):
                lost.sleep(0.2)
    return one


def healthy(_lost):
    step, x = work(60), data()
    return lambda _: step(x).block_until_ready()


def healthy_scan(_lost):
    def body(c, _):
        return jnp.tanh(c @ c) * 0.5, c.sum()
    step, x = jax.jit(lambda x: jax.lax.scan(body, x, None, length=60)), data()
    return lambda _: jax.block_until_ready(step(x))


def healthy_train(_lost):
    """Layers, gradients, and new weights in every step."""
    def loss(weights, x):
        for w in weights:
            x = jnp.tanh(x @ w)
        return (x ** 2).mean()

    def update(weights, x):
        gradients = jax.grad(loss)(weights, x)
        return [w - 0.01 * g for w, g in zip(weights, gradients)]
    step, x = jax.jit(update), data(512)
    state = [[data(512)] * 6]

    def one(_):
        for _ in range(2):
            state[0] = step(state[0], x)
        jax.block_until_ready(state[0])
    return one


def healthy_conv(_lost):
    def run(x, k):
        for _ in range(6):
            x = jax.nn.relu(jax.lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
        return x
    step, x, k = jax.jit(run), jnp.full((4, 48, 48, 32), 0.1), jnp.full((3, 3, 32, 32), 0.01)
    return lambda _: step(x, k).block_until_ready()


def healthy_ahead(lost):
    step, x, batches = work(150), data(), queue.Queue(STEPS)

    def produce():
        while not lost.over.is_set():
            with jax.profiler.TraceAnnotation("load_batch"):
                time.sleep(0.005)
            try:
                batches.put(x, timeout=1)
            except queue.Full:
                pass
    threading.Thread(target=produce, daemon=True).start()
    while not batches.full():
        time.sleep(0.01)
    return lambda _: step(batches.get()).block_until_ready()


def healthy_sort(_lost):
    def run(x):
        for _ in range(8):
            x = jnp.sort(jnp.cos(x * 1000.0), axis=-1)
        return x
    step, x = jax.jit(run), jnp.linspace(0.0, 1.0, 1 << 17).reshape(128, -1)
    return lambda _: step(x).block_until_ready()


def healthy_rows(_lost):
    """Each row of an embedding is a long one."""
    table = jnp.linspace(0.0, 1.0, 1 << 22).reshape(-1, 1024)
    index = jax.random.randint(jax.random.key(0), (60, 256), 0, len(table))
    step = jax.jit(lambda t, i: jax.lax.fori_loop(0, len(i), lambda k, y: y + t[i[k]].sum(0), t[0]))
    return lambda _: step(table, index).block_until_ready()


def straggler(lost, slow):
    from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
    mesh = Mesh(jax.devices(), "d")
    rows = NamedSharding(mesh, P("d"))
    x = jax.make_array_from_callback((len(jax.devices()), 256), rows, lambda _: jnp.ones((1, 256)))
    inner, y = work(10), data()
    total = jax.jit(lambda x: x.sum(0), out_shardings=NamedSharding(mesh, P()))

    def one(_):
        inner(y).block_until_ready()
        if slow:
            lost.sleep(0.12)
        total(x).block_until_ready()
    return one


CASES = {f.__name__: f for f in (loader, loader_none, loader_apart, recompile, callback, debug_print, tiny, tiny_eager, augment, gather, fetch, outlier, checkpoint, healthy,
                                 healthy_scan, healthy_train, healthy_conv, healthy_ahead, healthy_sort,
                                 healthy_rows)}
CASES.update(healthy_python=healthy, healthy_unmarked=healthy, tiny_python=tiny)


def options(case):
    o = jax.profiler.ProfileOptions()
    o.python_tracer_level = int(case in ("healthy_python", "tiny_python", "tiny_eager"))
    return o


def profile(case, lost, one):
    for i in range(-2, 0):
        one(i)
    lost.seconds = 0.0
    jax.profiler.start_trace(os.path.join(sys.argv[1], case), profiler_options=options(case))
    begin = time.perf_counter()
    for i in range(STEPS):
        if case == "healthy_unmarked":
            one(i)
            continue
        with jax.profiler.StepTraceAnnotation("train", step_num=i):
            one(i)
    wall = time.perf_counter() - begin
    jax.profiler.stop_trace()
    print(json.dumps({"case": case, "wall_ms": 1e3 * wall, "lost_ms": 1e3 * lost.seconds}), flush=True)


def main():
    if len(sys.argv) < 3 or not set(sys.argv[2:3]) <= {*CASES, "straggler"}:
        sys.exit(__doc__)
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, -20)  # what other processes take of its cores is idle time
    jax.config.update("jax_platforms", "cpu")
    lost = Lost()
    if sys.argv[2] == "straggler":
        rank, count, port = map(int, sys.argv[3:])
        jax.distributed.initialize(f"127.0.0.1:{port}", count, rank)
        profile("straggler", lost, straggler(lost, rank == count - 1))
    else:
        for case in sys.argv[2:]:
            lost = Lost()
            profile(case, lost, CASES[case](lost))
            lost.over.set()
    os._exit(0)  # whatever threads there are


if __name__ == "__main__":
    main()
