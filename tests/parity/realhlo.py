# SPDX-License-Identifier: Apache-2.0
"""HLO modules of real profiles, for use in generated ones."""
import glob
import os

from protos import pb

LARGEST = 60_000


class RealModule:
    def __init__(self, name, program_id, data):
        self.name, self.program_id, self.data = name, program_id, data
        self.proto = self
        hlo = pb.HloProto.FromString(data).hlo_module
        self.kernels = [(i.name, i.metadata.op_name, i.opcode) for c in hlo.computations for i in c.instructions if i.opcode != "parameter"]

    def SerializeToString(self):
        return self.data


def real_modules(directory):
    out = []
    for path in sorted(glob.glob(os.path.join(directory, "**", "*.xplane.pb"), recursive=True)):
        with open(path, "rb") as f:
            try:
                space = pb.XSpace.FromString(f.read())
            except Exception:
                continue              # a broken profile is there on purpose
        for plane in space.planes:
            if plane.name != "/host:metadata":
                continue
            for key, m in plane.event_metadata.items():
                for s in m.stats:
                    if 0 < len(s.bytes_value) <= LARGEST and len(out) < 40:
                        name = m.name.rsplit("(", 1)[0]
                        out.append(RealModule(name, key & (2 ** 64 - 1), s.bytes_value))
    return [m for m in out if m.kernels]
