# SPDX-License-Identifier: Apache-2.0
"""Programs that profile themselves: the magic %%xplaned in IPython with JAX, and `watch` in a loop and in Keras."""
import json
import os
import subprocess
import sys

from test_notebooks import Page


def python(place, code, name, **more):
    """A program with the client and the daemon of the build; its output."""
    script = place.scratch / f"{name}.py"
    script.write_text(code)
    path = f"{place.build / 'server'}:{os.environ['PATH']}"
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL,
                          cwd=place.scratch, env={**os.environ, "PATH": path, "JAX_PLATFORMS": "cpu", "XDG_CACHE_HOME": str(place.scratch / "cache"),
                                                  "IPYTHONDIR": str(place.scratch / "ipython"), **more})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, done.stderr


MAGIC = """
import json
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "xplaned")
shell.run_cell("import jax, jax.numpy as jnp\\nf = jax.jit(lambda x: jnp.sin(x @ x))\\nx = f(jnp.ones((500, 500)))")
cell = "for n in range(5):\\n    with jax.profiler.StepTraceAnnotation('train', step_num=n):\\n        x = f(x).block_until_ready()\\ny = 7"
def run(text):
    before = len(shell.user_ns["Out"])
    shell.run_cell(text, store_history=True)
    return list(shell.user_ns["Out"].values())[-1] if len(shell.user_ns["Out"]) > before else None
first, second, third = run("%%xplaned\\n" + cell), run("%%xplaned kept\\n" + cell), run("%%xplaned kept\\n" + cell)
wrong = run("%%xplaned\\n1 / 0")
print(json.dumps([shell.user_ns["y"], first.verdict().steps, [s.name for s in (second, third)], third.captured > second.captured, first._repr_html_(),
                  wrong]))
"""


def magic(place):
    """%%xplaned around cells that run JAX: each gives its own session, and names stay the notebook's."""
    out, _ = python(place, MAGIC, "magic")
    assert "ZeroDivisionError" in out, out
    y, steps, names, later, page, wrong = json.loads(out.splitlines()[-1])
    assert (y, steps, later, wrong) == (7, 5, True, None) and all(names), (y, steps, names)
    assert "steps" in Page(page).text and list((place.scratch / "kept").rglob("*.xplane.pb"))


LOOP = """
import jax, jax.numpy as jnp, xplaned
f = jax.jit(lambda x: jnp.sin(x @ x))
x = f(jnp.ones((300, 300)))
watch = xplaned.watch("loop", first=3, steps=4)
for n in range(10):
    with watch.step(n):
        x = f(x).block_until_ready()
    assert (watch.verdict is None) == (n < 6), n
print(watch.verdict.steps)
"""

KERAS = """
import keras, numpy, xplaned
model = keras.Sequential([keras.layers.Dense(4)])
model.compile(loss="mse")
watch = xplaned.watch("keras", first=2, steps=3)
model.fit(numpy.ones((64, 8)), numpy.ones((64, 4)), batch_size=16, epochs=2, verbose=0, callbacks=[watch])
print(watch.verdict.steps)
short = xplaned.watch("keras", first=1, steps=100)
model.fit(numpy.ones((64, 8)), numpy.ones((64, 4)), batch_size=16, verbose=0, callbacks=[short])
print(short.verdict.steps)
"""


def watching(place):
    """Of a loop and of Keras' training, just the steps that were asked for."""
    out, err = python(place, LOOP, "loop_program")
    assert out.split() == ["4"] and err.splitlines()[-1].startswith("xplaned: "), (out, err)
    out, err = python(place, KERAS, "keras_program", KERAS_BACKEND="jax")
    assert out.split() == ["3", "3"] and err.count("xplaned: ") == 2, (out, err)


TESTS = [magic, watching]
