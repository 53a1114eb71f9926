#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the main() of a program that holds several tests, each compiled with -Dmain=test_main_NAME.

usage: multi_call.py OUT SOURCE...

The name of a test is that of its source without folder, "test_" or "fault_", and ".c". The program takes it as its
first argument; what follows reaches the test as its own arguments. Sources of fuzz targets (fuzz_NAME.c) are compiled
with -DLLVMFuzzerTestOneInput=test_main_NAME, and replay the files that the arguments name.
"""
import pathlib
import re
import sys

MAIN = re.compile(r"^int main\((void|int argc, char \*\*argv)\) \{$", re.M)
TARGET = re.compile(r"^int LLVMFuzzerTestOneInput\(", re.M)
FUZZ_TYPE = "const uint8_t *, size_t"


def read_test(path):
    """(name, its parameters, the expression that runs it)."""
    kind, _, name = path.stem.partition("_")
    text = path.read_text(encoding="utf-8")
    if kind == "fuzz":
        if not TARGET.search(text):
            sys.exit(f"{path}: no LLVMFuzzerTestOneInput")
        return name, FUZZ_TYPE, f"fuzz_replay(test_main_{name}, argc - 1, argv + 1)"
    main = MAIN.search(text)
    if not main:
        sys.exit(f"{path}: no main(void) or main(int argc, char **argv)")
    if main[1] == "void":
        return name, "void", f"test_main_{name}()"
    return name, "int, char **", f"test_main_{name}(argc - 1, argv + 1)"


def main():
    out, *sources = sys.argv[1:]
    tests = [read_test(pathlib.Path(s)) for s in sources]
    lines = ["#include <stdio.h>", "#include <string.h>", ""]
    if any(parameters == FUZZ_TYPE for _, parameters, _ in tests):
        lines += ['#include "tests/fuzz/replay.h"', ""]
    lines += [f"int test_main_{name}({parameters});" for name, parameters, _ in tests]
    lines += ["", "int main(int argc, char **argv) {", '    const char *const name = argc > 1 ? argv[1] : "";']
    for name, _, call in tests:
        lines.append(f'    if (strcmp(name, "{name}") == 0) return {call};')
    lines += [f'    fprintf(stderr, "usage: %s TEST [ARG...]\\ntests:{"".join(" " + n for n, _, _ in tests)}\\n", argv[0]);',
              "    return 2;", "}", ""]
    pathlib.Path(out).write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
