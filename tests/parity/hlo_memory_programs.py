# SPDX-License-Identifier: Apache-2.0
"""Random HLO programs with a buffer assignment, for hlo_memory.py: a program is determined by seed and index.

The assignment need not make sense: buffers are of any instruction and size, allocations overlap, traces take, share and free in
any order that the program's own bookkeeping allows.  What XProf does not survive is left out: buffers of no instruction, shapes
that cannot be, memory that is shared in a ring.
"""
import random

from hlo_programs import Hlo

NAMES = ["fusion", "dot.1", "a", "ünï", "x<y>", 'q"u', "get-tuple-element.12345678", "very_long_name_of_an_instruction_" * 3, "né" * 20]
OP_NAMES = ["", "jit(f)/mul", "jit(f)/transpose(jvp(g))/dot_general", "a<b>&c", "ünï"]
OPCODES = ["add", "fusion", "parameter", "copy-start", "tuple", "custom-call"]
CONFIGS = ["", "{}", '{"used_scoped_memory_configs":[{"memory_space":"1","offset":"0","size":"1048576"}]}',
           '{"a":1,"used_scoped_memory_configs":[{"memory_space":1,"size":4096},{"memory_space":0,"size":9999999}]}',
           '{"used_scoped_memory_configs":[{"memory_space":"1","size":"x"},5]}', "{bad"]
TYPES = [1, 2, 4, 11, 12, 15, 16, 18, 20, 21, 26, 30, 32, 33, 36]
SIZES = [0, 1, 4, 100, 16383, 16384, 16385, 65536, 1 << 20, (1 << 20) + 1, 3 << 28]


class Program:
    def __init__(self, seed, index):
        self.r = random.Random(f"memory {seed} {index}")
        self.proto = Hlo()
        self.m, self.assignment = self.proto.hlo_module, self.proto.buffer_assignment
        self.m.name, self.m.entry_computation_name = "m", self.r.choice(["main", "e.1", ""])
        self.tuples = {}
        self.frames()
        self.instructions()
        self.buffers()
        self.traces()

    def chance(self, p):
        return self.r.random() < p

    def frames(self):
        f, r = self.m.stack_frame_index, self.r
        f.file_names.extend(r.sample(["/a/b.py", "model.py", "x:y", "", "ünï.py"], r.randint(1, 5)))
        for _ in range(r.randint(0, 5)):
            f.file_locations.add(file_name_id=r.randint(0, 6), line=r.randint(0, 99), column=r.randint(0, 9))
        for i in range(r.randint(0, 8)):
            f.stack_frames.add(file_location_id=r.randint(0, 6), parent_frame_id=r.randint(0, i))  # no ring

    def shape(self, s, depth=0):
        r = self.r
        if depth < 3 and self.chance(0.25):
            s.element_type = 13
            for _ in range(r.randint(0, 4)):
                self.shape(s.tuple_shapes.add(), depth + 1)
            return
        s.element_type = r.choice(TYPES)
        n = r.randint(0, 4)
        s.dimensions.extend(r.choice([0, 1, 3, 8, 128, 1000]) for _ in range(n))
        s.is_dynamic_dimension.extend(self.chance(0.1) for _ in range(n))
        if self.chance(0.9):
            s.layout.minor_to_major.extend(range(n - 1, -1, -1))
            if self.chance(0.2):
                s.layout.tiles.add().dimensions.extend([8, 128])
            if self.chance(0.2):
                s.layout.memory_space = r.choice([1, 5])
            if s.element_type in (21, 26, 30) and self.chance(0.5):
                s.layout.element_size_in_bits = {21: 4, 26: 2, 30: 1}[s.element_type]

    def instructions(self):
        r, n = self.r, 0
        for c in range(r.randint(1, 3)):
            computation = self.m.computations.add(name=f"c{c}", id=c + 1)
            for _ in range(r.randint(1, 12)):
                n += 1
                i = computation.instructions.add(name=r.choice(NAMES) + (f".{n}" if self.chance(0.8) else ""), id=n, opcode=r.choice(OPCODES))
                self.shape(i.shape)
                i.backend_config = r.choice(CONFIGS).encode()
                i.metadata.op_name = r.choice(OP_NAMES)
                if self.chance(0.3):
                    i.metadata.source_file, i.metadata.source_line = r.choice(["s.py", "<b>.py"]), r.randint(0, 50)
                if self.chance(0.6):
                    i.metadata.stack_frame_id = r.randint(-1, 10)
        self.n_instructions = n

    def buffers(self):
        r = self.r
        ids = r.sample(range(0 if self.chance(0.3) else 1, 400), r.randint(1, 30))
        if self.chance(0.1):
            ids.append((1 << 33) + 5)
        instructions = [i for c in self.m.computations for i in c.instructions]
        self.colors = [0] * 4 + [1, 5]
        for k in ids:
            i = r.choice(instructions)
            b = self.assignment.logical_buffers.add(id=k, size=r.choice(SIZES) if self.chance(0.7) else r.randint(0, 1 << 24), color=r.choice(self.colors))
            b.defined_at.instruction_id = i.id
            s = i.shape
            while s.element_type == 13 and self.chance(0.7):
                k = r.randint(0, len(s.tuple_shapes) + (1 if self.chance(0.1) else 0))
                b.defined_at.shape_index.append(k)
                if k >= len(s.tuple_shapes):
                    break
                s = s.tuple_shapes[k]
        self.ids, self.held = ids, {}
        order = list(range(r.randint(1, 8)))
        if self.chance(0.3):
            r.shuffle(order)
        free = list(ids)
        r.shuffle(free)
        for index in order:
            a = self.assignment.buffer_allocations.add(index=index, color=r.choice(self.colors), size=r.choice(SIZES) if self.chance(0.7) else r.randint(0, 1 << 26))
            kind = r.choice([None, None, None, "is_entry_computation_parameter", "is_constant", "maybe_live_out", "is_thread_local", "is_tuple"])
            if kind:
                setattr(a, kind, True)
            if self.chance(0.1):
                a.is_thread_local = True
            for _ in range(min(len(free), r.randint(0, 10))):
                k = free.pop()
                a.assigned.add(logical_buffer_id=k, offset=r.choice([0, 0, 64, 4096, 1 << 20]), size=r.choice(SIZES))
                self.held[k] = index
            if self.chance(0.1):
                a.assigned.add(logical_buffer_id=r.choice([999, *ids]), size=5)  # unknown, or another's, too
                self.held = {s.logical_buffer_id: b.index for b in self.assignment.buffer_allocations for s in b.assigned}

    def traces(self):
        r = self.r
        for _ in range(r.choice([0, 1, 1, 1, 2, 3])):
            t = self.assignment.heap_simulator_traces.add(buffer_allocation_index=r.randint(0, 5))
            of = r.choice(list(self.held.values()) or [0])
            mine = [k for k, a in self.held.items() if a == of and k in self.ids]
            if mine and not self.chance(0.05):
                self.events(t, mine)

    def events(self, t, mine):
        r = self.r
        refs, canonical = dict.fromkeys(mine, 0), {}

        def root(k):
            while k in canonical:
                k = canonical[k]
            return k
        for _ in range(r.choice([3, 20, 60])):
            k, kind = r.choice(mine), r.choice([0, 0, 1, 1, 2])
            e = t.events.add(buffer_id=k, kind=kind, instruction_name=r.choice(NAMES + [""]))
            if self.chance(0.02):
                e.buffer_id = 998
                continue
            if kind == 0:
                refs[root(k)] += 1
            elif kind == 1 and refs[root(k)] == 0 and not self.chance(0.01):
                e.kind = 0
                refs[root(k)] += 1
            elif kind == 1:
                refs[root(k)] -= 1
            else:
                with_ = r.choice(mine)
                if root(with_) == k or self.in_way(canonical, with_, k):
                    e.kind = 0
                    refs[root(k)] += 1
                    continue
                e.share_with_canonical_id = with_
                canonical[k] = with_
                refs[root(k)] += 1

    @staticmethod
    def in_way(canonical, k, wanted):
        while k != wanted and k in canonical:
            k = canonical[k]
        return k == wanted


def program(seed, index):
    return Program(seed, index).proto
