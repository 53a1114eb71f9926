#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what deploy/ has for many machines.  Usage: deploy.py CHECK [XPLANED [XPLANECTL]]

CHECK: kubernetes, kustomize, flags, monitoring, queue, haproxy, proxy, systemd, slurm, demo.  Ends with 77 where a tool
that the check needs is not there, and says which.  What PyPI has (kubernetes-validate, kubectl) is
taken from $XPL_CLUSTER_VENV, the environment of tests/cluster/setup.sh.
"""
import glob
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
BASE = DEPLOY / "kubernetes/base"
CONVERT = DEPLOY / "kubernetes/convert.yaml"
SINGLE = DEPLOY / "kubernetes/single.yaml"
KEDA = "keda.sh/v1alpha1"


def skip(why):
    print(f"SKIPPED: {why}", file=sys.stderr)
    sys.exit(77)


def fail(why):
    sys.exit(f"deploy: {why}")


def need(tool):
    venv = os.environ.get("XPL_CLUSTER_VENV", "/nonexistent")
    found = shutil.which(tool, path=f"{venv}/bin:{os.environ['PATH']}:/usr/sbin")
    return found or skip(f"{tool} is not installed")


def run(*argv, may_fail=False, **more):
    r = subprocess.run([str(a) for a in argv], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       text=True, check=False, **more)
    if r.returncode and may_fail:
        return None
    if r.returncode:
        fail(f"{argv[0]}: exit status {r.returncode}\n{r.stdout}")
    return r.stdout


def in_venv(module):
    """This Python, or that of the environment, which has the module; the check runs there."""
    venv = os.environ.get("XPL_CLUSTER_VENV")
    for python in [f"{venv}/bin/python"] if venv else [sys.executable]:
        if subprocess.run([python, "-c", f"import {module}"], stderr=subprocess.DEVNULL,
                          check=False).returncode == 0:
            return python
    return skip(f"no {module}: tests/cluster/setup.sh DIR, and XPL_CLUSTER_VENV=DIR")


def documents():
    """(file, document) of all manifests, as text."""
    for path in [*sorted(BASE.glob("*.yaml")), CONVERT, SINGLE]:
        if path.name == "kustomization.yaml":
            continue
        for text in path.read_text(encoding="utf-8").split("\n---\n"):
            yield path.name, text


def check_kubernetes():
    python = in_venv("kubernetes_validate, jsonschema, yaml")
    strict = f"{os.path.dirname(python)}/kubernetes-validate"
    schema = DEPLOY / "kubernetes/keda.schema.json"
    with tempfile.TemporaryDirectory() as work:
        for i, (name, text) in enumerate(documents()):
            path = pathlib.Path(work, f"{i}-{name}")
            path.write_text(text, encoding="utf-8")
            if KEDA in text:
                run(python, "-c", "import json, sys, yaml, jsonschema;"
                    "jsonschema.validate(yaml.safe_load(open(sys.argv[1])),"
                    "json.load(open(sys.argv[2])))", path, schema)
            else:
                run(strict, "--strict", path)
        # The checks find errors.
        for what, old, new in [("a field", "replicas:", "replica:"),
                               ("a type", "replicas: 2", "replicas: two"),
                               ("a field of KEDA", "pollingInterval:", "pollInterval:")]:
            bad = next((t for _, t in documents() if old in t), None)
            path = pathlib.Path(work, "bad.yaml")
            path.write_text(bad.replace(old, new), encoding="utf-8")
            argv = [strict, "--strict", str(path)] if KEDA not in bad else [
                python, "-c", "import json, sys, yaml, jsonschema;"
                "jsonschema.validate(yaml.safe_load(open(sys.argv[1])),"
                "json.load(open(sys.argv[2])))", str(path), str(schema)]
            if subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              check=False).returncode == 0:
                fail(f"{what} that is wrong was not found")


def check_kustomize():
    kubectl = need("kubectl")
    out = run(kubectl, "kustomize", BASE)
    kinds = sorted(re.findall(r"^kind: (\w+)$", out, re.M))
    expected = ["Deployment", "Deployment", "NetworkPolicy", "NetworkPolicy", "PersistentVolumeClaim", "PodDisruptionBudget",
                "PodDisruptionBudget", "ScaledObject", "Service", "TriggerAuthentication"]
    if kinds != expected:
        fail(f"kinds: {kinds}")
    if out.count("app.kubernetes.io/part-of: xplaned") < len(expected):
        fail("not all have the common label")
    # Pods have no account of the cluster; fronts demand the token, and open no connections for clients.
    for name, text in documents():
        if "containers:" in text and "automountServiceAccountToken: false" not in text:
            fail(f"{name}: pods have the account's token")
    front = (BASE / "front.yaml").read_text(encoding="utf-8")
    if "- --no-capture\n" not in front or "secretName: xplaned-token" not in front or "- --token-file=/etc/xplaned/token\n" not in front:
        fail("front.yaml: captures, or no token")


def deploy_flags():
    """(file, flag) of each flag of xplaned in deploy/."""
    for path in [BASE / "front.yaml", BASE / "worker.yaml", SINGLE]:
        for flag in re.findall(r"^\s+- (--[a-z-]+)", path.read_text(encoding="utf-8"), re.M):
            yield path.name, flag
    for path in [DEPLOY / "xplaned-worker@.service.in", DEPLOY / "slurm/xplaned-workers.sbatch",
                 DEPLOY / "haproxy.cfg"]:
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("#SBATCH") or "sbatch --array" in line or "systemctl" in line:
                continue
            for flag in re.findall(r"(?<![\w-])(--[a-z][a-z-]+)", line):
                yield path.name, flag


def check_flags(xplaned, xplanectl):
    known = set(re.findall(r"(--[a-z-]+)", run(xplanectl, "convert", "--help")))
    for path in [CONVERT, DEPLOY / "slurm/xplaned-convert.sbatch"]:
        flags = re.findall(r"(?<![\w-])(--[a-z]+)(?=[ =]\S)", re.sub(r"(?m)^#.*", "", path.read_text(encoding="utf-8")))
        if len(flags) < 2 or not known.issuperset(flags):
            fail(f"{path.name}: flags {flags}, known {known}")
    known = set()
    for flag in re.findall(r"^  --(\S+)", run(xplaned, "--help"), re.M):
        known |= {f"--{flag.replace('[no-]', '')}", f"--{flag.replace('[no-]', 'no-')}"}
    found = list(deploy_flags())
    if len(found) < 20:
        fail(f"only {len(found)} flags found: {found}")
    wrong = [f"{name}: {flag}" for name, flag in found if flag not in known]
    if wrong:
        fail(f"flags that xplaned does not have: {wrong}")
    for name, text in documents():
        for port in re.findall(r"(?:containerPort|port): (\d+)", text):
            if port not in ("50551", "8795", "53", "5432", "443"):
                fail(f"{name}: port {port}")


def check_monitoring(xplaned, _):
    """Each metric of the dashboard and of the rules is there, and has the labels and values that they name."""
    table = dict(re.findall(r"^\| `(\w+)` \| \w+ \| (.*?) \|", run(xplaned, "--help-metrics"), re.M))
    folder = DEPLOY / "monitoring"
    dashboard = json.loads((folder / "grafana-dashboard.json").read_text(encoding="utf-8"))
    rules = (folder / "prometheus-rules.yaml").read_text(encoding="utf-8")
    said = [t["expr"] for p in dashboard["panels"] for t in p["targets"]] + re.findall(r"^ +expr: (.+)$", rules, re.M)
    if len(dashboard["panels"]) < 12 or len(said) < 20:
        fail(f"only {len(said)} expressions found")
    for text in said:
        names = re.findall(r"\b((?:xplaned|process)_\w+?)(?:_bucket|_sum|_count)?\b(?:\{(.*?)\})?", text)
        if not names:
            fail(f"no metric in {text}")
        for name, selector in names:
            labels = table.get(name)
            if labels is None:
                fail(f"no metric {name}, in {text}")
            if selector and selector not in labels:
                fail(f"{name} has {labels}, not {selector}")
    # Prometheus' own check, where it is.
    promtool = shutil.which("promtool")
    if promtool:
        run(promtool, "check", "rules", folder / "prometheus-rules.yaml")


def scaler_query():
    text = (BASE / "autoscaling.yaml").read_text(encoding="utf-8")
    found = re.search(r"query: >-\n((?: {10}.*\n)+)", text)
    return " ".join(found[1].split()) if found else fail("autoscaling.yaml: no query")


def check_queue(xplaned, _):
    """The scaler's query on a database that a daemon has made: set aside jobs do not count."""
    sys.path.insert(0, str(ROOT / "tests/cluster"))
    import measure  # pylint: disable=import-outside-toplevel
    if not glob.glob("/usr/lib/postgresql/*/bin/initdb"):
        skip("no server of PostgreSQL in /usr/lib/postgresql")
    if not pathlib.Path(os.environ.get("XPL_CLUSTER_VENV", "/nonexistent"), "bin/weed").exists() and \
            not shutil.which("weed"):
        skip("no SeaweedFS: tests/cluster/setup.sh DIR, XPL_CLUSTER_VENV=DIR")
    with tempfile.TemporaryDirectory() as work:
        db = measure.Database(work)
        logs = pathlib.Path(work, "logs")
        logs.mkdir()
        daemon = subprocess.Popen([xplaned, "--role=worker", f"--logdir={logs}",
                                   f"--state-dir={work}/state", f"--store={db.url}"],
                                  stderr=subprocess.DEVNULL)
        try:
            for _ in range(300):
                if db.sql("SELECT count(*) FROM daemons") == "1":
                    break
                measure.time.sleep(0.1)
            daemon.terminate()
            daemon.wait()
            db.sql("INSERT INTO jobs(request, rank, session, files, products, variants, trace,"
                   " aside_at) SELECT 'r', i, 's', ARRAY['1 1 '||i], ARRAY['p 1'], '{0}', '',"
                   " CASE WHEN i>3 THEN clock_timestamp() END FROM generate_series(1,5) i")
            counted = db.sql(scaler_query())
        finally:
            daemon.kill()
            daemon.wait()
            db.stop()
    if counted != "3":
        fail(f"the scaler's query counts {counted!r} jobs, not 3")


def check_haproxy():
    haproxy = need("haproxy")
    run(haproxy, "-c", "-f", DEPLOY / "haproxy.cfg")
    routes = (ROOT / "docs/http.md").read_text(encoding="utf-8")
    if "/api/v1/tool?session=" not in routes:
        fail("docs/http.md: the session's name is another one")


def start_front(xplaned, work, name, started):
    """The daemon's addresses for gRPC and HTTP."""
    log = pathlib.Path(work, f"{name}.log")
    with open(log, "w", encoding="utf-8") as out:
        started.append(subprocess.Popen(
            [xplaned, f"--logdir={ROOT}/tests/data/logdir/cpu", f"--state-dir={work}/{name}",
             "--listen=127.0.0.1:0", "--http=127.0.0.1:0", "--no-prefetch"], stderr=out))
    for _ in range(600):
        found = dict(re.findall(r"msg=listening service=(\S+) address=(\S+)", log.read_text(encoding="utf-8")))
        if "grpc" in found and "http" in found:
            return found["grpc"], found["http"]
        time.sleep(0.1)
    return fail(f"{name} does not listen")


def check_proxy(xplaned, xplanectl):
    """Requests through HAProxy: a session's go to one front, and to the other when that is gone."""
    haproxy, text = need("haproxy"), (DEPLOY / "haproxy.cfg").read_text(encoding="utf-8")
    url = "/api/v1/tool?session=jax_matmul_nopy&tool=overview_page"
    with tempfile.TemporaryDirectory() as work, socket.socket() as http, socket.socket() as grpc:
        started = []
        try:
            for i in range(2):
                to = start_front(xplaned, work, f"front{i}", started)
                text = text.replace(f"127.0.0.1:{50551 + i}", to[0]).replace(f"127.0.0.1:{8795 + i}", to[1])
            for listener, address in ((http, "127.0.0.1:8080"), (grpc, "127.0.0.1:50550")):
                listener.bind(("127.0.0.1", 0))
                text = text.replace(f"bind {address}", f"bind fd@{listener.fileno()}")
            pathlib.Path(work, "cfg").write_text(text, encoding="utf-8")
            started.append(subprocess.Popen([haproxy, "-db", "-f", f"{work}/cfg"],
                                            pass_fds=(http.fileno(), grpc.fileno())))

            def answered():
                """In turns over HTTP and gRPC, until both answer."""
                for _ in range(300):
                    try:
                        with urllib.request.urlopen(f"http://127.0.0.1:{http.getsockname()[1]}{url}", timeout=60) as r:
                            body = r.read()
                        other = run(xplanectl, "--server", f"127.0.0.1:{grpc.getsockname()[1]}", "tool", "overview_page",
                                    "jax_matmul_nopy", may_fail=True)
                        if other is not None:
                            return body
                    except OSError:
                        pass
                    time.sleep(0.1)
                return fail("no answer through the proxy")
            first = {answered() for _ in range(3)}
            asked = [0, 0]
            for _ in range(100):  # a line is written when the answer has left
                if sum(asked) >= 3:
                    break
                time.sleep(0.1)
                asked = [pathlib.Path(work, f"front{i}.log").read_text(encoding="utf-8").count("service=http tool=")
                         for i in range(2)]
            if sorted(asked)[0] != 0 or max(asked) < 3:
                fail(f"requests about one session went to both fronts: {asked}")
            gone = started[asked.index(max(asked))]
            gone.terminate()
            gone.wait(60)
            if {answered()} != first or len(first) != 1:
                fail("the fronts' answers differ")
        finally:
            for process in started:
                process.terminate()
            for process in started:
                process.wait(60)


def check_systemd():
    analyze = need("systemd-analyze")
    with tempfile.TemporaryDirectory() as work:
        for unit in ["xplaned.service", "xplaned-worker@.service"]:
            text = (DEPLOY / f"{unit}.in").read_text(encoding="utf-8")
            text = text.replace("@BINDIR@/xplaned", "/bin/true")
            pathlib.Path(work, unit).write_text(text, encoding="utf-8")
        out = run(analyze, "verify", "--man=no", f"{work}/xplaned.service",
                  f"{work}/xplaned-worker@1.service")
        ours = [l for l in out.splitlines() if "xplaned" in l]
        if ours:
            fail("\n".join(ours))


STUB = """#!/bin/bash
trap 'echo drained >>"$OUT"; exit 0' TERM
echo "$@" >"$OUT"
while :; do sleep 0.05; done
"""


def check_slurm():
    """The script, as Slurm starts it, with a program in xplaned's place: arguments, and SIGTERM."""
    script = DEPLOY / "slurm/xplaned-workers.sbatch"
    run("bash", "-n", script)
    with tempfile.TemporaryDirectory() as work:
        stub, out = pathlib.Path(work, "xplaned"), pathlib.Path(work, "out")
        stub.write_text(STUB, encoding="utf-8")
        stub.chmod(0o755)
        env = {**os.environ, "PATH": f"{work}:{os.environ['PATH']}", "TMPDIR": work,
               "OUT": str(out), "SLURM_CPUS_PER_TASK": "3"}
        r = subprocess.run(["bash", script], env={**env, "XPLANED_STORE": "x"}, check=False,
                           stderr=subprocess.PIPE, text=True)
        if r.returncode == 0 or "XPLANED_LOGDIR" not in r.stderr:
            fail(f"without XPLANED_LOGDIR: {r}")
        with subprocess.Popen(["bash", str(script)],
                              env={**env, "XPLANED_STORE": "x", "XPLANED_LOGDIR": "/l"}) as p:
            while not (out.exists() and out.read_text(encoding="utf-8").endswith("\n")):
                if p.poll() is not None:
                    fail(f"it ended with {p.returncode}")
            p.terminate()
            code = p.wait(timeout=60)
        said = out.read_text(encoding="utf-8").splitlines()
        if code != 0 or said[-1] != "drained" or "--role worker" not in said[0] or \
                "--workers 3" not in said[0]:
            fail(f"exit status {code}, {said}")
        if list(pathlib.Path(work).glob("xplaned-worker.*")):
            fail("its state is left behind")
        # That of conversions hands the task's number on, and the exit status back.
        stub = pathlib.Path(work, "xplanectl")
        stub.write_text('#!/bin/bash\necho "$@"; exit 3\n', encoding="utf-8")
        stub.chmod(0o755)
        r = subprocess.run(["bash", DEPLOY / "slurm/xplaned-convert.sbatch", "a", "b"], check=False, stdout=subprocess.PIPE, text=True,
                           env={**env, "XPLANED_STORE": "x", "XPLANED_LOGDIR": "/l", "SLURM_ARRAY_TASK_ID": "2", "SLURM_ARRAY_TASK_COUNT": "8"})
        if (r.returncode, r.stdout) != (3, "convert a b --shard 2/8 --jobs 3\n"):
            fail(f"conversion: {r}")


def check_demo(xplaned, xplanectl):
    """deploy/cluster-demo.sh in short, with jobs that take long enough to kill a worker in the middle."""
    if not glob.glob("/usr/lib/postgresql/*/bin/initdb"):
        skip("no server of PostgreSQL in /usr/lib/postgresql")
    with tempfile.TemporaryDirectory() as work:
        for name, path in [("xplaned", xplaned), ("xplanectl", xplanectl)]:
            pathlib.Path(work, name).symlink_to(os.path.abspath(path))
        out = run(DEPLOY / "cluster-demo.sh", "40",
                  env={**os.environ, "XPL_BIN": work, "XPLANED_FAULT_JOBS": "delay_ms=400"})
    workers = [list(map(int, w)) for w in re.findall(r"^worker\d +(\d+) +(\d+) +(\d+)", out, re.M)]
    made, _, fetched = zip(*workers) if len(workers) == 4 else ([], [], [])
    # The killed worker may have published jobs that it did not log.
    if sum(made) < 79 or not 40 <= sum(fetched) <= 84 or "products: 80, jobs left: 0" not in out or \
            "before: 4 workers and 1 front" not in out or not out.endswith("equal, byte for byte\n"):
        fail(out)


def main():
    checks = {"kubernetes": check_kubernetes, "kustomize": check_kustomize, "flags": check_flags,
              "queue": check_queue, "haproxy": check_haproxy, "systemd": check_systemd,
              "slurm": check_slurm, "monitoring": check_monitoring, "proxy": check_proxy, "demo": check_demo}
    if len(sys.argv) < 2 or sys.argv[1] not in checks:
        sys.exit(f"usage: deploy.py {'|'.join(checks)} [XPLANED [XPLANECTL]]")
    json.loads((DEPLOY / "kubernetes/keda.schema.json").read_text(encoding="utf-8"))
    checks[sys.argv[1]](*sys.argv[2:])


if __name__ == "__main__":
    main()
