# SPDX-License-Identifier: Apache-2.0
"""What the order of XProf's hash tables decides in a profile, found in the profile itself.

program_id_choices(space)    entries of "/host:metadata" that are given one program's id, of which XProf keeps one
resolutions(paths, folder)   the same profiles with one entry kept, each way: there XProf has no choice left
framework_types(spaces)      framework ops whose device ops give several types, of which XProf takes one
"""
import itertools
import os
import re

from protos import pb

METADATA, TPU = "/host:metadata", "/device:TPU:"
SPARSE_CORE = re.compile(r"/device:TPU:[0-9]+ SparseCore ([A-Za-z]+ )?[0-9]+")    # its ops are only children of others
HLO_STATS = ("Hlo Proto", "HLO Proto")
MOST_RESOLUTIONS = 16
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


def resolutions(paths, folder):
    """Lists of files like `paths`, one for each way to choose; none where there is no choice, or too many ways."""
    spaces = []
    for p in paths:
        with open(p, "rb") as f:
            spaces.append(pb.XSpace.FromString(f.read()))
    choices = [(n, plane, keys) for n, s in enumerate(spaces) for plane, keys in program_id_choices(s)]
    ways = list(itertools.islice(itertools.product(*(keys for _, _, keys in choices)), MOST_RESOLUTIONS + 1))
    if not choices or len(ways) > MOST_RESOLUTIONS:
        return
    for number, kept in enumerate(ways):
        top = os.path.join(folder, str(number))
        os.makedirs(top)
        files = []
        for n, (path, space) in enumerate(zip(paths, spaces)):
            copy = pb.XSpace()
            copy.CopyFrom(space)
            for (host, plane, keys), keep in zip(choices, kept):
                for key in keys if host == n else ():
                    if key != keep:
                        del copy.planes[plane].event_metadata[key]
            files.append(os.path.join(top, os.path.basename(path)))
            with open(files[-1], "wb") as f:
                f.write(copy.SerializeToString())
        yield files


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


def tensor_cores(space):
    """[(index, plane)]"""
    return [(i, p) for i, p in enumerate(space.planes) if p.name.startswith(TPU) and not SPARSE_CORE.fullmatch(p.name)]


def device_ops(plane):
    """{(program id, op name): provenances} of a TPU plane; XProf keeps ops that have a program and a symbol, not 0."""
    names = {k: m.name for k, m in plane.stat_metadata.items()}
    used = {e.metadata_id for line in plane.lines for e in line.events}
    out = {}
    for key in used & set(plane.event_metadata):
        m, stats = plane.event_metadata[key], {}
        for s in m.stats:
            value = getattr(s, s.WhichOneof("value") or "int64_value")
            stats[names.get(s.metadata_id)] = names.get(value, "") if s.WhichOneof("value") == "ref_value" else value
        if "program_id" not in stats or not stats.get("symbol_id"):
            continue
        op = stats["program_id"], m.display_name or m.name
        out.setdefault(op, set()).add(str(stats.get("tf_op", "")))
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
