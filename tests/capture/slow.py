#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Captures of TensorFlow's profiler server.  Usage: slow.py BUILD PYTHON [NAME...]; see run.py."""
import subprocess
import sys

import test_capture
from harness import HERE, PATIENCE_S, Direct, Place, Results, Served, report_of, sessions

TESTS = (test_capture.one_host, test_capture.two_at_once, test_capture.profiled_already, test_capture.cancelled, test_capture.equal_in_xprof)


def profile_analysis(served, jobs):
    """TensorFlow's client gives its list of workers to the first of them, our daemon, which captures the others."""
    before, server, targets = set(sessions(served.logdir)), served.daemon.address, [j.address for j in jobs]
    done = subprocess.run([served.place.python, HERE / "tf_client.py", server, served.logdir, "500", ",".join([server, *targets])],
                          capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done
    session, = set(sessions(served.logdir)) - before
    hosts = {h["target"]: h["state"] for h in report_of(served.logdir, session)["hosts"]}
    assert hosts == {server: "failed", **{t: "stored" for t in targets}}, hosts


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    results, place, served = Results(sys.argv[3:]), Place(*sys.argv[1:3]), None
    try:
        jobs = [place.job(script="tf_job.py") for _ in range(2)]
        served = Served(place)
        for job in jobs:
            job.ready()
        for way in (Direct(place), served):
            for test in TESTS:
                results.run(f"TensorFlow, {way.name}: {test.__name__}", test, way, jobs)
        results.run("TensorFlow, its client: profile_analysis", profile_analysis, served, jobs)
    finally:
        if served:
            served.end()
        place.end()
    results.finish()


if __name__ == "__main__":
    main()
