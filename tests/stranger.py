#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The path of somebody who knows nothing but the wheel.  Usage: stranger.py WHEEL WORK

A fresh environment gets the wheel and what the places need where people work.  A program of JAX, which waits for its input,
profiles itself; its verdict must be the same in the terminal, the browser, a notebook, TensorBoard and for an MCP client, and
a gate against runs that do not wait must fail.  WORK is removed first, and keeps the environment, the profiles and a picture
of each place.  Prints "passed|failed stranger: PLACE" for each place.
"""

import contextlib
import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import traceback
import urllib.request

from ports import free_port

NEEDED = ("jax==0.10.2", "ipykernel==7.4.0", "nbclient==0.11.0", "tensorboard==2.21.0", "mcp==2.3.0", "playwright==1.65.2")
MOST = 300  # seconds that anything may take

# What a stranger writes: steps of a matrix product, and input that is loaded between them.
PROGRAM = """
import sys, time, jax, jax.numpy as jnp
directory, wait = sys.argv[1], float(sys.argv[2])

@jax.jit
def train_step(x):
    return jnp.tanh(x @ x) / 100

def load_batch():
    with jax.profiler.TraceAnnotation("load_batch"):
        time.sleep(wait)

x = train_step(jnp.ones((700, 700)))
with jax.profiler.trace(directory):
    for n in range(15):
        with jax.profiler.StepTraceAnnotation("train", step_num=n):
            load_batch()
            x = train_step(x)
            x.block_until_ready()
"""
CELL = """for n in range(5):
    with jax.profiler.StepTraceAnnotation("train", step_num=n):
        time.sleep(0.02)
        x = f(x).block_until_ready()
"""


class Place:
    """The stranger's machine: a home, an environment, a log directory."""

    def __init__(self, wheel, work):
        self.work, self.logs, self.bin = work, work / "logs", work / "venv" / "bin"
        self.environment = {"PATH": f"{self.bin}:/usr/bin:/bin", "HOME": str(work / "home"), "JAX_PLATFORMS": "cpu", "LANG": "C.UTF-8"}
        (work / "home").mkdir(parents=True)
        self.run([sys.executable, "-m", "venv", str(work / "venv")])
        self.run([str(self.bin / "pip"), "install", "--quiet", "--disable-pip-version-check", str(wheel), *NEEDED])

    def run(self, command, expect=0):
        done = subprocess.run(command, env=self.environment, cwd=self.work, capture_output=True, text=True, timeout=MOST, stdin=subprocess.DEVNULL)
        assert done.returncode == expect, (command, done.returncode, done.stdout[-3000:], done.stderr[-3000:])
        return done.stdout

    @contextlib.contextmanager
    def serving(self, command, log, ready):
        """A server, until READY(text of its log) is something, which is given."""
        with open(log, "wb") as out:
            process = subprocess.Popen(command, env=self.environment, cwd=self.work, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
        try:
            end = time.monotonic() + 60
            while not (found := ready(log.read_text(errors="replace"))):
                assert process.poll() is None and time.monotonic() < end, log.read_text()
                time.sleep(0.1)
            yield found
        finally:
            process.terminate()
            process.wait(30)

    def profile(self, name, wait):
        self.run([str(self.bin / "python"), "program.py", str(self.logs / name), str(wait)])
        return next((self.logs / name / "plugins" / "profile").iterdir())


def verdict_of(findings):
    return findings.split("Findings\n")[1].split("\n")[0].strip().rstrip(".")


def terminal(place):
    """A run's path is all that the command line needs."""
    (place.work / "program.py").write_text(PROGRAM)
    place.slow = [place.profile(f"slow{n}", 0.03) for n in range(3)]
    place.fast = [place.profile(f"fast{n}", 0) for n in range(3)]
    out = place.run([str(place.bin / "xplanectl"), "findings", str(place.slow[0])])
    place.verdict = verdict_of(out)
    assert re.search(r"waits [\d.]+ ms of .* for input", place.verdict), out
    keep_text(place, "terminal", out)


def browser(place):
    """The log of the daemon names an address, which shows the same verdict."""
    from playwright.sync_api import sync_playwright
    ports = [free_port(), free_port()]
    command = [str(place.bin / "xplaned"), "--logdir", str(place.logs), "--listen", f"127.0.0.1:{ports[0]}", "--http", f"127.0.0.1:{ports[1]}"]
    with place.serving(command, place.work / "xplaned.log", lambda log: re.search(r"the pages: (http://[\w.:]+)", log)) as address:
        name = str(place.slow[0].relative_to(place.logs)).replace("plugins/profile/", "")
        with sync_playwright() as p:
            page = chromium(p)
            page.goto(f"{address[1]}/ui/#/s/{name.replace('/', '%2F')}/overview")
            page.wait_for_selector(".headline:has-text(' ')")
            shown = page.inner_text(".headline")
            page.screenshot(path=place.work / "browser.png")
        assert shown.rstrip(".") == place.verdict, (shown, place.verdict)


def chromium(p):
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    return p.chromium.launch(executable_path=found, args=["--no-sandbox"]).new_page(viewport={"width": 1400, "height": 900})


def keep_picture(place, name, page):
    """Renders PAGE, which is HTML and comes from no server, into WORK/NAME.png."""
    from playwright.sync_api import sync_playwright
    with sync_playwright() as p:
        shown = chromium(p)
        shown.set_content(f"<!doctype html><meta charset=utf-8>{page}")
        shown.screenshot(path=place.work / f"{name}.png")


def keep_text(place, name, text):
    keep_picture(place, name, f"<pre>{html.escape(text)}</pre>")


def notebook(place):
    """A cell that profiles itself says in its output why it is slow."""
    cells = ["%load_ext xplaned\nimport time, jax, jax.numpy as jnp\nf = jax.jit(lambda x: jnp.tanh(x @ x) / 100)\nx = f(jnp.ones((700, 700)))",
             f"%%xplaned {place.work / 'cell'}\n{CELL}"]
    book = {"cells": [{"cell_type": "code", "id": str(n), "metadata": {}, "execution_count": None, "outputs": [], "source": c}
                      for n, c in enumerate(cells)],
            "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}, "nbformat": 4, "nbformat_minor": 5}
    (place.work / "notebook.ipynb").write_text(json.dumps(book))
    place.run([str(place.bin / "jupyter"), "execute", "--inplace", "notebook.ipynb"])
    outputs = json.loads((place.work / "notebook.ipynb").read_text())["cells"][1]["outputs"]
    page = "".join("".join(o["data"].get("text/html", "")) for o in outputs if "data" in o)
    assert page, outputs
    keep_picture(place, "notebook", page)
    run = next((place.work / "cell" / "plugins" / "profile").iterdir())
    told = verdict_of(place.run([str(place.bin / "xplanectl"), "findings", str(run)]))
    assert told in html.unescape(re.sub(r"<[^>]*>", "", page)), (told, page[:2000])


def tensorboard(place):
    """TensorBoard has a tab that shows our page of the run."""
    from playwright.sync_api import sync_playwright
    port = free_port()
    command = [str(place.bin / "tensorboard"), "--logdir", str(place.logs), "--host", "127.0.0.1", "--port", str(port), "--load_fast", "false"]

    def ready(_):
        with contextlib.suppress(OSError):
            return urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5).status == 200

    with place.serving(command, place.work / "tensorboard.log", ready), sync_playwright() as p:
        page = chromium(p)
        page.goto(f"http://127.0.0.1:{port}/#xplaned")
        frame = page.frame_locator("iframe")
        frame.locator("a:has-text('slow0')").first.click(timeout=60000)
        frame.locator(".headline:has-text(' ')").wait_for(timeout=60000)
        shown = frame.locator(".headline").inner_text()
        page.screenshot(path=place.work / "tensorboard.png")
    assert shown.rstrip(".") == place.verdict, (shown, place.verdict)


def agent(place):
    """A client of the Model Context Protocol gets the verdict of the run by its name."""
    ask = """
import asyncio, json, sys
from mcp import Client, StdioServerParameters
async def main():
    server = StdioServerParameters(command=sys.executable, args=["-m", "xplaned.mcp", "--logdir", sys.argv[1]], env=dict(PATH=sys.argv[2], HOME=sys.argv[3]))
    async with Client(server) as client:
        told = await client.call_tool("sessions", {})
        print(told.content[0].text)
        found = json.loads(told.content[0].text)
        name = next(r[found["columns"].index("session")] for r in found["rows"] if "slow0" in str(r))
        print((await client.call_tool("verdict", {"session": name})).content[0].text)
asyncio.run(main())
"""
    out = place.run([str(place.bin / "python"), "-c", ask, str(place.logs), place.environment["PATH"], place.environment["HOME"]])
    keep_text(place, "agent", "\n\n".join(json.dumps(json.loads(line), indent=1) for line in reversed(out.splitlines())))
    assert place.verdict in json.loads(out.splitlines()[-1])["text"] or place.verdict in out.splitlines()[-1], out


def gate(place):
    """Runs that wait fail the gate against runs that do not, and pass it against themselves."""
    runs = [",".join(map(str, side)) for side in (place.slow, place.fast)]
    told = place.run([str(place.bin / "xplanectl"), "gate", *map(str, place.slow), "--base", runs[1], "--fail-if", "step_time>5%"], expect=4)
    assert "step" in told.lower() and "|" in told, told
    keep_text(place, "gate", told)
    place.run([str(place.bin / "xplanectl"), "gate", *map(str, place.fast), "--base", runs[0], "--fail-if", "step_time>5%"])


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    wheel, work = (pathlib.Path(a).resolve() for a in sys.argv[1:])
    shutil.rmtree(work, ignore_errors=True)
    failed, place = 0, Place(wheel, work)
    sys.path.insert(0, str(next((work / "venv" / "lib").glob("python3*")) / "site-packages"))  # playwright
    for step in (terminal, browser, notebook, tensorboard, agent, gate):
        try:
            step(place)
            print(f"passed stranger: {step.__name__}", flush=True)
        except Exception:
            failed += 1
            traceback.print_exc()
            print(f"failed stranger: {step.__name__}", flush=True)
            if step is terminal:
                break  # no caller has a profile
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
