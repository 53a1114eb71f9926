#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random but well-formed profile sessions.

    generator.py --seed N [--case I] [--count K] OUT      one directory per case: OUT/I/HOST.xplane.pb, OUT/I/case.json

A case is fully determined by (seed, index, knobs).  --knob NAME=VALUE changes one of KNOBS.
"""
import argparse
import json
import os
import random
import sys

from families import Session

# Shares of cases, or chances inside a case that has the feature's family.
KNOBS = {
    "gpu": 0.70,            # the session's devices: GPU, TPU, none
    "tpu": 0.21,
    "several_hosts": 0.35,  # 2 to 8 hosts instead of one
    "foreign_host": 0.15,   # of several hosts: one is idle, CPU-only, or of another kind
    "steps": 0.92,          # step markers at all
    "memory": 0.78,         # memory events on the host
    "hlo": 0.55,            # HLO protos in /host:metadata
    "opaque_hlo": 0.75,      # ... without anything the cost model knows
    "tf": 0.5,              # TensorFlow-like host threads, else JAX-like
    "tf_data": 0.35,
    "odd": 0.25,            # missing and odd stats, unknown names, ties, unicode, overlaps
    "big": 0.02,            # more kernels, ops and framework names than a table holds
    "grouped": 0.02,        # the profile arrives with group ids
    "size": 1.0,            # scales the number of steps and ops
}


def make_case(seed, index, knobs=None, real_hlo=()):
    """{file name: XSpace bytes} and a description."""
    k = {**KNOBS, **(knobs or {})}
    rng = random.Random(f"{seed}/{index}")
    session = Session(rng, k, real_hlo)
    return session.files(), session.about


def write_case(path, files, about):
    os.makedirs(path, exist_ok=True)
    for name, data in files.items():
        with open(os.path.join(path, name), "wb") as f:
            f.write(data)
    with open(os.path.join(path, "case.json"), "w", encoding="utf-8") as f:
        json.dump(about, f, indent=1, sort_keys=True)


def parse_knobs(args):
    out = {}
    for a in args or []:
        k, v = a.split("=", 1)
        if k not in KNOBS:
            sys.exit(f"unknown knob {k}; there are {', '.join(sorted(KNOBS))}")
        out[k] = float(v)
    return out


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out")
    p.add_argument("--seed", default="1")
    p.add_argument("--case", type=int, default=0)
    p.add_argument("--count", type=int, default=1)
    p.add_argument("--knob", action="append")
    a = p.parse_args()
    knobs = parse_knobs(a.knob)
    for i in range(a.case, a.case + a.count):
        files, about = make_case(a.seed, i, knobs)
        write_case(os.path.join(a.out, str(i)), files, about)
        print(i, about["family"], {n: len(d) for n, d in files.items()})


if __name__ == "__main__":
    main()
