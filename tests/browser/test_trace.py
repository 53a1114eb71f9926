# SPDX-License-Identifier: Apache-2.0
"""The trace view, on answers whose every event is known, on a million events, and on real profiles."""

import hashlib
import json
import math

import synthetic
from harness import Skip, fetch, wait_until
from test_pages import BROKEN, CONTRAST, GPU, HOSTS, ODD, TPU, UNNAMED, not_hacked

COPIES = "accel/gpu_multi_worker"  # a session whose GPUs copy while others of their streams compute

MOST_OF_BARE = 20  # times the least that a canvas takes: half of the draws


def drawn(tab):
    """A digest of what is on the canvas."""
    tab.laid_out()
    data = tab.page.evaluate("document.querySelector('.trace-canvas').toDataURL()")
    return hashlib.sha256(data.encode()).hexdigest()


def open_small(tab, query=""):
    tab.answer("trace_viewer@", synthetic.small)
    tab.answer("trace_sums", lambda q: synthetic.sums(synthetic.events(), q))
    tab.answer("trace_overlap", lambda q: {"cols": [], "rows": []})
    tab.session(GPU, "trace", query)
    tab.page.wait_for_selector(".trace[data-drawn]")


def window(tab):
    t = tab.params().get("t")
    return [float(x) for x in t.split("~")] if t else None


def point(tab, ms, track):
    """Where time MS (ms) of the track named TRACK stands in the page, with everything in sight."""
    places = tab.page.locator(".trace-canvas"), tab.page.locator(".head.thread", has_text=track)
    boxes = []

    def are_there():  # neither is while it is drawn anew
        boxes[:] = [p.bounding_box() for p in places]
        return all(boxes)

    wait_until(f"{track} is drawn", are_there)
    box, head = boxes
    return box["x"] + (ms + 0.1) / 10.2 * box["width"], head["y"] + 12


def tracks(tab):
    open_small(tab)
    heads = tab.texts(".head")
    assert (
        len(heads) == 7
        and any("Stream #1" in h for h in heads)
        and "<b>worker</b>" in heads
        and "HBM bytes" in heads
    ), heads
    assert "46 events" in tab.page.inner_text(".status"), tab.page.inner_text(".status")
    not_hacked(tab)
    before = drawn(tab)
    tab.page.locator(".head.process button").first.click()
    wait_until("the process is folded", lambda: len(tab.texts(".head")) == 4)
    wait_until("drawn anew", lambda: drawn(tab) != before)
    wait_until("the address says so", lambda: tab.params().get("c") == "1001")
    tab.page.reload()
    tab.page.wait_for_selector(".trace[data-drawn]")
    assert len(tab.texts(".head")) == 4


def zoom_by_wheel(tab):
    open_small(tab)
    before = drawn(tab)
    x, y = point(tab, 4.4, "Stream #1")
    tab.page.mouse.move(x, y)
    for _ in range(5):
        tab.page.mouse.wheel(0, -240)
    # On a busy machine it names one on the way there first.
    wait_until("the address names the window", lambda: window(tab) and window(tab)[1] - window(tab)[0] < 3)
    a, b = window(tab)
    assert 0 < a < 4.4 < b < 10, (a, b)
    wait_until("drawn anew", lambda: drawn(tab) != before)
    tab.page.click("text=Fit")
    wait_until("everything again", lambda: window(tab) is None)
    tab.page.mouse.move(5, 5)
    wait_until("drawn as before", lambda: drawn(tab) == before)


def zoom_by_keys(tab):
    open_small(tab)
    before = drawn(tab)
    tab.page.keyboard.press("w")  # works before anything has the focus
    wait_until("zoomed in", lambda: window(tab))
    a, b = window(tab)
    assert b - a < 9
    tab.page.focus(".trace-canvas")
    tab.page.keyboard.press("d")
    wait_until("moved right", lambda: window(tab)[0] > a)
    tab.page.keyboard.press("a")
    tab.page.keyboard.down("w")
    wait_until("held down it goes on", lambda: window(tab)[1] - window(tab)[0] < (b - a) / 3)
    tab.page.keyboard.up("w")
    tab.page.keyboard.press("s")
    wait_until("drawn anew", lambda: drawn(tab) != before)
    tab.page.keyboard.press("0")
    wait_until("everything again", lambda: window(tab) is None)


def drag_moves(tab):
    open_small(tab, "t=2~6")
    x, y = tab.page.locator(".trace-canvas").bounding_box()["x"] + 500, point(tab, 0, "Stream #1")[1]
    before = drawn(tab)
    tab.page.mouse.move(x, y)
    tab.page.mouse.down()
    tab.page.mouse.move(x - 200, y, steps=5)
    tab.page.mouse.up()
    wait_until("moved", lambda: window(tab)[0] > 2.3)
    a, b = window(tab)
    assert abs((b - a) - 4) < 0.01
    wait_until("drawn anew", lambda: drawn(tab) != before)


def select_shows_details(tab):
    open_small(tab)
    tab.page.mouse.click(*point(tab, 4.4, "Stream #1"))
    tab.page.wait_for_selector(".trace-detail >> text=matmul_kernel")
    tab.page.wait_for_selector(".trace-detail >> text=77")
    text = tab.page.inner_text(".trace-detail")
    assert "400 µs" in text and "4.200000 ms" in text and "Stream #1" in text and "matmul.py:12" in text, text
    assert "<script>window.pwned=1</script>" in text
    assert "launch on python" in text, "the flow's other end is offered"
    not_hacked(tab)
    wait_until("the address names the event", lambda: tab.params().get("e", "").startswith("1001~1~4200"))
    tab.page.reload()
    tab.page.wait_for_selector(".trace-detail >> text=matmul_kernel")
    tab.page.locator(".trace-detail button.link").first.click()
    tab.page.wait_for_selector(".trace-detail h2 >> text=launch")
    tab.page.keyboard.press("Escape")
    tab.page.wait_for_selector("text=Click an event")
    wait_until("the address forgets it", lambda: "e" not in tab.params())


def instants(tab):
    """What has no length is told as a picosecond long, and known by its own duration."""
    ps = {"marker": 0, "shortest": 1, "kernel": 400000}
    start = {"marker": 2000, "shortest": 4000.5, "kernel": 6000.25}

    def exact(query):
        if "event_name" not in query:
            rows = [synthetic.event(1001, 1, n, start[n], max(ps[n], 1) / 1e6) for n in ps]
            return synthetic.answer(synthetic.PROCESSES, rows, [0, 10])
        name = query["event_name"][0]
        if round(float(query["duration_ms"][0]) * 1e9) != ps[name]:
            return 404, {"error": {"code": "NOT_FOUND", "message": "no such event in the trace"}}
        full = synthetic.event(1001, 1, name, start[name], max(ps[name], 1) / 1e6)
        return synthetic.answer(
            synthetic.PROCESSES, [{**full, "args": {"uid": 0, "note": f"of the {name}"}}], [0, 10]
        )

    tab.answer("trace_viewer@", exact)
    for name in ps:
        tab.session(GPU, "trace", f"e=1001~1~{start[name]}~{max(ps[name], 1) / 1e6}")
        tab.page.wait_for_selector(f".trace-detail >> text=of the {name}")
        tab.open("sessions")


instants.allow = ["Failed to load resource"]  # an event of a picosecond is taken for an instant at first


def arrows_walk(tab):
    open_small(tab)
    tab.page.mouse.click(*point(tab, 4.4, "Stream #1"))
    tab.page.wait_for_selector(".trace-detail h2 >> text=matmul_kernel")
    tab.page.keyboard.press("ArrowRight")
    wait_until("the next event", lambda: tab.params().get("e", "").startswith("1001~1~5200"))
    tab.page.keyboard.press("ArrowLeft")
    tab.page.keyboard.press("ArrowLeft")
    wait_until("the one before", lambda: tab.params().get("e", "").startswith("1001~1~3200"))
    tab.page.keyboard.press("ArrowDown")
    wait_until("the track below", lambda: tab.params().get("e", "").startswith("1001~2~"))
    tab.page.keyboard.press("f")
    wait_until("zoomed to it", lambda: window(tab) and window(tab)[1] - window(tab)[0] < 0.01)
    assert "copy_kernel" in tab.page.inner_text("#live")


def search_marks(tab):
    open_small(tab)
    before = drawn(tab)
    tab.page.keyboard.press("/")
    tab.page.keyboard.type("MATMUL")
    tab.page.wait_for_selector("text=10 matches")
    wait_until("what does not match is dimmed", lambda: drawn(tab) != before)
    wait_until("the address has the words", lambda: tab.params().get("q") == "MATMUL")
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector("text=1 of 10")
    wait_until("the first match is selected", lambda: tab.params().get("e", "").startswith("1001~1~200"))
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector("text=2 of 10")
    tab.page.fill(".page-trace input[type=search]", "")
    tab.page.wait_for_function("() => !document.querySelector('.page-trace .counter').textContent")
    tab.session(GPU, "trace", "q=copy")
    tab.page.wait_for_selector("text=10 matches")


def mark_a_range(tab):
    open_small(tab)
    (x0, y), (x1, _) = point(tab, 2.05, "Stream #1"), point(tab, 5.95, "Stream #1")
    tab.page.keyboard.down("Shift")
    tab.page.mouse.move(x0, y)
    tab.page.mouse.down()
    tab.page.mouse.move(x1, y, steps=4)
    tab.page.mouse.up()
    tab.page.keyboard.up("Shift")
    tab.page.wait_for_selector(".trace-detail table.data")
    row = tab.page.locator(".trace-detail tbody tr", has_text="matmul_kernel")
    # On a busy machine there is the sum of an earlier end of the drag first.
    wait_until("all of the range", lambda: "1.60 ms" in row.inner_text() and "\t4\t" in row.inner_text())
    wait_until("the address names the range", lambda: tab.params().get("r", "").startswith("2.0"))
    tab.page.reload()
    tab.page.wait_for_selector(".trace-detail table.data")


def sums_are_exact(tab):
    """A trace that is drawn coarsely: what is counted and summed up comes from the server, of all events."""
    fine = [synthetic.event(1001, 1, "fusion", i * 2, 1) for i in range(5000)]
    fine += [synthetic.event(1701, 7, "step", 0, 10000)]
    tab.answer("trace_viewer@", lambda q: synthetic.answer(synthetic.PROCESSES, fine[::250], [0, 10]))
    tab.answer("trace_sums", lambda q: synthetic.sums(fine, q))
    tab.session(GPU, "trace")
    tab.page.wait_for_selector(".trace[data-drawn]")
    wait_until("it says that it is coarse", lambda: "21 events of 5,001 drawn" in tab.page.inner_text(".status"))
    for width in (1280, 700, 400):  # in full
        tab.page.set_viewport_size({"width": width, "height": 860})
        cut = tab.page.eval_on_selector(".status", "(e) => [e.scrollWidth - e.clientWidth, e.scrollHeight - e.clientHeight, e.clientHeight]")
        assert cut[0] <= 0 and cut[1] <= 0 and cut[2] == 32, (width, cut)
    tab.page.fill(".page-trace input[type=search]", "fusion")
    wait_until("all matches are counted", lambda: tab.page.inner_text(".counter") == "5,000 matches, 20 loaded")
    tab.page.fill(".page-trace input[type=search]", "")
    tab.session(GPU, "trace", "r=2~4")
    tab.page.wait_for_selector(".trace-detail table.data")
    row = tab.page.locator(".trace-detail tbody tr", has_text="fusion").inner_text()
    assert "1.00 ms" in row and "\t1,000\t" in row, row
    assert "1,001 events, 3.00 ms in all" in tab.page.inner_text(".sums")
    tab.page.locator(".head", has_text="/host:CPU").first.click()
    wait_until("collapsed", lambda: tab.params().get("c") == "1701")
    tab.session(GPU, "trace", "r=2~4&c=1701")
    wait_until("what is collapsed is left out", lambda: "1,000 events, 1.00 ms in all" in tab.page.inner_text(".sums"))
    tab.answer("trace_sums", lambda q: (503, {"error": {"code": "UNAVAILABLE", "message": "no answer"}}))
    tab.page.reload()
    tab.page.wait_for_selector(".trace-detail table.data")
    assert "Only of the events that are drawn" in tab.page.inner_text(".sums")


sums_are_exact.allow = ["Failed to load resource"]  # no answer at the end


def overlap_of_a_range(tab):
    """A marked range says what compute hides of its copies, as the server computes it; its table is reached by keys."""
    ask = f"/api/v1/tool?session={COPIES}&tool=trace_overlap"
    whole = json.loads(fetch(tab.base, ask)[2])["rows"][0]["c"]
    kind, devices, time, overlapped, exposed, share = (c["v"] for c in whole)
    assert (kind, devices) == ("copies between host and device", 3) and overlapped + exposed == time and 0 < share < 1, whole
    tab.session(COPIES, "trace", "r=0~100000")
    table = tab.page.locator(".trace-detail table.data[aria-label^='Collectives, copies']")
    row = table.locator("tbody tr:not(.spacer)").inner_text().split("\t")
    assert row[0] == kind and row[-1] == "3" and row[-2].startswith(f"{100 * share:.1f}"), row
    table.focus()
    tab.page.keyboard.press("ArrowDown")
    assert table.evaluate("(t) => t === document.activeElement && t.getAttribute('aria-activedescendant') !== null")


def zoom_levels(tab):
    """On a thinned-out trace a zoom asks for its window; what comes back is drawn."""
    asked = []

    def thinned(query):
        if "start_time_ms" not in query:
            return synthetic.answer(
                synthetic.PROCESSES, [synthetic.event(1001, 1, "coarse", 0, 10000)], [0, 10]
            )
        asked.append(
            {k: float(v[0]) for k, v in query.items() if k in ("start_time_ms", "end_time_ms", "resolution")}
        )
        a, b = asked[-1]["start_time_ms"] * 1000, asked[-1]["end_time_ms"] * 1000
        fine = [synthetic.event(1001, 1, "coarse", 0, 10000)] + [
            synthetic.event(1001, 1, "fine", t, 4) for t in range(int(a), int(b), 5)
        ]
        return synthetic.answer(synthetic.PROCESSES, fine, [0, 10])

    tab.answer("trace_viewer@", thinned)
    tab.session(GPU, "trace")
    tab.page.wait_for_selector(".trace[data-drawn]")
    assert not asked
    tab.page.focus(".trace-canvas")
    for _ in range(14):
        tab.page.keyboard.press("w")
    wait_until("a closer view was requested", lambda: asked)

    def covered():  # from the last request; the address follows a moment later
        a, b = window(tab) or (-math.inf, math.inf)
        last = asked[-1]
        return last["start_time_ms"] <= a and last["end_time_ms"] >= b and last["resolution"] >= 1000

    wait_until("what is in sight was asked for", covered)
    tab.page.wait_for_timeout(600)
    n = len(asked)
    before = drawn(tab)
    box = tab.page.locator(".trace-canvas").bounding_box()

    def found():
        for i in range(12):
            tab.page.mouse.move(box["x"] + box["width"] * 0.3 + i * 23, box["y"] + 57)
            if any("fine" in tip for tip in tab.texts(".trace-tip:not([hidden])")):
                return True
        return False

    wait_until("the finer events are there", found)
    tab.page.keyboard.press("d")
    tab.page.wait_for_timeout(500)
    assert len(asked) == n, "a small move stays within what is loaded"
    wait_until("drawn anew", lambda: drawn(tab) != before)


def search_of_a_thinned_trace(tab):
    """What the base does not hold is found by the server's search."""
    many = [synthetic.event(1001, 1, "op", i * 0.4, 0.3) for i in range(25000)]

    def thinned(query):
        if "search_prefix" in query:
            assert query["search_prefix"] == ["rare"]
            return synthetic.answer(
                synthetic.PROCESSES,
                [synthetic.event(1001, 2, "rare_kernel", 7000 + i, 0.25) for i in range(3)],
                [0, 10],
            )
        return synthetic.answer(synthetic.PROCESSES, many, [0, 10])

    tab.answer("trace_viewer@", thinned)
    tab.session(GPU, "trace")
    tab.page.wait_for_selector(".trace[data-drawn]")
    tab.page.keyboard.press("/")
    tab.page.keyboard.type("rare")
    tab.page.wait_for_selector("text=3 matches")
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector(".trace-detail h2 >> text=rare_kernel")
    wait_until("selected", lambda: tab.params().get("e", "").startswith("1001~2~7000"))


def search_in_arguments(tab):
    """A real trace, by keys: the server's count, the first event, and its arguments have the words."""
    tab.session(GPU, "trace")
    tab.page.wait_for_selector(".trace[data-drawn]")
    tab.page.keyboard.press("/")
    tab.page.keyboard.type("jit_matmul gemm")
    tab.page.keyboard.press("Tab")
    assert tab.page.evaluate("document.activeElement.getAttribute('aria-label')") == "Search in"
    tab.page.keyboard.press("a")  # arguments
    answer = json.loads(fetch(tab.base, f"/api/v1/tool?session={GPU}&tool=trace_search&text=jit_matmul%20gemm&limit=1000")[2])
    count = int(answer["p"]["count"])
    text = f"{count:,} match" + ("es" if count != 1 else "")
    wait_until("the server counted", lambda: tab.page.inner_text(".counter").startswith(text))
    assert count > 3, count
    wait_until("the address says where", lambda: tab.params().get("in") == "arguments")
    first = [c["v"] for c in answer["rows"][0]["c"]]
    tab.page.focus(".page-trace input[type=search]")
    tab.page.keyboard.press("Enter")
    wait_until("the first one is selected", lambda: tab.params().get("e", "").startswith(f"{first[1]:.0f}~{first[2]:.0f}~"))
    wait_until("its arguments are there", lambda: "loading" not in tab.page.inner_text(".args"))
    shown = tab.page.inner_text(".args").lower()
    assert "jit_matmul" in shown and "gemm" in shown, shown
    tab.page.reload()  # the address has it all
    tab.page.wait_for_selector(".trace[data-drawn]")
    wait_until("found anew", lambda: tab.page.inner_text(".counter").startswith(text))
    tab.page.select_option(".search-in", "")
    wait_until("names again", lambda: tab.page.inner_text(".counter").startswith("0 matches"))


def search_in_arguments_thinned(tab):
    """A match that is not drawn: its time is looked at closely, and it is selected once it is there."""
    fine = [synthetic.event(1001, 1, "fusion", i * 2, 1) for i in range(5000)]

    def answer(q):
        if "start_time_ms" not in q or "event_name" in q:
            return synthetic.answer(synthetic.PROCESSES, fine[::250], [0, 10])
        a, b = (float(q[k][0]) * 1000 for k in ("start_time_ms", "end_time_ms"))
        return synthetic.answer(synthetic.PROCESSES, [e for e in fine if a <= e["ts"] <= b], [a / 1000, b / 1000])

    found = [fine[i] for i in (777, 3333)]
    columns = ("name", "pid", "tid", "start_us", "duration_us")
    table = {
        "cols": [{"id": c, "label": c, "type": "string" if c == "name" else "number"} for c in columns],
        "p": {"count": "4321", "names": "1", "total_ps": "0"},
        "rows": [{"c": [{"v": e[k]} for k in ("name", "pid", "tid", "ts", "dur")]} for e in found],
    }
    tab.answer("trace_viewer@", answer)
    tab.answer("trace_sums", lambda q: synthetic.sums(fine, q))
    tab.answer("trace_search", lambda q: table if q["text"] == ["layer 7"] else (400, {"error": {"code": "INVALID_ARGUMENT", "message": "no"}}))
    tab.session(GPU, "trace", "in=arguments&q=layer 7")
    tab.page.wait_for_selector(".trace[data-drawn]")
    wait_until("counted", lambda: tab.page.inner_text(".counter") == "4,321 matches, 2 first")
    for event, text in zip(found, ("1 of 2 first, 4,321 matches", "2 of 2 first, 4,321 matches")):
        tab.page.click("button[aria-label='Next match']")
        wait_until("selected", lambda: tab.params().get("e") == f"1001~1~{event['ts']}~1")
        wait_until("told", lambda: tab.page.inner_text(".counter") == text)
    tab.page.fill(".page-trace input[type=search]", "else")
    wait_until("what went wrong is told", lambda: tab.page.inner_text(".counter") == "no")


search_in_arguments_thinned.allow = ["Failed to load resource"]


def help_lists_keys(tab):
    open_small(tab)
    tab.page.keyboard.press("?")
    assert "Shift + drag" in tab.page.inner_text("dialog[open]")
    tab.page.keyboard.press("Escape")
    assert tab.page.locator("dialog[open]").count() == 0


def accessible_trace(tab):
    for scheme in ("light", "dark"):
        tab.page.emulate_media(color_scheme=scheme)
        open_small(tab, "e=1001~1~4200~400")
        tab.page.wait_for_selector(".trace-detail >> text=77")
        assert not tab.page.evaluate(UNNAMED) and not tab.page.evaluate(CONTRAST), (
            scheme,
            tab.page.evaluate(UNNAMED),
            tab.page.evaluate(CONTRAST),
        )
        assert tab.page.locator("main h1").count() == 1 and tab.page.get_attribute(
            ".trace-canvas", "aria-label"
        )
        reached = []
        for _ in range(60):  # a link for each tool comes before
            tab.page.keyboard.press("Tab")
            reached.append(
                tab.page.evaluate("document.activeElement.className || document.activeElement.tagName")
            )
        assert "trace-canvas" in reached, reached
        tab.open("sessions")


def errors_and_nothing(tab):
    tab.answer(
        "trace_viewer@", lambda q: (404, {"error": {"code": "NOT_FOUND", "message": "no host <b>x</b>"}})
    )
    tab.session(GPU, "trace")
    tab.page.wait_for_selector(".problem")
    assert "no host <b>x</b>" in tab.page.inner_text(".problem")
    tab.answer("trace_viewer@", lambda q: synthetic.answer({}, [], [0, 0]))
    tab.page.reload()
    tab.page.wait_for_selector("text=No events in this trace")


errors_and_nothing.allow = ["Failed to load resource"]


def broken_answers(tab):
    """Answers that no server should give end in a sentence or an empty trace, never in a hung page."""
    for body in (
        "",
        "not json",
        "[]",
        '{"traceEvents":[{"ph":"X"}]}',
        '{"traceEvents":[null,1,"x",{"ph":"X","pid":1,"tid":1,"name":"n","ts":1e308,"dur":1e308}]}',
        '{"traceEvents":[{"ph":"X","pid":1,"tid":1,"name":"n","ts":0,"dur":1}',
    ):
        tab.answer("trace_viewer@", lambda q, body=body: body)
        tab.session(GPU, "trace")
        tab.page.wait_for_selector(".problem, .empty, .trace[data-drawn]")
        tab.open("sessions")


def deep_and_wide(tab):
    """Deeply nested events are drawn down to a bound, and what is left out is said."""
    nested = [synthetic.event(1, 1, f"f{i}", i * 0.01, 1000 - i * 0.02) for i in range(400)]
    tab.answer("trace_viewer@", lambda q: synthetic.answer({1: ("p", {1: "t"})}, nested, [0, 1]))
    tab.session(GPU, "trace")
    tab.page.wait_for_selector("text=208 events nested too deeply")


def a_million_events(tab):
    """What half of the draws take, in terms of the least that a canvas of that size takes beside them.  The slowest ones
    tell of other programs on the machine; frames.py measures them on one that rests."""
    tab.open("sessions")
    out = tab.page.evaluate(synthetic.MILLION, [tab.base, MOST_OF_BARE])
    assert out["events"] == 1000000, out
    measured = {k: v for k, v in out.items() if isinstance(v, dict)}
    print(
        "         canvas %dx%d: " % (out["width"], out["height"])
        + ", ".join(f"{k} p50 {v['p50']:.1f} p95 {v['p95']:.1f} bare {v['bare']:.2f} ms" for k, v in measured.items())
    )
    assert len(measured) == 6 and all(v["n"] >= 100 and v["bare"] > 0 for v in measured.values()), measured
    slow = {k: v for k, v in measured.items() if v["p50"] > MOST_OF_BARE * v["bare"]}
    assert not slow, slow


def a_large_answer(tab):
    """100,000 events as JSON through the worker, in pieces."""
    n = 100000
    odd = ['e }, {"', 'e },{"pid":1},', "e ]}"]  # names that look like the end of an event
    rows = [synthetic.event(1, i % 20, odd[i % 3], i * 5, 4) for i in range(n)]
    body = json.dumps(synthetic.answer({1: ("p", {})}, rows, [0, n * 5 / 1000]), separators=(",", ":"))
    tab.answer("trace_viewer@", lambda q: body)
    tab.session(GPU, "trace")
    tab.page.wait_for_selector(f"text={n:,} events", timeout=30000)
    assert len(tab.texts(".head.thread")) == 20


def heads_stay_while_scrolled(tab):
    """A name that stays in sight is not made anew, keeps the focus, and those that come stand in their order."""
    rows = [synthetic.event(1, t, "f", 0, 4) for t in range(300)]
    tab.answer("trace_viewer@", lambda q: synthetic.answer({1: ("p", {t: f"t{t:03}" for t in range(300)})}, rows, [0, 1]))
    tab.session(GPU, "trace")
    tab.page.wait_for_selector(".trace[data-drawn]")
    head = tab.page.locator(".head.thread", has_text="t010")
    head.evaluate("e => { e.same = true; e.querySelector('button').focus(); }")
    scroll = lambda to: tab.page.evaluate("() => { document.querySelector('.trace-scroll').scrollTop %s; }" % to)
    for wheel in (60, 100, -160):
        before = tab.texts(".head.thread")
        scroll(f"+= {wheel}")
        wait_until("other names", lambda: tab.texts(".head.thread") != before)
        names = [t.split()[0] for t in tab.texts(".head.thread")]
        assert names == [f"t{int(names[0][1:]) + i:03}" for i in range(len(names))], names
        assert head.evaluate("e => e.same && e.contains(document.activeElement)")
        assert tab.page.locator(".act[tabindex='0']").count() == 1
    scroll("= 4000")
    wait_until("it is out of sight", lambda: head.count() == 0)
    assert tab.page.evaluate("document.activeElement.tagName") == "CANVAS"


def needs_trace(tab):
    if "trace_viewer@" not in [t["name"] for t in json.loads(fetch(tab.base, "/api/v1/tools")[2])["tools"]]:
        raise Skip("this xplaned has no trace_viewer@")


def real_profiles(tab):
    """The tracks of real profiles, as trace_viewer@ gives them."""
    needs_trace(tab)
    for session, some in ((GPU, "Stream #16(Kernel)"), (TPU, "XLA Modules"), (ODD, "python")):
        tab.session(session, "trace")
        tab.page.wait_for_selector(".trace[data-drawn]")
        assert any(some in h for h in tab.texts(".head.thread")), tab.texts(".head")
        answer = json.loads(
            fetch(
                tab.base,
                f"/api/v1/tool?session={session.replace('/', '%2F')}&tool=trace_viewer@&resolution=8000",
            )[2]
        )
        drawn_events = sum(1 for e in answer["traceEvents"] if e.get("ph") == "X")
        assert f"{drawn_events:,} events" in tab.page.inner_text(".status"), (
            tab.page.inner_text(".status"),
            drawn_events,
        )
        not_hacked(tab)
    tab.session(GPU, "trace", "q=loop_sqrt_fusion.kd")
    tab.page.wait_for_selector(".trace[data-drawn]")
    tab.page.click("button[aria-label='Next match']")
    tab.page.wait_for_selector(".trace-detail h2 >> text=loop_sqrt_fusion.kd")
    tab.page.wait_for_selector(".trace-detail >> text=kernel details")
    tab.session(ODD, "trace")
    tab.page.wait_for_selector(".trace[data-drawn]")
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector(".trace-detail h2")
    tab.page.wait_for_function(
        "() => !document.querySelector('.trace-detail').textContent.includes('loading')"
    )


def real_instants(tab):
    """The server finds an instant by what the page asks with."""
    needs_trace(tab)
    url = f"/api/v1/tool?session={ODD.replace('/', '%2F')}&tool=trace_viewer@&resolution=8000"
    events = json.loads(fetch(tab.base, url)[2])["traceEvents"]
    e = next(e for e in events if e["name"] == "ThreadpoolListener::StartRegion")
    tab.session(ODD, "trace", f"e={e['pid']}~{e['tid']}~{e['ts']}~{e['dur']}")
    tab.page.wait_for_selector(".trace-detail >> text=threadpool_listener.cc")


def real_hosts(tab):
    """All hosts one below the other, or one of them."""
    needs_trace(tab)
    tab.session(HOSTS, "trace")
    tab.page.wait_for_selector(".trace[data-drawn]")
    names = lambda: tab.page.eval_on_selector_all(".head.process button", "l => l.map((b) => b.title)")
    assert names() and "host-0.cluster.local" in names()[0], names()
    total = tab.page.inner_text(".status")
    tab.page.select_option("#host-choice", "host-2.cluster.local")
    wait_until("the other host", lambda: names() and all("host-2" in n for n in names()))
    wait_until("its events are counted", lambda: tab.page.inner_text(".status") != total)


def real_damage(tab):
    needs_trace(tab)
    tab.session(BROKEN, "trace")
    tab.page.wait_for_selector(".problem")
    assert "vm.xplane.pb" in tab.page.inner_text(".problem")


real_damage.allow = ["Failed to load resource"]
TESTS = [
    tracks,
    zoom_by_wheel,
    zoom_by_keys,
    drag_moves,
    select_shows_details,
    instants,
    arrows_walk,
    search_marks,
    mark_a_range,
    sums_are_exact,
    overlap_of_a_range,
    zoom_levels,
    search_of_a_thinned_trace,
    search_in_arguments,
    search_in_arguments_thinned,
    help_lists_keys,
    accessible_trace,
    errors_and_nothing,
    broken_answers,
    deep_and_wide,
    a_large_answer,
    a_million_events,
    heads_stay_while_scrolled,
    real_profiles,
    real_instants,
    real_hosts,
    real_damage,
]
