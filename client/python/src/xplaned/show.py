# SPDX-License-Identifier: Apache-2.0
"""What notebooks show of answers: HTML without scripts, styles of its own only, and nothing from a network.

Every text of a profile is escaped, and what cannot be printed has an escape that people can read.
"""
from __future__ import annotations

import html
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

MOST_ROWS = 20
MOST_COLUMNS = 14
MOST_STEPS = 200
_UNITS = ((1e12, "s"), (1e9, "ms"), (1e6, "µs"), (1e3, "ns"), (1.0, "ps"))
# The parts of a step's bar: name, causes, color.
_PARTS: Tuple[Tuple[str, Tuple[str, ...], str], ...] = (
    ("compute", ("compute_ps", "overlapped_collectives_ps"), "#3a7bd5"), ("collectives", ("exposed_collectives_ps",), "#e08a1e"),
    ("copies", ("host_copies_ps", "device_copies_ps"), "#8e6bbf"), ("input", ("input_ps",), "#c0392b"),
    ("launch", ("launch_ps", "queued_ps"), "#2a9d8f"), ("other", (), "#999999"))


def printable(text: str, most: int = 300) -> str:
    """TEXT with escapes for what cannot be printed (controls, direction marks, tags, private characters), cut to `most` characters."""
    left_out = len(text) - most
    shown = "".join(c if c.isprintable() else f"\\u{{{ord(c):x}}}" for c in text[:most])
    return shown if left_out <= 0 else f"{shown}… (+{left_out} characters)"


def duration(ps: float) -> str:
    """Picoseconds in the unit that people would choose."""
    size, unit = next((u for u in _UNITS if abs(ps) >= u[0]), _UNITS[-1])
    return f"{ps / size:.3g} {unit}" if abs(ps) < 1e15 else f"{ps / size:.0f} {unit}"


def _text(value: Any) -> str:
    return html.escape(printable(str(value)))


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "<td></td>"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        shown = duration(value) if name.endswith("_ps") else f"{value:.2f}" if isinstance(value, float) else str(value)
        return f"<td style='text-align:right'>{shown}</td>"
    return f"<td style='text-align:left'>{_text(value)}</td>"


def table(rows: Sequence[Mapping[str, Any]], columns: Optional[Sequence[str]], total: int) -> str:
    """Rows as a table, and how many there are of them altogether."""
    names = list(columns or (rows[0] if rows else ()))[:MOST_COLUMNS]
    head = "".join(f"<th>{_text(n[:-3] if n.endswith('_ps') else n)}</th>" for n in names)
    body = "".join("<tr>" + "".join(_cell(n, row.get(n)) for n in names) + "</tr>" for row in rows)
    more = f"<p>{len(rows)} of {total} rows</p>" if total > len(rows) else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def verdict(v: Any) -> str:
    """A sentence and the key figures."""
    counts = ((v.hosts, "host"), (v.devices, "device"), (v.steps, "step"))
    facts = [f"{v.compute_percent:.1f}% compute", *(f"{n} {what}{'' if n == 1 else 's'}" for n, what in counts)]
    if v.step_time_ps is not None:
        facts.insert(0, f"step time {duration(v.step_time_ps)}")
    return f"<p><strong>{_text(v.text)}</strong><br>{_text(', '.join(facts))}</p>"


def findings(found: Iterable[Any]) -> str:
    """A list: the title, the sentence, the evidence and the advice of each."""
    items = []
    for f in found:
        evidence = [f"{_text(op['name'])} {duration(op['time_ps'])}" for op in f.ops[:3]]
        evidence += [f"{_text(h['host'])} {h['share_percent']:.1f}%" for h in f.hosts[:3]]
        where = f"<br>{', '.join(evidence)}" if evidence else ""
        saving = f" (could save {f.saving_percent:.1f}%)" if f.saving_percent else ""
        items.append(f"<li><strong>{_text(f.title)}</strong>{saving}: {_text(f.text)}{where}<br><em>{_text(f.advice)}</em></li>")
    return f"<ol>{''.join(items)}</ol>" if items else "<p>No known cause costs 1% of the time.</p>"


def _slowest(steps: Iterable[Any]) -> List[Any]:
    """Of each step its slowest device, in order."""
    of: Dict[Any, Any] = {}
    for s in steps:
        if s.step is not None and (s.step not in of or s.wall_ps > of[s.step].wall_ps):
            of[s.step] = s
    return [of[n] for n in sorted(of)]


def _parts(step: Any) -> List[int]:
    times = [sum(step.causes.get(cause, 0) for cause in causes) for _, causes, _ in _PARTS]
    times[-1] = step.wall_ps - sum(times)
    return times


def step_chart(steps: Iterable[Any]) -> str:
    """A bar for each step, of its slowest device, with the parts of its time."""
    shown = _slowest(steps)
    left_out, shown = len(shown) - MOST_STEPS, shown[-MOST_STEPS:]
    if not shown:
        return "<p>The profile has no steps.</p>"
    longest = max(s.wall_ps for s in shown) or 1
    width, height = max(3, 600 // len(shown)), 120
    bars = []
    for i, s in enumerate(shown):
        below = 0.0
        for (name, _, color), ps in zip(_PARTS, _parts(s)):
            size = height * ps / longest
            title = f"step {s.step} on {s.host}: {duration(s.wall_ps)}, {name} {duration(ps)}"
            bars.append(f"<rect x='{i * width}' y='{height - below - size:.2f}' width='{width - 1}' height='{size:.2f}' fill='{color}'>"
                        f"<title>{_text(title)}</title></rect>" if ps else "")
            below += size
    legend = " ".join(f"<span style='color:{color}'>■</span> {name}" for name, _, color in _PARTS)
    label = f"{len(shown)} steps, the longest {duration(longest)}"
    return (f"<p>{label}, slowest device of each{f'; {left_out} earlier ones are left out' if left_out > 0 else ''}<br>{legend}</p>"
            f"<svg role='img' aria-label='{label}' width='{width * len(shown)}' height='{height}'>{''.join(bars)}</svg>")


def comparison(c: Any) -> str:
    """The difference of the step time, and what it consists of."""
    step = c.step_time
    if step.get("difference_ps") is None:
        said = "A side has no steps."
    else:
        said = f"Step time {duration(c.a['mean_step_ps'])} → {duration(c.b['mean_step_ps'])}"
        interval = step.get("interval_ps")
        if interval is None:
            said += f"; too few steps for an interval (at least {step.get('least_steps')} on each side)"
        else:
            noise = interval[0] <= 0 <= interval[1]
            said += f", difference {duration(interval[0])} to {duration(interval[1])} (95%){': no change beyond noise' if noise else ''}"
    columns = [["cause", "a_ps", "b_ps", "difference_ps"], ["op", "category", "state", "a_ps", "b_ps", "difference_ps"]]
    return f"<p><strong>{_text(said)}</strong></p>{table(c.times, columns[0], len(c.times))}{table(c.ops[:10], columns[1], len(c.ops))}"
