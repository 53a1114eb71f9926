// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a profile, asked for its hardware counters, for transfers between slices, for
// cores that wait for each other and for which tools are shown.
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/products/values.h"
#include "analysis/tools/megascale/perfetto.h"
#include "analysis/tools/tool.h"
#include "base/exec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LIMIT = 64 << 20 };

static void require(bool ok) {
    if (!ok) abort();
}

static xpl_status_t render(const char *name, const void *product, struct xpl_buf *out) {
    const struct xpl_tool *const tool = xpl_tool_find(xpl_str_from(name));
    const void *const products[] = {product};
    const struct xpl_tool_host host = {.name = XPL_STR("h"), .products = products};
    static const uint64_t options[64] = {0};
    require(tool->options_size <= sizeof options);
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_error err = {0};
    xpl_buf_init(out, LIMIT);
    const struct xpl_tool_input in = {
        .hosts = &host, .n_hosts = 1, .options = options, .exec = &exec, .limit = LIMIT};
    const xpl_status_t st = tool->render(&in, out, &err);
    require(st == XPL_OK || (err.code == st && st == XPL_RESOURCE_EXHAUSTED));
    return st;
}

static void render_twice(const void *product) {
    static const char *const tools[] = {"perf_counters", "utilization_viewer",
                                        "kernel_utilization"};
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++) {
        struct xpl_buf once, twice;
        const xpl_status_t st = render(tools[i], product, &once);
        require(render(tools[i], product, &twice) == st);
        require(once.n == twice.n && (st != XPL_OK || memcmp(once.p, twice.p, once.n) == 0));
        require(st != XPL_OK || (once.p[0] == '{' && once.p[once.n - 1] == '}'));
        xpl_buf_fini(&twice);
        xpl_buf_fini(&once);
    }
}

static void check_perfetto(const struct xpl_product_input *in) {
    const struct xpl_megascale_perfetto_options ways[] = {{true, false}, {false, true}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct xpl_error err = {0};
        struct xpl_buf out = xpl_buf_of(LIMIT);
        const xpl_status_t st =
            xpl_megascale_perfetto(in->profile, &ways[i], in->exec, LIMIT, &out, &err);
        require(st == XPL_OK ? out.n >= 20 && out.p[0] == 0x1f : out.n == 0 && err.code == st);
        xpl_buf_fini(&out);
    }
}

static void check_barriers(const struct xpl_product_input *in) {
    struct xpl_error err = {0};
    struct xpl_buf out;
    void *value;
    if (xpl_product_barriers.make(in, &value, &err) != XPL_OK) return;
    const struct xpl_event_fractions *const f = &((struct xpl_barriers_value *)value)->fractions;
    for (size_t i = 0; i < f->n_planes; i++)
        require(f->planes[i].n > 0 && f->planes[i].n <= f->n_host);
    require(render("smart_suggestion", value, &out) != XPL_OK || out.p[out.n - 1] == '}');
    xpl_buf_fini(&out);
    xpl_product_barriers.free(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_error err = {0};
    const struct xpl_product_input in = {
        .profile = {data, size}, .exec = &exec, .limit = LIMIT, .variant = XPL_DEVICES_SHOWN};
    void *counters, *devices, *transfers;
    require(xpl_product_devices.make(&in, &devices, &err) == XPL_OK);
    if (xpl_product_perf_counters.make(&in, &counters, &err) == XPL_OK) {
        const struct xpl_perf_counters_value *const v = counters;
        // A TPU's reading on an event shows the tools.
        for (size_t i = 0; i < v->n_devices; i++)
            for (size_t k = 0; v->devices[i].tpu && k < v->devices[i].n; k++)
                require(v->samples[v->devices[i].first + k].n > 0);
        render_twice(counters);
        xpl_product_perf_counters.free(counters);
    }
    if (xpl_product_megascale.make(&in, &transfers, &err) == XPL_OK) {
        const struct xpl_megascale_value *const v = transfers;
        for (size_t i = 0; i < v->n; i++)
            require(v->v[i].occurrences > 0);
        xpl_product_megascale.free(transfers);
    }
    check_barriers(&in);
    check_perfetto(&in);
    xpl_product_devices.free(devices);
    return 0;
}
