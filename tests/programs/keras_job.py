# SPDX-License-Identifier: Apache-2.0
"""Programs of Keras, profiled by its TensorBoard callback.  Usage: keras_job.py CASE LOGDIR

Profiles STEPS batches of Model.fit into LOGDIR and prints one JSON object: {"case", "wall_ms": of these batches, "lost_ms": of
that, what the case wastes, measured by the program}.  Cases:
    loader        a numpy_function in map sleeps for each batch, and nothing is fetched ahead
    healthy       batches that are there
"""
import json
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["KERAS_BACKEND"] = "tensorflow"
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

FIRST, STEPS, BATCH, SIDE = 4, 14, 256, 512


class Clock(tf.keras.callbacks.Callback):
    """Times of the profiled batches; what was lost when they began is subtracted."""

    def __init__(self, lost):
        super().__init__()
        self.lost, self.wall, self.of_these = lost, 0.0, 0.0

    def on_train_batch_begin(self, batch, logs=None):
        self.began, self.before = time.perf_counter(), self.lost[0]

    def on_train_batch_end(self, batch, logs=None):
        if FIRST <= batch + 1 < FIRST + STEPS:
            self.wall += time.perf_counter() - self.began
            self.of_these += self.lost[0] - self.before


def dataset(case, lost):
    row = (np.full((BATCH, SIDE), 0.01, np.float32), np.zeros((BATCH, 1), np.float32))

    def load(x):
        begin = time.perf_counter()
        time.sleep(0.15)
        lost[0] += time.perf_counter() - begin
        return x

    def slow(x, y):
        return tf.ensure_shape(tf.numpy_function(load, [x], tf.float32), [BATCH, SIDE]), y
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    options.autotune.enabled = False
    data = tf.data.Dataset.from_tensors(row).repeat()
    return (data.map(slow) if case == "loader" else data).with_options(options)


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("loader", "healthy"):
        sys.exit(__doc__)
    case, logdir = sys.argv[1:]
    lost = [0.0]
    layers = [tf.keras.layers.Dense(SIDE * 2, activation="relu") for _ in range(6)]
    model = tf.keras.Sequential([tf.keras.Input((SIDE,)), *layers, tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=False)
    clock = Clock(lost)
    board = tf.keras.callbacks.TensorBoard(logdir, profile_batch=(FIRST, FIRST + STEPS - 1), write_graph=False)
    model.fit(dataset(case, lost), epochs=1, steps_per_epoch=FIRST + STEPS + 2, callbacks=[clock, board], verbose=0)
    print(json.dumps({"case": case, "wall_ms": 1e3 * clock.wall, "lost_ms": 1e3 * clock.of_these}))


if __name__ == "__main__":
    main()
