#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turn a file into a C array:  embed.py INPUT OUTPUT.c SYMBOL HEADER

The array is `const unsigned char SYMBOL[]`, its size `const size_t SYMBOL_len`, both declared in HEADER.
"""
import sys


def main():
    source, target, symbol, header = sys.argv[1:]
    with open(source, "rb") as f:
        data = f.read()
    rows = [", ".join(f"0x{b:02x}" for b in data[i:i + 16]) for i in range(0, len(data), 16)]
    with open(target, "w", encoding="ascii") as f:
        f.write(f'#include "{header}"\n\nconst unsigned char {symbol}[] = {{\n')
        f.writelines(f"    {row},\n" for row in rows)
        f.write(f"}};\nconst size_t {symbol}_len = sizeof {symbol};\n")


if __name__ == "__main__":
    main()
