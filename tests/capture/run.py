#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Captures of real profiler servers.  Usage: run.py BUILD PYTHON [NAME...]

BUILD is a build directory of xplaned, PYTHON that of tests/capture/setup.sh; this runs with the one of tests/parity/setup.sh.
NAMEs choose tests (parts of their names).  The last line is "N passed, N failed, N skipped".
"""
import sys

import test_capture
import test_docs
import test_fake
from harness import Direct, Place, Results, Served


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    results, place = Results(sys.argv[3:]), Place(*sys.argv[1:3])
    served = None
    try:
        jobs, idle = [place.job() for _ in range(4)], place.job("--idle")
        served = Served(place)
        for job in (*jobs, idle):
            job.ready()
        for way in (Direct(place), served):
            for test in test_capture.WITH_JOBS:
                results.run(f"{way.name}: {test.__name__}", test, way, jobs)
            for test in test_capture.WITH_IDLE:
                results.run(f"{way.name}: {test.__name__}", test, way, jobs, idle)
            for test in test_fake.TESTS:
                results.run(f"{way.name}: {test.__name__}", test, way)
        for test in test_capture.WITH_DAEMON:
            results.run(f"daemon: {test.__name__}", test, served, jobs)
        for test in test_docs.TESTS:
            results.run(f"docs: {test.__name__}", test, served, jobs)
    finally:
        if served:
            served.end()
        place.end()
    results.finish()


if __name__ == "__main__":
    main()
