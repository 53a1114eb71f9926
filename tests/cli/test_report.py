#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`xplanectl report`: one file with the answers of the other commands, in which texts of profiles are text.

usage: test_report.py XPLANECTL XPLANED
"""
import html.parser
import json
import shutil

from harness import DATA, Case, main

HOSTILE = "<img src=x onerror=window.pwned=1>\"'&"
FOUR = DATA / "jax_4hosts"


class Page(html.parser.HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.words = [], [], []
        self.feed(text)
        self.close()
        self.text = " ".join("".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.words.append(data)


class Report(Case):
    def report(self, *arguments):
        file = self.place / "report.html"
        code, out, err = self.ask("report", *arguments, "-o", file)
        self.assertEqual((code, out, err), (0, "", ""))
        text = file.read_text()
        self.assertLess(len(text), 2000000)
        page = Page(text)
        # No network, no script: opening the file sends no request.
        self.assertNotIn("script", page.tags)
        self.assertFalse([a for a in page.attributes if a[0] in ("src", "href", "srcset") or a[0].startswith("on")])
        self.assertIn(("content", "default-src 'none'; style-src 'unsafe-inline'"), page.attributes)
        self.assertNotIn("url(", text)
        return page

    def test_content(self):
        """Figures, findings, windows and tables are those of the other commands; the same through a daemon."""
        page = self.report(FOUR)
        found = json.loads(self.ask("findings", FOUR, "--json")[1])
        self.assertIn(found["verdict"]["text"] + ".", page.text)
        for f in found["findings"]:
            self.assertIn(f["text"], page.text)
            self.assertIn(f["advice"], page.text)
        times = found["times"]
        self.assertIn(f"Computing{times['compute_percent'] + times['overlapped_collectives_percent']:.1f}%", page.text)
        self.assertIn(f"Collectives {times['exposed_collectives_percent']:.1f}%", page.text)
        self.assertEqual(page.tags.count("svg"), sum(f["window"] is not None for f in found["findings"]))
        self.assertIn("all-reduce.5 76.2 ms", page.text)  # an event of the first window
        ops = json.loads(self.ask("summary", FOUR, "--json")[1])["device_ops"]
        order = [op["name"] for op in sorted(ops, key=lambda op: -op["self_time_ps"])]
        table = page.text[page.text.index("Device ops"):]
        self.assertLess(table.index(order[0]), table.index(order[5]))
        shutil.copytree(FOUR, self.logdir / "plugins" / "profile" / "four")
        self.daemon()
        self.assertEqual(self.report("four").text.replace("four", "jax_4hosts"), page.text)

    def test_base(self):
        page = self.report(FOUR, "--base", DATA / "jax_8dev_shardmap")
        compared = json.loads(self.ask("compare", DATA / "jax_8dev_shardmap", FOUR, "--json")[1])
        self.assertIn("Against ", page.text)
        self.assertIn(f"now (×{compared['step_time']['b_ps'] / compared['step_time']['a_ps']:.1f}; difference ", page.text)
        self.assertIn(compared["ops"][0]["op"], page.text)

    def test_hostile_names(self):
        """Names of sessions, hosts, ops and threads never become markup."""
        # Of the same length, so that the messages stay whole: an op, a thread.
        for name, other in ((b"all-reduce.5", b"<b>x</b><i a"), (b"tf_XLAEigen", b"<script>x()")):
            self.assertEqual(len(name), len(other))
            run = self.logdir / "plugins" / "profile" / f"{HOSTILE}{len(name)}"
            run.mkdir(parents=True)
            for i, host in enumerate((HOSTILE, "host-1")):
                data = (FOUR / f"host-{i}.cluster.local.xplane.pb").read_bytes()
                (run / f"{host}.xplane.pb").write_bytes(data.replace(name, other))
            page = self.report(run)
            self.assertIn(HOSTILE, page.text)
            self.assertIn(other.decode(), page.text)
            self.assertFalse({"img", "script"} & set(page.tags))
            self.assertNotIn(("a", None), page.attributes)
            self.assertEqual([a for a in page.attributes if "pwned" in str(a[1])], [])

    def test_wrong(self):
        self.assertEqual(self.ask("report", self.place / "none", "-o", self.place / "x.html")[0], 1)
        self.assertFalse((self.place / "x.html").exists())
        self.assertEqual(self.ask("report", FOUR, "--base", self.place / "none", "-o", self.place / "x.html")[0], 1)
        self.assertFalse((self.place / "x.html").exists())


if __name__ == "__main__":
    main("xplanectl", "xplaned")
