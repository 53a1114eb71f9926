#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A JAX program to capture: a profiler server, and small steps until told to stop.

    job.py PORT [--idle] [--seconds N]

Prints "ready" when the server listens and the first step is done.  Ends after N seconds, and at once when standard input ends,
so that no test leaves one behind.
"""
import argparse
import itertools
import os
import sys
import threading
import time

PAUSE_S = 0.02  # between steps, so that many jobs fit on two cores and profiles stay small


def watch(seconds):
    """Ends the process when the time is up or whoever started it is gone."""
    threading.Timer(seconds, os._exit, [3]).start()

    def wait():
        sys.stdin.buffer.read()
        os._exit(0)
    threading.Thread(target=wait, daemon=True).start()


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("--idle", action="store_true", help="do nothing, so that there is nothing to record")
    parser.add_argument("--seconds", type=float, default=3600)
    args = parser.parse_args()
    watch(args.seconds)
    return args


def rest(step, idle):
    """After a step."""
    if step == 0:
        print("ready", flush=True)
    if idle:
        threading.Event().wait()
    time.sleep(PAUSE_S)


def main():
    args = arguments()

    import jax
    import jax.numpy as jnp
    jax.config.update("jax_platforms", "cpu")
    jax.profiler.start_server(args.port)

    @jax.jit
    def train_step(w, x):
        def loss(w):
            return jnp.mean(jnp.tanh(x @ w) ** 2)
        return w - 0.01 * jax.grad(loss)(w)

    w, x = jnp.ones((64, 64)), jnp.ones((32, 64))
    for step in itertools.count():
        with jax.profiler.StepTraceAnnotation("train", step_num=step):
            w = train_step(w, x)
            w.block_until_ready()
        rest(step, args.idle)


if __name__ == "__main__":
    main()
