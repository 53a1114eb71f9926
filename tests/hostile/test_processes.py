# SPDX-License-Identifier: Apache-2.0
"""Signals, crashes at any moment, and disks that are full."""

import contextlib
import http.client
import os
import random
import resource
import shutil
import subprocess
import threading
import time

from harness import Skip, answer_url, check, end_process, equal, left_of, reference_answers, same_answer, wait_for


def test_signals_while_stopping(run):
    """SIGTERM and SIGHUP come again while the daemon ends: it ends well all the same."""
    for delay in (0, 0.001, 0.003, 0.01):
        d = run.start(logdir=run.logdir("jax_matmul_nopy", "jax_4hosts"))
        for tool in ("overview_page", "op_profile", "kernel_stats"):
            d.tool(tool, "jax_4hosts")
        d.signal(15)
        end = time.monotonic() + 5
        while d.alive() and time.monotonic() < end:
            d.signal(15)
            d.signal(1)
            time.sleep(delay)
        wait_for(lambda: not d.alive(), 10, "the daemon ends")
        equal(d.process.returncode, 0, f"exit status, signals every {delay} s")


def signal_when_it_listens(run, logdir, number):
    """Sends a signal as soon as the daemon's socket is there; checks what it leaves behind."""
    path, state, worker = run.dir / "early.sock", run.make_dir("state"), run.dir / "worker"
    process = subprocess.Popen(
        [str(run.build / "server/xplaned"), f"--logdir={logdir}", f"--state-dir={state}", f"--listen=unix:{path}",
         f"--xprof-worker=unix:{run.dir}/worker.sock", f"--worker-dir={worker}", "--http=127.0.0.1:0"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        end = time.monotonic() + 20
        while not os.path.exists(path):
            check(time.monotonic() < end and process.poll() is None, "not a socket")
        process.send_signal(number)
        _, log = process.communicate(timeout=20)
    finally:
        end_process(process)
    equal(process.returncode, 0, f"exit status: {log.decode()}")
    left = [p.name for p in (path, run.dir / "worker.sock") if p.exists()]
    left += [p.name for p in worker.rglob("*")]
    equal(left, [], "what is left behind")
    return b"while it starts" in log


def test_signals_while_starting(run):
    """A signal between listening and being ready ends the daemon as any other: its sockets are removed."""
    logdir = run.logdir("jax_matmul_nopy")
    early = [signal_when_it_listens(run, logdir, number) for _ in range(run.parameter("STARTS", 4, 100)) for number in (15, 2)]
    end = time.monotonic() + 60
    while not any(early) and time.monotonic() < end:  # this machine is busy, and the daemon was ready by then
        early.append(signal_when_it_listens(run, logdir, 15))
    check(any(early), "none of the signals came early")


test_signals_while_starting.whole_limit = 600


# ---- kill -9 ----


def ask_and_compare(d, expected, chance, stop, failures):
    """Questions until the daemon is gone; every whole answer is that of a fresh daemon."""
    keys = list(expected)
    while not stop.is_set():
        session, tool = chance.choice(keys)
        try:
            got = d.get(answer_url(session, tool), timeout=20)
        except (OSError, http.client.HTTPException):
            if stop.is_set() or not d.alive():
                return
            continue
        if got.status != 503 and (got.status, got.body) != expected[session, tool]:
            failures.append(f"{tool} of {session}: {got}, fresh is {expected[session, tool][0]}")
            return


def nothing_broken(logdir, when):
    for p in (logdir / "plugins/profile").glob("import*"):
        wait_for(lambda p=p: not left_of(p), 30, f"{when} {p.name} has {left_of(p)}")


def test_kills(run):
    """SIGKILL at random moments of requests and imports: the next daemon on the same files starts, each of its
    answers is that of a fresh one, and an imported session is whole or absent, with nothing left of broken ones."""
    logdir = run.logdir("jax_matmul_nopy", "jax_4hosts", "tpu_inference_a", "tf_bfc_memory")
    expected = reference_answers(run, logdir)
    profile = logdir / "plugins/profile/jax_matmul_nopy/vm.xplane.pb"
    state = run.make_dir("state")
    chance = random.Random(run.parameter("SEED", 1, 1))
    failures = []
    for i in range(run.parameter("KILLS", 12, 1000)):
        d = run.start("--scan-interval=50ms", logdir=logdir, state=state)
        nothing_broken(logdir, f"after {i} kills")
        stop = threading.Event()
        clients = [threading.Thread(target=ask_and_compare, args=(d, expected, random.Random(i * 8 + k), stop, failures), daemon=True)
                   for k in range(3)]
        name = f"import{i}"
        importer = subprocess.Popen([str(run.build / "cli/xplanectl"), "--server", d.address, "import", "--session", name, "--retries", "0", str(profile)],
                                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for c in clients:
            c.start()
        time.sleep(chance.choice((0.005, 0.02, 0.1, 0.4)) * chance.random())
        stop.set()
        d.kill()
        for c in clients:
            c.join()
        end_process(importer, 20)
        check(not failures, f"after {i} kills: {failures}")
        whole = [p.name for p in (logdir / "plugins/profile" / name).glob("[!.]*")]
        if whole:
            equal(whole, ["vm.xplane.pb"], "an imported session")
            equal((logdir / "plugins/profile" / name / whole[0]).read_bytes(), profile.read_bytes(), "an imported profile")
            shutil.rmtree(logdir / "plugins/profile" / name)
    d = run.start("--no-prefetch", "--scan-interval=50ms", logdir=logdir, state=state)
    nothing_broken(logdir, "after all kills")
    for (session, tool), answer in expected.items():
        same_answer(d.get(answer_url(session, tool)), answer, f"{tool} of {session} after all kills")
    equal(d.status()["store"]["rebuilt"], False, "cache.db was broken")
    check(not [p for p in state.glob("*.broken-*")], "nothing was moved aside")


test_kills.limit = 180
test_kills.whole_limit = 7200


# ---- full disks ----


@contextlib.contextmanager
def small_disk(run, options):
    """A tmpfs of its own; skips where this process may not mount."""
    path = run.make_dir("disk")
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Skip(f"no tmpfs: {done.stderr.strip()}")
    try:
        yield path
    finally:
        for d in run.daemons:
            d.stop()
        subprocess.run(["umount", str(path)], check=False)


def all_right(d, expected, text):
    for (session, tool), answer in expected.items():
        same_answer(d.get(answer_url(session, tool)), answer, f"{tool} of {session}, {text}")


def full_disk(run, options, fill, free):
    logdir = run.logdir("jax_matmul_nopy", "jax_4hosts", "tpu_inference_a")
    expected = reference_answers(run, logdir)
    with small_disk(run, options) as disk:
        d = run.start("--no-prefetch", logdir=logdir, state=disk)
        all_right(d, expected, "on a small disk")
        fill(disk)
        all_right(d, expected, "on a full disk")
        d.stop()
        d = run.start("--no-prefetch", logdir=logdir, state=disk)
        all_right(d, expected, "started on a full disk")
        check(len(d.log()) < 100_000, f"{len(d.log())} bytes of log")
        free(disk)
        writes = d.status()["store"]["writes"]

        def writes_again():
            d.get(f"{answer_url('jax_4hosts', 'trace_viewer@')}&resolution={random.randrange(1000, 9000)}")
            d.get(answer_url("jax_4hosts", "kernel_stats") + "&host=host-1.cluster.local")
            got = d.status()["store"]
            return got["writes"] > writes and not got["read_only"]

        wait_for(writes_again, 90, "results are written again when there is room", every=0.5)
        all_right(d, expected, "with room again")
        equal(d.stop(), 0, "exit status")


def test_full_disk(run):
    def fill(disk):
        with contextlib.suppress(OSError), open(disk / "ballast", "wb") as f:
            while True:
                f.write(bytes(4096))
                f.flush()

    full_disk(run, "size=900k", fill, lambda disk: ((disk / "ballast").unlink(), subprocess.run(["mount", "-o", "remount,size=50m", str(disk)], check=True)))


test_full_disk.limit = 200


def test_no_inodes(run):
    def fill(disk):
        with contextlib.suppress(OSError):
            for i in range(1000):
                (disk / f"ballast{i}").touch()

    full_disk(run, "size=50m,nr_inodes=14", fill, lambda disk: [p.unlink() for p in disk.glob("ballast*")])


test_no_inodes.limit = 200


def test_file_size_limit(run):
    """The same without root: no file may become larger than 64 KiB."""
    logdir = run.logdir("jax_matmul_nopy", "jax_4hosts")
    expected = reference_answers(run, logdir)
    small = 64 * 1024
    d = run.start("--no-prefetch", logdir=logdir, preexec=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (small, small)))
    all_right(d, expected, "with small files alone")
    profile = logdir / "plugins/profile/jax_matmul_nopy/vm.xplane.pb"
    check(profile.stat().st_size > small, "a profile that is too large")
    done = d.ctl("import", "--session", "toolarge", "--retries", "0", profile)
    check(done.returncode == 1, "an import that does not fit")
    check(not (logdir / "plugins/profile/toolarge").exists(), "nothing is left of it")
    all_right(d, expected, "afterwards")
    equal(d.stop(), 0, "exit status")
