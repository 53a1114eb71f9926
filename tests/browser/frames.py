#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long frames take while a large trace is zoomed.  Usage: frames.py BUILD LOGDIR SESSION

LOGDIR has the SESSION, of ten million events for the figures of docs/performance.md (tests/bench has repeat_profile).  A frame
is all that the page's thread does from one animation frame to the next one (script, layout, drawing commands), which the
browser's own counters tell; the wheel turns with the pointer on the trace.  Prints one line a figure."""
import subprocess
import sys
import tempfile
import time

from harness import Tab, fetch, find_chromium, free_port

TURNS, REST_MS, ROUNDS = 150, 16, 5


def start(build, logdir, state):
    address = f"127.0.0.1:{free_port()}"
    p = subprocess.Popen([f"{build}/server/xplaned", "--logdir", logdir, "--state-dir", state, "--listen", f"127.0.0.1:{free_port()}",
                          "--http", address], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(600):
        try:
            if fetch(f"http://{address}", "/api/v1/sessions")[0] == 200:
                break
        except OSError:
            pass
        time.sleep(0.1)
    return p, f"http://{address}"


def busy(session):
    """Seconds that the page's thread has worked so far: script, styles, layout."""
    values = {m["name"]: m["value"] for m in session.send("Performance.getMetrics")["metrics"]}
    return values["ScriptDuration"] + values["LayoutDuration"] + values["RecalcStyleDuration"]


def percentile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * p))]


def frames(tab, name, turn):
    """Work of the page's thread for each turn of the wheel, with the frames that it brings."""
    devtools = tab.context.new_cdp_session(tab.page)
    devtools.send("Performance.enable")
    box = tab.page.locator(".trace-canvas").bounding_box()
    tab.page.mouse.move(box["x"] + box["width"] * 0.37, box["y"] + 90)
    rounds = []
    for _ in range(ROUNDS):  # other programs on the machine only ever add
        times, before = [], busy(devtools)
        for i in range(TURNS):
            tab.page.mouse.wheel(0, turn(i))
            tab.page.wait_for_timeout(REST_MS)
            now = busy(devtools)
            times.append(1e3 * (now - before))
            before = now
        rounds.append((percentile(times, 0.95), percentile(times, 0.5)))
    best = min(rounds)
    print(f"{name}: p50 {best[1]:.1f} p95 {best[0]:.1f} ms, {TURNS} turns, the best of {ROUNDS} rounds", flush=True)


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
            frames(tab, "zooming in and out, slowly", lambda i: -60 if i < TURNS / 2 else 60)
            frames(tab, "zooming in and out, fast", lambda i: -200 if i // 10 % 2 == 0 else 200)
            tab.close()
            browser.close()
        finally:
            daemon.terminate()
            daemon.wait(30)


if __name__ == "__main__":
    main()
