# SPDX-License-Identifier: Apache-2.0
"""Loops with the libraries that people use with JAX, and with TensorFlow.  Usage: library_job.py LOGDIR CASE... | --list

As idioms_job.py, which it uses.  Cases whose name begins with tf or keras_tf need TensorFlow."""
import contextlib
import json
import os
import sys
import time

WANTED = sys.argv[2:]
TF = any(c.startswith(("tf", "keras_tf")) for c in WANTED)
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["KERAS_BACKEND"] = "tensorflow" if TF else "jax"
import numpy as np

import idioms_job as idioms
import jax
import jax.numpy as jnp
from idioms_job import case

idioms.CASES.clear()
SIDE = 768 if TF else 384  # TensorFlow takes 2 ms to start a step
HOST = np.random.default_rng(0).random((SIDE, SIDE), np.float32)


def linen_model():
    from flax import linen as nn

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            for _ in range(4):
                x = nn.relu(nn.Dense(SIDE)(x))
            return nn.Dense(1)(x)
    return Net()


@case(also_py=True, steps=20)
def linen_optax(_lost):
    """Flax's TrainState with Adam; the loss is not fetched."""
    import optax
    from flax.training.train_state import TrainState
    net = linen_model()
    state = [TrainState.create(apply_fn=net.apply, params=net.init(jax.random.key(0), HOST), tx=optax.adam(1e-3))]

    @jax.jit
    def train_step(state, x):
        value, g = jax.value_and_grad(lambda p: (state.apply_fn(p, x) ** 2).mean())(state.params)
        return state.apply_gradients(grads=g), value

    def one(_):
        state[0], value = train_step(state[0], HOST)
        return value
    return one


@case(also_py=True, steps=20)
def nnx_optax(_lost):
    import optax
    from flax import nnx

    class Net(nnx.Module):
        def __init__(self, rngs):
            for i in range(4):
                setattr(self, f"dense{i}", nnx.Linear(SIDE, SIDE, rngs=rngs))

        def __call__(self, x):
            for i in range(4):
                x = nnx.relu(getattr(self, f"dense{i}")(x))
            return x
    net = Net(nnx.Rngs(0))
    optimizer = nnx.Optimizer(net, optax.adam(1e-3), wrt=nnx.Param)

    @nnx.jit
    def train_step(net, optimizer, x):
        value, g = nnx.value_and_grad(lambda n: (n(x) ** 2).mean())(net)
        optimizer.update(net, g)
        return value
    return lambda _: train_step(net, optimizer, HOST)


@case(also_py=True, steps=20)
def equinox_optax(_lost):
    import equinox as eqx
    import optax
    net = eqx.nn.MLP(SIDE, SIDE, SIDE, 4, key=jax.random.key(0))
    opt = optax.adam(1e-3)
    state = [net, opt.init(eqx.filter(net, eqx.is_array))]

    @eqx.filter_jit
    def make_step(net, s, x):
        value, g = eqx.filter_value_and_grad(lambda n: (jax.vmap(n)(x) ** 2).mean())(net)
        u, s = opt.update(g, s, net)
        return eqx.apply_updates(net, u), s, value

    def one(_):
        state[0], state[1], value = make_step(state[0], state[1], HOST)
        return value
    return one


@case(also_py=True, steps=20)
def schedule_float(_lost):
    """Reads the learning rate, which is made by ops of its own, in each step."""
    import optax
    m, schedule = idioms.Model(n=8), optax.cosine_decay_schedule(1e-3, 1000)

    def one(i):
        float(schedule(i))
        return m.run()
    return one


@case(also_py=True)
def multi_steps(_lost):
    """Gradients of four steps make an update."""
    import optax
    opt, x = optax.MultiSteps(optax.adamw(1e-3), 4), idioms.batch(SIDE, SIDE)
    w = idioms.layers(6, SIDE)
    state = [w, opt.init(w)]

    @jax.jit
    def train_step(w, s, x):
        value, g = jax.value_and_grad(idioms.loss)(w, x)
        u, s = opt.update(g, s, w)
        return optax.apply_updates(w, u), s, value

    def one(_):
        state[0], state[1], value = train_step(*state, x)
        return value
    return one


@case(also_py=True, steps=20)
def equinox_float(_lost):
    ahead = equinox_optax(_lost)
    return lambda i: ahead(i).item()


def orbax_case(lost, asynchronous):
    import shutil
    import orbax.checkpoint as ocp
    m = idioms.Model(n=4)
    path = f"/tmp/idioms_orbax{os.getpid()}"
    shutil.rmtree(path, ignore_errors=True)
    manager = ocp.CheckpointManager(path, options=ocp.CheckpointManagerOptions(max_to_keep=1, enable_async_checkpointing=asynchronous))

    def one(i):
        value = float(m.run())
        if i % 5 == 2:
            with lost.timed():
                manager.save(i, args=ocp.args.StandardSave(m.w))
        return value
    one.manager = manager
    return one


@case("checkpoint", also_py=True, steps=15, warm=4, untraced="step_outliers")
def orbax_sync(lost):
    return orbax_case(lost, False)


@case("checkpoint", also_py=True, steps=15, warm=4, untraced="idle_unknown")
def orbax_async(lost):
    """Written while the next steps run, but for what `save` itself takes."""
    return orbax_case(lost, True)


def grain_case(lost, seconds, count=lambda b: b):
    import grain

    class Slow(grain.transforms.Map):
        def map(self, x):
            time.sleep(seconds)
            return x
    m = idioms.Model()
    data = grain.MapDataset.source([HOST] * 64).repeat().map(Slow()).to_iter_dataset(grain.ReadOptions(num_threads=1, prefetch_buffer_size=2))
    it = iter(data)

    def one(_):
        with lost.timed():
            x = next(it)
        return float(m.run(x))
    return one


@case(also_py=True)
def grain_early(lost):
    one = grain_case(lost, 0.001)
    return one


@case("input_wait", also_py=True)
def grain_late(lost):
    return grain_case(lost, 0.06)


@case("input_wait", also_py=True)
def grain_loader_late(lost):
    """Grain's DataLoader without processes."""
    import grain.python as gp

    class Slow(gp.MapTransform):
        def map(self, x):
            time.sleep(0.05)
            return HOST
    loader = gp.DataLoader(data_source=gp.RangeDataSource(0, 1000, 1), sampler=gp.IndexSampler(1000, shard_options=gp.NoSharding(), shuffle=False),
                           operations=[Slow()], worker_count=0, read_options=gp.ReadOptions(num_threads=1, prefetch_buffer_size=1))
    m, it = idioms.Model(), iter(loader)

    def one(_):
        with lost.timed():
            x = next(it)
        return float(m.run(x))
    return one


def keras_net(keras):
    net = keras.Sequential([keras.Input((SIDE,))] + [keras.layers.Dense(SIDE, activation="relu") for _ in range(4)] + [keras.layers.Dense(1)])
    net.compile("adam", "mse", jit_compile="auto")
    return net


@case(also_py=True)
def keras_jax_batch(_lost):
    import keras
    net = keras_net(keras)
    y = np.zeros((SIDE, 1), np.float32)
    return lambda _: net.train_on_batch(HOST, y)


def fit_case(lost, seconds):
    """One call of fit without annotations; the steps are Keras' batches."""
    import keras
    net = keras_net(keras)
    y = np.zeros((SIDE, 1), np.float32)

    class Data(keras.utils.PyDataset):
        def __len__(self):
            return 6 if seconds else 30

        def __getitem__(self, _i):
            if seconds:
                with lost.timed():
                    time.sleep(seconds)
            return HOST, y
    data = Data()

    def one(i):
        begin = time.perf_counter()
        net.fit(data, epochs=1, verbose=0)
        return time.perf_counter() - begin
    return one


@case(steps=1, mark=None, also_py=True)
def keras_jax_fit(lost):
    return fit_case(lost, 0)


@case("input_wait", steps=1, mark=None, also_py=True, untraced="idle_unknown")
def keras_jax_fit_late(lost):
    return fit_case(lost, 0.2)


@case(steps=1, mark=None, also_py=True)
def keras_tf_fit(lost):
    return fit_case(lost, 0)


@case("input_wait", steps=1, mark=None, also_py=True)
def keras_tf_fit_late(lost):
    return fit_case(lost, 1)


def tf_case(seconds, lost, prefetch):
    import tensorflow as tf
    w = [tf.Variable(np.random.default_rng(i).random((SIDE, SIDE), np.float32) * 0.05) for i in range(4)]

    @tf.function
    def train_step(x):
        with tf.GradientTape() as tape:
            y = x
            for a in w:
                y = tf.tanh(y @ a)
            value = tf.reduce_mean(y ** 2)
        for a, g in zip(w, tape.gradient(value, w)):
            a.assign_sub(0.01 * g)
        return value

    def generate():
        while True:
            if seconds:
                time.sleep(seconds)
            yield HOST
    if prefetch:
        data = tf.data.Dataset.from_tensors(HOST).repeat().prefetch(4)
    else:
        data = tf.data.Dataset.from_generator(generate, output_signature=tf.TensorSpec((SIDE, SIDE)))
    it = iter(data)

    def one(_):
        with lost.timed():
            x = next(it)
        return float(train_step(x))
    return one


@case("input_wait", also_py=True)  # healthy if the first batch is there
def tf_loop(lost):
    return tf_case(0, lost, True)


@case("input_wait", also_py=True)
def tf_generator_late(lost):
    return tf_case(0.3, lost, False)


def profile_tf(name, logdir):
    import tensorflow as tf
    make, cause, steps, mark, warm, level = idioms.CASES[name]
    lost = idioms.Lost()
    one = make(lost)
    for i in range(-warm, 0):
        one(i)
    lost.seconds = 0.0
    tf.profiler.experimental.start(os.path.join(logdir, name), options=tf.profiler.experimental.ProfilerOptions(python_tracer_level=level))
    begin = time.perf_counter()
    for i in range(steps):
        with tf.profiler.experimental.Trace(mark, step_num=i, _r=1) if mark else contextlib.nullcontext():
            one(i)
    wall = time.perf_counter() - begin
    tf.profiler.experimental.stop()
    print(json.dumps({"case": name, "steps": steps, "wall_ms": 1e3 * wall, "lost_ms": 1e3 * lost.seconds, "cause": cause}), flush=True)


def main():
    if sys.argv[1:] == ["--list"]:
        return print(*idioms.CASES)
    if len(sys.argv) < 3 or not set(WANTED) <= set(idioms.CASES):
        sys.exit(__doc__)
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, -20)
    jax.config.update("jax_platforms", "cpu")
    for name in WANTED:
        (profile_tf if TF else idioms.profile)(name, sys.argv[1])
    os._exit(0)


if __name__ == "__main__":
    main()
