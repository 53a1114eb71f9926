#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long frames take while a large trace is zoomed.  Usage: frames.py BUILD LOGDIR SESSION

LOGDIR has the SESSION, of ten million events for the figures of docs/lab/performance.md (tests/bench has repeat_profile).  A
frame is all that the page's thread does for one picture: script, styles, layout, painting, and handing it to the browser's
other threads.  The browser's own trace tells it, by the clock and in processor time, which what else the processor does
leaves as it is; frames count in which the page draws.  The wheel turns with the pointer on the trace."""
import collections
import json
import pathlib
import subprocess
import sys
import tempfile
import time

from harness import ANY_PORTS, Tab, fetch, find_chromium, listening

TURNS, REST_MS, ROUNDS = 150, 16, 5


def start(build, logdir, state):
    log = pathlib.Path(state) / "log"
    with open(log, "w", encoding="utf-8") as out:
        p = subprocess.Popen([f"{build}/server/xplaned", "--logdir", logdir, "--state-dir", state, *ANY_PORTS], stdout=out, stderr=out)
    for _ in range(600):
        base = listening(log)
        if base and fetch(base, "/api/v1/sessions")[0] == 200:
            break
        time.sleep(0.1)
    return p, base


def frames_of(trace):
    """[(ms by the clock, ms of processor time)] of each frame in which a script drew."""
    events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    drawn = collections.defaultdict(list)
    for e in events:
        if e["name"] == "FireAnimationFrame":
            drawn[e["pid"], e["tid"]].append(e["ts"])
    page, times = max(drawn.items(), key=lambda x: len(x[1]))
    return [(e["dur"] / 1e3, e["tdur"] / 1e3) for e in events
            if (e["pid"], e["tid"]) == page and e["name"] == "ProxyMain::BeginMainFrame"
            and any(e["ts"] <= t < e["ts"] + e["dur"] for t in times)]


def percentile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * p))]


def frames(tab, browser, name, turn):
    """Zooms, and prints what the frames took."""
    box = tab.page.locator(".trace-canvas").bounding_box()
    tab.page.mouse.move(box["x"] + box["width"] * 0.37, box["y"] + 90)
    rounds = []
    for _ in range(ROUNDS):  # other programs on the machine only ever add
        browser.start_tracing(page=tab.page, categories=["devtools.timeline", "cc"])
        for i in range(TURNS):
            tab.page.mouse.wheel(0, turn(i))
            tab.page.wait_for_timeout(REST_MS)
        found = frames_of(json.loads(browser.stop_tracing()))
        assert len(found) > TURNS / 10, f"{len(found)} frames"
        rounds.append(found)
    for what, k in (("processor time", 1), ("by the clock", 0)):
        p95, p50, n = min((percentile([f[k] for f in r], 0.95), percentile([f[k] for f in r], 0.5), len(r)) for r in rounds)
        print(f"{name}, {what}: p50 {p50:.1f} p95 {p95:.1f} ms, {n} frames of {TURNS} turns, the best of {ROUNDS} rounds", flush=True)


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    from playwright.sync_api import sync_playwright

    build, logdir, name = sys.argv[1:]
    with tempfile.TemporaryDirectory() as state, sync_playwright() as p:
        daemon, base = start(build, logdir, state)
        try:
            browser = p.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
            tab = Tab(browser, base)
            tab.page.set_default_timeout(120000)
            tab.session(name, "trace")
            tab.page.wait_for_selector(".trace[data-drawn]")
            tab.page.wait_for_timeout(3000)
            print(tab.page.inner_text(".status"), flush=True)
            frames(tab, browser, "zooming in and out, slowly", lambda i: -60 if i < TURNS / 2 else 60)
            frames(tab, browser, "zooming in and out, fast", lambda i: -200 if i // 10 % 2 == 0 else 200)
            tab.close()
            browser.close()
        finally:
            daemon.terminate()
            daemon.wait(30)


if __name__ == "__main__":
    main()
