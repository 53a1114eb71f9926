#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The units of a type of TPU (units.h) as C:  units.py UNITS_MODEL.txt OUTPUT.c

A line "unit NODE MEASURE WHEN PEAK OF FACTOR NAME" begins a unit, whose peak is made of the counter or the unit OF. The lines
after it, "FIRST STEP N HALVES", are its runs of counters.
"""
import os
import sys


def read(path):
    units = []
    with open(path, encoding="ascii") as f:
        for line in f.read().splitlines():
            if line.startswith("unit "):
                units.append((line.split(" ", 7)[1:], []))
            elif not line.startswith("#"):
                units[-1][1].append(line.split())
    return units


def main():
    source, target = sys.argv[1:]
    units, runs, places = read(source), [], {}
    for _, own in units:
        if str(own) not in places:
            places[str(own)] = len(runs)
            runs += own
    lines = ['#include "analysis/tools/counters/units.h"', "", "static const struct xpl_tpu_unit_run kRuns[] = {"]
    lines += [f"    {{{first}u, {step}, {n}, {halves}}}," for first, step, n, halves in runs]
    lines += ["};", "static const struct xpl_tpu_unit_row kRows[] = {"]
    for (node, measure, when, peak, of, factor, name), own in units:
        member = "whole" if peak == "WHOLE" else "cycles"
        lines.append(f'    {{"{name}", {node}, XPL_UNIT_{measure}, XPL_UNIT_{when}, XPL_PEAK_{peak}, {places[str(own)]}, {len(own)}, '
                     f".{member} = {of}u, .factor = {factor}}},")
    model = os.path.basename(source).removesuffix(".txt").removeprefix("units_")
    lines += ["};", f"const struct xpl_tpu_unit_rows xpl_tpu_unit_rows_{model} = {{kRuns, kRows, {len(units)}}};"]
    with open(target, "w", encoding="ascii") as f:
        f.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
