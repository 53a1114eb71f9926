# SPDX-License-Identifier: Apache-2.0
"""Links and names that lead out of the log directory: nothing there is written, removed or, if so asked, read."""

import contextlib
import os
import pathlib
import shutil
import threading

from harness import DATA, check, equal, wait_for

PROFILE = next((DATA / "logdir").glob("*/plugins/profile/jax_matmul_nopy/*.xplane.pb"))


def outside(run):
    """A directory beside the log directory, with a session and a file that is no profile."""
    out = run.make_dir("outside")
    session = out / "plugins" / "profile" / "run"
    session.mkdir(parents=True)
    shutil.copy(PROFILE, session / "vm.xplane.pb")
    (session / "thesis.tex").write_text("years of work")
    return out, session


def is_whole(session):
    equal(sorted(os.listdir(session)), ["thesis.tex", "vm.xplane.pb"], "the files outside")


def test_deletion_through_links(run):
    out, session = outside(run)
    logs = run.logdir("jax_matmul_nopy")
    (logs / "above").symlink_to(out)
    (logs / "plugins" / "profile" / "linked").symlink_to(session)
    ours = logs / "myplugins" / "profile" / "thesis"
    ours.mkdir(parents=True)
    shutil.copy(PROFILE, ours / "vm.xplane.pb")
    (ours / "thesis.tex").write_text("years of work")
    d = run.start("--allow-delete", "--links-anywhere", logdir=logs)
    names = d.sessions()
    check({"above/run", "linked", "myplugins/profile/thesis"} <= set(names), f"sessions through links are read: {names}")
    for name in ("above/run", "linked"):
        done = d.ctl("delete", name)
        check(done.returncode != 0 and b"link" in done.stderr, f"{name}: {done.stderr!r}")
    for name in ("..", ".", "../outside", "above/../above/run", str(session), "plugins/profile/linked"):
        check(d.ctl("delete", name).returncode != 0, f"{name} was deleted")
    equal(d.ctl("delete", "myplugins/profile/thesis").returncode, 0, "a session with other files")
    equal(os.listdir(ours), ["thesis.tex"], "what is no profile stays")
    is_whole(session)
    for name in ("linked", "../up", "a/b"):
        check(d.ctl("import", "--session", name, PROFILE).returncode != 0, f"imported into {name}")
    is_whole(session)
    d.answers()


def test_directories_swapped_for_links(run):
    """Somebody exchanges a session's directory, and one above it, for links while it is being deleted."""
    out, session = outside(run)
    logs = run.logdir("jax_matmul_nopy")
    d = run.start("--allow-delete", "--links-anywhere", "--scan-interval=50ms", logdir=logs)
    above, ended = logs / "top", threading.Event()

    def make_directory():
        (above / "plugins" / "profile" / "run").mkdir(parents=True)
        shutil.copy(PROFILE, above / "plugins" / "profile" / "run")
        ended.wait(0.002)
        shutil.rmtree(above)

    def make_link():
        above.symlink_to(out)
        ended.wait(0.002)
        above.unlink()

    def swap():
        while not ended.is_set():
            for make in (make_directory, make_link):
                with contextlib.suppress(OSError):  # the daemon removes things meanwhile
                    make()
            with contextlib.suppress(OSError):
                shutil.rmtree(above)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(run.parameter("SWAPS", 60, 2000)):
            d.ctl("delete", "top/run")
    finally:
        ended.set()
        thread.join()
    is_whole(session)
    d.answers()


test_directories_swapped_for_links.whole_limit = 600


def test_links_inside(run):
    out, session = outside(run)
    logs = run.logdir("jax_matmul_nopy")
    (logs / "above").symlink_to(out)
    (logs / "plugins" / "profile" / "linked").symlink_to(session)
    (logs / "plugins" / "profile" / "jax_matmul_nopy" / "leak.xplane.pb").symlink_to(session / "vm.xplane.pb")
    (logs / "inside").symlink_to("plugins/profile/jax_matmul_nopy")
    d = run.start(logdir=logs)
    equal(sorted(d.sessions()), ["inside", "jax_matmul_nopy"], "sessions, with links that lead out left out")
    check(d.get("/data?run=jax_matmul_nopy&tag=overview_page&host=leak").status == 404, "a host behind a link")
    # A real session that becomes a link later.
    late = logs / "plugins" / "profile" / "late"
    shutil.copytree(session, late)
    wait_for(lambda: "late" in d.sessions(), 10, "the new session is found")
    shutil.rmtree(late)
    late.symlink_to(session)
    wait_for(lambda: "late" not in d.sessions(), 10, "the link is left out")


def test_worker_directory(run):
    """What others may have put at /tmp/xplaned-UID is not used; here below a directory of the same kind."""
    top = run.make_dir("tmp")  # below /tmp, in which all users may write
    d = run.start(f"--xprof-worker=unix:{top}/socket", f"--worker-dir={top}/mine/worker", logdir=run.logdir("jax_matmul_nopy"))
    equal(d.stop(), 0, "exit status with directories of our own")
    (top / "link").symlink_to(top / "mine")
    (top / "open" / "worker").mkdir(parents=True)
    os.chmod(top / "open", 0o777)
    for name in ("link/worker", "open/worker"):
        try:
            run.start(f"--xprof-worker=unix:{top}/socket", f"--worker-dir={top / name}", logdir=d.logdir).stop()
        except AssertionError as e:
            check("only to this user" in str(e), f"{name}: {e}")
        else:
            check(False, f"{pathlib.Path(name)} was used")
