# SPDX-License-Identifier: Apache-2.0
"""What people read: units in exports, words of their device and framework, none of the protocol's."""

import csv
import io
import re
import statistics

import synthetic
from harness import fetch, wait_until
from test_pages import FUSED, GPU, HOSTS, KERAS, TF, tool_answer, unfold
from test_trace import open_small, point

RPC_WORDS = re.compile(r"\b[A-Z]{2,}_[A-Z_]+\b|\bRPC|gRPC|\bOK\b|protobuf|INTERNAL|UNAVAILABLE")
TIMED = re.compile(r"time|latency|duration|^shortest|^longest|compute|device to|launch$|communication|input$|output$|compilation|all others", re.I)
UNITS = re.compile(r"\((us|µs|ms|ps|bytes|%|fraction of 1|unix ms|G[Bi]*[^)]*/s[^)]*|FLOPs?/[^)]*|J)\)$")


def exports(tab):
    """The header rows of all exports of the page."""
    out = []
    for button in tab.page.get_by_role("button", name="Export CSV").all():
        with tab.page.expect_download() as save:
            button.click()
        with open(save.value.path(), encoding="utf-8", newline="") as f:
            out.append(next(csv.reader(io.StringIO(f.read()))))
    return out


def exports_name_units(tab):
    """Every column of times, bytes and shares says in what they are, and says it once."""
    wanted = {
        (HOSTS, "input"): ["Device compute (ms)", "Step time (ms)"],
        (TF, "input"): ["Total Time (ms)", "Share of input time (fraction of 1)", "Own share of input time (fraction of 1)"],
        (FUSED, "kernels"): ["Total time (us)", "Longest (us)", "Shared memory (bytes)", "Occupancy (%)"],
        (KERAS, "ops"): ["Total time (us)", "Self time (us)", "Device share (fraction of 1)"],
        (GPU, "hlo_ops"): ["Self time (us)", "Share (%)"],
        (GPU, "roofline"): ["Self time (us)"],
        (GPU, "memory"): ["Allocated (bytes)", "Requested (bytes)"],
        (HOSTS, "tool:collectives"): ["Size (bytes)", "Total time (us)"],
    }
    for (session, page), heads in wanted.items():
        tab.session(session, page)
        tab.page.wait_for_selector("table.data")
        found = [x for row in exports(tab) for x in row]
        for head in heads:
            assert head in found, (page, head, found)
        for head in found:
            assert not re.search(r"\((\w+)\) \(\1\)", head), (page, head)
            if TIMED.search(head) and head not in ("%time stalled by DMA", "Outside Compilation"):
                assert UNITS.search(head), (page, head)


def words_of_the_device(tab):
    """An AMD GPU has no TensorCores, a CPU is none of XProf's CPU_ONLY, a decimal number is not "Hex"."""
    for session, page in ((GPU, "kernels"), (GPU, "ops"), (GPU, "overview"), (HOSTS, "overview"), (HOSTS, "op_profile")):
        tab.session(session, page)
        tab.page.wait_for_selector("main h2, table.data")
        text = tab.page.inner_text("main")
        assert not re.search("TensorCore|CPU_ONLY", text), (page, re.findall(".*(?:TensorCore|CPU_ONLY).*", text))
    tab.session(GPU, "kernels")
    assert "On matrix units" in tab.page.inner_text(".tiles") or "ON MATRIX UNITS" in tab.page.inner_text(".tiles")
    tab.session("made/counters", "tool:perf_counters")
    tab.page.wait_for_selector("table.data")
    heads = tab.texts("table.data thead th")
    assert "Value" in heads and not any("Hex" in x for x in heads), heads
    rows = tab.texts("table.data tbody tr:not(.spacer)")
    assert any("1,750,000" in r for r in rows) and not any("iB" in r for r in rows), rows


def advice_fits_the_framework(tab):
    """No advice about tf.data for a JAX program, in any page; TensorFlow's stays, as text and not as HTML."""
    told = ("tf.data", "TF Profiler", "TF2 Profiler", "<a ", "num_parallel_calls")
    assert tool_answer(tab, HOSTS, "findings")["framework"] == "jax"
    tab.session(HOSTS, "input")
    wait_until("the advice is gone", lambda: not any(x in tab.page.inner_text("main") for x in told))
    unfold(tab)
    # Advice for anybody stays where one line beside it is TensorFlow's.
    assert [x.split(":")[0] for x in tab.texts("main li") if ":" in x] == ["Enqueuing data"], tab.texts("main li")
    tab.session(HOSTS, "overview")
    wait_until("the advice is gone", lambda: not any(x in tab.page.inner_text("main") for x in told))
    tab.page.click(".next summary")
    assert "Next steps for reducing the Device time" in tab.page.inner_text(".next")
    assert all(tab.texts(".next li")), "no tip without a text"
    tab.session("cpu/jax_empty", "overview")  # of which programs alone are known
    wait_until("the advice is gone", lambda: not any(x in tab.page.inner_text("main") for x in told))
    tab.session(TF, "input")
    unfold(tab)
    assert "tf.data API" in tab.page.inner_text("main")
    assert len([x for x in tab.texts("main li") if "data" in x and ":" in x]) == 5, tab.texts("main li")
    answer = tool_answer(tab, HOSTS, "input_pipeline_analyzer")
    for table in answer:
        if [c["id"] for c in table["cols"]] == ["link"]:
            table["rows"] = table["rows"][1:]
    tab.answer("input_pipeline_analyzer", lambda q: answer)
    tab.session(HOSTS, "input")
    wait_until("where nothing is left no heading is", lambda: "What can be done" not in tab.page.inner_text("main"))
    # As long as findings are not there, XProf's sentence is text, too, and fits a narrow page.
    tab.page.set_viewport_size({"width": 400, "height": 860})
    tab.answer("findings", lambda q: (503, {"error": {"code": "UNAVAILABLE", "message": "later"}}))
    tab.session(HOSTS, "input")
    unfold(tab)
    said = tab.page.inner_text(".next .said")
    assert "the tf.data API" in said and "<a" not in said and "href" not in said, said
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= 400


advice_fits_the_framework.allow = ["Failed to load resource"]


def step_times_of_hosts(tab):
    """The overview has both averages, in the words and with the numbers of `summary`."""
    hosts = tool_answer(tab, HOSTS, "time_breakdown", "&view=steps")["hosts"]
    steps = list(zip(*(h["steps"]["wall_ps"] for h in hosts)))
    mean, slowest = statistics.mean(statistics.mean(s) for s in steps), max(statistics.mean(h["steps"]["wall_ps"]) for h in hosts)
    tab.session(HOSTS, "overview")
    tab.page.wait_for_selector(".averages")
    said = tab.page.inner_text(".averages")
    assert said == f"Average step time: mean of the hosts {mean / 1e9:.1f} ms, slowest host {slowest / 1e9:.1f} ms", said
    assert f"{slowest / 1e9:.1f} ms" in tab.page.inner_text(".tiles") and f"{mean / 1e9:.1f}" != f"{slowest / 1e9:.1f}"
    # Of a GPU's steps the capture may have truncated the first and the last.
    assert "truncated" not in tab.page.inner_text("main")
    of_gpu = [{**h, "devices": [{**d, "kind": "gpu"} for d in h["devices"]]} for h in hosts]
    tab.answer("time_breakdown", lambda q: {"hosts": of_gpu})
    tab.session(HOSTS, "overview")
    tab.page.wait_for_selector(".averages")
    kept = statistics.mean(statistics.mean(s) for s in steps[1:-1])
    assert f"mean of the hosts {kept / 1e9:.1f} ms" in tab.page.inner_text(".averages") and f"{kept / 1e9:.1f}" != f"{mean / 1e9:.1f}"
    assert "truncated" in tab.page.inner_text("main")
    tab.context.unroute_all()
    tab.session(TF, "overview")
    tab.page.wait_for_selector(".percentiles")
    assert tab.page.locator(".averages").count() == 0, "of one host there is one"
    tab.open(f"compare?a={HOSTS}&b={TF}")
    tab.page.wait_for_selector(".verdict")
    tiles = [x.split("\n")[0].lower() for x in tab.texts(".tile")]
    assert tiles[:2] == ["step of a, slowest device", "step of b"], tiles


def no_protocol(tab):
    """The page of the server, of what is not there and of what went wrong has words for people."""
    assert fetch(tab.base, "/api/v1/tool?session=no/such&tool=overview_page")[0] == 404
    tab.session("no/such", "overview")
    assert not RPC_WORDS.search(tab.page.inner_text("main")), tab.page.inner_text("main")
    tab.session("cpu/jax_2proc_samehost", "memory")
    assert not RPC_WORDS.search(tab.page.inner_text("main")), tab.page.inner_text("main")
    tab.open("server")
    text = tab.page.inner_text("main")
    assert not RPC_WORDS.search(text), RPC_WORDS.findall(text)
    assert not re.search(r"\b(rpc|outcomes|micros|unix ns)\b", text), text
    rows = [r.split("\t") for r in tab.texts("[aria-label='Requests by tool'] tbody tr")]
    ends = {r[1] for r in rows if r[0] in ("memory_profile", "overview_page")}
    assert "damaged profile" in ends or "answered" in ends, rows
    assert all(int(r[2].replace(",", "")) > 0 and re.search("[mµn]?s$", r[3]) for r in rows), rows


no_protocol.allow = ["Failed to load resource"]


def not_ready_is_not_stopping(tab):
    """A daemon that lists its log directory for the first time refuses answers, too."""

    def handle(route):
        data = route.fetch().json()
        data["requests"]["outcomes"] = [{"tool": "overview_page", "code": "UNAVAILABLE", "count": 2, "micros": 4000}]
        route.fulfill(json=data)

    tab.context.route("**/api/v1/server", handle)
    tab.open("server")
    rows = [r.split("\t") for r in tab.texts("[aria-label='Requests by tool'] tbody tr")]
    assert [r[:3] for r in rows] == [["overview_page", "not ready, or stopping", "2"]], rows


def reports_that_are_no_tables(tab):
    """A report is shown as text; bytes for programs can be downloaded; both are no errors."""
    tab.session("iree/task", "tool:iree_explain")
    assert "explain_summary" in tab.page.inner_text("pre") and tab.page.locator(".problem").count() == 0
    assert "format=text" in tab.page.get_attribute("a[download]", "href")
    tab.session(GPU, "tool:event_time_fraction_analyzer")
    assert "No table of this tool" in tab.page.inner_text(".empty") and tab.page.locator(".problem").count() == 0
    with tab.page.expect_download() as save:
        tab.page.click("a[download]")
    with open(save.value.path(), "rb") as f:
        assert f.read() == fetch(tab.base, f"/api/v1/tool?session={GPU}&tool=event_time_fraction_analyzer")[2] != b""


def programs_without_an_order(tab):
    """Of a program whose order is not known the memory viewer shows the buffers, and draws no empty chart."""
    tab.session("accel/mi300_jax_gemm", "memory_viewer", "module=jit_dot(5)")
    tab.page.wait_for_selector(".boxes")
    assert "Heap over the program" not in tab.page.inner_text("main")
    assert "Buffers at the peak" in tab.page.inner_text("main")
    tab.session("accel/mi300_jax_gemm", "memory_viewer", "module=jit_dot(21)")
    tab.page.wait_for_selector(".boxes")
    assert "Heap over the program" in tab.page.inner_text("main")


def first_columns(tab):
    """What matters stands first: the name, then times."""
    for session, page, heads in (
        (KERAS, "ops", ["Op", "Type", "Where", "Count", "Total time", "Self time"]),
        (FUSED, "kernels", ["Kernel", "Total time", "Count", "Avg. time"]),
        (GPU, "hlo_ops", ["Op", "Category", "Program", "Count", "Self time", "Share"]),
        (GPU, "roofline", ["Op", "Category"]),
        (GPU, "memory", ["Op", "Allocated"]),
    ):
        tab.session(session, page)
        tab.page.wait_for_selector("table.data")
        shown = [x.split("\n")[0].strip() for x in tab.texts("table.data thead th")]
        assert shown[: len(heads)] == heads, (page, shown)


def times_in_one_unit(tab):
    """What three digits round up to the next unit is of that unit."""
    tab.open("sessions")
    shown = tab.page.evaluate("async (all) => { const {us} = await import('./lib/format.js'); return all.map(us); }", [999.4, 999.6, 1160, 0.9996, 999.6e3])
    assert shown == ["999 µs", "1.00 ms", "1.16 ms", "1.00 µs", "1.00 s"], shown


LONG = "void gemm<float, Tile<64, 32>, Layout<Row, Column>, Epilogue<Bias, Relu>>(float const*, float const*, float*).17"


def linked_names(tab):
    """The name of the other end of a flow is shortened as names are: by its templates, then in its middle."""

    def renamed(query):
        answer = synthetic.small(query)
        for e in answer["traceEvents"]:
            if e.get("name") == "launch":
                e["name"] = LONG
        return answer

    open_small(tab)
    tab.answer("trace_viewer@", renamed)
    tab.page.reload()
    tab.page.wait_for_selector(".trace[data-drawn]")
    tab.page.mouse.click(*point(tab, 4.4, "Stream #1"))
    tab.page.wait_for_selector(".trace-detail button.link")
    name = tab.page.inner_text(".trace-detail button.link")
    assert name.startswith("void gemm<…>(float const*, ") and name.endswith(" float*).17 on python"), name


TESTS = [
    exports_name_units,
    words_of_the_device,
    advice_fits_the_framework,
    step_times_of_hosts,
    no_protocol,
    not_ready_is_not_stopping,
    reports_that_are_no_tables,
    programs_without_an_order,
    first_columns,
    times_in_one_unit,
    linked_names,
]
