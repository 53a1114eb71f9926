#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Public traces of PyTorch in HolisticTraceAnalysis and in ours.  Usage: peer_hta.py BUILD

To be run by a Python with HTA (tests/capture/setup.sh hta).  The traces are those of ../shared/corpus/kineto, without their
steps: of these HTA leaves out the last one, and what lies outside.  Equal are, of each trace with one device:
    the time from the first kernel to the last one, computing, idle time
    the share of communication that overlaps computing
    the longest queue of each stream
What differs on purpose: HTA rounds times to whole microseconds unless HTA_DISABLE_NS_ROUNDING is set (of short kernels a tenth
of the time is lost), and counts sets as memory, ours as computing."""
import gzip
import json
import logging
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import warnings

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CORPUS = ROOT.parent / "shared" / "corpus" / "kineto"
CASES = ("h100_vit", "h100_bert_small", "mi300_bert_small", "mi300_norms", "nccl_a100_2024")
ROUNDED = "h100_vit", 1065  # its computing as HTA has it by default, of 1,220.926 us


def ask(tool, path):
    done = subprocess.run([Equal.xplanectl, "analyze", tool, path], check=True, capture_output=True, timeout=60)
    return json.loads(done.stdout)


def rows(table):
    ids = [c["id"] for c in table["cols"]]
    return [dict(zip(ids, (c and c.get("v") for c in r["c"]))) for r in table["rows"]]


def lasted(trace, *names):
    """How long ops of these names took; in these traces they do not overlap."""
    return sum(e["dur"] for e in trace["traceEvents"] if e.get("cat", "").startswith("gpu_mem") and e["name"].startswith(names))


def ours(path):
    trace = json.loads(path.read_text())
    (device,) = ask("time_breakdown", path)["hosts"][0]["devices"]
    us = {k: v / 1e6 for k, v in device.items() if k.endswith("_ps")}
    computing, overlapped = us["compute_ps"] + us["overlapped_collectives_ps"], us["overlapped_collectives_ps"]
    collectives = overlapped + us["exposed_collectives_ps"]
    # The cause host_copies has the host's part of a copy as well.
    busy = computing + us["exposed_collectives_ps"] + us["device_copies_ps"] + lasted(trace, "Memcpy HtoD", "Memcpy DtoH")
    streams = next(t for t in ask("launches", path) if [c["id"] for c in t["cols"]][-2:] == ["max_queue", "avg_queue"])
    return {"wall": us["wall_ps"], "compute": computing - lasted(trace, "Memset"), "idle": us["wall_ps"] - busy,
            "overlap": 100 * overlapped / collectives if collectives else None,
            "queues": sorted(int(r["max_queue"]) for r in rows(streams) if r["launched"])}


def hta(path):
    from hta.trace_analysis import TraceAnalysis
    analysis = TraceAnalysis(trace_files={0: str(path)}, trace_dir="/")
    times = analysis.get_temporal_breakdown(visualize=False).to_dict("records")[0]
    overlap = analysis.get_comm_comp_overlap(visualize=False)["comp_comm_overlap_pctg"][0]
    queues = analysis.get_queue_length_summary(ranks=[0])["queue_length"]["max"]
    return {"wall": times["kernel_time(us)"], "compute": times["compute_time(us)"],
            "idle": times["idle_time(us)"], "overlap": overlap if overlap == overlap else None,
            "queues": sorted(int(q) for q in queues)}, times


def without_steps(case, directory):
    with gzip.open(next((CORPUS / case).glob("*.json.gz"))) as f:
        trace = json.loads(f.read().decode("utf-8", "replace"), strict=False)
    trace["traceEvents"] = [e for e in trace["traceEvents"] if not str(e.get("name")).startswith("ProfilerStep")]
    path = pathlib.Path(directory) / f"{case}.json"
    path.write_text(json.dumps(trace))
    return path


@unittest.skipUnless(CORPUS.is_dir(), "../shared/corpus/kineto is not here")
class Equal(unittest.TestCase):
    xplanectl = None

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = place.name
        os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"

    def test_times(self):
        for case in CASES:
            path = without_steps(case, self.place)
            mine, (theirs, _) = ours(path), hta(path)
            print(f"{case}: {mine}\nHTA: {theirs}", flush=True)
            self.assertEqual(mine["queues"], theirs["queues"], case)
            for key in "wall", "compute", "idle":
                self.assertAlmostEqual(mine[key], theirs[key], delta=0.05 + theirs[key] / 1e6, msg=(case, key))
            self.assertEqual(mine["overlap"] is None, theirs["overlap"] is None, case)
            if mine["overlap"] is not None:
                self.assertAlmostEqual(mine["overlap"], theirs["overlap"], delta=0.1, msg=case)

    def test_rounding(self):
        """What HTA loses by default is the known difference."""
        case, computing = ROUNDED
        path = without_steps(case, self.place)
        del os.environ["HTA_DISABLE_NS_ROUNDING"]
        self.assertEqual(hta(path)[1]["compute_time(us)"], computing)
        self.assertGreater(ours(path)["compute"], 1.1 * computing)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    logging.disable(logging.CRITICAL)
    warnings.filterwarnings("ignore")
    Equal.xplanectl = pathlib.Path(sys.argv[1]) / "cli" / "xplanectl"
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
