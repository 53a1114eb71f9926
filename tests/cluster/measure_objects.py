#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times what a daemon does with an object store: SeaweedFS on the same machine.

Usage: measure_objects.py --build DIR [--keys 10000] [--mib 200] [--times 5]
Listing: from the line that says that the daemon listens to the one that says what the bucket has, a
run of so many objects.  Fetching: the first answer for an object that turns out to be no profile,
less the second one, for which there is a copy; beside curl, which writes the same object to a file,
in turns.  Needs curl, and SeaweedFS (setup.sh).
"""
import argparse
import concurrent.futures
import datetime
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))
from harness import Daemon, Programs, environment, wait_until  # noqa: E402
from seaweed import Seaweed, find_weed  # noqa: E402

ACCESS, SECRET = "AKIDMEASURED", "secret"


def at(line):
    return datetime.datetime.fromisoformat(line.split(" ", 1)[0].replace("Z", "+00:00"))


def list_ms(daemon):
    def find(text):
        return next((x for x in daemon.text().splitlines() if text in x), None)
    listed = wait_until("the bucket is listed", lambda: find('msg="1 session"'))
    return (at(listed) - at(find("msg=listening"))).total_seconds() * 1000


def ask_s(daemon, run):
    begin = time.monotonic()
    subprocess.run([Programs.xplanectl, "--server", daemon.address, "tool", "overview_page", run],
                   env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300, check=False)
    return time.monotonic() - begin


def curl_s(weed, key, file):
    begin = time.monotonic()
    subprocess.run(["curl", "-sSf", "--aws-sigv4", "aws:amz:us-east-1:s3", "-u", f"{ACCESS}:{SECRET}", "-o", file,
                    f"{weed.endpoint}/bucket/{key}"], timeout=300, check=True)
    return time.monotonic() - begin


def started(place, name, weed, prefix):
    (place / name).mkdir()
    return Daemon(f"s3://bucket/{prefix}", place / name, "--object-endpoint", weed.endpoint)


def measure_list(o, place, weed):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: weed.put(f"many/plugins/profile/run/host{i:05}.xplane.pb", b"x"), range(o.keys)))
    times = []
    for i in range(o.times):
        daemon = started(place, f"list{i}", weed, "many")
        times.append(list_ms(daemon))
        daemon.end()
    print(f"list {o.keys} keys: {min(times):.0f} to {max(times):.0f} ms, median {statistics.median(times):.0f}")


def measure_fetch(o, place, weed):
    data = os.urandom(1 << 20) * o.mib
    for i in range(o.times):
        weed.put(f"large/plugins/profile/run{i}/host.xplane.pb", data)
    daemon = started(place, "fetch", weed, "large")
    wait_until("the bucket is listed", lambda: f'msg="{o.times} sessions"' in daemon.text())
    ours, curls = [], []
    for i in range(o.times):
        first = ask_s(daemon, f"run{i}")
        ours.append(first - ask_s(daemon, f"run{i}"))
        curls.append(curl_s(weed, f"large/plugins/profile/run{i}/host.xplane.pb", place / "file"))
    daemon.end()
    for name, times in (("xplaned", ours), ("curl", curls)):
        print(f"fetch {o.mib} MiB, {name}: {min(times):.2f} to {max(times):.2f} s, "
              f"median {statistics.median(times):.2f}")
    print(f"rate: {statistics.median(c / t for c, t in zip(curls, ours)):.2f} of curl's")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--build", type=pathlib.Path, required=True)
    p.add_argument("--keys", type=int, default=10000)
    p.add_argument("--mib", type=int, default=200)
    p.add_argument("--times", type=int, default=5, help="at least 2")
    o = p.parse_args()
    if not find_weed():
        sys.exit("SKIPPED: no SeaweedFS: tests/cluster/setup.sh DIR, XPL_CLUSTER_VENV=DIR")
    Programs.xplaned, Programs.xplanectl = (os.path.abspath(o.build / p) for p in ("server/xplaned", "cli/xplanectl"))
    os.environ.update(AWS_ACCESS_KEY_ID=ACCESS, AWS_SECRET_ACCESS_KEY=SECRET)
    os.environ.pop("AWS_SESSION_TOKEN", None)
    with tempfile.TemporaryDirectory() as place:
        weed = Seaweed(place, ACCESS, SECRET)
        try:
            measure_list(o, pathlib.Path(place), weed)
            measure_fetch(o, pathlib.Path(place), weed)
        finally:
            weed.end()


if __name__ == "__main__":
    main()
