# SPDX-License-Identifier: Apache-2.0
"""A training loop of TensorFlow whose wait for input is known.  Usage: tf_input.py CASE LOGDIR

Profiles STEPS steps into LOGDIR and prints one JSON object: {"input_share": of the steps' time, measured by the program,
"steps": how many, "step_ms": mean}.  Cases:
    python        a numpy_function that sleeps, in map
    ops           ops of TensorFlow in map, which keep the cores busy
    prefetch      the sleeping function, done ahead by prefetch while the model computes
    interleave    files that are read slowly, one after another
    parallel      ops of TensorFlow in a parallel map, on the threads that the model's ops run on, too
"""
import json
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

STEPS, WARM = 16, 3
SIDE = 256


def sleeping(seconds):
    def load(x):
        time.sleep(seconds)
        return x
    return lambda x: tf.ensure_shape(tf.numpy_function(load, [x], tf.float32), [SIDE, SIDE])


def multiplied(times):
    def work(x):
        for _ in range(times):
            x = tf.linalg.matmul(x, x) / 100.0
        return x
    return work


def rows():
    return tf.data.Dataset.from_tensors(np.full((SIDE, SIDE), 0.01, np.float32)).repeat()


def dataset(case):
    options = tf.data.Options()
    if case == "python":
        data = rows().map(sleeping(0.200))
        options.experimental_optimization.inject_prefetch = False
    elif case == "ops":
        data = rows().map(multiplied(240))
        options.experimental_optimization.inject_prefetch = False
    elif case == "parallel":
        data = rows().map(multiplied(300), num_parallel_calls=2)
        options.threading.private_threadpool_size = 0
        options.autotune.enabled = False
    elif case == "prefetch":
        data = rows().map(sleeping(0.010)).prefetch(4)
    elif case == "interleave":
        data = tf.data.Dataset.range(4).repeat().interleave(
            lambda _: rows().take(3).map(sleeping(0.200)), cycle_length=2, num_parallel_calls=1)
    else:
        sys.exit(__doc__)
    return data.with_options(options)


@tf.function
def train_step(weights, batch):
    x = batch
    for _ in range(40):
        x = tf.linalg.matmul(x, weights) / 10.0
    weights.assign_add(1e-9 * x)
    return tf.reduce_sum(x)


def loop(case, logdir):
    weights = tf.Variable(tf.random.normal([SIDE, SIDE]))
    batches = iter(dataset(case))
    waits, times = [], []
    for step in range(WARM + STEPS):
        if step == WARM:
            tf.profiler.experimental.start(logdir)
        begin = time.perf_counter()
        with tf.profiler.experimental.Trace("train", step_num=100 + step, _r=1):
            batch = next(batches)
            have = time.perf_counter()
            for _ in range(4 if case == "prefetch" else 1):
                train_step(weights, batch).numpy()
        waits.append(have - begin)
        times.append(time.perf_counter() - begin)
    tf.profiler.experimental.stop()
    counted = slice(WARM + 1, -1)  # the profile's first and last step are not counted: they may be cut
    total = sum(times[counted])
    return sum(waits[counted]) / total, STEPS - 2, 1e3 * total / (STEPS - 2)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    case, logdir = sys.argv[1:]
    share, steps, step_ms = loop(case, logdir)
    print(json.dumps({"input_share": share, "steps": steps, "step_ms": step_ms}))


if __name__ == "__main__":
    main()
