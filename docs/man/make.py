#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts what `PROGRAM --help-man` prints into its manual page.

usage: make.py PROGRAM TEMPLATE OUTPUT VERSION
"""
import subprocess
import sys

program, template, output, version = sys.argv[1:]
options = subprocess.run([program, "--help-man"], check=True, capture_output=True, text=True).stdout
with open(template, encoding="utf-8") as f:
    page = f.read().replace("@VERSION@", version).replace("@OPTIONS@\n", options)
with open(output, "w", encoding="utf-8") as f:
    f.write(page)
