# SPDX-License-Identifier: Apache-2.0
"""The two pictures of the README."""

import json

from harness import Skip, fetch
from test_pages import GPU, TF

SIZE = (1180, 720)


def tests(shots, docs):
    def save(tab, name):
        for folder in filter(None, (shots, docs)):
            folder.mkdir(parents=True, exist_ok=True)
            tab.page.screenshot(path=folder / name)
            assert (folder / name).stat().st_size < 200000, "the picture is small"

    def overview(tab):
        tab.session(TF, "overview")
        tab.page.wait_for_selector(".chart path")
        save(tab, "overview.png")

    def trace(tab):
        tools = [t["name"] for t in json.loads(fetch(tab.base, "/api/v1/tools")[2])["tools"]]
        if "trace_viewer@" not in tools:
            raise Skip("this xplaned has no trace_viewer@ yet")
        tab.page.emulate_media(color_scheme="dark")
        tab.page.set_viewport_size({"width": SIZE[0], "height": 800})
        tab.session(GPU, "trace", "t=23.6~33.6")
        tab.page.wait_for_selector(".trace[data-drawn]")
        box = tab.page.locator(".trace-canvas").bounding_box()
        tab.page.mouse.click(box["x"] + box["width"] * 0.56, box["y"] + 38)
        tab.page.wait_for_timeout(800)
        save(tab, "trace.png")

    return [overview, trace]
