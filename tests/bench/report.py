# SPDX-License-Identifier: Apache-2.0
"""Tables of the measurements, and the summary that holds them against the figures to reach."""
import platform
import re
import time

MET, MISSED = "✓", "✗"


class Table:
    def __init__(self, title, columns):
        self.title, self.columns, self.rows = title, columns, []

    def judge(self, ok, text):
        return f"{text} {MET if ok else MISSED}"

    def row(self, cells):
        self.rows.append(cells)

    def markdown(self):
        lines = [f"### {self.title}", "", _line(self.columns),
                 _line(["---"] + ["---:" if _numeric(self.rows, i) else "---"
                                  for i in range(1, len(self.columns))])]
        return "\n".join(lines + [_line(r) for r in self.rows]) + "\n"


def _line(cells):
    return "| " + " | ".join(cells) + " |"


def _numeric(rows, i):
    cells = [r[i] for r in rows if r[i]]
    return bool(cells) and all(c[0].isdigit() or c.startswith(("peer", "-")) for c in cells)


class Figure:
    def __init__(self, goal, unit, least):
        self.goal, self.unit, self.least = goal, unit, least
        self.worst, self.where, self.n, self.met = None, "", 0, 0

    def add(self, value, ok, where):
        self.n += 1
        self.met += ok
        if self.worst is None or (value < self.worst if self.least else value > self.worst):
            self.worst, self.where = value, where


class Report:
    """Tables and figures by section: the part of a run that one function of measure.ALL fills."""

    def __init__(self, command):
        self.command, self.sections = command, {}
        self.at = None

    def begin(self, section):
        self.at = self.sections[section] = Section(self.command)

    def end(self):
        self.at.seconds = time.time() - self.at.begin

    def table(self, key, title, columns):
        self.at.tables[key] = Table(title, columns)
        return self.at.tables[key]

    def figure(self, name, goal, value, ok, where, least=False, unit=""):
        self.at.figures.setdefault(name, Figure(goal, unit, least)).add(value, ok, where)

    @staticmethod
    def size(n):
        for unit, step in (("MiB", 1 << 20), ("KiB", 1 << 10)):
            if n >= step:
                return f"{n / step:.1f} {unit}"
        return f"{n:.0f} B"

    def markdown(self, order, old=""):
        """All sections in their order; what was not measured is as in `old`."""
        kept, kept_rows = _read_old(old)
        rows, texts = [], []
        for name in order:
            section = self.sections.get(name)
            if section:
                rows += [_line([name, *r]) for r in section.summary()]
                texts.append(f"{_begin_of(name)}\n{section.markdown()}")
            else:
                rows += kept_rows.get(name, [])
                texts += [f"{_begin_of(name)}\n{kept[name]}"] if name in kept else []
        t = Table("Figures", ["section", "what", "goal", "worst", "where", "rows that reach it", ""])
        return "\n".join([t.markdown() + "".join(r + "\n" for r in rows), *texts])


class Section:
    def __init__(self, command):
        self.command, self.load, self.begin = command, _load(), time.time()
        self.tables, self.figures, self.seconds = {}, {}, 0

    def summary(self):
        return [[name, f.goal, f"{f.worst:.2f}{f.unit}", f.where, f"{f.met} of {f.n}",
                 MET if f.met == f.n else MISSED] for name, f in self.figures.items()]

    def markdown(self):
        if not self.tables:
            return ""
        tables = [t.markdown() for t in self.tables.values()]
        run = (f"`{self.command}` on {_machine()}; load average before: {self.load}; "
               f"{self.seconds:.0f} s.\n")
        return "\n".join([*tables, run])


def _begin_of(section):
    return f"<!-- bench:section {section} -->"


def _read_old(text):
    """What an earlier run wrote: {section: text}, and {section: rows of the table of figures}."""
    head, *parts = re.split(r"^<!-- bench:section (\w+) -->\n", text, flags=re.MULTILINE)
    kept = {name: body.strip("\n") + "\n" for name, body in zip(parts[::2], parts[1::2])}
    rows = {}
    for line in head.splitlines():
        section = line.strip("| ").split(" ", 1)[0]
        if section in kept:
            rows.setdefault(section, []).append(line)
    return kept, rows


def _load():
    with open("/proc/loadavg", encoding="ascii") as f:
        return f.read().split()[0]


def _machine():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        models = [line.split(":", 1)[1].strip() for line in f if line.startswith("model name")]
    with open("/proc/meminfo", encoding="ascii") as f:
        kib = int(f.readline().split()[1])
    return (f"{len(models)} cores of {models[0] if models else platform.machine()}, "
            f"{kib / (1 << 20):.0f} GiB, Linux {platform.release()}")


def write_between(path, marker, make):
    """Replaces what stands between `<!-- MARKER:begin -->` and `<!-- MARKER:end -->` by what
    `make` makes of it."""
    begin, end = (f"<!-- {marker}:{w} -->" for w in ("begin", "end"))
    old = path.read_text(encoding="utf-8")
    if begin not in old or end not in old:
        raise SystemExit(f"{path} lacks the lines {begin} and {end}")
    head, rest = old.split(begin, 1)
    body, tail = rest.split(end, 1)
    path.write_text(f"{head}{begin}\n{make(body)}\n{end}{tail}", encoding="utf-8")
