# SPDX-License-Identifier: Apache-2.0
"""The CPU as a device: our OpStats against cpu_oracle.py, which counts by brute force."""
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def disagreements(program, paths):
    """Lines that say where the device ops of our OpStats differ from the oracle's; None where there is a device.

    `program` is the built convert_opstats."""
    from xprof.protobuf import op_stats_pb2
    out = []
    for path in paths:
        asked = subprocess.run([sys.executable, os.path.join(HERE, "cpu_oracle.py"), path], capture_output=True, text=True)
        if "device plane" in asked.stderr:
            return None
        made = subprocess.run([program, "--cpu", path], capture_output=True)
        if asked.returncode and made.returncode:
            continue                    # broken for both
        if asked.returncode or made.returncode:
            out.append(f"{path}: oracle {asked.stderr.strip()[-200:]!r}, ours {made.stderr.decode('utf-8', 'replace')[-200:]!r}")
            continue
        out += compare(json.loads(asked.stdout), op_stats_pb2.OpStats.FromString(made.stdout))
    return out


def compare(expected, stats):
    db, out = stats.device_op_metrics_db, []
    ours = {(m.hlo_module_id, m.name): (m.occurrences, m.time_ps, m.self_time_ps, m.num_cores) for m in db.metrics_db
            if not (m.category == "IDLE" and m.occurrences == 0)}
    theirs = {(o["program_id"], o["name"]): (o["occurrences"], o["total_ps"], o["self_ps"], o["cores"]) for o in expected["ops"]}
    for key in sorted(set(ours) | set(theirs)):
        if ours.get(key) != theirs.get(key):
            out.append(f"{expected['host']} {key}: oracle {theirs.get(key)}, ours {ours.get(key)}")
    for name, a, b in (("total time", expected["total_time_ps"], db.total_time_ps), ("op time", expected["op_time_ps"], db.total_op_time_ps),
                       ("threads", expected["threads"], stats.run_environment.device_core_count)):
        if a != b:
            out.append(f"{expected['host']} {name}: oracle {a}, ours {b}")
    return out
