// SPDX-License-Identifier: Apache-2.0
// The rows of products: each makes a value, encodes and decodes it where it is kept encoded, and
// refuses broken encodings.
#include "analysis/products/product.h"

#include <string.h>

#include "analysis/formats/format.h"
#include "analysis/opstats/codec/codec.h"
#include "analysis/products/values.h"
#include "analysis/tools/trace_viewer/options.h"
#include "tests/check.h"
#include "tests/counters_fixture.h"
#include "tests/data_file.h"
#include "tests/hlo_maker.h"

#define LIMIT ((size_t)1 << 28)

static xpl_status_t make(const struct xpl_product *p, xpl_bytes_t profile, unsigned variant,
                         const void *first, void **ret, struct xpl_error *err) {
    struct xpl_exec exec = xpl_exec_serial();
    const struct xpl_product_input in = {
        .profile = profile,
        .format = p == &xpl_product_imported_xspace
                      ? xpl_format_of_name(XPL_STR("host.ireeprof"), NULL)
                      : NULL,
        .variant = variant,
        .exec = &exec,
        .limit = LIMIT,
        .first = first};
    *ret = NULL;
    *err = (struct xpl_error){0};
    return p->make(&in, ret, err);
}

static void *made(const struct xpl_product *p, xpl_bytes_t profile, unsigned variant) {
    struct xpl_error err;
    void *value;
    CHECK_EQ(make(p, profile, variant, NULL, &value, &err), XPL_OK);
    CHECK(value && p->size(value) > 0 && p->size(value) < LIMIT);
    return value;
}

static void test_rows(void) {
    size_t n;
    const struct xpl_product *const *const all = xpl_products(&n);
    CHECK(n >= 6);
    for (size_t i = 0; i < n; i++) {
        const struct xpl_product *const p = all[i];
        CHECK(p->name && p->version && p->make && p->size && p->free);
        CHECK_EQ(p->encode != NULL, p->residency == XPL_RESIDENCY_STORE);
        CHECK_EQ(p->encoded != NULL, p->residency == XPL_RESIDENCY_FILE);
        CHECK_EQ(p->decode != NULL,
                 p->residency == XPL_RESIDENCY_STORE || p->residency == XPL_RESIDENCY_FILE);
        CHECK_EQ(p->finish != NULL, p->is_partial != NULL);
        // Its name is part of a file's.
        CHECK_EQ(strspn(p->name, "abcdefghijklmnopqrstuvwxyz0123456789_"), strlen(p->name));
        for (size_t k = 0; k < i; k++)
            CHECK(strcmp(all[k]->name, p->name) != 0);
        p->free(NULL);
    }
}

static void test_broken(void) {
    const xpl_bytes_t cut = {(const uint8_t *)"\x0a\xff", 2};
    size_t n;
    const struct xpl_product *const *const all = xpl_products(&n);
    for (size_t i = 0; i < n; i++) {
        struct xpl_error err;
        void *value;
        const xpl_status_t st = make(all[i], cut, 0, NULL, &value, &err);
        if (all[i] == &xpl_product_devices) {
            CHECK_EQ(st, XPL_OK);
            all[i]->free(value);
        } else {
            CHECK_EQ(st, XPL_DATA_LOSS);
            CHECK(!value && err.msg[0]);
        }
        if (!all[i]->decode) continue;
        CHECK_EQ(all[i]->decode(cut, LIMIT, &value, &err), XPL_DATA_LOSS);
        CHECK(!value);
    }
}

static void test_op_stats(xpl_bytes_t profile) {
    const struct xpl_product *const p = &xpl_product_op_stats;
    struct xpl_error err = {0};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf first, again;
    void *const host = made(p, profile, 0), *const cpu =
                                                made(p, profile, XPL_OP_STATS_CPU_AS_DEVICE);
    const struct xpl_op_stats_value *const a = host, *const b = cpu;
    CHECK(a->stats->device_op_metrics_db.metrics_db.n <
          b->stats->device_op_metrics_db.metrics_db.n);
    xpl_buf_init(&first, LIMIT);
    xpl_buf_init(&again, LIMIT);
    CHECK_EQ(p->encode(host, &first, &err), XPL_OK);
    void *copy;
    CHECK_EQ(p->decode((xpl_bytes_t){first.p, first.n}, LIMIT, &copy, &err), XPL_OK);
    CHECK_EQ(p->encode(copy, &again, &err), XPL_OK);
    CHECK_EQ(first.n, again.n);
    CHECK(memcmp(first.p, again.p, first.n) == 0);
    p->free(copy);
    p->free(cpu);
    p->free(host);
}

// A part for one answer, then the whole, which is the same as one made at once.
static void test_trace_index(xpl_bytes_t profile) {
    const struct xpl_product *const p = &xpl_product_trace_index;
    struct xpl_trace_viewer_options first = {.format = XPL_TRACE_FORMAT_JSON};
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_error err;
    void *part;
    xpl_trace_options_init(&first.trace);
    CHECK_EQ(make(p, profile, 0, &first, &part, &err), XPL_OK);
    CHECK(((const struct xpl_trace_index_value *)part)->trace);
    if (p->is_partial(part)) CHECK_EQ(p->finish(part, &exec, &err), XPL_OK);
    CHECK(!p->is_partial(part));
    void *const whole = made(p, profile, 0);
    CHECK(!p->is_partial(whole));
    const xpl_bytes_t a = p->encoded(part), b = p->encoded(whole);
    CHECK_EQ(a.len, b.len);
    CHECK(memcmp(a.ptr, b.ptr, a.len) == 0);
    void *opened;
    CHECK_EQ(p->decode(b, LIMIT, &opened, &err), XPL_OK);
    CHECK(((const struct xpl_trace_index_value *)opened)->trace);
    p->free(opened);
    p->free(whole);
    p->free(part);
}

static void check_devices_of(xpl_bytes_t profile, bool accelerator, bool gpu) {
    void *value = made(&xpl_product_devices, profile, 0);
    CHECK_EQ(((const struct xpl_devices_value *)value)->accelerator, accelerator);
    xpl_product_devices.free(value);
    value = made(&xpl_product_devices, profile, XPL_DEVICES_SHOWN);
    CHECK_EQ(((const struct xpl_devices_value *)value)->accelerator, accelerator);
    CHECK_EQ(((const struct xpl_devices_value *)value)->gpu, gpu);
    xpl_product_devices.free(value);
}

static void check_devices(const char *path, bool accelerator, bool gpu) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = read_data_file(path);
    check_devices_of((xpl_bytes_t){b.p, b.n}, accelerator, gpu);
}

// A plane with this name; the bytes after it are not a message, and are not read.
#define PLANE(name) "\x0a\x0f\x12\x0d/device:" name ":0"

static void test_devices_stop(void) {
    static const char tpu[] = PLANE("TPU") "\xff", gpu[] = PLANE("TPU") PLANE("GPU") "\xff";
    check_devices_of((xpl_bytes_t){(const uint8_t *)tpu, sizeof tpu - 1}, true, false);
    check_devices_of((xpl_bytes_t){(const uint8_t *)gpu, sizeof gpu - 1}, true, true);
}

static void check_shown(xpl_bytes_t profile, bool counters, bool megascale) {
    void *const value = made(&xpl_product_devices, profile, XPL_DEVICES_SHOWN);
    const struct xpl_devices_value *const v = value;
    CHECK_EQ(v->counters, counters);
    CHECK_EQ(v->megascale, megascale);
    xpl_product_devices.free(value);
}

// A kind of event of the host, which no event has; and readings on events of only a TPU.
static void test_what_is_shown(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = counters_fixture(), other = mk_open();
    check_shown((xpl_bytes_t){space.p, space.n}, true, false);
    struct mk_plane p = mk_plane(1, "/device:GPU:0");
    struct xpl_buf line = mk_line(1, "k");
    ct_read(&p, &line, "x", 1, 1);
    mk_line_end(&p, &line);
    mk_plane_end(&p, &other);
    mk_plane_begin(&p, 2, "/device:TPU:0");
    mk_name(p.stats, &p.n_stats, "counter_value");
    mk_plane_end(&p, &other);
    check_shown((xpl_bytes_t){other.p, other.n}, false, false);
    mk_plane_begin(&p, 3, "/host:CPU");
    mk_name(p.events, &p.n_events, "MegaScale: sends");
    mk_plane_end(&p, &other);
    check_shown((xpl_bytes_t){other.p, other.n}, false, true);
    xpl_buf_fini(&other);
}

static void test_hlo_modules(xpl_bytes_t profile) {
    void *const value = made(&xpl_product_hlo_modules, profile, 0);
    const struct xpl_hlo_modules_value *const v = value;
    CHECK(v->n > 0);
    for (size_t i = 0; i < v->n; i++) {
        const struct xpl_module_entry *const e = &v->v[i];
        char label[200];
        CHECK((size_t)snprintf(label, sizeof label, "%.*s(%llu)", XPL_STR_FMT(e->name),
                               (unsigned long long)e->program_id) < sizeof label);
        CHECK_STR(e->label, label);
        CHECK(i == 0 || xpl_str_cmp(v->v[i - 1].label, e->label) < 0);
        CHECK(e->length > 0 && e->offset <= profile.len && e->length <= profile.len - e->offset);
        CHECK_EQ(profile.ptr[e->offset], 0x0a); // an HloProto begins with its module
    }
    CHECK(xpl_product_hlo_modules.size(value) > sizeof *v);
    xpl_product_hlo_modules.free(value);
    void *const none = made(&xpl_product_hlo_modules, (xpl_bytes_t){0}, 0);
    CHECK_EQ(((const struct xpl_hlo_modules_value *)none)->n, 0);
    xpl_product_hlo_modules.free(none);
}

// A name ends at its first NUL, in the label and by itself.
static void test_names_of_modules(void) {
    const struct {
        xpl_str_t name;
        const char *shown, *label;
    } cases[] = {{XPL_STR("a\0bcdef"), "a", "a(7)"},
                 {XPL_STR("\0b"), "", "(7)"},
                 {XPL_STR(""), "", "(7)"},
                 {XPL_STR("ab"), "ab", "ab(7)"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct xpl_buf space = mk_open(), module = mk_open();
        struct mk_plane plane = mk_metadata_plane();
        mk_len(&module, 1, cases[i].name.ptr, cases[i].name.len);
        mk_program(&plane.body, 7, &module);
        mk_plane_end(&plane, &space);
        void *const value = made(&xpl_product_hlo_modules, (xpl_bytes_t){space.p, space.n}, 0);
        const struct xpl_hlo_modules_value *const v = value;
        CHECK_EQ(v->n, 1);
        CHECK_STR(v->v[0].label, cases[i].label);
        CHECK_STR(v->v[0].name, cases[i].shown);
        xpl_product_hlo_modules.free(value);
        xpl_buf_fini(&space);
    }
}

int main(void) {
    XPL_AUTO(xpl_buf_fini)
    struct xpl_buf b = read_data_file("logdir/cpu/plugins/profile/jax_matmul_nopy/vm.xplane.pb");
    const xpl_bytes_t profile = {b.p, b.n};
    test_rows();
    test_broken();
    test_op_stats(profile);
    test_trace_index(profile);
    test_hlo_modules(profile);
    test_names_of_modules();
    test_devices_stop();
    test_what_is_shown();
    check_devices("logdir/cpu/plugins/profile/jax_matmul_nopy/vm.xplane.pb", false, false);
    check_devices("logdir/accel/plugins/profile/tpu_inference_a/tpu_inference_a.xplane.pb", true,
                  false);
    check_devices("logdir/accel/plugins/profile/mi300_jax_gemm/mi300_jax_gemm.xplane.pb", true,
                  true);
    return 0;
}
