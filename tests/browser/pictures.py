#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pictures of every page, at 1400 and at 400 px, light and dark, against those of pictures/.

    pictures.py BUILD [PAGE...]             compares; --update writes pictures/ instead

A stored picture is the grey page, a pixel for each block of 8 by 8: as small as that it still shows where everything stands.
Blocks may differ by what other versions of a font's renderer do to edges, not by what a moved line of text does; the
comparison is itself tested first.  Fonts are DejaVu; times of files and the zone are fixed, what a page counts is hidden.
The last line is "N passed, N failed, N skipped".
"""

import io
import os
import pathlib
import sys
import urllib.parse

from PIL import Image, ImageChops, ImageDraw

import harness
from harness import Daemon, Results, Tab, environment_path, find_chromium
from test_pages import BFC, GPU, TF, TPU

STORED = pathlib.Path(__file__).resolve().parent / "pictures"
BLOCK = 8
MOST = 12     # by which a block's grey may differ, of 255
MOST_BLOCKS = 4  # that may differ by more
SIZES = {"wide": (1400, 900), "narrow": (400, 800)}
quoted = lambda session, page: f"s/{urllib.parse.quote(session, safe='')}/{page}"
PAGES = {
    "sessions": "", "compare": "compare", "history": "history", "sql": "sql", "capture": "captures", "server": "server",
    "overview": quoted(TF, "overview"), "trace": quoted(GPU, "trace"), "op_profile": quoted(GPU, "op_profile"), "ops": quoted(GPU, "ops"),
    "hlo_ops": quoted(GPU, "hlo_ops"), "roofline": quoted(TPU, "roofline"), "kernels": quoted(GPU, "kernels"), "memory": quoted(BFC, "memory"),
    "memory_viewer": quoted(TPU, "memory_viewer"), "graph": quoted(TPU, "graph"), "input": quoted(TF, "input"), "inference": quoted("made/serving", "inference"),
}
# Numbers that differ from run to run.
STEADY = """* {transition: none !important; animation: none !important; caret-color: transparent !important}
.page-server dd, .page-server td, .page-sessions table {visibility: hidden !important}"""


def blocks(png):
    """The picture as it is stored."""
    image = Image.open(io.BytesIO(png)).convert("L")
    return image.resize((image.width // BLOCK, image.height // BLOCK), Image.Resampling.BOX)


def differing(a, b):
    """How many blocks differ by more than MOST; all of them when the sizes differ."""
    if a.size != b.size:
        return max(a.width * a.height, b.width * b.height)
    return sum(ImageChops.difference(a, b).histogram()[MOST + 1 :])


def check_comparison(png, heading):
    """A heading that moves by 8 px is noticed; a renderer that draws edges of text otherwise is not."""
    page = Image.open(io.BytesIO(png)).convert("L")
    x, y, width, height = (round(heading[k]) for k in ("x", "y", "width", "height"))
    text = page.crop((x, y, x + width, y + height))

    def stored(image):
        out = io.BytesIO()
        image.save(out, "PNG")
        return blocks(out.getvalue())

    for dx, dy in ((0, 8), (8, 0), (0, -8)):
        moved = page.copy()
        ImageDraw.Draw(moved).rectangle((x, y, x + width - 1, y + height - 1), page.getpixel((x - 1, y)))
        moved.paste(text, (x + dx, y + dy))
        assert differing(stored(page), stored(moved)) > MOST_BLOCKS, (dx, dy)
    # Each pixel of an edge by up to a tenth of the range, up and down in turn.
    noisy, pixels = page.copy(), page.load()
    for py in range(1, page.height):
        for px in range(1, page.width):
            if abs(pixels[px, py] - pixels[px - 1, py]) > 20:
                noisy.putpixel((px, py), max(0, min(255, pixels[px, py] + (25 if (px + py) % 2 else -25))))
    assert differing(stored(page), stored(noisy)) <= MOST_BLOCKS


class Fixed(Daemon):
    """A daemon whose profiles are of one time."""

    def start(self):
        make = harness.make_logdir

        def made(top, build):
            make(top, build)
            for path in top.rglob("*"):
                os.utime(path, (1577836800, 1577836800))

        harness.make_logdir = made
        try:
            return super().start()
        finally:
            harness.make_logdir = make


def take(tab, place):
    tab.open(place)
    tab.page.evaluate("(text) => { const sheet = new CSSStyleSheet(); sheet.replaceSync(text); document.adoptedStyleSheets = [sheet]; }", STEADY)
    if place.endswith("/trace"):
        tab.page.wait_for_selector(".trace[data-drawn]")
    tab.page.wait_for_load_state("networkidle")
    tab.laid_out()
    return tab.page.screenshot(animations="disabled", caret="hide")


def compare(tab, name, place, update):
    png = take(tab, place)
    file = STORED / f"{name}.png"
    if update:
        blocks(png).point(lambda v: v // 8 * 8 + 4).save(file, optimize=True)  # fewer greys are fewer bytes
        return
    (environment_path() / "browser" / f"picture-{name}.png").write_bytes(png)
    n = differing(blocks(png), Image.open(file).convert("L"))
    assert n <= MOST_BLOCKS, f"{n} blocks differ from {file.name}"


def main():
    args = [a for a in sys.argv[1:] if not a.startswith("--")]
    if not args:
        sys.exit(__doc__)
    from playwright.sync_api import sync_playwright

    update, results, daemon = "--update" in sys.argv, Results(), Fixed(args[0])
    for folder in (STORED, environment_path() / "browser"):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        base = daemon.start()
        with sync_playwright() as p:
            browser = p.chromium.launch(executable_path=find_chromium(), args=["--font-render-hinting=none", "--disable-lcd-text", "--no-sandbox"])
            for size in SIZES:
                for scheme in ("light", "dark"):
                    tab = Tab(browser, base, SIZES[size], color_scheme=scheme, timezone_id="UTC", locale="en-US", reduced_motion="reduce")
                    if size == "wide" and scheme == "light" and not update:
                        png = take(tab, PAGES["history"])
                        results.run("comparison", lambda: check_comparison(png, tab.page.locator("main h1").bounding_box()))
                    for page, place in PAGES.items():
                        if args[1:] and page not in args[1:]:
                            continue
                        name = f"{page}-{size}-{scheme}"
                        results.run(name, lambda: compare(tab, name, place, update))
                    tab.close()
            browser.close()
    finally:
        daemon.stop()
    return results


if __name__ == "__main__":
    outcome = main()
    print(outcome.last_line())
    sys.exit(1 if outcome.counts["failed"] or not sum(outcome.counts.values()) else 0)
