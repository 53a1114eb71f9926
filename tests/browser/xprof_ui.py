# SPDX-License-Identifier: Apache-2.0
"""XProf's own interface, unmodified, on xplaned: its files come from PyPI by deploy/fetch-xprof-ui.sh.

Without the internet its charts stay empty (they load a library from gstatic.com); everything else is tested.
"""

import contextlib
import json
import os
import subprocess
import sys
import urllib.parse

from playwright.sync_api import Error

from harness import ROOT, Daemon, Skip, environment_path, fetch, wait_until
from test_pages import GPU

FILES = ("index.html", "bundle.js", "trace_viewer_index.html")
HOST = GPU.split("/")[1]
# What XProf 2.24.2 shows for this profile, by tool.
TRACKS = {
    "trace_viewer@": [
        "mi300_jax_attention /device:GPU:0 (pid 1001)",
        "Stream #16(Kernel)",
        "Framework Name Scope - from #16",
        "Framework Ops - from #16",
        "XLA Modules - from #16",
        "XLA Ops - from #16",
        "Source code - from #16",
        "Stream #17(Kernel)",
        "mi300_jax_attention /host:CPU (pid 1701)",
        "Host Threads/2356",
        "Host Threads/2768",
        "python",
        "tf_pjrt_thread_pool/7512490089272390147",
    ],
    "trace_viewer": [
        "Framework Name Scope - from #16",
        "Framework Ops - from #16",
        "XLA Modules - from #16",
        "XLA Ops - from #16",
        "Source code - from #16",
        "Host Threads/2356",
        "Host Threads/2768",
        "python",
        "tf_pjrt_thread_pool/7512490089272390147",
    ],
}
HEADINGS = """() => {
  const out = [];
  const walk = (node) => {
    if (node.shadowRoot) walk(node.shadowRoot);
    for (const c of node.children || []) {
      if (c.tagName === 'TR-UI-B-HEADING' || /process-track-name/.test(c.className || '')) out.push(c.textContent.replace(/[▾▸]/g, '').trim());
      walk(c);
    }
  };
  walk(document);
  return out.filter((t) => t); }"""


def files():
    """The folder of XProf's static files; fetched when it is not there."""
    folder = os.environ.get("XPL_XPROF_UI") or str(environment_path() / "xprof-ui")
    if not all(os.path.exists(os.path.join(folder, f)) for f in FILES):
        script = ROOT / "deploy" / "fetch-xprof-ui.sh"
        if not script.exists():
            raise Skip("XProf's files are not there, and deploy/fetch-xprof-ui.sh is not either")
        got = subprocess.run(
            [script, folder],
            capture_output=True,
            text=True,
            timeout=240,
            env={**os.environ, "PYTHON": sys.executable},
        )
        if got.returncode:
            raise Skip(f"XProf's files could not be fetched: {(got.stderr or got.stdout).strip()[-200:]}")
    return folder


def choose(tab, n, text):
    """Takes an entry of XProf's n-th choice (sessions, tools); its drawer may be closed."""
    box = tab.page.locator("mat-select").nth(n)

    def opened():
        with contextlib.suppress(Error):
            tab.page.wait_for_timeout(700)  # the drawer slides
            if not box.is_visible():
                tab.page.locator("button").first.click(timeout=2000)
                return False
            box.click(timeout=2000)
        return tab.page.locator("mat-option").count() > 0

    wait_until("the choice opens", opened)
    tab.page.locator("mat-option", has_text=text).first.click()


def session_list(tab):
    tab.page.goto(tab.base + "/")
    tab.page.wait_for_selector("mat-select")
    runs = json.loads(fetch(tab.base, "/data/plugin/profile/runs")[2])
    tab.page.locator("mat-select").first.click()
    tab.page.wait_for_selector("mat-option")
    assert tab.texts("mat-option") == runs and GPU in runs, tab.texts("mat-option")


def tool_switch(tab):
    tab.page.goto(tab.base + "/")
    tab.page.wait_for_selector("mat-select")
    choose(tab, 0, GPU)
    wait_until("the session is in the address", lambda: urllib.parse.quote(GPU, safe="") in tab.page.url)
    tab.page.wait_for_selector("text=Performance Summary")
    choose(tab, 1, "Op Profile")
    tab.page.wait_for_selector("text=jit_matmul(59)")
    assert "15.01%" in tab.page.inner_text("body")
    choose(tab, 1, "Memory Profile")
    tab.page.wait_for_selector("text=/memory profile/i")
    wait_until("the address names the tool", lambda: "memory_profile" in tab.page.url)


def memory_viewer(tab):
    """The tool from the choice, another program, another memory, and the timeline that its link leads to."""
    tab.page.goto(tab.base + "/")
    tab.page.wait_for_selector("mat-select")
    choose(tab, 0, GPU)
    wait_until("the session is in the address", lambda: urllib.parse.quote(GPU, safe="") in tab.page.url)
    tab.page.wait_for_selector("text=Performance Summary")
    choose(tab, 1, "Memory Viewer")
    wait_until("the address names the tool", lambda: "memory_viewer" in tab.page.url)
    tab.page.wait_for_selector("text=Module Name: ")
    body = lambda: tab.page.inner_text("body")  # noqa: E731
    choose(tab, 3, "jit__normal(17)")
    wait_until("the program is shown", lambda: "Module Name: jit__normal(17)" in body())
    assert "Peak memory allocation: 8.00 MiB" in body(), body()
    choose(tab, 4, "VMEM")
    wait_until("another memory is shown", lambda: "Peak memory allocation: 0.00 MiB" in body())
    # Where the page's link leads; without the internet, and so without charts, it has no address.
    query = urllib.parse.urlencode({"run": GPU, "tag": "memory_viewer", "module_name": "jit__normal(17)", "view_memory_allocation_timeline": "true"})
    tab.page.goto(f"{tab.base}/data/plugin/profile/data?{query}")
    tab.page.wait_for_selector("svg rect")
    assert "jit__normal, memory space 0" in body(), body()
    tips = tab.page.evaluate("() => [...document.querySelectorAll('g title')].map((e) => e.textContent)")
    assert any("hlo_op:" in t for t in tips), tips
    assert tab.page.locator("script").count() == 0


def hlo_stats_and_roofline(tab):
    """Both from the choice of tools.  Their charts need the internet; what the pages asked for is what their tables show."""
    tab.page.goto(tab.base + "/")
    tab.page.wait_for_selector("mat-select")
    choose(tab, 0, GPU)
    wait_until("the session is in the address", lambda: urllib.parse.quote(GPU, safe="") in tab.page.url)
    tab.page.wait_for_selector("text=Performance Summary")
    asked = []
    tab.page.on("response", lambda r: asked.append(r) if "/profile/data?" in r.url else None)
    for label, tool, text in (("HLO Op Stats", "hlo_stats", "HLO Op"), ("Roofline Model", "roofline_model", "Roofline")):
        choose(tab, 1, label)
        wait_until("the address names the tool", lambda: tool in tab.page.url)
        wait_until("the page asked for it", lambda: any(f"tag={tool}" in r.url for r in asked))
        answer = next(r for r in asked if f"tag={tool}" in r.url)
        assert answer.status == 200, answer.status
        tables = answer.json()
        table = tables[0] if isinstance(tables, list) else tables
        assert len(table["rows"]) > 5, len(table["rows"])
        wait_until("the page is drawn", lambda: text in tab.page.inner_text("body"))


def graph_viewer(tab):
    """The tool from the choice, the graph of a computation; a double click on an op makes it the center."""
    tab.page.goto(tab.base + "/")
    tab.page.wait_for_selector("mat-select")
    choose(tab, 0, GPU)
    wait_until("the session is in the address", lambda: urllib.parse.quote(GPU, safe="") in tab.page.url)
    tab.page.wait_for_selector("text=Performance Summary")
    choose(tab, 1, "Graph Viewer")
    wait_until("the address names the tool", lambda: "graph_viewer" in tab.page.url)
    query = urllib.parse.urlencode({"run": GPU, "tag": "graph_viewer", "host": HOST, "module_name": "jit_matmul(59)", "node_name": "main.1"})
    tab.page.goto(f"{tab.base}/data/plugin/profile/graph_viewer?{query}")
    frame = tab.page.frame_locator("#graph-html")
    frame.locator("g.node").first.wait_for()
    assert frame.locator("script").count() == 0
    shown = lambda: frame.locator("svg").text_content()  # noqa: E731
    assert "Computation main.1" in shown(), shown()[:300]
    # The page has put its listeners on the nodes when it has written the ops' times into them.
    op = frame.locator("g.node", has_not_text="Parameter").first
    name = op.locator("text").first.text_content().split()[0]

    def centered():
        with contextlib.suppress(Error):
            if f"around {name}" in shown():
                return True
            op.dblclick(timeout=2000)
        return False

    wait_until("a double click makes the op the center", centered)


def only_where_recorded(tab):
    """Tools that XProf lists for some profiles alone: each can be chosen, asks for its tables, and shows them."""
    for session, label, tool, words in (
        ("made/counters", "Perf Counters", "perf_counters", "what it counts"),
        ("made/counters", "Utilization Viewer", "utilization_viewer", "MXU"),
    ):
        asked = []
        tab.page.on("response", lambda r, to=asked: to.append(r) if "/profile/data?" in r.url else None)
        tab.page.goto(tab.base + "/")
        tab.page.wait_for_selector("mat-select")
        choose(tab, 0, session)
        wait_until("the session is in the address", lambda: urllib.parse.quote(session, safe="") in tab.page.url)
        tab.page.wait_for_selector("text=Performance Summary")
        choose(tab, 1, label)
        wait_until("the address names the tool", lambda: tool in tab.page.url)
        wait_until("the page asked for it", lambda: any(f"tag={tool}" in r.url for r in asked))
        answer = next(r for r in asked if f"tag={tool}" in r.url)
        assert answer.status == 200 and words in answer.text(), (tool, answer.status, answer.text()[:300])


def megascale(tab):
    """Its page has a table of all hosts alone, which it asks for with its charts; without the internet, what it would get."""
    tab.page.goto(tab.base + "/")
    tab.page.wait_for_selector("mat-select")
    choose(tab, 0, "made/slices")
    wait_until("the session is in the address", lambda: urllib.parse.quote("made/slices", safe="") in tab.page.url)
    tab.page.wait_for_selector("text=Performance Summary")
    choose(tab, 1, "Megascale Viewer")
    wait_until("the address names the tool", lambda: "megascale_stats" in tab.page.url)
    choose(tab, 2, "ALL_HOSTS")
    tab.page.wait_for_selector("text=(all hosts)")
    query = urllib.parse.urlencode({"run": "made/slices", "tag": "megascale_stats", "host": "ALL_HOSTS"})
    status, _, body = fetch(tab.base, f"/data/plugin/profile/data?{query}")
    assert status == 200 and b"rdv_1" in body, (status, body[:300])


def trace_tracks(tab):
    tools = json.loads(fetch(tab.base, "/data/plugin/profile/run_tools?run=" + urllib.parse.quote(GPU))[2])
    tool = next((t for t in TRACKS if t in tools), None)
    if not tool:
        raise Skip("this xplaned has no trace tool yet")
    query = urllib.parse.urlencode({"run": GPU, "tag": tool, "host": HOST, "hosts": HOST})
    tab.page.goto(f"{tab.base}/data/plugin/profile/{tool}?{query}")
    wait_until(
        "the trace's frame is there", lambda: any("trace_viewer_index" in f.url for f in tab.page.frames)
    )
    frame = next(f for f in tab.page.frames if "trace_viewer_index" in f.url)

    def shown():
        return frame.evaluate(HEADINGS)

    try:
        wait_until("every track of XProf is shown", lambda: all(t in shown() for t in TRACKS[tool]), 25)
    except AssertionError as e:
        raise AssertionError(f"tracks shown: {shown()}") from e
    if tool == "trace_viewer@":
        order = [t for t in shown() if t in TRACKS[tool]]
        assert order == TRACKS[tool], order


def run(run_test, build):
    """Runs the tests on a daemon of their own, which also serves XProf's files."""
    state = {"base": None, "daemon": None, "why": None}

    def start():
        if not state["base"] and not state["why"]:
            try:
                state["daemon"] = Daemon(build, ["--ui-dir", files()])
                state["base"] = state["daemon"].start()
            except Skip as e:
                state["why"] = e
        if state["why"]:
            raise state["why"]
        return state["base"]

    try:
        for test in (session_list, tool_switch, memory_viewer, graph_viewer, hlo_stats_and_roofline, only_where_recorded, megascale, trace_tracks):

            def on_xprof(tab, test=test):
                tab.base = start()
                test(tab)

            on_xprof.__name__ = test.__name__
            on_xprof.allow = [""]  # its own errors, of charts that need the internet, are not ours
            run_test("xprof", on_xprof, None)
    finally:
        if state["daemon"]:
            state["daemon"].stop()
