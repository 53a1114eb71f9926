#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""megascale_stats, ours against XProf's: transfers of every type, odd durations, groups of any size, one host and two.

    megascale.py --build BUILD
"""
import argparse
import json
import os
import random
import sys
import tempfile

from hlo_programs import Hlo
from ours import Ours
from protos import pb
from xprof_worker import XProf
from xspace import Plane

US, F32, U32, TUPLE, TOKEN = 1000000, 11, 8, 13, 17
OPS = (("send.1", "send", (1, 2), 11), ("recv.1", "recv", (2,), 12), ("send-done.1", "send-done", (3,), 11), ("recv-done.1", "recv-done", (4,), 12))


def fill(shape, *kinds):
    """A tuple of these types, or the one."""
    parts = [shape] if len(kinds) == 1 else [shape.tuple_shapes.add() for _ in kinds]
    if len(kinds) > 1:
        shape.element_type = TUPLE
    for part, kind in zip(parts, kinds):
        part.element_type = kind
        if kind == F32:
            part.dimensions.extend((256, 4))
            part.is_dynamic_dimension.extend((False, False))
            part.layout.minor_to_major.extend((1, 0))


def program(transfer_type):
    out = Hlo()
    m = out.hlo_module
    m.name, m.entry_computation_name, m.entry_computation_id, m.id = "jit_f", "e", 1, 1
    c = m.computations.add(name="e", id=1, root_id=6)
    fill(c.instructions.add(name="p", opcode="parameter", id=1).shape, F32)
    fill(c.instructions.add(name="tok", opcode="after-all", id=2).shape, TOKEN)
    for i, (name, opcode, operands, channel) in enumerate(OPS, 3):
        x = c.instructions.add(name=name, opcode=opcode, id=i, channel_id=channel, is_host_transfer=True, operand_ids=operands)
        fill(x.shape, *((TOKEN,) if opcode == "send-done" else (F32, TOKEN) if opcode == "recv-done" else (F32, U32, TOKEN)))
        if "done" not in opcode:
            x.frontend_attributes.map["_xla_host_transfer_rendezvous"] = "rdv_1"
            x.frontend_attributes.map["_xla_megascale_transfer_type"] = transfer_type
    fill(c.program_shape.parameters.add(), F32)
    c.program_shape.parameter_names.append("p")
    fill(c.program_shape.result, F32, TOKEN)
    m.host_program_shape.CopyFrom(c.program_shape)
    return out.SerializeToString()


def profile(transfer_type="ALL_REDUCE", endpoints=4, rounds=3, stretch=1.0, megascale=True):
    space, r = pb.XSpace(hostnames=["h"]), random.Random(1)
    p = Plane(space, "/host:metadata", 1, r)
    entry = p.p.event_metadata[77]
    entry.id, entry.name = 77, "jit_f(77)"
    p.fill(entry.stats, {"Hlo Proto": program(transfer_type)})
    p = Plane(space, "/host:CPU", 2, r)
    if megascale:
        p.event("MegaScale: Communication Transport Receive")
    p = Plane(space, "/device:TPU:0", 3, r)
    modules, ops = p.line("XLA Modules", 2), p.line("XLA Ops", 3)
    group = b"".join(b"\x0a\x00" for _ in range(endpoints))
    info = b"\x12" + bytes([len(group)]) + group
    for k in range(rounds):
        at = (k + 1) * 1000 * US
        modules.add(at, 900 * US, "jit_f(77)")
        for (name, opcode, _, _), begin, duration in zip(OPS, (10, 20, 140, 200.001), (5, 3, 7.000777, 50)):
            md = p.event("%" + name, name, {"hlo_category": "host " + opcode, "dcn_collective_info": info})
            ops.add(at + begin * US, duration * US * stretch, md)
    modules.done()
    ops.done()
    return space.SerializeToString()


CASES = [[{"transfer_type": t}] for t in ("ALL_REDUCE", "ALL_GATHER", "ALL_TO_ALL", "REDUCE_SCATTER", "ONE_TO_ONE", "WHAT")]
CASES += [[{"rounds": 1}], [{"rounds": 0}], [{"stretch": 1.37}], [{"endpoints": 0}], [{"endpoints": 1}], [{"megascale": False}]]
CASES += [[{}, {"rounds": 5, "stretch": 2}], [{"megascale": False}, {}]]


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--build")
    build, equal, rows = a.parse_args().build, 0, 0
    with tempfile.TemporaryDirectory() as scratch, XProf(scratch=scratch) as xprof:
        ours = Ours(build, scratch)
        for case in CASES:
            paths = [os.path.join(scratch, f"host{i}.xplane.pb") for i in range(len(case))]
            for path, host in zip(paths, case):
                with open(path, "wb") as f:
                    f.write(profile(**host))
            (status, theirs), (said, mine) = xprof.ask("megascale_stats", paths, {"host": "ALL_HOSTS"}), ours.ask("megascale_stats", paths, {"xprof_exact": "true"})
            same = (status, said) == ("answer", "answer") and json.loads(theirs) == json.loads(mine)
            equal += same
            rows += same and len(json.loads(mine)[0]["rows"])
            if not same:
                print(f"DIFFERENT {case}\n  {status} {(theirs or b'')[-400:]}\n  ours {said} {mine[-400:]}")
    print(f"{equal} of {len(CASES)} equal, {rows} rows")
    sys.exit(equal != len(CASES) or rows < 8)


if __name__ == "__main__":
    main()
