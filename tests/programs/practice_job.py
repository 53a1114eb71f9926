# SPDX-License-Identifier: Apache-2.0
"""Loops of JAX, Flax, Equinox, Optax, Orbax and Grain as tutorials and training scripts have them.
Usage: practice_job.py LOGDIR CASE... | --list

As idioms_job.py, which it uses."""
import contextlib
import dataclasses
import os
import queue
import sys
import threading
import time

import numpy as np

import idioms_job as idioms
import jax
import jax.numpy as jnp
from idioms_job import Model, batch, case, forward, layers, loss, sgd, sharded

idioms.CASES.clear()
SIDE = 384
HOST = np.random.default_rng(0).random((SIDE, SIDE), np.float32)
SCRATCH = f"/tmp/practice{os.getpid()}"


# ---- healthy ----

@case(also_py=True, steps=20)
def epoch_generator(_lost):
    """Batches are slices of an array in memory, shuffled once."""
    m = Model(n=6)
    data = np.random.default_rng(0).random((20 * SIDE, SIDE), np.float32)

    def epoch():
        while True:
            order = np.random.default_rng(1).permutation(20)
            for k in order:
                yield data[k * SIDE:(k + 1) * SIDE]
    it = epoch()
    return lambda _: m.run(next(it))


@case(also_py=True, steps=20)
def metrics_dict(_lost):
    """Metrics stay on the device; every fifth step prints their mean."""
    @jax.jit
    def train_step(w, x):
        w, value = sgd(w, x)
        return w, {"loss": value, "norm": jnp.sqrt(sum(jnp.vdot(a, a) for a in w))}
    m, history = Model(n=6, step=train_step), []

    def one(i):
        history.append(m.run())
        if i % 5 == 4:
            mean = jax.tree.map(lambda *v: np.mean([float(x) for x in v]), *history)
            history.clear()
            return mean["loss"]
        return history[-1]["loss"]
    return one


@case(also_py=True, steps=16)
def block_tree(_lost):
    m = Model(n=6)

    def one(_):
        value = m.run()
        jax.block_until_ready((m.w, value))
        return value
    return one


@case(also_py=True, steps=16)
def perf_counter_each(_lost):
    """Prints the throughput of each step, as tutorials do."""
    m, lines = Model(n=6), []

    def one(i):
        begin = time.perf_counter()
        value = m.run()
        value.block_until_ready()
        lines.append(f"step {i} {value:.3f} {SIDE / (time.perf_counter() - begin):.1f} examples/s")
        return value
    return one


@case(also_py=True, steps=12)
def linen_batchnorm_dropout(_lost):
    from flax import linen as nn
    import optax

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x, train):
            for _ in range(4):
                x = nn.Dense(512)(x)
                x = nn.BatchNorm(use_running_average=not train)(x)
                x = nn.Dropout(0.1, deterministic=not train)(nn.relu(x))
            return nn.Dense(1)(x)
    net, opt = Net(), optax.adamw(1e-3)
    v = net.init(jax.random.key(0), HOST, False)
    state = [v["params"], v["batch_stats"], opt.init(v["params"])]

    @jax.jit
    def train_step(params, stats, s, x, key):
        def f(p):
            y, new = net.apply({"params": p, "batch_stats": stats}, x, True, rngs={"dropout": key}, mutable=["batch_stats"])
            return (y ** 2).mean(), new["batch_stats"]
        (value, stats), g = jax.value_and_grad(f, has_aux=True)(params)
        u, s = opt.update(g, s, params)
        return optax.apply_updates(params, u), stats, s, value
    key = jax.random.key(1)

    def one(i):
        *state[:], value = train_step(*state, HOST, jax.random.fold_in(key, i + 9))
        return value
    return one


@case(also_py=True, steps=12)
def nnx_cnn_metrics(_lost):
    """The MNIST tutorial of Flax: MultiMetric in the jitted step."""
    import optax
    from flax import nnx

    class Cnn(nnx.Module):
        def __init__(self, rngs):
            self.a = nnx.Conv(1, 16, (3, 3), rngs=rngs)
            self.b = nnx.Conv(16, 32, (3, 3), rngs=rngs)
            self.c = nnx.Linear(7 * 7 * 32, 10, rngs=rngs)

        def __call__(self, x):
            x = nnx.avg_pool(nnx.relu(self.a(x)), (2, 2), (2, 2))
            x = nnx.avg_pool(nnx.relu(self.b(x)), (2, 2), (2, 2))
            return self.c(x.reshape(x.shape[0], -1))
    net = Cnn(nnx.Rngs(0))
    optimizer = nnx.Optimizer(net, optax.adam(1e-3), wrt=nnx.Param)
    metrics = nnx.MultiMetric(accuracy=nnx.metrics.Accuracy(), loss=nnx.metrics.Average("loss"))
    x, y = np.random.default_rng(0).random((64, 28, 28, 1), np.float32), np.arange(64) % 10

    @nnx.jit
    def train_step(net, optimizer, metrics, x, y):
        def f(net):
            logits = net(x)
            return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), logits
        (value, logits), g = nnx.value_and_grad(f, has_aux=True)(net)
        metrics.update(loss=value, logits=logits, labels=y)
        optimizer.update(net, g)
        return value

    def one(i):
        value = train_step(net, optimizer, metrics, x, y)
        if i % 4 == 3:
            metrics.compute()
            metrics.reset()
        return value
    return one


@case(also_py=True, steps=12)
def transformer(_lost):
    """A small transformer of linen, its loss fetched."""
    from flax import linen as nn
    import optax

    class Block(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = x + nn.MultiHeadDotProductAttention(4)(nn.LayerNorm()(x))
            return x + nn.Dense(128)(nn.gelu(nn.Dense(512)(nn.LayerNorm()(x))))

    class Net(nn.Module):
        @nn.compact
        def __call__(self, tokens):
            x = nn.Embed(256, 128)(tokens)
            for _ in range(2):
                x = Block()(x)
            return nn.Dense(256)(x)
    net, opt, tokens = Net(), optax.adam(1e-3), np.random.default_rng(0).integers(0, 256, (8, 64))
    params = net.init(jax.random.key(0), tokens)
    state = [params, opt.init(params)]

    @jax.jit
    def train_step(p, s, t):
        def f(p):
            return optax.softmax_cross_entropy_with_integer_labels(net.apply(p, t)[:, :-1], t[:, 1:]).mean()
        value, g = jax.value_and_grad(f)(p)
        u, s = opt.update(g, s)
        return optax.apply_updates(p, u), s, value

    def one(_):
        state[0], state[1], value = train_step(*state, tokens)
        return float(value)
    return one


@case(also_py=True, steps=10)
def lbfgs(_lost):
    """Optax' L-BFGS, whose line search is a loop on the device."""
    import optax
    x = batch(256, 256)
    f = lambda w: jnp.mean((jnp.tanh(x @ w) - 0.3) ** 2)
    opt = optax.lbfgs()
    w = jax.random.normal(jax.random.key(0), (256, 256)) * 0.1
    state = [w, opt.init(w)]
    both = optax.value_and_grad_from_state(f)

    @jax.jit
    def step(w, s):
        value, g = both(w, state=s)
        u, s = opt.update(g, s, w, value=value, grad=g, value_fn=f)
        return optax.apply_updates(w, u), s, value

    def one(_):
        state[0], state[1], value = step(*state)
        return value
    return one


@case(also_py=True, steps=8)
def equinox_scan(_lost):
    """An epoch of Equinox' modules by lax.scan."""
    import equinox as eqx
    net = eqx.nn.GRUCell(128, 256, key=jax.random.key(0))
    xs = jnp.ones((48, 64, 128))

    @eqx.filter_jit
    def f(net, xs):
        def cell(h, x):
            h = jax.vmap(net)(x, h)
            return h, None
        return jax.lax.scan(cell, jnp.zeros((64, 256)), xs)[0].sum()
    return lambda _: f(net, xs)


@case(also_py=True, steps=12)
def grain_batches(_lost):
    """Grain's batches of a source in memory."""
    import grain
    m = Model(n=8)
    rows = np.random.default_rng(0).random((4096, SIDE), np.float32)
    data = grain.MapDataset.source(rows).shuffle(seed=1).repeat().batch(128).to_iter_dataset(grain.ReadOptions(num_threads=1, prefetch_buffer_size=8))
    it = iter(data)
    x = next(it)
    time.sleep(0.2)
    return lambda _: float(m.run(np.concatenate([next(it), x, x])))


@case(also_py=True, steps=12)
def prefetch_to_device(_lost):
    """flax.jax_utils' pattern: a deque of batches on the device."""
    import collections
    m, buffer = Model(n=8), collections.deque()

    def batches():
        while True:
            yield HOST

    def prefetch(it, size):
        for _ in range(size):
            buffer.append(jax.device_put(next(it)))
        while buffer:
            yield buffer.popleft()
            buffer.append(jax.device_put(next(it)))
    it = prefetch(batches(), 2)
    return lambda _: m.run(next(it))


@case(also_py=True, steps=6)
def generate_text(_lost):
    """A sampler: tokens one after the other in a Python loop, each fetched, in one marked call."""
    w = layers(8, 640)
    f = jax.jit(lambda x, k: jax.random.categorical(k, forward(w, x)).astype(jnp.int32))
    table, key = jax.random.normal(jax.random.key(1), (640, 640)), jax.random.key(2)
    embed = jax.jit(lambda t: jnp.take(table, t, axis=0))

    def one(i):
        tokens, out = jnp.zeros(256, jnp.int32), []
        for k in range(4):
            tokens = f(embed(tokens), jax.random.fold_in(key, 8 * i + k + 99))
            out.append(np.asarray(tokens))
        return tokens
    return one


@case(also_py=True, steps=20)
def rollout_scan(_lost):
    """Reinforcement learning on the device: a rollout by scan, then an update."""
    m = Model(n=3)
    roll = jax.jit(lambda w, s: jax.lax.scan(lambda s, _: (forward(w, s) + 0.01, s.mean()), s, None, length=6))

    def one(_):
        _, rewards = roll(m.w, m.x)
        return m.run() + 0 * rewards.sum()
    return one


@case(also_py=True, steps=12)
def trace_annotations(_lost):
    """The program annotates parts of a step; its data is in memory."""
    m = Model(n=8)

    def one(_):
        with jax.profiler.TraceAnnotation("load_batch"):
            x = HOST
        with jax.profiler.TraceAnnotation("train_step"):
            value = m.run(x)
        with jax.profiler.TraceAnnotation("wait"):
            value.block_until_ready()
        return value
    return one


@case(also_py=True, steps=12)
def sorting(_lost):
    """Sorts and cumulative sums: slow on CPUs, and all that the program does."""
    f, x = jax.jit(lambda x: jnp.cumsum(jnp.sort(x, axis=-1), axis=-1).mean()), batch(512, 512)
    return lambda _: float(f(x))


@case(also_py=True, steps=20)
def embedding_bag(_lost):
    """Rows of a table are gathered and multiplied."""
    table, w = batch(4096, 512), layers(3, 512)
    ids = jnp.asarray(np.random.default_rng(0).integers(0, 4096, (512,)))
    f = jax.jit(lambda t, ids: forward(w, t[ids]).mean())
    return lambda _: f(table, ids)


@case(also_py=True, steps=12)
def ema_weights(_lost):
    """A second program averages the weights."""
    m = Model(n=6)
    average = jax.jit(lambda a, b: jax.tree.map(lambda x, y: 0.99 * x + 0.01 * y, a, b))
    state = [m.w]

    def one(_):
        value = m.run()
        state[0] = average(state[0], m.w)
        return value
    return one


@case(also_py=True, steps=16)
def log_in_thread(lost):
    """Losses go to a thread that writes them."""
    m, todo = Model(n=6), queue.Queue()

    def write():
        with open(f"{SCRATCH}.log", "w") as f:
            while not lost.over.is_set():
                with contextlib.suppress(queue.Empty):
                    f.write(f"{float(todo.get(timeout=0.2))}\n")
                    f.flush()
    threading.Thread(target=write, daemon=True).start()

    def one(_):
        value = m.run()
        todo.put(value)
        return value
    return one


@case(also_py=True, steps=12)
def donate_many(_lost):
    """Hundreds of small weights, in one donated program."""
    w = [jnp.ones((64, 64)) * 0.01 for _ in range(200)]
    x = batch(512, 64)

    def f(w, x):
        g = jax.grad(lambda w: jnp.mean(forward(w[:40], x) ** 2) + sum(jnp.vdot(a, a) for a in w))(w)
        return [a - 0.01 * b for a, b in zip(w, g)]
    step, state = jax.jit(f, donate_argnums=0), [w]

    def one(_):
        state[0] = step(state[0], x)
        return state[0][0]
    return one


@case(also_py=True, steps=12)
def eval_loop(_lost):
    """Evaluation: logits of each batch are compared on the host."""
    w, labels = layers(8, 512), np.arange(512) % 10
    f, x = jax.jit(lambda w, x: forward(w, x)[:, :10]), batch(512, 512)

    def one(_):
        predictions = np.asarray(f(w, x)).argmax(-1)
        return (predictions == labels).mean()
    return one


@case(steps=12)
def devices_data_parallel(_lost):
    """Batches of the host are put on all devices before each step."""
    _, rows, whole = sharded(None)
    m = Model(rows=512)
    m.w = jax.device_put(m.w, whole)
    host = np.random.default_rng(0).random((512, SIDE), np.float32)
    return lambda _: float(m.run(jax.device_put(host, rows)))


@case(steps=12)
def devices_pmap_train(_lost):
    """Replicated weights, and pmean of gradients."""
    f = jax.pmap(lambda w, x: (lambda v, g: (jax.tree.map(lambda a, b: a - 0.01 * b, w, jax.lax.pmean(g, "d")), v))(
        *jax.value_and_grad(loss)(w, x)), axis_name="d")
    w = jax.tree.map(lambda a: jnp.stack([a] * 8), layers(4, 256))
    x, state = np.random.default_rng(0).random((8, 192, 256), np.float32), [w]

    def one(_):
        state[0], value = f(state[0], x)
        return value.mean()
    return one


# ---- slow ----

@case("host_bound", also_py=True, untraced="host_bound", steps=12)
def annotated_sleep(lost):
    """An annotation of the program says what the host does."""
    m = Model()

    def one(_):
        value = float(m.run())
        with jax.profiler.TraceAnnotation("write_summary"), lost.timed():
            time.sleep(0.03)
        return value
    return one


@case("input_wait", also_py=True, untraced="input_wait", steps=12)
def annotated_load(lost):
    m = Model()

    def one(_):
        with jax.profiler.TraceAnnotation("load_data"), lost.timed():
            time.sleep(0.03)
        return float(m.run(HOST))
    return one


@case("input_wait", also_py=True, untraced="idle_unknown", steps=12)
def sequence_getitem(lost):
    """A dataset with __getitem__, and a collate function, in the loop."""
    class Dataset:
        def __getitem__(self, _i):
            with lost.timed():
                time.sleep(0.005)
            return HOST[0]

    def collate_fn(rows):
        return np.stack(rows)
    m, data = Model(), Dataset()
    return lambda i: float(m.run(np.broadcast_to(collate_fn([data[k] for k in range(6)])[:1], (SIDE, SIDE))))


@case("input_wait", also_py=True, untraced="idle_unknown", steps=12)
def tokenizes(lost):
    """Text becomes tokens in the loop, in a function named for it, in a generator that is a loader."""
    m, words = Model(), ["word%d" % i for i in range(3000)]

    def tokenize(text):
        with lost.timed():
            end = time.perf_counter() + 0.03
            while time.perf_counter() < end:
                ids = [hash(w) % 384 for w in text]
        return ids

    def data_loader():
        while True:
            yield np.full((SIDE, SIDE), tokenize(words)[0] % 7, np.float32)
    it = data_loader()
    return lambda _: float(m.run(next(it)))


@case("input_wait", also_py=True, untraced="idle_unknown", steps=12)
def threads_map(lost):
    """Executor.map decodes images, too slowly."""
    from concurrent.futures import ThreadPoolExecutor
    m, pool = Model(), ThreadPoolExecutor(2)

    def decode(_):
        time.sleep(0.04)
        return HOST[:96]
    def read_images():
        while True:
            with lost.timed():
                parts = list(pool.map(decode, range(4)))
            yield np.concatenate(parts)
    it = read_images()
    return lambda _: float(m.run(next(it)))


@case("input_wait", also_py=True, untraced="idle_unknown", steps=12)
def event_wait(lost):
    """A loader's thread hands over by a condition."""
    m, ready, box = Model(), threading.Condition(), []

    def load_batches():
        while not lost.over.is_set():
            time.sleep(0.04)
            with ready:
                box.append(HOST)
                ready.notify()
    threading.Thread(target=load_batches, daemon=True).start()

    def next_batch():
        with lost.timed(), ready:
            while not box:
                ready.wait(0.5)
            return box.pop()
    return lambda _: float(m.run(next_batch()))


@case("recompilation", also_py=True, steps=6)
def grows(lost):
    """A cache that grows by a row each step is a new shape each time."""
    f, state = jax.jit(lambda c, x: jnp.concatenate([jnp.tanh(c @ x), x[:1]])), [jnp.ones((16, 128))]
    x = batch(128, 128)

    def one(_):
        with lost.timed():
            state[0] = f(state[0], x)
            return state[0].block_until_ready()
    return one


@case("recompilation", also_py=True, steps=6)
def static_config(lost):
    """A configuration that hashes by identity is another one in each step."""
    @dataclasses.dataclass(eq=False)
    class Config:
        scale: float = 0.1
    f = jax.jit(lambda config, w, x: loss(w, x) * config.scale, static_argnums=0)
    w, x = layers(4, 192), batch(192, 192)

    def one(_):
        with lost.timed():
            return float(f(Config(), w, x))
    return one


@case("recompilation", also_py=True, steps=6)
def clear_caches(lost):
    m = Model(n=3, side=192, rows=192)

    def one(_):
        with lost.timed():
            jax.clear_caches()
            return float(m.run())
    return one


@case("recompilation", also_py=True, steps=6)
def equinox_retraces(lost):
    """A float among the fields of a module is static."""
    import equinox as eqx

    class Net(eqx.Module):
        mlp: eqx.nn.MLP
        rate: float
    mlp = eqx.nn.MLP(128, 128, 128, 2, key=jax.random.key(0))

    @eqx.filter_jit
    def f(net, x):
        return (jax.vmap(net.mlp)(x) * net.rate).mean()
    x = batch(128, 128)

    def one(i):
        with lost.timed():
            return float(f(Net(mlp, 0.1 * (i + 100)), x))
    return one


@case("recompilation", also_py=True, steps=6)
def nnx_jit_inside(lost):
    from flax import nnx
    net = nnx.Linear(192, 192, rngs=nnx.Rngs(0))
    x = batch(192, 192)

    def one(_):
        with lost.timed():
            return float(nnx.jit(lambda net, x: (net(x) ** 2).mean())(net, x))
    return one


@case("recompilation", also_py=True, steps=12)
def some_recompile(lost):
    """Every third batch has a length of its own."""
    f, w = jax.jit(jax.value_and_grad(loss)), layers(4, 256)
    full = np.ones((256, 256), np.float32)
    float(f(w, full)[0])

    def one(i):
        if i % 3 == 2:
            with lost.timed():
                return float(f(w, full[:200 + i])[0])
        return float(f(w, full)[0])
    return one


@case("launch_bound", also_py=True, steps=8)
def optax_eager(lost):
    """The gradient is jitted, the optimizer is not."""
    import optax
    w = [jnp.ones((16, 16)) for _ in range(10)]
    grad, opt = jax.jit(jax.grad(lambda w: sum(jnp.vdot(a, a) for a in w))), optax.adam(1e-3)
    state = [w, opt.init(w)]

    def one(_):
        with lost.timed():
            u, state[1] = opt.update(grad(state[0]), state[1])
            state[0] = optax.apply_updates(state[0], u)
            return state[0][0].block_until_ready()
    return one


@case("launch_bound", also_py=True, steps=8)
def index_loop(lost):
    """A Python loop over the elements of an array."""
    x = jnp.arange(64.0)

    def one(_):
        with lost.timed():
            total = 0.0
            for i in range(64):
                total = total + x[i] * 2
            return total.block_until_ready()
    return one


@case("launch_bound", also_py=True, steps=8)
def at_set_loop(lost):
    """Fills a buffer element by element."""
    def one(_):
        with lost.timed():
            x = jnp.zeros(64)
            for i in range(64):
                x = x.at[i].set(i * 0.5)
            return x.block_until_ready()
    return one


@case("launch_bound", also_py=True, steps=8)
def linen_eager(lost):
    """A model that is applied without jit."""
    from flax import linen as nn
    net = nn.Sequential([nn.Dense(16), nn.relu, nn.Dense(16), nn.relu, nn.Dense(1)])
    x = jnp.ones((8, 16))
    p = net.init(jax.random.key(0), x)

    def one(_):
        with lost.timed():
            for _ in range(6):
                y = net.apply(p, x)
            return y.block_until_ready()
    return one


@case("launch_bound", also_py=True, steps=8)
def nnx_eager(lost):
    from flax import nnx
    rngs = nnx.Rngs(0)
    net = nnx.Sequential(nnx.Linear(16, 16, rngs=rngs), nnx.relu, nnx.Linear(16, 1, rngs=rngs))
    x = jnp.ones((8, 16))

    def one(_):
        with lost.timed():
            for _ in range(8):
                y = net(x)
            return y.block_until_ready()
    return one


@case("launch_bound", also_py=True, steps=8)
def key_splits(lost):
    """Splits a key for every number."""
    state = [jax.random.key(0)]

    def one(_):
        with lost.timed():
            for _ in range(50):
                state[0], k = jax.random.split(state[0])
                x = jax.random.uniform(k, (4,))
            return x.block_until_ready()
    return one


@case("checkpoint", also_py=True, steps=8, untraced="idle_unknown")
def flax_bytes(lost):
    """flax.serialization, each step."""
    from flax import serialization
    m = Model()

    def save_checkpoint(w):
        with lost.timed(), open(f"{SCRATCH}.msgpack", "wb") as f:
            for _ in range(8):
                f.write(serialization.to_bytes(jax.device_get(w)))
            os.fsync(f.fileno())

    def one(_):
        value = float(m.run())
        save_checkpoint(m.w)
        return value
    return one


@case("checkpoint", also_py=True, steps=8, warm=3, untraced="idle_unknown")
def orbax_standard(lost):
    """StandardCheckpointer, each step, waited for."""
    import orbax.checkpoint as ocp
    import shutil
    m, saver = Model(n=4), ocp.StandardCheckpointer()

    def one(i):
        value = float(m.run())
        path = f"{SCRATCH}-orbax/{i}"
        shutil.rmtree(path, ignore_errors=True)
        with lost.timed():
            saver.save(path, m.w)
            saver.wait_until_finished()
        return value
    return one


@case("checkpoint", also_py=True, steps=8, untraced="checkpoint")
def annotated_save(lost):
    m = Model()

    def one(_):
        value = float(m.run())
        with jax.profiler.TraceAnnotation("save_checkpoint"), lost.timed():
            time.sleep(0.04)
        return value
    return one


@case("host_copies", steps=10)
def put_each_weight(lost):
    """All weights go to the device again, in another layout, in each step."""
    m = Model(n=2)
    hosts = [np.ones((2048, 2048), np.float32).T for _ in range(2)]

    def one(_):
        with lost.timed():
            jax.block_until_ready([jax.device_put(h) for h in hosts])
        return float(m.run())
    return one


@case("host_callback", also_py=True, steps=8)
def pure_callback_np(lost):
    """NumPy computes a part of the step."""
    def host(x):
        with lost.timed():
            time.sleep(0.03)
            return np.asarray(x) * 2
    f = jax.jit(lambda w, x: forward(w, jax.pure_callback(host, jax.ShapeDtypeStruct(x.shape, x.dtype), x)).mean())
    w, x = layers(4, 256), batch(256, 256)
    return lambda _: float(f(w, x))


@case("host_bound", also_py=True, steps=10, untraced="idle_unknown")
def http_log(lost):
    """Metrics go to a server in each step."""
    import http.server
    import urllib.request

    class Slow(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            time.sleep(0.03)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass
    server = http.server.HTTPServer(("127.0.0.1", 0), Slow)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    m = Model()

    def send_metrics(value):
        with lost.timed():
            urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}", data=str(value).encode()).read()

    def one(_):
        value = float(m.run())
        send_metrics(value)
        return value
    return one


@case("host_bound", also_py=True, steps=10, untraced="idle_unknown")
def environment_step(lost):
    """Reinforcement learning: a simulator on the host."""
    m = Model()

    class Simulator:
        def step(self, action):
            with lost.timed():
                end = time.perf_counter() + 0.03
                while time.perf_counter() < end:
                    action = np.tanh(action + 0.1)
            return action
    env, state = Simulator(), [np.zeros(64)]

    def one(_):
        value = float(m.run())
        state[0] = env.step(state[0])
        return value
    return one


@case("host_bound", also_py=True, steps=10, untraced="idle_unknown")
def subprocess_call(lost):
    """Asks nvidia-smi, or another program, in each step."""
    import subprocess
    m = Model()

    def gpu_usage():
        with lost.timed():
            return subprocess.run(["sleep", "0.03"], check=True)

    def one(_):
        value = float(m.run())
        gpu_usage()
        return value
    return one


@case("step_outliers", steps=20, also_py=True, untraced="step_outliers")
def rare_eval(lost):
    """Two of twenty steps also evaluate on much data."""
    m, evaluate = Model(), jax.jit(loss)

    def one(i):
        value = float(m.run())
        if i in (6, 13):
            with lost.timed():
                for _ in range(40):
                    value = float(evaluate(m.w, m.x))
        return value
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
