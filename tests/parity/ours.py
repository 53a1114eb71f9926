"""Our answers, from `xplanectl analyze` of a build directory."""
import os
import subprocess


class Ours:
    def __init__(self, build, scratch, timeout_s=120):
        self.program = find(build)
        self.out = os.path.join(scratch, f"ours-{os.getpid()}")
        self.timeout_s, self.crashes, self.env = timeout_s, 0, os.environ

    def ask(self, tool, paths, options=None):
        """(status, bytes or message): "answer", "none" (it refused), "crash" or "timeout"."""
        args = [self.program, "analyze", tool, *paths, "-o", self.out]
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
        if p.returncode == 1 and b"Sanitizer" not in p.stderr and b"runtime error" not in p.stderr:
            return "none", p.stderr
        self.crashes += 1
        return "crash", p.stderr + f" (exit status {p.returncode})".encode()


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
