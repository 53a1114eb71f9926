# SPDX-License-Identifier: Apache-2.0
"""The page of histories, on the nightly runs of made_profiles.c: its fusion takes 4 us more from the eighth on."""

import json
import urllib.parse
import urllib.request

from harness import fetch, wait_until

RUNS = [f"nightly/run{i:02}" for i in range(12)]


def label(tab, session, name):
    query = urllib.parse.urlencode({"session": session, "add": name})
    with urllib.request.urlopen(urllib.request.Request(f"{tab.base}/api/v1/label?{query}", method="POST")) as answer:
        assert name in json.load(answer)["labels"]


def shown(tab, *texts):
    wait_until(f"the page has {texts}", lambda: all(t in tab.page.inner_text("main") for t in texts))


def regression(tab):
    """From the list of sessions with the keyboard to the regression, its ops, the comparison and the session."""
    tab.open("sessions")
    tab.page.focus("#top a:has-text('History')")
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector("h1:has-text('History')")
    tab.page.wait_for_selector("#history-directory")
    shown(tab, "A history needs sessions of one program.")
    tab.page.select_option("#history-directory", "nightly")
    tab.page.wait_for_selector("section[aria-label='Regression of step time since nightly/run07']")
    tab.ready()
    assert tab.params()["directory"] == "nightly"
    answer = json.loads(fetch(tab.base, "/api/v1/history?directory=nightly&last=100")[2])
    metric = answer["metrics"][0]
    change = metric["changes"][0]
    shown(tab, "1 regression.", f"+{change['difference_percent']:.1f} %", "7 sessions before and 5 since")
    cause = tab.texts("section[aria-label^='Causes of step time'] tbody tr:not(.spacer)")[0]
    assert "compute" in cause and "+4.00 µs" in cause, cause
    op = tab.texts("section[aria-label^='Ops behind step time'] tbody tr:not(.spacer)")[0]
    assert "fusion" in op and "6.00 µs" in op and "10.0 µs" in op and "+4.00 µs" in op, op
    assert tab.page.locator(".history svg .point").count() == len(metric["points"]) == 12
    assert tab.page.locator(".history svg line.note").count() == 1
    assert tab.page.locator(".history svg .level").count() == 2
    # The marks stand where the values are: the slow ones are higher, the change lies between the two.
    heights = [float(tab.page.locator(".history svg .point").nth(i).get_attribute("cy")) for i in range(12)]
    assert max(heights[7:]) < min(heights[:7]), heights
    xs = [float(tab.page.locator(".history svg .point").nth(i).get_attribute("cx")) for i in range(12)]
    assert xs[6] < float(tab.page.locator(".history svg line.note").get_attribute("x1")) < xs[7]
    # Values by key, then the session itself, and back.
    tab.page.focus(".history svg.chart")
    tab.page.keyboard.press("Home")
    assert "nightly/run00" in tab.page.inner_text(".history .readout")
    for _ in range(7):
        tab.page.keyboard.press("ArrowRight")
    read = tab.page.inner_text(".history .readout")
    assert "nightly/run07" in read and "24.1 µs" in read and "a new level begins" in read and "+20" in read, read
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector("h1:has-text('Overview')")
    assert urllib.parse.unquote(tab.hash()).startswith("#/s/nightly/run07/overview")
    tab.page.go_back()
    tab.page.wait_for_selector("text=Compare them")
    tab.page.click("text=Compare them")
    tab.page.wait_for_selector(".verdict")
    assert tab.texts("section[aria-label='Runs of A'] .chosen a") == RUNS[:7]
    assert tab.texts("section[aria-label='Runs of B'] .chosen a") == RUNS[7:]


regression.allow = ["Failed to load resource"]  # all sessions together have no history


def choices(tab):
    """Metrics are added and removed by keys; a label narrows the sessions; a session links to its own history."""
    for i in (1, 3, 9):
        label(tab, RUNS[i], "weekly")
    tab.open("history")  # of all programs of all time only on demand
    assert "Choose a label" in tab.page.inner_text("main") and tab.page.locator(".history").count() == 0
    tab.open("history?directory=nightly")
    tab.page.focus("#history-metric")
    tab.page.keyboard.type("op:fusion")
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector("section.history[aria-label='op fusion']")
    assert tab.page.locator("section.history").count() == 2
    tab.page.focus("button[aria-label='Remove step time']")
    tab.page.keyboard.press("Enter")
    wait_until("one metric", lambda: tab.texts("section.history > h2") == ["op fusion"])
    tab.page.select_option("#history-label", "weekly")
    shown(tab, "Fewer than 6 sessions have it")
    wait_until("three points", lambda: tab.page.locator(".history svg .point").count() == 3)
    tab.page.click(".values summary")
    rows = tab.texts(".values tbody tr:not(.spacer)")
    assert [r.split()[0] for r in rows] == [RUNS[1], RUNS[3], RUNS[9]], rows
    tab.session(RUNS[3], "overview")
    tab.page.click("#top a:has-text('History')")
    tab.page.wait_for_selector("section.history")
    assert tab.params() == {"label": "weekly"}
    for wrong, right in (("directory=nightly&metric=steps&metric=step_tim", {"directory": ["nightly"], "metric": ["steps", "step_time"]}),
                         ("label=weekli&last=50", {"label": ["weekly"], "last": ["50"]})):
        tab.open(f"history?{wrong}")
        assert "did you mean" in tab.page.inner_text(".problem .message")
        tab.page.click(".problem a.meant")
        tab.page.wait_for_selector("section.history")
        assert urllib.parse.parse_qs(tab.hash().split("?")[1]) == right, tab.hash()
    tab.open("history?schedule=7")
    assert "schedule 7" in tab.page.inner_text(".problem .message")


choices.allow = ["Failed to load resource"]


def spark_lines(tab):
    """In the list of sessions a row has the step times of its first label, up to that session."""
    runs = RUNS[4:7]
    for run in runs:
        label(tab, run, "a-trend")
        assert fetch(tab.base, f"/api/v1/tool?session={urllib.parse.quote(run, safe='')}&tool=findings")[0] == 200
    states = lambda: [h["state"] for s in json.loads(fetch(tab.base, "/api/v1/sessions")[2])["sessions"] if s["name"] in runs for h in s["hosts"]]
    wait_until("they are converted", lambda: set(states()) == {"stored"})
    tab.open("sessions?q=nightly%2Frun0")
    said = lambda run: tab.page.eval_on_selector_all(f"tr[data-session='{run}'] .spark", "l => l.map((e) => e.getAttribute('aria-label'))")
    wait_until("lines", lambda: said(runs[1]) and said(runs[2]))
    assert [said(run) for run in runs] == [[], *([f"Step time of {n} sessions with the label a-trend"] for n in (2, 3))]


def narrow(tab):
    """400 px, both themes: the chart is there, and keeps within the page."""
    tab.page.set_viewport_size({"width": 400, "height": 860})
    for scheme in ("light", "dark"):
        tab.page.emulate_media(color_scheme=scheme)
        tab.open("history?directory=nightly")
        box = tab.page.locator(".history svg.chart").bounding_box()
        assert box["x"] >= 0 and 200 < box["width"] <= 400, box
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= 400


TESTS = [regression, choices, spark_lines, narrow]
