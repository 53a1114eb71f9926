# SPDX-License-Identifier: Apache-2.0
"""Rows of answers, and DataFrames of them where pandas is installed.

Times are whole picoseconds, sizes bytes, as the names of fields say.
"""
from __future__ import annotations

import dataclasses
import json
from typing import Any, Dict, Iterable, List, Mapping, Optional, Type, TypeVar

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


def frame(rows: List[Dict[str, Any]], columns: Optional[List[str]] = None) -> Any:
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
class Op:
    """One op of one program, with all its occurrences."""

    name: str = ""
    category: str = ""
    framework_op: str = ""
    expression: str = ""
    source_file: str = ""
    source_line: int = 0
    program_id: str = ""
    occurrences: int = 0
    time_ps: int = 0
    self_time_ps: int = 0


@dataclasses.dataclass(frozen=True)
class Step:
    """What one device did in one step; the causes add up to wall_ps (docs/findings.md defines them)."""

    host: str = ""
    device: str = ""
    step: Optional[int] = None  # the program's number; None: the time between steps
    name: str = ""
    begin_ps: Optional[int] = None
    wall_ps: int = 0
    causes: Dict[str, int] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Finding:
    """Something that costs time, the greatest saving first (docs/findings.md)."""

    kind: str = ""
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
class Timing:
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
    rows: Rows[Dict[str, Any]]
    properties: Dict[str, str]

    def to_pandas(self) -> Any:
        """The table as a pandas.DataFrame, columns by id."""
        return frame(self.rows, [c.id for c in self.columns])


def tables(data: bytes) -> List[Table]:
    """The tables of an answer: overview_page has many, kernel_stats one.  ValueError where there are none."""
    answer = json.loads(data)
    return [_table(t) for t in (answer if isinstance(answer, list) else [answer])]


def _table(answer: Any) -> Table:
    # {} keeps the place of a table that this profile has not.
    if not isinstance(answer, dict) or (answer and "cols" not in answer):
        raise ValueError("this answer has no tables")
    columns = [Column(c["id"], c.get("label", ""), c.get("type", "")) for c in answer.get("cols", [])]
    rows: Rows[Dict[str, Any]] = Rows()
    for row in answer.get("rows", []):
        cells = [cell.get("v") if cell else None for cell in row["c"]]
        rows.append({c.id: value for c, value in zip(columns, cells)})
    return Table(columns, rows, dict(answer.get("p", {})))


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Two groups of runs beside each other, B less A; keys are those of docs/cli-json.md, and the rows add up to the totals.

    `step_time["interval_ps"]` is the 95% interval of the difference, or None where there are too few steps.
    """

    a: Dict[str, Any] = dataclasses.field(default_factory=dict)
    b: Dict[str, Any] = dataclasses.field(default_factory=dict)
    step_time: Dict[str, Any] = dataclasses.field(default_factory=dict)
    times: Rows[Dict[str, Any]] = dataclasses.field(default_factory=Rows)
    times_total: Dict[str, Any] = dataclasses.field(default_factory=dict)
    ops: Rows[Dict[str, Any]] = dataclasses.field(default_factory=Rows)
    ops_total: Dict[str, Any] = dataclasses.field(default_factory=dict)
    kernels: Rows[Dict[str, Any]] = dataclasses.field(default_factory=Rows)
    kernels_total: Dict[str, Any] = dataclasses.field(default_factory=dict)
    memory: Rows[Dict[str, Any]] = dataclasses.field(default_factory=Rows)


def comparison(values: Mapping[str, Any]) -> Comparison:
    """The answer of CompareSessions, its lists as rows."""
    return read(Comparison, {name: Rows(value) if isinstance(value, list) else value for name, value in values.items()})


@dataclasses.dataclass(frozen=True)
class History:
    """Metrics over sessions; keys are those of docs/cli-json.md.

    `metrics` has, by name, the `unit` of its values, what is `better`, its `points` and its `changes`.
    """

    method: str = ""
    least_sessions: int = 0
    sessions: Rows[Dict[str, Any]] = dataclasses.field(default_factory=Rows)
    metrics: Dict[str, Dict[str, Any]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Fleet:
    """The daemons that share a database, and their jobs; keys of the rows are those of docs/cli-json.md."""

    queued: int = 0
    running: int = 0
    set_aside: int = 0
    workers: int = 0
    daemons: Rows[Dict[str, Any]] = dataclasses.field(default_factory=Rows)
    work: Rows[Dict[str, Any]] = dataclasses.field(default_factory=Rows)
    leases: Rows[Dict[str, Any]] = dataclasses.field(default_factory=Rows)


def fleet(values: Mapping[str, Any]) -> Fleet:
    """The answer of GetFleet, its lists as rows."""
    return Fleet(values["queued"], values["running"], values["set_aside"], values["workers"], Rows(values["daemons"]), Rows(values["work"]),
                 Rows(values.get("leases", [])))


def history(values: Mapping[str, Any]) -> History:
    """The answer of GetHistory, its lists as rows."""
    return History(values["method"], values["least_sessions"], Rows(values["sessions"]),
                   {m["metric"]: {**m, "points": Rows(m["points"]), "changes": Rows(m["changes"])} for m in values["metrics"]})
