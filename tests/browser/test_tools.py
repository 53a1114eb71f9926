# SPDX-License-Identifier: Apache-2.0
"""The trace view's tools and the arrangement of its tracks, by real keys and a real pointer."""

import hashlib
import json
import math
import urllib.parse

import synthetic
from harness import wait_until
from test_pages import GPU, not_hacked
from test_trace import open_small, point, window


def pressed(tab):
    """What is pressed in the bar of tools."""
    return tab.texts(".tools [aria-pressed=true]")


def drag(tab, begin, end):
    tab.page.mouse.move(*begin)
    tab.page.mouse.down()
    tab.page.mouse.move(*end, steps=5)
    tab.page.mouse.up()


def overlay(tab):
    tab.laid_out()
    data = tab.page.evaluate("document.querySelector('.trace-overlay').toDataURL()")
    return hashlib.sha256(data.encode()).hexdigest()


def many(tab, name):
    """All values of a parameter of the address."""
    h = tab.hash()
    return urllib.parse.parse_qs(h.split("?", 1)[1]).get(name, []) if "?" in h else []


def keys_choose_tools(tab):
    open_small(tab)
    assert pressed(tab) == ["Move"]
    for key, name in (("1", "Select"), ("3", "Zoom"), ("4", "Time"), ("2", "Move")):
        tab.page.keyboard.press(key)
        wait_until(f"{key} is {name}", lambda: pressed(tab) == [name])
    tab.page.keyboard.press("3")
    (x, y), _ = point(tab, 4.4, "Stream #1"), None
    drag(tab, (x, y), (x, y - 120))
    wait_until("dragged up it is closer", lambda: window(tab) and window(tab)[1] - window(tab)[0] < 4)
    a, b = window(tab)
    assert a < 4.4 < b, (a, b)
    tab.page.keyboard.press("0")
    wait_until("all of it", lambda: window(tab) is None)
    tab.page.keyboard.press("4")
    drag(tab, point(tab, 2.05, "Stream #1"), point(tab, 5.95, "Stream #2"))
    # On a busy machine there is the sum of an earlier end of the drag first, here and below.
    wait_until("of all tracks", lambda: tab.page.locator(".trace-detail tbody tr", has_text="step 3").count() == 1)
    assert "2 tracks" not in tab.page.inner_text(".trace-detail")


def select_by_track(tab):
    """A box over two streams sums up these alone."""
    open_small(tab)
    tab.page.keyboard.press("1")
    drag(tab, point(tab, 2.05, "Stream #1"), point(tab, 5.95, "Stream #2"))
    tab.page.wait_for_selector(".trace-detail >> text=8 events, 1.60 ms in all")
    text = tab.page.inner_text(".trace-detail")
    assert "on 2 tracks" in text, text
    assert "step" not in tab.page.inner_text(".trace-detail tbody"), text
    wait_until("the address has the tracks", lambda: many(tab, "rt") == ["1001/1", "1001/2"])
    wait_until("and the time", lambda: abs(float(tab.params()["r"].split("~")[1]) - 5.95) < 0.02)
    tab.page.reload()
    tab.page.wait_for_selector("text=8 events, 1.60 ms in all")
    tab.page.keyboard.press("Escape")
    wait_until("forgotten", lambda: not many(tab, "rt") and "r" not in tab.params())


def ctrl_click(tab):
    open_small(tab)
    tab.page.mouse.click(*point(tab, 4.4, "Stream #1"))
    tab.page.wait_for_selector(".trace-detail h2 >> text=matmul_kernel")
    tab.page.keyboard.down("Control")
    tab.page.mouse.click(*point(tab, 6.4, "Stream #1"))
    tab.page.mouse.click(*point(tab, 7.6, "python"))
    tab.page.wait_for_selector(".trace-detail h2 >> text=3 events selected")
    assert "1.70 ms in all" in tab.page.inner_text(".trace-detail"), tab.page.inner_text(".trace-detail")
    row = tab.page.locator(".trace-detail tbody tr", has_text="matmul_kernel").inner_text()
    assert "800 µs" in row and "\t2\t" in row, row
    tab.page.mouse.click(*point(tab, 7.6, "python"))
    tab.page.wait_for_selector(".trace-detail h2 >> text=2 events selected")
    tab.page.keyboard.up("Control")
    wait_until("the address has both", lambda: len(many(tab, "e")) == 2)
    tab.page.reload()
    tab.page.wait_for_selector(".trace-detail h2 >> text=2 events selected")
    tab.page.click("text=Mark their time")
    tab.page.wait_for_selector("text=2.40 ms marked")


def flows(tab):
    open_small(tab)
    before = overlay(tab)
    tab.page.keyboard.press("v")
    wait_until("pressed", lambda: "Flows" in pressed(tab))
    wait_until("arrows of all flows", lambda: overlay(tab) != before)
    wait_until("the address says so", lambda: tab.params().get("flows") == "1")
    tab.page.keyboard.press("v")
    wait_until("none", lambda: "Flows" not in pressed(tab))
    wait_until("no arrows", lambda: overlay(tab) == before)


def box_of(locator, key):
    """Equal to nothing while it is drawn anew: it may be gone between being found and measured."""
    return (locator.bounding_box() or {}).get(key, math.nan)


def fold_threads(tab):
    """One row of a thread, by its button and by a key; the event below is not found then."""
    open_small(tab)
    head = tab.page.locator(".head.thread", has_text="python")
    tall = box_of(head, "height")
    tab.page.click("button[aria-label='Show one row of python']")
    wait_until("one row", lambda: box_of(head, "height") == tall - 18)
    wait_until("the address says so", lambda: many(tab, "fold") == ["1701/7"])
    tab.page.reload()
    tab.page.wait_for_selector(".trace[data-drawn]")
    wait_until("one row as before", lambda: box_of(head, "height") == tall - 18)
    tab.page.mouse.move(*point(tab, 4.4, "python"))
    tab.page.keyboard.press("c")
    wait_until("all rows", lambda: box_of(head, "height") == tall)


def pin_and_hide(tab):
    """By keys alone: Tab to the tracks' buttons, arrows among them."""
    open_small(tab)
    for _ in range(80):
        tab.page.keyboard.press("Tab")
        if tab.page.evaluate("document.activeElement.classList.contains('act')"):
            break
    label = lambda: tab.page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert label() == "Pin HBM bytes", label()
    tab.page.keyboard.press("ArrowDown")
    tab.page.keyboard.press("ArrowDown")
    assert label() == "Pin Stream #2", label()
    tab.page.keyboard.press("Enter")
    wait_until("first", lambda: tab.texts(".head")[0] == "Stream #2")
    assert label() == "Unpin Stream #2", "the focus stays"
    wait_until("the address says so", lambda: many(tab, "pin") == ["1001/2"])
    tab.page.set_viewport_size({"width": 1360, "height": 330})
    where = """() => { const [head, frame] = ['.head.fixed', '.trace-scroll'].map((x) => document.querySelector(x));
        return head && head.getBoundingClientRect().y - frame.getBoundingClientRect().y; }"""
    place = lambda: tab.page.evaluate(where)
    wait_until("drawn for the low window", lambda: place() is not None)
    at = place()
    tab.page.evaluate("document.querySelector('.trace-scroll').scrollTop = 60")
    tab.laid_out()
    wait_until("it stays where it is", lambda: place() == at)
    tab.page.evaluate("document.querySelector('.trace-scroll').scrollTop = 0")
    tab.page.set_viewport_size({"width": 1360, "height": 860})
    tab.page.mouse.click(*point(tab, 4.3002, "Stream #2"))
    tab.page.wait_for_selector(".trace-detail h2 >> text=copy_kernel")
    tab.page.keyboard.press("h")
    wait_until("hidden", lambda: "Stream #2" not in tab.texts(".head"))
    tab.page.click("text=Show 1 hidden")
    wait_until("there again", lambda: "Stream #2" in tab.texts(".head"))
    wait_until("the address has none", lambda: not many(tab, "hide"))


def hidden_is_not_summed(tab):
    open_small(tab, "r=2~4&hide=1701/7&hide=1001/2")
    tab.page.wait_for_selector("text=3 events, 2.80 ms in all")


def same_name(tab):
    """[ and ], or the buttons beside the name, go from an event to the ones of its name on its track, and stop at the last."""
    open_small(tab)
    tab.page.mouse.click(*point(tab, 4.4, "Stream #1"))
    tab.page.wait_for_selector(".trace-detail h2 >> text=matmul_kernel")
    at = lambda ms: wait_until(f"{ms} ms", lambda: [x.split("~")[2] for x in many(tab, "e")] == [f"{ms * 1000:g}"])
    at(4.2)
    tab.page.keyboard.press("]")
    at(5.2)
    tab.page.keyboard.press("[")
    tab.page.keyboard.press("[")
    at(3.2)
    tab.page.click("[aria-label='Next event of this name on its track']")
    at(4.2)
    for _ in range(7):
        tab.page.focus(".trace-canvas")
        tab.page.keyboard.press("]")
    at(9.2)
    assert tab.page.is_disabled("[aria-label='Next event of this name on its track']")
    tab.page.focus(".trace-canvas")
    tab.page.keyboard.press("]")
    assert "No later matmul_kernel" in tab.page.inner_text("#live")


def bookmarks(tab):
    """B keeps the window under a name; it is in the address, is drawn, leads back, and can be removed."""
    open_small(tab)
    before = tab.page.evaluate("document.querySelector('.ruler').toDataURL()")
    tab.page.mouse.click(*point(tab, 7.6, "python"))
    tab.page.wait_for_selector(".trace-detail h2 >> text=step 7")
    tab.page.keyboard.press("f")
    wait_until("close", lambda: window(tab) and window(tab)[1] - window(tab)[0] < 4)
    close = window(tab)
    tab.page.keyboard.press("b")
    wait_until("in the address", lambda: [x.split("~")[2] for x in many(tab, "b")] == ["step 7"])
    tab.page.keyboard.press("0")
    wait_until("all of it", lambda: window(tab) is None)
    wait_until("a flag", lambda: tab.page.evaluate("document.querySelector('.ruler').toDataURL()") != before)
    tab.page.keyboard.press("Escape")
    tab.page.reload()
    tab.page.wait_for_selector(".bookmark")
    tab.page.click(".bookmark button:text-is('step 7')")
    wait_until("back", lambda: window(tab) and abs(window(tab)[0] - close[0]) < 1e-3 and abs(window(tab)[1] - close[1]) < 1e-3)
    tab.page.click("[aria-label='Remove the bookmark step 7']")
    wait_until("gone", lambda: not many(tab, "b") and tab.page.is_hidden(".bookmarks"))
    hostile = "<img src=x onerror=window.pwned=1>~"
    open_small(tab, "b=" + urllib.parse.quote(f"1~2~{hostile}") + "&b=nonsense")
    assert tab.texts(".bookmark button:first-child") == [hostile]
    not_hacked(tab)


def back_through_zooms(tab):
    open_small(tab)
    asked = []
    tab.page.on("request", lambda r: asked.append(r.url) if "trace_viewer" in r.url else None)
    tab.page.mouse.move(*point(tab, 4.4, "Stream #1"))
    tab.page.keyboard.press("w")
    wait_until("the first zoom", lambda: window(tab))
    first = window(tab)
    tab.page.keyboard.press("w")
    tab.page.keyboard.press("w")
    wait_until("the second one", lambda: window(tab) != first)
    second = window(tab)
    tab.page.keyboard.press("Backspace")
    wait_until("back to the first", lambda: window(tab) == first)
    tab.page.go_forward()
    wait_until("and forward", lambda: window(tab) == second)
    tab.page.go_back()
    tab.page.go_back()
    wait_until("all of it", lambda: window(tab) is None)
    wait_until("so it says", lambda: "10.2 ms visible" in tab.page.inner_text(".status"))
    assert not asked, "nothing was loaded anew"


def time_at_the_pointer(tab):
    open_small(tab)
    before = overlay(tab)
    tab.page.mouse.move(*point(tab, 4.4, "Stream #1"))
    wait_until("it is told", lambda: tab.page.locator(".trace-now:not([hidden])").count() == 1)
    value, unit = tab.page.inner_text(".trace-now").split()
    assert unit == "ms" and abs(float(value) - 4.4) < 0.02, (value, unit)
    wait_until("a line at the pointer", lambda: overlay(tab) != before)
    tab.page.mouse.move(5, 5)
    wait_until("gone", lambda: tab.page.locator(".trace-now:not([hidden])").count() == 0)
    wait_until("the line, too", lambda: overlay(tab) == before)


def escape_leaves_the_search(tab):
    """What was found stays marked, its text stays, and keys are the trace's again."""
    open_small(tab)
    tab.page.keyboard.press("/")
    tab.page.keyboard.type("copy")
    tab.page.wait_for_selector("text=10 matches")
    tab.page.keyboard.press("Escape")
    assert tab.page.evaluate("document.activeElement.className") == "trace-canvas"
    assert tab.page.input_value(".page-trace input[type=search]") == "copy"
    tab.page.keyboard.press("w")
    wait_until("zoomed by key", lambda: window(tab))
    tab.page.keyboard.press("n")
    tab.page.wait_for_selector("text=of 10")
    wait_until("the address has the words", lambda: tab.params().get("q") == "copy")


# Rows of the counter's color below each of the given times, from the track's top on.
HEIGHTS = """([times, label]) => {
  const canvas = document.querySelector('.trace-canvas'), box = canvas.getBoundingClientRect();
  const head = [...document.querySelectorAll('.head')].find((e) => e.textContent.includes(label)).getBoundingClientRect();
  const scale = canvas.width / box.width, y = Math.round((head.y - box.y) * scale), n = Math.round(head.height * scale);
  return times.map((ms) => {
    const x = Math.round((ms + 0.1) / 10.2 * canvas.width);
    const data = canvas.getContext('2d').getImageData(x, y, 1, n).data, colors = [];
    for (let i = 0; i < n; i++) colors.push(data.slice(4 * i, 4 * i + 3).join());
    const floor = colors[n - 4];
    return [floor, colors.filter((c) => c === floor).length];
  });
}"""


def counters_are_graphs(tab):
    """A counter's area is as high as its values are to each other; the pointer reads them."""
    open_small(tab)
    tab.page.mouse.move(5, 5)
    tab.laid_out()
    heights = tab.page.evaluate(HEIGHTS, [[1, 4, 8], "HBM bytes"])
    assert len({color for color, _ in heights}) == 1, heights
    one, five, three = (n for _, n in heights)
    assert abs(one / five - 1 / 5) < 0.06 and abs(three / five - 3 / 5) < 0.06 and five > 20, heights
    box, head = tab.page.locator(".trace-canvas").bounding_box(), tab.page.locator(".head", has_text="HBM bytes").bounding_box()
    tab.page.mouse.move(box["x"] + 4.1 / 10.2 * box["width"], head["y"] + head["height"] - 6)
    tab.page.wait_for_selector(".trace-tip:not([hidden]) >> text=5")


def detail_leaves_tracks_in_place(tab):
    """The closer view has more rows above the pointer: what is at the pointer stays; that it loads is seen."""
    above = {1: ("vm /device:GPU:0", {t: f"stream {t}" for t in range(1, 40)})}

    def thinned(query):
        rows = [synthetic.event(1, t, "outer", 0, 10000) for t in range(1, 40)]
        if "start_time_ms" in query:
            rows += [synthetic.event(1, t, f"inner {d}", 4000 + d, 2000 - 2 * d) for t in range(1, 10) for d in range(4)]
        return synthetic.answer(above, rows, [0, 10])

    tab.answer("trace_viewer@", thinned)
    tab.answer("trace_sums", lambda q: synthetic.sums([], q))
    tab.session(GPU, "trace")
    tab.page.wait_for_selector(".trace[data-drawn]")
    tab.page.evaluate(
        """() => { const e = document.querySelector('.trace'); window.seen = false;
        new MutationObserver(() => { if (e.classList.contains('busy')) window.seen = true; }).observe(e, {attributes: true}); }"""
    )
    place = lambda: box_of(tab.page.locator(".head.thread", has_text="stream 12"), "y")
    at, box = place(), tab.page.locator(".trace-canvas").bounding_box()
    tab.page.mouse.move(box["x"] + box["width"] / 2, at + 8)
    for _ in range(12):
        tab.page.mouse.wheel(0, -240)
    total = lambda: tab.page.evaluate("parseFloat(document.querySelector('.trace-sizer').style.height)")
    wait_until("the rows are there", lambda: total() > 39 * 23 + 28 + 9 * 4 * 18 - 1)
    wait_until("and it stands where it was", lambda: abs(place() - at) <= 1)
    assert tab.page.evaluate("window.seen"), "loading was seen"


PERFETTO = """<!doctype html><script>addEventListener('message', (e) => {
  if (e.data === 'PING') e.source.postMessage('PONG', e.origin);
  else if (e.data.perfetto) {
    const trace = JSON.parse(new TextDecoder().decode(e.data.perfetto.buffer));
    document.title = `${e.data.perfetto.fileName} ${trace.traceEvents.filter((x) => x.ph === 'X').length}`;
  }
});</script>"""


def open_in_perfetto(tab):
    """What is in sight goes to Perfetto's page, whose place a page of the test takes."""
    tab.context.route("https://ui.perfetto.dev/**", lambda r: r.fulfill(content_type="text/html", body=PERFETTO))
    open_small(tab, "t=2.05~4.05")
    with tab.context.expect_page() as opened:
        tab.page.click("text=Open in Perfetto")
    other = opened.value
    wait_until("it has the events", lambda: ".json" in other.title())
    kept = [e for e in json.loads(json.dumps(synthetic.events())) if e["ph"] == "X" and e["ts"] <= 4050 and e["ts"] + e["dur"] >= 2050]
    assert other.title().endswith(f".json {len(kept)}") and len(kept) > 8, other.title()


NAMES = (
    ("short", 20, "short"),
    ("void gemm<float, Tile<64, 32>>(float const*)", 40, "void gemm<…>(float const*)"),
    ("bool operator<(a, b)::call<int>(x)", 33, "bool operator<(a, b)::call<…>(x)"),
    ("f(x) < y && unclosed<int, and more of it", 39, "f(x) < y && unclosed<int, and more of it"[:19] + "…" + "f(x) < y && unclosed<int, and more of it"[-19:]),
    ("a_name_that_is_far_too_long_for_a_cell.17", 21, "a_name_tha…a_cell.17"[:10] + "…" + "r_a_cell.17"[-10:]),
    ("matmul_kernel", 6, "matmu…"),
)


def names_are_shortened(tab):
    """Templates are folded first; what is still too long loses its middle, and no half of a character is left."""
    tab.open("sessions")
    run = "async ([root, text, n]) => (await import(`${root}/ui/lib/format.js`)).short(text, n)"
    for text, n, wanted in NAMES:
        got = tab.page.evaluate(run, [tab.base, text, n])
        assert got == wanted and len(got) <= n, (text, got, wanted)
    got = tab.page.evaluate(run, [tab.base, "\U0001f600" * 20, 20])
    assert got.replace("\U0001f600", "") == "…", got


TESTS = [
    names_are_shortened,
    keys_choose_tools,
    select_by_track,
    ctrl_click,
    flows,
    fold_threads,
    pin_and_hide,
    hidden_is_not_summed,
    same_name,
    bookmarks,
    back_through_zooms,
    time_at_the_pointer,
    escape_leaves_the_search,
    counters_are_graphs,
    detail_leaves_tracks_in_place,
    open_in_perfetto,
]
