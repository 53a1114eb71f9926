# SPDX-License-Identifier: Apache-2.0
"""Loops of Keras with JAX and TensorFlow, and of tf.function, as their guides have them.
Usage: framework_job.py LOGDIR CASE... | --list

As library_job.py, which it uses: cases whose name begins with tf or keras_tf run with TensorFlow, which records no Python."""
import os
import sys
import time

import library_job as library  # sets Keras' backend
import idioms_job as idioms
import numpy as np
from idioms_job import case
from library_job import HOST, SIDE, keras_net

idioms.CASES.clear()
SCRATCH = f"/tmp/framework{os.getpid()}"
LABELS = np.zeros((SIDE, 1), np.float32)


def weights(n=4):
    import tensorflow as tf
    return [tf.Variable(np.random.default_rng(i).random((SIDE, SIDE), np.float32) * 0.05) for i in range(n)]


def tf_step(w, **options):
    import tensorflow as tf

    @tf.function(**options)
    def train_step(x):
        with tf.GradientTape() as tape:
            y = x
            for a in w:
                y = tf.tanh(y @ a)
            value = tf.reduce_mean(y ** 2)
        for a, g in zip(w, tape.gradient(value, w)):
            a.assign_sub(0.01 * g)
        return value
    return train_step


# ---- Keras ----

def fit_with(make_callback):
    import keras
    net = keras_net(keras)
    x, y = np.tile(HOST, (12, 1)), np.tile(LABELS, (12, 1))

    def one(_):
        net.fit(x, y, batch_size=SIDE, epochs=1, verbose=0, shuffle=False, callbacks=make_callback(keras))
    return one


def quiet(_keras):
    return []


@case(steps=1, mark=None, also_py=True)
def keras_jax_arrays(_lost):
    return fit_with(quiet)


@case(steps=1, mark=None)
def keras_tf_arrays(_lost):
    return fit_with(quiet)


def sleeping(lost):
    def make(keras):
        class Report(keras.callbacks.Callback):
            def on_train_batch_end(self, batch, logs=None):
                with lost.timed():
                    time.sleep(0.5 if library.TF else 0.05)
        return [Report()]
    return make


@case("host_bound", steps=1, mark=None, also_py=True, untraced="idle_unknown")
def keras_jax_callback(lost):
    return fit_with(sleeping(lost))


@case("idle_unknown", steps=1, mark=None)
def keras_tf_callback(lost):
    return fit_with(sleeping(lost))


def saving(lost):
    def make(keras):
        class Save(keras.callbacks.ModelCheckpoint):
            def on_train_batch_end(self, batch, logs=None):
                with lost.timed():
                    for _ in range(4):
                        self.model.save(f"{SCRATCH}.keras")
        return [Save(f"{SCRATCH}.keras")]
    return make


@case("checkpoint", steps=1, mark=None, also_py=True, untraced="idle_unknown")
def keras_jax_saves(lost):
    return fit_with(saving(lost))


def evaluate_case():
    import keras
    net = keras_net(keras)
    x, y = np.tile(HOST, (10, 1)), np.tile(LABELS, (10, 1))

    def one(_):
        net.evaluate(x, y, batch_size=SIDE, verbose=0)
    return one


@case(steps=1, mark=None, also_py=True)
def keras_jax_evaluate(_lost):
    return evaluate_case()


@case(steps=1, mark=None, also_py=True)
def keras_jax_predict(_lost):
    import keras
    net, x = keras_net(keras), np.tile(HOST, (10, 1))
    return lambda _: net.predict(x, batch_size=SIDE, verbose=0) is None


def fit_generator(lost, seconds):
    import keras
    net = keras_net(keras)

    def batches():
        while True:
            if seconds:
                with lost.timed():
                    time.sleep(seconds)
            yield HOST, LABELS

    def one(_):
        net.fit(batches(), steps_per_epoch=8, epochs=1, verbose=0)
    return one


@case("input_wait", steps=1, mark=None, also_py=True, untraced="idle_unknown")
def keras_jax_generator_late(lost):
    return fit_generator(lost, 0.15)


@case("input_wait", steps=1, mark=None)
def keras_tf_generator_late(lost):
    return fit_generator(lost, 0.6)


@case("recompilation", steps=5, also_py=True)
def keras_jax_compiles(lost):
    """compile() in each step throws away what is compiled."""
    import keras
    net = keras_net(keras)

    def one(_):
        with lost.timed():
            net.compile("sgd", "mse")
            return net.train_on_batch(HOST, LABELS)
    return one


# ---- tf.function ----

@case()
def tf_ahead(_lost):
    w = weights()
    f, x = tf_step(w), __import__("tensorflow").constant(HOST)
    return lambda _: f(x)


@case()
def tf_numpy(_lost):
    w = weights()
    f, x = tf_step(w), __import__("tensorflow").constant(HOST)
    return lambda _: f(x).numpy()


@case()
def tf_jit(_lost):
    """Compiled by XLA."""
    w = weights()
    f, x = tf_step(w, jit_compile=True), __import__("tensorflow").constant(HOST)
    return lambda _: f(x).numpy()


@case(mark=None, steps=16)
def tf_unmarked(_lost):
    w = weights()
    f, x = tf_step(w), __import__("tensorflow").constant(HOST)
    return lambda _: float(f(x))


@case()
def tf_dataset_loop(_lost):
    """for x in dataset, the batches are there."""
    import tensorflow as tf
    f = tf_step(weights())
    it = iter(tf.data.Dataset.from_tensor_slices(np.tile(HOST, (8, 1))).repeat().batch(SIDE).prefetch(2))
    return lambda _: float(f(next(it)))


@case()
def tf_while(_lost):
    """Several steps in one tf.function."""
    import tensorflow as tf
    step, x = tf_step(weights(2)), tf.constant(HOST)

    @tf.function
    def several():
        value = 0.0
        for _ in tf.range(4):
            value += step(x)
        return value
    return lambda _: float(several())


@case("input_wait")
def tf_map_late(lost):
    """Python in map sleeps; nothing is fetched ahead."""
    import tensorflow as tf
    f = tf_step(weights())

    def load(x):
        time.sleep(0.25)
        return x
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    data = tf.data.Dataset.from_tensors(HOST).repeat().map(lambda x: tf.ensure_shape(tf.numpy_function(load, [x], tf.float32), HOST.shape))
    it = iter(data.with_options(options))

    def one(_):
        with lost.timed():
            x = next(it)
        return float(f(x))
    return one


@case("idle_unknown")
def tf_sleeps(lost):
    import tensorflow as tf
    f, x = tf_step(weights()), tf.constant(HOST)

    def report():
        with lost.timed():
            time.sleep(0.25)

    def one(_):
        value = float(f(x))
        report()
        return value
    return one


@case("launch_bound", steps=8)
def tf_eager(lost):
    """Small ops outside of tf.function."""
    import tensorflow as tf
    x = tf.ones((8, 8))

    def one(_):
        with lost.timed():
            y = x
            for _ in range(200):
                y = tf.tanh(y) * 1.01 + 0.01
            return float(y[0, 0])
    return one


@case("recompilation", steps=6)
def tf_retraces(lost):
    """A Python number as an argument traces the function anew each time."""
    import tensorflow as tf
    x = tf.constant(HOST[:64, :64])

    @tf.function
    def f(x, scale):
        for _ in range(30):
            x = tf.tanh(x @ x) * scale
        return tf.reduce_mean(x)

    def one(i):
        with lost.timed():
            return float(f(x, 0.1 * (i + 100)))
    return one


@case("recompilation", steps=6)
def tf_jit_shapes(lost):
    """XLA compiles each shape."""
    import tensorflow as tf

    @tf.function(jit_compile=True, reduce_retracing=True)
    def f(x):
        for _ in range(8):
            x = tf.tanh(x @ tf.transpose(x)) @ x
        return tf.reduce_mean(x)

    def one(i):
        with lost.timed():
            return float(f(HOST[:64 + i, :64]))
    return one


@case("checkpoint", steps=8)
def tf_checkpoint(lost):
    """tf.train.Checkpoint in each step."""
    import tensorflow as tf
    w = weights()
    f, x = tf_step(w), tf.constant(HOST)
    saver = tf.train.Checkpoint(**{f"w{i}": a for i, a in enumerate(w)})

    def one(_):
        value = float(f(x))
        with lost.timed():
            for _ in range(10):
                saver.write(f"{SCRATCH}-ckpt")
        return value
    return one


if __name__ == "__main__":
    library.main()
