# SPDX-License-Identifier: Apache-2.0
"""Our pages: what they show, sort, filter, remember and refuse to execute."""

import copy
import csv
import io
import json
import pathlib
import re
import socket
import subprocess
import sys
import tempfile

from harness import ANY_PORTS, BUNDLES, HOSTILE, fetch, listening, wait_until

GPU, TPU, TF, BFC, ODD = (
    "accel/mi300_jax_attention",
    "accel/tpu_inference_a",
    "cpu/tf_custom_h2p0",
    "cpu/tf_bfc_memory",
    "cpu/jax_odd_names",
)
FUSED, KERAS, HOSTS, BROKEN, EMPTY = (
    "accel/mi300_jax_te_fused_attn",
    "cpu/tf_keras_tensorboard",
    "cpu/jax_4hosts",
    "cpu/jax_2proc_samehost",
    "cpu/jax_empty",
)


def not_hacked(tab):
    assert tab.page.evaluate("window.pwned") is None, "a name ran as script"
    assert (
        tab.page.locator(
            "main img, #top img[src=x], main script, main b, main i:not(.swatch):not([class^=series]), main svg[onload]"
        ).count()
        == 0
    ), "a name became HTML"


def sessions_list(tab):
    tab.open("sessions")
    names = tab.texts(".sessions tbody th")
    assert GPU in names and HOSTS in names and len(names) >= 17, names
    tab.page.fill("input[type=search]", "tf_")
    wait_until("search narrows the list", lambda: all("tf_" in n for n in tab.texts(".sessions tbody th")))
    assert tab.params()["q"] == "tf_"
    tab.page.fill("input[type=search]", "no such session")
    tab.page.wait_for_selector("text=No session matches")
    tab.page.fill("input[type=search]", "")
    tab.page.click("th[data-column=size] button")
    assert tab.page.get_attribute("th[data-column=size]", "aria-sort") == "descending"
    first = tab.texts(".sessions tbody th")[0]
    tab.page.click("th[data-column=size] button")
    assert tab.page.get_attribute("th[data-column=size]", "aria-sort") == "ascending"
    assert tab.texts(".sessions tbody th")[-1] == first
    assert tab.params()["sort"] == "size"


def sessions_states(tab):
    """A damaged file is named as such after somebody asked for it."""
    tab.session(BROKEN, "overview")
    message = tab.page.inner_text(".problem .message")
    assert "vm.xplane.pb" in message and "corrupt" in message, message
    assert "/plugins/" not in message or "tests/data" not in message
    tab.open("sessions")
    row = tab.page.locator(".sessions tbody tr", has_text=BROKEN)
    assert row.locator(".state").count() == 1


sessions_states.allow = ["Failed to load resource"]


def overview_steps(tab):
    tab.session(TF, "overview")
    assert tab.page.locator(".chart path[class^=series]").count() >= 2
    assert "Average step time" in tab.page.inner_text(".tiles")
    rows = tab.texts(".page .columns table tbody tr")
    assert len(rows) == 10 and "%" in rows[0]
    tab.page.focus(".chart")
    tab.page.keyboard.press("ArrowRight")
    tab.page.keyboard.press("ArrowRight")
    assert "train 1" in tab.page.inner_text(".readout") and "ms" in tab.page.inner_text(".readout")
    tab.page.click(".next summary")  # XProf's words are folded under its name
    assert "XProf’s own advice" in tab.page.inner_text(".next")
    hrefs = tab.page.eval_on_selector_all(".next a", "l => l.map(a => a.getAttribute('href'))")
    assert any("/trace" in h for h in hrefs) and all(re.match(r"#/|https?://", h) for h in hrefs), hrefs


def overview_outliers(tab):
    """Of more steps than columns a slow one is still seen: a column's line reaches to its longest step."""
    daemon = fetch(tab.base, f"/api/v1/tool?session={TF.replace('/', '%2F')}&tool=overview_page")[2]
    page = json.loads(daemon)
    table = next(t for t in page if "stepTimeMs" in [c["id"] for c in t.get("cols", [])])
    at = [c["id"] for c in table["cols"]].index("stepTimeMs")
    first, rows = table["rows"][0], []
    for i in range(2000):
        row = copy.deepcopy(first)
        row["c"][0]["v"], row["c"][at]["v"] = str(i), 500.0 if i == 777 else 5.0
        rows.append(row)
    table["rows"] = rows
    tab.answer("overview_page", lambda q: page)
    walls = [500 * 10**9 if i == 777 else 5 * 10**9 for i in range(2000)]
    times = tool_answer(tab, TF, "time_breakdown", "&view=steps")
    times["hosts"][0]["steps"] = {"step": list(range(2000)), "name": [f"train {i}" for i in range(2000)],
                                  "begin_ps": [i * 10**12 for i in range(2000)], "wall_ps": walls, "compute_ps": walls}
    tab.answer("time_breakdown", lambda q: times)
    tab.session(TF, "overview")
    assert "5.00 ms to 500 ms, 2,000 steps" in tab.page.inner_text(".tiles"), tab.page.inner_text(".tiles")
    assert tab.page.locator(".chart path.range").count() == 1
    tab.page.focus(".chart")
    tab.page.keyboard.press("Home")
    for _ in range(777 // 5):
        tab.page.keyboard.press("ArrowRight")
    said = tab.page.inner_text(".readout")
    assert "5.00 ms to 500 ms" in said, said
    table["rows"] = rows[:1]
    tab.page.reload()
    tab.ready()
    assert ", 1 step" in tab.page.inner_text(".tiles") and "1 steps" not in tab.page.inner_text("main")


def overview_hosts(tab):
    """Of several hosts the tile says which step time it means, and has XProf's number."""
    four = next(s for s in json.loads(fetch(tab.base, "/api/v1/sessions")[2])["sessions"] if s["name"].endswith("jax_4hosts"))
    page = json.loads(fetch(tab.base, f"/api/v1/tool?session={four['name'].replace('/', '%2F')}&tool=overview_page")[2])
    table = next(t for t in page if "stepTimeMs" in [c["id"] for c in t.get("cols", [])])
    tab.session(four["name"], "overview")
    tiles = tab.page.inner_text(".tiles")
    assert "slowest host" in tiles.lower() and f"{float(table['p']['steptime_ms_average']):.1f} ms" in tiles, tiles
    wait_until("causes", lambda: "slowest host" in tab.page.inner_text("#step-time").lower())
    legend = tab.page.inner_text("[aria-labelledby=step-time] .legend")
    assert "Collectives" in legend and "Host" in legend, legend


def tool_answer(tab, session, tool, more=""):
    name = session.replace("/", "%2F")
    return json.loads(fetch(tab.base, f"/api/v1/tool?session={name}&tool={tool}{more}")[2])


def overview_verdict(tab):
    """On the first screen: the verdict, four figures, the breakdown, findings with a link into the trace."""
    answer = tool_answer(tab, HOSTS, "findings")
    truth = answer["findings"]
    tab.session(HOSTS, "overview")
    tab.page.wait_for_selector(".findings li")
    assert tab.page.locator("main h2").first.inner_text() == "Where the time goes"
    assert answer["verdict"]["text"] in tab.page.inner_text(".headline")
    assert tab.page.locator(".tiles .tile").count() == 4
    times = tool_answer(tab, HOSTS, "findings")["times"]
    computing = times["compute_percent"] + times["overlapped_collectives_percent"]
    assert f"Computing\n{computing:.1f} %" in tab.page.inner_text(".tiles").replace("COMPUTING", "Computing")
    assert tab.page.locator(".findings li").first.bounding_box()["y"] < 560  # of 900
    tab.page.click(".each summary")
    assert len(truth) > 3 and tab.page.locator(".findings li:visible").count() == 3
    tab.page.focus(".findings summary")
    tab.page.keyboard.press("Enter")
    found = tab.texts(".findings li strong")
    assert found == [f["title"] for f in truth], found
    assert f"{truth[0]['saving_percent']:.1f} %" in tab.texts(".findings li")[0]
    bars = tab.page.locator(".bars tbody tr")
    hosts = tool_answer(tab, HOSTS, "time_breakdown", "&view=steps")["hosts"]
    assert bars.count() == sum(len(h["devices"]) for h in hosts) == 4
    device = hosts[0]["devices"][0]
    share = 100 * device["exposed_collectives_ps"] / device["wall_ps"]
    said = bars.first.locator(".parts").get_attribute("aria-label")
    assert f"Collectives {share:.1f} %" in said, said
    widths = bars.first.locator(".parts i").evaluate_all("l => l.map(e => e.getBoundingClientRect().width)")
    assert abs(max(widths) / sum(widths) - share / 100) < 0.01, widths
    tab.page.locator(".findings a[href*='/trace']").first.focus()
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_function("() => document.querySelector('main h1')?.textContent.includes('Trace')")
    window, at = truth[0]["window"], tab.params()
    low, high = (float(x) for x in at["t"].split("~"))
    assert at["host"] == window["host"], at
    assert low * 1e9 <= window["begin_ps"] and (window["begin_ps"] + window["duration_ps"]) <= high * 1e9, at


def overview_all_steps(tab):
    """Percentiles of the slowest host's steps; a map of hosts and steps that the arrow keys read."""
    hosts = tool_answer(tab, HOSTS, "time_breakdown", "&view=steps")["hosts"]
    slowest = sorted(max(x) for x in zip(*(h["steps"]["wall_ps"] for h in hosts)))
    tab.session(HOSTS, "overview")
    tab.page.wait_for_selector(".heat .series-0")
    text = tab.page.inner_text(".percentiles")
    assert text.startswith("20 steps: p50 "), text
    assert f"p50 {slowest[9] / 1e9:.1f} ms, p95 {slowest[18] / 1e9:.1f} ms" in text, (text, slowest)
    assert tab.page.locator(".heat .series-0").count() == 80
    figure = tab.page.locator("figure", has=tab.page.locator(".heat"))
    tab.page.focus(".heat")
    for key in ("ArrowRight", "ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight"):
        tab.page.keyboard.press(key)
    value = hosts[1]["steps"]["wall_ps"][3] / 1e9
    assert figure.locator(".readout").inner_text() == f"{hosts[1]['host']}, step 3: {value:.1f} ms"
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_function("() => document.querySelector('main h1')?.textContent.includes('Trace')")
    assert tab.params()["host"] == hosts[1]["host"]
    low, high = (float(x) for x in tab.params()["t"].split("~"))
    begin = hosts[1]["steps"]["begin_ps"][3]
    assert low * 1e9 <= begin and begin + value * 1e9 <= high * 1e9


def overview_step_to_trace(tab):
    """Enter on a step's bar opens that step in the trace."""
    hosts = tool_answer(tab, TF, "time_breakdown", "&view=steps")["hosts"]
    tab.session(TF, "overview")
    tab.page.wait_for_selector(".percentiles")
    tab.page.locator("[aria-labelledby=step-time] .chart").focus()
    for key in ("ArrowRight", "ArrowRight"):
        tab.page.keyboard.press(key)
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_function("() => document.querySelector('main h1')?.textContent.includes('Trace')")
    steps = hosts[0]["steps"]
    low, high = (float(x) for x in tab.params()["t"].split("~"))
    assert any(low * 1e9 <= b and b + w <= high * 1e9 for b, w in zip(steps["begin_ps"], steps["wall_ps"])), (low, high)
    assert high - low < 1.3 * max(steps["wall_ps"]) / 1e9
    # The address is the whole view; a button copies it.
    tab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab.page.click("[aria-label='Copy a link to this view']")
    wait_until("a link", lambda: "t=" in tab.page.evaluate("navigator.clipboard.readText()"))
    wait_until("the link to this view", lambda: tab.page.evaluate("navigator.clipboard.readText()") == tab.page.url)


def overview_nothing_found(tab):
    answer = tool_answer(tab, TF, "findings")
    tab.answer("findings", lambda q: {**answer, "findings": []})
    tab.session(TF, "overview")
    tab.page.wait_for_selector(".findings p")
    assert "No finding takes 1 %" in tab.page.inner_text(".findings")
    tab.answer("findings", lambda q: {**answer, "devices": 0, "findings": []})
    tab.page.reload()
    tab.ready()
    tab.page.wait_for_selector(".findings p")
    assert "No device ran an op" in tab.page.inner_text(".findings")


def unfold(tab):
    """Opens XProf's own advice, where the page has it."""
    tab.page.eval_on_selector_all("details.next", "all => all.forEach((e) => { e.open = true; })")


def input_verdicts_agree(tab):
    """What findings counts as waiting for input, XProf's sentence may not: the pages do not say both."""
    session = "cpu/jax_8dev_shardmap"
    answer = tool_answer(tab, session, "findings")
    wait = {
        **tool_answer(tab, HOSTS, "findings")["findings"][0],
        "kind": "input_wait",
        "share_percent": 28.8,
        "advice": "Load the next batch early.",
    }
    for page, place in (("overview", ".next .lead"), ("input", ".next .said p")):
        tab.answer("findings", lambda q: answer)
        tab.session(session, page)
        unfold(tab)
        wait_until("XProf's sentence", lambda: "NOT input-bound" in tab.page.inner_text(place))
        tab.answer("findings", lambda q: {**answer, "findings": [*answer["findings"], wait]})
        tab.session(session, page)
        unfold(tab)
        said = "The program waits for input in 28.8 % of the time. Load the next batch early."
        wait_until("what is waited for", lambda: tab.page.inner_text(place) == said)
        shown = tab.page.inner_text("main")
        assert "NOT input-bound" not in shown and "skip the rest" not in shown, shown
    # The first findings of a profile take long: the page appears before them.
    held = []
    tab.page.route(re.compile("/api/v1/tool[?].*tool=findings(&|$)"), lambda route: held.append(route))
    tab.session(session, "input")
    unfold(tab)
    assert "NOT input-bound" in tab.page.inner_text(".next .said p")
    wait_until("findings are asked for", lambda: held)
    held[0].fulfill(json={**answer, "findings": [wait]})
    wait_until("what is waited for", lambda: tab.page.inner_text(".next .said p") == said)


def whose_verdict(tab):
    """XProf's verdict on input is called XProf's, with the reason, where findings say otherwise, and only there."""
    place = ".next .said"
    for page in ("overview", "input"):
        def shown(session):
            tab.session(session, page)
            tab.page.wait_for_load_state("networkidle")  # findings may come behind the page
            unfold(tab)
            return tab.page.inner_text(place)

        tab.context.unroute_all()
        found = tool_answer(tab, ODD, "findings")
        explained = {**found, "findings": [f for f in found["findings"] if f["kind"] not in ("idle_unknown", "input_wait")]}
        tab.answer("findings", lambda q: explained)
        said = shown(ODD)
        assert "POTENTIALLY input-bound" in said and "This sentence is XProf’s, to which all time that it cannot name" in said, said
        assert said.index("POTENTIALLY") < said.index("This sentence is XProf’s") and said.count("XProf’s") == 1, said
        tab.context.unroute_all()
        for session in (TF, "cpu/jax_8dev_shardmap", "cpu/jax_sparse_45s"):  # a wait, "NOT input-bound", idle and unknown why
            said = shown(session)
            assert "input-bound" in said and "XProf’s" not in said, (session, said)
        # XProf says that much, or more, is input.
        answer = tool_answer(tab, ODD, "overview_page" if page == "overview" else "input_pipeline_analyzer")
        text = json.dumps(answer).replace("POTENTIALLY", "HIGHLY")
        tab.answer("overview_page" if page == "overview" else "input_pipeline_analyzer", lambda q: text)
        tab.answer("findings", lambda q: explained)
        said = shown(ODD)
        assert "HIGHLY input-bound" in said and "XProf’s, to which what the host does for input" in said, said
        # Of a profile without devices nothing is found, which contradicts nothing.
        tab.answer("findings", lambda q: {"framework": "jax", "devices": 0, "hosts": 1, "findings": [], "verdict": {"text": "Nothing"}})
        assert "XProf’s" not in shown(ODD)


def overview_without_steps(tab):
    """Without annotations the executions of the main program are the steps."""
    tab.session(GPU, "overview")
    assert "No steps in this profile" not in tab.page.inner_text("main")
    tiles = lambda: tab.page.inner_text(".tiles")
    assert "gfx942" in tiles()
    of = tool_answer(tab, GPU, "findings")["verdict"]  # the figures and the verdict above them are the same
    rate = f"{of['peak_percent']:.1f} %\n{of['flops_per_second'] / 1e12:.1f} TFLOP/s for each device"
    wait_until("the rate against the peak", lambda: rate in tiles())


def overview_steps_of_some(tab):
    """Steps of a host without a device are shown beside a host that has one and none of them, and not denied."""
    tab.session("made/mixed", "overview")
    tab.page.wait_for_selector("#all-steps")
    text = tab.page.inner_text("main")
    assert "50 steps: p50" in text and "No steps in this profile" not in text, text
    said = "XProf only rates hosts with a device, and theirs have no steps"
    unfold(tab)
    wait_until("whose steps are rated", lambda: said in tab.page.inner_text(".next .lead"))
    assert "No step" not in tab.page.inner_text("main"), tab.page.inner_text("main")
    tab.session("made/mixed", "input")
    unfold(tab)
    wait_until("whose steps are rated", lambda: said in tab.page.inner_text(".next .said p"))
    text = tab.page.inner_text("main")
    assert "No steps on hosts with a device" in text and "No step" not in text.replace("No steps on", ""), text


def overview_without_ops(tab):
    """Kernels without ops: the page leads to them.  What is busy with copies does not compute."""
    tab.session("accel/gpu_multi_worker", "overview")
    tab.page.click("section[aria-labelledby=top-ops] a:text-is('Kernels')")
    tab.page.wait_for_selector("h1 >> text=Kernels")
    tab.page.wait_for_selector("table.data tbody tr:not(.spacer)")
    tab.session("accel/gpu_multi_worker", "op_profile")
    assert "Kernels what ran on a GPU" in tab.page.inner_text(".empty")
    tab.session(TPU, "overview")
    assert "with ops on the device, also copies and waits" in tab.page.inner_text(".tiles")
    tab.session(TPU, "memory")  # only the heap counts the allocator's memory since the start
    assert "Peak of the heap since start" in tab.page.inner_text(".tiles")


def sessions_facts(tab):
    """A converted session's row has its device, step time and verdict; two that are ticked can be compared."""
    hosts = tool_answer(tab, HOSTS, "time_breakdown", "&view=steps")["hosts"]
    found = tool_answer(tab, HOSTS, "findings")
    state = lambda: next(s for s in json.loads(fetch(tab.base, "/api/v1/sessions")[2])["sessions"] if s["name"] == HOSTS)["hosts"]
    wait_until("it is converted", lambda: all(x["state"] == "stored" for x in state()))
    tab.open("sessions?q=" + HOSTS.replace("/", "%2F"))
    row = tab.page.locator("tr[data-session]")
    wait_until("its facts", lambda: row.locator(".says").inner_text() != "–")
    slowest = max((h["steps"]["wall_ps"] for h in hosts), key=sum)
    first = found["findings"][0]
    assert row.locator(".device").inner_text() == "4 CPU"
    assert f"{sum(slowest) / len(slowest) / 1e9:.1f} ms" in row.locator(".step").inner_text()
    assert row.locator(".says").get_attribute("title") == found["verdict"]["text"]
    assert row.locator(".says").inner_text() == f"{first['title']} {first['share_percent']:.1f} %"
    tab.open("sessions")
    for name in (HOSTS, TF):
        tab.page.check(f"[aria-label='Compare {name}']")
    tab.page.click("a:text-is('Compare the two')")
    tab.page.wait_for_selector(".verdict")
    assert tab.params() == {"a": HOSTS, "b": TF}, tab.params()


def sessions_of_pytorch(tab):
    """A trace of PyTorch has the facts of any other session, and can be compared."""
    tab.session("pytorch", "overview")
    tab.open("sessions?q=pytorch")
    row = tab.page.locator("tr[data-session=pytorch]")
    wait_until("its facts", lambda: row.locator(".says").inner_text() != "–")
    found = tool_answer(tab, "pytorch", "findings")
    assert row.locator(".says").get_attribute("title") == found["verdict"]["text"]
    assert row.locator(".device").inner_text().startswith(f"{found['devices']} "), row.locator(".device").inner_text()
    assert tab.page.locator("[aria-label='Report of pytorch']").count() == 0
    assert tab.page.locator("[aria-label='Compare pytorch']").count() == 1


def table_columns(tab):
    """Headings end where their numbers end, columns are as wide as their content, and a shade tells of more to the right."""
    tab.session(TF, "ops")
    tab.page.wait_for_selector("table.data tbody tr:not(.spacer) td")
    off = tab.page.evaluate("""() => {
      const cells = [...document.querySelectorAll('table.data tbody tr:not(.spacer)')][0].cells;
      return [...document.querySelectorAll('table.data th')].map((th, i) => {
        if (!th.classList.contains('num')) return 0;
        const text = document.createRange();
        text.selectNodeContents(cells[i]);
        return Math.abs(th.querySelector('span').getBoundingClientRect().right - text.getBoundingClientRect().right);
      });
    }""")
    assert len(off) > 4 and max(off) <= 2, off
    more = lambda: "more-right" in tab.page.get_attribute(".datatable", "class")
    tab.page.set_viewport_size({"width": 400, "height": 800})
    wait_until("columns beyond the edge", more)
    tab.page.eval_on_selector(".scroller", "e => { e.scrollLeft = e.scrollWidth; }")
    wait_until("the last column", lambda: not more())
    # The details of a row are visible, and so is their close button.
    tab.page.locator("table.data tbody tr:not(.spacer)").first.click()
    box, button = tab.page.locator(".detail").bounding_box(), tab.page.locator(".detail [aria-label=Close]").bounding_box()
    assert box["y"] >= 0 and box["y"] + box["height"] <= tab.page.viewport_size["height"] and button["y"] > box["y"], (box, button)
    tab.page.click(".detail [aria-label=Close]")
    assert tab.page.is_hidden(".detail")


def navigation_folds(tab):
    """Pages that the session's devices cannot have are folded, and still there."""
    tab.session(HOSTS, "overview")
    tab.page.wait_for_selector("#nav details")
    assert "Kernels" not in tab.page.inner_text("#nav") and "Trace" in tab.page.inner_text("#nav")
    tab.page.click("#nav summary")
    tab.page.click("#nav >> text=Kernels")
    tab.page.wait_for_selector("h1 >> text=Kernels")
    assert tab.page.locator("#nav details[open] [aria-current=page]").count() == 1
    tab.session(GPU, "overview")
    wait_until("a GPU has kernels", lambda: "Kernels" in tab.page.inner_text("#nav"))


def ops_table(tab):
    tab.session(KERAS, "ops")
    rows = lambda: tab.texts("table.data tbody tr:not(.spacer)")
    total = int(tab.page.get_attribute("table.data", "aria-rowcount")) - 1
    assert total > 400 and len(rows()) < 60, "only rows in sight are in the document"
    first = rows()[0]
    tab.page.click("th[data-column=occurrences] button")
    assert tab.page.get_attribute("th[data-column=occurrences]", "aria-sort") == "descending"
    wait_until("another order", lambda: rows()[0] != first)
    assert tab.params()["sort"] == "-occurrences"
    tab.page.fill(".datatable input[type=search]", "relu")
    wait_until("the filter works", lambda: rows() and all("relu" in r.lower() for r in rows()))
    assert tab.params()["q"] == "relu"
    filtered = int(tab.page.get_attribute("table.data", "aria-rowcount")) - 1
    tab.page.select_option("select[data-facet=host_or_device]", "Device")
    wait_until(
        "the choice narrows",
        lambda: int(tab.page.get_attribute("table.data", "aria-rowcount")) - 1 < filtered,
    )
    kept = int(tab.page.get_attribute("table.data", "aria-rowcount")) - 1
    with tab.page.expect_download() as save:
        tab.page.click("text=Export CSV")
    table = list(csv.reader(io.StringIO(open(save.value.path(), encoding="utf-8").read())))
    assert len(table) == kept + 1 and len(table[0]) >= 19, (len(table), kept, table[0])
    # the address is enough to restore the view
    address = tab.hash()
    again = rows()
    tab.page.reload()
    tab.ready()
    wait_until("the same rows", lambda: rows() == again)
    assert tab.hash() == address


def ops_scrolls_to_the_end(tab):
    tab.session(KERAS, "ops")
    tab.page.focus("table.data")
    tab.page.keyboard.press("End")
    total = int(tab.page.get_attribute("table.data", "aria-rowcount"))
    tab.page.wait_for_selector(f"tr[aria-rowindex='{total}'].active")
    box, view = (
        tab.page.locator(f"tr[aria-rowindex='{total}']").bounding_box(),
        tab.page.locator(".scroller").bounding_box(),
    )
    assert view["y"] <= box["y"] and box["y"] + box["height"] <= view["y"] + view["height"] + 2, (box, view)
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector(".detail:not([hidden])")
    tab.page.keyboard.press("Home")
    tab.page.wait_for_selector("tr[aria-rowindex='2'].active")


def a_table_of_200000_rows(tab):
    n = 200000
    tab.page.set_default_timeout(60000)
    cols = [
        {"id": "rank", "label": "Rank", "type": "number"},
        {"id": "kernel_name", "label": "Kernel Name", "type": "string"},
        {"id": "total_duration_us", "label": "Total", "type": "number"},
        {"id": "occurrences", "label": "Occurrences", "type": "number"},
    ]
    rows = ",".join(
        '{"c":[{"v":%d},{"v":"kernel_%d"},{"v":%d},{"v":1}]}' % (i, i, (i * 7919) % n) for i in range(n)
    )
    body = '{"cols":%s,"rows":[%s]}' % (json.dumps(cols), rows)
    tab.answer("kernel_stats", lambda q: body)
    tab.session(GPU, "kernels")
    assert tab.page.get_attribute("table.data", "aria-rowcount") == str(n + 1)
    assert tab.page.locator("table.data tbody tr").count() < 80
    tab.page.evaluate("document.querySelector('.scroller').scrollTop = 1e9")
    tab.page.wait_for_selector(f"tr[aria-rowindex='{n + 1}']")
    tab.page.click("th[data-column=kernel_name] button")
    wait_until("sorted by name", lambda: "kernel_0" in tab.texts("table.data tbody tr:not(.spacer) td")[0])
    tab.page.fill(".datatable input[type=search]", "kernel_19999")
    wait_until("filtered", lambda: tab.page.get_attribute("table.data", "aria-rowcount") == str(1 + 11))


def op_profile_flame(tab):
    tab.session(GPU, "op_profile")
    bars = lambda: tab.page.locator(".flame [role=treeitem]").count()
    before = bars()
    assert before > 20
    target = tab.page.locator(".flame [aria-level='2']").first
    name = target.inner_text().split("\n")[0]
    target.click()
    wait_until("zoomed into the node", lambda: tab.params().get("node") == "0")
    assert name in tab.page.inner_text(".crumbs") and bars() != before
    widths = tab.page.eval_on_selector_all(".flame [aria-level='2']", "l => l.map(b => b.offsetWidth)")
    assert len(widths) == 1
    tab.page.keyboard.press("ArrowDown")
    tab.page.keyboard.press("Enter")
    wait_until("deeper by keyboard", lambda: tab.params().get("node", "").startswith("0."))
    tab.page.go_back()
    tab.ready()
    assert tab.params().get("node") == "0" and name in tab.page.inner_text(".crumbs")
    tab.page.select_option("#group", "category")
    wait_until("other groups", lambda: tab.params().get("group") == "category")
    tab.ready()
    assert "custom" in tab.page.inner_text(".flame") or "fusion" in tab.page.inner_text(".flame")
    tab.page.check("#idle")
    wait_until("idle time shown", lambda: "IDLE" in tab.page.inner_text("main"))


def flame_levels(tab):
    """{level: [(left, right)] of its bars, from left to right}, as they are on the screen."""
    boxes = tab.page.eval_on_selector_all(".flame [role=treeitem]", """l => l.map(b => {
        const r = b.getBoundingClientRect();
        return [Number(b.getAttribute('aria-level')), r.left, r.right];
    })""")
    return {level: sorted((left, right) for at, left, right in boxes if at == level) for level in {b[0] for b in boxes}}


def no_overlaps(tab):
    levels = flame_levels(tab)
    for level, bars in levels.items():
        for (_, right), (left, _) in zip(bars, bars[1:]):
            assert left >= right - 0.02, (level, right, left)
    return levels


def op_profile_widths(tab):
    """A bar is as wide as its share, also of a thousand; none lies on another."""
    for session in (GPU, FUSED):
        tab.session(session, "op_profile")
        no_overlaps(tab)
        tab.page.set_viewport_size({"width": 420, "height": 800})
        wait_until("drawn again", lambda: tab.page.eval_on_selector(".flame", "e => e.clientWidth") < 420)
        no_overlaps(tab)
        tab.page.set_viewport_size({"width": 1280, "height": 900})
    def node(name, value, children=()):
        return {"name": name, "metrics": {"rawTime": value}, "children": list(children)}
    thin = [node(f"thin {i}", 10 - i / 1000) for i in range(1000)]
    late = node("late", 100, [node("more than its parent", 5000)])
    top = node("by_program", 40000, [node("wide", 20000), *thin, late, node("half", 10000 - 4)])
    body = json.dumps({"byProgram": top, "byProgramExcludeIdle": top, "deviceType": "GPU"})
    tab.answer("op_profile", lambda q: body)
    tab.session(GPU, "op_profile")
    levels = no_overlaps(tab)
    assert len(levels[1]) == 1 and len(levels[2]) == 4, levels
    whole = levels[1][0][1] - levels[1][0][0] + 1
    total = 20000 + 5000 + 9996 + sum(10 - i / 1000 for i in range(1000))
    widths = sorted((right - left + 1) / whole for left, right in levels[2])
    for got, value in zip(widths, sorted((20000, 9996, total - 34996, 5000))):
        assert abs(got - value / total) < 0.002, (got, value / total)
    rest = tab.page.locator(".flame [role=treeitem]", has_text="1000 others")
    assert rest.count() == 1, tab.texts(".flame [role=treeitem]")
    rest.press("Enter")
    wait_until("inside the others", lambda: tab.params().get("node") == "3-1003")
    levels = no_overlaps(tab)
    assert len(levels[3]) == 16, len(levels[3])
    tab.page.keyboard.press("ArrowDown")
    tab.page.keyboard.press("ArrowRight")
    tab.page.keyboard.press("Enter")
    wait_until("inside some of them", lambda: tab.params().get("node") == "3-1003.63-125")
    levels = no_overlaps(tab)
    assert len(levels[4]) == 62, len(levels[4])
    tab.page.reload()
    tab.ready()
    assert "1000 others" in tab.page.inner_text(".crumbs")
    tab.page.locator(".flame [aria-selected=true]").press("Escape")
    wait_until("out of some", lambda: tab.params().get("node") == "3-1003")
    tab.page.keyboard.press("Escape")
    wait_until("out of all", lambda: tab.params().get("node", "") == "")


def kernels_page(tab):
    tab.session(FUSED, "kernels")
    assert "Time in kernels" in tab.page.inner_text(".tiles")
    rows = tab.texts("table.data tbody tr:not(.spacer)")
    assert len(rows) > 5 and any("µs" in r or "ms" in r for r in rows)
    tab.page.locator("table.data tbody tr:not(.spacer)").first.click()
    assert "Registers" in tab.page.inner_text(".detail")
    tab.session(TF, "kernels")
    assert "No GPU kernels" in tab.page.inner_text("main")


def whole_rows(tab, selector):
    """The texts of rows, those of cells that are shortened in full."""
    read = "(rows) => rows.map((r) => [...r.cells].map((c) => c.title || c.innerText).join('\\t'))"
    return tab.page.eval_on_selector_all(selector, read)


def compare_page(tab):
    """The verdict and the sums are those of the API; runs are chosen with keys, and removed."""
    tab.open("sessions")
    tab.page.click("#top a:has-text('Compare')")
    tab.page.wait_for_selector("text=Choose a run for each side")
    for side, name in (("a", HOSTS), ("b", "cpu/jax_8dev_shardmap")):
        tab.page.focus(f"#add-{side}")
        tab.page.select_option(f"#add-{side}", name)
        tab.page.wait_for_selector(f"section[aria-label='Runs of {side.upper()}'] .chosen a")
    tab.page.wait_for_selector(".verdict")
    answer = json.loads(fetch(tab.base, f"/api/v1/compare?a={HOSTS}&b=cpu/jax_8dev_shardmap")[2])
    assert answer["step_time"]["interval_ps"][1] < 0
    text = tab.page.inner_text(".verdict")
    assert "Steps of B are" in text and "shorter" in text and "95 % confidence" in text, text
    percent = f"{abs(answer['step_time']['difference_percent']):.1f} %"
    assert percent in text, (percent, text)
    tab.ready()
    assert "the noise within one run a side" in tab.page.inner_text(".noise")
    assert tab.page.locator("section[aria-label='Time of a step'] tbody tr:not(.spacer)").count() == sum(
        t["a_ps"] > 0 or t["b_ps"] > 0 for t in answer["times"]
    )
    ops = whole_rows(tab, "section[aria-label='Ops of a step'] tbody tr:not(.spacer)")
    assert answer["ops"][0]["op"] in ops[0], (answer["ops"][0], ops[0])
    assert any("new in B" in o for o in ops) and any("only in A" in o for o in ops)
    tab.page.select_option("#add-b", HOSTS)
    tab.page.wait_for_selector(f"button[aria-label='Remove {HOSTS} from B']")
    tab.page.wait_for_selector(".verdict")
    assert tab.texts("section[aria-label='Runs of B'] .chosen a") == ["cpu/jax_8dev_shardmap", HOSTS]
    tab.page.focus("button[aria-label='Remove cpu/jax_8dev_shardmap from B']")
    tab.page.keyboard.press("Enter")
    wait_until("the same run on both sides", lambda: "may be due to chance" in tab.page.inner_text(".verdict"))
    tab.open("compare?a=no/such&b=" + HOSTS)
    assert "no/such" in tab.page.inner_text(".problem .message") and not tab.page.query_selector(".problem a")
    # What may be meant is a link, which keeps the rest.
    tab.open(f"compare?a={GPU}&a={HOSTS[:-1]}&b={HOSTS}")
    assert tab.page.inner_text(".problem .message").endswith(f'; did you mean "{HOSTS}"?')
    tab.page.click(".problem a.meant")
    tab.page.wait_for_selector(".verdict")
    assert [tab.texts(f"section[aria-label='Runs of {x}'] .chosen a") for x in "AB"] == [[GPU, HOSTS], [HOSTS]]


compare_page.allow = ["Failed to load resource"]


def exported(tab, n=0):
    """Rows of the page's N-th table, by their column's names, as its export has them."""
    with tab.page.expect_download() as save:
        tab.page.get_by_role("button", name="Export CSV").nth(n).click()
    with open(save.value.path(), encoding="utf-8", newline="") as f:
        return list(csv.DictReader(f))


def base_session(tab):
    """?base= stays in links, and pages show by how much they differ from it: totals for as many steps, whatever one side lacks."""
    both = json.loads(fetch(tab.base, f"/api/v1/compare?a={FUSED}&b={GPU}")[2])
    scale = both["b"]["steps"] / both["a"]["steps"]
    assert scale != 1
    tab.session(GPU, "overview", f"base={FUSED}")
    tab.page.wait_for_selector("#against")
    assert f"base {both['a']['mean_step_ps'] / 1e9:.2f} ms" in tab.page.inner_text(".tiles")
    interval = [f"{x / 1e9:.2f} ms".replace("-", "−") for x in both["step_time"]["interval_ps"]]
    assert f"between {interval[0]} and +{interval[1]}" in tab.page.inner_text("section[aria-labelledby=against]")
    tab.page.wait_for_selector(".base-bar + .parts")
    causes = {r["Cause"]: r for r in exported(tab)}
    assert float(causes["compute"]["Difference (ps)"]) == next(x for x in both["times"] if x["cause"] == "compute")["difference_ps"]
    keys = {"hlo_ops": ("Self time (us)", "Op", "hlo_stats", "hlo_op_name", "total_self_time"),
            "kernels": ("Total time (us)", "Kernel", "kernel_stats", "kernel_name", "total_duration_us"),
            "ops": ("Self time (us)", "Op", "framework_op_stats", "operation", "total_self_time")}
    for page, (column, name, tool, key, value) in keys.items():
        tab.page.click(f"#nav a[href*='/{page}?']")
        tab.page.wait_for_selector(".base-note")
        assert tab.params()["base"] == FUSED and f"as many as here; it has {both['a']['steps']}" in tab.page.inner_text(".base-note")
        rows = exported(tab)
        answer = tool_answer(tab, FUSED, tool)
        table = answer if isinstance(answer, dict) else answer[-1]
        at = {c["id"]: i for i, c in enumerate(table["cols"])}
        sums = {}
        for r in table["rows"]:
            sums.setdefault(r["c"][at[key]]["v"], []).append(r["c"][at[value]]["v"] * scale)
        for r in rows:
            now, then = float(r[column]), float(r["Base (us)"])
            assert abs(now - then - float(r["Difference (us)"])) < 1e-6 and (then == 0) == (r["In"] == "only here"), r
            assert r["In"] != "only the base" or (now == 0 and any(abs(x - then) < 1e-6 for x in sums[r[name]])), r
        assert {"only here", "only the base"} <= {r["In"] for r in rows}, page
        assert abs(sum(float(r["Base (us)"]) for r in rows) - sum(sum(x) for x in sums.values())) < 1e-3, page
        differences = [float(r["Difference (us)"]) for r in rows]
        assert differences == sorted(differences, reverse=True), page
    tab.session(GPU, "op_profile", f"base={FUSED}")
    assert "Base" in tab.texts(".op-detail dt") and "not in the base" in tab.page.inner_text(".op-detail")
    assert re.search(r", [+−][\d.]+ ms", tab.page.get_attribute("[role=treeitem]", "aria-label"))
    tab.session(GPU, "memory", f"base={FUSED}")
    assert "; base " in tab.page.inner_text(".tiles") and tab.page.locator("section[aria-label='At the peak, against the base']").count() == 1
    tab.session(GPU, "tool:launches", f"base={FUSED}")  # any table of times
    tab.page.wait_for_selector(".base-note")
    rows = exported(tab)
    assert {"only here", "only the base"} <= {r["In"] for r in rows}, rows
    for r in rows:
        assert abs(float(r["Total time (us)"]) - float(r["Base (us)"]) - float(r["Difference (us)"])) < 1e-6, r
    # Of layers that were renamed, and ops that are counted otherwise, the base has all, as compare says.
    for page, name in (("hlo_ops", "Op"), ("ops", "Op"), ("kernels", "Kernel")):
        tab.session(FUSED, page, "base=made/renamed")
        rows = exported(tab)
        assert all(float(r["Difference (us)"]) == 0 and r["In"] in ("both", "both, renamed") for r in rows), page
        renamed = [r["Name in the base"] for r in rows if r["In"] == "both, renamed"] if page != "kernels" else []
        assert page == "kernels" or (renamed and all("bsd,de->bsf" in x for x in renamed)), (page, renamed)
    tab.session(FUSED, "op_profile", "base=made/renamed&group=provenance")
    tab.page.wait_for_selector(".base-note")
    assert not re.search(r"not in the base|[+−][\d.]+ .?s", " ".join(x.get_attribute("aria-label") or "" for x in tab.page.query_selector_all("[role=treeitem]")))
    # A session differs in nothing from itself; of a base that is not there the page says so, and shows the session.
    tab.session(GPU, "hlo_ops", f"base={GPU}")
    assert all(float(r["Difference (us)"]) == 0 and r["In"] == "both" for r in exported(tab))
    tab.page.fill("#base-choice", HOSTILE)
    tab.page.press("#base-choice", "Enter")
    tab.page.wait_for_selector(".note")
    assert HOSTILE in tab.page.inner_text(".note") and tab.page.locator("table.data").count() == 1
    not_hacked(tab)
    # From the list: two that are ticked, the older as the base.
    tab.open("sessions?q=run0")
    for name in ("nightly/run00", "nightly/run07"):
        tab.page.check(f"[aria-label='Compare {name}']")
    tab.page.click("a:text-is('Open the newer, the older as its base')")
    tab.page.wait_for_selector("#against")
    assert tab.hash() == "#/s/nightly%2Frun07/overview?base=nightly%2Frun00"


base_session.allow = ["Failed to load resource"]


def names_of_compare(tab):
    """Pages name ops and kernels as compare does: its matches are found by these names."""
    tab.open("sessions")
    named = "async ([rule, all]) => { const rules = await import('./lib/base.js'); return all.map((x) => rules[rule](...x)); }"
    for session in (GPU, FUSED, "made/renamed"):
        both = json.loads(fetch(tab.base, f"/api/v1/compare?a={session}&b={session}")[2])
        ops = [[o["framework_op"], o["name"]] for o in tool_answer(tab, session, "op_list")["ops"]]
        kernels = tool_answer(tab, session, "kernel_stats")
        at = [c["id"] for c in kernels["cols"]].index("kernel_name")
        for rule, found, key in (("opName", ops, "op"), ("kernelName", [[r["c"][at]["v"]] for r in kernels["rows"]], "kernel")):
            assert set(tab.page.evaluate(named, [rule, found])) == {x[key] for x in both[f"{key}s"]}, (session, rule)


def compare_bundles(tab):
    """Bundles of IREE are offered as other sessions are, and compared by their functions."""
    tab.open("compare")
    for side, name in zip("ab", BUNDLES):
        tab.page.select_option(f"#add-{side}", name)
        tab.page.wait_for_selector(f"section[aria-label='Runs of {side.upper()}'] .chosen a")
    tab.page.wait_for_selector(".verdict")
    assert "Neither side has steps" in tab.page.inner_text(".verdict")
    tab.ready()
    answer = json.loads(fetch(tab.base, "/api/v1/compare?a=iree/task&b=iree/vk")[2])
    ops = whole_rows(tab, "section[aria-label='Ops of a step'] tbody tr:not(.spacer)")
    assert len(ops) == len(answer["ops"]) == 8, ops
    for o in answer["ops"]:  # each once, of one side or the other
        assert sum(o["op"] in row and o["shape"] in row and o["category"] in row for row in ops) == 1, (o, ops)


def bundles_have_pages(tab):
    """A bundle of IREE has no overview: wherever its name leads to, its report is shown."""
    tab.open("compare?a=iree/task&b=iree/vk")
    tab.page.click("section[aria-label='Runs of A'] .chosen a")
    for step in ("from a comparison", "from the list", "its own link"):
        tab.page.wait_for_selector("h1 >> text=iree explain")
        assert tab.page.locator(".problem").count() == 0 and "mlp_dispatch_0" in tab.page.inner_text("main pre"), step
        assert tab.page.inner_text("#nav [aria-current=page]") == "IREE explain", step
        tab.open("sessions")
        tab.page.click("tr[data-session='iree/task'] th a" if step == "from a comparison" else "a[aria-label='Report of iree/task']")
    tab.page.wait_for_selector("h1 >> text=iree explain")
    tab.page.go_back()  # not back to where it came from by itself
    tab.page.wait_for_selector("h1 >> text=Sessions")
    tab.session("iree/vk", "kernels")  # and no section for missing data
    tab.page.wait_for_selector("table.data")
    assert "does not work" not in tab.page.inner_text("main") and tab.page.locator(".launch-queue").count() == 0


def launch_queue(tab):
    """The queue over time is that of the tool: numbers of the stream, values by key, another stream."""
    tab.session(GPU, "kernels")
    tab.page.wait_for_selector(".launch-queue svg.chart")
    tables = json.loads(fetch(tab.base, f"/api/v1/tool?session={GPU}&tool=launches&points=300")[2])

    def rows(table):
        ids = [c["id"] for c in table["cols"]]
        return [dict(zip(ids, (c and c["v"] for c in r["c"]))) for r in table["rows"]]

    streams = sorted((s for s in rows(tables[1]) if s["launched"]), key=lambda s: -s["avg_queue"])
    longest = streams[0]
    text = tab.page.inner_text(".launch-queue")
    assert f"at most {longest['max_queue']:.0f}." in text, (longest, text)
    parts = [p for p in rows(tables[2]) if (p["device"], p["stream"]) == (longest["device"], longest["stream"])]
    assert len(parts) > 100
    tab.page.focus(".launch-queue svg.chart")
    tab.page.keyboard.press("End")
    read = tab.page.inner_text(".launch-queue .readout")
    assert "mean" in read and "longest" in read, read
    peak = max(range(len(parts)), key=lambda i: parts[i]["max_queue"])
    tab.page.keyboard.press("Home")
    for _ in range(peak):
        tab.page.keyboard.press("ArrowRight")
    read = tab.page.inner_text(".launch-queue .readout")
    assert f"longest {parts[peak]['max_queue']:.2f}" in read or f"longest {parts[peak]['max_queue']:.1f}" in read, (read, parts[peak])
    if len(streams) > 1:
        before = tab.page.inner_text(".launch-queue")
        tab.page.select_option(".launch-queue select", "1")
        wait_until("another stream", lambda: tab.page.inner_text(".launch-queue") != before)
    tab.page.set_viewport_size({"width": 400, "height": 860})
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= 400
    tab.session(FUSED, "kernels")  # its own, or none: the page is whole
    tab.page.wait_for_selector("table.data")


def hlo_ops_page(tab):
    tab.session(GPU, "hlo_ops")
    rows = lambda: tab.texts("table.data tbody tr:not(.spacer)")
    assert tab.page.locator(".parts i").count() >= 2
    assert len(rows()) > 5 and any("ms" in r or "µs" in r for r in rows())
    first = rows()[0]
    tab.page.click("th[data-column=occurrences] button")
    wait_until("another order", lambda: tab.params().get("sort") == "-occurrences" and rows())
    # The keyboard: into the table, down, and the op in full.
    tab.page.focus("table.data")
    tab.page.keyboard.press("ArrowDown")
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector(".detail:not([hidden])")
    assert "HLO op text" in tab.page.inner_text(".detail") and " = " in tab.page.inner_text(".detail")
    tab.page.fill(".datatable input[type=search]", "fusion")
    wait_until("the filter works", lambda: rows() and all("fusion" in r for r in rows()))
    assert first


def largest_share(tab):
    """The largest share of self time that the roofline page shows, in percent; the tool's answer has fractions."""
    heads = tab.page.locator(".datatable [data-column]").evaluate_all("e => e.map(x => x.dataset.column)")
    at = heads.index("total_self_time_percent") + 1
    shares = tab.page.locator(f".datatable tbody tr > :nth-child({at})").all_inner_texts()
    return max(float(s.removesuffix(" %")) for s in shares if s[:1].isdigit())


def roofline_page(tab):
    tab.session(GPU, "roofline")
    text = tab.page.inner_text(".legend")
    assert text.count("ridge at") == 2, text
    points = tab.page.locator(".roofline .point").count()
    assert points > 3 and tab.page.locator(".roofline .roof").count() == 2
    assert "FLOP/s" in tab.page.inner_text(".tiles")
    # The largest op first; the arrow keys go through them, Enter shows one in full.
    tab.page.focus(".roofline")
    tab.page.keyboard.press("ArrowRight")
    first = tab.page.inner_text(".readout")
    assert "operations for each byte" in first and "FLOP/s" in first, first
    tab.page.keyboard.press("ArrowRight")
    second = tab.page.inner_text(".readout")
    assert second != first
    tab.page.keyboard.press("Home")
    assert tab.page.inner_text(".readout") == first
    tab.page.keyboard.press("End")
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector(".detail:not([hidden])")
    name = tab.page.inner_text(".detail h2")
    assert tab.page.inner_text(".readout").startswith(name), name
    tab.page.click(".detail button[aria-label=Close]")
    assert largest_share(tab) == 1.4
    # A real click on a point opens it, too.
    tab.page.locator(".roofline").scroll_into_view_if_needed()
    box = tab.page.locator(".roofline .point").first.bounding_box()
    tab.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    tab.page.wait_for_selector(".detail:not([hidden])")
    rows = tab.texts("table.data tbody tr:not(.spacer)")
    assert rows and any("%" in r for r in rows)
    tab.session(TPU, "roofline")
    assert largest_share(tab) == 21.4
    # What only starts a copy has no rate.
    tab.page.fill(".datatable input[type=search]", "copy-start")
    rows = tab.page.locator(".datatable tbody tr:not(.spacer)")
    wait_until("the filter works", lambda: all("copy-start" in r for r in rows.all_inner_texts()))
    assert rows.count() and all("–" in r for r in rows.all_inner_texts()), rows.all_inner_texts()


def roofline_without_stray_points(tab):
    """Two ops of no time with next to no operations do not make the axes longer."""
    real = tool_answer(tab, GPU, "roofline_model")
    table = real[0] if isinstance(real, list) else real
    at = {c["id"]: i for i, c in enumerate(table["cols"])}
    tab.session(GPU, "roofline")
    drawn = lambda: (tab.page.locator(".roofline text").all_text_contents(), tab.page.locator(".roofline .point").count())
    before = drawn()
    row = next(r for r in table["rows"] if r["c"][at["step"]]["v"] == "Total" and r["c"][at["rank"]]["v"] == 1 and not r["c"][at["include_infeed_outfeed"]]["v"])
    for name in ("stray.1", "stray.2"):
        stray = copy.deepcopy(row)
        for key, value in (("operation", name), ("total_self_time", 1e-6), ("operational_intensity", 1e-9), ("measured_flop_rate", 1e-9)):
            stray["c"][at[key]]["v"] = value
        table["rows"].append(stray)
    tab.answer("roofline_model", lambda q: real)
    tab.session(GPU, "roofline")
    assert drawn() == before and before[1] > 3
    assert "are far from the others" in tab.page.inner_text("main")
    tab.page.fill(".datatable input[type=search]", "stray")
    wait_until("they are in the table", lambda: len(tab.texts("table.data tbody tr:not(.spacer)")) == 2)


def roofline_of_a_cpu(tab):
    """A CPU's peaks are in no profile: points without a roof."""
    tab.session("cpu/jax_matmul_nopy", "roofline")
    assert tab.page.locator(".roofline .point").count() >= 1
    assert tab.page.locator(".roofline .roof").count() == 0
    assert "peak is not known" in tab.page.inner_text(".tiles")
    heads = tab.page.eval_on_selector_all(".datatable th[data-column]", "l => l.map((th) => th.dataset.column)")
    cells = [row.split("\t") for row in tab.texts("table.data tbody tr:not(.spacer)")]
    for column in ("roofline_efficiency", "compute_efficiency", "max_mem_bw_utilization"):
        assert {c[heads.index(column)] for c in cells} == {"–"}, (column, cells)
    tab.session(EMPTY, "roofline")
    assert "No ops of a device" in tab.page.inner_text("main")


def peaks_of_a_cpu(tab):
    """A reader says what a core could do: roofs and ridges, shares, and what limits ops; the address keeps it."""
    tab.session("cpu/jax_matmul_nopy", "roofline")
    tab.page.fill("#cpu_core_gflops", "50")
    tab.page.keyboard.press("Enter")
    wait_until("the peak is in the address", lambda: tab.params().get("cpu_core_gflops") == "50")
    tab.page.wait_for_function("() => document.querySelector('.tiles')?.innerText.includes('of 50 GFLOP/s')")
    assert tab.page.locator(".roofline .roof").count() == 0  # of memory nothing is known yet
    tab.page.fill("#cpu_core_gb_s", "4.5")
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector(".roofline .roof")
    legend = tab.page.inner_text(".legend")
    assert legend.startswith("Main memory: 4.19 GiB/s") and "ridge at 11.1 " in legend, legend  # 50 / 4.5
    assert "Unknown" not in tab.page.inner_text(".tiles")
    # The field reports an invalid number, and the page does not request it.
    tab.page.fill("#cpu_core_gflops", "fast")
    tab.page.keyboard.press("Enter")
    assert tab.page.get_attribute("#cpu_core_gflops", "aria-invalid") == "true"
    assert tab.params().get("cpu_core_gflops") == "50"
    tab.page.fill("#cpu_core_gflops", "")
    tab.page.keyboard.press("Enter")
    wait_until("the peak is gone", lambda: "cpu_core_gflops" not in tab.params() and "cpu_core_gb_s" in tab.params())
    # The same of HLO ops: in the address before, and in the answer's cells.
    tab.session("cpu/jax_matmul_nopy", "hlo_ops", "cpu_core_gflops=50&cpu_core_gb_s=4.5")
    assert tab.page.input_value("#cpu_core_gflops") == "50" and tab.page.input_value("#cpu_core_gb_s") == "4.5"
    rows = tab.texts("table.data tbody tr:not(.spacer)")
    assert any("Compute" in r or "HBM" in r for r in rows), rows
    tab.page.fill("#cpu_core_gflops", "")
    tab.page.keyboard.press("Enter")
    wait_until("the peak is gone", lambda: "cpu_core_gflops" not in tab.params())
    tab.ready()
    wait_until("nothing is limited by compute", lambda: "Compute" not in tab.page.inner_text("table.data"))
    # The page ignores an invalid number of the address, and shows it in its field for correction.
    for page in ("roofline", "hlo_ops"):
        tab.session("cpu/jax_matmul_nopy", page, "cpu_core_gflops=fast&cpu_core_gb_s=4.5")
        assert tab.page.input_value("#cpu_core_gflops") == "fast", page
        assert tab.page.get_attribute("#cpu_core_gflops", "aria-invalid") == "true"
        assert tab.page.get_attribute("#cpu_core_gb_s", "aria-invalid") == "false"
        assert "“fast” is not a number of GFLOP/s" in tab.page.inner_text(".peaks [role=alert]")
        tab.page.fill("#cpu_core_gflops", "50")
        tab.page.keyboard.press("Enter")
        wait_until("the peak is mended", lambda: tab.params().get("cpu_core_gflops") == "50")
        tab.ready()
        wait_until("nothing is wrong", lambda: tab.page.locator(".peaks [role=alert]").count() == 0)
    # A device's peaks are those of the profile.
    for page in ("roofline", "hlo_ops"):
        tab.session(GPU, page)
        assert tab.page.locator(".peaks").count() == 0, page


def memory_page(tab):
    tab.session(GPU, "memory")
    assert "MiB" in tab.page.inner_text(".tiles") and tab.page.locator(".chart .area").count() >= 1
    tab.page.focus(".chart")
    tab.page.keyboard.press("End")
    assert "Heap" in tab.page.inner_text(".readout")
    picture = tab.page.get_attribute("[aria-label^='Allocated at the peak']", "aria-label")
    assert re.search(r"[1-9][0-9.]* [KMG]iB \([0-9.]+ %\)", picture), picture
    before = tab.page.inner_text(".tiles")
    tab.page.select_option("#allocator", "xla_gpu_host_bfc")
    wait_until("another allocator", lambda: tab.params().get("allocator") == "xla_gpu_host_bfc")
    tab.ready()
    wait_until("other numbers", lambda: tab.page.inner_text(".tiles") != before)
    assert tab.texts("table.data tbody tr:not(.spacer)")
    tab.session(HOSTS, "memory")  # one host at a time, by itself
    assert tab.params().get("host") == "host-0.cluster.local"
    assert "No allocations" in tab.page.inner_text("main")


def memory_untold(tab):
    """A profile without the host's threads is none that failed: the page says what is missing and how to get it."""
    tab.session("made/counters", "memory")
    assert tab.page.locator(".problem").count() == 0 and tab.page.inner_text("h1") == "Memory"
    said = tab.page.inner_text(".empty")
    assert "No memory in this profile" in said and "of host has no threads" in said, said
    option = re.search("xplanectl capture (--[a-z-]+) 2", said)
    build = pathlib.Path(sys.argv[1])
    out = subprocess.run([build / "cli" / "xplanectl", "capture", "--help"], capture_output=True, text=True, timeout=20)
    assert option and option[1] in out.stdout, (said, out)
    # Any other refusal is still one.
    tab.answer("memory_profile", lambda q: (409, {"error": {"code": "FAILED_PRECONDITION", "message": "not of this kind"}}))
    tab.session("made/counters", "memory")
    assert "not of this kind" in tab.page.inner_text(".problem")


memory_untold.allow = ["Failed to load resource"]


def memory_of_another_host(tab):
    """Where the first host has no threads of the host, the first that has them is shown; who chooses is obeyed."""
    tab.session("made/halves", "memory")
    assert tab.params()["host"] == "host-1" == tab.page.input_value("#host-choice"), tab.hash()
    assert "No memory" not in tab.page.inner_text("main"), tab.page.inner_text("main")
    tab.page.select_option("#host-choice", "host-0")
    wait_until("what is chosen", lambda: "of host-0 has no threads" in tab.page.inner_text("main"))
    tab.answer("memory_profile", lambda q: (409, {"error": {"code": "FAILED_PRECONDITION", "message": "h has no plane /host:CPU"}}))
    tab.session("made/halves", "memory")
    assert "of each of 2 hosts has no threads" in tab.page.inner_text(".empty") and "host" not in tab.params()


memory_of_another_host.allow = ["Failed to load resource"]


def input_page(tab):
    """The share of the time comes first; XProf's sentences and advice are folded under its name."""
    tab.session(TF, "input")
    wait_until("our own verdict", lambda: "Devices wait for input in " in tab.page.inner_text(".headline"))
    assert "input-bound" not in tab.page.inner_text("main")
    unfold(tab)
    assert "input-bound" in tab.page.inner_text(".next .said") and "What can be done" in tab.page.inner_text(".next")
    assert tab.page.locator("table.data").count() == 2


def hosts_choice(tab):
    tab.session(HOSTS, "overview")
    assert len(tab.texts("#host-choice option")) == 5
    tab.page.select_option("#host-choice", "host-2.cluster.local")
    wait_until("the address names the host", lambda: tab.params().get("host") == "host-2.cluster.local")
    tab.ready()
    assert "1 host" in tab.page.inner_text(".tiles")
    tab.page.click("#nav >> text=Framework ops")
    tab.page.wait_for_selector("h1 >> text=Framework ops")
    assert tab.params().get("host") == "host-2.cluster.local"
    tab.page.go_back()
    tab.page.wait_for_selector("h1 >> text=Overview")
    tab.page.go_back()
    wait_until("back to all hosts", lambda: "host" not in tab.params())


def one_host_at_a_time(tab):
    """A tool that answers for one host is asked for the first, which the choice shows, until another is chosen."""
    asked = []
    tab.page.on("request", lambda r: asked.append(r.url) if "tool=kernel_utilization" in r.url else None)
    tab.session(HOSTS, "tool:kernel_utilization")
    assert tab.page.locator(".problem").count() == 0 and tab.page.inner_text("h1") == "Kernel utilization"
    assert tab.page.input_value("#host-choice") == tab.params()["host"] == "host-0.cluster.local"
    assert "host=host-0.cluster.local" in tab.page.get_attribute("a[download]", "href")
    tab.page.select_option("#host-choice", "host-2.cluster.local")
    wait_until("another host is asked for", lambda: "host=host-2.cluster.local" in asked[-1])
    tab.ready()
    assert tab.page.input_value("#host-choice") == "host-2.cluster.local"
    tab.page.select_option("#host-choice", "")  # all of them
    wait_until("the first again", lambda: "host=host-0.cluster.local" in asked[-1])
    tab.ready()
    assert tab.page.input_value("#host-choice") == "host-0.cluster.local" and all("host=" in url for url in asked), asked
    assert tab.page.locator(".problem").count() == 0
    # The page requests tools that combine hosts for all hosts, also in a session of one host.
    tab.session(HOSTS, "tool:pod_viewer")
    assert "host" not in tab.params() and tab.page.input_value("#host-choice") == ""
    tab.session(GPU, "tool:kernel_utilization")
    assert "host" not in tab.params() and "host=" not in asked[-1] and tab.page.locator(".problem").count() == 0


def themes(tab):
    tab.open("sessions")
    ground = lambda: tab.page.evaluate("getComputedStyle(document.body).backgroundColor")
    light = ground()
    tab.page.click("button.theme")
    dark = ground()
    assert light != dark
    tab.page.reload()
    tab.ready()
    assert ground() == dark, "the choice stays"
    tab.page.click("button.theme")
    assert ground() == light
    tab.page.click("button.theme")
    tab.page.emulate_media(color_scheme="dark")
    assert ground() == dark, "as the system says"


CONTRAST = """() => {
  const parse = (c) => { const m = c.match(/[\\d.]+/g).map(Number); return m.length < 4 ? [...m, 1] : m; };
  const light = ([r, g, b]) => [r, g, b].map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }).reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
  const bad = [];
  for (const e of document.querySelectorAll('body *')) {
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || !e.offsetParent || e.closest('svg, noscript, .sr, .skip, .flame')) continue;
    let ground = [255, 255, 255, 0];
    for (let p = e; p && ground[3] === 0; p = p.parentElement) ground = parse(getComputedStyle(p).backgroundColor);
    const a = light(parse(getComputedStyle(e).color)), b = light(ground);
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.push(`${e.tagName} ${e.className} "${e.textContent.slice(0, 30)}" ${ratio.toFixed(2)}`);
  }
  return bad; }"""


UNNAMED = """() => [...document.querySelectorAll('button, select, input, a[href], [role=tree], table')]
  .filter((e) => e.offsetParent && !(e.getAttribute('aria-label') || e.getAttribute('aria-labelledby') || e.textContent.trim() || e.labels?.length)).map((e) => e.outerHTML.slice(0, 120))"""


def accessible(tab):
    """Landmarks, one h1, names for every control, contrast of all text, in both themes."""
    for scheme in ("light", "dark"):
        tab.page.emulate_media(color_scheme=scheme)
        for session, page in (
            (None, "sessions"),
            (None, f"compare?a={HOSTS}&b={GPU}"),
            (TF, "overview"),
            (KERAS, "ops"),
            (GPU, "memory"),
            (GPU, "op_profile"),
            (FUSED, "kernels"),
            (GPU, "hlo_ops"),
            (GPU, "roofline"),
            (TF, "input"),
        ):
            if session:
                tab.session(session, page)
            else:
                tab.open(page)
            where = f"{page}, {scheme}"
            assert tab.page.locator("main h1").count() == 1, where
            assert tab.page.locator("header, main").count() >= 2, where
            unnamed = tab.page.evaluate(UNNAMED)
            assert not unnamed, (where, unnamed)
            ids = tab.page.evaluate(
                "(() => { const all = [...document.querySelectorAll('[id]')].map((e) => e.id); return all.length - new Set(all).size; })()"
            )
            assert ids == 0, f"{where}: double ids"
            bad = tab.page.evaluate(CONTRAST)
            assert not bad, (where, bad[:6])


def keyboard_only(tab):
    tab.open("sessions")
    tab.page.keyboard.press("Tab")
    assert tab.page.evaluate("document.activeElement.id") == "skip"
    tab.page.keyboard.press("Enter")
    assert tab.page.evaluate("document.activeElement.id") == "main"
    seen = []
    for _ in range(14):
        tab.page.keyboard.press("Tab")
        seen.append(
            tab.page.evaluate(
                "document.activeElement.getAttribute('aria-label') || document.activeElement.textContent.trim().slice(0, 40)"
            )
        )
    assert "Search sessions and hosts" in seen and any(s.startswith("Captured") for s in seen), seen
    assert any("/" in s for s in seen), "session links can be reached"
    tab.page.focus(".sessions tbody a")
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector("h1 >> text=Overview")


def texts_are_cut_between_characters(tab):
    """Half of a character of two units is no text: chromium ended when such a page was read by a program."""
    tab.open("sessions")
    cut = """async () => {
        const {short, cut} = await import('./lib/format.js');
        const names = ['😀'.repeat(20), 'a' + '😀'.repeat(20), 'plain text that is long', 'short', ''];
        return names.flatMap((x) => [5, 6, 11, 12].flatMap((n) => [short(x, n), cut(x, n)]));
    }"""
    texts = tab.page.evaluate(cut)
    assert len(texts) == 40 and all(len(t) <= 12 for t in texts)
    for text in texts:
        text.encode()  # fails for a lone half
    assert texts[0] == "😀😀…" and texts[1] == "😀😀" and texts[8] == "a😀…" and "plai…" in texts and "short" in texts


def deep_links(tab):
    """Every page can be opened by its address alone and gives its name to the tab."""
    for page, title in (
        ("overview", "Overview"),
        ("op_profile", "Op profile"),
        ("ops", "Framework ops"),
        ("hlo_ops", "HLO ops"),
        ("roofline", "Roofline"),
        ("kernels", "Kernels"),
        ("memory", "Memory"),
        ("memory_viewer", "Memory viewer"),
        ("graph", "Graph"),
        ("input", "Input pipeline"),
        ("inference", "Inference"),
    ):
        tab.session(GPU, page)
        assert tab.page.title() == f"{title} – {GPU} – xplaned", tab.page.title()
        assert tab.page.inner_text("main h1") == title
        assert tab.page.inner_text("#nav [aria-current=page]") == title
    tab.session("no/such session", "overview")
    assert "no session" in tab.page.inner_text(".problem") and "no/such session" in tab.page.inner_text(
        ".problem"
    )
    tab.session(GPU, "nonsense")
    assert "no page" in tab.page.inner_text(".problem") and not tab.page.query_selector(".problem a.meant")
    for session, page, query, near in (
        (GPU[:-1], "kernels", "", GPU),
        (GPU.rsplit("/", 1)[1], "kernels", "", GPU),  # without its directory
        (GPU, "kernel", "", "kernels"),
        (GPU, "tool:kernel_stat", "", "kernel_stats"),
        (HOSTS, "overview", "host=host-1.cluster.loca", "host-1.cluster.local"),
        (HOSTS, "trace", "host=host-1", "host-1.cluster.local"),
        (HOSTS, "graph", "module=jit_step(10)&node=all-reduce.6", "all-reduce.5"),
    ):
        tab.session(session, page, query)
        tab.page.wait_for_selector(".problem")
        said = tab.page.inner_text(".problem .message")
        assert said.endswith(f'; did you mean "{near}"?'), said
        assert not re.search("[A-Z]+_[A-Z]+|RPC", tab.page.inner_text(".problem")), said
        tab.page.click(".problem a.meant")
        wait_until(
            f"the page of {near}",
            lambda: tab.page.query_selector("main h1") and not tab.page.query_selector(".problem"),
        )
    tab.open("")
    assert tab.page.inner_text("main h1") == "Sessions"
    tab.open("comapre?a=" + HOSTS)  # of no session
    assert tab.page.inner_text(".problem .message") == 'There is no page “comapre”; did you mean "compare"?'
    tab.page.click(".problem a.meant")
    tab.page.wait_for_selector(f"button[aria-label='Remove {HOSTS} from A']")
    # As base/text/near.h: a name with this beginning may be nearer than a mistyped one; in long
    # names the end counts.
    many = ["x" * 80 + end for end in ("_run_b9", "_run_a1_longer", "_run_a2")]
    for given, names, near in (
        ("abcdef", ["abcdxy", "abcdefg"], "abcdefg"),
        ("over", ["overview_page", "ovre"], "ovre"),
        ("x" * 80 + "_run_a1", many, many[2]),
        ("ab", ["abc"], ""),
        ("run03", ["nightly/run03", "run02"], "nightly/run03"),
        ("run04", ["nightly/run03", "run02"], "run02"),
        ("x/run03", ["nightly/run03"], ""),
        ("elsewhere", ["sessions", "captures"], ""),
    ):
        said = tab.page.evaluate(
            "async ([given, names]) => (await import('./lib/near.js')).near(given, names)", [given, names]
        )
        assert said == near, (given, said)


deep_links.allow = ["Failed to load resource"]


def hostile_names(tab):
    """HTML in the names of sessions, hosts, ops, kernels, allocators and tips is text."""
    tab.open("sessions")
    assert any(HOSTILE.split("/")[-1] in n for n in tab.texts(".sessions tbody th")), tab.texts(
        ".sessions tbody th"
    )
    not_hacked(tab)
    for page in ("overview", "op_profile", "ops", "hlo_ops", "roofline", "kernels", "memory", "memory_viewer", "graph", "input", "inference"):
        tab.session(f"cpu/{HOSTILE}", page)
        assert HOSTILE in tab.page.inner_text("#top")
        not_hacked(tab)
    evil = '<img src=x onerror="window.pwned=1"><script>window.pwned=2</script>'

    def poison(value):
        if isinstance(value, str):
            return evil + value
        if isinstance(value, list):
            return [poison(v) for v in value]
        if isinstance(value, dict):
            return {
                k: (
                    v
                    if k
                    in (
                        "id",
                        "type",
                        "timeOffsetPs",
                        "snapshotIndex",
                        "specialIndex",
                        "numOccurrences",
                        "role",
                        "step_time_graph_column_ids",
                        "logicalBufferId",
                    )
                    or (isinstance(v, str) and re.fullmatch(r"-?[\d.]+", v))
                    else poison(v)
                )
                for k, v in value.items()
            }
        return value

    pages = (
        ("overview_page", "overview", TF),
        ("framework_op_stats", "ops", TF),
        ("op_profile", "op_profile", GPU),
        ("kernel_stats", "kernels", FUSED),
        ("memory_profile", "memory", BFC),
        ("memory_viewer", "memory_viewer", GPU),
        ("inference_profile", "inference", "made/serving"),
        ("input_pipeline_analyzer", "input", TF),
    )
    for tool, page, session in pages:
        query = f"/api/v1/tool?session={session.replace('/', '%2F')}&tool={tool}" + (
            "&group_by=program" if tool == "op_profile" else "&module_name=jit__normal(17)" if tool == "memory_viewer" else ""
        )
        real = json.loads(fetch(tab.base, query)[2])
        tab.answer(tool, lambda q, real=real: poison(real))
        tab.session(session, page)
        assert tab.page.locator("main h1").inner_text() != f"{page}: no answer"
        not_hacked(tab)
    assert "window.pwned" in tab.page.inner_text("main"), "shown as text"


def links_of_tips(tab):
    """Only http(s) addresses become links, whatever a tip says."""
    real = json.loads(fetch(tab.base, f"/api/v1/tool?session={TF.replace('/', '%2F')}&tool=overview_page")[2])
    real[3]["rows"] = [
        {"c": [{"v": "doc"}, {"v": v}, {"v": "Links"}]}
        for v in (
            '<a href="javascript:window.pwned=1">one</a>',
            '<a href="https://example.org/x">two</a>',
            '<a href="data:text/html,x">three</a>',
        )
    ]
    tab.answer("overview_page", lambda q: real)
    tab.session(TF, "overview")
    unfold(tab)
    hrefs = tab.page.eval_on_selector_all(".next a", "l => l.map(a => a.getAttribute('href'))")
    assert hrefs == ["https://example.org/x"], hrefs
    assert "one" in tab.page.inner_text(".next") and "three" in tab.page.inner_text(".next")


def csv_is_safe(tab):
    """A cell that a spreadsheet would run is quoted."""
    cols = [
        {"id": "rank", "label": "Rank", "type": "number"},
        {"id": "kernel_name", "label": "Kernel Name", "type": "string"},
        {"id": "total_duration_us", "label": "Total", "type": "number"},
        {"id": "occurrences", "label": "N", "type": "number"},
    ]
    tab.answer(
        "kernel_stats",
        lambda q: {"cols": cols, "rows": [{"c": [{"v": 1}, {"v": '=cmd|"x"'}, {"v": -2.5}, {"v": 1}]}]},
    )
    tab.session(GPU, "kernels")
    with tab.page.expect_download() as save:
        tab.page.click("text=Export CSV")
    table = list(csv.reader(io.StringIO(open(save.value.path(), encoding="utf-8").read())))
    assert any(c == '\'=cmd|"x"' for c in table[1]) and "-2.5" in table[1], table


def warnings_and_errors(tab):
    """Warnings of an answer and errors of the API are said in words, and can be tried again."""
    state = {"n": 0}

    def flaky(route):
        state["n"] += 1
        if state["n"] == 1:
            route.fulfill(
                status=503,
                content_type="application/json",
                headers={"Retry-After": "1"},
                body=json.dumps(
                    {"error": {"code": "RESOURCE_EXHAUSTED", "message": "64 requests are waiting already"}}
                ),
            )
        else:
            r = route.fetch()
            route.fulfill(
                response=r,
                headers={**r.headers, "Xplaned-Warning": "vm%3A%20left%20out%2C%20%3Cb%3Ebroken%3C%2Fb%3E"},
            )

    tab.context.route(lambda u: "tool=overview_page" in u, flaky)
    tab.session(TF, "overview")
    text = tab.page.inner_text(".problem")
    assert "64 requests are waiting already" in text and "Try again in a moment" in text, text
    tab.page.click("button >> text=Try again")
    tab.page.wait_for_selector("h1 >> text=Overview")
    assert tab.page.inner_text(".note") == "Warning: vm: left out, <b>broken</b>"
    tab.context.route(lambda u: "tool=op_profile" in u, lambda route: route.abort())
    tab.session(TF, "op_profile")
    said = tab.page.inner_text(".problem")
    assert "cannot be reached" in said and "when it is back" in said and "not ready" not in said, said


warnings_and_errors.allow = ["Failed to load resource"]


def not_listed_yet(tab):
    """A daemon that still lists its sessions, of a bucket that does not answer, is neither stopping nor out of reach."""
    with socket.create_server(("127.0.0.1", 0)) as bucket, tempfile.TemporaryDirectory() as state:
        words = ["--logdir", "s3://profiles/team", "--object-endpoint", f"http://127.0.0.1:{bucket.getsockname()[1]}",
                 "--object-anonymous", "--state-dir", state, *ANY_PORTS]
        log = pathlib.Path(state) / "log"
        with open(log, "w", encoding="utf-8") as out:
            daemon = subprocess.Popen([pathlib.Path(sys.argv[1]) / "server" / "xplaned", *words], stdout=out, stderr=out)
        try:
            def listens():
                assert daemon.poll() is None, log.read_text()
                return listening(log)

            wait_until("it listens", listens)
            tab.base = listening(log)
            assert fetch(tab.base, "/api/v1/tools")[0] == 200
            tab.open("sessions")
            said = tab.page.inner_text(".problem")
            assert "still being listed for the first time" in said and "not ready yet" in said, said
            assert "reach" not in said and "when it is back" not in said, said
        finally:
            daemon.terminate()
            daemon.wait(20)


not_listed_yet.allow = ["Failed to load resource"]


def empty_states(tab):
    tab.session(EMPTY, "ops")
    assert "No ops in this profile" in tab.page.inner_text(".empty")
    tab.session(EMPTY, "op_profile")
    assert "No op times" in tab.page.inner_text(".empty")
    tab.context.route(
        lambda u: "/api/v1/sessions" in u,
        lambda route: route.fulfill(status=200, content_type="application/json", body='{"sessions":[]}'),
    )
    tab.open("sessions")
    assert "No profiles here yet" in tab.page.inner_text(".empty") and "--logdir" in tab.page.inner_text(
        ".empty"
    )


def server_page(tab):
    tab.open("server")
    assert len(tab.texts("table tr")) >= 2
    rows = dict(r.partition("\t")[::2] for r in tab.texts("table tr"))
    counts = [v for k, v in rows.items() if "from memory" in k]
    assert counts and all(v.replace(",", "").isdigit() for v in counts), rows  # answers, and no bytes
    assert any(re.fullmatch(r"[\d.]+ MiB", v) for k, v in rows.items() if "resident bytes" in k), rows
    heads = tab.texts(".sections h2")
    assert heads[0] == "Server" and {"Answers", "Memory", "Store"} < set(heads) and "requests" in rows, (heads, rows)
    assert any(v[:3] == "202" for k, v in rows.items() if k == "started"), rows


def any_other_tool(tab):
    """A tool that has no page of its own is shown as tables, by the list of the server."""
    titles = {"overview_page": "Overview page", "framework_op_stats": "Framework op stats", "pod_viewer": "Pod viewer"}
    tab.context.route(
        lambda u: "/api/v1/tools?session=" in u,
        lambda route: route.fulfill(
            status=200,
            content_type="application/json",
            body=json.dumps(
                {"tools": [{"name": n, "title": t, "options": [], "tables": []} for n, t in titles.items()]}
            ),
        ),
    )
    tab.answer(
        "pod_viewer",
        lambda q: {
            "cols": [
                {"id": "a", "label": "A", "type": "string"},
                {"id": "b", "label": "B", "type": "number"},
            ],
            "rows": [{"c": [{"v": "x"}, {"v": 2}]}, {"c": [{"v": "y"}, None]}],
        },
    )
    tab.session(GPU, "overview")
    assert tab.texts("#nav a") == ["Overview", "Framework ops", "Pod viewer"], tab.texts("#nav a")
    tab.page.click("#nav >> text=pod viewer")
    tab.page.wait_for_selector("table.data")
    assert tab.texts("h1") == ["Pod viewer"], tab.texts("h1")
    assert tab.texts("table.data tbody tr:not(.spacer)") == ["x\t2", "y\t–"], tab.texts(
        "table.data tbody tr:not(.spacer)"
    )


def lists_are_tables(tab):
    """Answers that are no tables are shown as those that they are."""
    rows = lambda: whole_rows(tab, "table.data tbody tr:not(.spacer)")
    answer = json.loads(fetch(tab.base, f"/api/v1/tool?session={HOSTS}&tool=events")[2])
    tab.session(HOSTS, "tool:events")
    tab.page.wait_for_selector("table.data")
    first = rows()[0].split("\t")
    assert first[:2] == [answer["rows"][0]["name"], str(answer["rows"][0]["count"])] and first[2] == "5.44 s", first
    tab.page.click("table.data th:has-text('Count') button")
    most = max(r["count"] for r in answer["rows"])
    wait_until("sorted by count", lambda: rows()[0].split("\t")[1] in (str(most), f"{most:,}"))
    tab.session(HOSTS, "tool:pod_viewer")
    tab.page.wait_for_selector("table.data")
    assert "80 rows" in tab.page.inner_text(".datatable") and rows()[0].startswith("0\t1\thost-0.cluster.local\tDevice collective"), rows()[0]
    tab.session("made/counters", "tool:kernel_utilization")
    tab.page.wait_for_selector("table.data")
    assert rows()[0] == "3\tTPU v6 Lite\t1\tMXU\t25.0 %\t1.00 ms", rows()[0]
    tab.session(HOSTS, "tool:smart_suggestion")
    assert "Nothing of this in the profile" in tab.page.inner_text(".empty") and tab.page.locator("a[download]").count() == 1


def units_of_any_table(tab):
    """Fractions and percentages, times and bytes as people read them; the export names the unit."""
    columns = [("total_time", "Total time (us)", 7908.309), ("rank", "Rank", 3), ("dma_stall_percent", "%time stalled by DMA", 0.055),
               ("total_self_time_percent", "Total self time (%)", 21.38)]
    tab.answer("hlo_stats", lambda q: {
        "cols": [{"id": i, "label": l, "type": "number"} for i, l, _ in columns],
        "rows": [{"c": [{"v": v} for _, _, v in columns]}]})
    tab.session(GPU, "tool:hlo_stats")
    tab.page.wait_for_selector("table.data")
    assert tab.texts("table.data tbody tr:not(.spacer)") == ["7.91 ms\t3\t5.5 %\t21.4 %"], tab.texts(
        "table.data tbody tr:not(.spacer)")


def headers_of_the_pages(tab):
    status, headers, body = fetch(tab.base, "/ui/")
    h = {k.lower(): v for k, v in headers.items()}
    policy = h.get("content-security-policy", "")
    assert status == 200 and h["content-type"].startswith("text/html")
    assert "script-src 'self'" in policy and "unsafe" not in policy and "default-src 'none'" in policy, policy
    for name in re.findall(r'(?:src|href)="([^"]+)"', body.decode()):
        status, _, _ = fetch(tab.base, f"/ui/{name}")
        assert status == 200, name
    assert fetch(tab.base, "/ui/no-such-file.js")[0] == 404


def nothing_from_outside(tab):
    asked = []
    tab.page.on("request", lambda r: asked.append(r.url))
    tab.session(TF, "overview")
    tab.session(GPU, "op_profile")
    outside = [u for u in asked if not u.startswith(tab.base) and not u.startswith(("blob:", "data:"))]
    assert not outside, outside


TESTS = [
    sessions_list,
    sessions_states,
    sessions_facts,
    sessions_of_pytorch,
    navigation_folds,
    table_columns,
    overview_steps,
    overview_outliers,
    overview_hosts,
    overview_verdict,
    overview_all_steps,
    overview_step_to_trace,
    overview_nothing_found,
    input_verdicts_agree,
    whose_verdict,
    overview_without_steps,
    overview_steps_of_some,
    overview_without_ops,
    ops_table,
    ops_scrolls_to_the_end,
    a_table_of_200000_rows,
    op_profile_flame,
    op_profile_widths,
    kernels_page,
    compare_page,
    base_session,
    names_of_compare,
    compare_bundles,
    bundles_have_pages,
    launch_queue,
    hlo_ops_page,
    roofline_page,
    roofline_without_stray_points,
    roofline_of_a_cpu,
    peaks_of_a_cpu,
    memory_page,
    memory_untold,
    memory_of_another_host,
    input_page,
    hosts_choice,
    one_host_at_a_time,
    themes,
    accessible,
    keyboard_only,
    deep_links,
    texts_are_cut_between_characters,
    hostile_names,
    links_of_tips,
    csv_is_safe,
    warnings_and_errors,
    not_listed_yet,
    empty_states,
    server_page,
    any_other_tool,
    lists_are_tables,
    units_of_any_table,
    headers_of_the_pages,
    nothing_from_outside,
]
