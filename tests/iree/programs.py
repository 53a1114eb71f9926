#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fresh captures of programs, by `xplanectl iree capture`: reports and traces against iree-profile's.

usage: programs.py XPLANECTL IREE_PROFILE DRIVER...     local-sync, local-task, vulkan

Programs are those of programs/, by their comments' inputs, run by the tools beside IREE_PROFILE.
They are compiled by the iree-compile that is there or in PATH; without one, drivers of CPUs run
those of tests/data/iree/programs, which were compiled for VMVX, and Vulkan is skipped.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import compare
import live

HERE = pathlib.Path(__file__).resolve().parent
READY = HERE.parent / "data" / "iree" / "programs"
CPU = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu",
       "--iree-llvmcpu-target-cpu=host"]
TARGETS = {"local-sync": CPU, "local-task": CPU, "vulkan": ["--iree-hal-target-device=vulkan"]}
# What a run adds to the usual, by the number of the program.
VARIANTS = [[], ["--flush_interval", "2ms"], ["--mode", "queue-events"],
            ["--mode", "queue-events,executable-metadata,memory-events"]]


def run(argv, **options):
    return subprocess.run([str(a) for a in argv], capture_output=True, timeout=300, check=False,
                          **options)


class Driver:
    def __init__(self, name, tools, folder):
        self.name, self.tools, self.folder = name, tools, folder
        beside = tools / "iree-compile"
        self.compiler = str(beside) if beside.exists() else shutil.which("iree-compile")

    def unusable(self):
        """Why nothing runs here; None when it does."""
        if self.name.startswith("local"):
            return None
        if not self.compiler:
            return "no iree-compile (PyPI: iree-base-compiler)"
        listed = run([self.tools / "iree-run-module", f"--list_devices={self.name}"])
        return None if f"{self.name}://" in listed.stdout.decode() else "no such device"

    def module(self, source):
        """The compiled program; None after saying why there is none."""
        if not self.compiler:
            return READY / f"{source.stem}.vmfb"
        out = self.folder / f"{source.stem}.{self.name}.vmfb"
        done = run([self.compiler, *TARGETS[self.name], source, "-o", out])
        if done.returncode == 0:
            return out
        print(f"FAILED {source.stem} on {self.name}: {done.stderr.decode()[-300:]}")
        return None

    def capture(self, xplanectl, source, number):
        """A bundle of the program; a sentence when there is none."""
        module, bundle = self.module(source), self.folder / f"{source.stem}.ireeprof"
        if not module:
            return None, "not compiled"
        inputs = re.search(r"^// inputs: (.*)$", source.read_text(), re.M).group(1).split()
        tool = ["iree-run-module"]
        if number % 3 == 2:  # every third is run again and again
            tool = ["iree-benchmark-module", "--benchmark_min_time=7x"]
        variant = VARIANTS[number % len(VARIANTS)]
        done = run([xplanectl, "iree", "capture", "-o", bundle, *variant, "--",
                    self.tools / tool[0], *tool[1:], f"--device={self.name}", f"--module={module}",
                    "--function=main", *[f"--input={i}" for i in inputs]])
        if done.returncode or not bundle.exists():
            return None, f"status {done.returncode}: {done.stderr.decode()[-500:]}"
        return str(bundle), None


def check(xplanectl, program, bundle, folder):
    """Sentences about what differs."""
    wrong = live.check_trace(xplanectl, program, bundle, folder)
    if wrong:
        yield f"trace: {wrong}"
    for report, flags in compare.REPORTS.items():
        wrong = live.check(xplanectl, program, bundle, report, flags)
        if wrong:
            yield f"{report} {flags}: {wrong}"


def main():
    xplanectl, program, drivers = sys.argv[1], sys.argv[2], sys.argv[3:]
    tools, passed, failed, skipped = pathlib.Path(program).resolve().parent, 0, 0, 0
    sources = sorted((HERE / "programs").glob("*.mlir"))
    for name in drivers:
        with tempfile.TemporaryDirectory() as folder:
            driver = Driver(name, tools, pathlib.Path(folder))
            reason = driver.unusable()
            if reason:
                print(f"SKIPPED {name}: {reason}")
                skipped += 1
                continue
            for number, source in enumerate(sources):
                bundle, wrong = driver.capture(xplanectl, source, number)
                wrongs = [wrong] if wrong else list(check(xplanectl, program, bundle, folder))
                passed += not wrongs
                failed += bool(wrongs)
                for wrong in wrongs:
                    print(f"FAILED {source.stem} on {name}: {wrong}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
