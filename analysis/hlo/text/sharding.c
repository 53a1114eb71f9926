// SPDX-License-Identifier: Apache-2.0
// Shardings: tiled, by a mesh's axes, and tuples of them.  XLA normalizes a sharding when it reads
// it.  Compilers write normal forms; of the others, this supports only those that are equivalent to
// another word ({replicated}, {manual}) or to a shorter list of devices.

#include "analysis/hlo/fields.h"
#include "analysis/hlo/module/shape.h"
#include "analysis/hlo/text/impl.h"
#include "base/vec.h"

enum type { REPLICATED, MAXIMAL, TUPLE, OTHER, MANUAL, UNKNOWN, UNREDUCED };

static xpl_str_t type_word(uint64_t type) {
    switch (type) {
        case REPLICATED: return XPL_STR("replicated");
        case MAXIMAL: return XPL_STR("maximal");
        case TUPLE: return XPL_STR("tuple");
        case MANUAL: return XPL_STR("manual");
        case UNREDUCED: return XPL_STR("unreduced");
        default: return XPL_STR("unknown");
    }
}

// ---- iota ----

enum { MAX_RANK = 32 };
struct iota {
    int64_t dims[MAX_RANK], perm[MAX_RANK]; // the perm-th dimension of dims
    unsigned n;
};

// False for a list that is too long, or not a permutation.
static bool read_iota(const struct xpl_hlo_message *m, uint32_t reshape, uint32_t transpose,
                      struct iota *ret) {
    struct xpl_hlo_ints v = xpl_hlo_ints_begin(m, reshape);
    int64_t x;
    ret->n = 0;
    while (xpl_hlo_ints_next(&v, &x)) {
        if (ret->n == MAX_RANK) return false;
        ret->dims[ret->n++] = x;
    }
    unsigned n = 0;
    uint32_t seen = 0;
    v = xpl_hlo_ints_begin(m, transpose);
    while (xpl_hlo_ints_next(&v, &x)) {
        if (n == ret->n || x < 0 || x >= ret->n || seen >> x & 1) return false;
        seen |= UINT32_C(1) << x;
        ret->perm[n++] = x;
    }
    if (n == 0)
        for (; n < ret->n; n++)
            ret->perm[n] = n;
    return n == ret->n;
}

// Dimensions of one device say nothing, and neighbours that stay neighbours are one.
static void normalize_iota(struct iota *v) {
    unsigned at[MAX_RANK], n = 0; // of each dimension in perm
    bool joined[MAX_RANK] = {false};
    for (unsigned i = 0; i < v->n; i++) // without dimensions of one
        if (v->dims[v->perm[i]] != 1) v->perm[n++] = v->perm[i];
    for (unsigned i = 0; i < n; i++)
        at[v->perm[i]] = i;
    int64_t dims[MAX_RANK], number[MAX_RANK] = {0};
    unsigned k = 0;
    int64_t before = -1;
    for (int64_t d = 0; d < v->n; d++) {
        if (v->dims[d] == 1) continue;
        const bool join = before >= 0 && at[d] == at[before] + 1;
        if (join)
            dims[k - 1] = (int64_t)((uint64_t)dims[k - 1] * (uint64_t)v->dims[d]);
        else
            dims[k++] = v->dims[d];
        joined[at[d]] = join;
        number[d] = (int64_t)k - 1;
        before = d;
    }
    unsigned m = 0;
    for (unsigned i = 0; i < n; i++)
        if (!joined[i]) v->perm[m++] = number[v->perm[i]];
    memcpy(v->dims, dims, k * sizeof *dims);
    v->n = k;
}

static void put_list(struct hlo_text *t, const int64_t *v, unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        if (i) TXT(t, ",");
        txt_int(t, v[i]);
    }
}

void txt_iota(struct hlo_text *t, const struct xpl_hlo_message *m, uint32_t reshape,
              uint32_t transpose) {
    struct iota v;
    if (!read_iota(m, reshape, transpose, &v)) {
        txt_malformed(t);
        return;
    }
    normalize_iota(&v);
    TXT(t, "[");
    if (v.n == 0) TXT(t, "1");
    put_list(t, v.dims, v.n);
    TXT(t, "]");
    if (v.n < 2) return;
    TXT(t, "T(");
    put_list(t, v.perm, v.n);
    TXT(t, ")");
}

// ---- metadata ----

static bool is_reduction(xpl_bytes_t metadata) {
    struct xpl_hlo_message m;
    xpl_hlo_message_read(metadata, &m);
    return xpl_str_eq(xpl_hlo_str(&m, HLO_META_OP_TYPE), XPL_STR("sdy::reduction_op"));
}

// `all`: in braces however few there are.  `unreduced`: XLA notes how parts are to be reduced,
// behind the rest.
static void put_metadata(struct hlo_text *t, const struct xpl_hlo_message *m, uint32_t num,
                         bool all, bool unreduced) {
    struct xpl_hlo_each e = xpl_hlo_each_begin(m, num);
    size_t n = 0, shown = 0;
    xpl_bytes_t one, reduction = {0};
    for (; xpl_hlo_each_next(&e, &one); n++)
        if (unreduced && !reduction.ptr && is_reduction(one)) reduction = one;
    n += unreduced && !reduction.ptr;
    if (!t->form->metadata || n == 0) return;
    TXT(t, "metadata=");
    if (all || n > 1) TXT(t, "{");
    e = xpl_hlo_each_begin(m, num);
    while (!txt_stopped(t) && xpl_hlo_each_next(&e, &one)) {
        if (reduction.ptr && one.ptr == reduction.ptr) continue;
        if (shown++) TXT(t, ", ");
        (void)txt_op_metadata(t, one, false);
    }
    if (unreduced && shown) TXT(t, ", ");
    if (reduction.ptr)
        (void)txt_op_metadata(t, reduction, false);
    else if (unreduced)
        TXT(t, "{op_type=\"sdy::reduction_op\" op_name=\"SUM\"}");
    if (all || n > 1) TXT(t, "}");
}

// ---- meshes ----

enum { MESH_AXES = 1, MESH_DEVICES = 2, MESH_IOTA = 3, AXIS_NAME = 1, AXIS_SIZE = 2 };

static bool is_identity(xpl_bytes_t transform) {
    struct xpl_hlo_message m;
    struct iota v;
    xpl_hlo_message_read(transform, &m);
    if (!read_iota(&m, 1, 2, &v)) return false;
    normalize_iota(&v);
    return v.n < 2;
}

void txt_mesh(struct hlo_text *t, xpl_bytes_t mesh) {
    struct xpl_hlo_message m, axis;
    txt_read(t, mesh, &m);
    struct xpl_hlo_each e = xpl_hlo_each_begin(&m, MESH_AXES);
    bool first = true;
    TXT(t, "mesh[");
    for (xpl_bytes_t one; !txt_stopped(t) && xpl_hlo_each_next(&e, &one); first = false) {
        txt_read(t, one, &axis);
        if (!first) TXT(t, ",");
        TXT(t, "'");
        txt_str(t, xpl_hlo_str(&axis, AXIS_NAME));
        TXT(t, "'=");
        txt_int(t, xpl_hlo_int(&axis, AXIS_SIZE));
    }
    TXT(t, "]");
    if (xpl_hlo_ints_count(&m, MESH_DEVICES)) {
        TXT(t, ", device_ids=(");
        txt_ints(t, xpl_hlo_ints_begin(&m, MESH_DEVICES), XPL_STR(","));
        TXT(t, ")");
    } else if (xpl_hlo_has(&m, MESH_IOTA) && !is_identity(xpl_hlo_bytes(&m, MESH_IOTA))) {
        txt_read(t, xpl_hlo_bytes(&m, MESH_IOTA), &axis);
        TXT(t, ", device_ids=(");
        txt_iota(t, &axis, 1, 2);
        TXT(t, ")");
    }
}

void txt_axes_read(xpl_bytes_t mesh, struct txt_axes *ret) {
    struct xpl_hlo_message m, axis;
    xpl_hlo_message_read(mesh, &m);
    struct xpl_hlo_each e = xpl_hlo_each_begin(&m, MESH_AXES);
    xpl_bytes_t one;
    for (ret->n = 0; ret->n < TXT_MAX_AXES && xpl_hlo_each_next(&e, &one); ret->n++) {
        xpl_hlo_message_read(one, &axis);
        ret->names[ret->n] = xpl_hlo_str(&axis, AXIS_NAME);
    }
}

void txt_axis(struct hlo_text *t, const struct txt_axes *axes, xpl_bytes_t axis) {
    struct xpl_hlo_message m, part;
    txt_read(t, axis, &m);
    const uint64_t n = (uint64_t)xpl_hlo_int(&m, 1);
    TXT(t, "'");
    if (n < axes->n) txt_str(t, axes->names[n]);
    TXT(t, "'");
    if (!xpl_hlo_has(&m, 2)) return;
    txt_read(t, xpl_hlo_bytes(&m, 2), &part);
    TXT(t, ":(");
    txt_int(t, xpl_hlo_int(&part, 1));
    TXT(t, ")");
    txt_int(t, xpl_hlo_int(&part, 2));
}

static size_t put_axes(struct hlo_text *t, const struct txt_axes *axes,
                       const struct xpl_hlo_message *m, uint32_t num) {
    struct xpl_hlo_each e = xpl_hlo_each_begin(m, num);
    size_t n = 0;
    for (xpl_bytes_t one; !txt_stopped(t) && xpl_hlo_each_next(&e, &one); n++) {
        if (n) TXT(t, ", ");
        txt_axis(t, axes, one);
    }
    return n;
}

// ---- named ----

enum {
    NAMED_MESH = 2,
    NAMED_DIMS = 3,
    NAMED_REPLICATED = 4,
    NAMED_UNREDUCED = 5,
    NAMED_METADATA = 6,
    NAMED_MANUAL = 7,
    NAMED_REDUCTION = 8,
};

static size_t count_each(const struct xpl_hlo_message *m, uint32_t num) {
    struct xpl_hlo_each e = xpl_hlo_each_begin(m, num);
    size_t n = 0;
    for (xpl_bytes_t one; xpl_hlo_each_next(&e, &one);)
        n++;
    return n;
}

static void put_named_dims(struct hlo_text *t, const struct xpl_hlo_message *m,
                           const struct txt_axes *axes) {
    struct xpl_hlo_each e = xpl_hlo_each_begin(m, NAMED_DIMS);
    struct xpl_hlo_message dim;
    bool first = true;
    TXT(t, ", [");
    for (xpl_bytes_t one; !txt_stopped(t) && xpl_hlo_each_next(&e, &one); first = false) {
        txt_read(t, one, &dim);
        if (!first) TXT(t, ", ");
        TXT(t, "{");
        const size_t n = put_axes(t, axes, &dim, 1);
        if (!xpl_hlo_bool(&dim, 2)) { // more axes may follow
            if (n) TXT(t, ", ");
            TXT(t, "?");
        }
        TXT(t, "}");
    }
    TXT(t, "]");
}

static void put_named_set(struct hlo_text *t, const struct xpl_hlo_message *m,
                          const struct txt_axes *axes, uint32_t num, const char *key) {
    if (!xpl_hlo_has(m, num)) return;
    txt_str(t, xpl_str_from(key));
    TXT(t, "{");
    put_axes(t, axes, m, num);
    TXT(t, "}");
}

static void put_named_axes(struct hlo_text *t, const struct xpl_hlo_message *m, xpl_bytes_t mesh) {
    static const char *const unreduced[] = {", unreduced=", ", unreduced=max", ", unreduced=min"};
    const uint64_t reduction = (uint64_t)xpl_hlo_int(m, NAMED_REDUCTION);
    struct txt_axes axes;
    txt_axes_read(mesh, &axes);
    put_named_dims(t, m, &axes);
    put_named_set(t, m, &axes, NAMED_REPLICATED, ", replicated=");
    put_named_set(t, m, &axes, NAMED_UNREDUCED, unreduced[reduction < 3 ? reduction : 0]);
    put_named_set(t, m, &axes, NAMED_MANUAL, ", manual=");
}

static void put_named(struct hlo_text *t, xpl_bytes_t sharding) {
    struct xpl_hlo_message m, mesh;
    txt_read(t, sharding, &m);
    const xpl_bytes_t mesh_bytes = xpl_hlo_bytes(&m, NAMED_MESH);
    txt_read(t, mesh_bytes, &mesh);
    const size_t axes = count_each(&mesh, MESH_AXES);
    const bool plain = !xpl_hlo_has(&m, NAMED_DIMS) && !xpl_hlo_has(&m, NAMED_REPLICATED) &&
                       !xpl_hlo_has(&m, NAMED_UNREDUCED);
    TXT(t, "{");
    if (axes == 0 && xpl_hlo_ints_count(&mesh, MESH_DEVICES) == 1) {
        TXT(t, "single_device[device_id=");
        txt_ints(t, xpl_hlo_ints_begin(&mesh, MESH_DEVICES), XPL_STR(","));
        TXT(t, "]");
    } else {
        txt_mesh(t, mesh_bytes);
        if (plain && !xpl_hlo_has(&m, NAMED_MANUAL))
            TXT(t, ", replicated");
        else if (plain && count_each(&m, NAMED_MANUAL) == axes)
            TXT(t, ", manual");
        else
            put_named_axes(t, &m, mesh_bytes);
    }
    if (t->form->metadata && xpl_hlo_has(&m, NAMED_METADATA)) TXT(t, ", ");
    put_metadata(t, &m, NAMED_METADATA, true, false);
    TXT(t, "}");
}

// ---- tiles ----

// The kinds of the dimensions after those of the data.
struct last_dims {
    size_t n;
    bool same; // all of one type,
    int64_t type;
    int64_t last;   // type of the last
    bool unreduced; // one of them
};

static struct last_dims read_last_dims(const struct xpl_hlo_message *m) {
    struct last_dims ret = {.same = true};
    if (xpl_hlo_bool(m, HLO_SHARDING_REPLICATE_LAST)) {
        ret.n = 1;
        return ret;
    }
    struct xpl_hlo_ints v = xpl_hlo_ints_begin(m, HLO_SHARDING_LAST_DIMS);
    for (int64_t x; xpl_hlo_ints_next(&v, &x); ret.n++) {
        if (ret.n == 0) ret.type = x;
        ret.same &= x == ret.type;
        ret.last = x;
        ret.unreduced |= x == UNREDUCED;
    }
    return ret;
}

// Of which type a tiling is that splits nothing; OTHER when it splits.
static int64_t effective_type(const struct xpl_hlo_message *m, const struct last_dims *last) {
    struct xpl_hlo_ints v = xpl_hlo_ints_begin(m, HLO_SHARDING_DIMENSIONS);
    const size_t n = xpl_hlo_ints_count(m, HLO_SHARDING_DIMENSIONS);
    if (!last->same || n < last->n) return OTHER;
    int64_t x;
    for (size_t i = 0; i < n - last->n && xpl_hlo_ints_next(&v, &x); i++)
        if (x != 1) return OTHER;
    return last->n ? last->type : REPLICATED;
}

static void put_last_dims(struct hlo_text *t, const struct xpl_hlo_message *m,
                          const struct last_dims *last) {
    if (last->n == 0) return;
    if (last->same && last->type == REPLICATED) {
        TXT(t, " last_tile_dim_replicate");
        return;
    }
    struct xpl_hlo_ints v = xpl_hlo_ints_begin(m, HLO_SHARDING_LAST_DIMS);
    int64_t x;
    TXT(t, " last_tile_dims={");
    for (bool first = true; xpl_hlo_ints_next(&v, &x); first = false) {
        if (!first) TXT(t, ", ");
        txt_str(t, type_word((uint64_t)x));
    }
    TXT(t, "}");
}

static int by_number(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

// Sorts the devices of the last dimension that hold equal data: `group` of them each time.
static void put_sorted_devices(struct hlo_text *t, const struct xpl_hlo_message *m, size_t group) {
    struct xpl_hlo_ints v = xpl_hlo_ints_begin(m, HLO_SHARDING_DEVICES);
    int64_t *const ids = xpl_sys_alloc(group * sizeof *ids);
    if (!ids) {
        t->no_memory = t->failed = t->cut = true;
        return;
    }
    for (bool first = true; !txt_stopped(t);) {
        size_t n = 0;
        while (n < group && xpl_hlo_ints_next(&v, &ids[n]))
            n++;
        if (n == 0) break;
        xpl_sort(ids, n, sizeof *ids, by_number);
        for (size_t i = 0; i < n; i++, first = false) {
            if (!first) TXT(t, ",");
            txt_int(t, ids[i]);
        }
    }
    xpl_sys_free(ids);
}

static void put_devices(struct hlo_text *t, const struct xpl_hlo_message *m,
                        const struct last_dims *last) {
    const size_t n = xpl_hlo_ints_count(m, HLO_SHARDING_DEVICES);
    struct xpl_hlo_ints v = xpl_hlo_ints_begin(m, HLO_SHARDING_DIMENSIONS);
    int64_t size = 0;
    while (xpl_hlo_ints_next(&v, &size)) // the last of them counts
        ;
    if (last->n && last->last == REPLICATED && size > 1 && (uint64_t)size <= n)
        put_sorted_devices(t, m, (size_t)size);
    else
        txt_ints(t, xpl_hlo_ints_begin(m, HLO_SHARDING_DEVICES), XPL_STR(","));
}

static void put_tiled(struct hlo_text *t, const struct xpl_hlo_message *m,
                      const struct last_dims *last) {
    TXT(t, "devices=[");
    txt_ints(t, xpl_hlo_ints_begin(m, HLO_SHARDING_DIMENSIONS), XPL_STR(","));
    TXT(t, "]");
    if (xpl_hlo_ints_count(m, HLO_SHARDING_IOTA_RESHAPE)) {
        TXT(t, "<=");
        txt_iota(t, m, HLO_SHARDING_IOTA_RESHAPE, HLO_SHARDING_IOTA_TRANSPOSE);
    } else {
        put_devices(t, m, last);
    }
    put_last_dims(t, m, last);
}

static void put_separator(struct hlo_text *t, size_t i) {
    if (i) TXT(t, ", ");
    if (i == 0 || i % 5) return;
    TXT(t, "/*index=");
    txt_uint(t, i);
    TXT(t, "*/");
}

static void put_tuple(struct hlo_text *t, const struct xpl_hlo_message *m) {
    struct xpl_hlo_each e = xpl_hlo_each_begin(m, HLO_SHARDING_TUPLE);
    size_t i = 0;
    TXT(t, "{");
    for (xpl_bytes_t one; !txt_stopped(t) && xpl_hlo_each_next(&e, &one); i++) {
        put_separator(t, i);
        txt_sharding(t, one);
    }
    TXT(t, "}");
}

static void put_simple(struct hlo_text *t, const struct xpl_hlo_message *m) {
    int64_t type = xpl_hlo_int(m, HLO_SHARDING_TYPE);
    const struct last_dims last = read_last_dims(m);
    const bool tiled = type == OTHER;
    if (tiled) type = effective_type(m, &last);
    TXT(t, "{");
    if (type == OTHER)
        put_tiled(t, m, &last);
    else
        txt_str(t, type_word((uint64_t)type));
    if (type == MAXIMAL) {
        TXT(t, " device=");
        struct xpl_hlo_ints v = xpl_hlo_ints_begin(m, HLO_SHARDING_DEVICES);
        int64_t device = 0;
        if (!xpl_hlo_ints_next(&v, &device)) txt_malformed(t);
        txt_int(t, device);
    }
    if (xpl_hlo_bool(m, HLO_SHARDING_IS_GROUP)) {
        if (xpl_hlo_int(m, HLO_SHARDING_GROUP_TYPE))
            TXT(t, " shard_like ");
        else
            TXT(t, " shard_as ");
        txt_int(t, xpl_hlo_int(m, HLO_SHARDING_GROUP_ID));
    }
    const bool unreduced = type == UNREDUCED || (tiled && last.unreduced);
    if (t->form->metadata && (unreduced || xpl_hlo_has(m, HLO_SHARDING_METADATA))) TXT(t, " ");
    put_metadata(t, m, HLO_SHARDING_METADATA, false, unreduced);
    TXT(t, "}");
}

void txt_sharding(struct hlo_text *t, xpl_bytes_t sharding) {
    struct xpl_hlo_message m;
    if (!txt_enter(t)) return;
    txt_read(t, sharding, &m);
    if (xpl_hlo_has(&m, HLO_SHARDING_NAMED))
        put_named(t, xpl_hlo_bytes(&m, HLO_SHARDING_NAMED));
    else if (xpl_hlo_int(&m, HLO_SHARDING_TYPE) == TUPLE)
        put_tuple(t, &m);
    else
        put_simple(t, &m);
    txt_leave(t);
}

// ---- of instructions ----

// Arrays and the like in a shape; an empty tuple has none.
static size_t count_leaves(struct hlo_text *t, xpl_bytes_t shape) {
    struct xpl_hlo_shape s;
    xpl_hlo_shape_read(shape, &s);
    if (s.type != HLO_TYPE_TUPLE) return 1;
    if (!txt_enter(t)) return 0;
    struct xpl_hlo_each e = xpl_hlo_shape_parts(&s);
    size_t n = 0;
    for (xpl_bytes_t part; !txt_stopped(t) && xpl_hlo_each_next(&e, &part);)
        n += count_leaves(t, part);
    txt_leave(t);
    return n;
}

void txt_instruction_sharding(struct hlo_text *t, xpl_bytes_t sharding, xpl_bytes_t shape) {
    struct xpl_hlo_message m;
    struct xpl_hlo_shape s;
    txt_read(t, sharding, &m);
    xpl_hlo_shape_read(shape, &s);
    const bool tuple =
        !xpl_hlo_has(&m, HLO_SHARDING_NAMED) && xpl_hlo_int(&m, HLO_SHARDING_TYPE) == TUPLE;
    if (s.type != HLO_TYPE_TUPLE || tuple) {
        txt_sharding(t, sharding);
        return;
    }
    const size_t leaves = count_leaves(t, shape), n = leaves ? leaves : 1;
    TXT(t, "{");
    for (size_t i = 0; i < n && !txt_stopped(t); i++) {
        put_separator(t, i);
        txt_sharding(t, sharding);
    }
    TXT(t, "}");
}
