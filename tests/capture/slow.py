#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Captures of TensorFlow's profiler server.  Usage: slow.py BUILD PYTHON [NAME...]; see run.py."""
import sys

import test_capture
from harness import Direct, Place, Results, Served

TESTS = (test_capture.one_host, test_capture.two_at_once, test_capture.profiled_already, test_capture.cancelled, test_capture.equal_in_xprof)


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
    finally:
        if served:
            served.end()
        place.end()
    results.finish()


if __name__ == "__main__":
    main()
