# SPDX-License-Identifier: Apache-2.0
"""The page SQL: completion, examples, results as table and chart, errors, links."""

import json
import re
import urllib.parse

from harness import HOSTILE, ROOT, fetch, wait_until
from test_pages import GPU, exported, not_hacked

OPS = "SELECT name, sum(self_time_ps) AS self_time_ps FROM ops WHERE session = '{}' GROUP BY name ORDER BY 2 DESC, 1"


def ask(tab, statement):
    return json.loads(fetch(tab.base, "/api/v1/sql?" + urllib.parse.urlencode({"q": statement}))[2])


def type_statement(tab, text):
    tab.page.fill("#statement", "")
    tab.page.focus("#statement")
    tab.page.keyboard.type(text)  # key by key: names are offered


def completes(tab):
    """Tables, the columns of those that the statement names, and words; taken with keys alone."""
    tab.open(f"s/{urllib.parse.quote(GPU, safe='')}/overview")
    tab.page.click("#top a:text-is('SQL')")
    tab.page.wait_for_selector("#statement")
    assert tab.page.input_value("#sql-session") == GPU
    columns = ask(tab, "SELECT * FROM kernels LIMIT 0")["columns"]
    type_statement(tab, "SELECT  FROM kern")
    tab.page.wait_for_selector(".completions:not([hidden])")
    assert [x.split("\n")[0] for x in tab.texts(".completions li")] == ["kernels"]
    assert tab.page.get_attribute("#statement", "aria-activedescendant") == tab.page.locator(".completions li").first.get_attribute("id")
    tab.page.keyboard.press("Tab")
    assert tab.page.input_value("#statement") == "SELECT  FROM kernels" and tab.page.is_hidden(".completions")
    tab.page.keyboard.press("Home")
    for _ in range(7):
        tab.page.keyboard.press("ArrowRight")
    tab.page.keyboard.type("t")
    wanted = sorted(c for c in columns if c.startswith("t"))
    assert "total_ns" in wanted
    wait_until("its columns", lambda: sorted(x.split("\n")[0] for x in tab.texts(".completions li")) == wanted)
    while "total_ns" not in tab.page.inner_text(".completions [aria-selected=true]"):
        tab.page.keyboard.press("ArrowDown")
    for key in ("ArrowDown", "ArrowUp", "Enter"):
        tab.page.keyboard.press(key)
    assert tab.page.input_value("#statement") == "SELECT total_ns FROM kernels"
    tab.page.keyboard.press("Control+ ")
    tab.page.keyboard.press("Escape")
    type_statement(tab, "SELECT 1 FROM o")  # Enter is a new line unless the reader chose a name
    tab.page.wait_for_selector(".completions:not([hidden])")
    tab.page.keyboard.press("Enter")
    assert tab.page.input_value("#statement") == "SELECT 1 FROM o\n"
    type_statement(tab, "SELECT count(*) FROM ops")
    tab.page.wait_for_function("() => document.querySelector('.completions').hidden")
    tab.page.keyboard.press("Control+Enter")
    tab.page.wait_for_selector("table.data")
    # The list is what the documents have, and a table's columns are the daemon's.
    tab.page.click(".tables > summary")
    listed = tab.texts(".tables code")
    text = (ROOT / "docs" / "sql.md").read_text() + (ROOT / "docs" / "schema.md").read_text()
    told = set(re.findall(r"^### `(\w+)`", text, re.M))
    assert set(listed) - told <= {"schedule_changes"} and {"events", "ops", "kernels", "label_history"} < set(listed), set(listed) - told
    for name in listed:
        assert ask(tab, f"SELECT * FROM {name} LIMIT 0")["columns"], name
    tab.page.click(".tables li:has(code:text-is('kernels')) summary")
    wait_until("columns", lambda: tab.texts(".tables li:has(code:text-is('kernels')) button") == columns)


def examples(tab):
    """Each example is a statement that the daemon runs, over one session and over all."""
    for session in (GPU, ""):
        tab.open("sql?" + urllib.parse.urlencode({"session": session}))
        for title in tab.texts("#example option")[1:]:
            tab.page.select_option("#example", label=title)
            statement = tab.page.input_value("#statement")
            assert ("session = " in statement) == bool(session)
            answer = ask(tab, statement)
            assert "columns" in answer or (not session and answer["error"]["code"] == "DATA_LOSS"), (title, answer)  # one is damaged


def result_and_link(tab):
    """A link runs its statement: rows with units, a chart of a column, a sorted table, the export."""
    statement = OPS.format(GPU)
    rows = ask(tab, statement)["rows"]
    tab.open("sql?" + urllib.parse.urlencode({"q": statement, "chart": "self_time_ps"}))
    tab.page.wait_for_selector("table.data")
    assert tab.page.locator("section[aria-label=Chart] rect.bar, section[aria-label=Chart] svg.chart").count() >= 1
    assert [[r["name"], float(r["self_time_ps (ps)"])] for r in exported(tab)] == rows
    cell = tab.texts("table.data tbody tr:not(.spacer) td.num")[0]
    assert re.fullmatch(r"[\d.]+ (ms|µs)", cell), cell
    tab.page.focus("section[aria-label=Chart] svg")
    tab.page.keyboard.press("ArrowRight")
    assert "µs" in tab.page.inner_text("section[aria-label=Chart] .readout") or "ms" in tab.page.inner_text("section[aria-label=Chart] .readout")
    tab.page.select_option("#chart-of", "")
    wait_until("no chart", lambda: tab.page.locator("section[aria-label=Chart] svg").count() == 0)
    tab.page.click("th[data-column='0'] button")
    link = tab.page.evaluate("location.href")
    assert tab.params()["q"] == statement and tab.params()["sort"] == "0" and "chart" not in tab.params()
    tab.page.goto("about:blank")
    tab.page.goto(link)
    tab.page.wait_for_selector("th[data-column='0'][aria-sort=ascending]")
    tab.page.fill("#statement", "SELECT nmae FROM ops")
    tab.page.click("button:text-is('Run')")
    tab.page.wait_for_selector(".problem")
    assert "nmae" in tab.page.inner_text(".problem")
    assert tab.page.evaluate("getSelection().toString()") == "nmae", "the word that the error names is selected"
    tab.page.fill("#statement", "SELECT session, max(time_ps) FROM ops GROUP BY 1")
    tab.page.focus("#statement")
    tab.page.keyboard.press("Control+Enter")
    wait_until("names are text", lambda: any(HOSTILE in x for x in tab.texts("table.data td")))
    not_hacked(tab)


result_and_link.allow = ["Failed to load resource"]  # the refused statement

TESTS = [completes, examples, result_and_link]
