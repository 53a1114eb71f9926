# SPDX-License-Identifier: Apache-2.0
"""A part of a page that is made from a program's table: between two markers."""
import sys


def check(page, script, expected, source, write):
    """Compares the part of `page` that `script` makes with `expected`, or puts it in; exits where they differ."""
    name = script.rsplit("/", 1)[-1]
    begin, end = f"<!-- {source}: written by tests/{name} --write -->\n", f"<!-- end of {source} -->\n"
    text = page.read_text(encoding="utf-8")
    if text.count(begin) != 1 or text.count(end) != 1:
        sys.exit(f"{page}: the markers are missing")
    before, rest = text.split(begin)
    got, after = rest.split(end)
    if write:
        page.write_text(before + begin + expected + end + after, encoding="utf-8")
    elif got != expected:
        missing = [line for line in expected.splitlines() if line not in got.splitlines()]
        print("\n".join(missing))
        sys.exit(f"{page} does not say what the table of {source} says: run {script} PROGRAM --write")
