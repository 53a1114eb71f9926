#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which tools a session has, ours against XProf's, and whether each answers.

    tool_lists.py --build BUILD [--corpus DIR]...

For each session of tests/data and DIR, and for a few made here (counters of TPUs and of GPUs, MegaScale): /run_tools lists what
XProf lists, in its order, `xplanectl tools` has all of it, and each is answered for the first host.  A host that XProf cannot
read has no list there; what ours can read of it counts as nothing.
"""
import argparse
import contextlib
import http.client
import json
import os
import random
import re
import tempfile
import urllib.parse

import daemon
import run as every_tool
import tool_table
from ours import find, make_log_directory
from protos import pb
from xprof.convert import raw_to_tool_data as convert
from xspace import Plane, U

# What a tool needs to have an answer.
OPTIONS = {"memory_viewer": "module_name", "graph_viewer": "module_name"}


def made(scratch):
    """Profiles that decide what the corpus does not: [(name, [file])]."""
    out = []
    for name, plane, event, stats, metadata in (
            ("counters_tpu", "/device:TPU:0", "c", {"counter_value": U(5)}, ()),
            ("counters_gpu", "/device:GPU:0", "c", {"counter_value": U(5)}, ()),
            ("counters_named", "/device:TPU:0", "c", {}, ("counter_value",)),
            ("megascale", "/host:CPU", "MegaScale: sends", {}, ())):
        space = pb.XSpace(hostnames=["h"])
        if plane != "/host:CPU":
            space.planes.add(id=2, name="/host:CPU")  # memory_profile has no answer without
        p = Plane(space, plane, 1, random.Random(1))
        p.stats({"device_id": 1})
        line = p.line("l", 1)
        e = line.l.events.add(metadata_id=p.event(event), duration_ps=5)
        p.fill(e.stats, stats)
        for m in metadata:
            p.stat_id(m)
        path = os.path.join(scratch, name, "h.xplane.pb")
        os.makedirs(os.path.dirname(path))
        with open(path, "wb") as f:
            f.write(space.SerializeToString())
        out.append((name, [path]))
    return out


def of_xprof(files):
    """XProf's list in the order of its page, or None: no list."""
    with tempfile.TemporaryDirectory() as top:
        paths = [os.path.join(top, os.path.basename(f)) for f in files]
        for f, p in zip(files, paths):
            os.symlink(os.path.abspath(f), p)
        try:
            names = convert.xspace_to_tool_names(paths)
        except Exception:  # XProf raises of many kinds; all mean that it has no list
            return None
    order = [n for n in ORDER if n in names]
    return order + sorted(set(names) - set(order))


# As ProfilePlugin._get_active_tools sorts; http_routes.py compares with the server itself.
ORDER = ("overview_page", "trace_viewer", "trace_viewer@", "graph_viewer", "op_profile", "input_pipeline_analyzer", "kernel_stats", "memory_profile",
         "memory_viewer", "roofline_model", "perf_counters", "pod_viewer", "framework_op_stats", "hlo_stats", "inference_profile", "megascale_stats")


def get(port, path):
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as c:
        c.request("GET", path)
        return c.getresponse().read()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--corpus", action="append", default=[])
    p.add_argument("--build")
    a = p.parse_args()
    count, seen = daemon.Count(), set()
    build = os.path.dirname(os.path.dirname(find(a.build)))
    with tempfile.TemporaryDirectory() as scratch:
        found = [s for d in [every_tool.DATA, *a.corpus] for s in every_tool.sessions(d)] + made(scratch)
        log_directory, places = make_log_directory(scratch, found)
        with daemon.running(build, log_directory, "--http", "127.0.0.1:0") as d:
            port = int(re.search(rb"service=http address=\S+:(\d+)", d.log.read_bytes()).group(1))
            for name, files in found:
                session = places[files[0]][0]
                theirs = of_xprof(files[:1])
                ours = json.loads(get(port, f"/run_tools?run={urllib.parse.quote(session)}"))
                if theirs is None:
                    count.check(f"{name}: a list that XProf has not", not ours or len(files) > 1, ours)
                    continue
                seen |= set(theirs)
                count.check(f"{name}: lists", theirs == ours, f"{theirs}, ours {ours}")
                listed = os.popen(f"{d.ctl} --server {d.address} tools {session} --json").read()
                known = set(json.loads(listed)) if listed else set()
                count.check(f"{name}: xplanectl tools", set(theirs) <= known, sorted(set(theirs) - known))
                modules = get(port, f"/module_list?run={urllib.parse.quote(session)}").decode().split(",")
                host = os.path.basename(files[0]).split(".xplane.pb")[0]
                for tool in theirs:
                    if tool not in known:
                        continue
                    options = [(OPTIONS[tool], modules[0])] if tool in OPTIONS else []
                    answer = d.tool(tool, session, [host] if tool in tool_table.of_one_host(d.ctl) else [], options)
                    count.check(f"{name}: {tool} answers", answer)
    print("lists had " + ", ".join(sorted(seen)))
    count.finish()


if __name__ == "__main__":
    main()
