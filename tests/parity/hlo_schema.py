#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of HLO's messages (analysis/hlo/proto) against the descriptors in the installed XProf.

    hlo_schema.py [--write]

Says whether the table differs from what the descriptors give; --write writes it.
"""
import os
import sys

from hlo_programs import GpuBackendConfig, Hlo

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "analysis", "hlo", "proto", "schema.txt")
TYPES = {1: "DOUBLE", 2: "FLOAT", 3: "INT64", 4: "UINT64", 5: "INT32", 8: "BOOL", 9: "TEXT", 11: "MESSAGE", 12: "BYTES",
         13: "UINT32", 14: "ENUM"}

def closure():
    """Messages and enums that an HloProto or a GPU's configuration of an instruction can hold, by name."""
    messages, enums, todo = {}, {}, [Hlo.DESCRIPTOR, GpuBackendConfig.DESCRIPTOR]
    while todo:
        m = todo.pop()
        if m.full_name in messages:
            continue
        messages[m.full_name] = m
        for f in m.fields:
            if f.message_type:
                todo.append(f.message_type)
            if f.enum_type:
                enums[f.enum_type.full_name] = f.enum_type
    return dict(sorted(messages.items())), dict(sorted(enums.items()))


def field(f):
    """A line: ONE, MANY, MAP, KNOWN, of several that exclude each other, or of a separate choice."""
    group, of = f.containing_oneof, f.message_type or f.enum_type
    kind = "ONE"
    if f.is_repeated:
        kind = "MAP" if f.message_type and f.message_type.GetOptions().map_entry else "MANY"
    elif group and len(group.fields) > 1:
        kind = "KNOWN+ONE_OF"
    elif group and not group.name.startswith("_"):  # those of optional fields do
        kind = "KNOWN+ONCE"
    elif f.has_presence:
        kind = "KNOWN"
    return f"{f.number} {TYPES[f.type]} {kind} {f.name}" + (f" {of.full_name}" if of else "")


def schema(messages, enums):
    out = ["# The messages that an HloProto, or a GpuBackendConfig in it, can hold, as XProf 2.24.2 has them.",
           "# Written by tests/parity/hlo_schema.py; tables.py explains the lines."]
    for name, m in messages.items():
        assert sum(len(o.fields) > 1 for o in m.oneofs) <= 1, name
        out += [f"message {name}", *(field(f) for f in sorted(m.fields, key=lambda f: f.number))]
    for name, e in enums.items():
        first = {}
        for v in e.values:
            first.setdefault(v.number, v.name)
        out += [f"enum {name}", *(f"{n} {v}" for n, v in sorted(first.items()))]
    return "\n".join(out) + "\n"


def main():
    messages, enums = closure()
    text = schema(messages, enums)
    if "--write" in sys.argv:
        with open(PATH, "w") as f:
            f.write(text)
    with open(PATH) as f:
        different = f.read() != text
    if different:
        print("DIFFERENT analysis/hlo/proto/schema.txt: tests/parity/hlo_schema.py --write")
    print(f"{len(messages)} messages, {sum(len(m.fields) for m in messages.values())} fields, {len(enums)} enums")
    print(f"{1 - different} passed, {different:d} failed")
    sys.exit(different)


if __name__ == "__main__":
    main()
