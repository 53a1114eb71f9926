#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/hardening.md: each row has a test or a document, and each that it names is there: `PATH: TEXT`, PATH from the top or
of tests/hostile, TEXT in that file."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "hardening.md"
TEST = re.compile(r"(?:test|scenario|check|try|suite)_\w+")
REFERENCE = re.compile(r"`([\w./-]+\.(?:py|c|h|sh|md)): (.+?)`(?=,| \|)")


PART = re.compile(r"(?:try|suite|stage)_(\w+)")


def is_run(name, text, source):
    """Whether what a row names in a file is not only there: functions in C and in Python are called but for tests of Python,
    which are found by their names, and parts of a script are in its list of parts."""
    text = text.removeprefix("def ")
    count = len(re.findall(rf"(?<!\w){re.escape(text)}(?!\w)", source))
    if name.endswith(".c") and TEST.fullmatch(text):
        return count > 1
    if name.endswith(".py") and re.fullmatch(r"[a-z_]+", text) and not text.startswith("test_"):
        return count > 1
    part = PART.fullmatch(text) if name.endswith(".sh") else None
    if part:
        word = part[1].replace("_", "[-_]")
        return count > 0 and re.search(rf"=\([^)]*(?<![\w-]){word}(?![\w-])", source) is not None
    return count > 0


def wrong_of(row):
    number, what, tests = (cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:4])
    found = REFERENCE.findall(tests + " |")
    if not found or len(found) != tests.count(": "):
        yield f"{number} {what}: {tests} names no test"
    for path, text in found:
        file = ROOT / path if "/" in path or (ROOT / path).exists() else ROOT / "tests" / "hostile" / path
        if not file.is_file():
            yield f"{number} {what}: no file {path}"
        elif not is_run(path, text, file.read_text()):
            yield f"{number} {what}: {path} does not have {text}, or never runs it"


def main():
    rows = [line for line in PAGE.read_text().splitlines() if re.match(r"\| \d", line)]
    numbers = [row.split("|")[1].strip() for row in rows]
    wrong = [text for row in rows for text in wrong_of(row)]
    last = {}  # by part
    for part, number in (map(int, n.split(".")) for n in numbers):
        last[part] = max(number, last.get(part, 0))
    expected = {f"{part}.{i}" for part in range(1, max(last) + 1) for i in range(1, last.get(part, 1) + 1)}
    wrong += [f"no row of {number}" for number in sorted(expected - set(numbers))]
    sys.exit("\n".join(f"docs/hardening.md: {text}" for text in wrong) or None)


if __name__ == "__main__":
    main()
