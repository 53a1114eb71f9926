#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles docs/examples/iree_capture.c against IREE's headers, where these are at hand.

usage: embed.py [IREE]

IREE (or $XPL_IREE_SOURCE) is a source tree of IREE, of the wheel's revision or near it.  Without
one the test is skipped: IREE's sources are no part of this repository, nor of its packages.
"""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
EXAMPLE = ROOT / "docs" / "examples" / "iree_capture.c"
FLAGS = ["-std=gnu17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
         "-DIREE_ALLOCATOR_SYSTEM_CTL=iree_allocator_libc_ctl"]  # as IREE's build defines it


def main():
    source = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("XPL_IREE_SOURCE", "")
    if not source:
        print("skipped: no sources of IREE; name them with $XPL_IREE_SOURCE")
        return 77
    include = pathlib.Path(source) / "runtime" / "src"
    if not (include / "iree" / "hal" / "api.h").exists():
        print(f"failed: {source} is no source tree of IREE: it has no runtime/src/iree/hal/api.h")
        return 1
    command = [os.environ.get("CC", "cc").split()[-1]] + FLAGS + ["-isystem", str(include)]
    done = subprocess.run(command + [str(EXAMPLE)], check=False)
    print("passed" if done.returncode == 0 else "failed: the example does not compile")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
