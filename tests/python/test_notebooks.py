# SPDX-License-Identifier: Apache-2.0
"""What notebooks show of answers."""
import html.parser

import xplaned

HOSTS, GPU, ODD = "cpu/jax_4hosts", "accel/mi300_jax_gemm", "cpu/jax_odd_names"
KNOWN = {"p", "strong", "br", "em", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "svg", "rect", "title", "span"}


class Page(html.parser.HTMLParser):
    """The tags and the text of HTML; every tag is closed, and nothing comes from elsewhere."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.text = [], [], ""
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        assert tag in KNOWN, tag
        for name, value in attributes:
            assert name in ("style", "fill", "x", "y", "width", "height", "role", "aria-label") and "url" not in value and "//" not in value
        self.tags.append(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def shown(value):
    return Page(value._repr_html_())


def representations(place):
    four = place.client.session(HOSTS)
    page = shown(four.verdict())
    assert "31.9 ms of 36.8 ms" in page.text and "step time 36.8 ms" in page.text and "4 hosts" in page.text, page.text
    page = shown(four.findings())
    assert page.tags.count("li") == 4 and "could save 86.7%" in page.text and "all-reduce.5 5.25 s" in page.text, page.text
    page = shown(four)
    assert HOSTS in page.text and page.tags.count("li") == 4
    page = shown(four.steps())
    assert page.tags.count("svg") == 1 and "20 steps, the longest 80.5 ms" in page.text, page.text
    assert 20 <= page.tags.count("rect") == page.tags.count("title") and "20 of 80 rows" in page.text
    page = shown(four.ops())
    assert page.tags.count("tr") == 1 + 20 and "5.25e+03 ms" not in page.text and "5.25 s" in page.text
    page = shown(place.client.session(GPU).kernels())
    assert page.tags.count("table") == 1 and "kernel_name" in page.text
    page = shown(place.client.compare(HOSTS, "cpu/jax_8dev_shardmap"))
    assert "36.8 ms → 4.21 ms" in page.text and page.tags.count("table") == 2 and "exposed_collectives" in page.text, page.text
    assert "no change beyond noise" in shown(place.client.compare(HOSTS, HOSTS)).text
    assert "A side has no steps" in shown(place.client.compare("cpu/jax_empty", HOSTS)).text
    assert "corrupt" in shown(place.client.session("cpu/jax_2proc_samehost")).text
    page = shown(place.client.session("cpu/jax_empty"))
    assert "no events of a device" in page.text and "No known cause" not in page.text, page.text
    page = shown(place.client.sql("SELECT '<b>&\u202e' AS \"<i>\", 1500000000 AS wall_ps, NULL AS n"))
    assert page.text == "<i>walln<b>&\\u{202e}1.5 ms", page.text
    page = shown(place.client.session(ODD).events())
    assert "<script>alert(1)</script>" in page.text and "script" not in page.tags
    assert not shown(xplaned.rows.Rows()).text


TESTS = [representations]
