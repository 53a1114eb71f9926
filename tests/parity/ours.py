# SPDX-License-Identifier: Apache-2.0
"""Our answers: from `xplanectl analyze` of a build directory, or from a daemon through `xplanectl tool`."""
import os
import shutil
import subprocess


class Ours:
    def __init__(self, build, scratch, timeout_s=120):
        self.program = find(build)
        self.out = os.path.join(scratch, f"ours-{os.getpid()}")
        self.timeout_s, self.crashes, self.env = timeout_s, 0, os.environ

    def ask(self, tool, paths, options=None):
        """(status, bytes or message): "answer", "none" (it refused), "crash" or "timeout"."""
        return self.run(["analyze", tool, *paths], options)

    def run(self, args, options=None):
        args = [self.program, *args, "-o", self.out]
        for k, v in (options or {}).items():
            args += ["--option", f"{k}={v}"]
        if os.path.exists(self.out):
            os.unlink(self.out)
        try:
            p = subprocess.run(args, stdin=subprocess.DEVNULL, capture_output=True, timeout=self.timeout_s, env=self.env)
        except subprocess.TimeoutExpired:
            self.crashes += 1
            return "timeout", b"no answer in time"
        if p.returncode == 0:
            with open(self.out, "rb") as f:
                return "answer", f.read()
        if p.returncode in (1, 2) and b"Sanitizer" not in p.stderr and b"runtime error" not in p.stderr:
            return "none", p.stderr
        self.crashes += 1
        return "crash", p.stderr + f" (exit status {p.returncode})".encode()


class Served(Ours):
    """The same questions to a daemon over the log directory of `make_log_directory`; of files that are not there, which a judge
    makes, to none."""

    def __init__(self, daemon, places, out, timeout_s=120):
        self.program, self.places, self.out, self.timeout_s, self.crashes = daemon.ctl, places, out, timeout_s, 0
        self.env = dict(os.environ, XPLANED_SERVER=daemon.address)

    def ask(self, tool, paths, options=None):
        if paths[0] not in self.places:
            return super().ask(tool, paths, options)
        session, hosts = self.places[paths[0]]
        args = ["tool", tool, session]
        if len(paths) < hosts:
            for p in paths:
                args += ["--host", host_of(p)]
        return self.run(args, options)


def host_of(path):
    return os.path.basename(path).split(".xplane.pb")[0]


def make_log_directory(scratch, sessions):
    """A log directory of the sessions [(name, [files])], and for each file its session and how many hosts that has."""
    top, places = os.path.join(scratch, "logdir"), {}
    for i, (name, files) in enumerate(sessions):
        session = f"{i:03d}_{host_of(name)}"
        run = os.path.join(top, "plugins", "profile", session)
        os.makedirs(run)
        for f in files:
            shutil.copy(f, run)
            places[f] = session, len(files)
    return top, places


def find(build):
    here = os.path.dirname(os.path.abspath(__file__))
    root = os.path.dirname(os.path.dirname(here))
    for b in [build] if build else [os.path.join(root, "build"), os.path.join(root, "_build"), "."]:
        p = os.path.join(b, "cli", "xplanectl")
        if os.access(p, os.X_OK):
            return os.path.abspath(p)
        if os.access(b, os.X_OK) and os.path.isfile(b):
            return os.path.abspath(b)
    raise SystemExit(f"no cli/xplanectl in {build or 'build'}: build it first, or name the place with --build")
