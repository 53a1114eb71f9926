# SPDX-License-Identifier: Apache-2.0
"""Our pages of HLO programs: their memory and graphs, and the links between pages that show one."""

import json
import re
import urllib.parse

from harness import fetch, wait_until
from test_pages import GPU, not_hacked, tool_answer, whole_rows

MIB = 2**20
FUSION = "jit__normal(17)"


def program(label):
    return "module=" + urllib.parse.quote(label)


def rows(tab, caption):
    return whole_rows(tab, f"table[aria-label='{caption}'] tbody tr:not(.spacer)")


def choose_program(tab, label, select="#program"):
    tab.page.select_option(select, label)
    tab.ready()


def memory_viewer(tab):
    """The peak's buffers as boxes that the keys and the mouse read; who holds them; another program beside it."""
    tab.session(GPU, "memory_viewer")
    choose_program(tab, FUSION)
    wait_until("the address names the program", lambda: tab.params().get("module") == FUSION)
    tab.page.wait_for_selector(".boxes")
    truth = tool_answer(tab, GPU, "memory_viewer", "&module_name=" + urllib.parse.quote(FUSION))
    largest = max(truth["maxHeap"], key=lambda b: b["logicalBufferSizeMib"])
    assert largest["logicalBufferSizeMib"] == 8 and "8.00 MiB" in tab.texts(".tile")[0], tab.texts(".tile")
    card = tab.page.locator("section.card", has=tab.page.locator(".boxes")).first
    tab.page.focus(".boxes >> nth=0")
    tab.page.keyboard.press("ArrowRight")
    said = card.locator(".readout").inner_text()
    assert said.startswith(f"{largest['instructionName']}: 8.00 MiB, 100.0 %, {largest['shapeString']}"), said
    tab.page.keyboard.press("End")
    assert "small (" in card.locator(".readout").inner_text()
    tab.page.keyboard.press("Home")
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector(".detail:not([hidden])")
    assert tab.page.inner_text(".detail h2") == largest["instructionName"]
    assert f"8.00 MiB ({8 * MIB:,} bytes)" in tab.page.inner_text(".detail")
    tab.page.click(".detail button[aria-label=Close]")
    card.locator(".box").first.click()
    tab.page.wait_for_selector(".detail:not([hidden])")
    assert tab.page.inner_text(".detail h2") == largest["instructionName"]
    assert rows(tab, "Buffers at the peak")[0].startswith(largest["instructionName"])


def memory_viewer_holders(tab):
    tab.session(GPU, "memory_viewer", program(FUSION))
    truth = tool_answer(tab, GPU, "memory_viewer", "&view=lines&module_name=" + urllib.parse.quote(FUSION))
    held = rows(tab, "What holds the peak")
    assert len(held) == len(truth["rows"]) and held[0].startswith("(Output)\t8.00 MiB\t100.0 %"), held
    assert held[2].startswith("…/traces/generate_attention_trace.py:75\t4 B"), held
    tab.page.select_option("#by", "ops")
    wait_until("ops", lambda: tab.params().get("by") == "ops")
    tab.ready()
    wait_until("rows are ops", lambda: "loop_convert_fusion" in rows(tab, "What holds the peak")[0])
    # The other program's output has twice the size.
    choose_program(tab, "jit__normal(11)", "#other")
    wait_until("beside another", lambda: any("Bytes more than" in x for x in tab.texts("th")))
    changes = [r.split("\t")[-2] for r in rows(tab, "What holds the peak")]
    assert "-16.0 MiB" in changes and "8.00 MiB" in changes, changes
    tab.page.locator("table[aria-label='What holds the peak']").focus()
    tab.page.keyboard.press("ArrowDown")
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector(".detail:not([hidden])")
    assert "Buffers of the other" in tab.page.inner_text(".detail")


def memory_viewer_over_time(tab):
    """The heap and the places of buffers over the program's order."""
    tab.session(GPU, "memory_viewer", program(FUSION))
    heap = tab.page.locator("section.card", has_text="Heap over the program")
    names = tool_answer(tab, GPU, "memory_viewer", "&module_name=" + urllib.parse.quote(FUSION))["hloInstructionNames"]
    assert len(names) == 3
    heap.locator(".chart").focus()
    tab.page.keyboard.press("Home")
    assert heap.locator(".readout").inner_text() == f"1: Heap 8.00 MiB, at {names[0]}"
    tab.page.keyboard.press("ArrowRight")
    assert heap.locator(".readout").inner_text() == f"2: Heap 8.00 MiB, at {names[1]}"
    places = tab.page.locator("section.card", has_text="Where buffers lie")
    places.locator(".boxes").focus()
    tab.page.keyboard.press("End")
    said = places.locator(".readout").inner_text()
    assert said.startswith("loop_xor_fusion: 4 B at offset 0 B, from "), said
    places.locator(".box:not(.frame)").first.click()
    tab.page.wait_for_selector(".detail:not([hidden])")
    assert "generate_attention_trace.py:75" in tab.page.inner_text(".detail")
    tab.page.select_option("#space", "1")
    tab.page.wait_for_selector(".empty")
    assert tab.params()["space"] == "1" and "nothing in this memory" in tab.page.inner_text(".empty")
    tab.session(GPU, "memory_viewer", program("no such program(1)"))
    assert "not in the profile" in tab.page.inner_text(".empty") and not tab.page.query_selector(".meant")
    for wrong in ("jit_nromal", "jit__normal(71)"):
        tab.session(GPU, "memory_viewer", program(wrong))
        assert f"no “{wrong}”; did you mean" in tab.page.inner_text(".empty")
        tab.page.click(".empty a.meant")
        tab.page.wait_for_selector(".boxes")
        assert tab.params()["module"].startswith("jit__normal(")
    tab.session("accel/gpu_multi_worker", "memory_viewer")
    assert "No HLO programs" in tab.page.inner_text(".empty")


def painted(tab):
    tab.page.wait_for_selector(".graph-canvas[data-painted]")


def view(tab):
    """(scale, left, top) of the picture."""
    return tuple(float(v) for v in tab.page.get_attribute(".graph-canvas", "data-view").split())


def count_of(tab):
    """Ops in the picture, as the page says; 0 while there is none."""
    found = re.search(r"([\d,]+) ops?", " ".join(tab.texts(".graph-note")))
    return int(found[1].replace(",", "")) if found else 0


def program_text(tab):
    """{instruction: its line} of FUSION."""
    query = urllib.parse.urlencode({"session": GPU, "tool": "graph_viewer", "type": "short_txt", "module_name": FUSION})
    lines = fetch(tab.base, f"/api/v1/tool?{query}")[2].decode().splitlines()
    return {x.split(" = ")[0].replace("ROOT ", "").strip(): x.strip() for x in lines if " = " in x}


def graph(tab):
    """Keys go along operands and users; find, a click and Enter show an op in full, with its text and links."""
    text = program_text(tab)
    tab.session(GPU, "graph", program(FUSION))
    painted(tab)
    readout = lambda: tab.page.inner_text(".graph .readout")  # noqa: E731
    assert count_of(tab) == 202, tab.page.inner_text(".graph-note")
    tab.page.focus(".graph-canvas")
    tab.page.keyboard.press("ArrowDown")
    assert readout() == "key.1, Parameter 0, u32[2]", readout()
    tab.page.keyboard.press("ArrowDown")
    first = readout()
    assert first.startswith("param_0."), first
    tab.page.keyboard.press("ArrowUp")
    assert readout().startswith("key.1,")
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector(f"dd >> text='{text['key.1']}'")
    assert "loop_xor_fusion" in tab.page.inner_text(".detail") and "Users" in tab.page.inner_text(".detail")
    # Found by its name; then a real click on it, where it now stands.
    tab.page.fill("#find", "xor.73")
    wait_until("names are offered", lambda: tab.page.locator("#ops option[value='xor.73.1']").count() == 1)
    tab.page.fill("#find", "xor.73.1")
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector(f"dd >> text='{text['xor.73.1']}'")
    assert readout().startswith("xor.73.1,")
    tab.page.click(".detail button[aria-label=Close]")
    tab.page.keyboard.press("Escape")
    box = tab.page.locator(".graph-canvas").bounding_box()
    tab.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    tab.page.wait_for_selector(".detail:not([hidden])")
    assert tab.page.inner_text(".detail h2") == "xor.73.1"
    tab.page.wait_for_selector(f"dd >> text='{text['xor.73.1']}'")
    assert "generate_attention_trace.py:75" in tab.page.inner_text(".detail")
    # An operand, then its neighbours.
    tab.page.click(".detail button.link >> text=xor.72.3")
    wait_until("the operand is shown", lambda: tab.page.inner_text(".detail h2") == "xor.72.3")
    tab.page.fill("#find", "erf_inv.60.3")
    tab.page.click("button >> text=Find")
    wait_until("another op", lambda: tab.page.inner_text(".detail h2") == "erf_inv.60.3")
    tab.page.click(".detail a >> text=What is around it")
    wait_until("around it", lambda: tab.params().get("node") == "erf_inv.60.3" and 1 < count_of(tab) < 202)
    tab.ready()
    painted(tab)
    assert readout().startswith("erf_inv.60.3,")
    near = count_of(tab)
    tab.page.select_option("#width", "1")
    wait_until("fewer ops", lambda: tab.params().get("width") == "1" and 1 < count_of(tab) < near)
    tab.page.click("button >> text=Whole program")
    wait_until("all of it", lambda: "node" not in tab.params())


def graph_first_look(tab):
    """A graph that only fits with texts below 8 px, of 12, begins with its first ops."""
    tab.session(GPU, "graph", program("jit__reduce_max(49)"))
    painted(tab)
    first = view(tab)[0]
    tab.page.focus(".graph-canvas")
    tab.page.keyboard.press("0")
    wait_until("all of it", lambda: view(tab)[0] * 12 < 8)
    assert first * 12 >= 8, first


def graph_moves(tab):
    """Wheel, drag, buttons and keys zoom and move; fusions open and close."""
    tab.session(GPU, "graph", program(FUSION))
    painted(tab)
    box = tab.page.locator(".graph-canvas").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    before = view(tab)
    tab.page.mouse.move(x, y)
    tab.page.mouse.wheel(0, -120)
    wait_until("nearer", lambda: view(tab)[0] > before[0] * 1.2)
    before = view(tab)
    tab.page.mouse.down()
    tab.page.mouse.move(x - 90, y - 60, steps=4)
    tab.page.mouse.up()
    wait_until("moved", lambda: abs(view(tab)[1] - before[1] - 90 / before[0]) < 2 and abs(view(tab)[2] - before[2] - 60 / before[0]) < 2)
    assert tab.page.locator(".detail:not([hidden])").count() == 0, "a drag is no click"
    tab.page.focus(".graph-canvas")
    tab.page.keyboard.press("0")
    wait_until("all of it", lambda: view(tab)[0] < 0.1)
    small = view(tab)[0]
    tab.page.keyboard.press("+")
    wait_until("nearer by key", lambda: view(tab)[0] > small * 1.2)
    tab.page.click("button[aria-label='Zoom out']")
    wait_until("farther", lambda: abs(view(tab)[0] - small) < small * 0.01)
    tab.page.uncheck("#fusions")
    wait_until("the address says so", lambda: tab.params().get("fusions") == "folded")
    # The address changes before the picture that it names has come.
    wait_until("fusions are drawn without their contents", lambda: "without their contents" in " ".join(tab.texts(".graph-note")))
    assert count_of(tab) == 3


def large_drawing(n):
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{n * 6}" height="{n * 2}" viewBox="0 0 9 9">']
    for i in range(1, n):
        a, b = (i // 2 % 60 * 170, i // 2 // 60 * 100 + 57), (i % 60 * 170, i // 60 * 100)
        out.append(f'<g id="edge{i}" class="edge">\n<title>op.{i // 2} -&gt; op.{i}</title>\n<path d="M{a[0]}.0,{a[1]}.0C{a[0]}.0,{a[1]}.5 {b[0]}.0,{b[1]}.5 {b[0]}.0,{b[1]}.0" marker-end="url(#full)"/></g>')
    for i in range(n):
        x, y = i % 60 * 170, i // 60 * 100
        out.append(f'<g id="node{i}" class="node" data-op="op.{i}">\n<title></title>\n<rect x="{x}.0" y="{y}.0" width="149.0" height="57.0" fill="white" stroke="#9e9e9e" />\n<g fill="black"><text x="{x + 75}" y="{y + 17}"><tspan font-weight="bold">op.{i}</tspan></text>\n<text x="{x + 75}" y="{y + 32}">multiply</text>\n</g></g>')
    return "\n".join(["<!DOCTYPE html><html><body>", *out, "</svg></body></html>"])


def graph_large(tab):
    """A program of 5,000 ops: folded first, and said so; soon there; what takes long can be cancelled."""
    asked, hang, drawing = [], [], large_drawing(5000)
    tab.answer("hlo_modules", lambda q: [{"module": "big(1)", "name": "big", "host": "h", "program_id": "1", "bytes": 1, "computations": 1, "instructions": 5000}])

    def handle(route):
        asked.append(urllib.parse.parse_qs(urllib.parse.urlsplit(route.request.url).query))
        if not hang:
            route.fulfill(status=200, content_type="text/html", body=drawing)

    tab.context.route(lambda url: "tool=graph_viewer" in url, handle)
    tab.session(GPU, "graph")
    painted(tab)
    assert asked[0]["merge_fusion"] == ["true"] and asked[0]["module_name"] == ["big(1)"], asked
    assert "as the program is large" in tab.page.inner_text(".graph-note")
    tab.page.check("#fusions")
    wait_until("open", lambda: tab.params().get("fusions") == "open" and asked[-1]["merge_fusion"] == ["false"])
    tab.ready()
    painted(tab)
    assert count_of(tab) == 5000
    times = []  # the best of up to ten: other programs on the machine only ever add
    while len(times) < 10 and min(times, default=3000) > 2000:
        tab.page.reload()
        painted(tab)
        times.append(tab.page.evaluate("performance.getEntriesByName('graph-shown')[0].startTime"))
    assert min(times) <= 2000, times
    tab.page.focus(".graph-canvas")
    tab.page.keyboard.press("0")
    wait_until("all in sight", lambda: view(tab)[0] < 0.1)
    paints = []
    for _ in range(10):
        tab.page.keyboard.press("Shift+ArrowDown")
        tab.page.wait_for_timeout(60)
        paints.append(int(tab.page.get_attribute(".graph-canvas", "data-painted")))
    assert min(paints) <= 60, paints
    hang.append(True)
    failed = []
    tab.page.on("requestfailed", lambda r: failed.append(r.url))
    tab.page.evaluate("location.hash = location.hash.replace('fusions=open', 'fusions=folded')")
    tab.page.click("#cancel")
    wait_until("the request ended", lambda: any("type=graph" in u for u in failed))
    assert "Cancelled" in tab.page.inner_text(".graph-card")
    hang.clear()
    tab.page.click("button >> text=Lay it out again")
    painted(tab)


def graph_refused(tab):
    """What cannot be drawn is said in words; names are text."""
    tab.session(GPU, "graph", program(FUSION) + "&node=nonsense")
    tab.page.wait_for_selector(".graph-card .problem")
    assert "no instruction or computation" in tab.page.inner_text(".graph-card")
    evil = "&lt;img src=x onerror=window.pwned=1&gt;"
    drawing = large_drawing(3).replace("op.1<", f"{evil}<").replace('data-op="op.1"', f'data-op="{evil}"')
    tab.context.route(lambda url: "type=graph" in url, lambda route: route.fulfill(status=200, content_type="text/html", body=drawing))
    tab.session(GPU, "graph", program(FUSION))
    painted(tab)
    tab.page.focus(".graph-canvas")
    tab.page.keyboard.press("ArrowRight")
    tab.page.keyboard.press("ArrowRight")
    assert tab.page.inner_text(".graph .readout").startswith("<img src=x"), tab.page.inner_text(".graph .readout")
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector(".detail:not([hidden])")
    not_hacked(tab)


def links(tab):
    """From a row of ops, a point of the roofline, an op of the profile and a buffer to the graph of what is around it."""

    def to_graph(op):
        tab.page.wait_for_selector(".detail:not([hidden]), .op-detail")
        tab.page.locator(".detail:not([hidden]) a, .op-detail a", has_text="Graph").first.click()
        wait_until("the graph's page", lambda: "/graph" in tab.hash() and tab.params().get("node") == op)
        tab.ready()
        painted(tab)
        assert tab.page.inner_text(".graph .readout").startswith(f"{op}, "), tab.page.inner_text(".graph .readout")

    tab.session(GPU, "hlo_ops", "q=gemm_fusion_dot_general.1")
    tab.page.locator("table.data tbody tr:not(.spacer)").first.click()
    text = tab.page.inner_text(".detail")
    assert "generate_attention_trace.py:26:11\n" in text and "<div" not in text, text
    assert "360 µs" in text, text
    to_graph("gemm_fusion_dot_general.1")
    assert tab.params()["program"] == "59" and "jit_matmul(59)" in tab.page.locator("#program").input_value()
    tab.page.focus(".graph-canvas")
    tab.page.keyboard.press("Enter")
    tab.page.locator(".detail a", has_text="HLO ops").click()
    tab.page.wait_for_selector("h1 >> text=HLO ops")
    assert tab.params()["q"] == "gemm_fusion_dot_general.1"
    tab.session(GPU, "roofline", "q=gemm_fusion_dot_general.1")
    tab.page.focus("table.data")
    tab.page.keyboard.press("ArrowDown")
    tab.page.keyboard.press("Enter")
    to_graph("gemm_fusion_dot_general.1")
    tab.session(GPU, "op_profile", "node=0.0.0")
    to_graph(tab.page.inner_text(".op-detail h2") if tab.page.locator(".op-detail h2").count() else "")
    tab.session(GPU, "memory_viewer", program(FUSION))
    tab.page.focus(".boxes >> nth=0")
    tab.page.keyboard.press("ArrowRight")
    tab.page.keyboard.press("Enter")
    to_graph("loop_convert_fusion")


def occurrences(tab):
    """Rows of ops, kernels and steps lead to where they are in the trace, XLA's ops to the op profile, too."""

    def found(text):
        tab.page.wait_for_selector(".trace[data-drawn]")
        wait_until("matches", lambda: re.match(r"[1-9][0-9,]* match", tab.page.inner_text(".counter")))
        assert tab.params()["q"] == text, tab.params()

    def first_row(page, query):
        tab.session(GPU, page, query)
        tab.page.focus("table.data")
        tab.page.keyboard.press("ArrowDown")
        tab.page.keyboard.press("Enter")
        tab.page.wait_for_selector(".detail:not([hidden])")

    first_row("ops", "q=jit(matmul)/dot_general")
    tab.page.locator(".detail a", has_text="Trace").click()
    found("jit(matmul)/dot_general")
    first_row("kernels", "q=loop_convert_fusion")
    name = tab.page.inner_text(".detail h2")
    tab.page.locator(".detail a", has_text="Trace").click()
    found(name)
    first_row("hlo_ops", "q=gemm_fusion_dot_general.1")
    tab.page.locator(".detail a", has_text="Op profile").click()
    tab.page.wait_for_selector(".op-detail h2 >> text=gemm_fusion_dot_general.1")
    tab.page.locator(".op-detail a", has_text="Trace").click()
    found("gemm_fusion_dot_general.1")
    for session, name in (("cpu/jax_4hosts", "train 3"), ("cpu/tf_keras_tensorboard", "Profiled batch 7")):
        tab.session(session, "input")
        row = tab.page.locator("table.data tbody tr", has_text=re.compile(f"^{name}"))
        row.first.click()
        tab.page.wait_for_selector(".detail:not([hidden])")
        assert tab.page.inner_text(".detail h2") == f"Step {name}"
        tab.page.locator(".detail a", has_text="Trace").click()
        tab.page.wait_for_selector(".trace[data-drawn]")
        begin, end = (float(x) for x in tab.params()["t"].split("~"))
        host = json.loads(fetch(tab.base, f"/api/v1/tool?session={session}&tool=time_breakdown&view=steps")[2])["hosts"][0]
        at = host["steps"]["step"].index(int(name.split()[-1]))
        assert tab.params()["host"] == host["host"] and begin < host["steps"]["begin_ps"][at] / 1e9 < end, (tab.params(), host["steps"])
        assert end - begin < 1.3 * host["steps"]["wall_ps"][at] / 1e9
    tab.session("cpu/tf_keras_tensorboard", "overview")
    tab.page.wait_for_selector(".longest a")
    number = re.search(r"step (\d+)", tab.texts(".longest a")[0]).group(1)
    tab.page.locator(".longest a").first.click()
    tab.page.wait_for_selector(".trace[data-drawn]")
    begin, end = (float(x) for x in tab.params()["t"].split("~"))
    steps = json.loads(fetch(tab.base, "/api/v1/tool?session=cpu%2Ftf_keras_tensorboard&tool=time_breakdown&view=steps")[2])["hosts"][0]["steps"]
    at = steps["step"].index(int(number))
    assert steps["wall_ps"][at] == max(steps["wall_ps"]), number
    assert begin < steps["begin_ps"][at] / 1e9 < (steps["begin_ps"][at] + steps["wall_ps"][at]) / 1e9 < end, (begin, end)


def inference(tab):
    """Latencies by percentile, what an average request is made of, batches and tensors, of profiles made by made_profiles.c."""
    tab.session("made/serving", "inference")
    tiles = dict(x.split("\n")[:2] for x in tab.texts(".tile"))
    # Of two requests of a batch the first waits 12 ms for it and the second 7; it runs for 20 ms.
    assert tiles["Average latency"] == "29.5 ms" and tiles["p50"] == "32.0 ms" and "p99" not in tiles, tiles
    assert tiles["Largest batch"] == "8" and tiles["Batches each second"].startswith("20."), tiles
    said = tab.page.locator(".parts").get_attribute("aria-label")
    assert "Waiting for a batch 9.50 ms (32.2 %)" in said and "Device compute 4.00 ms" in said, said
    tab.page.focus(".chart")
    tab.page.keyboard.press("ArrowRight")
    said = tab.page.inner_text(".readout")
    assert said.startswith("p50: 32.0 ms") and "Waiting for a batch 12.0 ms" in said, said
    assert len(rows(tab, "Requests")) == 5 and rows(tab, "Requests")[-1].startswith("Average\tN/A\t29.5 ms")
    tab.page.select_option("#batches", "Padding amount")
    wait_until("the address says so", lambda: tab.params().get("batches") == "Padding amount")
    tab.ready()
    # The batches with the least padding, one row, come first.
    wait_until("another order", lambda: "".join(rows(tab, "Batches")[:1]).split("\t")[3:4] == ["1"])
    tab.page.locator("table[aria-label=Batches]").focus()
    tab.page.keyboard.press("ArrowDown")
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector(".detail:not([hidden])")
    assert "Batching efficiency\n87.5 %" in tab.page.inner_text(".detail"), tab.page.inner_text(".detail")
    tensors = rows(tab, "Tensor patterns")
    assert any("Linearize [2,3] {1,0}\t33\t1.00 ms" in r for r in tensors) and not any("<br>" in r for r in tensors), tensors
    tab.session("made/serving_runs", "inference")
    tiles = dict(x.split("\n")[:2] for x in tab.texts(".tile"))
    assert tiles["p50"] == "60.0 ms" and tiles["p99"] == "109 ms", tiles
    assert tab.page.locator("table[aria-label=Batches]").count() == 0
    tab.session(GPU, "inference")
    assert "No requests of a model server" in tab.page.inner_text(".empty")


graph_refused.allow = ["Failed to load resource"]
graph_large.allow = ["Failed to load resource"]

TESTS = [memory_viewer, memory_viewer_holders, memory_viewer_over_time, graph, graph_first_look, graph_moves, graph_large, graph_refused, links, occurrences, inference]
