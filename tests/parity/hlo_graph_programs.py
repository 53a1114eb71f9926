# SPDX-License-Identifier: Apache-2.0
"""Random HLO programs for hlo_graph.py: computations that call each other, which hlo_programs.py has few of.

Fusions in fusions, with constants and broadcasts of them; calls, loops and conditionals; tuples that are taken apart; users by
the dozen, operands by the hundred; control edges; statistics; configurations of libraries.  Determined by seed and index.
"""
import json
import random

import hlo_programs
from hlo_programs import F32, PRED, S32, TOKEN, Hlo

SHAPES = [[], [1], [4], [8, 4], [2, 1, 2], [64, 64], [4096], [0, 3]]
UNARY = ["negate", "exponential", "copy", "bitcast", "transpose", "reshape", "convert", "reverse"]
BINARY = ["add", "multiply", "subtract", "maximum", "dot", "compare", "dynamic-update-slice"]


class GraphProgram(hlo_programs.Program):
    def __init__(self, seed, index):
        self.r = random.Random(f"graph {seed} {index}")
        self.proto = Hlo()
        self.m = self.proto.hlo_module
        self.m.name = "m"
        self.next_id = 1
        self.scalars = [self.reducer(f"{op}.{n}", op) for n, op in enumerate(["add", "maximum", "xor", "subtract", "compare"])]
        self.scalars[-1].instructions[-1].comparison_direction = self.r.choice(["LE", "GT", "EQ", "NE"])
        self.called, self.fused, self.conditions = [], [], []
        for n in range(self.r.randint(1, 4)):
            self.body(f"called.{n}", self.r.random() < 0.4)
        c = self.body("main", False)
        self.m.entry_computation_name, self.m.entry_computation_id = c.name, c.id
        self.m.host_program_shape.CopyFrom(c.program_shape)
        if self.r.random() < 0.5:
            self.frames()

    # -- a computation: parameters, then instructions that use earlier ones --

    def body(self, name, fused):
        r = self.r
        made = []                        # [(instruction, shape)]
        # called computations precede it: fusions' bodies are made first
        inner = [self.inside(f"{name}.fused.{k}") for k in range(r.randint(0, 2))]
        c = self.computation(name)
        for k in range(r.randint(1, 3)):
            parts = [self.shape(F32, r.choice(SHAPES)) for _ in range(r.choice([1, 4, 5]))]
            shape = self.tuple_of(parts) if r.random() < 0.3 else parts[0]
            made.append(self.add(c, f"{name}.p{k}", "parameter", shape, parameter_number=k))
        for k in range(r.randint(3, 20)):
            self.one(c, f"{name}.{k}", made, inner)
        self.finish(c, r.choice(made[-3:]))
        if not fused:
            self.called.append(c)
        return c

    def one(self, c, name, made, inner):
        r = self.r
        arrays = [i for i in made if i.shape.element_type not in (13, TOKEN)] or [self.constant(c, f"{name}.k", made)]
        tuples = [i for i in made if i.shape.element_type == 13 and len(i.shape.tuple_shapes)]
        what = r.choice(["constant", "unary", "unary", "binary", "binary", "tuple", "element", "element", "fusion", "fusion", "call",
                         "while", "reduce", "custom", "after", "many"])
        x, y = r.choice(arrays), r.choice(arrays)
        if what == "constant":
            return self.constant(c, name, made)
        if what == "element" and tuples:
            t = r.choice(tuples)
            k = r.randrange(len(t.shape.tuple_shapes))
            kind = "get-tuple-element"
            i = self.add(c, r.choice([f"get-tuple-element.{name}", name]), kind, t.shape.tuple_shapes[k], [t], tuple_index=k)
        elif what == "tuple":
            of = [r.choice(made) for _ in range(r.choice([0, 1, 3, 40]))]
            i = self.add(c, name, "tuple", self.tuple_of([o.shape for o in of]), of)
        elif what == "fusion" and inner:
            f = inner.pop()
            i = self.add(c, name, "fusion", f.program_shape.result, [r.choice(made) for _ in f.program_shape.parameters],
                         fusion_kind=r.choice(["kLoop", "kInput", "kOutput", "kCustom"]), called_computation_ids=[f.id])
        elif what == "call" and self.called:
            f = r.choice(self.called)
            i = self.add(c, name, "call", f.program_shape.result, [r.choice(made) for _ in f.program_shape.parameters],
                         called_computation_ids=[f.id])
        elif what == "while" and len(self.called) > 1:
            i = self.add(c, name, "while", x.shape, [x], called_computation_ids=[f.id for f in r.sample(self.called, 2)])
        elif what == "reduce":
            i = self.add(c, name, r.choice(["reduce", "sort", "map", "all-reduce"]), x.shape, [x], called_computation_ids=[r.choice(self.scalars).id])
            if i.opcode == "reduce":
                i.operand_ids.append(y.id)
            if i.opcode == "sort":
                i.dimensions.append(0)
            if i.opcode == "map":
                i.dimensions.extend(range(len(x.shape.dimensions)))
        elif what == "custom":
            i = self.library(c, name, x, y)
        elif what == "after":
            i = self.add(c, name, "after-all", self.shape(TOKEN), [])
        elif what == "many":
            i = self.add(c, name, "concatenate", self.shape(F32, [4]), [x] * r.choice([3, 70]), dimensions=[0])
        elif what == "binary":
            i = self.add(c, name, r.choice(BINARY), x.shape, [x, y])
            if i.opcode == "compare":
                i.comparison_direction = "LT"
            if i.opcode == "dynamic-update-slice":
                i.operand_ids.extend([x.id] * len(x.shape.dimensions))
            if i.opcode == "dot":
                i.dot_dimension_numbers.SetInParent()
        else:
            i = self.add(c, name, r.choice(UNARY), x.shape, [x])
        self.extras(i, made)
        made.append(i)
        return i

    def constant(self, c, name, made):
        i = self.add(c, self.r.choice([f"constant.{name}", name]), "constant", self.shape(F32))
        i.literal.CopyFrom(self.literal(self.r.choice([F32, S32, PRED]), self.r.choice([[], [1], [3], [2, 3], [2, 1, 2], [9], [0], [2, 0]])))
        i.shape.CopyFrom(i.literal.shape)
        if self.r.random() < 0.1:
            i.ClearField("literal")
        made.append(i)
        return i

    def inside(self, name, depth=0):
        """A fused computation; its caller comes later."""
        r = self.r
        inner = [self.inside(f"{name}.{depth}", depth + 1)] if depth < 2 and r.random() < 0.3 else []
        c, made = self.computation(name), []
        for k in range(r.randint(1, 3)):
            made.append(self.add(c, f"{name}.p{k}", "parameter", self.shape(F32, r.choice(SHAPES)), parameter_number=k))
        for k in range(r.randint(1, 6)):
            what = r.choice(["constant", "broadcast", "broadcast", "other", "other"])
            if what == "constant":
                self.constant(c, f"{name}.{k}", made)
            elif what == "broadcast":
                made.append(self.add(c, f"{name}.b{k}", "broadcast", self.shape(F32, [8, 4]), [self.constant(c, f"{name}.c{k}", made)]))
            elif inner:
                f = inner.pop()
                made.append(self.add(c, f"{name}.{k}", "fusion", f.program_shape.result, [r.choice(made) for _ in f.program_shape.parameters],
                                     fusion_kind="kLoop", called_computation_ids=[f.id]))
            else:
                x = r.choice(made)
                made.append(self.add(c, f"{name}.{k}", r.choice(["negate", "bitcast", "add"]), x.shape, [x]))
                if made[-1].opcode == "add":
                    made[-1].operand_ids.append(r.choice(made[:-1]).id)
        return self.finish(c, made[-1])

    # -- what any may have --

    def extras(self, i, before):
        r = self.r
        if r.random() < 0.3:
            self.metadata(i.metadata)
        if r.random() < 0.1:
            self.sharding(i.sharding)
        if r.random() < 0.1:
            i.frontend_attributes.map["k"] = r.choice(hlo_programs.TEXTS)
        if r.random() < 0.15 and i.opcode != "custom-call":
            i.backend_config = r.choice(['{"a":[1,{}]}', "plain", '{"wait_on_operation_queues":[],"x":"}"}', '{"s":"<é>"}']).encode()
        if r.random() < 0.1:
            i.control_predecessor_ids.extend(sorted({x.id for x in r.sample(before, min(len(before), r.choice([1, 2, 30])))}))
        if r.random() < 0.08:
            n = r.randint(1, 3)
            for k in range(n):
                i.statistics_viz.statistics.add(stat_name=f"s{k}", stat_val=r.choice([0, 0.5, 9.999, 10, 33, 59.9, 60, 77, 90, 200, -1]))
            i.statistics_viz.stat_index_to_visualize = r.randrange(n)

    def library(self, c, name, x, y):
        r = self.r
        target = r.choice(["foo", "__cublas$gemm", "__cublas$lt$matmul", "__cublas$lt$matmul$f8", "__cudnn$convForward", "__cudnn$norm"])
        i = self.add(c, name, "custom-call", x.shape, [x, y], custom_call_target=target, feature_group_count=r.choice([0, 1, 4]))
        config = {}
        if target.startswith("__cublas"):
            dims = {f"{s}_{k}_dimensions": [str(d) for d in range(r.randint(0, 2))] for s in ("lhs", "rhs") for k in ("batch", "contracting")}
            config["gemm_backend_config"] = g = {"dot_dimension_numbers": dims}
            for key, values in (("alpha_real", [1, 0.5, 1e-9]), ("beta", [0, 1, 2.5]), ("selected_algorithm", ["0", "17"]), ("epilogue", ["DEFAULT", "BIAS", "GELU"])):
                if r.random() < 0.7:
                    g[key] = r.choice(values)
        if target.startswith("__cudnn$conv"):
            config["cudnn_conv_backend_config"] = g = {}
            for key, values in (("conv_result_scale", [1, 0.25]), ("side_input_scale", [0, 1, 3.5]), ("activation_mode", ["kNone", "kRelu", "kElu"])):
                if r.random() < 0.7:
                    g[key] = r.choice(values)
            if r.random() < 0.7:
                g["algorithm"] = {"algo_id": str(r.randint(0, 50)), "tuning_knobs": {str(k): str(r.randint(0, 9)) for k in r.sample(range(30), r.randint(0, 3))}}
        if config and r.random() < 0.9:
            i.backend_config = json.dumps(config).encode()
        return i
