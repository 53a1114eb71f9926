#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times one session on a front and workers, cold.

Usage: measure.py --build DIR [--hosts 256] [--workers 8] [--delay-ms 200] [--lease 2]
                  [--kill SECONDS] [--slow TIMES] [--fronts 8]
                  [--idle SECONDS] [--latency REQUESTS] [--store REQUESTS]
                  [--table HOSTS,HOSTS... [--at-once SESSIONS] [--sides lite,pg,fleet]]
                  [--profile FILE]
Each job takes --delay-ms longer than its work, which stands for larger profiles: what is compared
with is jobs x delay / workers. --kill ends one worker so long after the request; --slow makes the
delay of one so many times as long. --fronts asks so many of them for the same at once, and counts
what was made. --idle counts the statements of the fleet when it has nothing to do, by
pg_stat_statements. --latency asks for sessions of one host, each after some seconds of quiet: how
long a job waits for a worker. --store compares answers of a daemon on PostgreSQL with those of one
on its own cache.db, asked in turns over HTTP: cold ones, of a session each, and warm ones. --table
asks one daemon on cache.db, one on PostgreSQL, and a front with two workers for cold sessions of so
many hosts each, without delays, and counts the processor time of PostgreSQL; --at-once asks for so
many sessions of each size at once; --sides asks only some of the three. --profile names the
profile that each host has, with other bytes at its end; the default has 93 KB. Needs a build with
-Dfaults=true and PostgreSQL's server of Debian; all of it runs below a temporary directory.
"""
import argparse
import glob
import http.client
import os
import pathlib
import pwd
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROFILE = ROOT / "tests/data/logdir/cpu/plugins/profile/jax_matmul_nopy/vm.xplane.pb"


class Database:
    """A server of our own: a socket, no TCP."""

    def __init__(self, work):
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
        if not found:
            sys.exit("SKIPPED: no server of PostgreSQL in /usr/lib/postgresql")
        self.bin = os.path.dirname(found[-1])
        self.user = pwd.getpwnam("postgres") if os.geteuid() == 0 else None
        self.dir = os.path.join(work, "pg")
        os.mkdir(self.dir, 0o700)
        if self.user:
            os.chmod(work, 0o755)
            os.chown(self.dir, self.user.pw_uid, self.user.pw_gid)
        data = os.path.join(self.dir, "data")
        self._run("initdb", "-D", data, "-U", "postgres", "-N", "-A", "trust")
        self.server = subprocess.Popen(
            self._argv("postgres", "-D", data, "-k", self.dir, "-c", "listen_addresses=",
                       "-c", "fsync=off", "-c", "max_connections=200",
                       "-c", "shared_preload_libraries=pg_stat_statements"),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=self._drop)
        self.url = f"postgresql://postgres@/postgres?host={self.dir}"
        for _ in range(200):
            if self.sql("SELECT 1") == "1":
                return
            time.sleep(0.1)
        self.stop()
        sys.exit("the database does not answer")

    def _argv(self, program, *args):
        return [os.path.join(self.bin, program), *args]

    def _drop(self):
        if self.user:
            os.setgroups([])
            os.setgid(self.user.pw_gid)
            os.setuid(self.user.pw_uid)

    def _run(self, *argv):
        subprocess.run(self._argv(*argv), check=True, stdout=subprocess.DEVNULL, cwd="/",
                       preexec_fn=self._drop)

    def sql(self, text):
        r = subprocess.run(self._argv("psql", "-XqAt", "-h", self.dir, "-U", "postgres", "-c", text),
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
        return r.stdout.strip()

    def stop(self):
        self.server.send_signal(signal.SIGINT)
        self.server.wait()


def make_session(logdir, hosts, name="run", profile=PROFILE):
    """Hosts of other bytes each, written long ago."""
    data = profile.read_bytes()
    run = logdir / "plugins/profile" / name
    run.mkdir(parents=True)
    for i in range(hosts):
        host = f"{name[3:]}h{i:05d}".encode()
        path = run / f"{host.decode()}.xplane.pb"
        path.write_bytes(data + b"\x22" + bytes([len(host)]) + host)
        os.utime(path, (1700000000, 1700000000 + i))



class Fleet:
    def __init__(self, o, work, db):
        self.o, self.work, self.db, self.processes = o, work, db, []

    def start(self, role, name, *flags, **env):
        log = open(os.path.join(self.work, f"{name}.log"), "w", encoding="utf-8")
        p = subprocess.Popen(
            [f"{self.o.build}/server/xplaned", f"--role={role}", f"--logdir={self.work}/logs",
             f"--store={self.db.url}", f"--state-dir={self.work}/{name}", *flags],
            stderr=log, env={**os.environ, **env})
        self.processes.append(p)
        return p

    def start_workers(self):
        delays = [int(self.o.delay_ms * (1 if i else self.o.slow)) for i in range(self.o.workers)]
        return [self.start("worker", f"worker{i}", "--workers=1", f"--job-lease={self.o.lease}s",
                           XPLANED_FAULT_JOBS=f"delay_ms={delay}") for i, delay in enumerate(delays)]

    def start_fronts(self):
        for i in range(self.o.fronts):
            self.start("front", f"front{i}", "--listen=127.0.0.1:0", "--http=off")
        return [self.address(f"front{i}", "grpc") for i in range(self.o.fronts)]

    def address(self, name, service):
        for _ in range(600):
            text = pathlib.Path(self.work, f"{name}.log").read_text(encoding="utf-8")
            found = re.search(rf"msg=listening service={service} address=(\S+)", text)
            if found:
                return found[1]
            time.sleep(0.1)
        sys.exit(f"{name} does not listen")

    def wait_workers(self):
        for _ in range(600):
            if self.db.sql("SELECT count(*) FROM daemons WHERE role='worker' AND"
                           " expires_at>clock_timestamp()") == str(self.o.workers):
                return
            time.sleep(0.1)
        sys.exit("the workers do not report")

    def stop(self):
        for p in self.processes:
            if p.poll() is None:
                p.terminate()
        for p in self.processes:
            p.wait()


def measure_idle(o, db):
    """By the server's own count, of each statement."""
    db.sql("CREATE EXTENSION pg_stat_statements")
    time.sleep(45)  # the work done once at the start has finished
    db.sql("SELECT pg_stat_statements_reset()")
    began = time.monotonic()
    time.sleep(o.idle)
    took = time.monotonic() - began
    lines = db.sql("SELECT calls, left(regexp_replace(query, '\\s+', ' ', 'g'), 90) FROM pg_stat_statements"
                   " WHERE query NOT LIKE '%pg_stat_statements%' ORDER BY calls DESC").splitlines()
    calls = [int(line.split("|")[0]) for line in lines]
    for n, line in zip(calls, lines):
        print(f"{n / took:6.2f}/s  {line.split('|', 1)[1]}")
    print(f"idle: {sum(calls) / took:.2f} statements/s")


def measure_latency(o, fleet, address):
    """How long the first job of a request waits in a fleet that did nothing for a while."""
    waits = []
    for i in range(o.latency):
        time.sleep(2.3 + i % 7 / 7)
        subprocess.run([f"{o.build}/cli/xplanectl", "--server", address, "tool", "overview_page", f"run{i}", "-o",
                        os.devnull], check=True)
        logs = [pathlib.Path(fleet.work, f"worker{w}.log").read_text(encoding="utf-8") for w in range(o.workers)]
        waits.append(min(int(ms) for log in logs for ms in re.findall(rf"session=run{i} .*queued_ms=(\d+)", log)))
    waits.sort()
    print(f"{o.latency} requests to a fleet that is idle: a job is claimed after {waits[len(waits) // 2]} ms (median),"
          f" {waits[-1]} ms at most")


def measure_session(o, fleet, workers, addresses):
    began = time.monotonic()
    clients = [subprocess.Popen([f"{o.build}/cli/xplanectl", "--server", address, "tool",
                                 "overview_page", "run", "-o", os.devnull]) for address in addresses]
    if o.kill is not None:
        time.sleep(o.kill)
        workers[0].kill()
    codes = {client.wait() for client in clients}
    took = time.monotonic() - began
    jobs = sum(int(n) for i in range(o.workers) for n in re.findall(
        r"msg=published .* products=(\d+)", pathlib.Path(fleet.work, f"worker{i}.log").read_text(encoding="utf-8")))
    ideal = jobs * o.delay_ms / 1000 / (o.workers - 1 + 1 / o.slow)
    left = fleet.db.sql("SELECT count(*) FROM jobs")
    stored = fleet.db.sql("SELECT count(*) FROM results WHERE kind='product'")
    beside = f"the delays alone {ideal:.1f} s: {took / ideal:.2f}" if ideal else "no delays"
    print(f"{o.hosts} hosts, {jobs} products, {o.workers} workers, {o.fronts} fronts: {took:.1f} s, {beside};"
          f" status {codes}, {left} jobs left, {stored} products stored")


def in_turns(connections, path, n):
    """Milliseconds of n requests by each connection, in turns."""
    took = [[] for _ in connections]
    for i in range(n):
        for k, connection in sorted(enumerate(connections), reverse=i % 2 == 0):
            began = time.perf_counter()
            connection.request("GET", path(i))
            answer = connection.getresponse()
            size = len(answer.read())
            took[k].append((time.perf_counter() - began) * 1000)
            if answer.status != 200 or not size:
                sys.exit(f"{path(i)}: {answer.status}")
    return took


def processor_ms(pids):
    """What processes have used so far, each with what its threads did."""
    ticks = 0
    for pid in pids:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks * 1000 / os.sysconf("SC_CLK_TCK")


def measure_store(o, fleet):
    flags = ("--listen=127.0.0.1:0", "--http=127.0.0.1:0", "--no-prefetch")
    fleet.start("all", "pg", *flags)
    fleet.start("all", "lite", *flags, "--store=")
    sides = [http.client.HTTPConnection(fleet.address(name, "http")) for name in ("pg", "lite")]
    time.sleep(3)  # the sessions are in both catalogues, and the start's work has finished
    backends = fleet.db.sql("SELECT pid FROM pg_stat_activity WHERE application_name='xplaned'").split()
    watched = [[fleet.processes[0].pid, *map(int, backends)], [fleet.processes[1].pid]]
    for what, path, n in (
            ("cold", lambda i: f"/api/v1/tool?session=run{i}&tool=overview_page", o.store),
            ("warm", lambda i: "/api/v1/tool?session=run0&tool=overview_page", 100 * o.store)):
        before = [processor_ms(pids) for pids in watched]
        pg, lite = in_turns(sides, path, n)
        time.sleep(1)  # for the writes that follow answers
        used = [(processor_ms(pids) - ms) / n for pids, ms in zip(watched, before)]
        more = [a - b for a, b in zip(pg, lite)]
        print(f"{what}, {n} each, medians: {statistics.median(pg):.3f} ms on PostgreSQL, {statistics.median(lite):.3f} ms"
              f" on cache.db, {statistics.median(pg) / statistics.median(lite):.3f} times; median of what it is more"
              f" {statistics.median(more):.3f} ms; processor time of each, with what is written behind it,"
              f" {used[0]:.2f} and {used[1]:.2f} ms")


def ask(o, address, n, path):
    """Seconds of cold requests for sessions of n hosts, all at once; their answers are in `path`0 and so on."""
    began = time.monotonic()
    clients = [subprocess.Popen([f"{o.build}/cli/xplanectl", "--server", address, "--timeout-ms", "900000", "tool",
                                 "overview_page", f"run{n}s{k}", "-o", f"{path}{k}"]) for k in range(o.at_once)]
    if any([client.wait() for client in clients]):
        sys.exit(f"{n} hosts: a request failed")
    return time.monotonic() - began


def server_ms(db):
    """Of the server and the processes that it has now."""
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(db.server.pid)], check=True,
                              stdout=subprocess.PIPE, text=True).stdout.split()
    ticks = 0
    for pid in [db.server.pid, *children]:
        try:
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
        except FileNotFoundError:
            continue
        ticks += sum(map(int, fields[11:15]))  # also of children that have ended
    return ticks * 1000 / os.sysconf("SC_CLK_TCK")


def peak_mib(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(re.search(r"VmHWM:\s+(\d+) kB", text)[1]) // 1024


def measure_table(o, work, db):
    flags = ("--listen=127.0.0.1:0", "--http=off", "--no-prefetch")
    o.delay_ms = 0
    titles = {"lite": "cache.db | its peak", "pg": "PostgreSQL | its processor time",
              "fleet": "front, 2 workers | processor time"}
    print(f"| hosts | {' | '.join(titles[side] for side in o.sides)} |")
    for n in map(int, o.table.split(",")):
        cells, answers = [], set()
        for side in o.sides:
            db.sql("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
            fleet = Fleet(o, work, db)
            if side == "fleet":
                o.workers = 2
                fleet.start_workers()
            name = f"{side}{n}"
            fleet.start("front" if side == "fleet" else "all", name, *flags,
                        *(["--store="] if side == "lite" else []))
            address = fleet.address(name, "grpc")
            if side == "fleet":
                fleet.wait_workers()
            time.sleep(1)  # the work done once at the start has finished
            before = server_ms(db)
            cells.append(f"{ask(o, address, n, f'{work}/answer'):.2f} s")
            cells.append(f"{peak_mib(fleet.processes[0].pid)} MiB" if side == "lite" else
                         f"{(server_ms(db) - before) / 1000:.2f} s")
            answers.add(tuple(pathlib.Path(work, f"answer{k}").read_bytes() for k in range(o.at_once)))
            fleet.stop()
            for d in glob.glob(f"{work}/worker*"):
                (shutil.rmtree if os.path.isdir(d) else os.remove)(d)
        if len(answers) != 1:
            sys.exit(f"{n} hosts: the answers differ")
        print(f"| {n} | {' | '.join(cells)} |", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--build", required=True)
    p.add_argument("--hosts", type=int, default=256)
    p.add_argument("--workers", type=int, default=8)
    p.add_argument("--delay-ms", type=int, default=200)
    p.add_argument("--lease", type=int, default=2)
    p.add_argument("--kill", type=float)
    p.add_argument("--slow", type=float, default=1)
    p.add_argument("--fronts", type=int, default=1)
    p.add_argument("--idle", type=float)
    p.add_argument("--latency", type=int)
    p.add_argument("--store", type=int)
    p.add_argument("--table")
    p.add_argument("--at-once", type=int, default=1)
    p.add_argument("--sides", type=lambda text: text.split(","), default=["lite", "pg", "fleet"])
    p.add_argument("--profile", type=pathlib.Path, default=PROFILE)
    p.add_argument("--keep", action="store_true", help="leave the directory with the logs")
    o = p.parse_args()
    work = tempfile.mkdtemp(prefix="xpl-measure-")
    db = Database(work)
    for i in range(o.latency or o.store or 0):
        make_session(pathlib.Path(work, "logs"), 1, f"run{i}", o.profile)
    for n in o.table.split(",") if o.table else []:
        for k in range(o.at_once):
            make_session(pathlib.Path(work, "logs"), int(n), f"run{n}s{k}", o.profile)
    if not o.table:
        make_session(pathlib.Path(work, "logs"), o.hosts, profile=o.profile)
    fleet = Fleet(o, work, db)
    try:
        if o.store:
            measure_store(o, fleet)
            return
        if o.table:
            measure_table(o, work, db)
            return
        workers, addresses = fleet.start_workers(), fleet.start_fronts()
        fleet.wait_workers()
        if o.idle:
            measure_idle(o, db)
        elif o.latency:
            measure_latency(o, fleet, addresses[0])
        else:
            measure_session(o, fleet, workers, addresses)
    finally:
        fleet.stop()
        db.stop()
        if o.keep:
            print(work)
        else:
            shutil.rmtree(work)


if __name__ == "__main__":
    main()
