#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What docs/operation.md says of metrics, against the table of metrics.

    metric_docs.py XPLANED [--write]    the part between the markers is generated; --write puts it in
"""
import pathlib
import subprocess
import sys

import doc_part

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "operation.md"


def main():
    program, write = sys.argv[1], "--write" in sys.argv[2:]
    out = subprocess.run([program, "--help-metrics"], capture_output=True, check=True, timeout=60, text=True).stdout
    doc_part.check(PAGE, sys.argv[0], "\n" + out + "\n", "metrics", write)


if __name__ == "__main__":
    main()
