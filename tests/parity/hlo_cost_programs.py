# SPDX-License-Identifier: Apache-2.0
"""Random HLO programs for the cost model: more shapes, types and nesting than those of hlo_programs.py, and no decoration.

A program is determined by seed and index.  Values are drawn from a pool, so that uses branch and join; fusions, loops, branches
and calls hold bodies of the same kind, 3 deep.  What XLA checks only after reading a program, such as whether shapes agree, is
mostly right and sometimes not.
"""
import random

from hlo_programs import BF16, F16, F32, F64, Hlo, PRED, S32, TOKEN, TUPLE, U32

S8, S4, F8, C64, U8, S64 = 2, 21, 20, 15, 6, 5
TYPES = [F32] * 6 + [BF16, BF16, F16, F64, S32, S32, U32, S8, S4, U8, F8, C64, S64, PRED]
UNARY = ["abs", "negate", "exponential", "log", "tanh", "logistic", "rsqrt", "sqrt", "cbrt", "sine", "cosine", "floor", "sign", "not", "erf", "tan",
         "exponential-minus-one", "log-plus-one", "round-nearest-even", "copy", "convert", "reverse", "popcnt", "count-leading-zeros"]
BINARY = ["add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "atan2", "remainder", "and", "or", "xor", "shift-left"]
SIZES = [1, 1, 2, 3, 4, 7, 8, 16, 31, 32, 100, 128, 1000]


def shape(element, dims=(), space=0, bits=0):
    s = Hlo().hlo_module.host_program_shape.result
    s.element_type = element
    s.dimensions.extend(dims)
    s.is_dynamic_dimension.extend([False] * len(dims))
    if element != TOKEN:
        s.layout.minor_to_major.extend(reversed(range(len(dims))))
        s.layout.memory_space, s.layout.element_size_in_bits = space, bits
    return s


def tuple_of(parts):
    s = Hlo().hlo_module.host_program_shape.result
    s.element_type = TUPLE
    for p in parts:
        s.tuple_shapes.add().CopyFrom(p)
    return s


class CostProgram:
    def __init__(self, seed, index):
        self.start(f"cost {seed} {index}")
        self.empty = 0.3 if index % 10 == 9 else 0.02       # of these arrays have no elements
        parameters = [self.array() for _ in range(self.r.randint(2, 6))]
        self.entry(self.body("main", parameters, self.r.randint(5, 40), 3)[0])

    def start(self, seed):
        self.r = random.Random(seed)
        self.proto = Hlo()
        self.m = self.proto.hlo_module
        self.m.name, self.ids, self.combiners = "costs", 0, {}

    def entry(self, c):
        self.m.entry_computation_name, self.m.entry_computation_id = c.name, c.id
        self.m.host_program_shape.CopyFrom(c.program_shape)

    # -- parts --

    def array(self, element=None):
        r = self.r
        dims = [r.choice(SIZES) for _ in range(r.choice([0, 1, 1, 2, 2, 2, 3, 4]))]
        if r.random() < self.empty:
            dims.append(0)
        element = element or r.choice(TYPES)
        return shape(element, dims, r.choice([0] * 9 + [1]), 4 if element == S4 and r.random() < 0.5 else 0)

    def new_id(self):
        self.ids += 1
        return self.ids

    def add(self, c, opcode, s, operands=(), **fields):
        n = self.new_id()
        i = c.instructions.add(name=f"{opcode}.{n}", opcode=opcode, id=n, operand_ids=[o.id for o in operands])
        i.shape.CopyFrom(s)
        for k, v in fields.items():
            if isinstance(v, (list, tuple)):
                getattr(i, k).extend(v)
            else:
                setattr(i, k, v)
        return i

    def computation(self, name):
        n = self.new_id()
        return Hlo().hlo_module.computations.add(name=f"{name}.{n}", id=n)

    def finish(self, c, root):
        """Callees are finished, and so stand, before their callers."""
        c.root_id = root.id
        params = sorted((i for i in c.instructions if i.opcode == "parameter"), key=lambda i: i.parameter_number)
        for p in params:
            c.program_shape.parameters.add().CopyFrom(p.shape)
            c.program_shape.parameter_names.append(p.name)
        c.program_shape.result.CopyFrom(root.shape)
        self.m.computations.add().CopyFrom(c)
        return c

    def combiner(self, element, n=1):
        """A computation of 2n scalars."""
        key = element, n, self.r.choice(["add", "maximum", "multiply", "compare"])
        if key not in self.combiners:
            c = self.computation("combine")
            p = [self.add(c, "parameter", shape(element), parameter_number=k) for k in range(2 * n)]
            made = [self.add(c, key[2], shape(PRED if key[2] == "compare" else element), [p[k], p[n + k]],
                             comparison_direction="LT" if key[2] == "compare" else "") for k in range(n)]
            self.combiners[key] = self.finish(c, made[0] if n == 1 else self.add(c, "tuple", tuple_of([x.shape for x in made]), made)).id
        return self.combiners[key]

    def body(self, name, parameters, n, depth):
        """A computation that takes these shapes; returns it and the shape of its result."""
        r = self.r
        c = self.computation(name)
        pool = []
        for k, s in enumerate(parameters):
            p = self.add(c, "parameter", s, parameter_number=k)
            pool.append(p)
            if s.element_type == TUPLE:
                pool += [self.add(c, "get-tuple-element", t, [p], tuple_index=j) for j, t in enumerate(s.tuple_shapes)]
        for _ in range(n):
            pool.append(r.choice(KINDS)(self, c, pool, depth))
        arrays = [x for x in pool if x.shape.element_type not in (TUPLE, TOKEN)]
        for k in range(1, len(pool)):
            if r.random() < 0.05 and pool[k].opcode != "parameter":     # it waits
                pool[k].control_predecessor_ids.extend(sorted({r.choice(pool[:k]).id for _ in range(2)} - set(pool[k].operand_ids)))
        root = pool[-1] if r.random() < 0.9 or not arrays else r.choice(arrays)
        if r.random() < 0.3 and arrays:
            some = [r.choice(arrays) for _ in range(r.randint(1, 4))]
            root = self.add(c, "tuple", tuple_of([x.shape for x in some]), some)
        return self.finish(c, root), root.shape

    def begun(self, c, f, s, operands):
        """The start of what the computation `f` does, whose result has the shape `s`."""
        begun = tuple_of([tuple_of([x.shape for x in operands]), s, shape(S32)])
        return self.add(c, "async-start", begun, operands, called_computation_ids=[f.id], async_execution_thread="main")

    def done(self, c, begun):
        return self.add(c, "async-done", begun.shape.tuple_shapes[1], [begun])

    def pick(self, c, pool, rank=0):
        """An array of at least that many dimensions."""
        r = self.r
        arrays = [x for x in pool if x.shape.element_type not in (TUPLE, TOKEN) and len(x.shape.dimensions) >= rank]
        if arrays and r.random() < 0.95:
            return r.choice(arrays[-8:] if r.random() < 0.6 else arrays)
        return self.add(c, "constant", shape(r.choice(TYPES), [r.choice(SIZES) for _ in range(max(rank, r.randint(0, 2)))]))

    def like(self, c, pool, x):
        """Another of the same shape, if there is one."""
        same = [y for y in pool if y.shape.element_type == x.shape.element_type and list(y.shape.dimensions) == list(x.shape.dimensions)]
        return self.r.choice(same) if same else x

    def scalar(self, c, element=S32):
        return self.add(c, "constant", shape(element))


KINDS = []


def kind(weight=1):
    def note(f):
        KINDS.extend([f] * weight)
        return f
    return note


def resized(x, dims, element=None):
    s = shape(element or x.shape.element_type, dims)
    s.layout.memory_space = x.shape.layout.memory_space
    return s


@kind(6)
def unary(p, c, pool, _):
    x = p.pick(c, pool)
    op = p.r.choice(UNARY)
    out = resized(x, x.shape.dimensions, p.r.choice(TYPES)) if op == "convert" else x.shape
    return p.add(c, op, out, [x], dimensions=[0] if op == "reverse" and x.shape.dimensions else [])


@kind(6)
def binary(p, c, pool, _):
    x = p.pick(c, pool)
    return p.add(c, p.r.choice(BINARY), x.shape, [x, p.like(c, pool, x)])


@kind(2)
def choose(p, c, pool, _):
    x = p.pick(c, pool)
    test = p.add(c, "compare", resized(x, x.shape.dimensions, PRED), [x, p.like(c, pool, x)], comparison_direction="LT")
    if p.r.random() < 0.3:
        return p.add(c, "clamp", x.shape, [x, p.like(c, pool, x), x])
    return p.add(c, "select", x.shape, [test, x, p.like(c, pool, x)])


@kind(3)
def broadcast(p, c, pool, _):
    x = p.pick(c, pool)
    dims = list(x.shape.dimensions)
    at = p.r.randint(0, len(dims))
    return p.add(c, "broadcast", resized(x, dims[:at] + [p.r.choice(SIZES[:9])] + dims[at:]), [x], dimensions=[k + (k >= at) for k in range(len(dims))])


@kind(2)
def rearrange(p, c, pool, _):
    r, x = p.r, p.pick(c, pool, 1)
    dims = list(x.shape.dimensions)
    op = r.choice(["reshape", "bitcast", "transpose", "transpose", "bitcast-convert", "pad", "iota"])
    if op == "transpose":
        order = list(range(len(dims)))
        r.shuffle(order)
        i = p.add(c, op, resized(x, [dims[k] for k in order]), [x], dimensions=order)
        if r.random() < 0.5:
            where = {d: k for k, d in enumerate(order)}
            del i.shape.layout.minor_to_major[:]
            i.shape.layout.minor_to_major.extend(where[d] for d in x.shape.layout.minor_to_major)
        return i
    if op == "pad":
        i = p.add(c, op, resized(x, [d + 2 for d in dims]), [x, p.scalar(c, x.shape.element_type)])
        for _ in dims:
            i.padding_config.dimensions.add(edge_padding_low=1, edge_padding_high=1)
        return i
    if op == "iota":
        return p.add(c, op, x.shape, dimensions=[0])
    n = 1
    for d in dims:
        n *= d
    if op == "bitcast-convert" or (op == "bitcast" and r.random() < 0.5):
        return p.add(c, op, x.shape, [x])
    return p.add(c, op, resized(x, [n]), [x])


@kind(4)
def slices(p, c, pool, _):
    r, x = p.r, p.pick(c, pool, 1)
    dims = list(x.shape.dimensions)
    part = [max(1, d // r.choice([1, 2, 3])) for d in dims]
    op = r.choice(["slice", "dynamic-slice", "dynamic-update-slice"])
    if op == "slice":
        i = p.add(c, op, resized(x, part), [x])
        for d in part:
            i.slice_dimensions.add(start=0, limit=d, stride=1)
        return i
    starts = [p.scalar(c) for _ in dims]
    if op == "dynamic-slice":
        return p.add(c, op, resized(x, part), [x] + starts, dynamic_slice_sizes=part)
    update = p.add(c, "slice", resized(x, part), [x])
    for d in part:
        update.slice_dimensions.add(start=0, limit=d, stride=1)
    return p.add(c, op, x.shape, [x, update] + starts)


@kind()
def concatenate(p, c, pool, _):
    x = p.pick(c, pool, 1)
    at = p.r.randrange(len(x.shape.dimensions))
    n = p.r.randint(1, 3)
    dims = list(x.shape.dimensions)
    dims[at] *= n
    return p.add(c, "concatenate", resized(x, dims), [x] * n, dimensions=[at])


@kind()
def gather(p, c, pool, _):
    x = p.pick(c, pool, 1)
    dims = list(x.shape.dimensions)
    indices = p.add(c, "constant", shape(S32, [p.r.choice(SIZES), 1]))
    rows = indices.shape.dimensions[0]
    if p.r.random() < 0.5:
        i = p.add(c, "gather", resized(x, [rows] + dims[1:]), [x, indices], gather_slice_sizes=[1] + dims[1:])
        g = i.gather_dimension_numbers
        g.offset_dims.extend(range(1, len(dims))), g.collapsed_slice_dims.append(0), g.start_index_map.append(0)
    else:
        update = p.add(c, "constant", resized(x, [rows] + dims[1:]))
        i = p.add(c, "scatter", x.shape, [x, indices, update], called_computation_ids=[p.combiner(x.shape.element_type)])
        g = i.scatter_dimension_numbers
        g.update_window_dims.extend(range(1, len(dims))), g.inserted_window_dims.append(0), g.scatter_dims_to_operand_dims.append(0)
    g.index_vector_dim = 1
    return i


@kind(3)
def reduction(p, c, pool, _):
    r, x = p.r, p.pick(c, pool, 1)
    gone = r.sample(range(len(x.shape.dimensions)), r.randint(1, len(x.shape.dimensions)))
    out = resized(x, [d for k, d in enumerate(x.shape.dimensions) if k not in gone])
    zero = p.scalar(c, x.shape.element_type)
    if r.random() < 0.2:
        return p.add(c, "reduce", tuple_of([out, out]), [x, x, zero, zero], dimensions=gone, called_computation_ids=[p.combiner(x.shape.element_type, 2)])
    return p.add(c, "reduce", out, [x, zero], dimensions=gone, called_computation_ids=[p.combiner(x.shape.element_type)])


@kind(2)
def windows(p, c, pool, _):
    r, x = p.r, p.pick(c, pool, 1)
    dims, zero = list(x.shape.dimensions), p.scalar(c, x.shape.element_type)
    i = p.add(c, "reduce-window", x.shape, [x, zero], called_computation_ids=[p.combiner(x.shape.element_type)])
    running = r.randrange(len(dims)) if r.random() < 0.4 else None
    for k, d in enumerate(dims):
        w = i.window.dimensions.add(size=1 if running is not None else r.choice([1, 2, 3]), stride=1, window_dilation=1, base_dilation=1)
        if k == running:
            w.size, w.padding_low, w.padding_high = r.choice([(2 * d - 1, d - 1, d - 1), (d, d - 1, 0)])
        elif running is None and r.random() < 0.3:
            w.padding_low = w.padding_high = 1
    if running is None and r.random() < 0.3:
        i.opcode, source = "select-and-scatter", p.add(c, "constant", resized(x, [max(1, d // 2) for d in dims]))
        i.operand_ids[:] = [x.id, source.id, zero.id]
        i.called_computation_ids.append(p.combiner(x.shape.element_type))
        # Operands precede their users.
        del c.instructions[-2:]
        c.instructions.add().CopyFrom(source)
        c.instructions.add().CopyFrom(i)
        return c.instructions[-1]
    return i


@kind(2)
def dot(p, c, pool, _):
    r = p.r
    a = [r.choice(SIZES) for _ in range(r.randint(1, 3))]
    element, k = r.choice(TYPES), r.choice(SIZES)
    x = p.add(c, "constant", shape(element, a + [k]))
    y = p.add(c, "constant", shape(r.choice([element, element, F32]), [k, r.choice(SIZES)]))
    i = p.add(c, "dot", shape(r.choice([F32, element]), a + [y.shape.dimensions[1]]), [x, y])
    i.dot_dimension_numbers.lhs_contracting_dimensions.append(len(a))
    i.dot_dimension_numbers.rhs_contracting_dimensions.append(0)
    return i


def fill_convolution(p, i, x, w, out):
    r, d = p.r, i.convolution_dimension_numbers
    i.window.SetInParent()
    d.input_batch_dimension, d.input_feature_dimension = 0, 1
    d.kernel_input_feature_dimension, d.kernel_output_feature_dimension = 1, 0
    d.output_batch_dimension, d.output_feature_dimension = 0, 1
    for k in range(2, len(x)):
        d.input_spatial_dimensions.append(k), d.kernel_spatial_dimensions.append(k), d.output_spatial_dimensions.append(k)
        i.window.dimensions.add(size=w[k], stride=r.choice([1, 1, 2, 3]), padding_low=r.choice([0, 0, 1, 2, -1, w[k] - 1]), padding_high=r.choice([0, 1]),
                                window_dilation=r.choice([1, 1, 2, 3]), base_dilation=r.choice([1, 1, 2, 4, 6]), window_reversal=r.random() < 0.2)
    i.feature_group_count, i.batch_group_count = r.choice([0, 1, 1, 2, 4]), r.choice([0, 1, 1, 1, 2])


@kind()
def convolution(p, c, pool, _):
    r, spatial = p.r, p.r.choice([0, 1, 2, 2])
    x = [r.choice([1, 2, 8]), r.choice([1, 4, 16])] + [r.choice([1, 5, 14, 32]) for _ in range(spatial)]
    w = [r.choice([1, 4, 8]), r.choice([1, 4])] + [r.choice([1, 3, 5, 40]) for _ in range(spatial)]
    out = [x[0], w[0]] + [r.choice([1, 5, 14, 30, 33]) for _ in range(spatial)]
    element = r.choice([F32, BF16, S8])
    a, b = p.add(c, "constant", shape(element, x)), p.add(c, "constant", shape(element, w))
    s = shape(element, out)
    if r.random() < 0.3:
        target = r.choice(["Forward", "BackwardInput", "BackwardFilter", "BiasActivationForward", "ForwardGraph", "X"])
        i = p.add(c, "custom-call", tuple_of([s, shape(U8, [100])]) if r.random() < 0.8 else s, [a, b], custom_call_target="__cudnn$conv" + target)
    else:
        i = p.add(c, "convolution", s, [a, b])
    fill_convolution(p, i, x, w, out)
    return i


@kind()
def library(p, c, pool, _):
    r, x = p.r, p.pick(c, pool, 1)
    out = p.array(r.choice([F32, BF16]))
    target = r.choice(["$lt$matmul", "$lt$matmul$f8", "$lt$matmul$mx", "$lt$groupedMatmul", "$gemm", "$lt$matmul$other", "$groupedMatmul"])
    i = p.add(c, "custom-call", tuple_of([out, shape(U8, [1000])]) if r.random() < 0.7 else out, [x, x], custom_call_target="__cublas" + target)
    at = r.randrange(len(x.shape.dimensions))
    i.backend_config = r.choice([
        '{"gemm_backend_config":{"alpha_real":1,"epilogue":"DEFAULT","dot_dimension_numbers":{"lhs_contracting_dimensions":["%d"]}}}' % at,
        '{"operation_queue_id":"0","gemmBackendConfig":{"dotDimensionNumbers":{"rhsContractingDimensions":[0], "lhsContractingDimensions" : [%d]},"beta":0}}' % at,
        '{}', '']).encode()
    if r.random() < 0.04:
        i.backend_config = odd_config(r).encode()
    return i


GEMM_FIELDS = ['"beta":1', '"beta":"1.5"', '"beta":"NaN"', '"beta":" 1"', '"lhs_stride":"12"', '"lhsStride":1e3', '"lhs_stride":1.0', '"grad_x":true',
               '"grad_x":"true"', '"epilogue":"BIAS"', '"epilogue":3', '"epilogue":"3"', '"precision_config":{"operand_precision":["HIGH",0]}',
               '"selected_algorithm":null', "'scale_mode':1", 'has_d_scale:false', '"dot_dimension_numbers":{"lhs_contracting_dimensions":0}']
BAD_FIELDS = ['"later_field":1', '"later_field":null', '"beta":01', '"beta":true', '"beta":NaN', '"beta":1e400', '"lhs_stride":1.5', '"lhs_stride":" 1"',
              '"lhs_stride":9223372036854775808', '"grad_x":1', '"epilogue":"bias"', '"epilogue":1.5', '"scale_mode":3000000000',
              '"precision_config":[]', '"selected_algorithm":1,"selectedAlgorithm":1', '"beta"', '"beta":[1]', '"Beta":1']
BAD_CONFIGS = ['{', '3', '[{}]', 'null', ' ', 'x', '{} x', '// {}', '{"gemm_backend_config":{},"collective_backend_config":{}}',
               '{"reification_cost":[{"name":"\\q"}]}', '{"cudnn_conv_backend_config":{"algorithm":{"tuning_knobs":{"a":1}}}}']
GOOD_CONFIGS = ['{"gemm_backend_config":{},}', ' {} ', '{"gemm_backend_config":null,"collective_backend_config":{}}', '{"reification_cost":{"name":"a\\u0041"}}',
                '{"cudnn_conv_backend_config":{"algorithm":{"workspace_size":"5","tuning_knobs":{"1":2}}}}', '{"force_earliest_schedule":false}']


def odd_config(r):
    """Of a cuBLAS call: as JSON may be written, and as no GpuBackendConfig may be."""
    fields = r.sample(GEMM_FIELDS, r.randint(1, 3)) + ([r.choice(BAD_FIELDS)] if r.random() < 0.3 else [])
    r.shuffle(fields)
    if r.random() < 0.6:
        return '{"gemm_backend_config":{%s}}' % ",".join(fields)
    return r.choice(GOOD_CONFIGS + BAD_CONFIGS[:len(GOOD_CONFIGS)] if r.random() < 0.7 else BAD_CONFIGS)


@kind()
def linear_algebra(p, c, pool, _):
    r, n = p.r, p.r.choice([1, 4, 16])
    a = p.add(c, "constant", shape(r.choice([F32, F64, C64]), [3, n, n]))
    op = r.choice(["cholesky", "triangular-solve", "fft", "sort", "topk", "map", "rng"])
    if op == "triangular-solve":
        return p.add(c, op, a.shape, [a, a])
    if op == "fft":
        return p.add(c, op, shape(C64, [3, n, n]), [a], fft_length=[n], fft_type=0)
    if op == "sort":
        return p.add(c, op, a.shape, [a], dimensions=[1], called_computation_ids=[p.combiner(a.shape.element_type)])
    if op == "topk":
        return p.add(c, op, tuple_of([a.shape, shape(S32, [3, n, n])]), [a], k=n)
    if op == "map":
        f = p.computation("mapped")
        x = p.add(f, "parameter", shape(a.shape.element_type), parameter_number=0)
        p.finish(f, p.add(f, r.choice(["sine", "exponential", "negate"]), x.shape, [x]))
        return p.add(c, op, a.shape, [a], dimensions=[0, 1, 2], called_computation_ids=[f.id])
    if op == "rng":
        return p.add(c, op, a.shape, [p.scalar(c, F32), p.scalar(c, F32)], distribution=1)
    return p.add(c, op, a.shape, [a])


@kind(2)
def collective(p, c, pool, _):
    r, x = p.r, p.pick(c, pool, 1)
    op = r.choice(["all-reduce", "all-reduce-start", "all-gather", "all-gather-start", "reduce-scatter", "all-to-all", "collective-permute"])
    n = r.choice([1, 2, 4])
    big = resized(x, [x.shape.dimensions[0] * n] + list(x.shape.dimensions)[1:])
    out = {"all-gather": big, "all-gather-start": tuple_of([x.shape, big])}.get(op, x.shape)
    several = op in ("all-reduce", "all-reduce-start", "all-to-all") and r.random() < 0.3
    i = p.add(c, op, tuple_of([x.shape, x.shape]) if several else out, [x, x] if several else [x])
    if op == "collective-permute":
        i.source_target_pairs.add(source=0, target=1)
        return i
    if r.random() < 0.5:
        i.replica_groups.add(replica_ids=list(range(n)))
    elif r.random() < 0.5:
        g = i.iota_collective_device_list
        g.num_replica_groups, g.num_devices_per_group = 2, n
        g.iota_reshape_dims.append(2 * n)
        g.iota_transpose_perm.append(0)
    if r.random() < 0.05:
        i.use_global_device_ids, i.channel_id = True, r.choice([0, 1, 1, 1])
    if op.startswith("all-reduce") or op == "reduce-scatter":
        i.called_computation_ids.append(p.combiner(x.shape.element_type))
    if op in ("all-gather", "reduce-scatter", "all-gather-start"):
        i.dimensions.append(0)
    return i


@kind()
def tuples(p, c, pool, _):
    some = [p.pick(c, pool) for _ in range(p.r.randint(1, 3))]
    t = p.add(c, "tuple", tuple_of([x.shape for x in some]), some)
    k = p.r.randrange(len(some))
    return t if p.r.random() < 0.5 else p.add(c, "get-tuple-element", some[k].shape, [t], tuple_index=k)


@kind(6)
def fusion(p, c, pool, depth):
    r = p.r
    if not depth:
        return binary(p, c, pool, depth)
    inputs = [r.choice(pool) if r.random() < 0.2 else p.pick(c, pool) for _ in range(r.randint(1, 5))]
    inputs = [x for x in inputs if x.shape.element_type != TOKEN] or [p.pick(c, pool)]
    f, s = p.body("fused", [x.shape for x in inputs], r.randint(1, 12), depth - 1)
    return p.add(c, "fusion", s, inputs, fusion_kind=r.choice(["kLoop", "kLoop", "kInput", "kOutput", "kCustom"]), called_computation_ids=[f.id])


@kind(2)
def nested(p, c, pool, depth):
    r = p.r
    if not depth:
        return unary(p, c, pool, depth)
    some = [p.pick(c, pool) for _ in range(r.randint(1, 3))]
    t = p.add(c, "tuple", tuple_of([x.shape for x in some]), some)
    op = r.choice(["while", "call", "conditional"])
    if op == "while":
        body, _ = p.body("body", [t.shape], r.randint(1, 8), depth - 1)
        test, _ = p.body("test", [t.shape], r.randint(1, 3), 0)
        return p.add(c, op, t.shape, [t], called_computation_ids=[body.id, test.id])
    if op == "call":
        f, s = p.body("called", [x.shape for x in some], r.randint(1, 8), depth - 1)
        return p.add(c, op, s, some, called_computation_ids=[f.id])
    branches = [p.body("branch", [t.shape], r.randint(1, 6), depth - 1) for _ in range(r.randint(1, 3))]
    return p.add(c, op, branches[0][1], [p.scalar(c)] + [t] * len(branches), called_computation_ids=[b.id for b, _ in branches])


@kind(2)
def asynchronous(p, c, pool, depth):
    """What it starts has code that its root does not need, most times."""
    r = p.r
    if not depth:
        return binary(p, c, pool, depth)
    some = [p.pick(c, pool) for _ in range(r.randint(1, 3))]
    f, s = p.body("started", [x.shape for x in some], r.randint(1, 8), depth - 1)
    done = p.done(c, p.begun(c, f, s, some))
    if r.random() < 0.3:
        # Behind the start: XProf has no costs of a program that starts what a call before came to.
        p.add(c, "call", s, some, called_computation_ids=[f.id], control_predecessor_ids=[done.id])
    return done


# ---- what once differed ----

class Case(CostProgram):
    """A program of one thing: `make` adds to the entry computation and returns its root."""
    def __init__(self, make):
        self.start("case")
        c = self.computation("main")
        self.entry(self.finish(c, make(self, c)))

    def parameters(self, c, *shapes):
        return [self.add(c, "parameter", s, parameter_number=k) for k, s in enumerate(shapes)]

    def slice(self, c, x, dims):
        i = self.add(c, "slice", shape(F32, dims), [x])
        for d in dims:
            i.slice_dimensions.add(start=0, limit=d, stride=1)
        return i

    def update(self, c, x, part):
        return self.add(c, "dynamic-update-slice", x.shape, [x, part, self.scalar(c), self.scalar(c)])

    def fused_call(self, c, body):
        """A fusion that calls `body` with eight elements, of which it computes the negation, and with none."""
        some, none = shape(F32, [8]), shape(F32, [4, 0])
        called, f = self.computation("called"), self.computation("fused")
        done = self.finish(called, body(called, *self.parameters(called, some, none)))
        x, e = self.parameters(f, some, none)
        self.finish(f, self.add(f, "call", done.program_shape.result, [self.add(f, "negate", some, [x]), e], called_computation_ids=[done.id]))
        return self.add(c, "fusion", done.program_shape.result, self.parameters(c, some, none), fusion_kind="kLoop", called_computation_ids=[f.id])


def slice_of_nothing(p, c):
    """Infinitely much of an array without elements is used."""
    return p.fused_call(c, lambda called, x, e: p.slice(called, e, [1, 1]))


def update_of_nothing(p, c):
    """Less than nothing is left of it."""
    return p.fused_call(c, lambda called, x, e: p.update(called, e, p.add(called, "constant", shape(F32, [1, 1]))))


def slice_and_update_of_nothing(p, c):
    """Both together are no number."""
    return p.fused_call(c, lambda called, x, e: p.update(called, e, p.slice(called, e, [1, 1])))


def nothing_of_nothing(p, c):
    return p.fused_call(c, lambda called, x, e: p.slice(called, e, [2, 0]))


def custom_fusion_of_fewer_operands(p, c):
    """A gather of two operands in a fusion of one, in a call: what it reads of its second counts for the call's second."""
    x, y = shape(F32, [16, 4]), shape(F32, [3])
    f, called = p.computation("fused"), p.computation("called")
    indices = p.add(f, "constant", shape(S32, [2, 1]))
    i = p.add(f, "gather", shape(F32, [2, 4]), [*p.parameters(f, x), indices], gather_slice_sizes=[1, 4])
    g = i.gather_dimension_numbers
    g.offset_dims.append(1), g.collapsed_slice_dims.append(0), g.start_index_map.append(0)
    g.index_vector_dim = 1
    p.finish(f, i)
    a, b = p.parameters(called, x, y)
    p.add(called, "negate", y, [b])
    p.finish(called, p.add(called, "fusion", i.shape, [a], fusion_kind="kCustom", called_computation_ids=[f.id]))
    return p.add(c, "call", i.shape, p.parameters(c, x, y), called_computation_ids=[called.id])


def nested_fusion(p, c, add):
    """A fusion in a fusion that negates its first operand and does not use its second, and what `add` adds to it."""
    s = shape(F32, [8])
    inner, f = p.computation("inner"), p.computation("fused")
    x, _ = p.parameters(inner, s, s)
    p.finish(inner, p.add(inner, "negate", s, [add(inner, x) or x]))
    x, y = p.parameters(f, s, s)
    p.finish(f, p.add(f, "fusion", s, [x, y], fusion_kind="kLoop", called_computation_ids=[inner.id]))
    return p.add(c, "fusion", s, p.parameters(c, s, s), fusion_kind="kLoop", called_computation_ids=[f.id])


def fused_bitcast(p, c):
    """A bitcast to the same shape: a fusion that has one is not elementwise, so what it does not use of its second operand is not read."""
    return nested_fusion(p, c, lambda inner, x: p.add(inner, "bitcast", x.shape, [x]))


def fused_iota(p, c):
    """Neither is one that has an iota, also unused."""
    return nested_fusion(p, c, lambda inner, x: p.add(inner, "iota", x.shape, dimensions=[0]) and None)


def fused_id(p, c):
    return nested_fusion(p, c, lambda inner, x: p.add(inner, "replica-id", shape(U32)) and None)


def fused_partition(p, c):
    return nested_fusion(p, c, lambda inner, x: p.add(inner, "partition-id", shape(U32)) and None)


def fused_barrier(p, c):
    return nested_fusion(p, c, lambda inner, x: p.add(inner, "opt-barrier", x.shape, [x]))


def fused_copy(p, c):
    """A copy leaves it elementwise: all of both is read."""
    return nested_fusion(p, c, lambda inner, x: p.add(inner, "copy", x.shape, [x]))


def called_start(p, c, op, dims, **fields):
    """A call of a computation that starts and ends an operation: both have the costs of that, the start itself has none."""
    x, y = shape(F32, [8, 4]), shape(F32, dims)
    started, called = p.computation("started"), p.computation("called")
    a, = p.parameters(started, x)
    p.finish(started, p.add(started, op, y, [a], **fields))
    b, = p.parameters(called, x)
    p.finish(called, p.done(called, p.begun(called, started, y, [b])))
    return p.add(c, "call", y, p.parameters(c, x), called_computation_ids=[called.id])


def started_twice(p, c):
    """What is started again is not visited again: the second start keeps what an async op has by its shapes."""
    x, started = shape(F32, [8, 4]), p.computation("started")
    a, = p.parameters(started, x)
    p.finish(started, p.add(started, "sqrt", x, [a]))
    b, = p.parameters(c, x)
    return p.done(c, p.begun(c, started, x, [p.done(c, p.begun(c, started, x, [b]))]))


def started_code(p, c):
    """Of what is started within what is started that counts which a root needs or waits for, and what unneeded code calls does not."""
    x, called, inner, outer = shape(F32, [8, 4]), p.computation("called"), p.computation("inner"), p.computation("outer")
    a, = p.parameters(called, x)
    p.finish(called, p.add(called, "sine", x, [a]))
    a, = p.parameters(inner, x)
    waited = p.add(inner, "cosine", x, [a])
    p.add(inner, "call", x, [a], called_computation_ids=[called.id])
    p.finish(inner, p.add(inner, "sqrt", x, [a], control_predecessor_ids=[waited.id]))
    a, = p.parameters(outer, x)
    p.add(outer, "tanh", x, [a])
    p.finish(outer, p.done(outer, p.begun(outer, inner, x, [a])))
    begins = p.computation("begins")
    a, = p.parameters(begins, x)
    p.finish(begins, p.done(begins, p.begun(begins, outer, x, [a])))
    return p.add(c, "call", x, p.parameters(c, x), called_computation_ids=[begins.id])


def chain(p, c):
    """Code that starts and calls the one before it, seven times; sums are rounded, in the order of what each root needs."""
    x, before = shape(F32, [(1 << 21) + 1]), p.computation("code")
    a, = p.parameters(before, x)
    p.finish(before, p.add(before, "sine", x, [a]))
    for _ in range(7):
        code = p.computation("code")
        a, = p.parameters(code, x)
        done = p.done(code, p.begun(code, before, x, [a]))
        called = p.add(code, "call", x, [a], called_computation_ids=[before.id])
        p.finish(code, p.add(code, "add", x, [done, called]))
        before = code
    return p.add(c, "call", x, p.parameters(c, x), called_computation_ids=[before.id])


def order_of_sums(p, c):
    """Floats that are added in another order give another sum: an operand comes before what is waited for, code that is not needed before the root."""
    x, one, called = shape(F32, [1 << 24]), shape(F32, [1]), p.computation("called")
    a, b = p.parameters(called, x, one)
    few = [p.add(called, "add", one, [b, b]) for _ in range(3)]
    many = p.add(called, "abs", x, [a])
    last = p.add(called, "add", x, [many, many], control_predecessor_ids=[i.id for i in few])
    p.add(called, "add", one, [b, b])
    p.finish(called, last)
    return p.add(c, "call", x, p.parameters(c, x, one), called_computation_ids=[called.id])


def many_results(p, c):
    """Bytes of a result's arrays are added as floats, too."""
    some = [shape(F32, [1000, 1000, 3, 31])] + 3 * [shape(C64, [1])]
    return p.add(c, "opt-barrier", tuple_of(some), p.parameters(c, tuple_of(some)))


def started_root(p, c):
    return called_start(p, c, "sqrt", [8, 4])


def started_scatter(p, c):
    """The start of a reduce-scatter has its flops and bytes, too."""
    return called_start(p, c, "reduce-scatter", [4, 4], called_computation_ids=[p.combiner(F32)], dimensions=[0])


CASES = [slice_of_nothing, update_of_nothing, slice_and_update_of_nothing, nothing_of_nothing, custom_fusion_of_fewer_operands,
         fused_bitcast, fused_iota, fused_id, fused_partition, fused_barrier, fused_copy, started_root, started_scatter, started_twice, started_code,
         chain, order_of_sums, many_results]
