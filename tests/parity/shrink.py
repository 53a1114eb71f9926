# SPDX-License-Identifier: Apache-2.0
"""Makes a differing case small: drops hosts, planes, lines, events, stats and names while it still differs."""
import os
import time

from protos import pb


class Shrinker:
    """differs(files) says whether {name: bytes} still shows the difference."""

    def __init__(self, differs, limit_s=90):
        self.differs, self.end = differs, time.monotonic() + limit_s

    def run(self, files):
        spaces = {n: pb.XSpace.FromString(d) for n, d in files.items()}
        if not self.good(spaces):
            return files              # writing it anew already changes it
        before = None
        while before != sum(s.ByteSize() for s in spaces.values()) and self.time_left():
            before = sum(s.ByteSize() for s in spaces.values())
            spaces = self.drop_hosts(spaces)
            for n in spaces:
                self.shrink_space(spaces, n)
        return {n: s.SerializeToString() for n, s in spaces.items()}

    def time_left(self):
        return time.monotonic() < self.end

    def good(self, spaces):
        return self.differs({n: s.SerializeToString() for n, s in spaces.items()})

    def drop_hosts(self, spaces):
        for n in list(spaces):
            if len(spaces) > 1:
                fewer = {k: v for k, v in spaces.items() if k != n}
                if self.good(fewer):
                    spaces = fewer
        return spaces

    def shrink_space(self, spaces, name):
        s = spaces[name]
        for field in ("planes", "hostnames", "errors", "warnings"):
            self.repeated(spaces, getattr(s, field))
        for p in s.planes:
            self.repeated(spaces, p.lines)
            self.repeated(spaces, p.stats)
        for p in s.planes:
            for l in p.lines:
                self.repeated(spaces, l.events)
            for l in p.lines:
                for e in l.events:
                    self.repeated(spaces, e.stats)
            for m in list(p.event_metadata.values()):
                self.repeated(spaces, m.stats)
                self.repeated(spaces, m.child_id)
            self.unused(spaces, p)

    def repeated(self, spaces, field):
        """ddmin over one repeated field."""
        size = len(field)
        chunk = size
        while chunk >= 1 and self.time_left():
            at = 0
            while at < len(field) and self.time_left():
                kept = list(field)[at:at + chunk]
                saved = [self.copy(x) for x in field]
                del field[at:at + chunk]
                if kept and self.good(spaces):
                    continue
                del field[:]
                field.extend(saved)
                at += chunk
            chunk //= 2

    @staticmethod
    def copy(x):
        if isinstance(x, (str, int, bytes)):
            return x
        y = type(x)()
        y.CopyFrom(x)
        return y

    def unused(self, spaces, plane):
        """Metadata that nothing refers to goes at once; if that matters, one by one is not worth it."""
        used = {e.metadata_id for l in plane.lines for e in l.events} | {c for m in plane.event_metadata.values() for c in m.child_id}
        stats = [s for l in plane.lines for e in l.events for s in e.stats] + [s for m in plane.event_metadata.values() for s in m.stats] + list(plane.stats)
        used_stats = {s.metadata_id for s in stats} | {s.ref_value for s in stats}
        saved = self.copy(plane)
        for k in [k for k in plane.event_metadata if k not in used and not plane.event_metadata[k].stats]:
            del plane.event_metadata[k]
        for k in [k for k in plane.stat_metadata if k not in used_stats]:
            del plane.stat_metadata[k]
        if not self.good(spaces):
            plane.CopyFrom(saved)


def write(path, files, notes):
    os.makedirs(path, exist_ok=True)
    for n, d in files.items():
        with open(os.path.join(path, n), "wb") as f:
            f.write(d)
    with open(os.path.join(path, "notes.txt"), "w", encoding="utf-8") as f:
        f.write(notes)
