#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy and gcc's -fanalyzer over the product's sources.

usage: analyze.py BUILD [--deep] [--only clang-tidy|fanalyzer] [FILE...]

BUILD is a directory that meson configured for gcc, with its generated headers made.  .clang-tidy has
the checks; --deep adds those of clang's own analyzer, minutes instead of seconds.  Prints what is
found, and one "passed|failed analyzers: NAME" a line at the end.
"""
import argparse
import concurrent.futures
import json
import os
import shlex
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
PRODUCT = ("base/", "analysis/", "sql/", "storage/", "rpc/", "capture/", "agent/", "server/", "client/", "cli/")
# Leaks, double frees, use after free, descriptors: these are right.  Of the others nearly all that
# gcc 12 finds here are views of no bytes given to memcpy, and states that belong together.
FANALYZER = ["-fanalyzer", "-Werror", "-Wno-analyzer-null-dereference", "-Wno-analyzer-null-argument",
             "-Wno-analyzer-use-of-uninitialized-value", "-Wno-analyzer-too-complex"]
DEEP = "clang-analyzer-unix.*,clang-analyzer-core.DivideZero,clang-analyzer-core.VLASize," \
       "clang-analyzer-core.UndefinedBinaryOperatorResult,clang-analyzer-nullability.*"


def product_commands(build):
    """[(file, directory, compiler's arguments)] of the product's sources."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        commands = json.load(f)
    out = []
    for c in commands:
        name = os.path.relpath(os.path.normpath(os.path.join(c["directory"], c["file"])), ROOT)
        if name.startswith(PRODUCT):
            out.append((name, c["directory"], shlex.split(c["command"])))
    return sorted(out)


def without_outputs(args):
    out, skip = [], False
    for arg in args:
        if skip:
            skip = False
        elif arg in ("-o", "-MF", "-MQ"):
            skip = True
        elif arg not in ("-MD", "-c", "ccache", "-Werror"):
            out.append(arg)
    return out


def fanalyzer(command, _build, _deep):
    _, directory, args = command
    return subprocess.run(without_outputs(args) + FANALYZER + ["-c", "-o", os.devnull], cwd=directory,
                          capture_output=True, text=True, check=False)


def clang_tidy(command, build, deep):
    # gcc's warning flags mean nothing to clang; warnings are for compilers to give.
    args = ["clang-tidy-14", "--quiet", "-p", build, "--extra-arg=-Wno-unknown-warning-option",
            "--extra-arg=-w", os.path.join(ROOT, command[0])]
    if deep:
        args.append("--checks=" + DEEP)
    return subprocess.run(args, capture_output=True, text=True, check=False)


ANALYZERS = {"clang-tidy": clang_tidy, "fanalyzer": fanalyzer}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build")
    parser.add_argument("files", nargs="*", help="these alone")
    parser.add_argument("--deep", action="store_true")
    parser.add_argument("--only", choices=sorted(ANALYZERS))
    args = parser.parse_args()
    commands = [c for c in product_commands(args.build) if not args.files or c[0] in args.files]
    if not commands:
        sys.exit("analyze: there is nothing to analyze")
    failed = 0
    lines = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, analyze in ANALYZERS.items():
            if args.only not in (None, name):
                continue
            runs = [pool.submit(analyze, c, args.build, args.deep) for c in commands]
            bad = [r.result() for r in runs if r.result().returncode != 0]
            for done in bad:
                print((done.stdout + done.stderr).strip())
            lines.append(f"{'failed' if bad else 'passed'} analyzers: {name}, {len(commands)} files")
            failed += bool(bad)
    print("\n".join(lines))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
