# SPDX-License-Identifier: Apache-2.0
"""Files that are damaged, or change while they are read: answers are right, or say what is wrong."""

import os
import pathlib
import random
import shutil
import threading
import time

import wire_mutator
from harness import TOOLS, answer_url, check, equal, reference_answers, in_threads, same_answer, wait_for

SESSIONS = ("jax_matmul_nopy", "jax_4hosts", "tpu_inference_a")


def used_state(run, logdir):
    """A state directory of a daemon that answered everything, made traces and ended."""
    state = run.make_dir("state")
    d = run.start("--no-prefetch", logdir=logdir, state=state)
    for session in SESSIONS:
        for tool in TOOLS:
            d.get(answer_url(session, tool))
    wait_for(lambda: d.status()["store"]["write_queue"] == 0, 20, "results are written")
    wait_for(lambda: any((state / "traces").glob("*.trace_index")), 20, "indexes of traces are written")
    time.sleep(0.3)
    d.kill()  # the write-ahead log stays
    return state


def damage(chance, path):
    """One kind of damage: a bit, a byte, a block of zeros or noise, the end cut off or doubled."""
    data = bytearray(path.read_bytes())
    at = chance.randrange(len(data)) if data else 0
    kind = chance.randrange(7) if data else 6
    if chance.randrange(4) == 0:
        at = min(at, chance.randrange(1, 200))  # heads decide most
    if kind == 0 and data:
        data[at] ^= 1 << chance.randrange(8)
    elif kind == 1:
        data[at] = chance.randrange(256)
    elif kind == 2:
        data[at:at + 512] = bytes(min(512, len(data) - at))
    elif kind == 3:
        data[at:at + 64] = os.urandom(min(64, len(data) - at))
    elif kind == 4:
        del data[at:]
    elif kind == 5:
        del data[at:at + chance.randrange(1, 100)]
    else:
        data += data[:4096] or b"\x00garbage"
    path.write_bytes(data)
    return f"{path.name}: kind {kind} at {at} of {len(data)}"


def test_state_that_is_damaged(run):
    """Flips and truncations of every file of the state directory: the daemon starts, and every answer is right."""
    logdir = run.logdir(*SESSIONS)
    expected = reference_answers(run, logdir, SESSIONS)
    state = used_state(run, logdir)
    files = sorted(p.relative_to(state) for p in state.rglob("*") if p.is_file())
    check({"cache.db", "cache.db-wal", "state.db"} <= {str(p) for p in files} and any("traces" in str(p) for p in files),
          f"every kind of file: {[str(p) for p in files]}")
    chance = random.Random(run.parameter("SEED", 1, 1))
    for i in range(run.parameter("DAMAGES", 20, 3000)):
        copy = run.dir / "damaged"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(state, copy)
        done = [damage(chance, copy / files[(i + k) % len(files)]) for k in range(chance.choice((1, 1, 1, 2, 5)))]
        d = run.start("--no-prefetch", logdir=logdir, state=copy)
        d.check_memory = False  # sampled in vain: dozens of short lives
        for session in SESSIONS:
            for tool in TOOLS:
                same_answer(d.get(answer_url(session, tool)), expected[session, tool], f"{tool} of {session} after {done}")
        equal(d.stop(), 0, f"exit status after {done}")


test_state_that_is_damaged.slow = True
test_state_that_is_damaged.limit = 300
test_state_that_is_damaged.whole_limit = 7200


def test_token_file_that_is_damaged(run):
    """A token file that is empty, binary, huge, missing or a directory refuses to start or refuses everybody."""
    path = run.dir / "token"
    for data in (b"", b"\n", b"\x00\xff", b"x" * 100_000, None, b"DIR"):
        if path.is_dir():
            path.rmdir()
        path.unlink(missing_ok=True)
        if data == b"DIR":
            path.mkdir()
        elif data is not None:
            path.write_bytes(data)
        try:
            d = run.start(f"--token-file={path}", logdir=run.logdir("jax_matmul_nopy"))
        except AssertionError as e:
            check("ended with 1" in str(e) or "ended with 2" in str(e), str(e))
            continue
        equal(d.get("/api/v1/tools").status, 401, f"without a token, file {data!r:.20}")
        equal(d.get("/api/v1/tools", headers={"Authorization": "Bearer "}).status, 401, "an empty token")
        with d.http2() as h:
            equal(h.call("/xplaned.v1.SessionService/ListSessions", b"")[0], 16, "gRPC")
        d.stop()


def test_profiles_rewritten_while_read(run):
    """A profile that changes under every request, by renaming, in place, and by truncation: each answer is that of
    one of its versions, or says that the file changed; the daemon lives."""
    logdir = run.logdir("jax_matmul_nopy", "tf_xla_jit")
    profiles = logdir / "plugins/profile"
    versions = [(profiles / "jax_matmul_nopy/vm.xplane.pb").read_bytes(), (profiles / "tf_xla_jit/vm.xplane.pb").read_bytes()]
    tools = ("overview_page", "op_profile", "trace_viewer", "trace_viewer@", "memory_profile")
    expected = {tool: [] for tool in tools}
    target = profiles / "changing" / "vm.xplane.pb"
    target.parent.mkdir()
    for data in (*versions, b""):  # writing in place passes through an empty file, which is a profile without planes
        target.write_bytes(data)
        for (_, tool), answer in reference_answers(run, logdir, ["changing"], tools).items():
            expected[tool].append(answer)
    d = run.start(logdir=logdir)
    stop = threading.Event()
    chance = random.Random(3)

    def rewrite():
        i = 0
        while not stop.wait(chance.random() * 0.02):
            i += 1
            data = versions[i % 2]
            how = chance.randrange(4)
            if how == 0:
                other = target.with_name("new.tmp")
                other.write_bytes(data)
                other.rename(target)
            elif how == 1:
                target.write_bytes(data)
            elif how == 2:
                with open(target, "r+b") as f:
                    f.truncate(chance.randrange(len(data)))
                    stop.wait(0.005)
                    f.seek(0)
                    f.write(data)
                    f.truncate()
            else:
                target.unlink()
                stop.wait(0.002)
                target.write_bytes(data)

    writer = threading.Thread(target=rewrite, daemon=True)
    writer.start()
    seconds = run.parameter("REWRITE_SECONDS", 4, 600)
    end = time.monotonic() + seconds
    counts = {}

    def ask(i):
        k = i
        while time.monotonic() < end:
            tool = tools[k % len(tools)]
            got = d.get(answer_url("changing", tool))
            k += 1
            if got.status == 200:
                check((200, got.body) in expected[tool], f"{tool}: {len(got.body)} bytes are no version's answer: {got.body[:300]!r}")
            else:
                check(got.status in (404, 409, 422, 503), f"{tool}: {got}")
            counts[got.status] = counts.get(got.status, 0) + 1

    try:
        in_threads(6, ask)
    finally:
        stop.set()
        writer.join()
    check(counts.get(200, 0) > 0, f"statuses {counts}")
    target.write_bytes(versions[0])
    for tool in tools:
        wait_for(lambda t=tool: (lambda g: (g.status, g.body) == expected[t][0])(d.get(answer_url("changing", t))), 10, f"{tool} is right at the end")


test_profiles_rewritten_while_read.slow = True
test_profiles_rewritten_while_read.whole_limit = 900


def test_damaged_profiles(run):
    """Profiles whose wire data a structure-aware mutator damaged: answered or refused, never a crash, and others
    are served."""
    logdir = run.make_dir("logdir")
    sources = sorted(pathlib.Path(p) for p in run.logdir().glob("plugins/profile/*/*.xplane.pb"))
    chance = random.Random(run.parameter("SEED", 1, 1))
    d = run.start("--no-prefetch", "--scan-interval=50ms", logdir=logdir)
    small = [p for p in sources if p.stat().st_size < 400_000]
    statuses = {}
    for i in range(run.parameter("PROFILES", 3, 400)):
        names = []
        for k in range(20):
            name = f"m{i}_{k}"
            path = logdir / "plugins/profile" / name / "h.xplane.pb"
            path.parent.mkdir(parents=True)
            path.write_bytes(wire_mutator.mutate(chance.choice(small).read_bytes(), chance))
            names.append(name)
        wait_for(lambda n=names: set(n) <= set(d.sessions()), 20, "sessions are listed")
        for name in names:
            for tool in chance.sample(TOOLS, 3):
                got = d.get(answer_url(name, tool))
                check(got.status in (200, 400, 404, 409, 422, 503), f"{tool} of a damaged profile: {got}")
                statuses[got.status] = statuses.get(got.status, 0) + 1
        for name in names:
            shutil.rmtree(logdir / "plugins/profile" / name)
    check(statuses.get(200, 0) and statuses.get(422, 0), f"some are answered, some refused: {statuses}")
    d.answers()


test_damaged_profiles.whole_limit = 3600


def test_damaged_requests(run):
    """The same for gRPC's messages, of all methods."""
    d = run.start(logdir=run.logdir("jax_matmul_nopy"))
    chance = random.Random(run.parameter("SEED", 1, 1))
    good = b"\x0a\x0fjax_matmul_nopy\x12\x02vm\x1a\x0doverview_page\x22\x0a\x0a\x01k\x12\x05value\x28\x01"
    methods = [f"/xplaned.v1.{m}" for m in (
        "AnalysisService/GetToolData", "AnalysisService/StreamToolData", "AnalysisService/ListTools", "AnalysisService/GetOpStats", "AnalysisService/RunStatement",
        "AnalysisService/CompareSessions",
        "SessionService/ListSessions", "SessionService/GetSession", "SessionService/DeleteSession", "SessionService/ImportSession",
        "ServerService/GetServerStats", "CaptureService/CreateSchedule", "CaptureService/DeleteSchedule", "CaptureService/CancelCapture")]
    for _ in range(run.parameter("REQUESTS", 15, 3000)):
        with d.http2() as h:
            for method in methods:
                # What fits twice into the window that the other side opens: the harness waits for no more.
                data = wire_mutator.mutate(good * chance.choice((1, 1, 50)), chance)[:30000]
                code, text, _ = h.call(method, data)
                check(code is not None and code not in (2, 13), f"{method} of {data[:80]!r}: {code} {text}")
    d.answers()
    equal(d.sessions(), ["jax_matmul_nopy"], "the session is there")


test_damaged_requests.whole_limit = 3600
