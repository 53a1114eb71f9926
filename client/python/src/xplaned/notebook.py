# SPDX-License-Identifier: Apache-2.0
"""Profiles of what runs in this process: the magic %%xplaned of notebooks, and `watch` for training loops (docs/notebooks.md)."""
from __future__ import annotations

import atexit
import contextlib
import importlib.util
import os
import shutil
import sys
import tempfile
import time
from typing import Any, Callable, Container, Dict, Iterator, Optional, Tuple

from .importing import PathLike
from .private import PrivateClient, start
from .rows import Verdict
from .session import Session
from .show import printable

_PATIENCE_S = 60
_clients: Dict[str, PrivateClient] = {}


# Begins a profile in a directory, ends it, and annotates a step.
_Profiler = Tuple[Callable[[str], None], Callable[[], None], Callable[[int], Any]]


def _jax() -> _Profiler:
    import jax
    return jax.profiler.start_trace, jax.profiler.stop_trace, lambda n: jax.profiler.StepTraceAnnotation("train", step_num=n)


def _tensorflow() -> _Profiler:
    import tensorflow as tf
    profiler = tf.profiler.experimental
    return profiler.start, profiler.stop, lambda n: profiler.Trace("train", step_num=n, _r=1)


_FRAMEWORKS: Dict[str, Callable[[], _Profiler]] = {"jax": _jax, "tensorflow": _tensorflow}


def _profiler() -> _Profiler:
    """That of a framework that is loaded, else of one that is installed."""
    loaded = [name for name in _FRAMEWORKS if name in sys.modules]
    for name in [*loaded, *(name for name in _FRAMEWORKS if importlib.util.find_spec(name))]:
        return _FRAMEWORKS[name]()
    raise RuntimeError("neither JAX nor TensorFlow is installed: there is nothing to profile")


def _close() -> None:
    for client in _clients.values():
        client.close()


def _sessions(logdir: str) -> Dict[Tuple[str, Any], Session]:
    """What a daemon has that lasts as long as this process.  Two profiles of one second have one name, and another time."""
    if logdir not in _clients:
        if not _clients:
            atexit.register(_close)
        _clients[logdir] = start(logdir, args=["--no-prefetch"])
    return {(s.name, s.captured): s for s in _clients[logdir].sessions()}


def _newest(logdir: str, before: Container[Tuple[str, Any]]) -> Session:
    end = time.monotonic() + _PATIENCE_S
    while time.monotonic() < end:
        for key, session in _sessions(logdir).items():
            if key not in before:
                return session
        time.sleep(0.05)
    raise RuntimeError(f"the profiler wrote no profile below {logdir}")


@contextlib.contextmanager
def _profiled(logdir: str) -> Iterator[Callable[[], Session]]:
    """Profiles a block; what it yields gives the session, after the block."""
    begin, finish, _ = _profiler()
    os.makedirs(logdir, exist_ok=True)
    before = _sessions(logdir)
    begin(logdir)
    try:
        yield lambda: _newest(logdir, before)
    finally:
        finish()


def load_ipython_extension(shell: Any) -> None:
    """%load_ext xplaned: adds the magic %%xplaned."""
    place: list[str] = []

    def profiled_cell(line: str, cell: str) -> Optional[Session]:
        """%%xplaned [LOGDIR]: profiles the cell with JAX or TensorFlow, and gives its session, which shows why the cell is slow."""
        if not line.strip() and not place:
            place.append(tempfile.mkdtemp(prefix="xplaned-cells-"))
            atexit.register(shutil.rmtree, place[0], ignore_errors=True)
        with _profiled(os.path.expanduser(line.strip()) or place[0]) as session:
            done = shell.run_cell(cell)
        return session() if done.success else None

    shell.register_magic_function(profiled_cell, "cell", "xplaned")


class Watch:
    """Profiles some steps of a training, and prints the verdict after the last of them.  `verdict` has it then."""

    def __init__(self, logdir: str, first: int, steps: int) -> None:
        super().__init__()
        self.logdir, self.first, self.last = logdir, first, first + steps - 1
        self.verdict: Optional[Verdict] = None
        self._seen = 0  # steps of Keras, over all epochs
        self._open = contextlib.ExitStack()  # the annotation of a step
        self._running = contextlib.ExitStack()  # the profile
        self._session: Optional[Callable[[], Session]] = None

    @contextlib.contextmanager
    def step(self, number: int) -> Iterator[None]:
        """Around each step of a loop."""
        self._begin(number)
        try:
            yield
        finally:
            self._end(number)

    def _begin(self, number: int) -> None:
        if number == self.first:
            self._session = self._running.enter_context(_profiled(self.logdir))
        if self._session:
            self._open.enter_context(_profiler()[2](number))

    def _end(self, number: int) -> None:
        self._open.close()
        if self._session and number == self.last:
            self._finish()

    def _finish(self) -> None:
        session, self._session = self._session, None
        self._running.close()
        if session:
            run = session()
            self.verdict = run.verdict()
            print(printable(f"xplaned: {run.name}: {self.verdict.text}", 1000), file=sys.stderr)

    # Keras:
    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Called by Keras."""
        self._begin(self._seen)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Called by Keras."""
        self._end(self._seen)
        self._seen += 1

    def on_train_end(self, logs: Any = None) -> None:
        """Called by Keras."""
        self._open.close()
        self._finish()  # of a training that has fewer steps


def watch(logdir: PathLike, first: int = 10, steps: int = 5) -> Any:
    """Profiles `steps` steps of a training from number `first` on, into logdir: a callback of Keras, and for loops:

        watch = xplaned.watch("logs")
        for n in range(100):
            with watch.step(n):
                train()
    """
    keras = sys.modules.get("keras")
    kind = type("Watch", (Watch, keras.callbacks.Callback) if keras else (Watch,), {})
    return kind(os.path.abspath(os.path.expanduser(os.fspath(logdir))), first, steps)
