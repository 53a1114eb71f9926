# SPDX-License-Identifier: Apache-2.0
"""The table of tools as `xplanectl tools --all --json` prints it, and the lists that tests need of it."""
import functools
import json
import subprocess


@functools.cache
def load(xplanectl):
    """All that the table of this build says."""
    out = subprocess.run([str(xplanectl), "tools", "--all", "--json"], capture_output=True, check=True, timeout=60).stdout
    return json.loads(out)


def names(xplanectl):
    return [t["name"] for t in load(xplanectl)["tools"]]


def of_op_stats(xplanectl):
    """Tools that are made of OpStats alone."""
    return [t["name"] for t in load(xplanectl)["tools"] if t["needs"] == ["op_stats"]]


def pages(xplanectl):
    """Tools of XProf's of which an answer is a page's data, whole: all but the trace viewers."""
    tools = load(xplanectl)["tools"]
    return [t["name"] for t in tools if t["shown"] != "never" and not t["name"].startswith("trace_viewer")]


def for_workers(xplanectl):
    """Tools whose OpStats an XProf aggregator gets from us."""
    return [t["name"] for t in load(xplanectl)["tools"] if t["worker_served"] and t["needs"] == ["op_stats"]]


def of_one_host(xplanectl):
    return [t["name"] for t in load(xplanectl)["tools"] if t["hosts"] == "one"]


OUR_VALUES = {("op_profile", "group_by", "op")}  # of options that XProf has


def choices(xplanectl, tool):
    """[{option: value}] for each value that XProf knows of the tool's own options that have a few; [{}] without such."""
    row = next(t for t in load(xplanectl)["tools"] if t["name"] == tool)
    found = [{o["key"]: v} for o in row["options"] if not o["common"] and not o["ours"] and "|" in o["values"]
             for v in o["values"].split("|") if (tool, o["key"], v) not in OUR_VALUES]
    return found or [{}]
