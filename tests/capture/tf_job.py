#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""job.py with TensorFlow in place of JAX."""
import itertools

import job


def main():
    args = job.arguments()
    import tensorflow as tf
    tf.profiler.experimental.server.start(args.port)
    w, x = tf.Variable(tf.ones((64, 64))), tf.ones((32, 64))

    @tf.function
    def train_step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.tanh(x @ w) ** 2)
        w.assign_sub(0.01 * tape.gradient(loss, w))

    for step in itertools.count():
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            train_step()
        job.rest(step, args.idle)


if __name__ == "__main__":
    main()
