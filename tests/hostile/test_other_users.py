# SPDX-License-Identifier: Apache-2.0
"""Files of the state directory that belong to another user, as after a start as root, and directories that may not be
written."""

import os

from harness import Skip, check, equal, reference_answers, answer_url, same_answer, wait_for
from test_limits import NOBODY

TOOLS = ("overview_page", "trace_viewer@")


def as_nobody():
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def test_files_of_another_user(run):
    """Whatever of the state directory is root's: the daemon of another user answers and has the history
    again when the file is its own again.  cache.db, which can be made again, may be replaced."""
    if os.geteuid() != 0:
        raise Skip("needs root, to become another user")
    logdir, state = run.logdir("jax_matmul_nopy"), run.make_dir("state")
    expected = reference_answers(run, logdir, tools=TOOLS)
    os.chmod(run.dir, 0o755)
    os.chmod(logdir, 0o755)
    os.chown(state, NOBODY, NOBODY)

    def start():
        d = run.start("--no-prefetch", logdir=logdir, state=state, preexec=as_nobody)
        for (session, tool), answer in expected.items():
            same_answer(d.get(answer_url(session, tool)), answer, tool)
        return d

    d = start()
    equal(d.ctl("label", "jax_matmul_nopy", "kept").returncode, 0, "a label")
    d.kill()  # so that the databases' logs stay
    files = sorted(p for p in state.rglob("*"))
    check({"state.db", "state.db-wal", "cache.db", "cache.db-wal"} <= {p.name for p in files}, f"{files}")
    for path in [state, *files]:
        if not path.exists():
            continue
        mode = path.stat().st_mode & 0o777
        os.chown(path, 0, 0)
        os.chmod(path, 0o755 if path.is_dir() else 0o644)
        start().kill()
        os.chmod(path, 0o700 if path.is_dir() else 0o600)
        start().kill()
        if path.exists():
            os.chown(path, NOBODY, NOBODY)
            os.chmod(path, mode)
        d = start()
        wait_for(lambda d=d: not d.status()["history"]["off"], 30, f"the history after {path.name} was root's")
        equal(d.ctl("label", "jax_matmul_nopy").stdout.split()[-1:], [b"kept"], f"labels after {path.name} was root's")
        equal([p.name for p in state.glob("state.db.broken-*")], [], f"what was moved aside when {path.name} was root's")
        d.kill()


test_files_of_another_user.slow = True
