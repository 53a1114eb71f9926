# SPDX-License-Identifier: Apache-2.0
"""Changes of an XSpace that leave its meaning as it was.

Each takes the XSpace, which it changes, and a random.Random.  A change says in CHANGES what it is allowed to change.
"""
import gzip
import pathlib
import sys

from google.protobuf.message import DecodeError

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "parity"))
from protos import pb  # noqa: E402

PROGRAMS = "/host:metadata"  # its event metadata have the ids of programs
UNKNOWN = b"\xf8\xff\x01\x07" + b"\xfa\xff\x01\x03new"  # fields 4095: a number, three bytes
SECOND = 10**9


def read(path):
    space = pb.XSpace()
    data = pathlib.Path(path).read_bytes()
    space.ParseFromString(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    return space


def is_whole(path):
    try:
        return bool(read(path))
    except DecodeError:
        return False


def write(space, folder, path):
    """Writes a changed profile under the name of that at `path`; returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    new = folder / path.name.removesuffix(".gz")
    new.write_bytes(space.SerializeToString())
    return new


def every_stats(plane):
    """All lists of statistics of a plane."""
    yield plane.stats
    for md in plane.event_metadata.values():
        yield md.stats
    for line in plane.lines:
        for event in line.events:
            yield event.stats


def shuffled(messages, rnd):
    """Puts a repeated field of messages into another order."""
    items = list(messages)
    rnd.shuffle(items)
    copies = [type(m).FromString(m.SerializeToString()) for m in items]
    del messages[:]
    messages.extend(copies)


def new_ids(ids, rnd):
    """Other ids for those of a table; 0 means none, and stays."""
    ids = [i for i in ids if i]
    return dict(zip(ids, rnd.sample(range(1, 3 * len(ids) + 9), len(ids)))) | {0: 0}


def renumber_table(table, ids):
    new = {ids[k]: v.SerializeToString() for k, v in table.items()}
    table.clear()
    for k, v in new.items():
        table[k].ParseFromString(v)
        if table[k].id:
            table[k].id = k


def metadata_ids(space, rnd):
    """The ids of event and stat metadata, which only connect the parts of a plane."""
    for plane in space.planes:
        if plane.name != PROGRAMS:
            events = new_ids(plane.event_metadata, rnd)
            renumber_table(plane.event_metadata, events)
            for line in plane.lines:
                for event in line.events:
                    event.metadata_id = events.get(event.metadata_id, event.metadata_id + 10**6)
            for md in plane.event_metadata.values():
                md.child_id[:] = [events.get(i, i + 10**6) for i in md.child_id]
        stats = new_ids(plane.stat_metadata, rnd)
        renumber_table(plane.stat_metadata, stats)
        for some in every_stats(plane):
            for s in some:
                s.metadata_id = stats.get(s.metadata_id, s.metadata_id + 10**6)
                if s.WhichOneof("value") == "ref_value":
                    s.ref_value = stats.get(s.ref_value, s.ref_value + 10**6)


LINKS = {"correlation_id": 0, "run_id": 1, "_p": 2, "_c": 2}  # names with one number have one series of numbers


def link_ids(space, rnd):
    """The numbers by which events name each other: launches, runs, contexts."""
    shift = [rnd.randrange(1, 2000) for _ in LINKS]
    for plane in space.planes:
        named = {i: shift[LINKS[md.name]] for i, md in plane.stat_metadata.items() if md.name in LINKS}
        for some in every_stats(plane) if named else ():
            for s in some:
                kind = s.WhichOneof("value")
                if s.metadata_id in named and kind in ("int64_value", "uint64_value") and 0 < getattr(s, kind) < 2**62:
                    setattr(s, kind, getattr(s, kind) + named[s.metadata_id])


def order_of_planes(space, rnd):
    """Planes, the lines of each, and the statistics of planes."""
    for plane in space.planes:
        shuffled(plane.lines, rnd)
        shuffled(plane.stats, rnd)
    shuffled(space.planes, rnd)


def order_of_events(space, rnd):
    """The events of devices' lines.  Those that begin and end alike keep their order, because it says which one is inside.  On a
    line of a host the order says what is inside of what, as in XProf: writers sort these lines.  So does a trace's view of
    a TPU."""
    for plane in space.planes:
        for line in plane.lines if plane.name.startswith("/device:") else ():
            places = {}
            for i, e in enumerate(line.events):
                places.setdefault((e.offset_ps, e.duration_ps), []).append(i)
            runs = list(places.values())
            rnd.shuffle(runs)
            old = [e.SerializeToString() for e in line.events]
            del line.events[:]
            line.events.extend(pb.XEvent.FromString(old[i]) for run in runs for i in run)


def unknown_fields(space, rnd):
    """A field that no version has, in each message."""
    space.MergeFromString(UNKNOWN)
    for plane in space.planes:
        plane.MergeFromString(UNKNOWN)
        for md in [*plane.event_metadata.values(), *plane.stat_metadata.values()]:
            md.MergeFromString(UNKNOWN)
        for some in every_stats(plane):
            for s in some:
                s.MergeFromString(UNKNOWN)
        for line in plane.lines:
            line.MergeFromString(UNKNOWN)
            for event in line.events:
                event.MergeFromString(UNKNOWN)


def unknown_statistics(space, rnd):
    """A statistic that no tool knows, of each kind of event and of some events."""
    for plane in space.planes:
        key = max(plane.stat_metadata, default=0) + 1
        plane.stat_metadata[key].id = key
        plane.stat_metadata[key].name = "of_a_later_version"
        for md in plane.event_metadata.values():
            md.stats.add(metadata_id=key, int64_value=rnd.randrange(100))
        for line in plane.lines:
            for event in line.events[::3]:
                event.stats.add(metadata_id=key, str_value="new")
    strange = space.planes.add(name="of a later version", id=777)
    strange.stats.add(metadata_id=1, int64_value=3)


def bystander(space, rnd):
    """A thread that does something else, and a plane of its kind that no tool knows."""
    for plane in space.planes:
        if plane.name == "/host:CPU" and any(line.events for line in plane.lines):
            first = next(line for line in plane.lines if line.events)
            key = max(plane.event_metadata) + 1
            plane.event_metadata[key].id = key
            plane.event_metadata[key].name = "unrelated"
            line = plane.lines.add(id=max(x.id for x in plane.lines) + 1, name="bystander", timestamp_ns=first.timestamp_ns)
            end = max(e.offset_ps + e.duration_ps for e in first.events)
            for at in sorted(rnd.randrange(max(1, end)) for _ in range(5)):
                line.events.add(metadata_id=key, offset_ps=at, duration_ps=min(1000, max(1, end // 100)))
            break
    strange = space.planes.add(name="of a later version", id=777)
    strange.event_metadata[1].id = 1
    strange.event_metadata[1].name = "PjitFunction(f)"
    strange.lines.add(id=1, name="thread", timestamp_ns=5).events.add(metadata_id=1, offset_ps=0, duration_ps=10**12)


CLOCKS = ("profile_start_time", "profile_stop_time")
DAYS = 86400 * SECOND


def shift_clock(space, ns):
    """All that is of the machine's clock: the start of the profile, and what profilers count from 1970 on."""
    since_1970 = all(line.timestamp_ns > 1000 * DAYS for plane in space.planes for line in plane.lines if line.events)
    for plane in space.planes:
        for line in plane.lines if since_1970 else ():
            line.timestamp_ns += ns
        named = [i for i, md in plane.stat_metadata.items() if md.name in CLOCKS]
        for s in plane.stats:
            kind = s.WhichOneof("value")
            if s.metadata_id in named and kind in ("int64_value", "uint64_value"):
                setattr(s, kind, getattr(s, kind) + ns)


def clock_seconds(space, rnd):
    """The machine's clock, by a few seconds."""
    shift_clock(space, rnd.randrange(2, 60) * SECOND + 123_456_789)


def clock_hours(space, rnd):
    shift_clock(space, rnd.randrange(2, 600) * 3600 * SECOND)


def later(space, rnd):
    """All events come later, and nothing else does: only the times of instants change."""
    ns = rnd.randrange(2, 60) * SECOND
    for plane in space.planes:
        for line in plane.lines:
            line.timestamp_ns += ns
        own = {i for i, md in plane.stat_metadata.items() if md.name == "device_offset_ps"}  # a TPU's own time
        for some in every_stats(plane) if own else ():
            for s in some:
                kind = s.WhichOneof("value")
                if s.metadata_id in own and kind in ("int64_value", "uint64_value"):
                    setattr(s, kind, getattr(s, kind) + 1000 * ns)


def count_from(line, ns):
    """Moves what a line counts from; its events are when they were."""
    line.timestamp_ns += ns
    for e in line.events:
        if e.WhichOneof("data") != "num_occurrences":
            e.offset_ps -= 1000 * ns


def line_origins(space, rnd):
    """From what lines count.  All lines of a device count from one instant, because XProf subtracts their times."""
    for plane in space.planes:
        lines = [line for line in plane.lines if line.events]
        together = plane.name.startswith("/device:")
        for some in [lines] if together else [[line] for line in lines]:
            least = min((e.offset_ps for line in some for e in line.events), default=0) // 1000
            ns = rnd.randrange(-min([5000, *(line.timestamp_ns for line in some)]), max(1, least))
            for line in some:
                count_from(line, ns)


CHANGES = [metadata_ids, link_ids, order_of_planes, order_of_events, unknown_fields, unknown_statistics, bystander, clock_seconds,
           clock_hours, later, line_origins]


# ---- parts of a profile ----

def keep_planes(space, wanted):
    planes = [p for p in space.planes if wanted(p.name)]
    copies = [pb.XPlane.FromString(p.SerializeToString()) for p in planes]
    del space.planes[:]
    space.planes.extend(copies)


def keep_lines(space, wanted):
    """Lines by their place; the planes stay."""
    for plane in space.planes:
        copies = [pb.XLine.FromString(line.SerializeToString()) for i, line in enumerate(plane.lines) if wanted(i)]
        del plane.lines[:]
        plane.lines.extend(copies)
