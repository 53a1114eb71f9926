// SPDX-License-Identifier: Apache-2.0
// What bad input gets: a status, never a crash, and JSON that stays valid.
//   bad_inputs TESTS_DIR
// Every prefix of small profiles, profiles mangled by a UTF-8 round trip, bytes flipped, length
// fields near 2^64, nesting bombs, a million planes, ids and times that make no sense, names that
// are no UTF-8.
#include <stdio.h>

#include "analysis/products/values.h"
#include "analysis/tools/tool.h"
#include "analysis/wire/wire.h"
#include "base/arena.h"
#include "tests/check.h"
#include "tests/golden/value.h"

static const size_t limit = (size_t)256 << 20;

static xpl_bytes_t slurp(const char *dir, const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *const f = fopen(path, "rb");
    if (!f) fprintf(stderr, "cannot open %s\n", path);
    CHECK(f);
    CHECK(fseek(f, 0, SEEK_END) == 0);
    const long n = ftell(f);
    CHECK(n >= 0 && fseek(f, 0, SEEK_SET) == 0);
    uint8_t *const p = malloc((size_t)n + 1);
    CHECK(p && fread(p, 1, (size_t)n, f) == (size_t)n);
    fclose(f);
    return (xpl_bytes_t){p, (size_t)n};
}

// An exact-size copy, so that a sanitizer sees one byte too far.
static xpl_bytes_t exact(const uint8_t *p, size_t n) {
    uint8_t *const q = malloc(n ? n : 1);
    CHECK(q);
    if (n) memcpy(q, p, n);
    return (xpl_bytes_t){q, n};
}

static void release(xpl_bytes_t b) {
    union {
        const void *in;
        void *out;
    } u = {.in = b.ptr};
    free(u.out);
}

static void check_json(const struct xpl_buf *out) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of((size_t)1 << 30);
    CHECK(!out->failed);
    CHECK(value_parse(&a, (xpl_str_t){(const char *)out->p, out->n}));
}

static void check_error(xpl_status_t s, const struct xpl_error *err, xpl_bytes_t in) {
    if (s == XPL_OK) return;
    if (s != XPL_DATA_LOSS && s != XPL_RESOURCE_EXHAUSTED)
        fprintf(stderr, "%s: %s (%s:%d)\n", xpl_status_name(s), err->msg, err->file, err->line);
    CHECK(s == XPL_DATA_LOSS || s == XPL_RESOURCE_EXHAUSTED);
    CHECK(err->msg[0]);
    if (s == XPL_DATA_LOSS) CHECK(err->offset <= in.len);
}

// Makes a product; `*ret` is NULL when that failed.
static xpl_status_t make(const struct xpl_product *p, xpl_bytes_t in, unsigned variant, void **ret,
                         struct xpl_error *err) {
    struct xpl_exec exec = xpl_exec_serial();
    const struct xpl_product_input input = {
        .profile = in, .variant = variant, .exec = &exec, .limit = limit};
    *ret = NULL;
    return p->make(&input, ret, err);
}

static void render_one(const struct xpl_tool *t, bool exact, const struct xpl_tool_host *hosts,
                       size_t n) {
    const struct xpl_option o = {XPL_STR("xprof_exact"), exact ? XPL_STR("1") : XPL_STR("0")};
    struct xpl_exec exec = xpl_exec_serial();
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(limit);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(limit);
    struct xpl_error err = {0};
    void *options;
    CHECK_EQ(xpl_tool_options_parse(t, &o, 1, true, &arena, &options, &err), XPL_OK);
    const struct xpl_tool_input in = {
        .hosts = hosts, .n_hosts = n, .options = options, .exec = &exec, .limit = limit};
    const xpl_status_t s = t->render(&in, &out, &err);
    if (s != XPL_OK) fprintf(stderr, "%s: %s\n", t->name, err.msg);
    CHECK(s == XPL_OK || s == XPL_RESOURCE_EXHAUSTED);
    if (s == XPL_OK) check_json(&out);
}

static void render_all(const struct xpl_tool_host *hosts, size_t n) {
    size_t n_tools = 0;
    const struct xpl_tool *const *const tools = xpl_tools(&n_tools);
    for (size_t i = 0; i < n_tools * 2; i++)
        if (tools[i / 2]->needs[0] == &xpl_product_op_stats)
            render_one(tools[i / 2], i % 2 != 0, hosts, n);
}

static xpl_status_t convert(xpl_bytes_t in, bool cpu_as_device, bool render) {
    struct xpl_error err = {0};
    void *stats;
    const xpl_status_t s = make(&xpl_product_op_stats, in,
                                cpu_as_device ? XPL_OP_STATS_CPU_AS_DEVICE : 0, &stats, &err);
    check_error(s, &err, in);
    const void *const products[XPL_TOOL_MAX_NEEDS] = {stats};
    const struct xpl_tool_host two[] = {{.name = XPL_STR("h"), .products = products},
                                        {.name = XPL_STR("i"), .products = products}};
    for (size_t n = 1; n <= 2 && s == XPL_OK && render; n++)
        render_all(two, n);
    xpl_product_op_stats.free(stats);
    return s;
}

static xpl_status_t memory(xpl_bytes_t in) {
    struct xpl_error err = {0};
    void *out;
    xpl_status_t s = make(&xpl_product_memory_profile, in, 0, &out, &err);
    const bool answered = s == XPL_OK;
    if (s == XPL_FAILED_PRECONDITION) s = XPL_OK; // no host plane: XProf has no answer either
    check_error(s, &err, in);
    if (answered) check_json(out);
    xpl_product_memory_profile.free(out);
    return s;
}

static void trace(xpl_bytes_t in) {
    struct xpl_error err = {0};
    void *out;
    const xpl_status_t s = make(&xpl_product_trace_viewer, in, 0, &out, &err);
    if (s != XPL_RESOURCE_EXHAUSTED) check_error(s, &err, in);
    if (s == XPL_OK) check_json(out);
    xpl_product_trace_viewer.free(out);
}

static bool has_device(xpl_bytes_t in) {
    struct xpl_error err = {0};
    void *value;
    CHECK_EQ(make(&xpl_product_devices, in, 0, &value, &err), XPL_OK);
    const struct xpl_devices_value v = *(const struct xpl_devices_value *)value;
    CHECK(v.accelerator || !v.gpu);
    xpl_product_devices.free(value);
    return v.accelerator;
}

// The list of programs says whether the whole can be opened, which conversions need too.
static void modules(xpl_bytes_t in, xpl_status_t converted) {
    struct xpl_error err = {0};
    void *value;
    const xpl_status_t s = make(&xpl_product_hlo_modules, in, 0, &value, &err);
    check_error(s, &err, in);
    CHECK(s == XPL_OK || converted != XPL_OK);
    xpl_product_hlo_modules.free(value);
}

// All that can be asked of these bytes; the status of the conversion.  `whole`: the framing is
// either sound throughout or broken for every tool.
static xpl_status_t ask(xpl_bytes_t in, bool render, bool whole) {
    const xpl_status_t s = convert(in, false, render);
    if (!has_device(in)) CHECK((convert(in, true, render) == XPL_OK) == (s == XPL_OK));
    const xpl_status_t m = memory(in);
    trace(in);
    modules(in, s);
    CHECK(!whole || (m == XPL_OK) == (s == XPL_OK)); // a tool may not read where the damage is
    return s;
}

// Where each top-level field ends.
static size_t top_level(xpl_bytes_t in, bool *ends) {
    struct xpl_wire w = xpl_wire_begin(in);
    struct xpl_field f;
    size_t n = 0;
    memset(ends, 0, in.len + 1);
    ends[0] = true;
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD) {
        ends[w.p - in.ptr] = true;
        n++;
    }
    return n;
}

static void test_prefixes(const char *dir, const char *name) {
    const xpl_bytes_t whole = slurp(dir, name);
    bool *const ends = malloc(whole.len + 1);
    CHECK(ends);
    CHECK(top_level(whole, ends) > 0 && ends[whole.len]);
    for (size_t n = 0; n <= whole.len; n++) {
        const xpl_bytes_t in = exact(whole.ptr, n);
        const xpl_status_t s = ask(in, ends[n] && (n % 3 == 0 || n == whole.len), true);
        if ((s == XPL_OK) != ends[n])
            fprintf(stderr, "%s: prefix of %zu bytes: %d\n", name, n, (int)s);
        CHECK_EQ(s == XPL_OK, ends[n]);
        CHECK(s == XPL_OK || s == XPL_DATA_LOSS);
        release(in);
    }
    free(ends);
    release(whole);
}

static uint32_t next_random(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void test_flips(const char *dir, const char *name, uint32_t seed, int rounds) {
    const xpl_bytes_t whole = slurp(dir, name);
    for (int i = 0; i < rounds; i++) {
        const xpl_bytes_t in = exact(whole.ptr, whole.len);
        union {
            const uint8_t *in;
            uint8_t *out;
        } u = {.in = in.ptr};
        for (uint32_t k = 1 + next_random(&seed) % 4; k; k--)
            u.out[next_random(&seed) % whole.len] = (uint8_t)next_random(&seed);
        ask(in, i % 4 == 0, false);
        release(in);
    }
    release(whole);
}

// Each byte that is not ASCII becomes EF BF BD, as a round trip through a text editor does.
static void test_mangled(const char *dir, const char *name) {
    const xpl_bytes_t whole = slurp(dir, name);
    uint8_t *const p = malloc(whole.len * 3 + 1);
    CHECK(p);
    size_t n = 0;
    for (size_t i = 0; i < whole.len; i++) {
        if (whole.ptr[i] < 0x80) {
            p[n++] = whole.ptr[i];
        } else {
            memcpy(p + n, "\xEF\xBF\xBD", 3);
            n += 3;
        }
    }
    CHECK_EQ(ask((xpl_bytes_t){p, n}, false, true), XPL_DATA_LOSS);
    free(p);
    release(whole);
}

// ---- profiles made by hand ----

struct out {
    uint8_t *p;
    size_t n, cap;
};

static void put(struct out *o, const void *p, size_t n) {
    if (o->cap - o->n < n) {
        o->cap = (o->n + n) * 2 + 64;
        o->p = realloc(o->p, o->cap);
        CHECK(o->p);
    }
    if (n) memcpy(o->p + o->n, p, n);
    o->n += n;
}

static void put_varint(struct out *o, uint64_t v) {
    uint8_t b[10];
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        b[n++] = (uint8_t)(v | 0x80);
    b[n++] = (uint8_t)v;
    put(o, b, n);
}

static void put_int(struct out *o, uint32_t field, uint64_t v) {
    put_varint(o, (uint64_t)field << 3);
    put_varint(o, v);
}

static void put_len(struct out *o, uint32_t field, const void *p, size_t n) {
    put_varint(o, (uint64_t)field << 3 | 2);
    put_varint(o, n);
    put(o, p, n);
}

// Puts `inner` into `o` as a message and empties it.
static void put_message(struct out *o, uint32_t field, struct out *inner) {
    put_len(o, field, inner->p, inner->n);
    inner->n = 0;
}

static void put_metadata(struct out *plane, uint32_t map, uint64_t id, const char *name, size_t n,
                         const struct out *more) {
    struct out md = {0}, entry = {0};
    put_int(&md, 1, id);
    put_len(&md, 2, name, n);
    if (more) put(&md, more->p, more->n);
    put_int(&entry, 1, id);
    put_message(&entry, 2, &md);
    put_message(plane, map, &entry);
    free(md.p);
    free(entry.p);
}

static xpl_status_t ask_and_free(struct out *o, bool render) {
    const xpl_bytes_t in = exact(o->p, o->n);
    const xpl_status_t s = ask(in, render, false);
    release(in);
    free(o->p);
    *o = (struct out){0};
    return s;
}

static void test_lengths(void) {
    static const uint64_t huge[] = {1,
                                    127,
                                    128,
                                    (uint64_t)1 << 31,
                                    UINT32_MAX,
                                    (uint64_t)1 << 62,
                                    INT64_MAX,
                                    1ull << 63,
                                    UINT64_MAX - 8,
                                    UINT64_MAX - 1,
                                    UINT64_MAX};
    for (size_t i = 0; i < sizeof huge / sizeof *huge; i++) {
        struct out o = {0}, plane = {0};
        put_varint(&o, 1 << 3 | 2); // XSpace.planes
        put_varint(&o, huge[i]);
        CHECK_EQ(ask_and_free(&o, false), XPL_DATA_LOSS);
        put_varint(&plane, 3 << 3 | 2); // XPlane.lines
        put_varint(&plane, huge[i]);
        put_message(&o, 1, &plane);
        CHECK_EQ(ask_and_free(&o, false), XPL_DATA_LOSS);
        free(plane.p);
    }
    static const char too_long[] = "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
                      group[] = "\x0b\x0c", zero[] = "\x00";
    static const xpl_bytes_t wrong[] = {{(const uint8_t *)too_long, 12},
                                        {(const uint8_t *)group, 1},
                                        {(const uint8_t *)zero, 1},
                                        {(const uint8_t *)"\x0f", 1},
                                        {(const uint8_t *)"\x0a", 1}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK_EQ(ask(wrong[i], false, true), XPL_DATA_LOSS);
}

static void test_million_planes(void) {
    struct out o = {0};
    for (int i = 0; i < 1000000; i++)
        put(&o, "\x0a\x00", 2);
    xpl_status_t s = ask_and_free(&o, true);
    CHECK(s == XPL_OK || s == XPL_RESOURCE_EXHAUSTED);
    struct out plane = {0};
    put_len(&plane, 2, "/device:GPU:0", 13);
    for (int i = 0; i < 20000; i++)
        put_len(&o, 1, plane.p, plane.n);
    s = ask_and_free(&o, true);
    CHECK(s == XPL_OK || s == XPL_RESOURCE_EXHAUSTED);
    free(plane.p);
}

// `depth` messages inside each other, in field `field` of each.
static struct out nested(uint32_t field, size_t depth) {
    // Inside out would copy the whole each time, so lengths are found first.
    size_t *const size = malloc((depth + 1) * sizeof *size);
    CHECK(size);
    size[depth] = 0;
    for (size_t i = depth; i-- > 0;) {
        size_t n = 1;
        for (uint64_t v = size[i + 1]; v >= 0x80; v >>= 7)
            n++;
        for (uint64_t v = (uint64_t)field << 3; v >= 0x80; v >>= 7)
            n++;
        size[i] = size[i + 1] + n + 1;
    }
    struct out o = {0};
    for (size_t i = 0; i < depth; i++) {
        put_varint(&o, (uint64_t)field << 3 | 2);
        put_varint(&o, size[i + 1]);
    }
    CHECK_EQ(o.n, size[0]);
    free(size);
    return o;
}

// A plane "/host:metadata" whose one module has `bomb` at path: field numbers, outermost first.
static void metadata_bomb(const uint32_t *path, size_t n, const struct out *bomb) {
    struct out inner = {0}, outer = {0}, plane = {0}, space = {0}, stat = {0}, stats = {0};
    put(&inner, bomb->p, bomb->n);
    while (n-- > 0) {
        put_message(&outer, path[n], &inner);
        const struct out swap = inner;
        inner = outer;
        outer = swap;
    }
    put_int(&stat, 1, 1);
    put_len(&stat, 6, inner.p, inner.n);
    put_message(&stats, 5, &stat);
    put_len(&plane, 2, "/host:metadata", 14);
    put_metadata(&plane, 5, 1, "Hlo Proto", 9, NULL);
    put_metadata(&plane, 4, 7, "jit_f(7)", 8, &stats);
    put_message(&space, 1, &plane);
    put_len(&plane, 2, "/device:TPU:0", 13);
    put_message(&space, 1, &plane);
    ask_and_free(&space, true);
    free(inner.p), free(outer.p), free(plane.p), free(stat.p), free(stats.p);
}

static void test_nesting(void) {
    static const uint32_t shape[] = {1, 3, 2,
                                     3}; // HloProto.hlo_module.computations.instructions.shape
    static const uint32_t literal[] = {1, 3, 2, 8};    // ... .literal, whose field 10 is literals
    static const uint32_t program_shape[] = {1, 4, 2}; // host_program_shape.result
    struct out bomb = nested(4, 300000);               // Shape.tuple_shapes
    metadata_bomb(shape, 4, &bomb);
    metadata_bomb(program_shape, 3, &bomb);
    free(bomb.p);
    bomb = nested(10, 300000);
    metadata_bomb(literal, 4, &bomb);
    free(bomb.p);
    for (uint32_t field = 1; field <= 6; field++) {
        bomb = nested(field, 100000);
        ask_and_free(&bomb, false);
    }
}

// Calls of one computation by itself, and of two by each other.
static void test_call_cycles(void) {
    for (uint64_t n = 1; n <= 3; n++) {
        struct out module = {0}, comp = {0}, instr = {0}, none = {0}, hlo = {0};
        put_len(&module, 1, "jit_f", 5);
        put_int(&module, 6, 1);
        for (uint64_t i = 1; i <= n; i++) {
            put_len(&instr, 1, "fusion.1", 8);
            put_len(&instr, 2, i % 2 ? "fusion" : "while", i % 2 ? 6 : 5);
            put_int(&instr, 35, i * 100);
            put_int(&instr, 38, i % n + 1);
            put_int(&instr, 36, i * 100); // an operand of itself
            put_len(&comp, 1, "c", 1);
            put_message(&comp, 2, &instr);
            put_int(&comp, 5, i);
            put_int(&comp, 6, i * 100);
            put_int(&comp, 7, 1);
            put_message(&module, 3, &comp);
        }
        put_message(&hlo, 1, &module);
        metadata_bomb((const uint32_t[]){0}, 0, &hlo);
        free(module.p), free(comp.p), free(instr.p), free(none.p), free(hlo.p);
    }
}

static void put_event(struct out *line, uint64_t md, uint64_t offset, uint64_t duration) {
    struct out ev = {0}, stat = {0};
    put_int(&ev, 1, md);
    put_int(&ev, 2, offset);
    put_int(&ev, 3, duration);
    put_int(&stat, 1, md % 5);
    put_int(&stat, 4, duration);
    put_message(&ev, 4, &stat);
    put_message(line, 4, &ev);
    free(ev.p), free(stat.p);
}

// Ids that do not exist, times that wrap, events that overlap wrongly, names that are no UTF-8.
static void test_nonsense(const char *plane_name, const char *line_name) {
    static const uint64_t odd[] = {0,         1,          5,          999,
                                   INT64_MAX, 1ull << 63, UINT64_MAX, UINT64_MAX - 4000};
    static const char *const names[] = {"\xff\xfe", "MemoryAllocation", "a/b:\xc3Op",
                                        "_r",       "\xed\xa0\x80",     "jit(f)/\xf5"};
    static const char *const stats[] = {"kernel_details", "correlation_id", "_r", "hlo_op\xff",
                                        "group_id"};
    enum { N = sizeof odd / sizeof *odd };
    for (size_t ts = 0; ts < N; ts++) {
        struct out space = {0}, plane = {0}, line = {0};
        put_len(&plane, 2, plane_name, strlen(plane_name));
        for (size_t i = 0; i < 6; i++)
            put_metadata(&plane, 4, i, names[i], strlen(names[i]), NULL);
        for (size_t i = 0; i < 5; i++)
            put_metadata(&plane, 5, i, stats[i], strlen(stats[i]), NULL);
        put_int(&line, 1, odd[N - 1 - ts]);
        put_len(&line, 2, line_name, strlen(line_name));
        put_int(&line, 3, odd[ts]);
        for (size_t i = 0; i < N; i++)
            for (size_t k = 0; k < N; k++)
                put_event(&line, (i + k) % 7, odd[i], odd[k]);
        put_message(&plane, 3, &line);
        put_message(&space, 1, &plane);
        put_len(&space, 2, "\xff broken error", 14);
        put_len(&space, 4, "h\xc0st", 4);
        CHECK_EQ(ask_and_free(&space, true), XPL_OK);
        free(plane.p), free(line.p);
    }
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    static const char *const small[] = {"golden/bad/cpu.xplane.pb", "golden/bad/gpu.xplane.pb",
                                        "golden/bad/tpu.xplane.pb", "golden/bad/input.xplane.pb"};
    for (size_t i = 0; i < sizeof small / sizeof *small; i++) {
        test_prefixes(argv[1], small[i]);
        test_flips(argv[1], small[i], (uint32_t)i, 3000);
        test_mangled(argv[1], small[i]);
    }
    test_prefixes(argv[1],
                  "data/logdir/cpu/plugins/profile/remote_idle_host/127.0.0.1_9103.xplane.pb");
    test_mangled(argv[1], "data/logdir/cpu/plugins/profile/jax_matmul_nopy/vm.xplane.pb");
    test_lengths();
    test_million_planes();
    test_nesting();
    test_call_cycles();
    static const char *const places[][2] = {
        {"/host:CPU", "python"},          {"/device:GPU:0", "Stream #1"},
        {"/device:TPU:0", "XLA Ops"},     {"/device:TPU:0", "Steps"},
        {"/device:TPU:0", "XLA Modules"}, {"/device:TPU:0 SparseCore 0", "Sparse Core Ops"},
        {"/host:metadata", "x"}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        test_nonsense(places[i][0], places[i][1]);
    return 0;
}
