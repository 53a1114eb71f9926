#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turn the pages into one C table:  embed.py ROOT OUTPUT.c FILE...

Each FILE lies below ROOT; its path from there is the name it is served by.  The table is declared in
server/web/web.h.
"""

import hashlib
import os
import sys

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


def main():
    root, target, *files = sys.argv[1:]
    served = sorted((os.path.relpath(f, root).replace(os.sep, "/"), f) for f in files)
    out = ['#include "server/web/web.h"\n']
    table = []
    for i, (path, name) in enumerate(served):
        with open(name, "rb") as f:
            data = f.read()
        out.append(f"static const uint8_t file_{i}[] = {{")
        out += [
            "    " + ", ".join(f"0x{b:02x}" for b in data[j : j + 16]) + "," for j in range(0, len(data), 16)
        ]
        out.append("};\n")
        etag = hashlib.sha256(data).hexdigest()[:32]
        kind = TYPES[os.path.splitext(path)[1]]
        table.append(f'    {{"{path}", "{kind}", "\\"{etag}\\"", file_{i}, sizeof file_{i}}},')
    out.append("const struct xpl_web_file xpl_web_files[] = {")
    out += table
    out.append("};")
    out.append("const size_t xpl_web_files_len = sizeof xpl_web_files / sizeof *xpl_web_files;\n")
    with open(target, "w", encoding="ascii") as f:
        f.write("\n".join(out))


if __name__ == "__main__":
    main()
