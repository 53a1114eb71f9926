# SPDX-License-Identifier: Apache-2.0
"""Databases and files of the state directory that are not what they should be."""

import pathlib
import random
import shutil
import sqlite3

from harness import check, equal, wait_for

TRACE = "/api/v1/tool?session={}&tool=trace_viewer@"


def flip(path, bit):
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)


def moved_is_said(d, state):
    """Both databases are checked while the daemon answers: files, status and log do not change in one moment."""
    moved = {p.name.partition(".db")[0] for p in pathlib.Path(state).glob("*.broken-*")}
    status, log = d.status(), d.log()
    told = {"cache": status["store"]["rebuilt"], "state": status["history"]["replaced"]}
    return all(bool(told[name]) == (name in moved) == (f"{name}.db.broken-" in log) for name in told)


def test_flipped_headers(run):
    """A daemon starts, answers and keeps whatever bit of a header is flipped; what was moved aside is said."""
    logs = run.logdir("jax_matmul_nopy")
    good = run.make_dir("good")
    d = run.start(logdir=logs, state=good)
    answer = d.tool("overview_page", "jax_matmul_nopy")
    wait_for(lambda: d.status()["store"]["writes"] > 0, 20, "the answer is stored")
    equal(d.stop(), 0, "exit status")
    # Those that prevented the start: versions, the program's number, formats.
    bits = [18 * 8, 19 * 8, 47 * 8, 60 * 8, 63 * 8 + 1, 68 * 8, 71 * 8 + 3]
    bits += random.Random(1).sample(range(800), run.parameter("FLIPS", 5, 793))
    for bit in bits:
        state = run.make_dir("flipped")
        for name in ("cache.db", "state.db"):
            shutil.copy(good / name, state / name)
            flip(state / name, bit)
        d = run.start(logdir=logs, state=state)
        equal(d.tool("overview_page", "jax_matmul_nopy"), answer, f"the answer with bit {bit} flipped")
        check(not d.status()["history"]["off"], f"bit {bit}: there is a history")
        wait_for(lambda d=d, state=state: moved_is_said(d, state), 20, f"bit {bit}: status and log say what was moved aside")
        wait_for(lambda d=d: d.status()["store"]["writes"] > 0 or not d.status()["store"]["rebuilt"], 20, f"bit {bit}: results are kept")
        equal(d.stop(), 0, f"exit status with bit {bit} flipped")
        shutil.rmtree(state)


test_flipped_headers.slow = True
test_flipped_headers.whole_limit = 1800


def test_state_is_taken_over(run):
    """A daemon that starts while the old one still ends has the history a moment later."""
    logs, state = run.logdir("jax_matmul_nopy"), run.make_dir("state")
    for turn in range(run.parameter("HANDOVERS", 2, 20)):
        first = run.start(logdir=logs, state=state)
        second = run.start(logdir=logs, state=state)
        check(second.status()["history"]["off"] and second.status()["store"]["read_only"], "the first has both")
        if turn % 2:
            first.stop()
        else:
            first.kill()
        wait_for(lambda s=second: not s.status()["history"]["off"], 8, "state.db is taken")
        second.tool("overview_page", "jax_matmul_nopy")
        second.stop()


def test_index_of_another_profile(run):
    """Indexes that were renamed to each other's names answer for nobody."""
    names = ("jax_matmul_nopy", "mi300_jax_gemm")
    logs, state = run.logdir(*names), run.make_dir("state")
    d = run.start(logdir=logs, state=state)
    answers = [d.get(TRACE.format(n), timeout=60).body for n in names]
    check(answers[0] != answers[1], "two traces")
    files = wait_for(lambda: len(f := sorted((state / "traces").glob("*.trace_index"))) == 2 and f, 20, "both indexes are kept")
    d.stop()
    first, second = (f.read_bytes() for f in files)
    files[0].write_bytes(second)
    files[1].write_bytes(first)
    d = run.start(logdir=logs, state=state)
    for name, answer in zip(names, answers):
        equal(d.get(TRACE.format(name), timeout=60).body, answer, f"the trace of {name}")


def test_database_without_tables(run):
    """A database of another program is left alone, and said."""
    state = run.make_dir("state")
    with sqlite3.connect(state / "state.db") as other:
        other.execute("CREATE TABLE mine(x)")
    other.close()
    before = (state / "state.db").read_bytes()
    try:
        run.start(logdir=run.logdir("jax_matmul_nopy"), state=state).stop()
    except AssertionError as e:
        check("another program" in str(e), str(e))
    else:
        check(False, "started on another program's database")
    equal((state / "state.db").read_bytes(), before, "the other program's database")
