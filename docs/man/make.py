#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts what `PROGRAM --help-man` prints into its manual page: all of it in place of the line
@OPTIONS@, or, when it has lines such as @COMMANDS@, what follows each in place of that line.

usage: make.py TEMPLATE OUTPUT VERSION PROGRAM...
PROGRAM follows on what runs it where it was built for another machine.
"""
import re
import subprocess
import sys

template, output, version, *program = sys.argv[1:]
printed = subprocess.run([*program, "--help-man"], check=True, capture_output=True, text=True).stdout
if not printed.startswith("@"):
    printed = "@OPTIONS@\n" + printed
parts = re.split(r"^(@[A-Z]+@\n)", printed, flags=re.M)[1:]
with open(template, encoding="utf-8") as f:
    page = f.read().replace("@VERSION@", version)
for line, part in zip(parts[::2], parts[1::2]):
    if line not in page:
        sys.exit(f"{template} has no place for {line.strip()}")
    page = page.replace(line, part)
with open(output, "w", encoding="utf-8") as f:
    f.write(page)
