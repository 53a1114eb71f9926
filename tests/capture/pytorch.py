#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Captures of PyTorch's processes (PyPI, CPU) through Kineto's IPC.  Usage: pytorch.py BUILD PYTHON [NAME...]; see run.py.

xplaned-agent and the ranks meet in a directory ($KINETO_IPC_SOCKET_DIR), so that dynolog's name stays free."""
import gzip
import json
import os
import re
import signal
import sys

from harness import HERE, Direct, Place, Results, Served, report_of, sessions, wait_until

RANKS = 3


class Job:
    """The ranks, and the agent of their machine."""

    def __init__(self, place):
        self.place, self.directory = place, place.directory("agent")
        self.directory.chmod(0o700)
        env = dict(os.environ, KINETO_USE_DAEMON="1", KINETO_IPC_SOCKET_DIR=str(self.directory))
        agent = [place.build / "agent" / "xplaned-agent", "--pytorch", "--listen", "127.0.0.1:0", "--directory", self.directory]
        self.agent = place.start(["/bin/sh", "-c", 'exec "$@" 2>&1', "sh", *agent], "", "port=", env).ready()
        wait_until("the agent's port", self.find_port)
        meeting = place.directory("meeting") / "file"
        self.ranks = [self.start([place.python, HERE / "kineto_job.py", rank, RANKS, meeting], dict(env, RANK=str(rank)))
                      for rank in range(RANKS)]
        for rank in self.ranks:
            rank.word = b"ready"
            rank.ready()

    def start(self, command, env):
        """Two threads of torch 2.9 both make a client of the daemon, and one may close the other's socket: then the import aborts."""
        for _ in range(10):
            rank = self.place.start(command, "", "imported", env)
            wait_until("torch is imported", lambda r=rank: r.process.poll() is not None or r.is_ready())
            if rank.process.poll() != -signal.SIGABRT:
                return rank.ready()
        raise AssertionError("torch aborts at each start")

    def find_port(self):
        self.agent.is_ready()
        port = re.search(rb"port=(\d+)\s", self.agent.said)
        self.target = port and f"pytorch:127.0.0.1:{port.group(1).decode()}"
        return port


def traces(way, session):
    """{rank: its trace}."""
    return {int(re.search(r"-rank-(\d+)\.", f.name)[1]): json.load(gzip.open(f))
            for f in way.directory(session).glob("*.pt.trace.json.gz")}


def begin_ns(trace):
    return trace.get("baseTimeNanoseconds", 0) + 1000 * min(e["ts"] for e in trace["traceEvents"] if e.get("cat") == "cpu_op")


def count(trace, name):
    return sum(e["ph"] == "X" and e["name"].startswith(name) and e.get("cat") != "python_function" for e in trace["traceEvents"])


def span(way, job):
    """All ranks record the same second, as hosts of one session."""
    said = way.capture([job.target], "--duration", "1s", "--python-tracer", "1")
    assert said.code == 0 and f"{RANKS} processes" in said.err, said
    session = said.out.strip()
    by_rank = traces(way, session)
    assert sorted(by_rank) == list(range(RANKS)), by_rank.keys()
    begins = [begin_ns(t) for t in by_rank.values()]
    assert max(begins) - min(begins) < 1e9, begins  # a loaded machine is late
    for trace in by_rank.values():
        assert count(trace, "aten::addmm") > 1 and count(trace, "gloo:all_reduce") > 1, trace["traceName"]
        assert any(e.get("cat") == "python_function" for e in trace["traceEvents"])
    shown = way.overview(session)
    assert shown.code == 0, shown
    hosts = way.ctl("hosts", *([session] if way.name == "daemon" else [way.directory(session)]), "--format", "json")
    assert [h["name"] for h in json.loads(hosts.out)] == [f"rank {r}" for r in range(RANKS)], hosts
    note, = report_of(way.logdir, session)["hosts"]
    assert note["state"] == "stored" and note["notice"] == f"{RANKS} processes", note


def iterations(way, job):
    """So many steps of the optimizer, in each rank."""
    said = way.capture([job.target], "--duration", "20s", "--advanced", "pytorch_iterations=5", "--advanced", "pytorch_round_up=10")
    assert said.code == 0, said
    steps = {r: count(t, "Optimizer.step#SGD.step") for r, t in traces(way, said.out.strip()).items()}
    assert sorted(steps) == list(range(RANKS)) and all(4 <= n <= 6 for n in steps.values()), steps


def schedule(way, job):
    """Repeated, and only the newest session is kept."""
    said = way.ctl("capture", job.target, "--duration", "200ms", "--every", "15s", "--keep", "1", "--session", "turn")
    assert said.code == 0, said
    seen = set()

    def names():
        now = {n for n, files in sessions(way.logdir).items() if n.startswith("turn") and "capture.json" in files}
        seen.update(now)
        return now
    wait_until("two turns, and one session left", lambda: len(names()) == 1 and len(seen) > 1, 150)
    session, = names()
    assert sorted(traces(way, session)) == list(range(RANKS)), session
    assert way.ctl("unschedule", said.out.strip()).code == 0


def no_process(way, job):
    """The ranks have ended."""
    for rank in job.ranks:
        rank.process.stdin.close()
        rank.process.wait(60)
    said = way.capture([job.target], "--duration", "1s")
    assert said.code != 0 and not said.out.strip(), said
    assert re.search(r"KINETO_USE_DAEMON=1|did not ask for work", said.err), said


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    results, place, served = Results(sys.argv[3:]), Place(*sys.argv[1:3]), None
    try:
        job = Job(place)
        served = Served(place)
        for way in (Direct(place), served):
            for test in (span, iterations):
                results.run(f"PyTorch, {way.name}: {test.__name__}", test, way, job)
        results.run("PyTorch, daemon: schedule", schedule, served, job)
        results.run("PyTorch, daemon: no process", no_process, served, job)
    finally:
        if served:
            served.end()
        place.end()
    results.finish()


if __name__ == "__main__":
    main()
