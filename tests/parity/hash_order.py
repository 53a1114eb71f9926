# SPDX-License-Identifier: Apache-2.0
"""What the order of XProf's hash tables decides in a profile, found in the profile itself.

program_id_choices(space)    entries of "/host:metadata" that are given one program's id, of which XProf keeps one
resolutions(paths, folder)   the same profiles with one entry kept, each way: there XProf has no choice left
op_choices(spaces)           device ops of one program and one name, of which XProf takes the words of one
in_order(...)                the same profiles, where only one of them has a word: there XProf has no choice left
framework_types(spaces)      framework ops whose device ops give several types, of which XProf takes one
"""
import collections
import itertools
import os
import re

from google.protobuf.message import DecodeError

from protos import pb

METADATA, TPU = "/host:metadata", "/device:TPU:"
SPARSE_CORE = re.compile(r"/device:TPU:[0-9]+ SparseCore ([A-Za-z]+ )?[0-9]+")    # its ops are only children of others
OP_LINES = ("XLA Ops", "Framework Ops", "Sparse Core Ops")
HLO_STATS = ("Hlo Proto", "HLO Proto")
MOST_RESOLUTIONS = 16
MOST_OPS = 256        # with other words than one of their name; each of them is an answer of ours to be asked for, or some
PROGRAM = re.compile(r".*\(([0-9]+)\)", re.ASCII)       # utils/xplane_hlo_fixer.cc; the dot is not a newline


# ---- program ids ----

def program_id_choices(space):
    """[(plane index, [key of each entry])]: XProf gives an entry with an HloProto the id in its name; of several that get the
    same id, the one that it meets last stays, in the order of a protobuf map."""
    out = []
    for i, plane in enumerate(space.planes):
        if plane.name != METADATA:
            continue
        stats = {k for k, m in plane.stat_metadata.items() if m.name in HLO_STATS}
        moved = {}
        for key, m in plane.event_metadata.items():
            name = PROGRAM.fullmatch(m.name)
            if not name or not stats & {s.metadata_id for s in m.stats} or int(name[1]) >= 2 ** 64:
                continue
            if m.id % 2 ** 64 != int(name[1]):
                moved.setdefault(int(name[1]), []).append(key)
        out += [(i, sorted(keys)) for keys in moved.values() if len(keys) > 1]
    return out


def read(paths):
    """The profiles; none where one cannot be read."""
    spaces = []
    for p in paths:
        with open(p, "rb") as f:
            try:
                spaces.append(pb.XSpace.FromString(f.read()))
            except DecodeError:
                return []
    return spaces


def write(paths, spaces, top):
    """Files of `top` with the names of `paths`."""
    os.makedirs(top, exist_ok=True)
    files = [os.path.join(top, os.path.basename(p)) for p in paths]
    for to, space in zip(files, spaces):
        with open(to, "wb") as f:
            f.write(space.SerializeToString())
    return files


def resolutions(paths, folder):
    """Lists of files like `paths`, one for each way to choose; none where there is no choice, or too many ways."""
    spaces = read(paths)
    choices = [(n, plane, keys) for n, s in enumerate(spaces) for plane, keys in program_id_choices(s)]
    ways = list(itertools.islice(itertools.product(*(keys for _, _, keys in choices)), MOST_RESOLUTIONS + 1))
    if not choices or len(ways) > MOST_RESOLUTIONS:
        return
    for number, kept in enumerate(ways):
        copies = [copied(s) for s in spaces]
        for (host, plane, keys), keep in zip(choices, kept):
            for key in keys:
                if key != keep:
                    del copies[host].planes[plane].event_metadata[key]
        yield write(paths, copies, os.path.join(folder, str(number)))


def copied(space):
    out = pb.XSpace()
    out.CopyFrom(space)
    return out


# ---- device ops ----

def tensor_cores(space):
    """[(index, plane)]"""
    return [(i, p) for i, p in enumerate(space.planes) if p.name.startswith(TPU) and not SPARSE_CORE.fullmatch(p.name)]


def device_entries(plane):
    """{key: (program id, symbol, op name, stats)} of the metadata of a plane's ops; XProf keeps those with a program and a symbol, not 0."""
    names = {k: m.name for k, m in plane.stat_metadata.items()}
    used = {e.metadata_id for line in plane.lines if line.name in OP_LINES for e in line.events}
    out = {}
    for key in sorted(used & set(plane.event_metadata)):
        m, stats = plane.event_metadata[key], {}
        for s in m.stats:
            value = getattr(s, s.WhichOneof("value") or "int64_value")
            stats[names.get(s.metadata_id)] = names.get(value, "") if s.WhichOneof("value") == "ref_value" else value
        if "program_id" in stats and stats.get("symbol_id"):
            out[key] = stats["program_id"], stats["symbol_id"], m.display_name or m.name, stats
    return out


# What an op says of itself; what XProf takes is, word by word, that of the first which has it.
WORDS = (("hlo_category",), ("tf_op",), ("deduplicated_name",), ("source", "source_stack"), ("long name",), ("children",))
EMPTY_IS_NONE = ("hlo_category", "tf_op", "deduplicated_name")


def words(entry, stats):
    """{index in WORDS: text or ids} of what an entry has."""
    said = {**stats, "long name": entry.name if entry.display_name else None, "children": tuple(entry.child_id) or None}
    out = {}
    for i, names in enumerate(WORDS):
        values = tuple(said.get(n) or (None if n in EMPTY_IS_NONE else said.get(n)) for n in names)
        if values != (None,) * len(names):
            out[i] = values
    return out


def op_choices(spaces):
    """[(index of the profile, of the plane, [key of each entry])]: device ops of one program with one name and other words.  They become
    one, with the words of that which comes first in the order of a hash table of symbols; the first plane that has the op decides."""
    seen, out = set(), []
    for n, space in enumerate(spaces):
        for i, plane in tensor_cores(space):
            entries, by_name, symbols = device_entries(plane), {}, collections.Counter()
            for key, (program, symbol, name, _) in entries.items():
                by_name.setdefault((program, name), []).append(key)
                symbols[program, symbol] += 1
            for op, keys in by_name.items():
                said = [words(plane.event_metadata[k], entries[k][3]) for k in keys]
                alone = all(symbols[entries[k][:2]] == 1 for k in keys)     # else the first event of the symbol decides
                several = any(len({w[word] for w in said if word in w}) > 1 for word in range(len(WORDS)))
                if op not in seen and alone and several:
                    out.append((n, i, keys))
            seen |= set(by_name)
    return out


def too_many(choices):
    """Whether to seek words among them would take minutes."""
    return sum(len(keys) for *_, keys in choices) > MOST_OPS


def orders(keys):
    """In which order XProf may meet the entries; of many, which is first."""
    return [list(o) for o in itertools.permutations(keys)] if len(keys) <= 3 else [[k] + [x for x in keys if x != k] for k in keys]


def closest(choices, distance):
    """The order of each choice's entries with the least distance(orders), sought one choice after the other."""
    best = [keys for *_, keys in choices]
    least = distance(best)
    for i, (*_, keys) in enumerate(choices):
        for order in orders(keys):
            tried = best[:i] + [order] + best[i + 1:]
            d = distance(tried) if least and order != best[i] else least
            if d < least:
                best, least = tried, d
    return best


def in_order(paths, spaces, choices, chosen, top):
    """Files like `paths` in which of each choice's entries only the first in the order of `chosen` that has a word keeps it."""
    copies = [copied(s) for s in spaces]
    for (host, plane, _), keys in zip(choices, chosen):
        silence(copies[host].planes[plane], keys)
    return write(paths, copies, top)


def silence(plane, keys):
    """Takes words from entries that one before has.  An entry's category also says whether its events count as work: they keep it as a
    stat of their own, which says that of an entry without category, and is no word."""
    names, entries, had = {k: m.name for k, m in plane.stat_metadata.items()}, device_entries(plane), set()
    for key in keys:
        m = plane.event_metadata[key]
        has = set(words(m, entries[key][3]))
        gone = {name for i in has & had for name in WORDS[i]}
        had |= has
        if "hlo_category" in gone:
            give_category(plane, key, [s for s in m.stats if names.get(s.metadata_id) == "hlo_category"])
        kept = [s for s in m.stats if names.get(s.metadata_id) not in gone]
        del m.stats[:]
        m.stats.extend(kept)
        if "long name" in gone:
            m.name, m.display_name = m.display_name, ""
        if "children" in gone:
            del m.child_id[:]


def give_category(plane, key, stats):
    for event in (e for line in plane.lines for e in line.events if e.metadata_id == key):
        kept = [s for s in event.stats if s.metadata_id != stats[0].metadata_id]
        del event.stats[:]
        event.stats.extend(kept + stats)


# ---- types of framework ops ----

def parse_op(full_name):
    """(name, type) of a framework op "NAME:TYPE", for the names that a device op of JAX or TensorFlow has; None for others."""
    name, colon, kind = full_name.partition(":")
    if not colon:
        return None if name[:6].lower() == "memcpy" else (name, "")
    if name == "Iterator":
        return None
    if re.fullmatch(r"[A-Z_][A-Za-z0-9_]*", kind) and re.fullmatch(r"[A-Za-z0-9.][A-Za-z0-9_./>-]*", name):
        return name, kind
    derived = kind or re.sub(r"_[+-]?[0-9]+\Z", "", name.rpartition("/")[2])
    if re.fullmatch(r"[a-z_][a-z0-9_]*(\[.*\])?", derived):
        return name, derived.partition("[")[0]
    return (full_name, "") if kind else (name, derived)


def device_ops(plane):
    """{(program id, op name): provenances} of a TPU plane."""
    out = {}
    for program, _, name, stats in device_entries(plane).values():
        out.setdefault((program, name), set()).add(str(stats.get("tf_op", "")))
    return out


def framework_types(spaces):
    """{name: types}, of names with more than one.  The first device op decides; planes come one after the other, and the ops of
    one plane in the order of a hash table of programs, each with one of symbols."""
    ops = {}                    # (program id, op name): (first plane that has it, provenances)
    for number, plane in enumerate(p for s in spaces for _, p in tensor_cores(s)):
        for op, provenances in device_ops(plane).items():
            first, before = ops.get(op, (number, set()))
            ops[op] = first, before if before - {""} else before | provenances
    best = {}                   # name: (plane, types)
    for (_, op_name), (number, provenances) in ops.items():
        for text in provenances:
            name, kind = (parse_op(text) if text else (op_name, "")) or (None, None)
            if name is None:
                continue
            plane, types = best.get(name, (number, set()))
            if number <= plane:
                best[name] = number, (types if number == plane else set()) | {kind or "Unknown"}
    return {name: types for name, (_, types) in best.items() if len(types) > 1}
