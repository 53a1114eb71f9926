# SPDX-License-Identifier: Apache-2.0
"""An evaluation of the MCP server without a model: each task has a script of calls that leads to its answer, in at most 5 calls
and 20,000 characters.  A call's arguments may depend on the answers before it."""
import asyncio
import dataclasses
import json
import pathlib
import shutil
from typing import Any, Callable, List

from mcp import Client
from test_mcp import column, stdio

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = ("gen_gpu_hosts", "gen_gpu_costed", "gen_tpu_hosts")  # of tests/golden
MOST_CALLS, MOST_CHARACTERS = 5, 20_000


@dataclasses.dataclass
class Task:
    text: str
    calls: List[Any]  # (tool, arguments), or what makes that of the answers so far
    answer: Callable[[List[Any]], Any]
    expected: Any


def of(session, *tools):
    return [(tool, {"session": session}) for tool in tools]


def first(table, name):
    return column(table, name)[0]


def row(table, name, value):
    """The row whose column NAME has that value, as a dict."""
    return dict(zip(table["columns"], table["rows"][column(table, name).index(value)]))


def window_of(kind):
    return lambda answers: ("trace_window", {"session": answers[0]["session"], "finding_id": row(answers[0], "kind", kind)["id"]})


def lead(answers):
    """How much longer the first device's own time is than the mean of the others'."""
    times = column(answers[0]["by_device"], "own_mean_ms")
    return times[0] - sum(times[1:]) / len(times[1:])


FOUR, GEMM = "cpu/jax_4hosts", "accel/mi300_jax_gemm"
TASKS = [
    Task("Which host of the run with four hosts is late?", [("sessions", {"prefix": "cpu/jax_4"}),
             lambda a: ("steps", {"session": first(a[0], "session")})],
             lambda a: first(a[1]["by_device"], "host"), "host-0.cluster.local"),
    Task("By how many milliseconds is it late, in the mean over steps?", of(FOUR, "steps"), lead, 0.708),
    Task("In how many of its steps is it the last to join?", of(FOUR, "steps"), lambda a: first(a[0]["by_device"], "last_to_join"), 8),
    Task("Why is that run slow, and what share of the time could be saved at most?", of(FOUR, "verdict"),
             lambda a: (a[0]["kind"], a[0]["saving_percent"]), ("exposed_collectives", 86.728)),
    Task("Which op and source line does its time go to?", of(FOUR, "top_ops"),
             lambda a: (first(a[0], "name"), first(a[0], "source").rpartition("/")[2]), ("all-reduce.5", "d_multi.py:16")),
    Task("Which step is the longest, and where does it last longest?", of(FOUR, "steps"),
             lambda a: (first(a[0]["longest"], "step"), first(a[0]["longest"], "host"), first(a[0]["longest"], "wall_ms")),
             (3, "host-2.cluster.local", 80.531)),
    Task("How long does the all-reduce last where a host waits for the last one?", [*of(FOUR, "findings"), window_of("stragglers")],
             lambda a: row(a[1]["names"], "name", "all-reduce.5")["max_ms"], 76.982),
    Task("How much faster is the run on eight devices of one host, and is that more than noise?",
             [("compare", {"a": [FOUR], "b": ["cpu/jax_8dev_shardmap"], "limit": 3})],
             lambda a: (a[0]["step_time"]["difference_ms"], a[0]["step_time"]["interval_ms"][1] < 0), (-32.446, True)),
    Task("Why is the GPU of the matrix multiplications idle?", of(GEMM, "findings"),
             lambda a: (first(a[0], "kind"), first(a[0], "share_percent")), ("launch_bound", 58.226)),
    Task("Which share of kernel time has the longest kernel, and does it use matrix units?", of(GEMM, "kernels"),
             lambda a: (first(a[0], "share_percent"), first(a[0], "is_kernel_using_tensor_core")), (52.741, True)),
    Task("Which program is the largest, and is its result of bf16?", [*of(GEMM, "hlo_text"),
             lambda a: ("hlo_text", {"session": GEMM, "module": first(a[0], "module")})],
             lambda a: (first(a[0], "module"), "ROOT" in a[1]["text"], "bf16" in a[1]["text"]), ("jit_dot(5)", True, True)),
    Task("Can the profile of attention explain its idle time?", of("accel/mi300_jax_attention", "findings"),
             lambda a: "idle_unknown" in column(a[0], "kind"), True),
    Task("What limits inference on the TPU?", of("accel/tpu_inference_a", "breakdown"),
             lambda a: max(a[0]["all_devices"].items(), key=lambda x: x[1]), ("host_copies_percent", 87.381)),
    Task("Did a device do anything in the empty profile?", of("cpu/jax_empty", "verdict"),
             lambda a: a[0]["cannot_tell"]["reason"], "no_device_events"),
    Task("Can the damaged profile be read?", of("cpu/jax_2proc_samehost", "verdict"), lambda a: a[0]["error"]["code"], "DATA_LOSS"),
    Task("How often did ynn_fusion run in the matrix multiplication, by SQL?",
             [("sql", {"statement": "SELECT count(*) AS n FROM events WHERE name = 'ynn_fusion'", "sessions": ["cpu/jax_matmul_nopy"]})],
             lambda a: a[0]["rows"][0][0], 50),
    Task("How long does an event `meta` take?", [("events", {"session": "cpu/jax_odd_names", "match": "^meta$"})],
             lambda a: (first(a[0], "count"), first(a[0], "mean_ms")), (5, 0.185605)),
    Task("Which device of the three GPU hosts does everybody wait for?", of("gen_gpu_hosts", "findings", "steps"),
             lambda a: (row(a[0], "kind", "stragglers")["hosts"][0]["host"], first(a[1]["by_device"], "device")),
             ("127.0.0.1_1", "/device:GPU:1")),
    Task("Which share of the time is lost to ops far from the roofline?", of("gen_gpu_costed", "findings"),
             lambda a: row(a[0], "kind", "far_from_roofline")["share_percent"], 23.478),
    Task("Has step time regressed? There are too few sessions to say.", [("history", {"metric": "step_time", "directory": "cpu", "last": 5})],
             lambda a: (a[0]["cannot_tell"]["reason"], a[0]["unit"]), ("too_few_sessions", "ms")),
]


def near(found, expected):
    if isinstance(expected, tuple):
        return len(found) == len(expected) and all(near(f, e) for f, e in zip(found, expected))
    if isinstance(expected, float):
        return abs(found - expected) <= 2e-3 * abs(expected)
    return found == expected


async def asked(client, task):
    answers, characters = [], 0
    for call in task.calls:
        tool, arguments = call(answers) if callable(call) else call
        text = (await client.call_tool(tool, arguments)).content[0].text
        answers.append(json.loads(text))
        characters += len(text)
    return task.answer(answers), len(answers), characters


def tasks(place):
    logdir = place.scratch / "tasks"
    shutil.copytree(place.data, logdir)
    for case in CASES:
        run = logdir / "plugins" / "profile" / case
        run.mkdir(parents=True)
        for profile in (ROOT / "tests" / "golden" / "cases" / case).glob("*.xplane.pb"):
            shutil.copy(profile, run)

    async def run():
        wrong = []
        async with Client(stdio(place, "--logdir", logdir)) as client:
            for q in TASKS:
                found, calls, characters = await asked(client, q)
                if not near(found, q.expected) or calls > MOST_CALLS or characters > MOST_CHARACTERS:
                    wrong.append(f"{q.text}: {found!r} after {calls} calls and {characters} characters, expected {q.expected!r}")
        return wrong

    wrong = asyncio.run(run())
    assert not wrong and len(TASKS) == 20, "\n".join([f"{len(TASKS)} tasks", *wrong])


TESTS = [tasks]
