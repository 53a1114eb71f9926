# SPDX-License-Identifier: Apache-2.0
"""The page of captures: one made by keys of a running program, what went wrong, and the schedules."""

import contextlib
import json
import pathlib
import re
import subprocess
import sys
import urllib.parse

from harness import NOBODY, wait_until


@contextlib.contextmanager
def program(mode="ok"):
    """The address of a profiler server; of mode "die" its process ends when a capture begins."""
    build = pathlib.Path(sys.argv[1])
    p = subprocess.Popen([build / "tests" / "capture" / "fake_profiler", mode, "20000"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield p.stdout.readline().strip()
    finally:
        p.stdin.close()
        p.wait(20)


def said(tab):
    return tab.page.inner_text(".said")


def capture(tab):
    with program() as address:
        tab.open("sessions")
        tab.page.click("header a >> text=Capture")
        tab.page.wait_for_selector("h1 >> text=Captures")
        tab.page.focus("input[name=targets]")
        tab.page.keyboard.type(address)
        tab.page.keyboard.press("Tab")
        tab.page.keyboard.press("Control+a")
        tab.page.keyboard.type("0.3")
        tab.page.select_option("[name=python]", "1")
        tab.page.fill("[name=session]", "before.1")
        seen = []

        def look(route):  # while it runs there is a bar
            seen.append((route.request.url, tab.page.is_visible("progress")))
            route.continue_()

        tab.page.route("**/capture_profile?*", look)
        tab.page.press("[name=seconds]", "Enter")
        wait_until("it ended", lambda: said(tab).startswith("Capture profile successfully"))
        assert "python_tracer_level=1" in seen[0][0] and seen[0][1] and tab.page.is_hidden("progress"), seen
    wait_until("it is listed", lambda: any("\tdone\tbefore.1\t" in r for r in tab.texts("[aria-label=Captures] tbody tr")))
    tab.page.locator("[aria-label=Captures] tbody a").first.click()
    tab.page.wait_for_selector("h1 >> text=Overview")


def nobody_there(tab):
    """What went wrong is said in words, with the address, and the button works again."""
    address = f"127.0.0.1:{NOBODY}"
    tab.open(f"captures?targets={address}")
    assert tab.page.input_value("input[name=targets]") == address
    tab.page.focus("button[type=submit]")
    tab.page.keyboard.press("Enter")
    wait_until("why not", lambda: address in said(tab))
    assert tab.page.locator(".said.failed").count() == 1 and not tab.page.is_visible("progress")
    assert tab.page.is_enabled("button[type=submit]")
    wait_until("it is listed", lambda: any("\tfailed\t" in r for r in tab.texts("[aria-label=Captures] tbody tr")))


nobody_there.allow = ["Failed to load resource"]


def lost_hosts(tab):
    """A capture of several programs of which some die, or are not there, has a session with what the others gave: it is
    partial, and the pages name whom it lacks and why."""
    there = f"{tab.base}/api/v1/sessions"
    listed = lambda: tab.texts("[aria-label=Captures] tbody tr")

    def partial(targets, text, lost):
        tab.open("captures?" + urllib.parse.urlencode({"targets": ",".join(targets)}))
        before = len(listed())
        tab.page.fill("input[name=seconds]", "0.3")
        tab.page.focus("button[type=submit]")
        tab.page.keyboard.press("Enter")
        wait_until("it ended", lambda: tab.page.is_enabled("button[type=submit]"), 60)
        assert said(tab).startswith("Capture profile successfully"), said(tab)
        assert all(f"{x}: " in said(tab).split("Not captured: ")[1] for x in lost), said(tab)
        wait_until("it is listed", lambda: len(listed()) > before and "\tpartial\t" in listed()[0])
        row = tab.page.locator("[aria-label=Captures] tbody tr").first
        assert all(f"{x}: " in row.inner_text() for x in lost[:5]), row.inner_text()
        assert re.findall("and (.*) more", row.inner_text()) == ([str(len(lost) - 5)] if len(lost) > 5 else []), row.inner_text()
        name = row.locator("a").inner_text()
        wait_until("so is its session", lambda: name in [s["name"] for s in tab.page.request.get(there).json()["sessions"]])
        tab.open("sessions")
        row = tab.page.locator(f".sessions tr[data-session='{name}']")
        assert row.locator(".state").inner_text() == text and row.locator(".state-partial").count() == 1, row.inner_text()
        why = row.locator(".error-text").get_attribute("title").split("\n")
        assert sorted(x.split(": ")[0] for x in why) == sorted(lost) and all(x.split(": ", 1)[1] for x in why), why
        names = [x.split(": ")[0] for x in why]
        assert (f"{names[0]}, {names[1]} and {len(names) - 2} others: " if names[1:] else f"{names[0]}: ") in row.inner_text(), row.inner_text()
        row.locator("th a").click()
        tab.page.wait_for_selector("h1 >> text=Overview")

    with program() as lives, program("die") as dies:
        partial([lives, dies], "Partial (1 host lost)", [dies])
        nobody = [f"127.0.0.{i}:{NOBODY}" for i in range(2, 8)]
        partial([*nobody, lives, dies], "Partial (7 hosts lost)", [*nobody, dies])


def schedules(tab):
    odd = "<b>host</b>:1"
    answer = {
        "enabled": False,
        "captures": [],
        "schedules": [{"id": 3, "every_ms": 3600000, "continuous": True, "next_unix_ms": 1700000000000, "last_capture_id": 9,
                       "sessions": 12, "bytes": 3 << 20, "targets": [odd, "two:2"]}],
    }
    tab.context.route("**/api/v1/captures", lambda r: r.fulfill(content_type="application/json", body=json.dumps(answer)))
    tab.open("captures")
    row = tab.texts("[aria-label=Schedules] tbody tr")[0]
    assert row.startswith(f"3\t{odd}, two:2\t1") and "records all the time" in row and "3.00 MiB" in row, row
    assert tab.page.is_disabled("button[type=submit]") and "does not capture" in said(tab)
    tab.page.click("[aria-label=Schedules] a")
    wait_until("its history", lambda: tab.hash().startswith("#/history") and tab.params()["schedule"] == "3")


schedules.allow = ["Failed to load resource"]  # the server has no schedule 3


def how_to_schedule(tab):
    """Where there is no schedule, the page names a command that makes one; there is such an option."""
    tab.open("captures")
    said = tab.page.locator("section", has=tab.page.locator("h2 >> text=Schedules")).inner_text()
    command = re.search("(xplanectl [a-z-]+) (--[a-z]+) makes one", said)
    assert command, said
    build = pathlib.Path(sys.argv[1])
    out = subprocess.run([build / "cli" / "xplanectl", command[1].split()[1], "--help"], capture_output=True, text=True, timeout=20)
    assert out.returncode == 0 and command[2] in out.stdout, (command[0], out)


def rows_are_low(tab):
    """Dates are on one line, here and in the list of sessions, and a long reason does not make a row as high as the page."""
    reason = "localhost:1: connection refused: nothing listens there; is the program running, did it start its profiler server?"
    answer = {"enabled": True, "schedules": [], "captures": [
        {"id": 1, "begin_unix_ms": 1700000000000, "end_unix_ms": 1700000000023, "state": "failed", "schedule_id": 0, "hosts": 1, "session": "",
         "message": reason, "lost": [], "lost_hosts": 0}]}
    tab.context.route("**/api/v1/captures", lambda r: r.fulfill(content_type="application/json", body=json.dumps(answer)))
    height = lambda selector: max(tab.page.eval_on_selector_all(selector, "(rows) => rows.map((r) => r.getBoundingClientRect().height)"))
    lines = """(cells) => Math.max(...cells.map((c) => {
      const all = document.createRange();
      all.selectNodeContents(c);
      return new Set([...all.getClientRects()].map((r) => Math.round(r.bottom / 8))).size;
    }))"""
    for width in (1280, 400):
        tab.page.set_viewport_size({"width": width, "height": 860})
        tab.open("captures")
        assert height("[aria-label=Captures] tbody tr") < 130, (width, height("[aria-label=Captures] tbody tr"))
        tab.open("sessions")
        assert tab.page.eval_on_selector_all(".sessions tbody td.when", lines) == 1, width


TESTS = [rows_are_low, capture, nobody_there, lost_hosts, schedules, how_to_schedule]
