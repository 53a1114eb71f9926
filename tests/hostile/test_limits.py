# SPDX-License-Identifier: Apache-2.0
"""Limits of threads, processes, descriptors and address space: at each of 20 levels a daemon under load answers or refuses,
and answers right afterwards; one that cannot start says why."""

import contextlib
import http.client
import os
import resource

from harness import MIB, Failed, Skip, answer_url, check, equal, in_threads, reference_answers, same_answer

TOOLS = ("overview_page", "op_profile", "trace_viewer@")
LEVELS = 20
CLIENTS = 6
NOBODY = 54321  # a user that has no process


def load(d, expected, turns):
    """Clients over HTTP and the command line, each request on a connection of its own; whole answers are right ones."""
    keys = list(expected)

    def client(i):
        for turn in range(turns):
            session, tool = keys[(i + turn) % len(keys)]
            with contextlib.suppress(OSError, http.client.HTTPException):  # a refused connection is an answer, too
                got = d.get(answer_url(session, tool), timeout=20)
                if got.status == 200:
                    same_answer(got, expected[session, tool], f"{tool} of {session}")
                else:
                    check(got.status >= 400 and got.body, f"{tool} of {session}: {got}")
            if i == 0:
                done = d.ctl("--timeout-ms", "10000", "tool", tool, session)
                check(done.returncode == 0 or done.stderr, f"xplanectl: {done.returncode} without a reason")

    in_threads(CLIENTS, client)


def starts(run, expected, logdir, level, text, **start):
    """Starts a daemon that may say that it cannot; loads it.  Whether it started."""
    try:
        d = run.start("--no-prefetch", logdir=logdir, **start)
    except Failed as e:
        check("the daemon ended with 1:" in str(e) and "level=error" in str(e), f"{text} {level}: {e}")
        return False
    load(d, expected, 2)
    check(d.alive(), f"{text} {level}: the daemon ended with {d.process.returncode}: {d.log()[-1500:]}")
    equal(d.stop(), 0, f"{text} {level}: exit status")
    return True


def at_levels(run, text, levels, preexec):
    """At each level: the daemon says why it does not start, or answers under load.  The highest must start, the lowest not."""
    logdir = run.logdir("jax_matmul_nopy", "jax_4hosts")
    expected = reference_answers(run, logdir, tools=TOOLS)
    for p in (run.dir, logdir):
        os.chmod(p, 0o755)
    equal(len(levels), LEVELS, "levels")
    started = []
    for level in levels:
        state = run.make_dir("state")
        os.chmod(state, 0o777)
        if starts(run, expected, logdir, level, text, state=state, preexec=lambda level=level: preexec(level)):
            started.append(level)
        run.daemons.clear()
    check(levels[-1] in started, f"{text}: {levels[-1]} are not enough")
    check(levels[0] not in started, f"{text}: {levels[0]} are enough")


def test_levels_of_descriptors(run):
    at_levels(run, "descriptors", [4, 8, *range(12, 40, 2), 60, 64, 70, 128],
              lambda n: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n)))


def test_levels_of_threads(run):
    """Threads and processes of a user are one limit, which root does not have."""
    if os.geteuid() != 0:
        raise Skip("needs root, to become a user without other processes")

    def become(n):
        resource.setrlimit(resource.RLIMIT_NPROC, (n, n))
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)

    at_levels(run, "threads", [1, 2, *range(4, 30, 2), 31, 36, 48, 64, 128], become)


def test_levels_of_address_space(run):
    if run.sanitized:
        raise Skip("sanitizers need terabytes of address space")
    at_levels(run, "MiB of address space", [60, *range(100, 420, 20), 600, 1000, 3000],
              lambda n: resource.setrlimit(resource.RLIMIT_AS, (n * MIB, n * MIB)))


test_levels_of_address_space.slow = True
