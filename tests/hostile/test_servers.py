# SPDX-License-Identifier: Apache-2.0
"""Daemons that answer clients with nothing, too much, or what is no answer."""

import resource
import subprocess

from harness import MIB, check, wait_for
from hostile_profiler import HostileProfiler

COMMANDS = (("sessions",), ("tool", "overview_page", "s"), ("sql", "s", "SELECT 1"), ("captures",), ("label", "s"), ("history", "--dir", "d"),
            ("compare", "a", "b"), ("tools",), ("hosts", "s"))
NO_LIST = b"\x12\x01x"  # ListSessionsResponse: no session, and a token of the next page
ANSWERS = {"nothing": [], "empty": [b""], "no message": [b"\xff" * 100], "no end": [NO_LIST],
           "deep": [b"\x0a\x7f" * 60 + bytes(127)], "text": [b"\x0a\x05\xff\xfe\x00\x1b["]}


def ask(run, server, command, seconds):
    """A command's status and what it says, in time."""
    try:
        done = subprocess.run([run.build / "cli/xplanectl", "--server", server.address, "--timeout-ms", str(seconds * 1000), *command],
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=2 * seconds, check=False)
    except subprocess.TimeoutExpired:
        check(False, f"{command}: no end")
    check(done.returncode in (0, 1, 2, 3), f"{command}: status {done.returncode}: {done.stderr[-500:]!r}")
    check(done.returncode == 0 or done.stderr, f"{command}: failed without a reason")
    return done


def test_daemons_that_answer_wrong(run):
    """A client says what is wrong, and asks no daemon without end."""
    for name, messages in ANSWERS.items():
        with HostileProfiler(messages=messages) as server:
            for command in COMMANDS:
                ask(run, server, command, 20)
            check(server.calls <= 3 * len(COMMANDS), f"{name}: {server.calls} calls")


test_daemons_that_answer_wrong.slow = True


def test_daemons_that_answer_too_much(run):
    """A client holds no more than 2 GiB of what a daemon sends, and ends by itself."""
    with HostileProfiler(announced=0xFFFFFFF0, frame=1 << 14) as server:
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        done = ask(run, server, ("sessions",), 120)
        most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        check(done.returncode == 1, f"status {done.returncode}")
        wait_for(lambda: server.sent > 1024 * MIB, 10, "too little was sent")
        check(before * 1024 > 2600 * MIB or most < 2600 * MIB, f"{most // MIB} MiB in the client")


test_daemons_that_answer_too_much.whole_only = True
test_daemons_that_answer_too_much.whole_limit = 600
