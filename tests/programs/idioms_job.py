# SPDX-License-Identifier: Apache-2.0
"""Loops of JAX as people write them.  Usage: idioms_job.py LOGDIR CASE... | --list

Profiles each into LOGDIR/CASE and prints a line of JSON: {"case", "steps", "wall_ms": of the loop until its last result is
ready, "lost_ms": of that, what the case wastes, "cause": its kind of finding, null for a healthy program}.  A case whose name
ends in _py is traced with Python's frames."""
import contextlib
import functools
import gc
import json
import os
import queue
import sys
import threading
import time

if len(sys.argv) > 2 and all(c.startswith("devices") for c in sys.argv[2:]):
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import jax
import jax.numpy as jnp
import numpy as np

CASES = {}
MARKED = functools.partial(jax.profiler.StepTraceAnnotation)


class Lost:
    seconds = 0.0

    def __init__(self):
        self.over = threading.Event()

    @contextlib.contextmanager
    def timed(self):
        begin = time.perf_counter()
        yield
        self.seconds += time.perf_counter() - begin


def case(cause=None, steps=12, mark="train", also_py=False, warm=2, untraced=None):
    """A function that takes Lost and returns one(i), which does a step; mark: of its annotation, None: it has none.
    untraced: the cause where the profiler does not trace Python, by default the same."""
    def add(f):
        CASES[f.__name__] = (f, untraced or cause, steps, mark, warm, 0)
        if also_py:
            CASES[f.__name__ + "_py"] = (f, cause, steps, mark, warm, 1)
        return f
    return add


def layers(n=4, side=256):
    return [jax.random.normal(jax.random.key(i), (side, side)) * 0.1 for i in range(n)]


def batch(rows=256, side=256):
    return jnp.asarray(np.random.default_rng(0).random((rows, side)), jnp.float32)


def forward(w, x):
    for a in w:
        x = jnp.tanh(x @ a)
    return x


def loss(w, x):
    return jnp.mean(forward(w, x) ** 2)


def sgd(w, x):
    value, g = jax.value_and_grad(loss)(w, x)
    return jax.tree.map(lambda a, b: a - 0.01 * b, w, g), value


class Model:
    """Weights that a step replaces."""

    def __init__(self, n=4, side=384, rows=384, step=None):
        self.w, self.x, self.step = layers(n, side), batch(rows, side), step or jax.jit(sgd)

    def run(self, x=None):
        self.w, value = self.step(self.w, self.x if x is None else x)
        return value


# ---- healthy ----

@case(also_py=True, steps=30)
def ahead(_lost):
    m = Model()
    return lambda _: m.run()


@case(also_py=True)
def blocking(_lost):
    m = Model()
    return lambda _: m.run().block_until_ready()


@case(also_py=True, steps=20)
def float_each(_lost):
    m = Model()
    return lambda _: float(m.run())


@case(also_py=True, steps=30)
def fetch_10(_lost):
    m = Model()

    def one(i):
        value = m.run()
        if i % 10 == 9:
            float(value)
        return value
    return one


@case(steps=20, mark=None, also_py=True)
def unmarked_ahead(_lost):
    m = Model()
    return lambda _: m.run()


@case(steps=20, mark=None, also_py=True)
def unmarked_float(_lost):
    m = Model()
    return lambda _: float(m.run())


@case(steps=16)
def train_and_eval(_lost):
    m, evaluate = Model(), jax.jit(loss)

    def one(i):
        if i % 4 == 3:
            return float(sum(evaluate(m.w, m.x) for _ in range(4)))
        return float(m.run())
    one.name = lambda i: "eval" if i % 4 == 3 else "train"
    return one


@case(steps=16)
def train_and_eval_ahead(_lost):
    m, evaluate = Model(), jax.jit(loss)

    def one(i):
        return evaluate(m.w, m.x) if i % 4 == 3 else m.run()
    one.name = lambda i: "eval" if i % 4 == 3 else "train"
    return one


@case(steps=1, also_py=True)
def scan_whole(_lost):
    """One annotation around all of the training."""
    m = Model()
    epoch = jax.jit(lambda w, x: jax.lax.scan(lambda w, _: sgd(w, x), w, None, length=40))
    return lambda _: jax.block_until_ready(epoch(m.w, m.x))


@case(steps=10)
def scan_chunks(_lost):
    m = Model()
    epoch = jax.jit(lambda w, x: jax.lax.scan(lambda w, _: sgd(w, x), w, None, length=5))

    def one(_):
        m.w, values = epoch(m.w, m.x)
        return values
    return one


@case(steps=10, mark=None)
def scan_unmarked(_lost):
    m = Model()
    epoch = jax.jit(lambda w, x: jax.lax.scan(lambda w, _: sgd(w, x), w, None, length=5))

    def one(_):
        m.w, values = epoch(m.w, m.x)
        return float(values[-1])
    return one


@case()
def while_loop(_lost):
    x = batch(256, 256)
    f = jax.jit(lambda x: jax.lax.while_loop(lambda c: c[0] < 40, lambda c: (c[0] + 1, jnp.tanh(c[1] @ x) * 0.1), (0, x))[1])
    return lambda _: f(x)


@case()
def cond(_lost):
    m = Model()
    f = jax.jit(lambda w, x, p: jax.lax.cond(p, lambda: loss(w, x), lambda: 2 * loss(w, x * 2)))
    return lambda i: f(m.w, m.x, i % 2 == 0).block_until_ready()


@case(also_py=True)
def jit_in_jit(_lost):
    inner = jax.jit(sgd)
    m = Model(step=jax.jit(lambda w, x: inner(w, x)))
    return lambda _: m.run()


@case()
def vmapped(_lost):
    w, x = jnp.stack(layers(8, 256)), batch(128, 256)
    f = jax.jit(jax.vmap(jax.value_and_grad(lambda a, x: jnp.tanh(x @ a @ a).sum()), (0, None)))
    return lambda _: f(w, x)


@case()
def donated(_lost):
    m = Model(step=jax.jit(sgd, donate_argnums=0))
    return lambda _: m.run()


@case(also_py=True)
def three_programs(_lost):
    """Forward and backward, then clipping, then the update, each a program of its own."""
    m, grad = Model(), jax.jit(jax.value_and_grad(loss))
    clip = jax.jit(lambda g: jax.tree.map(lambda a: a / (1 + jnp.linalg.norm(a)), g))
    update = jax.jit(lambda w, g: jax.tree.map(lambda a, b: a - 0.01 * b, w, g))

    def one(_):
        value, g = grad(m.w, m.x)
        m.w = update(m.w, clip(g))
        return value
    return one


@case()
def accumulate(_lost):
    m, grad = Model(), jax.jit(jax.grad(loss))
    add = jax.jit(lambda a, b: jax.tree.map(jnp.add, a, b))

    def one(_):
        g = grad(m.w, m.x)
        for _ in range(3):
            g = add(g, grad(m.w, m.x))
        return g
    return one


@case()
def remat(_lost):
    f = jax.checkpoint(forward)
    m = Model(step=jax.jit(lambda w, x: (w, jax.grad(lambda w: (f(w, x) ** 2).mean())(w))))
    return lambda _: m.run()


@case()
def bf16(_lost):
    w, x = [a.astype(jnp.bfloat16) for a in layers(4, 384)], batch(384, 384).astype(jnp.bfloat16)
    f = jax.jit(forward)
    return lambda _: f(w, x).block_until_ready()


@case()
def attention(_lost):
    def f(q):
        for _ in range(4):
            p = jax.nn.softmax(jnp.einsum("bhqd,bhkd->bhqk", q, q) / 8)
            q = jnp.einsum("bhqk,bhkd->bhqd", p, q)
        return q
    q, f = jnp.ones((2, 4, 256, 64)), jax.jit(f)
    return lambda _: f(q).block_until_ready()


@case()
def dropout(_lost):
    """Random numbers on the device, with a key for each step."""
    m = Model()
    f = jax.jit(lambda w, x, k: loss(w, jnp.where(jax.random.bernoulli(k, 0.5, x.shape), x, 0)))
    keys = [jax.random.key(i) for i in range(20)]
    return lambda i: f(m.w, m.x, keys[i % 20])


@case()
def fft(_lost):
    f, x = jax.jit(lambda x: jnp.abs(jnp.fft.ifft(jnp.fft.fft(x)))), batch(512, 1024)
    return lambda _: f(x).block_until_ready()


@case()
def cholesky(_lost):
    a = batch(400, 400)
    f, a = jax.jit(lambda a: jnp.linalg.cholesky(a @ a.T + jnp.eye(len(a)) * 500).sum()), a
    return lambda _: float(f(a))


@case()
def elementwise(_lost):
    f, x = jax.jit(lambda x: jnp.sin(x) + jnp.cos(x) * jnp.exp(-x)), batch(2048, 1024)
    return lambda _: f(x).block_until_ready()


@case()
def big_results(_lost):
    """The memory of large results is reused."""
    f, x = jax.jit(lambda x: jnp.tanh(x) * 2), batch(4096, 1024)
    state = [x]

    def one(_):
        state[0] = f(state[0])
        return state[0]
    return one


@case(also_py=True)
def generator(_lost):
    m = Model()
    host = np.random.default_rng(1).random((384, 384), np.float32)

    def batches():
        while True:
            yield host
    it = batches()
    return lambda _: m.run(next(it))


@case(also_py=True)
def queue_early(lost):
    """A loader on its own thread is always early."""
    m, batches = Model(n=10), queue.Queue(8)
    host = np.random.default_rng(1).random((384, 384), np.float32)

    def produce():
        while not lost.over.is_set():
            with contextlib.suppress(queue.Full):
                batches.put(host * 1.01, timeout=0.5)
    threading.Thread(target=produce, daemon=True).start()
    time.sleep(0.3)
    return lambda _: float(m.run(batches.get()))


@case()
def prefetch_device(_lost):
    """Each step puts the next batch on the device while it runs."""
    m = Model(n=8)
    host = np.random.default_rng(1).random((384, 384), np.float32)
    state = [jax.device_put(host)]

    def one(_):
        value = m.run(state[0])
        state[0] = jax.device_put(host)
        return value
    return one


@case(also_py=True, steps=16)
def save_in_thread(_lost):
    """Weights are written by another thread."""
    m = Model(n=8)

    def one(i):
        value = m.run()
        if i % 8 == 7:
            host = jax.device_get(m.w)
            threading.Thread(target=lambda: np.savez("/tmp/idioms_save.npz", *host)).start()
        return value
    return one


@case()
def debug_callback(_lost):
    """One cheap callback in each step."""
    seen = []

    def f(w, x):
        w, value = sgd(w, x)
        jax.debug.callback(seen.append, value)
        return w, value
    m = Model(n=8, step=jax.jit(f))
    return lambda _: m.run().block_until_ready()


@case()
def debug_print_one(_lost):
    def f(w, x):
        w, value = sgd(w, x)
        jax.debug.print("loss {}", value)
        return w, value
    m = Model(n=8, step=jax.jit(f))
    return lambda _: m.run().block_until_ready()


@case(warm=4)
def two_shapes(_lost):
    """Both compiled before."""
    m, small = Model(), batch(256, 384)
    return lambda i: m.run(small if i % 2 else None)


@case(also_py=True)
def nested(_lost):
    m = Model()

    def one(_):
        with jax.profiler.TraceAnnotation("forward_backward"):
            value = m.run()
        with jax.profiler.TraceAnnotation("log"):
            return float(value)
    return one


@case()
def gc_freeze(_lost):
    """Much garbage, but collected between steps in a moment."""
    m = Model(n=8)

    def one(_):
        value = float(m.run())
        _ = [[k] for k in range(2000)]
        gc.collect(0)
        return value
    return one


@case(steps=200)
def short_steps(_lost):
    """Steps of about a millisecond."""
    m = Model(n=2, side=192, rows=96)
    return lambda _: m.run()


@case(steps=5)
def long_steps(_lost):
    m = Model(n=24, side=512, rows=512)
    return lambda _: m.run().block_until_ready()


@case()
def aot(_lost):
    """Compiled ahead of time."""
    m = Model()
    m.step = jax.jit(sgd).lower(m.w, m.x).compile()
    return lambda _: m.run()


@case()
def annotated_function(_lost):
    m = Model()
    return jax.profiler.annotate_function(lambda _: float(m.run()), name="train_step")


def sharded(f):
    from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
    mesh = Mesh(jax.devices(), "d")
    return mesh, NamedSharding(mesh, P("d")), NamedSharding(mesh, P())


@case()
def devices_jit(_lost):
    _, rows, whole = sharded(None)
    m = Model(rows=512)
    m.w, m.x = jax.device_put(m.w, whole), jax.device_put(m.x, rows)
    return lambda _: m.run()


@case()
def devices_shard_map(_lost):
    from jax.sharding import PartitionSpec as P
    mesh, rows, whole = sharded(None)

    def f(w, x):
        value, g = jax.value_and_grad(loss)(w, x)
        g = jax.lax.pmean(g, "d")
        return jax.tree.map(lambda a, b: a - 0.01 * b, w, g), jax.lax.pmean(value, "d")
    m = Model(rows=2048)
    m.step = jax.jit(jax.shard_map(f, mesh=mesh, in_specs=(P(), P("d")), out_specs=(P(), P()), check_vma=False))
    m.w, m.x = jax.device_put(m.w, whole), jax.device_put(m.x, rows)
    return lambda _: float(m.run())


@case()
def devices_pmap(_lost):
    f = jax.pmap(lambda w, x: jax.lax.pmean(loss(w, x), "d"), axis_name="d", in_axes=(None, 0))
    w, x = layers(4, 384), jnp.stack([batch(256, 384)] * 8)
    return lambda _: f(w, x)


# ---- slow ----

@case("input_wait", also_py=True, untraced="idle_unknown")
def sleep_generator(lost):
    """A generator without any annotation sleeps."""
    m = Model()
    host = np.random.default_rng(1).random((384, 384), np.float32)

    def read_batches():
        while True:
            with lost.timed():
                time.sleep(0.03)
            yield host
    it = read_batches()
    return lambda _: float(m.run(next(it)))


@case("host_bound", also_py=True, untraced="idle_unknown")
def sleep_plain(lost):
    m = Model()

    def pause():
        with lost.timed():
            time.sleep(0.03)

    def one(_):
        value = float(m.run())
        pause()
        return value
    return one


@case("host_bound", also_py=True, untraced="idle_unknown")
def python_work(lost):
    m = Model()

    def count_words():
        with lost.timed():
            total, end = 0, time.perf_counter() + 0.03
            while time.perf_counter() < end:
                total += sum(range(200))
        return total

    def one(_):
        value = float(m.run())
        count_words()
        return value
    return one


@case("recompilation", steps=6, also_py=True)
def new_shapes(lost):
    f, x = jax.jit(lambda w, x: loss(w, x)), np.ones((400, 256), np.float32)
    w = layers(2, 256)

    def one(i):
        with lost.timed():
            return float(f(w, x[:300 + 7 * i]))
    return one


@case("recompilation", steps=6, also_py=True)
def new_jit(lost):
    """A new function is jitted in each step, and traced and compiled."""
    m = Model(n=2)

    def one(_):
        with lost.timed():
            return float(jax.jit(lambda w, x: loss(w, x))(m.w, m.x))
    return one


@case("recompilation", steps=8)
def static_number(lost):
    f = jax.jit(lambda x, n: jnp.tanh(x @ x) * n, static_argnums=1)
    x = batch(128, 128)

    def one(i):
        with lost.timed():
            return f(x, i).block_until_ready()
    return one


@case("launch_bound", also_py=True)
def eager(lost):
    x = jnp.ones(16)

    def one(_):
        with lost.timed():
            y = x
            for _ in range(100):
                y = jnp.sin(y) * 2 + 1
            return y.block_until_ready()
    return one


@case("host_copies")
def put_large(lost):
    """A large batch in another order goes to the device in each step."""
    m = Model(n=2)
    host = np.ones((4096, 2048), np.float32).T

    def one(_):
        with lost.timed():
            jax.device_put(host).block_until_ready()
        return float(m.run())
    return one


@case("host_bound", also_py=True, untraced="idle_unknown")
def collect(lost):
    """gc.collect() over many objects in each step."""
    m = Model()
    keep = [[i] for i in range(400000)]

    def one(_):
        value = float(m.run())
        with lost.timed():
            gc.collect()
        return value + 0 * len(keep)
    return one


@case("host_bound", also_py=True, untraced="idle_unknown")
def lock(lost):
    """Each step waits for a lock that another thread holds most of the time."""
    m, guard = Model(), threading.Lock()

    def hold():
        while not lost.over.is_set():
            with guard:
                time.sleep(0.03)
            time.sleep(0.002)
    threading.Thread(target=hold, daemon=True).start()

    def one(_):
        value = float(m.run())
        with lost.timed():
            guard.acquire()
            guard.release()
        return value
    return one


@case("checkpoint", also_py=True, untraced="step_outliers")
def save_each_4(lost):
    m = Model()

    def save_checkpoint():
        with lost.timed():
            np.savez("/tmp/idioms_checkpoint.npz", *jax.device_get(m.w * 12))

    def one(i):
        value = float(m.run())
        if i % 4 == 3:
            save_checkpoint()
        return value
    return one


@case("host_callback", also_py=True)
def io_callback(lost):
    from jax.experimental import io_callback as call

    def log(value):
        with lost.timed():
            time.sleep(0.03)

    def f(w, x):
        w, value = sgd(w, x)
        call(log, None, value, ordered=True)
        return w, value
    m = Model(step=jax.jit(f))

    def one(_):
        value = m.run().block_until_ready()
        jax.effects_barrier()
        return value
    return one


@case("input_wait", also_py=True, untraced="idle_unknown")
def queue_late(lost):
    """A loader's thread without annotations is late; the queue is empty."""
    m, batches = Model(), queue.Queue(2)
    host = np.random.default_rng(1).random((384, 384), np.float32)

    def produce():
        while not lost.over.is_set():
            time.sleep(0.05)
            with contextlib.suppress(queue.Full):
                batches.put(host, timeout=0.5)
    threading.Thread(target=produce, daemon=True).start()

    def one(_):
        with lost.timed():
            x = batches.get()
        return float(m.run(x))
    return one


@case("input_wait", also_py=True, untraced="idle_unknown")
def pool_late(lost):
    """Batches come from a pool of threads, and are late."""
    from concurrent.futures import ThreadPoolExecutor
    m, pool = Model(), ThreadPoolExecutor(1)
    host = np.random.default_rng(1).random((384, 384), np.float32)

    def load_batch():
        time.sleep(0.05)
        return host
    state = [pool.submit(load_batch)]

    def one(_):
        with lost.timed():
            x = state[0].result()
        state[0] = pool.submit(load_batch)
        return float(m.run(x))
    return one


@case("step_outliers", steps=20)
def rare_long(lost):
    m = Model()

    def one(i):
        value = float(m.run())
        if i in (6, 13):
            with lost.timed():
                for _ in range(15):
                    value = float(m.run())
        return value
    return one


def profile(name, logdir):
    make, cause, steps, mark, warm, level = CASES[name]
    lost = Lost()
    one = make(lost)
    for i in range(-warm, 0):
        jax.block_until_ready(one(i))
    lost.seconds = 0.0
    o = jax.profiler.ProfileOptions()
    o.python_tracer_level = level
    jax.profiler.start_trace(os.path.join(logdir, name), profiler_options=o)
    begin = time.perf_counter()
    for i in range(steps):
        if mark:
            with MARKED(getattr(one, "name", lambda _: mark)(i), step_num=i):
                value = one(i)
        else:
            value = one(i)
    jax.block_until_ready(value)
    wall = time.perf_counter() - begin
    jax.profiler.stop_trace()
    lost.over.set()
    print(json.dumps({"case": name, "steps": steps, "wall_ms": 1e3 * wall, "lost_ms": 1e3 * lost.seconds, "cause": cause}), flush=True)


def main():
    if sys.argv[1:] == ["--list"]:
        return print(*CASES)
    if len(sys.argv) < 3 or not set(sys.argv[2:]) <= set(CASES):
        sys.exit(__doc__)
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, -20)  # what other processes take of its cores is idle time
    jax.config.update("jax_platforms", "cpu")
    for name in sys.argv[2:]:
        profile(name, sys.argv[1])
    os._exit(0)  # whatever threads there are


if __name__ == "__main__":
    main()
