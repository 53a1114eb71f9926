#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What docs/api.md says of tools, against the table of tools.

    tool_docs.py XPLANECTL [--write]    the part between the markers is generated; --write puts it in
"""
import json
import pathlib
import subprocess
import sys

import doc_part

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "api.md"
HOSTS = {"one": "one at a time", "each": "any", "each_or_all": "any", "all": "any"}


def wrapped(words, width=100):
    """Lines of at most `width` columns."""
    lines = [""]
    for w in words:
        if lines[-1] and len(lines[-1]) + 1 + len(w) > width:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + w
    return "\n".join(lines) + "\n"


def option_row(tool, o):
    values = ", ".join(o["values"].split("|"))
    return f"| {tool} | `{o['key']}` | {values} | {o['default']} | {o['help']} |\n"


def generated(table):
    out = "\n| tool | also called | hosts |\n| --- | --- | --- |\n"
    for t in table["tools"]:
        out += f"| {t['name']} | {', '.join(t['aliases'])} | {HOSTS[t['hosts']]} |\n"
    out += "\n| tool | option | values | default | what |\n| --- | --- | --- | --- | --- |\n"
    for t in table["tools"]:
        out += "".join(option_row(t["name"], o) for o in t["options"] if not o["common"])
    out += "".join(option_row("all", o) for o in table["tools"][0]["options"] if o["common"])
    served = sorted(t["name"] for t in table["tools"] if t["worker_served"])
    words = "An XProf that has xplaned as its worker gets these from it:".split() + [f"{n}," for n in served[:-1]] + [f"{served[-1]}."]
    return out + "\n" + wrapped(words) + "\n"


def main():
    program, write = sys.argv[1], "--write" in sys.argv[2:]
    out = subprocess.run([program, "tools", "--all", "--json"], capture_output=True, check=True, timeout=60).stdout
    expected = generated(json.loads(out))
    doc_part.check(PAGE, sys.argv[0], expected, "tools", write)


if __name__ == "__main__":
    main()
