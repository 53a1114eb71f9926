#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training loops of several idioms, each captured with its time per step.  Usage: steps_job.py LOGDIR [IDIOM...]

Prints a line of JSON for each: {"case": IDIOM, "steps": N, "wall_ms": T}.  wall_ms is the time of the loop until its last
result is ready, by perf_counter."""
import json
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

N = 384
STEPS = 12


def loss(w, x):
    for a in w:
        x = jnp.tanh(x @ a)
    return jnp.mean(x**2)


@jax.jit
def train(w, x):
    value, g = jax.value_and_grad(loss)(w, x)
    return jax.tree.map(lambda a, b: a - 0.01 * b, w, g), value


@jax.jit
def evaluate(w, x):
    return loss(w, x)


def weights(layers):
    return [jax.random.normal(jax.random.key(i), (N, N)) for i in range(layers)]


def step(i, name="train"):
    return jax.profiler.StepTraceAnnotation(name, step_num=i)


def block(w, x):
    for i in range(STEPS):
        with step(i):
            w, value = train(w, x)
            value.block_until_ready()
    return w


def never(w, x):
    for i in range(STEPS):
        with step(i):
            w, _ = train(w, x)
    return w


def before(w, x):
    last = None
    for i in range(STEPS):
        with step(i):
            w, value = train(w, x)
            if last is not None:
                float(last)
            last = value
    return w


def every(w, x):
    for i in range(STEPS):
        with step(i):
            w, value = train(w, x)
            if i % 5 == 4:
                float(value)
    return w


def first(w, x):
    return never(w, x[:-1])  # shapes that are new: the first call compiles


def two(w, x):
    for i in range(8):
        with step(i):
            w, _ = train(w, x)
        if i % 4 == 3:
            with step(i, "eval"):
                values = [evaluate(w, x) for _ in range(6)]
    return w, values


def unmarked(w, x):
    for _ in range(STEPS):
        w, _ = train(w, x)
    return w


CASES = {"block": (block, 2), "never": (never, 2), "never_5": (never, 5), "before": (before, 2), "every": (every, 2), "first": (first, 2),
         "two": (two, 2), "unmarked": (unmarked, 2)}


def main():
    x = np.random.default_rng(0).random((192, N)).astype(np.float32)
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    for case in sys.argv[2:] or CASES:
        body, layers = CASES[case]
        w = weights(layers)
        jax.block_until_ready([train(w, x), evaluate(w, x)])
        with jax.profiler.trace(f"{sys.argv[1]}/{case}", profiler_options=options):
            begin = time.perf_counter()
            jax.block_until_ready(body(w, x))
            wall = time.perf_counter() - begin
        print(json.dumps({"case": case, "steps": 10 if case == "two" else STEPS, "wall_ms": round(wall * 1e3, 3)}), flush=True)


if __name__ == "__main__":
    main()
