# SPDX-License-Identifier: Apache-2.0
"""Small HLO modules that XLA accepts: an entry computation, fusions, reducers and while loops.

    module = Module(rng, "jit_step", program_id, style)   style: "costed" or "opaque"
    module.proto      the HloProto
    module.kernels    [(instruction name, op_name, opcode)] that a device could run

An "opaque" module holds only instructions to which XLA's cost model gives no number, so that every
field of an answer can be compared; a "costed" one holds the usual mixture.
"""
from protos import pb

PRED, S32, F16, F32, TUPLE, BF16, TOKEN = 1, 4, 10, 11, 13, 16, 17


def shape(element, dims=()):
    s = pb.Shape(element_type=element, dimensions=dims, is_dynamic_dimension=[False] * len(dims))
    s.layout.minor_to_major.extend(reversed(range(len(dims))))
    return s


def tuple_shape(parts):
    return pb.Shape(element_type=TUPLE, tuple_shapes=parts)


class Computation:
    def __init__(self, module, name, fusion=False):
        self.m = module
        self.c = module.hlo.computations.add(name=name, id=module.next_computation, is_fusion_computation=fusion,
                                             execution_thread="main")
        module.next_computation += 1
        self.params = []

    def add(self, opcode, out, operands=(), **fields):
        m = self.m
        i = self.c.instructions.add(name=fields.pop("name", None) or m.name_for(opcode), opcode=opcode, id=m.next_id,
                                    operand_ids=[o.id for o in operands])
        m.next_id += 1
        i.shape.CopyFrom(out)
        called = fields.pop("called", ())
        i.called_computation_ids.extend(c.c.id for c in called)
        for k, v in fields.items():
            if k in ("dimensions", "replica_groups", "slice_dimensions"):
                getattr(i, k).extend(v)
            elif k in ("dot_dimension_numbers", "literal"):
                getattr(i, k).CopyFrom(v)
            else:
                setattr(i, k, v)
        return i

    def param(self, out):
        p = self.add("parameter", out, parameter_number=len(self.params))
        self.params.append(p)
        return p

    def finish(self, root):
        self.c.root_id = root.id
        ps = self.c.program_shape
        ps.parameters.extend(p.shape for p in self.params)
        ps.parameter_names.extend(p.name for p in self.params)
        ps.result.CopyFrom(root.shape)
        return self


class Module:
    def __init__(self, rng, name, program_id, style, jax=True):
        self.r, self.jax = rng, jax
        self.next_id, self.next_computation, self.counts = 1, 1, {}
        self.proto = pb.HloProto()
        self.hlo = self.proto.hlo_module
        self.hlo.name, self.hlo.id = name, program_id - 2 ** 64 if program_id >= 2 ** 63 else program_id
        self.name, self.program_id = name, program_id
        self.kernels, self.frames = [], 0
        if rng.random() < 0.4:
            self._stack_frames()
        self.build_opaque() if style == "opaque" else self.build_costed()

    def name_for(self, opcode):
        base = opcode.replace("-", "_" if self.r.random() < 0.02 else "-")
        n = self.counts.get(base, 0)
        self.counts[base] = n + 1
        return f"{base}.{n}" if n or self.r.random() < 0.5 else base

    def _stack_frames(self):
        s = self.hlo.stack_frame_index
        s.file_names.extend(["/src/model/layers.py", "train.py", "/a b/ünï.py"])
        s.function_names.extend(["main", "layer", "<lambda>"])
        for _ in range(4):
            s.file_locations.add(file_name_id=self.r.randint(1, 3), function_name_id=self.r.randint(1, 3),
                                 line=self.r.randint(1, 900), column=self.r.randint(0, 80))
        for i in range(5):
            s.stack_frames.add(file_location_id=self.r.randint(1, 4), parent_frame_id=self.r.randint(0, i))
        self.frames = 5

    def describe(self, i, hint):
        """Gives the instruction a framework name, and now and then a source."""
        r = self.r
        if r.random() < 0.1:
            return
        if self.jax:
            scope = r.choice(["jit(step)", "jit(step)/jit(main)", "pjit(f)", "jit(step)/transpose(jvp(layer))", "jit(step)/jvp(layer)"])
            i.metadata.op_name = f"{scope}/{hint}"
            i.metadata.op_type = r.choice(["", "", hint.split("[")[0]])
        else:
            kind = r.choice(["MatMul", "Conv2D", "AddV2", "Relu", "BiasAdd", "Sum", "FusedBatchNormV3", "Mul"])
            scope = r.choice(["model/dense", "model/conv", "gradient_tape/model/dense", "gradients/x", "Adam"])
            i.metadata.op_name, i.metadata.op_type = f"{scope}/{kind}_{r.randint(0, 3)}", kind
        if r.random() < 0.5:
            i.metadata.source_file, i.metadata.source_line = r.choice(["/src/model/layers.py", "train.py"]), r.randint(1, 999)
        if self.frames and r.random() < 0.6:
            i.metadata.stack_frame_id = r.randint(1, self.frames)
        if r.random() < 0.1:
            i.metadata.deduplicated_name = r.choice(["fusion.0", "custom-call", "dedup.7"])

    def kernel(self, i, hint):
        self.describe(i, hint)
        self.kernels.append((i.name, i.metadata.op_name, i.opcode))
        return i

    def build_opaque(self):
        r = self.r
        e = Computation(self, "main.1")
        v = e.param(shape(F32, [8, 16]))
        for _ in range(r.randint(2, 10)):
            v = self.kernel(e.add("custom-call", shape(F32, [8, 16]), [v], custom_call_target=r.choice(
                ["triton_kernel", "my_target", "__cublas$gemm", "cudnn_fmha_fwd"])),
                r.choice(["dot_general", "custom", "conv_general_dilated", "pallas_call", "add"]))
        self._finish(e, v)

    def reducer(self, opcode="add"):
        c = Computation(self, f"region_{self.next_computation}.{self.next_computation}")
        a, b = c.param(shape(F32)), c.param(shape(F32))
        return c.finish(c.add(opcode, shape(F32), [a, b]))

    def fusion(self, e, v):
        r, f = self.r, Computation(self, f"fused_computation.{self.next_computation}", fusion=True)
        s = v.shape
        x = f.param(s)
        for _ in range(r.randint(1, 4)):
            op = r.choice(["add", "multiply", "exponential", "tanh", "negate", "convert"])
            x = f.add(op, s, [x, x] if op in ("add", "multiply") else [x])
            self.describe(x, op)
        f.finish(x)
        name = r.choice([None, None, f"loop_add_fusion.{self.next_id}", f"input_reduce_fusion.{self.next_id}", f"wrapped_tanh.{self.next_id}"])
        return e.add("fusion", s, [v], called=[f], fusion_kind=r.choice(["kLoop", "kInput", "kOutput", "kCustom"]), name=name)

    def loop(self, e, v):
        r, s = self.r, v.shape
        state = tuple_shape([shape(S32), s])
        cond, body = Computation(self, f"cond.{self.next_computation}"), Computation(self, f"body.{self.next_computation + 1}")
        p = cond.param(state)
        i = cond.add("get-tuple-element", shape(S32), [p], tuple_index=0)
        limit = cond.add("constant", shape(S32), literal=pb.Literal(shape=shape(S32), s32s=[r.randint(1, 9)]))
        cond.finish(cond.add("compare", shape(PRED), [i, limit], comparison_direction="LT"))
        p = body.param(state)
        i = body.add("get-tuple-element", shape(S32), [p], tuple_index=0)
        x = body.add("get-tuple-element", s, [p], tuple_index=1)
        x = self.kernel(self.fusion(body, x), "while/body/add")
        body.finish(body.add("tuple", state, [i, x]))
        zero = e.add("constant", shape(S32), literal=pb.Literal(shape=shape(S32), s32s=[0]))
        start = e.add("tuple", state, [zero, v])
        w = e.add("while", state, [start], called=[body, cond])
        self.kernel(w, "while")
        return e.add("get-tuple-element", s, [w], tuple_index=1)

    def build_costed(self):
        r = self.r
        e = Computation(self, f"main.{r.randint(1, 99)}")
        n = r.choice([4, 16, 64])
        s = shape(r.choice([F32, F32, BF16, F16]), [n, n])
        v, w = e.param(s), e.param(s)
        dots = pb.DotDimensionNumbers(lhs_contracting_dimensions=[1], rhs_contracting_dimensions=[0])
        for _ in range(r.randint(3, 12)):
            op = r.choice(["fusion", "fusion", "fusion", "dot", "custom-call", "add", "copy", "transpose", "all-reduce", "while",
                           "tanh", "reshape", "bitcast", "slice", "reduce", "broadcast"])
            hint = {"dot": "dot_general", "all-reduce": "psum", "reduce": "reduce_sum"}.get(op, op)
            if op == "fusion":
                v = self.kernel(self.fusion(e, v), r.choice(["add", "mul", "dot_general", "reduce_sum", "tanh"]))
            elif op == "dot":
                v = self.kernel(e.add("dot", s, [v, w], dot_dimension_numbers=dots), hint)
            elif op == "custom-call":
                v = self.kernel(e.add("custom-call", s, [v, w], custom_call_target=r.choice(["triton_kernel", "__cublas$gemm"])), "dot_general")
            elif op == "add":
                v = self.kernel(e.add("add", s, [v, w]), hint)
            elif op == "transpose":
                v = self.kernel(e.add(op, s, [v], dimensions=[1, 0]), hint)
            elif op == "all-reduce":
                v = self.kernel(e.add(op, s, [v], called=[self.reducer()], channel_id=r.randint(1, 9), replica_groups=[pb.ReplicaGroup(replica_ids=[0, 1])])
                                if s.element_type == F32 else e.add("copy", s, [v]), hint)
            elif op == "while":
                v = self.loop(e, v)
            elif op == "slice":
                v = self.kernel(e.add(op, s, [v], slice_dimensions=[pb.SliceDimensions(limit=n, stride=1)] * 2), hint)
            elif op in ("reduce", "broadcast"):
                if s.element_type != F32:
                    continue
                zero = e.add("constant", shape(F32), literal=pb.Literal(shape=shape(F32), f32s=[0]))
                if op == "broadcast":
                    v = self.kernel(e.add(op, s, [zero]), hint)
                else:
                    x = self.kernel(e.add(op, shape(F32, [n]), [v, zero], dimensions=[1], called=[self.reducer("maximum")]), hint)
                    v = self.kernel(e.add("broadcast", s, [x], dimensions=[0]), "broadcast_in_dim")
            else:
                v = self.kernel(e.add(op, s, [v]), hint)
        if not self.kernels:
            v = self.kernel(e.add("add", s, [v, w]), "add")
        self._finish(e, v)

    def _finish(self, e, root):
        e.finish(root)
        self.hlo.entry_computation_name, self.hlo.entry_computation_id = e.c.name, e.c.id
        self.hlo.host_program_shape.CopyFrom(e.c.program_shape)
        comps = list(self.hlo.computations)           # callees come before callers
        del self.hlo.computations[:]
        self.hlo.computations.extend(_callees_first(comps))


def _callees_first(comps):
    by_id, out, seen = {c.id: c for c in comps}, [], set()

    def visit(c):
        if c.id in seen:
            return
        seen.add(c.id)
        for i in c.instructions:
            for k in i.called_computation_ids:
                visit(by_id[k])
        out.append(c)
    for c in comps:
        visit(c)
    return out
