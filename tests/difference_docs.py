#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/differences.md: each row of its tables names a test in its last column, and so does each entry of its last section, which is
an item of a list or a paragraph that begins with a name.  Each test that they name is there:

    `test_X.c: NAME` and `NAME` behind it    a function of that unit test
    `server/test_X.c: NAME`                  one of tests/server
    `golden: CASE`, `parity: FILE.py`, `browser: TEXT`, `tests/PATH`
"""
import pathlib
import re
import sys

TESTS = pathlib.Path(__file__).resolve().parent
PAGE = TESTS.parent / "docs" / "differences.md"
LAST = "## XProf disagrees with itself"
TEST = re.compile(r"(server/)?test_\w+\.c\b|(golden|parity|browser): ")


def rows(text):
    """[(line, cells)] of the tables whose last column is of tests"""
    pinned = False
    for number, line in enumerate(text.splitlines(), 1):
        cells = [c.strip() for c in line.strip("|").split("|")]
        if not line.startswith("|"):
            pinned = False
        elif cells[-1] == "test":
            pinned = True
        elif pinned and set(line) - set("|- "):
            yield number, cells


def entries(text):
    """[(line, text)] of the last section"""
    number, block, in_section = 0, [], False
    for at, line in enumerate([*text.splitlines(), ""], 1):
        if block and (not line or line.startswith("* ")):
            yield number, " ".join(block)
            block = []
        in_section = line == LAST or in_section and not line.startswith("#")
        if block:
            block.append(line)
        elif in_section and re.match(r"\* |`\w+`: ", line):
            number, block = at, [line]


def named(text, word):
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def wrong_of(references):
    text = None  # of the unit test that was named last
    for reference in references:
        unit = re.fullmatch(r"(server/)?(test_\w+\.c)(?:: (\w+))?", reference)
        kind, _, rest = reference.partition(": ")
        if unit:
            found = list((TESTS / ("server" if unit[1] else "unit")).rglob(unit[2]))
            text = found[0].read_text() if found else ""
            if not found or unit[3] and not named(text, unit[3]):
                yield reference
        elif re.fullmatch(r"(test|check)_\w+", reference):
            files = [text] if text is not None else [p.read_text() for p in TESTS.rglob("test_*.c")]
            if not any(named(t, reference) for t in files):
                yield reference
        elif kind == "golden" and not (TESTS / "golden" / "cases" / rest / "case").is_file():
            yield reference
        elif kind == "parity" and not (TESTS / "parity" / rest.split()[0]).is_file():
            yield reference
        elif reference.startswith("tests/") and not (TESTS.parent / reference).exists():
            yield reference


def main():
    text = PAGE.read_text()
    of_rows = [(n, cells[0], re.findall(r"`([^`]+)`", cells[-1])) for n, cells in rows(text)]
    of_entries = [(n, entry[:40], [r for r in re.findall(r"`([^`]+)`", entry) if TEST.match(r)]) for n, entry in entries(text)]
    wrong = []
    for number, name, references in of_rows + of_entries:
        if not references:
            wrong.append(f"{number}: {name} names no test")
        wrong += [f"{number}: {name}: there is no {reference}" for reference in wrong_of(references)]
    if len(of_rows) < 30 or len(of_entries) < 8:
        wrong.append(f"{len(of_rows)} rows and {len(of_entries)} entries have tests: the page changed its form")
    sys.exit("\n".join(f"docs/differences.md:{text}" for text in wrong) or None)


if __name__ == "__main__":
    main()
