# SPDX-License-Identifier: Apache-2.0
"""Limits of threads, processes, descriptors and address space: at each of 20 levels a daemon under load answers or refuses,
and answers right afterwards; one that cannot start says why."""

import contextlib
import http.client
import resource
import threading

from harness import MIB, Failed, Skip, answer_url, check, equal, in_threads, quiet_close, reference_answers, same_answer

TOOLS = ("overview_page", "op_profile", "trace_viewer@")
LEVELS = 20
CLIENTS = 6


def load(d, expected, turns):
    """Clients over HTTP and the command line, each question on a connection of its own; whole answers are right ones."""
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


def at_levels(run, text, limit, levels, **start):
    """At each level: the daemon says why it does not start, or answers under load.  The highest must start."""
    logdir = run.logdir("jax_matmul_nopy", "jax_4hosts")
    expected = reference_answers(run, logdir, tools=TOOLS)
    started = []
    for level in levels:
        bound = level, level
        if starts(run, expected, logdir, level, text, preexec=lambda bound=bound: resource.setrlimit(limit, bound), **start):
            started.append(level)
        run.daemons.clear()
    check(levels[-1] in started, f"{text}: {levels[-1]} are not enough")
    check(levels[0] not in started, f"{text}: {levels[0]} are enough")


def test_levels_of_descriptors(run):
    at_levels(run, "descriptors", resource.RLIMIT_NOFILE, [8, *range(12, 48, 2), 128])
