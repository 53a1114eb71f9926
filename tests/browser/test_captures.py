# SPDX-License-Identifier: Apache-2.0
"""The page of captures: one made by keys of a running program, what went wrong, and the schedules."""

import contextlib
import json
import pathlib
import re
import subprocess
import sys

from harness import free_port, wait_until


@contextlib.contextmanager
def program():
    """The address of a profiler server."""
    build = pathlib.Path(sys.argv[1])
    p = subprocess.Popen([build / "tests" / "capture" / "fake_profiler", "ok", "20000"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
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
        tab.page.keyboard.press("Enter")
        wait_until("it ended", lambda: said(tab).startswith("Capture profile successfully"))
    wait_until("it is listed", lambda: any("\tdone\t" in r for r in tab.texts("[aria-label=Captures] tbody tr")))
    tab.page.locator("[aria-label=Captures] tbody a").first.click()
    tab.page.wait_for_selector("h1 >> text=Overview")


def nobody_there(tab):
    """What went wrong is said in words, with the address, and the button works again."""
    address = f"127.0.0.1:{free_port()}"
    tab.open(f"captures?targets={address}")
    assert tab.page.input_value("input[name=targets]") == address
    tab.page.focus("button[type=submit]")
    tab.page.keyboard.press("Enter")
    wait_until("why not", lambda: address in said(tab))
    assert tab.page.is_enabled("button[type=submit]")
    wait_until("it is listed", lambda: any("\tfailed\t" in r for r in tab.texts("[aria-label=Captures] tbody tr")))


nobody_there.allow = ["Failed to load resource"]


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


TESTS = [capture, nobody_there, schedules, how_to_schedule]
