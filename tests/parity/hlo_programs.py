# SPDX-License-Identifier: Apache-2.0
"""HLO programs for hlo_text.py: those of profiles, and random ones.

The messages are those of the installed XProf: its library carries their descriptors.  A random program is determined by seed
and index.  Most of its instructions come from `KINDS`, which knows what XLA asks of an opcode; the rest is what any
instruction may have: shardings, frontend attributes, origins, metadata, control predecessors, statistics.
"""
import glob
import importlib.util
import os
import random

from google.protobuf import descriptor_pool, message_factory

import wire_compat


CLASSES = "xla.HloProto", "tensorflow.profiler.XSpace", "xla.gpu.GpuBackendConfig"


def _classes():
    library = os.path.join(os.path.dirname(importlib.util.find_spec("xprof").origin), "convert", "profiler_plugin_c_api.so")
    files, pool, done = {}, descriptor_pool.DescriptorPool(), set()
    for f in wire_compat.from_library(library, (b"xla/", b"tsl/profiler/", b"google/protobuf/")):
        if f.name not in files or f.ByteSize() > files[f.name].ByteSize():
            files[f.name] = f

    def add(name):
        if name in done or name not in files:
            return
        done.add(name)
        for d in files[name].dependency:
            add(d)
        pool.Add(files[name])
    for name in CLASSES:
        package, _, message = name.rpartition(".")
        add(next(n for n, f in files.items() if f.package == package and any(m.name == message for m in f.message_type)))
    return {n: message_factory.GetMessageClass(pool.FindMessageTypeByName(n)) for n in CLASSES}


_found = _classes()
Hlo, XSpace, GpuBackendConfig = (_found[n] for n in CLASSES)
PRED, S32, U32, F16, F32, F64, TUPLE, BF16, TOKEN = 1, 4, 8, 10, 11, 12, 13, 16, 17


def of_profiles(directories):
    """Each different program of the profiles below the directories, as bytes."""
    seen = set()
    for directory in directories:
        for path in sorted(glob.glob(os.path.join(directory, "**", "*.xplane.pb"), recursive=True)):
            space = XSpace()
            try:
                with open(path, "rb") as f:
                    space.ParseFromString(f.read())
            except Exception:
                continue              # a broken profile is there on purpose
            for plane in space.planes:
                if plane.name != "/host:metadata":
                    continue
                for m in plane.event_metadata.values():
                    for s in m.stats:
                        if s.bytes_value and s.bytes_value not in seen:
                            seen.add(s.bytes_value)
                            yield s.bytes_value


# ---- random programs ----

TEXTS = ["a", "x.y", 'q"u\'o', "jit(f)/while/body", "ünï", "{}", '{"a":1}', "{b", "tab\tnl\n", "\\", "/* c */ {1}"]
BYTES = {F32: ("f32s", float), F64: ("f64s", float), S32: ("s32s", int), U32: ("u32s", int), PRED: ("preds", bool)}
NARROW = {F16: ("f16s", 2), BF16: ("bf16s", 2), 2: ("s8s", 1), 6: ("u8s", 1), 3: ("s16s", 2), 19: ("f8e5m2s", 1), 20: ("f8e4m3fns", 1),
          23: ("f8e4m3b11fnuzs", 1), 24: ("f8e5m2fnuzs", 1), 25: ("f8e4m3fnuzs", 1), 28: ("f8e4m3s", 1), 29: ("f8e3m4s", 1),
          33: ("f8e8m0fnus", 1)}
PACKED = {21: ("s4s", 4), 22: ("u4s", 4), 26: ("s2s", 2), 27: ("u2s", 2), 32: ("f4e2m1fns", 4)}  # bits of an element


class Program:
    def __init__(self, seed, index):
        self.r = random.Random(f"hlo {seed} {index}")
        self.proto = Hlo()
        self.m = self.proto.hlo_module
        self.m.name = self.r.choice(["jit_step", "m", "a.b-c", "main_module"])
        self.next_id = 1
        for name, opcode in (("add.0", "add"), ("max.0", "maximum")):
            self.reducer(name, opcode)
        self.compare = self.reducer("lt.0", "compare")
        self.entry()

    # -- parts --

    def shape(self, element, dims=(), layout=True):
        s = Hlo().hlo_module.host_program_shape.result
        s.element_type = element
        s.dimensions.extend(dims)
        s.is_dynamic_dimension.extend([False] * len(dims))
        if layout and element != TOKEN:
            order = list(range(len(dims)))
            self.r.shuffle(order) if self.r.random() < 0.3 else order.reverse()
            s.layout.minor_to_major.extend(order)
            if self.r.random() < 0.1 and dims:
                s.layout.tiles.add().dimensions.extend([8, 128][:max(1, min(2, len(dims)))])
            if self.r.random() < 0.1:
                s.layout.memory_space = self.r.randint(1, 5)
        return s

    def tuple_of(self, parts):
        s = Hlo().hlo_module.host_program_shape.result
        s.element_type = TUPLE
        for p in parts:
            s.tuple_shapes.add().CopyFrom(p)
        return s

    def computation(self, name):
        c = self.m.computations.add(name=name, id=len(self.m.computations) + 1)
        return c

    def add(self, c, name, opcode, shape, operands=(), **fields):
        i = c.instructions.add(name=name, opcode=opcode, id=self.next_id, operand_ids=[o.id for o in operands])
        self.next_id += 1
        i.shape.CopyFrom(shape)
        for k, v in fields.items():
            if isinstance(v, (list, tuple)):
                getattr(i, k).extend(v)
            else:
                setattr(i, k, v)
        return i

    def finish(self, c, root):
        c.root_id = root.id
        params = sorted((i for i in c.instructions if i.opcode == "parameter"), key=lambda i: i.parameter_number)
        for p in params:
            c.program_shape.parameters.add().CopyFrom(p.shape)
            c.program_shape.parameter_names.append(p.name)
        c.program_shape.result.CopyFrom(root.shape)
        return c

    def reducer(self, name, opcode):
        c = self.computation(name)
        a, b = (self.add(c, f"{name}.p{n}", "parameter", self.shape(F32), parameter_number=n) for n in (0, 1))
        root = self.add(c, f"{name}.r", opcode, self.shape(PRED if opcode == "compare" else F32), [a, b])
        if opcode == "compare":
            root.comparison_direction = "LT"
        if self.r.random() < 0.2:
            c.execution_thread = self.r.choice(["main", "host"])
        return self.finish(c, root)

    # -- what any instruction may have --

    def metadata(self, m):
        r = self.r
        for k in ("op_type", "op_name", "source_file", "deduplicated_name", "scheduling_name"):
            if r.random() < 0.4:
                setattr(m, k, r.choice(TEXTS))
        for k in ("source_line", "source_end_line", "source_column", "source_end_column"):
            if r.random() < 0.3:
                setattr(m, k, r.choice([1, 7, 1234, 0]))
        if r.random() < 0.4:
            m.stack_frame_id = r.randint(0, 7)

    def sharding(self, s, depth=0):
        r = self.r
        kind = r.choice(["REPLICATED", "MAXIMAL", "OTHER", "OTHER", "MANUAL", "UNKNOWN"])
        s.type = s.DESCRIPTOR.fields_by_name["type"].enum_type.values_by_name[kind].number
        if kind == "MAXIMAL":
            s.tile_assignment_dimensions.append(1)
            s.tile_assignment_devices.append(r.randint(0, 9))
        if kind == "OTHER":
            dims = [2, r.choice([1, 2, 4])]
            last = r.choice([0, 0, 1, 2])
            dims += [2] * last
            n = 1
            for d in dims:
                n *= d
            s.tile_assignment_dimensions.extend(dims)
            if r.random() < 0.5:
                s.tile_assignment_devices.extend(r.sample(range(n), n))
            else:
                s.iota_reshape_dims.extend(r.choice([[n], [2, n // 2], [n // 2, 2]]))
                perm = list(range(len(s.iota_reshape_dims)))
                r.shuffle(perm)
                s.iota_transpose_perm.extend(perm)
            if last == 1 and r.random() < 0.5:
                s.replicate_on_last_tile_dim = True
            elif last:
                s.last_tile_dims.extend([4, 0][:last])
        if r.random() < 0.2:
            s.is_shard_group, s.shard_group_id, s.shard_group_type = True, r.randint(0, 5), r.randint(0, 1)
        for _ in range(r.choice([0, 0, 1, 2])):
            self.metadata(s.metadata.add())
            s.metadata[-1].stack_frame_id = 0

    def decorate(self, i, before):
        r = self.r
        if r.random() < 0.5:
            self.metadata(i.metadata)
        if r.random() < 0.15:
            self.sharding(i.sharding)
        for _ in range(r.choice([0, 0, 0, 1, 3])):
            i.frontend_attributes.map[r.choice(["k", "a.b", "z_", "_xla"]) + str(r.randint(0, 3))] = r.choice(TEXTS)
        if r.random() < 0.15:
            i.backend_config = r.choice(['{"a":[1,{}]}', "plain", '{"wait_on_operation_queues":[],"x":"}"}', '{"s":"é"}', " {} ", "{{"]).encode()
        if r.random() < 0.1:
            i.control_predecessor_ids.extend(sorted({x.id for x in r.sample(before, min(len(before), 3))}))
        if r.random() < 0.08:
            for path in r.choice([[()], [(0,), (1,)], [(1,)], [(0,), (1, 0), (1, 2)]]):
                e = i.original_value.elements.add(shape_index=path)
                if r.random() < 0.8:
                    e.original_array.instruction_name = r.choice(TEXTS)
                    e.original_array.shape_index.extend(r.choice([[], [1, 2]]))
        if r.random() < 0.05:
            i.statistics_viz.stat_index_to_visualize = 1
            i.statistics_viz.statistics.add(stat_name="s", stat_val=r.choice([0.5, 1e-9, 123456789.0]))

    # -- the entry computation --

    def literal(self, element, dims):
        r, n = self.r, 1
        for d in dims:
            n *= d
        out = Hlo().hlo_module.computations.add().instructions.add().literal
        out.shape.CopyFrom(self.shape(element, dims))
        out.shape.layout.ClearField("tiles")
        if element in NARROW:
            name, width = NARROW[element]
            setattr(out, name, bytes(r.randrange(256) for _ in range(n * width)))
        elif element in PACKED:
            name, bits = PACKED[element]
            setattr(out, name, bytes(r.randrange(256) for _ in range((n * bits + 7) // 8)))
        else:
            name, kind = BYTES[element]
            real = [0, 1, -1, 0.1, 1e-30, 1e-40, 3.4e38, 3.4028234663852886e38, 100000, 1234567, 16777217, float("inf"), float("nan"), -0.0,
                    r.random(), r.gauss(0, 1e5)]
            whole = [0, 1, 7, 2 ** 31 - 1, r.randrange(2 ** 31)] + ([-1, -2 ** 31] if element == S32 else [2 ** 32 - 1])
            pick = {float: lambda: r.choice(real), int: lambda: r.choice(whole), bool: lambda: r.random() < 0.5}[kind]
            getattr(out, name).extend(pick() for _ in range(n))
        return out

    def entry(self):
        r = self.r
        self.e = c = self.computation("main.1")
        self.p = self.add(c, "p", "parameter", self.shape(F32, [8, 4]), parameter_number=0)
        self.q = self.add(c, "q", "parameter", self.shape(F32, [8, 4]), parameter_number=1)
        self.i = self.add(c, "i", "parameter", self.shape(S32, [8]), parameter_number=2)
        self.sq = self.add(c, "sq", "parameter", self.shape(F32, [4, 4]), parameter_number=3)
        self.zero = self.add(c, "zero", "constant", self.shape(F32))
        self.zero.literal.CopyFrom(self.literal(F32, []))
        self.zero.shape.CopyFrom(self.zero.literal.shape)
        self.token = self.add(c, "tok", "after-all", self.shape(TOKEN))
        made = [self.p, self.q, self.i, self.sq, self.zero, self.token]
        for n in range(r.randint(4, 24)):
            kind = r.choice(KINDS)
            x = kind(self, f"{kind.__name__}.{n}")
            self.decorate(x, made)
            made.append(x)
        c = self.e                           # fusions made another of it
        last = self.add(c, "last", "add", self.shape(F32, [8, 4]), [self.p, self.q])
        self.finish(c, last)
        self.m.entry_computation_name, self.m.entry_computation_id = c.name, c.id
        self.m.host_program_shape.CopyFrom(c.program_shape)
        if r.random() < 0.3:
            self.m.input_output_alias.entries.add(parameter_number=r.randint(0, 1), kind=r.choice([1, 2]))
        if r.random() < 0.2:
            self.m.buffer_donor.entries.add(parameter_number=2)
        if r.random() < 0.3:
            self.m.frontend_attributes.map["fe"] = r.choice(TEXTS)
        if r.random() < 0.6:
            self.frames()
        if r.random() < 0.3:
            order = [i.id for i in c.instructions]
            self.m.schedule.sequences[c.id].instruction_ids.extend(order)
            for d in self.m.computations:
                if d.id != c.id:
                    self.m.schedule.sequences[d.id].instruction_ids.extend(i.id for i in d.instructions)

    def frames(self):
        r, s = self.r, self.m.stack_frame_index
        s.file_names.extend(["a.py", "b\"c.py", "a.py"])
        s.function_names.extend(["f", "g<lambda>", "f"])
        for _ in range(5):
            s.file_locations.add(file_name_id=r.randint(1, 3), function_name_id=r.randint(1, 3), line=r.randint(1, 3), end_line=r.randint(0, 2),
                                 column=r.randint(0, 2))
        for k in range(7):
            s.stack_frames.add(file_location_id=r.randint(1, 5), parent_frame_id=r.randint(0, k))


KINDS = []


def kind(f):
    KINDS.append(f)
    return f


def pair(p):
    return p.shape(F32, [8, 4])


@kind
def elementwise(p, name):
    r = p.r
    op, n = r.choice([("add", 2), ("negate", 1), ("exponential", 1), ("tanh", 1), ("multiply", 2), ("copy", 1), ("log", 1), ("erf", 1)])
    i = p.add(p.e, name, op, pair(p), [p.p, p.q][:n])
    if op in ("exponential", "tanh", "log", "erf") and r.random() < 0.5:
        if r.random() < 0.5:
            i.result_accuracy.mode = 1
        else:
            t = i.result_accuracy.tolerance
            t.atol, t.rtol, t.ulps = r.choice([0.0, 1e-5, 0.123456789]), r.random(), r.randint(0, 9)
    return i


@kind
def constant(p, name):
    r = p.r
    element = r.choice(list(NARROW) + list(PACKED) + list(BYTES) * 3)
    i = p.add(p.e, name, "constant", p.shape(F32))
    i.literal.CopyFrom(p.literal(element, r.choice([[], [3], [2, 3], [2, 1, 2], [0], [2, 0], [1, 2, 1, 2], [70], [2, 2, 2, 2, 2]])))
    i.shape.CopyFrom(i.literal.shape)
    return i


@kind
def comparison(p, name):
    r = p.r
    x = r.choice([p.p, p.i])
    i = p.add(p.e, name, "compare", p.shape(PRED, list(x.shape.dimensions)), [x, x], comparison_direction=r.choice(["EQ", "NE", "GE", "GT", "LE", "LT"]))
    if x is p.p:
        i.comparison_type = r.choice(["", "FLOAT", "TOTALORDER"])
    else:
        i.comparison_type = r.choice(["", "SIGNED"])
    return i


@kind
def dimensions(p, name):
    op, out, dims = p.r.choice([("transpose", [4, 8], [1, 0]), ("reverse", [8, 4], [0]), ("concatenate", [16, 4], [0])])
    i = p.add(p.e, name, op, p.shape(F32, out), [p.p, p.q] if op == "concatenate" else [p.p], dimensions=dims)
    return i


@kind
def reduction(p, name):
    return p.add(p.e, name, "reduce", p.shape(F32, [8]), [p.p, p.zero], dimensions=[1], called_computation_ids=[p.m.computations[p.r.randint(0, 1)].id])


@kind
def window(p, name):
    r = p.r
    i = p.add(p.e, name, "reduce-window", pair(p), [p.p, p.zero], called_computation_ids=[p.m.computations[0].id])
    for _ in range(2):
        i.window.dimensions.add(size=r.choice([1, 2, 3]), stride=r.choice([1, 1, 2]), padding_low=r.choice([0, 0, 1, -1]), padding_high=r.choice([0, 2]),
                                window_dilation=r.choice([1, 1, 2]), base_dilation=r.choice([1, 1, 3]), window_reversal=r.random() < 0.2)
    return i


@kind
def slice_(p, name):
    i = p.add(p.e, name, "slice", p.shape(F32, [4, 4]), [p.p])
    i.slice_dimensions.add(start=0, limit=8, stride=2)
    i.slice_dimensions.add(start=0, limit=4, stride=1)
    return i


@kind
def pad(p, name):
    i = p.add(p.e, name, "pad", p.shape(F32, [10, 4]), [p.p, p.zero])
    i.padding_config.dimensions.add(edge_padding_low=1, edge_padding_high=1)
    i.padding_config.dimensions.add(interior_padding=p.r.choice([0, 1]))
    return i


@kind
def dot(p, name):
    r = p.r
    i = p.add(p.e, name, "dot", p.shape(F32, [8, 8]), [p.p, p.q])
    d = i.dot_dimension_numbers
    d.lhs_contracting_dimensions.append(1)
    d.rhs_contracting_dimensions.append(1)
    i.precision_config.operand_precision.extend(r.choice([[], [0, 0], [1, 2], [2], [1, 1, 1]]))
    if r.random() < 0.3:
        i.precision_config.algorithm = r.randint(0, 15)
    return i


@kind
def ragged(p, name):
    i = p.add(p.e, name, "ragged-dot", pair(p), [p.p, p.sq, p.i])
    d = i.ragged_dot_dimension_numbers
    d.dot_dimension_numbers.lhs_contracting_dimensions.append(1)
    d.dot_dimension_numbers.rhs_contracting_dimensions.append(0)
    d.lhs_ragged_dimensions.append(0)
    if p.r.random() < 0.5:
        d.rhs_group_dimensions.append(0)
    return i


@kind
def convolution(p, name):
    r = p.r
    i = p.add(p.e, name, "convolution", p.shape(F32, [8, 4, 1]), [p.p, p.p], feature_group_count=r.choice([0, 1, 2]), batch_group_count=r.choice([0, 1, 3]))
    d = i.convolution_dimension_numbers
    d.input_feature_dimension = d.kernel_output_feature_dimension = d.output_feature_dimension = 1
    i.window.SetInParent()
    if r.random() < 0.6:
        i.window.dimensions.add(size=r.choice([1, 3]), stride=1, window_dilation=1, base_dilation=1, padding_low=r.choice([0, 1]))
        d.input_spatial_dimensions.append(2), d.kernel_spatial_dimensions.append(2), d.output_spatial_dimensions.append(2)
    i.conv_kind = r.choice([0, 0, 1, 2, 3])
    return i


@kind
def gather(p, name):
    r = p.r
    i = p.add(p.e, name, "gather", pair(p), [p.p, p.i], gather_slice_sizes=[1, 4], indices_are_sorted=r.random() < 0.5)
    g = i.gather_dimension_numbers
    g.offset_dims.append(1), g.collapsed_slice_dims.append(0), g.start_index_map.append(0)
    g.index_vector_dim = 1
    return i


@kind
def scatter(p, name):
    r = p.r
    i = p.add(p.e, name, "scatter", pair(p), [p.p, p.i, p.q], called_computation_ids=[p.m.computations[0].id], unique_indices=r.random() < 0.5,
              indices_are_sorted=r.random() < 0.5)
    g = i.scatter_dimension_numbers
    g.update_window_dims.append(1), g.inserted_window_dims.append(0), g.scatter_dims_to_operand_dims.append(0)
    g.index_vector_dim = 1
    return i


@kind
def sort(p, name):
    return p.add(p.e, name, "sort", pair(p), [p.p], dimensions=[p.r.randint(0, 1)], is_stable=p.r.random() < 0.5, called_computation_ids=[p.compare.id])


def groups(p, i):
    r = p.r
    if r.random() < 0.3:
        for ids in r.choice([[[0, 1]], [[0, 2], [1, 3]], []]):
            i.replica_groups.add(replica_ids=ids)
    elif r.random() < 0.3:
        for ids in ([0, 1], [2, 3]):
            i.collective_device_list.replica_groups.add(replica_ids=ids)
    elif r.random() < 0.6:
        g = i.iota_collective_device_list
        g.num_replica_groups, g.num_devices_per_group = 2, 4
        g.iota_reshape_dims.extend(r.choice([[8], [4, 2], [2, 4], [2, 2, 2]]))
        perm = list(range(len(g.iota_reshape_dims)))
        r.shuffle(perm)
        g.iota_transpose_perm.extend(perm)
    else:
        g = i.mesh_axes_replica_group_list
        g.mesh.axes.add(name="a", size=2), g.mesh.axes.add(name="b", size=4)
        if r.random() < 0.3:
            g.mesh.iota_transform.reshape_dims.extend([4, 2])
            g.mesh.iota_transform.transpose_perm.extend([1, 0])
        g.axes.add(mesh_axis_index=r.randint(0, 1))
    if r.random() < 0.6:
        i.channel_id = r.randint(1, 9)
    i.constrain_layout = r.random() < 0.2
    return i


def begins(p, name, n):
    """Where each of n slices begins, for a permutation in place."""
    index = p.add(p.e, name + ".z", "constant", p.shape(S32))
    index.literal.CopyFrom(p.literal(S32, []))
    index.shape.CopyFrom(index.literal.shape)
    one = p.add(p.e, name + ".b", "tuple", p.tuple_of([index.shape] * 2), [index] * 2)
    return one if n == 1 else p.add(p.e, name + ".bs", "tuple", p.tuple_of([one.shape] * n), [one] * n)


@kind
def collective(p, name):
    r = p.r
    op = r.choice(["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-broadcast", "collective-permute", "all-reduce-start"])
    out = {"all-gather": [16, 4], "reduce-scatter": [4, 4]}.get(op, [8, 4])
    n = r.choice([0, 0, 1, 2]) if op == "collective-permute" else 0
    slices = [begins(p, name, n)] * 2 if n else []
    i = p.add(p.e, name, op, p.shape(F32, out), [p.p] + [p.q] * bool(n) + slices, dynamic_slice_sizes=[r.randint(1, 8) for _ in range(2 * n)])
    if op == "collective-permute":
        for a, b in ((0, 1), (1, 0)):
            i.source_target_pairs.add(source=a, target=b)
        i.channel_id = r.randint(0, 3)
        return i
    groups(p, i)
    if op in ("all-reduce", "reduce-scatter", "all-reduce-start"):
        i.called_computation_ids.append(p.m.computations[0].id)
        i.use_global_device_ids = i.channel_id > 0 and r.random() < 0.5
    if op in ("all-gather", "reduce-scatter", "all-to-all"):
        i.dimensions.append(0)
    return i


@kind
def custom_call(p, name):
    r = p.r
    several = r.random() < 0.3
    shape = p.tuple_of([pair(p), p.tuple_of([p.shape(S32)]), p.shape(U32, [2])]) if several else pair(p)
    i = p.add(p.e, name, "custom-call", shape, [p.p, p.q], custom_call_target=r.choice(["foo", 'b"ar', "__cublas$gemm", "tab\t"]),
              custom_call_api_version=r.randint(0, 4), custom_call_has_side_effect=r.random() < 0.3, custom_call_schedule=r.randint(0, 2),
              feature_group_count=r.choice([0, 1, 4]), padding_type=r.choice([0, 0, 1, 2]))
    if r.random() < 0.3:
        i.constrain_layout = True
        for o in (p.p, p.q):
            i.operand_shapes_with_layout.add().CopyFrom(o.shape)
    if r.random() < 0.2 and not several:
        i.output_operand_aliasing.add(operand_index=0)
    if r.random() < 0.2:
        i.called_computation_ids.append(p.m.computations[0].id)
    if r.random() < 0.1:
        i.literal.CopyFrom(p.literal(F32, [2]))
    if r.random() < 0.3:
        i.window.SetInParent()
        for _ in range(r.randint(0, 2)):
            i.window.dimensions.add(size=r.choice([1, 3]), stride=r.choice([1, 2]), window_dilation=1, base_dilation=1, padding_high=r.choice([0, 1]))
    if r.random() < 0.2:
        i.convolution_dimension_numbers.SetInParent()
    return i


def inside(p, name, opcode="negate", thread="", **fields):
    """The id of a computation of one parameter and one instruction; a copy of it stands before the entry, its caller."""
    c = p.m.computations.add()
    c.name, c.id, c.execution_thread = name, len(p.m.computations) + 100, thread
    a = p.add(c, f"{name}.a", "parameter", pair(p), parameter_number=0)
    x = p.add(c, f"{name}.x", opcode, pair(p), [a], **fields)
    p.decorate(x, [a])
    p.finish(c, x)
    made = Hlo().hlo_module.computations.add()
    made.CopyFrom(c)
    del p.m.computations[-1]
    entry = Hlo().hlo_module.computations.add()
    entry.CopyFrom(p.e)
    p.m.computations[-1].CopyFrom(made)
    p.m.computations.add().CopyFrom(entry)
    p.e = p.m.computations[-1]
    return made.id


@kind
def fusion(p, name):
    made = inside(p, f"fused.{name}")
    return p.add(p.e, name, "fusion", pair(p), [p.p], fusion_kind=p.r.choice(["kLoop", "kInput", "kOutput", "kCustom"]), called_computation_ids=[made])


@kind
def asynchronous(p, name):
    thread = p.r.choice(["main", "side"])
    opcode, fields = p.r.choice([("copy", {}), ("custom-call", {"custom_call_target": "t"}), ("tanh", {})])
    made = inside(p, f"async.{name}", opcode, thread, **fields)
    shape = p.tuple_of([p.tuple_of([pair(p)]), pair(p), p.shape(S32)])
    at = p.add(p.e, name + ".start", "async-start", shape, [p.p], called_computation_ids=[made], async_execution_thread=thread)
    for n in range(p.r.choice([0, 0, 1, 2])):
        at = p.add(p.e, f"{name}.update.{n}", "async-update", shape, [at])
    return p.add(p.e, name, "async-done", pair(p), [at])


@kind
def tuples(p, name):
    n = p.r.choice([0, 1, 2, 6, 11])
    return p.add(p.e, name, "tuple", p.tuple_of([pair(p)] * n), [p.p] * n)


@kind
def numbers(p, name):
    r = p.r
    op = r.choice(["reduce-precision", "iota", "rng-get-and-update-state", "get-dimension-size", "topk", "cholesky", "fft", "batch-norm-inference"])
    if op == "reduce-precision":
        return p.add(p.e, name, op, pair(p), [p.p], exponent_bits=r.randint(1, 8), mantissa_bits=r.randint(0, 9))
    if op == "iota":
        return p.add(p.e, name, op, p.shape(S32, [8, 4]), dimensions=[r.randint(0, 1)])
    if op == "rng-get-and-update-state":
        return p.add(p.e, name, op, p.shape(9, [2]), delta=r.choice([1, 4096, -3]))
    if op == "get-dimension-size":
        return p.add(p.e, name, op, p.shape(S32), [p.p], dimensions=[1])
    if op == "topk":
        return p.add(p.e, name, op, p.tuple_of([p.shape(F32, [8, 2]), p.shape(S32, [8, 2])]), [p.p], k=2, largest=r.random() < 0.5, is_stable=r.random() < 0.5)
    if op == "cholesky":
        i = p.add(p.e, name, op, p.shape(F32, [4, 4]), [p.sq])
        i.cholesky_options.lower = r.random() < 0.5
        return i
    if op == "fft":
        return p.add(p.e, name, op, p.shape(15, [8, 4]), [p.p], fft_type=r.randint(0, 3), fft_length=[4])
    return p.add(p.e, name, op, pair(p), [p.p] * 5, epsilon=r.choice([1e-5, 0.001, 0.1]), feature_index=1)
