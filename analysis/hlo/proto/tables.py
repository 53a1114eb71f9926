#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tables of HLO's messages (schema.h) as C:  tables.py SCHEMA.txt OUTPUT.c

A line "message NAME" or "enum NAME" begins one; those of its fields, by number, are "NUMBER TYPE FLAGS NAME [OF]", those of
its values "NUMBER NAME".
"""
import sys

NAMED = {"xpl_hlo_proto": "xla.HloProto", "xpl_hlo_proto_gpu_config": "xla.gpu.GpuBackendConfig",
         "xpl_hlo_proto_uint64": "google.protobuf.UInt64Value"}


def read(path):
    found = {"message": {}, "enum": {}}
    with open(path, encoding="ascii") as f:
        for line in f:
            words = line.split()
            if words and words[0] in found:
                rows = found[words[0]].setdefault(words[1], [])
            elif words and words[0] != "#":
                rows.append(words)
    return found["message"], found["enum"]


def field(words, places):
    number, kind, flags, name, *of = words
    flags = " | ".join(f"XPL_PROTO_{flag}" for flag in flags.split("+"))
    return f'{number}, XPL_PROTO_{kind}, {flags}, {places[of[0]] if of else 0}, "{name}"'


def tables(letter, struct, members, kind, rows_of):
    """A table of the rows of each, and one of these tables."""
    for i, rows in enumerate(rows_of):
        yield f"static const struct xpl_proto_{struct} {letter}{i}[] = {{"
        yield from (f"    {{{row}}}," for row in rows)
        yield "};"
    yield f"const struct xpl_proto_{kind} xpl_hlo_{members}[] = {{"
    yield from (f"    {{{letter}{i}, {len(rows)}}}," for i, rows in enumerate(rows_of))
    yield "};"


def main():
    messages, enums = read(sys.argv[1])
    places = {name: i for names in (messages, enums) for i, name in enumerate(names)}
    lines = ['#include "analysis/hlo/proto/schema.h"', ""]
    lines += tables("v", "value", "enums", "enum", [[f'{number}, "{name}"' for number, name in rows] for rows in enums.values()])
    lines += tables("f", "field", "messages", "message", [[field(row, places) for row in rows] for rows in messages.values()])
    lines += [f"const struct xpl_proto_message *const {variable} = &xpl_hlo_messages[{places[name]}];" for variable, name in NAMED.items()]
    with open(sys.argv[2], "w", encoding="ascii") as f:
        f.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
