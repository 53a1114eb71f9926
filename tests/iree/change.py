#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real bundles, changed by chance: members of typed records and of headers get values that are odd,
records are repeated, left out or moved.  The lengths of file records stay right, so that most of
these bundles are still read.

usage: change.py FOLDER COUNT [SEED]     writes FOLDER/change-SEED.ireeprof, ...

Equal seeds give equal bytes.
"""
import os
import pathlib
import random
import struct
import sys

PREFIX = b"application/vnd.iree.hal.profile."
DATA = pathlib.Path(__file__).resolve().parent.parent / "data" / "iree"
# Bytes of the structs of typed records.
SIZES = {
    b"devices": 32, b"queues": 24, b"executables": 40, b"executable-code-objects": 48,
    b"executable-code-object-loads": 40, b"executable-functions": 64, b"command-buffers": 48,
    b"command-operations": 120, b"clock-correlations": 72, b"dispatch-events": 88,
    b"queue-events": 104, b"queue-device-events": 96, b"host-execution-events": 152,
    b"command-region-events": 248, b"memory-events": 160, b"event-relationships": 72,
    b"counter-sets": 32, b"counters": 48, b"counter-samples": 112, b"device-metric-sources": 40,
    b"device-metric-descriptors": 48, b"device-metric-samples": 64}
ODD_64 = [0, 1, 2, 3, (1 << 64) - 1, 1 << 63, (1 << 63) - 1, 1 << 62, 1 << 32, (1 << 32) - 1,
          0x7FF8000000000000, 10**15, (1 << 64) - 5]
ODD_32 = [0, 1, 2, 3, 4, 7, 64, 99, 255, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]
ODD_BYTES = [0, 10, 0x22, 0x5C, 0x80, 0xC3, 0xED, 0xF4, 0xFF]  # of texts
HEADER_64, HEADER_32 = [16, 24, 32, 80, 88], [68, 72, 96]  # members of a record's header


def records(data):
    """The file records of a good bundle: (header, content type, name, payload)."""
    at = struct.unpack_from("<I", data, 8)[0]
    while at < len(data):
        length, = struct.unpack_from("<Q", data, at)
        ends = [0]
        for n in struct.unpack_from("<III", data, at + 56):
            ends.append(ends[-1] + n)
        record = data[at:at + length]
        yield [record[a:b] for a, b in zip(ends, ends[1:] + [length])]
        at += length


def joined(record):
    """The bytes of a record whose parts may have changed."""
    header = bytearray(record[0])
    lengths = [len(part) for part in record]
    struct.pack_into("<QQ", header, 0, sum(lengths), lengths[3])
    struct.pack_into("<III", header, 56, *lengths[:3])
    return bytes(header) + b"".join(record[1:])


def items(payload, size):
    """The typed records of a payload."""
    at = 0
    while at < len(payload):
        length, = struct.unpack_from("<I", payload, at)
        assert length >= size
        yield payload[at:at + length]
        at += length


def change_item(r, item, size):
    item, how = bytearray(item), r.random()
    if how < 0.75:
        at = r.randrange(4, size, 4)
        if at % 8 == 0 and at + 8 <= size and r.random() < 0.5:
            struct.pack_into("<Q", item, at, r.choice(ODD_64))
        else:
            struct.pack_into("<I", item, at, r.choice(ODD_32))
    elif how < 0.85 and len(item) > size:
        item[r.randrange(size, len(item))] = r.choice(ODD_BYTES)
    elif how < 0.93:
        item[r.randrange(4, size)] = r.randrange(256)
    else:
        struct.pack_into("<I", item, 0, r.choice([0, 3, size - 1, size, len(item) + 8, 2 * size]))
    return bytes(item)


def change_items(r, record, size):
    """Changes, repeats or leaves out typed records."""
    typed = list(items(record[3], size))
    for _ in range(r.choice([1, 1, 2, 5]) if typed else 0):
        at, how = r.randrange(len(typed)), r.random()
        if how < 0.8:
            typed[at] = change_item(r, typed[at], size)
        elif how < 0.9:
            typed.insert(r.randrange(len(typed) + 1), typed[at])
        elif len(typed) > 1:
            del typed[at]
    record[3] = b"".join(typed)


def change_header(r, record):
    header = bytearray(record[0])
    if r.random() < 0.5:
        struct.pack_into("<Q", header, r.choice(HEADER_64), r.choice(ODD_64))
    else:
        struct.pack_into("<I", header, r.choice(HEADER_32), r.choice(ODD_32))
    record[0] = bytes(header)


def bundle(seed):
    r = random.Random(seed)
    data = r.choice(sorted(DATA.glob("*.ireeprof"))).read_bytes()
    parts = list(records(data))
    changed = []  # a payload is changed once: then its lengths may be wrong
    for _ in range(r.choice([1, 1, 2, 3, 6])):
        at, how = r.randrange(len(parts)), r.random()
        size = SIZES.get(parts[at][1].removeprefix(PREFIX))
        if how < 0.6:
            if size and not any(parts[at] is c for c in changed):
                change_items(r, parts[at], size)
                changed.append(parts[at])
        elif how < 0.7 and len(parts) > 2:
            del parts[at]
        elif how < 0.8:
            parts.insert(r.randrange(len(parts) + 1), parts[at])
        elif how < 0.9:
            other = r.randrange(len(parts))
            parts[at], parts[other] = parts[other], parts[at]
        else:
            change_header(r, parts[at])
    body = b"".join(map(joined, parts))
    return struct.pack("<IHHIIQ", 0x46505249, 1, 6, 24, 0, 24 + len(body)) + body


def main():
    folder, count = sys.argv[1], int(sys.argv[2])
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    os.makedirs(folder, exist_ok=True)
    for seed in range(first, first + count):
        with open(os.path.join(folder, f"change-{seed}.ireeprof"), "wb") as f:
            f.write(bundle(seed))


if __name__ == "__main__":
    main()
