# SPDX-License-Identifier: Apache-2.0
"""Conversion of whole sessions by an executor: many tasks, on as many machines as it has."""
from __future__ import annotations

import dataclasses
import functools
import json
import os
import subprocess
from concurrent.futures import Executor
from typing import List, Optional, Sequence, Union

from .errors import Error
from .importing import PathLike
from .private import program

_DONE, _PARTLY = 0, 3  # exit statuses that come with a result


@dataclasses.dataclass(frozen=True)
class Left:
    """A host whose products are not stored."""
    session: str
    host: str
    why: str


@dataclasses.dataclass(frozen=True)
class Conversion:
    """What became of a conversion: of `hosts` hosts `done` have all their products in the store."""
    hosts: int
    done: int
    products_made: int
    left: List[Left]

    def __bool__(self) -> bool:
        return not self.left


def _convert(xplaned: Optional[str], store: Optional[str], arguments: List[str], shard: str) -> Conversion:
    """One task.  At the top of the module, so that it can be sent to another process."""
    # Not as an argument: the URL may have a password, and all users of a machine can read arguments.
    env = {**os.environ, **({"XPLANED_STORE": store} if store else {})}
    done = subprocess.run([xplaned or program(), "--role", "convert", "--shard", shard, *arguments], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False, env=env)
    if done.returncode not in (_DONE, _PARTLY):
        said = [line for line in done.stderr.splitlines() if line.startswith("xplaned: ")]
        raise Error("FAILED_PRECONDITION", said[0] if said else f"xplaned ended with status {done.returncode}")
    all_of_it = json.loads(done.stdout)
    return Conversion(all_of_it["hosts"], all_of_it["done"], all_of_it["products_made"],
                      [Left(host["session"], host["host"], host["why"]) for host in all_of_it["left"]])


def convert(runs: Union[str, Sequence[str]], *, store: Optional[str] = None, logdir: Optional[PathLike] = None,
            executor: Optional[Executor] = None, shards: int = 1, args: Sequence[str] = (),
            xplaned: Optional[PathLike] = None) -> Conversion:
    """Makes and stores what tools read of the hosts of sessions, for daemons that share the database `store`.

    `runs` are names of sessions below `logdir`.  The hosts are divided into `shards` tasks, which `executor` runs: any with
    `submit`, as those of concurrent.futures, Dask's `Client.get_executor()`, or mpi4py's.  Without one they run here, one after
    another.  Its workers need the files, the database and the program xplaned; `xplaned` is where it is there.  store and logdir
    are $XPLANED_STORE and $XPLANED_LOGDIR where they are not given: of the workers.  args are further settings of xplaned.
    What is stored is not made again.  A task that fails raises when all have ended; the others' products stay.
    """
    if shards < 1:
        raise ValueError("shards must be at least 1")
    arguments = ["--logdir", os.path.expanduser(os.fspath(logdir))] if logdir else []
    arguments += [*args, *([runs] if isinstance(runs, str) else runs)]
    task = functools.partial(_convert, os.fspath(xplaned) if xplaned else None, store, arguments)
    names = [f"{i}/{shards}" for i in range(shards)]
    if executor:
        futures = [executor.submit(task, name) for name in names]
        failed = [e for e in [future.exception() for future in futures] if e]
        if failed:
            raise failed[0]
        parts = [future.result() for future in futures]
    else:
        parts = [task(name) for name in names]
    return Conversion(sum(p.hosts for p in parts), sum(p.done for p in parts), sum(p.products_made for p in parts),
                      [host for p in parts for host in p.left])
