# SPDX-License-Identifier: Apache-2.0
"""Damages protobuf wire data along its structure: fields are changed, moved, doubled, nested and cut, and lengths
around them are put right (mostly), so that the damage arrives deep inside a parser."""

# A field of more bytes is not repeated a hundredfold, and a message that grew by more is left as it was: a hundredfold
# within a hundredfold within another took all the memory of the machine.
MOST_REPEATED, MOST_GROWTH = 10_000, 1 << 20

VARINTS = (0, 1, 127, 128, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1)
# Varints that no encoder writes: too long, or beyond 64 bits.
ODD_VARINTS = (b"\x80\x00", b"\xff" * 9 + b"\x01", b"\xff" * 10 + b"\x7f", b"\x80" * 12, b"\x81\x80\x80\x80\x80\x80\x80\x80\x80\x02")


def varint(value):
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_varint(data, at):
    """(value, next); None when it is not one."""
    value = shift = 0
    while at < len(data) and shift < 70:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at
    return None


def parse(data, most=4000):
    """Fields as [number, type, value]; None when the bytes are no message, or one of too many fields."""
    at, fields = 0, []
    while at < len(data):
        key = read_varint(data, at)
        if not key or not key[0] >> 3 or len(fields) == most:
            return None
        number, kind, at = key[0] >> 3, key[0] & 7, key[1]
        if kind == 0:
            got = read_varint(data, at)
            if not got:
                return None
            fields.append([number, 0, got[0]])
            at = got[1]
        elif kind in (1, 5):
            n = 8 if kind == 1 else 4
            if at + n > len(data):
                return None
            fields.append([number, kind, data[at:at + n]])
            at += n
        elif kind == 2:
            got = read_varint(data, at)
            if not got or got[1] + got[0] > len(data):
                return None
            fields.append([number, 2, data[got[1]:got[1] + got[0]]])
            at = got[1] + got[0]
        else:
            return None
    return fields


def join(fields):
    out = bytearray()
    for number, kind, value in fields:
        out += varint(number << 3 | kind)
        if kind == 0:
            out += varint(value) if isinstance(value, int) else value
        elif kind == 2:
            out += varint(len(value)) + value
        else:
            out += value
    return bytes(out)


def change_value(field, chance):
    number, kind, value = field
    if kind == 0:
        return [number, 0, chance.choice((*VARINTS, *ODD_VARINTS, (value if isinstance(value, int) else 0) ^ 1 << chance.randrange(64)))]
    if kind in (1, 5):
        n = len(value)
        return [number, kind, chance.choice((bytes(n), b"\xff" * n, b"\x00" * (n - 2) + b"\xf0\x7f", bytes(chance.randrange(256) for _ in range(n))))]
    text = bytearray(value)
    if text and chance.randrange(3):
        text[chance.randrange(len(text))] = chance.randrange(256)
    else:
        text = bytearray(chance.choice((b"", b"\xff\xfe", b"\x00", value * 2, value[:len(value) // 2], b"a" * 5000)))
    return [number, 2, bytes(text)]


def change_fields(fields, chance):
    """One change of a list of fields."""
    i = chance.randrange(len(fields))
    kind = chance.randrange(9)
    if kind <= 2:
        fields[i] = change_value(fields[i], chance)
    elif kind == 3:
        large = fields[i][1] == 2 and len(fields[i][2]) > MOST_REPEATED
        fields[i:i] = [list(fields[i])] * (1 if large else chance.choice((1, 1, 100)))
    elif kind == 4:
        del fields[i]
    elif kind == 5:
        k = chance.randrange(len(fields))
        fields[i], fields[k] = fields[k], fields[i]
    elif kind == 6:
        fields[i][0] = chance.choice((1, 2, 3, 4, 5, 15, 16, 2**29 - 1, fields[i][0] + 1))
    elif kind == 7:
        nested = join([fields[i]])
        for _ in range(chance.choice((1, 10, 300))):
            nested = join([[fields[i][0], 2, nested]])
        fields[i] = [fields[i][0], 2, nested]
    else:
        value = fields[i][2]
        fields[i] = [fields[i][0], chance.choice((0, 1, 2, 5)), value if isinstance(value, bytes) else varint(value)]
        if fields[i][1] in (1, 5):
            fields[i][2] = fields[i][2].ljust(8, b"\x00")[:8 if fields[i][1] == 1 else 4]


def mutate(data, chance, depth=0):
    """`data` with one to a few changes at random depths; `chance` is a random.Random."""
    fields = parse(data)
    if not fields:
        text = bytearray(data)
        for _ in range(chance.randrange(1, 4)):
            if text:
                text[chance.randrange(len(text))] = chance.randrange(256)
        return bytes(text)
    for _ in range(chance.choice((1, 1, 2, 4))):
        inner = [f for f in fields if f[1] == 2 and len(f[2]) > 1]
        if inner and depth < 8 and chance.randrange(4):
            f = chance.choice(inner)
            f[2] = mutate(f[2], chance, depth + 1)
        elif fields:
            change_fields(fields, chance)
    out = join(fields)
    if len(out) > len(data) + MOST_GROWTH:
        return data
    if depth == 0 and chance.randrange(5) == 0:  # lengths that are not right
        at = chance.randrange(len(out) + 1)
        out = chance.choice((out[:at], out[:at] + bytes([chance.randrange(256)]) + out[at + 1:], out + out[:at], out[:at] + out[at + 1:]))
    return out
