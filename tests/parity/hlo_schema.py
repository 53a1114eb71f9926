#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of HLO's messages (analysis/hlo/proto) against the descriptors in the installed XProf.

    hlo_schema.py [--write]

Says which of the tables differ from what the descriptors give; --write writes them.
"""
import os
import re
import subprocess
import sys
import textwrap

from hlo_programs import GpuBackendConfig, Hlo

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
FOLDER = os.path.join("analysis", "hlo", "proto")
TYPES = {1: "DOUBLE", 2: "FLOAT", 3: "INT64", 4: "UINT64", 5: "INT32", 8: "BOOL", 9: "TEXT", 11: "MESSAGE", 12: "BYTES",
         13: "UINT32", 14: "ENUM"}

NAMED = ("xpl_hlo_proto", "xla.HloProto"), ("xpl_hlo_proto_gpu_config", "xla.gpu.GpuBackendConfig"), ("xpl_hlo_proto_uint64", "google.protobuf.UInt64Value")


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


def constant(full_name):
    """HloInstructionProto.SliceDimensions -> HLO_INSTRUCTION_PROTO_SLICE_DIMENSIONS"""
    name = full_name.removeprefix("xla.").removeprefix("stream_executor.").removeprefix("google.protobuf.").replace(".", "_")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).upper()


def packed(items, indent="    "):
    return textwrap.wrap(" ".join(items), 100, initial_indent=indent, subsequent_indent="    ", break_long_words=False,
                         break_on_hyphens=False)


def field(f, alternatives):
    """A row: ONE, MANY, MAP, KNOWN, ONE_OF or ONCE, and what a message or an enum is a row of."""
    group = f.containing_oneof
    kind, of = "ONE", "0"
    if f.is_repeated:
        kind = "MAP" if f.message_type and f.message_type.GetOptions().map_entry else "MANY"
    elif group and len(group.fields) > 1:
        kind = f"ONE_OF_{alternatives.index(group.name) + 1}"
    elif group and not group.name.startswith("_"):  # those of optional fields do
        kind = "ONCE"
    elif f.has_presence:
        kind = "KNOWN"
    if f.message_type or f.enum_type:
        of = ("M_" if f.message_type else "E_") + constant((f.message_type or f.enum_type).full_name)
    return f"{{{f.number},\xa0{TYPES[f.type]},\xa0{kind},\xa0{of},\xa0\"{f.name}\"}},"


def messages_c(messages, enums):
    out = ["// SPDX-License-Identifier: Apache-2.0",
           "// The messages that an HloProto, or a GpuBackendConfig in it, can hold, as XProf 2.24.2 has them.",
           "// Written by tests/parity/hlo_schema.py.",
           '#include "analysis/hlo/proto/schema.h"', "",
           "// clang-format off", "enum {", *packed([f"M_{constant(n)}," for n in messages]), "};",
           "enum {", *packed([f"E_{constant(n)}," for n in enums]), "};",
           "enum {", *packed([f"{t} = XPL_PROTO_{t},".replace(" ", "\xa0") for t in TYPES.values()]), "};",
           "enum {", *packed([f"{k} = XPL_PROTO_{k},".replace(" ", "\xa0") for k in ("ONE", "MANY", "MAP", "KNOWN")]),
           "    ONE_OF_1 = XPL_PROTO_KNOWN | XPL_PROTO_ONE_OF, ONCE = XPL_PROTO_KNOWN | XPL_PROTO_ONCE,", "};", "",
           "#define FIELDS static const struct xpl_proto_field"]
    for name, m in messages.items():
        alternatives = [o.name for o in m.oneofs if len(o.fields) > 1]
        assert len(alternatives) <= 1, name
        fields = [field(f, alternatives) for f in sorted(m.fields, key=lambda f: f.number)]
        out += packed([f"FIELDS {constant(name).lower()}[] = {{", *fields[:-1], fields[-1].removesuffix(",") + "};"], "")
    out += ["", "#define ROW(fields) {fields, sizeof(fields) / sizeof *(fields)}",
            "const struct xpl_proto_message xpl_hlo_messages[] = {",
            *packed([f"ROW({constant(n).lower()})," for n in messages]), "};", "// clang-format on",
            *(f"const struct xpl_proto_message *const {variable} = &xpl_hlo_messages[M_{constant(name)}];" for variable, name in NAMED)]
    return "\n".join(out).replace("\xa0", " ") + "\n"


def enums_c(enums):
    out = ["// SPDX-License-Identifier: Apache-2.0",
           "// The names of the numbers in HLO's messages.  Written by tests/parity/hlo_schema.py.",
           '#include "analysis/hlo/proto/schema.h"', "", "// clang-format off"]
    for name, e in enums.items():
        first = {}
        for v in e.values:
            first.setdefault(v.number, v.name)
        out += [f"static const struct xpl_proto_value {constant(name).lower()}[] = {{",
                *packed([f'{{{n},\xa0"{v}"}},' for n, v in sorted(first.items())]), "};"]
    out += ["", "#define ROW(values) {values, sizeof(values) / sizeof *(values)}",
            "const struct xpl_proto_enum xpl_hlo_enums[] = {",
            *packed([f"ROW({constant(n).lower()})," for n in enums]), "};", "// clang-format on"]
    return "\n".join(out).replace("\xa0", " ") + "\n"


def main():
    messages, enums = closure()
    different = 0
    for name, text in (("messages.c", messages_c(messages, enums)), ("enums.c", enums_c(enums))):
        path = os.path.join(TOP, FOLDER, name)
        text = subprocess.run(["clang-format-14", f"--assume-filename={path}"], input=text, capture_output=True, text=True, check=True).stdout
        if "--write" in sys.argv:
            with open(path, "w") as f:
                f.write(text)
        with open(path) as f:
            if f.read() != text:
                print(f"DIFFERENT {FOLDER}/{name}: tests/parity/hlo_schema.py --write")
                different += 1
    print(f"{len(messages)} messages, {sum(len(m.fields) for m in messages.values())} fields, {len(enums)} enums")
    print(f"{2 - different} passed, {different} failed")
    sys.exit(different != 0)


if __name__ == "__main__":
    main()
