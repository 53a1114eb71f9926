#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""README.md's way from Python to an answer, literally: its shell lines, then its program.

    readme_client.py --build BUILD

They run in a folder with nothing but `proto`, as they stand; only the address is that of a daemon over tests/data, and RUN one of
its sessions.  Needs grpcio and grpcio-tools, and nothing else, as README.md says.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import daemon

ROOT = daemon.HERE.parent.parent
SESSION = "cpu/jax_matmul_nopy"


def blocks():
    """The shell lines and the program of README.md's section about Python."""
    text = (ROOT / "README.md").read_text(encoding="utf-8").split("\nWithout the Python client,", 1)[1]
    return re.search(r"```sh\n(.*?)```", text, re.S).group(1), re.search(r"```python\n(.*?)```", text, re.S).group(1)


def run(count, d, place):
    shell, program = blocks()
    count.check("the address to replace stands there once", program.count("127.0.0.1:50551") == 1)
    count.check("the session to replace stands there once", program.count('"RUN"') == 1)
    program = program.replace("127.0.0.1:50551", d.address).replace('"RUN"', json.dumps(SESSION))
    (place / "proto").symlink_to(ROOT / "proto")
    # `python3` is the interpreter that has the packages.
    (place / "bin").mkdir()
    (place / "bin" / "python3").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (place / "bin" / "python3").chmod(0o755)
    environment = {**os.environ, "PATH": f"{place / 'bin'}:{os.environ['PATH']}"}
    made = subprocess.run(["sh", "-euc", shell], cwd=place, env=environment, capture_output=True, text=True, timeout=120)
    count.check("the stubs are made", made.returncode == 0, made.stderr)
    done = subprocess.run(["python3", "-c", program], cwd=place, env=environment, capture_output=True, text=True, timeout=120)
    tables = len(json.loads(d.tool("overview_page", SESSION)))
    count.check("the program prints the answer", done.returncode == 0 and done.stdout == f"{tables} tables\n",
                done.stdout + done.stderr)
    count.check("an answer has tables", tables > 1, tables)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    args = parser.parse_args()
    count = daemon.Count()
    with daemon.running(args.build) as d, tempfile.TemporaryDirectory(prefix="xplaned-readme-") as place:
        run(count, d, pathlib.Path(place))
    count.finish()


if __name__ == "__main__":
    main()
