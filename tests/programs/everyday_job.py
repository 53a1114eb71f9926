# SPDX-License-Identifier: Apache-2.0
"""Loops of JAX with habits of everyday scripts, each healthy or slow for one reason.
Usage: everyday_job.py LOGDIR CASE... | --list

As idioms_job.py, which it uses."""
import contextlib
import csv
import functools
import gc
import os
import pickle
import queue
import random
import sys
import threading
import time
import warnings

import numpy as np

import idioms_job as idioms
import jax
import jax.numpy as jnp
from idioms_job import Model, batch, case, forward, layers, loss, sgd

idioms.CASES.clear()
SIDE = 384
SCRATCH = f"/tmp/everyday{os.getpid()}"


# ---- healthy ----

@case(also_py=True, steps=16)
def two_threads(_lost):
    """Two jitted functions of a step, each started by its own thread."""
    a, b = Model(n=4), Model(n=4)
    done = queue.Queue()
    work = queue.Queue()

    def other():
        while True:
            work.get()
            done.put(b.run().block_until_ready())
    threading.Thread(target=other, daemon=True).start()

    def one(_):
        work.put(1)
        value = a.run().block_until_ready()
        done.get()
        return value
    return one


@case(also_py=True, steps=16)
def training_generator(_lost):
    """The loop is inside a generator, which yields its metrics."""
    def train():
        m = Model(n=6)
        while True:
            yield {"loss": m.run()}
    metrics = train()
    return lambda _: next(metrics)["loss"]


@case(also_py=True, steps=8)
def while_program(_lost):
    """All of training until a tolerance is one lax.while_loop."""
    def fit(w, x):
        return jax.lax.while_loop(lambda c: c[1] < 8, lambda c: (sgd(c[0], x)[0], c[1] + 1), (w, 0))
    step, w, x = jax.jit(fit), layers(4, 256), batch()
    return lambda _: step(w, x)[0][0].block_until_ready()


@case(also_py=True, steps=16)
def donation_fails(_lost):
    """A donated argument that no result can use: JAX warns, and copies."""
    warnings.simplefilter("ignore")
    step = jax.jit(lambda w, x: forward(w, x).sum(), donate_argnums=1)
    w = layers(8, SIDE)
    return lambda _: step(w, batch(SIDE, SIDE))


@case(also_py=True, steps=12)
def exceptions_inside(_lost):
    """A file is missing before every third step."""
    m = Model(n=6)

    def one(i):
        try:
            if i % 3 == 1:
                open(f"{SCRATCH}.missing")
        except OSError:
            pass
        return m.run().block_until_ready()
    return one


@case(also_py=True, steps=16)
def prints_each(_lost):
    m = Model(n=6)

    def one(i):
        value = m.run()
        print(f"step {i}: loss {value:.4f}", file=sys.stderr)
        return value
    return one


@case(also_py=True, steps=16)
def csv_each(_lost):
    """A line of a CSV file for each step."""
    m, file = Model(n=6), open(f"{SCRATCH}.csv", "w", newline="")
    rows = csv.writer(file)

    def one(i):
        value = m.run()
        rows.writerow([i, float(value), time.time()])
        file.flush()
        return value
    return one


@case(also_py=True, steps=16)
def params_to_host_at_end(_lost):
    """Some weights go to numpy, for their histogram, every eighth step."""
    m = Model(n=6)

    def one(i):
        value = m.run()
        if i % 8 == 7:
            np.histogram(np.asarray(m.w[0]), 30)
        return value
    return one


@case(also_py=True, steps=12)
def unrolled_layers(_lost):
    """Sixty layers of a Python loop, no scan."""
    m = Model(n=60, side=128, rows=512)
    return lambda _: m.run()


@case(also_py=True, steps=12)
def two_losses(_lost):
    """A generator and a discriminator, one after the other."""
    g, d = Model(n=4), Model(n=4)

    def one(_):
        a = d.run()
        return g.run() + a
    return one


# ---- slow ----

@case("input_wait", also_py=True, steps=12)
def iterator_class(lost):
    """A dataset with __iter__ and __next__ that decodes."""
    m = Model(n=2)

    class Images:
        def __iter__(self):
            return self

        def __next__(self):
            with lost.timed(), jax.profiler.TraceAnnotation("next_batch"):
                time.sleep(0.03)
                return m.x
    images = iter(Images())
    return lambda _: m.run(next(images)).block_until_ready()


@case("host_bound", also_py=True, steps=10, untraced="idle_unknown")
def gc_pauses(lost):
    """gc.collect of a great heap in each step."""
    m, heap = Model(n=2), [[i, {"k": i}] for i in range(300000)]

    def one(_):
        value = m.run().block_until_ready()
        with lost.timed():
            gc.collect()
        assert heap
        return value
    return one


@case("checkpoint", also_py=True, steps=8, untraced="idle_unknown")
def pickles(lost):
    """save_checkpoint writes by pickle in each step."""
    m = Model(n=2)
    great = np.ones((2000, 2000), np.float32)

    def save_checkpoint():
        with open(f"{SCRATCH}.pkl", "wb") as f:
            pickle.dump([great] * 1 + [[i] for i in range(60000)], f)
            os.fsync(f.fileno())

    def one(_):
        value = m.run().block_until_ready()
        with lost.timed():
            save_checkpoint()
        return value
    return one


@case("input_wait", also_py=True, steps=12, untraced="idle_unknown")
def data_thread_sleeps(lost):
    """The thread that prepares batches sleeps; its queue holds one."""
    m, batches = Model(n=2), queue.Queue(1)

    def prepare_batches():
        while not lost.over.is_set():
            time.sleep(0.03)
            batches.put(m.x)
    threading.Thread(target=prepare_batches, daemon=True).start()

    def one(_):
        with lost.timed():
            x = batches.get()
        return m.run(x).block_until_ready()
    return one


@case("recompilation", also_py=True, steps=10)
def changing_static(lost):
    """A learning rate that is a static argument, and changes."""
    @functools.partial(jax.jit, static_argnums=2)
    def step(w, x, rate):
        g = jax.grad(loss)(w, x)
        return jax.tree.map(lambda a, b: a - rate * b, w, g)
    state = [layers(3, 128)]
    x = batch(128, 128)

    def one(i):
        with lost.timed():
            state[0] = step(state[0], x, 0.1 / (i + 3))
            return state[0][0].block_until_ready()
    return one


@case("recompilation", also_py=True, steps=10)
def python_lambda(lost):
    """jax.jit of a new lambda in each step."""
    w, x = layers(6, 128), batch(128, 128)

    def one(_):
        with lost.timed():
            return jax.jit(lambda w, x: forward(w, x).sum())(w, x).block_until_ready()
    return one


@case("host_callback", also_py=True, steps=12)
def io_callback_writes(lost):
    """io_callback to a function that writes a file and waits for the disk."""
    from jax.experimental import io_callback

    def write(v):
        with lost.timed(), open(f"{SCRATCH}.npy", "wb") as f:
            np.save(f, v)
            time.sleep(0.03)
    w, x = layers(2, 128), batch(128, 128)

    @jax.jit
    def step(w, x):
        y = forward(w, x)
        io_callback(write, None, y.sum(0), ordered=True)
        return y.mean()

    def one(_):
        value = step(w, x).block_until_ready()
        jax.effects_barrier()
        return value
    return one


@case("host_bound", also_py=True, steps=10, untraced="idle_unknown")
def python_metrics(lost):
    """Accuracy by a Python loop over the predictions."""
    m, labels = Model(n=2), [random.random() for _ in range(1500)]

    def accuracy(values):
        return sum(sum(1 for b in labels[:100] if a > b) for a in values)

    def one(_):
        value = m.run().block_until_ready()
        with lost.timed():
            accuracy(labels)
        return value
    return one


@case("launch_bound", also_py=True, steps=8)
def tree_of_norms(lost):
    """The norm of each weight by its own program, for a log."""
    w = [jnp.ones((8, 8)) * i for i in range(150)]

    def one(_):
        with lost.timed():
            norms = [jnp.linalg.norm(a) for a in w]
            return jax.block_until_ready(norms)[-1]
    return one


@case("launch_bound", also_py=True, steps=8)
def eager_attention(lost):
    """Attention of small matrices without jit, op by op."""
    q = jnp.ones((4, 16, 8))

    def one(_):
        with lost.timed():
            y = q
            for _ in range(8):
                s = jnp.einsum("hqd,hkd->hqk", y, q) / 3.0
                s = jnp.exp(s - s.max(-1, keepdims=True))
                y = jnp.einsum("hqk,hkd->hqd", s / s.sum(-1, keepdims=True), q)
            return y.block_until_ready()
    return one


@case("input_wait", also_py=True, steps=10)
def augments_in_loader(lost):
    """A generator named data_loader that makes its batches by numpy."""
    m = Model(n=2)

    def data_loader():
        rng = np.random.default_rng(0)
        while True:
            with lost.timed(), jax.profiler.TraceAnnotation("data_loader"):
                x = rng.random((2000, 1000), np.float32)
                x = np.sort(x, axis=1)[:SIDE, :SIDE].copy()
            yield x
    batches = data_loader()
    return lambda _: m.run(next(batches)).block_until_ready()


@case("input_wait", also_py=True, steps=10, untraced="idle_unknown")
def retries_download(lost):
    """fetch_shard fails twice, and sleeps in between."""
    m = Model(n=2)

    def fetch_shard():
        for tries in range(3):
            try:
                if tries < 2:
                    raise OSError
                return m.x
            except OSError:
                time.sleep(0.015)

    def one(_):
        with lost.timed():
            x = fetch_shard()
        return m.run(x).block_until_ready()
    return one


def main():
    if sys.argv[1:] == ["--list"]:
        return print(*idioms.CASES)
    if len(sys.argv) < 3 or not set(sys.argv[2:]) <= set(idioms.CASES):
        sys.exit(__doc__)
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, -20)
    jax.config.update("jax_platforms", "cpu")
    for name in sys.argv[2:]:
        idioms.profile(name, sys.argv[1])
    os._exit(0)


if __name__ == "__main__":
    main()
