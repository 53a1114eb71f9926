# SPDX-License-Identifier: Apache-2.0
"""The documentation: examples run, recipes work, and no option is named that there is not."""
import ast
import os
import re
import subprocess
import sys

from harness import PATIENCE_S, ROOT, report_of, free_port, sessions, stubs

DOCS = ROOT / "docs"


def example(command, env=None):
    done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S, env=env)
    return done.returncode, done.stdout, done.stderr


def check_example(way, jobs, code, out, err):
    assert code == 0, (out, err)
    session = re.split(r"[: \n]", out)[0]
    assert len([f for f in sessions(way.logdir)[session] if f.endswith(".xplane.pb")]) == len(jobs), out
    for job in jobs:
        assert f"{job.address}: stored" in err, err
    return session


def c_program(way, jobs):
    """docs/examples/capture.c, through the daemon and without; and what it says when it cannot."""
    program = way.place.build / "docs" / "capture_example"
    targets = [j.address for j in jobs[:2]]
    code, out, err = example([program, way.daemon.address, *targets])
    check_example(way, jobs[:2], code, out, err)
    assert re.search(r"an overview of \d{3,} bytes", out), out
    code, out, err = example([program, way.logdir, *targets])
    session = check_example(way, jobs[:2], code, out, err)
    assert report_of(way.logdir, session)["session"] == session
    code, out, err = example([program, way.daemon.address, f"127.0.0.1:{free_port()}"])
    assert code == 1 and not out and "refused" in err, (out, err)


def python_program(way, jobs):
    """docs/examples/capture.py with the stubs that its first lines tell how to make."""
    env = dict(os.environ, PYTHONPATH=stubs()[1])
    targets = [j.address for j in jobs[:2]]
    code, out, err = example([sys.executable, DOCS / "examples" / "capture.py", way.daemon.address, *targets], env)
    check_example(way, jobs[:2], code, out, err)
    assert "tables in its overview" in out, out
    code, out, err = example([sys.executable, DOCS / "examples" / "capture.py", way.daemon.address, f"127.0.0.1:{free_port()}"], env)
    assert code == 1 and "refused" in err, (out, err)


def small_examples(_way, _jobs):
    """Both are under 60 lines."""
    for name in ("capture.c", "capture.py"):
        lines = (DOCS / "examples" / name).read_text().count("\n")
        assert lines < 60, f"{name} has {lines} lines"


def small_library(way, _jobs):
    """What a training job links needs gRPC's C core and protobuf-c, and nothing else that is not in every program."""
    library = way.place.build / "client" / "libxplaned.so.0"
    dynamic = subprocess.run(["readelf", "-d", library], check=True, capture_output=True, text=True).stdout
    needed = set(re.findall(r"NEEDED.*\[(lib[a-z0-9-]+)", dynamic))
    assert needed <= {"libgrpc", "libgpr", "libprotobuf-c", "libc", "libm", "libpthread"}, needed


def jax_recipe(way, _jobs):
    """The Python of the JAX recipe, run and captured."""
    text = (DOCS / "capture.md").read_text()
    recipe = text[text.index("### JAX"):text.index("### TensorFlow")]
    code = "\n".join(re.findall(r"```python\n(.*?)```", recipe, re.S))
    port = free_port()
    assert "start_server(9999)" in code and "range(100)" in code, code
    code = code.replace("(9999)", f"({port})").replace("range(100)", "range(10**9)")
    setting = "import job, sys, time\njob.watch(600)\nstate, batch = 1.0, 2.0\n" \
              "def train_step(state, batch):\n    time.sleep(0.01)\n    print('ready', flush=True)\n    return jax.jit(lambda x: x + batch)(state)\n"
    env = dict(os.environ, JAX_PLATFORMS="cpu", PYTHONPATH=str(ROOT / "tests" / "capture"))
    program = way.place.start([way.place.python, "-c", setting + code], f"127.0.0.1:{port}", "ready", env).ready()
    try:
        said = way.capture([program.address], "--duration", "800ms")
    finally:
        program.end()
    assert said.code == 0, said
    answer = way.overview(said.out.strip())
    assert "train" in answer.out or "Steps" in answer.out, answer


def recipes_compile(_way, _jobs):
    """Each recipe in Python is Python, those too that need what is not here; PyTorch/XLA's has what is special there."""
    text = (DOCS / "capture.md").read_text()
    recipes = re.findall(r"```python\n(.*?)```", text, re.S)
    assert len(recipes) >= 3, recipes
    for recipe in recipes:
        ast.parse(recipe)
    torch = text[text.index("### PyTorch/XLA"):text.index("### Reactant.jl")]
    for said in ("xp.start_server(", "xp.StepTrace(", "calls `torch_xla.sync()` itself", "`XLA_IR_DEBUG=1 XLA_HLO_DEBUG=1`"):
        assert said in torch, said


def options_exist(way, _jobs):
    """Every command and option of xplanectl that docs/capture.md names is in its help and its manual page; and the page has every
    command and option of the help."""
    usage = way.ctl("--help").out
    options = way.ctl("help", "options").out
    page = (way.place.build / "docs" / "xplanectl.1").read_text().replace("\\-", "-")
    text = (DOCS / "capture.md").read_text()
    blocks = "\n".join(re.findall(r"```(?:sh)?\n(.*?)```", text, re.S)) + "\n" + "\n".join(re.findall(r"`([^`\n]+)`", text))
    calls = [line for line in blocks.replace("\\\n", " ").splitlines() if re.search(r"\bxplanectl ", line)]
    named = {o for line in calls for o in re.findall(r"--[a-z-]+", line.split("xplanectl ", 1)[1])}
    named |= set(re.findall(r"^\| `(--[a-z-]+)", text, re.M))
    commands = {c for line in calls for c in re.findall(r"xplanectl ([a-z]+)", line)}
    known = set(re.findall(r"--[a-z-]+", options))
    assert named and named <= known, f"docs/capture.md names {sorted(named - known)}, which xplanectl does not have"
    listed = set(re.findall(r"^  ([a-z]+) ", usage.split("\nOptions of most commands:")[0], re.M))
    assert commands and commands <= listed, f"docs/capture.md names {sorted(commands - listed)}"
    for o in known - {"--help", "--version"}:
        assert o in page, f"xplanectl(1) lacks {o}"
    for c in listed:
        assert re.search(rf"^\.B {c}$|^\.B {c} |fB{c}", page, re.M), f"xplanectl(1) lacks {c}"


def library_page(_way, _jobs):
    """xplaned(3) has every function that the library exports."""
    exported = set(re.findall(r"^ *(xpl_[a-z_]+);$", (ROOT / "client" / "client.map").read_text(), re.M))
    page = (DOCS / "man" / "xplaned.3.in").read_text()
    missing = sorted(f for f in exported if f"{f}(" not in page)
    assert exported and not missing, f"xplaned(3) lacks {missing}"


def links(_way, _jobs):
    """What docs/capture.md points to is there."""
    text = (DOCS / "capture.md").read_text()
    heads = {re.sub(r"[^a-z0-9 -]", "", h.lower()).replace(" ", "-") for h in re.findall(r"^#+ (.*)", text, re.M)}
    for target in re.findall(r"\]\(([^)]+)\)", text):
        path, _, anchor = target.partition("#")
        assert not path or (DOCS / path).exists(), target
        assert not anchor or path or anchor in heads, target


TESTS = (small_examples, small_library, c_program, python_program, jax_recipe, recipes_compile, options_exist, library_page, links)
