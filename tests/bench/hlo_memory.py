#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""memory_viewer of the largest HLO program of some profiles, beside XProf: milliseconds of the processor.

usage: hlo_memory.py BUILD [--corpus DIR]... [--rounds N]    (with the Python of tests/parity/setup.sh)

The profiles are those of tests/data and below DIR, also *.xz.  XProf is asked in its own process, with the program's file already
written, which it reads; ours in a process that has the program (bench_hlo_memory).  Both take turns; the figures are the best of the
rounds, which a busy machine changes least.  Prints a table in Markdown.
"""
import argparse
import glob
import lzma
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "parity"))
import hlo_memory  # noqa: E402
import hlo_programs  # noqa: E402


def programs(directories, scratch):
    """Each different program, also of profiles that are compressed."""
    for directory in directories:
        for packed in sorted(glob.glob(os.path.join(directory, "**", "*.xplane.pb.xz"), recursive=True)):
            with lzma.open(packed) as f, open(os.path.join(scratch, os.path.basename(packed)[:-3]), "wb") as out:
                out.write(f.read())
    yield from hlo_programs.of_profiles([*directories, scratch])


def spent(call):
    """Milliseconds of the processor, and the size of the answer."""
    began = time.process_time()
    size = len(call())
    return (time.process_time() - began) * 1e3, size


class Peers:
    def __init__(self, build, program, top):
        from xprof.convert import raw_to_tool_data as convert
        self.convert, self.build, self.program = convert, build, os.path.join(top, "program")
        self.name = f"{hlo_programs.Hlo.FromString(program).hlo_module.name}(7)"
        self.profile = os.path.join(top, "plugins", "profile", "run", "h.xplane.pb")
        os.makedirs(os.path.dirname(self.profile))
        for path, data in ((self.program, program), (self.profile, hlo_memory.profile_of(program))):
            with open(path, "wb") as f:
                f.write(data)
        convert.xspace_to_tool_names([self.profile])

    def xprof_answer(self):
        options = {"module_name": self.name, "memory_space": "0", "use_saved_result": True}
        return self.convert.xspace_to_tool_data([self.profile], "memory_viewer", options)[0]

    def ours_answer(self, rounds):
        words = [os.path.join(self.build, "tests/bench/bench_hlo_memory"), self.program, str(rounds)]
        us, size = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()
        return float(us) / 1e3, int(size)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("build")
    p.add_argument("--corpus", action="append", default=[])
    p.add_argument("--rounds", type=int, default=20)
    args = p.parse_args()
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    best = {}

    def note(what, figure):
        best[what] = min(best.get(what, (1e9, 0)), figure)
    with tempfile.TemporaryDirectory() as top:
        largest = max(programs([os.path.join(HERE, "..", "data"), *args.corpus], top), key=len)
        peers = Peers(args.build, largest, top)
        for _ in range(args.rounds):
            note("xprof", spent(peers.xprof_answer))
            note("xplaned", peers.ours_answer(20))
    sizes = {size for _, size in best.values()}
    if len(sizes) != 1:
        sys.exit(f"answers of different sizes: {sizes}")
    (theirs, _), (ours, _) = best["xprof"], best["xplaned"]
    print("| program | its HloProto | answer | xprof ms | xplaned ms | ratio (goal ≥ 10) |\n| --- | ---: | ---: | ---: | ---: | ---: |")
    print(f"| {peers.name[:-3]} | {len(largest) / 1024:.0f} KiB | {sizes.pop() / 1024:.0f} KiB | {theirs:.1f} | {ours:.1f} | "
          f"{theirs / ours:.1f} {'✓' if theirs >= 10 * ours else '✗'} |")


if __name__ == "__main__":
    main()
