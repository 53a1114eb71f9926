"""Tables of the measurements, and the summary that holds them against the figures to reach."""
import platform
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
    return bool(cells) and all(c[0].isdigit() or c.startswith("peer") for c in cells)


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
    def __init__(self, command):
        self.command, self.tables, self.figures = command, {}, {}
        self.load = _load()
        self.begin = time.time()

    def table(self, key, title, columns):
        self.tables[key] = Table(title, columns)
        return self.tables[key]

    def figure(self, name, goal, value, ok, where, least=False, unit=""):
        self.figures.setdefault(name, Figure(goal, unit, least)).add(value, ok, where)

    @staticmethod
    def size(n):
        for unit, step in (("MiB", 1 << 20), ("KiB", 1 << 10)):
            if n >= step:
                return f"{n / step:.1f} {unit}"
        return f"{n} B"

    def summary(self):
        rows = [[name, f.goal, f"{f.worst:.2f}{f.unit}", f.where, f"{f.met} of {f.n}",
                 MET if f.met == f.n else MISSED] for name, f in self.figures.items()]
        t = Table("Figures", ["what", "goal", "worst", "where", "rows that reach it", ""])
        t.rows = rows
        return t.markdown()

    def markdown(self):
        head = [f"`{self.command}` on {_machine()}; load average before: {self.load}; "
                f"{(time.time() - self.begin) / 60:.0f} minutes.", ""]
        return "\n".join(head + [self.summary()] + [t.markdown() for t in self.tables.values()])


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


def write_between(path, marker, text):
    """Replaces what stands between `<!-- MARKER:begin -->` and `<!-- MARKER:end -->`."""
    begin, end = (f"<!-- {marker}:{w} -->" for w in ("begin", "end"))
    old = path.read_text(encoding="utf-8")
    if begin not in old or end not in old:
        raise SystemExit(f"{path} lacks the lines {begin} and {end}")
    head, rest = old.split(begin, 1)
    path.write_text(f"{head}{begin}\n{text}\n{end}{rest.split(end, 1)[1]}", encoding="utf-8")
