# SPDX-License-Identifier: Apache-2.0
"""More loops of JAX as people write them.  Usage: loops_job.py LOGDIR CASE... | --list

As idioms_job.py, which it uses.  Cases whose name begins with by_time are profiled by another thread while their loop goes on
before and after, as a profiler server does."""
import asyncio
import contextlib
import json
import multiprocessing
import os
import pickle
import queue
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import idioms_job as idioms
import jax
import jax.numpy as jnp
import numpy as np
from idioms_job import Model, batch, case, forward, layers, loss, sgd

idioms.CASES.clear()
FORK = multiprocessing.get_context("fork")


def slow_number(i):
    time.sleep(0.05)
    return i


# ---- healthy ----

@case(also_py=True, steps=20)
def loss_before(_lost):
    """Reads the loss of the step before."""
    m, state = Model(), [None]

    def one(_):
        value = m.run()
        if state[0] is not None:
            float(state[0])
        state[0] = value
        return value
    return one


@case(also_py=True, steps=20)
def metrics_get(_lost):
    f = jax.jit(lambda w, x: (sgd(w, x)[0], {"loss": loss(w, x), "norm": sum(jnp.vdot(a, a) for a in w)}))
    m = Model(step=f)
    return lambda _: jax.device_get(m.run())


@case(also_py=True, steps=20)
def losses_list(_lost):
    m, losses = Model(), []

    def one(i):
        losses.append(m.run())
        if i % 10 == 9:
            return float(np.mean(jax.device_get(losses)))
        return losses[-1]
    return one


@case(also_py=True, steps=20)
def formatted(_lost):
    m, lines = Model(), []

    def one(i):
        value = m.run()
        lines.append(f"step {i}: loss {value:.4f}")
        return value
    return one


@case(steps=10)
def fori(_lost):
    m = Model()
    f = jax.jit(lambda w, x: jax.lax.fori_loop(0, 5, lambda _, w: sgd(w, x)[0], w))

    def one(_):
        m.w = f(m.w, m.x)
        return m.w[0]
    return one


@case(steps=8, also_py=True)
def scan_minibatches(_lost):
    m, data = Model(), jnp.stack([batch(256, 384)] * 6)
    f = jax.jit(lambda w, data: jax.lax.scan(sgd, w, data), donate_argnums=0)

    def one(_):
        m.w, losses = f(m.w, data)
        return losses.mean()
    return one


@case(also_py=True)
def micro(_lost):
    """Annotations of micro steps inside those of steps."""
    m, grad = Model(), jax.jit(jax.grad(loss))
    update = jax.jit(lambda w, g: jax.tree.map(lambda a, *b: a - 0.01 * sum(b), w, *g))

    def one(i):
        g = []
        for k in range(3):
            with jax.profiler.StepTraceAnnotation("micro", step_num=3 * i + k):
                g.append(grad(m.w, m.x))
        m.w = update(m.w, g)
        return m.w[0]
    return one


@case()
def conv_net(_lost):
    w = [jax.random.normal(jax.random.key(i), (3, 3, c, 16)) * 0.1 for i, c in enumerate((3, 16, 16))]
    x = jnp.ones((8, 48, 48, 3))

    def f(w, x):
        for a in w:
            x = jax.nn.relu(jax.lax.conv_general_dilated(x, a, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
        return x.mean()
    state, step = [w], jax.jit(lambda w, x: jax.tree.map(lambda a, b: a - 0.01 * b, w, jax.grad(f)(w, x)))

    def one(_):
        state[0] = step(state[0], x)
        return state[0][0]
    return one


@case()
def lstm(_lost):
    w = jax.random.normal(jax.random.key(0), (512, 1024)) * 0.05
    xs = jnp.ones((24, 64, 256))

    def cell(c, x):
        h, c = c
        i, f, g, o = jnp.split(jnp.concatenate([x, h], -1) @ w, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h
    f = jax.jit(lambda xs: jax.lax.scan(cell, (jnp.zeros((64, 256)), jnp.zeros((64, 256))), xs)[1].sum())
    return lambda _: float(f(xs))


@case(steps=60, also_py=True)
def decode(_lost):
    """Tokens one after the other, each from the one before."""
    w = layers(6, 512)

    def f(cache, token):
        x = jnp.take(w[0], token, axis=0)
        for a in w:
            x = jnp.tanh(x @ a + cache.mean(0))
        return cache.at[token % 64].set(x[0]), jnp.argmax(x, -1).astype(jnp.int32) % 512
    f, state = jax.jit(f, donate_argnums=0), [jnp.zeros((64, 512)), jnp.zeros(64, jnp.int32)]

    def one(_):
        state[0], state[1] = f(*state)
        return state[1]
    return one


@case()
def lapack(_lost):
    a = batch(200, 200)
    f = jax.jit(lambda a: jnp.linalg.eigh(a @ a.T)[0].sum())
    return lambda _: f(a).block_until_ready()


@case(also_py=True)
def some_eager(_lost):
    """A few ops outside of the jitted function."""
    m, total = Model(n=8), [jnp.zeros(())]

    def one(_):
        value = m.run()
        total[0] = total[0] * 0.9 + value * 0.1
        return total[0]
    return one


@case(also_py=True)
def thread_puts(lost):
    """A thread puts batches on the device."""
    m, batches = Model(n=8), queue.Queue(2)
    host = np.random.default_rng(1).random((384, 384), np.float32)

    def produce():
        while not lost.over.is_set():
            with contextlib.suppress(queue.Full):
                batches.put(jax.device_put(host), timeout=0.5)
    threading.Thread(target=produce, daemon=True).start()
    time.sleep(0.2)
    return lambda _: m.run(batches.get())


@case(steps=20)
def f64(_lost):
    with jax.enable_x64(True):
        x = jnp.asarray(np.random.default_rng(0).random((400, 400)))
    f = jax.jit(lambda x: jnp.tanh(x @ x) @ x)

    def one(_):
        with jax.enable_x64(True):
            return f(x)
    return one


@case(steps=12)
def topk(_lost):
    f, x = jax.jit(lambda x: jax.lax.top_k(x @ x, 8)[0].sum()), batch(512, 512)
    return lambda _: f(x).block_until_ready()


@case(steps=12, also_py=True)
def two_models(_lost):
    """A generator and a discriminator in turn, in one step."""
    a, b = Model(n=3), Model(n=4)
    a.step, b.step = jax.jit(lambda w, x: sgd(w, x)), jax.jit(lambda w, x: sgd(w, x * 0.5))

    def one(_):
        x = a.run()
        return x + b.run()
    return one


@case(steps=12)
def devices_fsdp(_lost):
    from jax.sharding import NamedSharding, PartitionSpec as P
    mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(2, 4), ("d", "m"))
    m = Model(rows=512)
    m.w = [jax.device_put(a, NamedSharding(mesh, P(None, "m"))) for a in m.w]
    m.x = jax.device_put(m.x, NamedSharding(mesh, P("d")))
    return lambda _: m.run().block_until_ready()


@case(steps=6)
def devices_scan(_lost):
    from jax.sharding import NamedSharding, PartitionSpec as P
    mesh = jax.sharding.Mesh(jax.devices(), "d")
    m = Model(rows=512)
    m.x = jax.device_put(m.x, NamedSharding(mesh, P("d")))
    f = jax.jit(lambda w, x: jax.lax.scan(lambda w, _: sgd(w, x), w, None, length=4))

    def one(_):
        m.w, v = f(m.w, m.x)
        return v
    return one


@case(steps=60, also_py=True)
def by_time(_lost):
    m = Model(n=6)
    return lambda _: m.run()


@case(steps=60, also_py=True)
def by_time_float(_lost):
    m = Model(n=6)
    return lambda _: float(m.run())


@case(steps=60)
def by_time_10(_lost):
    m = Model(n=6)

    def one(i):
        v = m.run()
        if i % 10 == 9:
            float(v)
        return v
    return one


@case(steps=60, mark=None)
def by_time_unmarked(_lost):
    m = Model(n=6)
    return lambda _: m.run()


@case(also_py=True, steps=20)
def rng_split(_lost):
    m = Model(n=8)
    f = jax.jit(lambda w, x, k: sgd(w, jnp.where(jax.random.bernoulli(k, 0.9, x.shape), x, 0)))
    state = [jax.random.key(0)]

    def one(_):
        state[0], k = jax.random.split(state[0])
        m.w, v = f(m.w, m.x, k)
        return v
    return one


@case(also_py=True, steps=16)
def numpy_metrics(_lost):
    m = Model(n=8)
    f = jax.jit(lambda w, x: (sgd(w, x)[0], forward(w, x)))

    def one(_):
        m.w, y = f(m.w, m.x)
        return (np.argmax(np.asarray(y), -1) == 3).mean()
    return one


@case(also_py=True, steps=16, warm=5)
def eval_unmarked(_lost):
    """Each fourth step evaluates first."""
    m, ev = Model(n=6), jax.jit(loss)
    return lambda i: float(m.run()) if i % 4 else float(ev(m.w, m.x)) + float(m.run())


@case(steps=16, also_py=True)
def in_thread(_lost):
    """The loop's work runs on another thread."""
    m, pool = Model(n=6), ThreadPoolExecutor(1)
    return lambda _: pool.submit(lambda: float(m.run())).result()


@case(steps=12)
def lax_map(_lost):
    x = batch(64, 256)
    w = layers(3, 256)
    f = jax.jit(lambda w, x: jax.lax.map(lambda r: forward(w, jnp.tile(r, (128, 1))).sum(), x).mean())
    return lambda _: float(f(w, x))


@case(steps=20, also_py=True)
def asarray_batch(_lost):
    m, rng = Model(n=8), np.random.default_rng(0)
    data = rng.random((20, 384, 384), np.float32)
    return lambda i: m.run(jnp.asarray(data[i % 20]))


@case(steps=24, also_py=True)
def warm_shapes(_lost):
    m = Model(n=6)
    xs = [batch(256 + 64 * (i % 3), 384) for i in range(3)]
    for x in xs:
        m.run(x)
    return lambda i: float(m.run(xs[i % 3]))


# ---- slow ----

@case("input_wait", also_py=True, untraced="idle_unknown")
def corpus_class(lost):
    """An iterator class of the program, not named for what it does, in a loop that does not wait."""
    class Corpus:
        def __iter__(self):
            return self

        def __next__(self):
            with lost.timed():
                time.sleep(0.05)
            return np.ones((96, 96), np.float32)
    m, it = Model(n=1, side=96, rows=96), iter(Corpus())
    return lambda _: m.run(next(it))


@case("host_bound", also_py=True, untraced="idle_unknown")
def ahead_sleeps(lost):
    """In a loop that does not wait."""
    m = Model(n=1, side=96, rows=96)

    def write_log():
        with lost.timed():
            time.sleep(0.05)

    def one(_):
        value = m.run()
        write_log()
        return value
    return one


@case("compile_at_start", steps=20, warm=0)
def first_compiles(lost):
    m, state = Model(n=6), [True]

    def one(_):
        if state[0]:
            state[0] = False
            with lost.timed():
                return m.run()
        return m.run()
    return one


@case("recompilation", steps=9, warm=0, also_py=True)
def ragged(lost):
    """Every batch has another length."""
    f, w = jax.jit(jax.value_and_grad(loss)), layers(2, 128)

    def one(i):
        with lost.timed():
            v, g = f(w, np.ones((64 + i, 128), np.float32))
            return v
    return one


@case("launch_bound", also_py=True, steps=8)
def eager_update(lost):
    """The optimizer is not jitted."""
    n = 40
    w = [jnp.ones((16, 16)) for _ in range(n)]
    grad = jax.jit(jax.grad(lambda w: sum(jnp.vdot(a, a) for a in w)))
    state = [w, [jnp.zeros_like(a) for a in w]]

    def one(_):
        with lost.timed():
            g = grad(state[0])
            state[1] = [0.9 * a + b for a, b in zip(state[1], g)]
            state[0] = [a - 0.01 * b for a, b in zip(state[0], state[1])]
            return state[0][0].block_until_ready()
    return one


@case("launch_bound", also_py=True, steps=2000)  # few of them are interrupted
def tiny_steps(lost):
    w = [jnp.ones((8, 8))]
    f = jax.jit(lambda w: w * 0.99 + 0.01)

    def one(_):
        with lost.timed():
            w[0] = f(w[0])
            return w[0].block_until_ready()
    return one


@case("host_callback", also_py=True)
def callback_scan(lost):
    def host(x):
        with lost.timed():
            time.sleep(0.008)
        return x
    call = lambda x: jax.pure_callback(host, jax.ShapeDtypeStruct((), jnp.float32), x)
    x = batch(256, 256)
    f = jax.jit(lambda x: jax.lax.scan(lambda c, _: (jnp.tanh(c @ x) * call(c[0, 0]), None), x, None, length=4)[0].sum())
    return lambda _: f(x).block_until_ready()


@case("input_wait", also_py=True, untraced="idle_unknown")
def process_pool(lost):
    """Batches come from processes, which are late."""
    pool = FORK.Pool(1)
    it, m = pool.imap(slow_number, iter(range(10000))), Model()

    def one(_):
        with lost.timed():
            x = next(it)
        return float(m.run(np.full((384, 384), 0.1 * (x % 3), np.float32)))
    return one


@case("input_wait", also_py=True, untraced="idle_unknown")
def augment_batch(lost):
    """NumPy makes the batch between the steps."""
    m, rng = Model(n=2), np.random.default_rng(0)

    def make_batch():
        with lost.timed():
            x = rng.normal(size=(1500, 384))
            return np.sort(x, 0)[:384].astype(np.float32)
    return lambda _: float(m.run(make_batch()))


@case("layout_copies")
def transposes(lost):
    x = batch(2048, 1536)
    f = jax.jit(lambda x: x.reshape(2048, 12, 128).transpose(1, 2, 0).reshape(-1, 2048) + 0)
    g = jax.jit(lambda y: y.reshape(12, 128, 2048).transpose(2, 0, 1).reshape(2048, -1) + 0)

    def one(_):
        with lost.timed():
            return g(f(x)).block_until_ready()
    return one


@case("host_bound", steps=12, also_py=True, untraced="idle_unknown")
def eval_sleeps(lost):
    """Every fourth step evaluates, and its host works for long."""
    m, evaluate = Model(), jax.jit(loss)

    def score():
        with lost.timed():
            time.sleep(0.1)

    def one(i):
        if i % 4 == 3:
            v = float(evaluate(m.w, m.x))
            score()
            return v
        return float(m.run())
    one.name = lambda i: "eval" if i % 4 == 3 else "train"
    return one


@case("checkpoint", steps=12, also_py=True, untraced="idle_unknown")
def pickle_each_3(lost):
    m = Model()

    def save_ckpt(i):
        with lost.timed():
            host = jax.device_get(m.w)
            with open("/tmp/loops.pkl", "wb") as f:
                for _ in range(40):
                    pickle.dump(host, f)
                os.fsync(f.fileno())

    def one(i):
        value = float(m.run())
        if i % 3 == 2:
            save_ckpt(i)
        return value
    return one


@case("input_wait", also_py=True, untraced="idle_unknown")
def mp_queue(lost):
    q = FORK.Queue(2)

    def produce(q):
        while True:
            time.sleep(0.05)
            q.put(np.ones((384, 384), np.float32))
    p = FORK.Process(target=produce, args=(q,), daemon=True)
    p.start()
    m = Model()

    def one(_):
        with lost.timed():
            x = q.get()
        return float(m.run(x))
    return one


@case("input_wait", also_py=True, untraced="idle_unknown")
def mp_pipe(lost):
    a, b = FORK.Pipe()

    def produce(b):
        while True:
            b.recv()
            time.sleep(0.04)
            b.send(np.ones((384, 384), np.float32))
    FORK.Process(target=produce, args=(b,), daemon=True).start()
    m = Model()

    def one(_):
        with lost.timed():
            a.send(0)
            x = a.recv()
        return float(m.run(x))
    return one


@case("input_wait", also_py=True, untraced="idle_unknown")
def npy_files(lost):
    """Reads and decompresses a file for each step."""
    m = Model(n=2)
    path = f"/tmp/loops{os.getpid()}.npz"
    np.savez_compressed(path, x=np.random.default_rng(0).random((700, 384)).astype(np.float32))

    def get_batch():
        with lost.timed():
            with np.load(path) as f:
                return f["x"][:384]
    return lambda _: float(m.run(get_batch()))


@case("host_bound", also_py=True, untraced="idle_unknown")
def log_fsync(lost):
    m = Model(n=2)
    f = open(f"/tmp/loops{os.getpid()}.log", "w")

    def write_metrics(i, v):
        with lost.timed():
            for _ in range(6):
                f.write(f"{i} {v}\n" * 50)
                f.flush()
                os.fsync(f.fileno())

    def one(i):
        v = float(m.run())
        write_metrics(i, v)
        return v
    return one


@case("host_bound", also_py=True, untraced="idle_unknown")
def print_arrays(lost):
    m = Model(n=2)

    def describe(w):
        with lost.timed():
            return [np.array2string(np.asarray(a)[:40], threshold=100000) for a in w[:1]]

    def one(_):
        v = float(m.run())
        describe(m.w)
        return v
    return one


@case("recompilation", steps=8, also_py=True)
def python_scalar(lost):
    f = jax.jit(lambda w, x, lr: jax.tree.map(lambda a, b: a - lr * b, w, jax.grad(loss)(w, x)), static_argnums=2)
    w, x = layers(2, 128), batch(64, 128)

    def one(i):
        with lost.timed():
            return f(w, x, 1e-3 / (i + 100))[0].block_until_ready()
    return one


@case("launch_bound", also_py=True, steps=8)
def eager_grad(lost):
    w, x = layers(2, 16), batch(8, 16)

    def one(_):
        with lost.timed():
            g = jax.grad(lambda w: jnp.mean(jnp.tanh(jnp.tanh(x @ w[0]) @ w[1]) ** 2))(w)
            return g[0].block_until_ready()
    return one


@case("launch_bound", also_py=True, steps=10)
def python_loop_jit(lost):
    """A recurrent network as a Python loop over a small jitted cell."""
    w = jax.random.normal(jax.random.key(0), (16, 16)) * 0.1
    cell = jax.jit(lambda h, x: jnp.tanh(h @ w + x))
    xs = [jnp.ones((4, 16)) * i for i in range(200)]

    def one(_):
        with lost.timed():
            h = xs[0]
            for x in xs:
                h = cell(h, x)
            return h.block_until_ready()
    return one


@case("host_bound", also_py=True, untraced="idle_unknown")
def asyncio_sleep(lost):
    m = Model(n=2)

    async def poll():
        with lost.timed():
            await asyncio.sleep(0.03)

    def one(_):
        v = float(m.run())
        asyncio.run(poll())
        return v
    return one


@case("host_callback", also_py=True)
def debug_callback_slow(lost):
    def plot(v):
        with lost.timed():
            time.sleep(0.03)

    def f(w, x):
        w, v = sgd(w, x)
        jax.debug.callback(plot, v, ordered=True)
        return w, v
    m = Model(n=2, step=jax.jit(f))

    def one(_):
        v = m.run().block_until_ready()
        jax.effects_barrier()
        return v
    return one


@case("idle_unknown", steps=12)
def python_untraced(lost):
    m = Model(n=2)

    def one(_):
        v = float(m.run())
        with lost.timed():
            sum(i * i for i in range(300000))
        return v
    return one


@case("input_wait", also_py=True, untraced="idle_unknown")
def ahead_read_shard(lost):
    """The loop does not wait, but its loader does."""
    m = Model(n=1, side=96, rows=96)

    class Reader:
        def read_shard(self):
            with lost.timed():
                time.sleep(0.05)
            return np.ones((96, 96), np.float32)
    r = Reader()
    return lambda _: m.run(r.read_shard())


def profile(name, logdir):
    """As idioms.profile, but of a part of by_time's loops."""
    if not name.startswith("by_time"):
        return idioms.profile(name, logdir)
    make, cause, _, mark, _, level = idioms.CASES[name]
    one, done = make(idioms.Lost()), threading.Event()
    jax.block_until_ready(one(0))
    o = jax.profiler.ProfileOptions()
    o.python_tracer_level = level

    def capture():
        time.sleep(0.3)
        jax.profiler.start_trace(os.path.join(logdir, name), profiler_options=o)
        time.sleep(0.5)
        jax.profiler.stop_trace()
        done.set()
    threading.Thread(target=capture).start()
    begin, n = time.perf_counter(), 0
    while not done.is_set():
        with jax.profiler.StepTraceAnnotation(mark, step_num=n) if mark else contextlib.nullcontext():
            value = one(n)
        n += 1
    jax.block_until_ready(value)
    wall = time.perf_counter() - begin
    print(json.dumps({"case": name, "steps": n, "wall_ms": 1e3 * wall, "lost_ms": 0, "cause": cause}), flush=True)


def main():
    if sys.argv[1:] == ["--list"]:
        return print(*idioms.CASES)
    if len(sys.argv) < 3 or not set(sys.argv[2:]) <= set(idioms.CASES):
        sys.exit(__doc__)
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, -20)
    jax.config.update("jax_platforms", "cpu")
    for name in sys.argv[2:]:
        profile(name, sys.argv[1])
    for child in multiprocessing.active_children():
        child.kill()
    os._exit(0)


if __name__ == "__main__":
    main()
