#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures xplaned side by side with xprof 2.24.2, xprof-rs 0.1.3 and lower bounds, on the same files
in one run; see README.md.  Prints tables in Markdown and writes them to build/bench/table.md."""
import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import inputs
import measure
from peers import Failure
from report import Report, write_between

MINUTES = {True: 6, False: 20}        # the target: sections that take longer do less
MOST_MINUTES = {True: 12, False: 25}  # later measurements are left out


class OutOfTime(Exception):
    pass


SECTIONS = [f.__name__ for f in measure.ALL]


def sections(text):
    wanted = text.split(",")
    for name in wanted:
        if name not in SECTIONS:
            raise argparse.ArgumentTypeError(f"{name}: there are {', '.join(SECTIONS)}")
    return wanted


def arguments():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--quick", action="store_true", help="fewer files and rounds, some 6 minutes")
    p.add_argument("--corpus", type=Path, metavar="DIR",
                   help="directory with large profiles, *.xplane.pb.xz (or its parent with big/)")
    p.add_argument("--build", type=Path, default=inputs.ROOT / "build/bench", metavar="DIR",
                   help="release build, inputs and virtual environments")
    p.add_argument("--xprof-venv", type=Path, metavar="DIR", help="has xprof 2.24.2 already")
    p.add_argument("--rs-venv", type=Path, metavar="DIR", help="has xprof-rs 0.1.3 already")
    p.add_argument("--only", metavar="SECTION,...", type=sections, default=[],
                   help="only these: " + ", ".join(SECTIONS))
    p.add_argument("--files", metavar="TEXT", default="", help="only files whose name has this in it")
    p.add_argument("--write-docs", action="store_true",
                   help="put the tables into docs/lab/performance.md; sections that were not measured "
                        "stay as they are")
    p.add_argument("-o", "--output", type=Path, metavar="FILE", help="where the table goes")
    return p.parse_args()


def command_line(args):
    return ("tests/bench/run.py" + " --quick" * args.quick + " --corpus DIR" * bool(args.corpus)
            + f" --only {','.join(args.only)}" * bool(args.only))


def measure_all(bench, report, wanted):
    for f, share in measure.ALL.items():
        if wanted and f.__name__ not in wanted:
            continue
        inputs.note(f"==> {f.__name__}")
        bench.until = time.monotonic() + share * MINUTES[bench.quick] * 60
        report.begin(f.__name__)
        try:
            f(bench, report)
        except Failure as e:
            inputs.note(f"{f.__name__}: {e}")
            report.figure("not measured", "", 0, False, str(e)[:80])
        finally:
            report.end()


def main():
    args = arguments()
    os.environ["LC_ALL"] = "C.UTF-8"
    args.build.mkdir(parents=True, exist_ok=True)
    venvs = args.build / "peers"
    venvs.mkdir(exist_ok=True)
    corpus = args.corpus
    if corpus and (corpus / "big").is_dir():
        corpus = corpus / "big"
    xprof = args.xprof_venv or inputs.venv(venvs / "xprof", inputs.PEERS["xprof"])
    rs = args.rs_venv or inputs.venv(venvs / "rs", inputs.PEERS["rs"])
    bins = inputs.build(args.build)
    made = args.build / "inputs"
    files = inputs.inputs(made, bins, corpus, args.quick, args.files)

    def ten_million():
        large = [f for f in files if f.kind == "corpus"]
        return inputs.ten_million(made, bins, large, args.quick, args.files)

    # Beside the inputs: sessions are links to them.
    work = Path(tempfile.mkdtemp(prefix="work-", dir=args.build))
    report = Report(command_line(args))

    def out_of_time(*_):
        raise OutOfTime

    signal.signal(signal.SIGALRM, out_of_time)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    signal.alarm(MOST_MINUTES[args.quick] * 60)
    try:
        bench = measure.Bench(bins, work, rs, xprof, files, args.quick, ten_million)
        measure_all(bench, report, args.only)
    except OutOfTime:
        inputs.note("out of time: the rest is left out")
        report.figure("measured within its time", "", 0, False, "the rest is left out")
    finally:  # keeps the measurements made before an error
        signal.alarm(0)
        shutil.rmtree(work, ignore_errors=True)
        text = report.markdown(SECTIONS)
        (args.output or args.build / "table.md").write_text(text, encoding="utf-8")
    if args.write_docs:
        write_between(inputs.ROOT / "docs/lab/performance.md", "bench",
                      lambda old: report.markdown(SECTIONS, old))
    print(text)


if __name__ == "__main__":
    main()
