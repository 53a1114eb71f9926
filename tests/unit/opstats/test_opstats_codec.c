// SPDX-License-Identifier: Apache-2.0
#include "analysis/opstats/codec/codec.h"

#include <math.h>
#include <string.h>

#include "analysis/wire/wire.h"
#include "base/arena.h"
#include "tests/check.h"
#include "tests/data_file.h"

enum { LIMIT = 64 << 20 };

static xpl_status_t decode(xpl_bytes_t in, struct xpl_arena *a, struct xpl_opstats **ret) {
    struct xpl_error err = {0};
    const xpl_status_t st = xpl_opstats_decode(in, a, ret, &err);
    CHECK(st == XPL_OK || (err.code == st && err.msg[0]));
    CHECK(st == XPL_OK || st != XPL_DATA_LOSS || err.offset <= in.len);
    return st;
}

static struct xpl_buf encode(const struct xpl_opstats *s) {
    struct xpl_buf out = xpl_buf_of(LIMIT);
    struct xpl_error err = {0};
    CHECK_OK(xpl_opstats_encode(s, &out, &err), &err);
    return out;
}

// Bytes of what the bytes say.
static struct xpl_buf again(xpl_bytes_t in) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(LIMIT);
    struct xpl_opstats *s;
    CHECK_OK(decode(in, &a, &s), NULL);
    const struct xpl_buf out = encode(s);
    return out;
}

static void check_same(const struct xpl_buf *a, const struct xpl_buf *b) {
    CHECK_EQ(a->n, b->n);
    CHECK(a->n == 0 || memcmp(a->p, b->p, a->n) == 0);
}

static xpl_bytes_t bytes_of(const struct xpl_buf *b) {
    return (xpl_bytes_t){b->p, b->n};
}

static void test_every_field(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf in = read_data_file("opstats/every_field.pb");
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = again(bytes_of(&in));
    check_same(&in, &out);
}

static void test_real(void) {
    static const char *const names[] = {
        "opstats/tpu_inference_a.pb", "opstats/mi300_jax_gemm.pb", "opstats/jax_matmul_nopy.pb",
        "opstats/tf_custom_h2p0.pb",  "opstats/tree.pb",           "opstats/kernels.pb"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct xpl_buf in = read_data_file(names[i]);
        struct xpl_buf once = again(bytes_of(&in)), twice = again(bytes_of(&once));
        check_same(&once, &twice);
        CHECK(once.n + 8 > in.n); // XProf adds an empty submessage that we do not keep
        xpl_buf_fini(&twice);
        xpl_buf_fini(&once);
        xpl_buf_fini(&in);
    }
}

static void test_tpu_profile(void) {
    struct xpl_buf in = read_data_file("opstats/tpu_inference_a.pb");
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(LIMIT);
    struct xpl_opstats *s;
    CHECK_OK(decode(bytes_of(&in), &a, &s), NULL);
    xpl_buf_fini(&in); // nothing may point into it
    CHECK_STR(s->run_environment.device_type, "TPU v6 Lite");
    CHECK_EQ(s->run_environment.hardware_type, XPL_HW_TPU);
    CHECK_EQ(s->run_environment.hostnames.n, 1);
    CHECK_EQ(s->perf_env.peak_bws_giga_bytes_per_second.n, 9);
    CHECK(s->perf_env.has_merged_vmem);
    CHECK(s->has_performance_counter_result && s->has_kernel_stats_db);
    CHECK_EQ(s->core_id_to_details.n, 4);
    for (size_t i = 1; i < s->core_id_to_details.n; i++)
        CHECK(s->core_id_to_details.v[i - 1].core_id < s->core_id_to_details.v[i].core_id);
    const struct xpl_op_metrics_db *const db = &s->device_op_metrics_db;
    uint64_t self = 0;
    for (size_t i = 0; i < db->metrics_db.n; i++)
        self += db->metrics_db.v[i].self_time_ps;
    CHECK_EQ(self, db->total_time_ps); // idle time included
}

// ---- messages made by hand ----

static xpl_status_t decode_text(const char *bytes, size_t n, struct xpl_arena *a,
                                struct xpl_opstats **ret) {
    return decode((xpl_bytes_t){(const uint8_t *)bytes, n}, a, ret);
}
#define DECODE(text, a, ret) decode_text((text), sizeof(text) - 1, (a), (ret))

static void test_presence(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(LIMIT);
    struct xpl_opstats *s;
    CHECK_OK(DECODE("", &a, &s), NULL);
    CHECK(!s->has_step_db && !s->has_device_op_metrics_db);
    struct xpl_buf out = encode(s);
    CHECK_EQ(out.n, 0);
    xpl_buf_fini(&out);
    CHECK_OK(DECODE("\x22\x00", &a, &s), NULL);
    CHECK(s->has_step_db);
    out = encode(s);
    CHECK_BYTES(out.p, out.n, "\x22\x00", 2);
    xpl_buf_fini(&out);
    // vdd_energy_j and stable_op_id are there even when 0; -0.0 is not the default.
    CHECK_OK(
        DECODE("\x12\x19\x52\x17\xf9\x01\0\0\0\0\0\0\0\0\x80\x02\x00\xe9\x01\0\0\0\0\0\0\0\x80", &a,
               &s),
        NULL);
    const struct xpl_op_metrics *const m = &s->device_op_metrics_db.metrics_db.v[0];
    CHECK(m->has_vdd_energy_j && m->has_stable_op_id && signbit(m->flops_v2));
    out = encode(s);
    CHECK_EQ(out.n, 27);
    xpl_buf_fini(&out);
}

static void test_maps(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(LIMIT);
    struct xpl_opstats *s;
    // program_id_to_name_map {9: "old"} {3: "c"} {9: "new"} {}: by key, the last of equal ones.
    CHECK_OK(DECODE("\x62\x07\x08\x09\x12\x03old\x62\x05\x08\x03\x12\x01"
                    "c\x62\x07\x08\x09\x12\x03new\x62\x00",
                    &a, &s),
             NULL);
    CHECK_EQ(s->program_id_to_name_map.n, 3);
    CHECK_EQ(s->program_id_to_name_map.v[0].program_id, 0);
    CHECK_EQ(s->program_id_to_name_map.v[1].program_id, 3);
    CHECK_EQ(s->program_id_to_name_map.v[2].program_id, 9);
    CHECK_STR(s->program_id_to_name_map.v[2].name, "new");
    // In two pieces of the submessage around it.
    CHECK_OK(DECODE("\x2a\x08\x1a\x06\x0a\x02zz\x10\x01\x2a\x07\x1a\x05\x0a\x01"
                    "a\x10\x01",
                    &a, &s),
             NULL);
    CHECK_EQ(s->run_environment.hostnames.n, 2);
    CHECK_STR(s->run_environment.hostnames.v[0], "a");
}

static void test_odd_wire(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(LIMIT);
    struct xpl_opstats *s;
    // Unknown field, numbers wider than their field, known fields of another type.
    CHECK_OK(DECODE("\xa0\x06\x05\x2a\x0d\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x20\x05"
                    "\x20\x01",
                    &a, &s),
             NULL);
    CHECK_EQ(s->run_environment.host_count, -1);
    CHECK(!s->has_step_db);
    // Unpacked elements of a packed field, and packed ones.
    CHECK_OK(DECODE("\x1a\x13\x29\0\0\0\0\0\0\xf0\x3f\x2a\x08\0\0\0\0\0\0\0\x40", &a, &s), NULL);
    CHECK_EQ(s->perf_env.peak_bws_giga_bytes_per_second.n, 2);
    CHECK_REAL(s->perf_env.peak_bws_giga_bytes_per_second.v[1], 2.0, 0);
    CHECK_STATUS(DECODE("\x1a\x05\x2a\x03\0\0\0", &a, &s), XPL_DATA_LOSS, NULL);
    // A fourth dimension is dropped; one that does not end is an error.
    CHECK_OK(DECODE("\x32\x0a\x0a\x08\x2a\x04\x01\x02\x03\x04\x30\x05", &a, &s), NULL);
    CHECK_EQ(s->kernel_reports.v[0].n_block_dim, 3);
    CHECK_EQ(s->kernel_reports.v[0].grid_dim[0], 5);
    CHECK_STATUS(DECODE("\x32\x05\x0a\x03\x2a\x01\x80", &a, &s), XPL_DATA_LOSS, NULL);
    // A breakdown of an unknown kind.
    CHECK_OK(DECODE("\x22\x0d\x0a\x0b\x12\x09\x08\x01\x12\x05\x22\x03\x0a\x01x", &a, &s), NULL);
    CHECK_EQ(s->step_db.step_sequence.v[0].step_info_per_core.v[0].breakdown, XPL_BREAKDOWN_NONE);
}

// `depth` ops, each the only child of the one before.
static struct xpl_opstats *nest(struct xpl_arena *a, unsigned depth) {
    struct xpl_opstats *const s = xpl_arena_zalloc(a, sizeof *s);
    CHECK(s);
    s->has_device_op_metrics_db = true;
    struct xpl_op_metrics_db *db = &s->device_op_metrics_db;
    for (unsigned i = 0; i < depth; i++) {
        struct xpl_op_metrics *const m = xpl_vec_push(a, &db->metrics_db);
        CHECK(m);
        *m = (struct xpl_op_metrics){.self_time_ps = i};
        if (i + 1 == depth) break;
        CHECK((m->children = db = xpl_arena_zalloc(a, sizeof *db)));
    }
    return s;
}

static void test_nesting(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(LIMIT);
    struct xpl_opstats *s;
    struct xpl_error err = {0};
    CHECK_EQ(XPL_OPSTATS_MAX_DEPTH, 64); // docs/differences.md says so
    XPL_AUTO(xpl_buf_fini) struct xpl_buf deep = encode(nest(&a, XPL_OPSTATS_MAX_DEPTH + 1));
    CHECK_OK(decode(bytes_of(&deep), &a, &s), NULL);
    struct xpl_buf out = encode(s);
    check_same(&deep, &out);
    xpl_buf_fini(&out);
    xpl_buf_init(&out, LIMIT);
    xpl_buf_str(&out, XPL_STR("kept"));
    CHECK_STATUS(xpl_opstats_encode(nest(&a, XPL_OPSTATS_MAX_DEPTH + 2), &out, &err),
                 XPL_RESOURCE_EXHAUSTED, &err);
    CHECK_EQ(out.n, 4);
    xpl_buf_fini(&out);
}

// 10,000 levels, each length that of the rest.
static void test_bomb(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(LIMIT);
    struct xpl_opstats *s;
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(LIMIT);
    size_t rest = 60000;
    for (unsigned i = 0; rest > 8; i++) {
        const uint8_t db[] = {0x12}, ops[] = {0x52}, children[] = {0x82, 0x01};
        const size_t n = i && i % 2 == 0 ? 2 : 1;
        xpl_buf_put(&b, i == 0 ? db : i % 2 ? ops : children, n);
        rest -= n + 3;
        const uint8_t len[3] = {(uint8_t)(rest | 0x80), (uint8_t)(rest >> 7 | 0x80),
                                (uint8_t)(rest >> 14)};
        xpl_buf_put(&b, len, 3);
    }
    while (b.n < 60000)
        xpl_buf_putc(&b, 0);
    CHECK_STATUS(decode(bytes_of(&b), &a, &s), XPL_DATA_LOSS, NULL);
}

static void test_limits(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf in = read_data_file("opstats/every_field.pb");
    struct xpl_arena a = xpl_arena_of(16 << 10);
    struct xpl_opstats *s = NULL;
    CHECK_STATUS(decode(bytes_of(&in), &a, &s), XPL_RESOURCE_EXHAUSTED, NULL);
    CHECK(!s);
    xpl_arena_fini(&a);
    xpl_arena_init(&a, LIMIT);
    CHECK_OK(decode(bytes_of(&in), &a, &s), NULL);
    for (size_t max = 0; max < in.n; max += 997) {
        struct xpl_error err = {0};
        struct xpl_buf out = xpl_buf_of(max);
        CHECK_STATUS(xpl_opstats_encode(s, &out, &err), XPL_RESOURCE_EXHAUSTED, &err);
        CHECK_EQ(out.n, 0);
        xpl_buf_fini(&out);
    }
    xpl_arena_fini(&a);
}

// Every prefix: fine where it ends between two fields of OpStats, DATA_LOSS anywhere else.
static void test_prefixes(const char *name) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf in = read_data_file(name);
    struct xpl_wire w = xpl_wire_begin(bytes_of(&in));
    for (size_t n = 0; n <= in.n; n++) {
        struct xpl_field f;
        struct xpl_arena a = xpl_arena_of(LIMIT);
        struct xpl_opstats *s = NULL;
        uint8_t *const exact = xpl_sys_alloc(n + !n); // so that one byte too far shows
        CHECK(exact);
        memcpy(exact, in.p, n);
        if (n > (size_t)(w.p - in.p)) CHECK_EQ(xpl_wire_next(&w, &f), XPL_WIRE_FIELD);
        const bool whole = n == (size_t)(w.p - in.p);
        CHECK_EQ(decode((xpl_bytes_t){exact, n}, &a, &s), whole ? XPL_OK : XPL_DATA_LOSS);
        CHECK_EQ(whole, s != NULL);
        xpl_arena_fini(&a);
        xpl_sys_free(exact);
    }
}

int main(void) {
    test_every_field();
    test_real();
    test_tpu_profile();
    test_presence();
    test_maps();
    test_odd_wire();
    test_nesting();
    test_bomb();
    test_limits();
    test_prefixes("opstats/tree.pb");
    test_prefixes("opstats/jax_matmul_nopy.pb");
    return 0;
}
