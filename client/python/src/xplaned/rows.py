# SPDX-License-Identifier: Apache-2.0
"""Rows of answers, and DataFrames of them where pandas is installed.

Times are whole picoseconds, sizes bytes, as the names of fields say.
"""
from __future__ import annotations

import dataclasses
import json
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Type, TypeVar

from . import show

T = TypeVar("T")


class Rows(List[T]):
    """A list of rows: dataclasses or dicts, all of one kind."""

    def __init__(self, values: Iterable[T] = (), columns: Optional[List[str]] = None) -> None:
        super().__init__(values)
        self._columns = columns  # of a frame without rows

    def to_dicts(self) -> List[Dict[str, Any]]:
        """The rows as flat dicts: a field that is a dict gives its keys."""
        return [_flat(row) for row in self]

    def to_pandas(self) -> Any:
        """The rows as a pandas.DataFrame."""
        return frame(self.to_dicts(), None if self else self._columns)

    def _repr_html_(self) -> str:
        if self and isinstance(self[0], Finding):
            return show.findings(self)
        chart = show.step_chart(self) if self and isinstance(self[0], Step) else ""
        return chart + show.table([_flat(row) for row in self[:show.MOST_ROWS]], None if self else self._columns, len(self))


class Record:
    """A row with fields; `row["name"]` is `row.name`."""

    def __getitem__(self, name: str) -> Any:
        try:
            return getattr(self, name)
        except AttributeError as e:
            raise KeyError(name) from e


class Row(Dict[str, Any]):
    """A row whose columns only the answer knows; `row.name` is `row["name"]`."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError as e:
            raise AttributeError(name) from e


def frame(rows: Sequence[Dict[str, Any]], columns: Optional[List[str]] = None) -> Any:
    """A pandas.DataFrame; ImportError with a hint where pandas is missing."""
    try:
        import pandas
    except ImportError as e:
        raise ImportError("DataFrames need pandas: pip install pandas") from e
    made = pandas.DataFrame(rows, columns=columns)
    for name in made.columns:
        values = [row.get(name) for row in rows]
        if None in values and any(type(v) is int for v in values) and all(v is None or type(v) is int for v in values):
            made[name] = pandas.array(values, dtype="Int64")  # as floats, times would no longer be whole
    return made


def _flat(row: Any) -> Dict[str, Any]:
    fields = row if isinstance(row, dict) else {f.name: getattr(row, f.name) for f in dataclasses.fields(row)}
    flat: Dict[str, Any] = {}
    for name, value in fields.items():
        if isinstance(value, dict):
            flat.update(value)
        else:
            flat[name] = value
    return flat


def read(kind: Type[T], values: Mapping[str, Any]) -> T:
    """A dataclass of what a newer daemon may have sent more of, or an older one less."""
    known = {f.name: values[f.name] for f in dataclasses.fields(kind) if f.name in values}  # type: ignore[arg-type]
    return kind(**known)


def rows_of(kind: Type[T], values: Iterable[T]) -> Rows[T]:
    """Rows of a dataclass, whose fields are the columns where there are none."""
    fields = dataclasses.fields(kind)  # type: ignore[arg-type]
    return Rows(values, [f.name for f in fields if f.default_factory is not dict])


@dataclasses.dataclass(frozen=True)
class Op(Record):
    """One op of one program, with all its occurrences."""

    name: str = ""
    category: str = ""
    framework_op: str = ""
    expression: str = ""
    source_file: str = ""
    source_line: int = 0
    program_id: int = 0
    occurrences: int = 0
    time_ps: int = 0
    self_time_ps: int = 0


@dataclasses.dataclass(frozen=True)
class Step(Record):
    """What one device did in one step; the causes add up to wall_ps (docs/findings.md defines them)."""

    host: str = ""
    device: str = ""
    step: Optional[int] = None  # the program's number; None: the time between steps
    name: str = ""
    begin_ps: Optional[int] = None
    wall_ps: int = 0
    causes: Dict[str, int] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Finding(Record):
    """Something that costs time, the greatest saving first (docs/findings.md)."""

    kind: str = ""
    title: str = ""
    text: str = ""
    advice: str = ""
    link: str = ""
    share_percent: float = 0.0
    saving_percent: float = 0.0
    time_ps: int = 0
    saving_ps: int = 0
    hosts: List[Dict[str, Any]] = dataclasses.field(default_factory=list)
    steps: List[Dict[str, Any]] = dataclasses.field(default_factory=list)
    ops: List[Dict[str, Any]] = dataclasses.field(default_factory=list)
    window: Optional[Dict[str, Any]] = None


@dataclasses.dataclass(frozen=True)
class Verdict(Record):
    """A run in one sentence.

    kind: that of the first finding, which could save most; "ok" without findings; "cannot_tell" if the profile does not show what
    limits the program, and then `reason` says why (docs/findings.md).  step_time_ps: mean over the steps of the kind with the most;
    None without steps.  saving_percent: of that finding.  compute_percent: share of the time in which devices compute.
    """

    kind: str = ""
    text: str = ""
    reason: str = ""
    framework: str = ""
    hosts: int = 0
    devices: int = 0
    steps: int = 0
    step_time_ps: Optional[float] = None
    compute_percent: float = 0.0
    saving_percent: float = 0.0

    def _repr_html_(self) -> str:
        return show.verdict(self)


def findings(found: Mapping[str, Any]) -> Rows[Finding]:
    """Of an answer of findings."""
    return rows_of(Finding, (read(Finding, f) for f in found["findings"]))


def verdict(found: Mapping[str, Any]) -> Verdict:
    """Of the same answer."""
    said = found["verdict"]
    reason = said["cannot_tell"] or ""
    first = found["findings"][0] if found["findings"] else None
    kind = "cannot_tell" if reason else first["kind"] if first else "ok"
    return Verdict(kind, said["text"], reason, found["framework"], found["hosts"], found["devices"], found["steps"], said["step_ps"] or None,
                   said["busy_percent"], first["saving_percent"] if first else 0.0)


@dataclasses.dataclass(frozen=True)
class Timing(Record):
    """The events of one name, nested ones counted once (docs/events.md); total_ps is the union of their times."""

    name: str = ""
    count: int = 0
    total_ps: int = 0
    self_ps: int = 0
    mean_ps: float = 0.0
    std_ps: float = 0.0
    min_ps: float = 0.0
    p50_ps: float = 0.0
    p99_ps: float = 0.0


@dataclasses.dataclass(frozen=True)
class Column:
    """A column of a table: its name, the label that people read, and string, number or boolean."""

    id: str
    label: str
    type: str


@dataclasses.dataclass(frozen=True)
class Table:
    """A table as XProf's tools give it, with what stands beside it as `properties`."""

    columns: List[Column]
    rows: Rows[Row]
    properties: Dict[str, str]

    def to_pandas(self) -> Any:
        """The table as a pandas.DataFrame, columns by id."""
        return frame(self.rows, [c.id for c in self.columns])

    def _repr_html_(self) -> str:
        return show.table(self.rows[:show.MOST_ROWS], [c.id for c in self.columns], len(self.rows))


def tables(data: bytes) -> List[Table]:
    """The tables of an answer: overview_page has many, kernel_stats one.  ValueError where there are none."""
    answer = json.loads(data)
    return [_table(t) for t in (answer if isinstance(answer, list) else [answer])]


def _table(answer: Any) -> Table:
    # {} keeps the place of a table that this profile has not.
    if not isinstance(answer, dict) or (answer and "cols" not in answer):
        raise ValueError("this answer has no tables")
    columns = [Column(c["id"], c.get("label", ""), c.get("type", "")) for c in answer.get("cols", [])]
    rows: Rows[Row] = Rows()
    for row in answer.get("rows", []):
        cells = [cell.get("v") if cell else None for cell in row["c"]]
        rows.append(Row({c.id: value for c, value in zip(columns, cells)}))
    return Table(columns, rows, dict(answer.get("p", {})))


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Two groups of runs, B less A; keys are those of docs/cli-json.md, and the rows add up to the totals.

    `step_time["interval_ps"]` is the 95% interval of the difference, or None if the noise is not known;
    `step_time["noise"]` says where the noise comes from, and `grew` whether a threshold is exceeded.
    """

    a: Dict[str, Any] = dataclasses.field(default_factory=dict)
    b: Dict[str, Any] = dataclasses.field(default_factory=dict)
    history: Optional[Dict[str, Any]] = None
    step_time: Dict[str, Any] = dataclasses.field(default_factory=dict)
    median_step_time: Dict[str, Any] = dataclasses.field(default_factory=dict)
    times: Rows[Row] = dataclasses.field(default_factory=Rows)
    times_total: Dict[str, Any] = dataclasses.field(default_factory=dict)
    ops: Rows[Row] = dataclasses.field(default_factory=Rows)
    ops_total: Dict[str, Any] = dataclasses.field(default_factory=dict)
    kernels: Rows[Row] = dataclasses.field(default_factory=Rows)
    kernels_total: Dict[str, Any] = dataclasses.field(default_factory=dict)
    memory: Rows[Row] = dataclasses.field(default_factory=Rows)

    def grew(self, metric: str = "step_time", percent: float = 5.0) -> Optional[bool]:
        """Whether the metric, a step time or a cause, grew by more than so many percent of A, as `--fail-if` says it.

        None: noise cannot be excluded, or the noise between runs is not known.
        """
        if metric in ("step_time", "median_step_time"):
            row = getattr(self, metric)
        else:
            row = next(t for t in self.times if t["cause"] == metric)
        if row["noise"] not in ("runs", "history"):
            return None
        low, high = row["interval_ps"]
        limit = row["a_ps"] * percent / 100
        if row["difference_ps"] > limit and low > min(0, limit):
            return True
        return False if high <= limit else None

    def _repr_html_(self) -> str:
        return show.comparison(self)


def _records(values: Iterable[Mapping[str, Any]]) -> Rows[Row]:
    return Rows(Row(value) for value in values)


def comparison(values: Mapping[str, Any]) -> Comparison:
    """The answer of CompareSessions, its lists as rows."""
    return read(Comparison, {name: _records(value) if isinstance(value, list) else value for name, value in values.items()})


@dataclasses.dataclass(frozen=True)
class History:
    """Metrics over sessions; keys are those of docs/cli-json.md.

    `metrics` has, by name, the `unit` of its values, what is `better`, its `points` and its `changes`.
    """

    method: str = ""
    least_sessions: int = 0
    sessions: Rows[Row] = dataclasses.field(default_factory=Rows)
    metrics: Dict[str, Dict[str, Any]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Fleet:
    """The daemons that share a database, and their jobs; keys of the rows are those of docs/cli-json.md."""

    queued: int = 0
    running: int = 0
    set_aside: int = 0
    workers: int = 0
    daemons: Rows[Row] = dataclasses.field(default_factory=Rows)
    work: Rows[Row] = dataclasses.field(default_factory=Rows)
    leases: Rows[Row] = dataclasses.field(default_factory=Rows)


def fleet(values: Mapping[str, Any]) -> Fleet:
    """The answer of GetFleet, its lists as rows."""
    return Fleet(values["queued"], values["running"], values["set_aside"], values["workers"], _records(values["daemons"]), _records(values["work"]),
                 _records(values.get("leases", [])))


def history(values: Mapping[str, Any]) -> History:
    """The answer of GetHistory, its lists as rows."""
    return History(values["method"], values["least_sessions"], _records(values["sessions"]),
                   {m["metric"]: {**m, "points": _records(m["points"]), "changes": _records(m["changes"])} for m in values["metrics"]})
