# SPDX-License-Identifier: Apache-2.0
"""Writing XSpaces: planes with their tables of names, lines, events, stats."""
from protos import pb


class U(int):
    """An unsigned stat value."""


class Ref(str):
    """A string that is stored once, as the name of a stat metadata entry."""


class Plane:
    def __init__(self, space, name, pid, rng, ref_share=0.3):
        self.p = space.planes.add(id=pid, name=name)
        self.r, self.ref_share = rng, ref_share
        self.stat_ids, self.event_ids = {}, {}
        self.next_stat, self.next_event = rng.choice([1, 1, 100]), rng.choice([1, 1, 7])

    def stat_id(self, name):
        i = self.stat_ids.get(name)
        if i is None:
            i = self.stat_ids[name] = self.next_stat
            self.next_stat += 1
            m = self.p.stat_metadata[i]
            m.id, m.name = i, name
        return i

    def event(self, name, display=None, stats=None, key=None, children=()):
        """The id of an event's metadata: one per `key` (the name unless given)."""
        key = name if key is None else key
        i = self.event_ids.get(key)
        if i is None:
            i = self.event_ids[key] = self.next_event
            self.next_event += 1
            m = self.p.event_metadata[i]
            m.id, m.name = i, name
            if display:
                m.display_name = display
            if stats:
                self.fill(m.stats, stats)
            m.child_id.extend(children)
        return i

    def fill(self, out, stats):
        for name, v in (stats.items() if isinstance(stats, dict) else stats):
            if v is None:
                continue
            s = out.add(metadata_id=self.stat_id(name))
            if isinstance(v, bool):
                s.int64_value = int(v)
            elif isinstance(v, U):
                s.uint64_value = v
            elif isinstance(v, int):
                s.int64_value = v
            elif isinstance(v, float):
                s.double_value = v
            elif isinstance(v, bytes):
                s.bytes_value = v
            elif isinstance(v, Ref) or self.r.random() < self.ref_share:
                s.ref_value = self.stat_id(str(v))
            else:
                s.str_value = v

    def stats(self, stats):
        self.fill(self.p.stats, stats)

    def line(self, name, lid, timestamp_ns=0, display_name="", display_id=0):
        return Line(self, self.p.lines.add(id=lid, name=name, timestamp_ns=timestamp_ns, display_name=display_name,
                                           display_id=display_id))


class Line:
    """Events may be added in any order; `done` writes them by begin time, longer ones first."""

    def __init__(self, plane, line):
        self.plane, self.l, self.events = plane, line, []
        self.name = line.name

    def add(self, begin_ps, duration_ps, md, stats=()):
        if isinstance(md, str):
            md = self.plane.event(md)
        self.events.append((int(begin_ps), int(duration_ps), md, stats))

    def done(self, disorder=None):
        base = self.l.timestamp_ns * 1000
        events = sorted(self.events, key=lambda e: (e[0], -e[1]))
        if disorder:
            disorder(events)
        for begin, duration, md, stats in events:
            e = self.l.events.add(metadata_id=md, duration_ps=duration)
            if begin is not None:
                e.offset_ps = begin - base
            if stats:
                self.plane.fill(e.stats, stats)
