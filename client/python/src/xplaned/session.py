# SPDX-License-Identifier: Apache-2.0
"""A session: the profiles of one run, and what the tools say of it."""
from __future__ import annotations

import dataclasses
import datetime
import html
from typing import TYPE_CHECKING, Any, Dict, List, Sequence, Union

from . import rows, show
from .errors import Error, joined, parsed, translated, warn
from .v1 import analysis_pb2, session_pb2

if TYPE_CHECKING:
    from .client import Client

# A value of a tool's option: True and False are sent as "true" and "false".
Option = Union[str, int, float, bool]


@dataclasses.dataclass(frozen=True)
class Host:
    """One profile of a session.  state: new, converting, stored, broken (then `error` says why)."""

    name: str
    bytes: int
    state: str
    error: str


@dataclasses.dataclass(frozen=True)
class Warning:
    """What an answer leaves out, and of which host ("" for all)."""

    host: str
    text: str


@dataclasses.dataclass(frozen=True)
class Answer:
    """A tool's answer.  source: memory, store or computed; stages: microseconds by name."""

    data: bytes
    content_type: str
    source: str
    warnings: List[Warning]
    stages: Dict[str, int]

    def text(self) -> str:
        """The answer as text."""
        return self.data.decode("utf-8", "replace")

    def json(self) -> Any:
        """The answer as what its JSON says; of reports that are lines of JSON the Rows."""
        if self.content_type == "application/x-ndjson":
            return rows.Rows(parsed(line) for line in self.data.splitlines())
        return parsed(self.data)

    def tables(self) -> List[rows.Table]:
        """The answer's tables; ValueError when it has none."""
        if self.content_type != "application/json":
            raise ValueError("this answer has no tables")
        return rows.tables(self.data)


class Session:
    """One session as the daemon knew it when it was asked; `refresh()` asks again.

    name, kind (of its format, such as "xspace"), state (new, converting, stored, broken, partial), bytes, host_count, tools,
    hosts, lost (hosts that gave no profile, with the reason), labels, captured (a datetime in UTC).
    """

    def __init__(self, client: "Client", message: session_pb2.Session) -> None:
        self._client = client
        self._take(message)

    def _take(self, message: session_pb2.Session) -> None:
        self.name = message.name
        self.kind = message.kind
        self.state = _state(message.state)
        self.progress = message.progress
        self.error = message.error
        self.bytes = message.bytes
        self.host_count = message.host_count
        self.tools = list(message.tools)
        self.hosts = [Host(h.name, h.bytes, _state(h.state), h.error) for h in message.hosts]
        self.lost = {lost.target: lost.reason for lost in message.lost}
        self.labels = list(message.labels)
        self.captured = datetime.datetime.fromtimestamp(message.captured_unix_ns / 1e9, datetime.timezone.utc)

    def __repr__(self) -> str:
        return f"<Session {self.name!r}, {self.host_count} {'host' if self.host_count == 1 else 'hosts'}, {self.state}>"

    def _repr_html_(self) -> str:
        try:
            answer = self._told("findings", (), {}).json()
            found = rows.findings(answer)
            return f"<p>{html.escape(show.printable(self.name))}</p>" + show.verdict(rows.verdict(answer)) + (show.findings(found) if found else "")
        except Error as e:
            return f"<p>{html.escape(show.printable(f'{self.name}: {e.message}', 1000))}</p>"

    def refresh(self) -> "Session":
        """Asks the daemon again; returns this session."""
        self._take(self._client._get_session(self.name))
        return self

    def label(self, *labels: str, remove: Sequence[str] = ()) -> List[str]:
        """Adds labels, and removes others; returns those that it has now."""
        request = session_pb2.LabelSessionRequest(session=self.name, add=labels, remove=remove)
        with translated():
            self.labels = list(self._client._sessions.LabelSession(request, **self._client._call()).labels)
        return self.labels

    def tool(self, tool: str, hosts: Union[str, Sequence[str]] = (), **options: Option) -> Answer:
        """A tool's answer, for all hosts together or those named.  `Client.tools()` has names and options."""
        request = analysis_pb2.GetToolDataRequest(
            session=self.name, tool=tool, hosts=[hosts] if isinstance(hosts, str) else list(hosts),
            options={name: _option(value) for name, value in options.items()})
        head, data = joined(self._client._analysis.StreamToolData(request, **self._client._call()))
        return Answer(data, head.content_type,
                      analysis_pb2.ToolData.Source.Name(head.source).lower(),
                      [Warning(w.host, w.text) for w in head.warnings], {s.name: s.micros for s in head.stages})

    # The same for people: omissions are warnings.
    def _told(self, tool: str, hosts: Union[str, Sequence[str]], options: Dict[str, Option]) -> Answer:
        answer = self.tool(tool, hosts, **options)
        for w in answer.warnings:
            warn(w.host, w.text, 3)
        return answer

    def verdict(self, hosts: Union[str, Sequence[str]] = (), **options: Option) -> rows.Verdict:
        """The run in one sentence, with its key figures."""
        return rows.verdict(self._told("findings", hosts, options).json())

    def findings(self, hosts: Union[str, Sequence[str]] = (), **options: Option) -> rows.Rows[rows.Finding]:
        """Why the run is slow: what costs time, the greatest saving first."""
        return rows.findings(self._told("findings", hosts, options).json())

    def ops(self, hosts: Union[str, Sequence[str]] = (), **options: Option) -> rows.Rows[rows.Op]:
        """The ops that ran on devices, with category, source line and times; the greatest self time first."""
        answer = self._told("op_list", hosts, options).json()
        found = (rows.read(rows.Op, {**op, "program_id": int(op["program_id"] or 0)}) for op in answer["ops"])
        return rows.rows_of(rows.Op, sorted(found, key=lambda op: op.self_time_ps, reverse=True))

    def steps(self, hosts: Union[str, Sequence[str]] = (), *, between: bool = False, **options: Option) -> rows.Rows[rows.Step]:
        """Each device's steps, with the causes of their time; `between` adds a row for the time of each device outside of steps."""
        answer = self._told("time_breakdown", hosts, options).json()
        return rows.rows_of(rows.Step, (_step(host["host"], device["device"], step)
                                        for host in answer["hosts"] for device in host.get("devices", ()) for step in device["steps"]
                                        if between or step["step"] is not None))

    def events(self, prefix: str = "", match: str = "", *, min_duration: str = "", plane: str = "",
               hosts: Union[str, Sequence[str]] = (), **options: Option) -> rows.Rows[rows.Timing]:
        """How often events of each name came and how long they took, the greatest total first.

        prefix and match (a regular expression) choose names, plane chooses planes by a part of their names ("gpu"), min_duration
        ("1us") leaves short events out.
        """
        given = {"prefix": prefix, "match": match, "min_duration": min_duration, "plane": plane}
        answer = self._told("events", hosts, {**{name: value for name, value in given.items() if value}, **options}).json()
        return rows.rows_of(rows.Timing, (rows.read(rows.Timing, row) for row in answer["rows"]))

    def collectives(self, hosts: Union[str, Sequence[str]] = (), **options: Option) -> rows.Table:
        """What devices exchange, by kind, size and group, with rates (docs/findings.md)."""
        return self._told("collectives", hosts, options).tables()[0]

    def kernels(self, hosts: Union[str, Sequence[str]] = (), **options: Option) -> rows.Table:
        """The kernels of GPUs, by time."""
        return self._told("kernel_stats", hosts, options).tables()[0]

    def overview(self, hosts: Union[str, Sequence[str]] = (), **options: Option) -> List[rows.Table]:
        """The tables of XProf's overview page."""
        return self._told("overview_page", hosts, options).tables()

    def delete(self) -> None:
        """Removes the session and its files; the daemon must allow it."""
        with translated():
            self._client._sessions.DeleteSession(session_pb2.DeleteSessionRequest(session=self.name), **self._client._call())


def _step(host: str, device: str, step: Dict[str, Any]) -> rows.Step:
    causes = {name: value for name, value in step.items() if name.endswith("_ps") and name not in ("begin_ps", "wall_ps")}
    return rows.Step(host, device, step["step"], step["name"], step["begin_ps"], step["wall_ps"], causes)


def _state(state: int) -> str:
    return session_pb2.State.Name(state)[len("STATE_"):].lower()


def _option(value: Option) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
