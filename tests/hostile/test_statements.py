# SPDX-License-Identifier: Apache-2.0
"""Statements of SQL that are built to be slow."""

import contextlib
import http.client
import threading
import time
import urllib.parse

from harness import check, equal, wait_for

# 90 calls for one row, each of which compares 65,400 characters with 5,401 others.
TRIM = (
    "WITH s(i) AS (SELECT 300 UNION ALL SELECT i + 1 FROM s WHERE i < 5700)"
    " SELECT "
    + ", ".join("length(trim(x, y))" for _ in range(90))
    + " FROM (SELECT replace(hex(zeroblob(32700)), '0', 'a') AS x),"
    " (SELECT group_concat(char(i), '') || 'a' AS y FROM s)"
)
# As many rows as anybody wants, sorted.
SORT = "WITH s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s) SELECT i FROM s ORDER BY random()"
CALLERS = 12


def ask(d, statement, timeout):
    return d.get("/api/v1/sql?q=" + urllib.parse.quote(statement), timeout=timeout)


def test_statements_end_with_the_daemon(run):
    d = run.start("--grace=2s", "--workers=4", logdir=run.logdir("jax_matmul_nopy"))
    answers = []

    def one(statement):
        with contextlib.suppress(OSError, http.client.HTTPException):
            answers.append(ask(d, statement, 60).status)

    callers = [threading.Thread(target=one, args=((TRIM, SORT)[i % 2],), daemon=True) for i in range(CALLERS)]
    for t in callers:
        t.start()
    # Those that run are as many as may; the others were refused.
    wait_for(lambda: len(answers) >= CALLERS - 2, 30, "all statements but two are refused")
    equal(set(answers), {503}, "too many statements")
    equal(d.stop(2 + 5), 0, "exit status, once they had --grace")
    for t in callers:
        t.join()


def test_statements_end_in_time(run):
    d = run.start("--workers=4", logdir=run.logdir("jax_matmul_nopy"))
    for statement in (TRIM, SORT):
        began = time.monotonic()
        got = ask(d, statement, 120)
        took = time.monotonic() - began
        check(got.status in (429, 503, 504) and (took < 33), f"{took:.1f} s of 30, HTTP {got.status}: {statement[-80:]}")
        d.answers()


test_statements_end_in_time.whole_only = True
