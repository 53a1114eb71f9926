// SPDX-License-Identifier: Apache-2.0
// Product devices: which devices a profile has.
#include "analysis/products/product.h"
#include "analysis/products/values.h"
#include "analysis/wire/wire.h"

enum { XSPACE_PLANES = 1, XPLANE_NAME = 2 };

// The plane's name, the last one if the message has several; "" when there is none.
static xpl_str_t plane_name(xpl_bytes_t plane) {
    struct xpl_wire w = xpl_wire_begin(plane);
    struct xpl_field f;
    xpl_str_t name = {0};
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD)
        if (f.num == XPLANE_NAME && f.type == XPL_WIRE_LEN)
            name = (xpl_str_t){(const char *)f.len.ptr, f.len.len};
    return name;
}

// Reads no further than the answer takes: planes follow each other over the whole file.
static struct xpl_devices_value find_devices(xpl_bytes_t profile, bool ask_gpu) {
    struct xpl_devices_value v = {0};
    struct xpl_wire w = xpl_wire_begin(profile);
    struct xpl_field f;
    while (!(ask_gpu ? v.gpu : v.accelerator) && xpl_wire_next(&w, &f) == XPL_WIRE_FIELD) {
        if (f.num != XSPACE_PLANES || f.type != XPL_WIRE_LEN) continue;
        const xpl_str_t name = plane_name(f.len);
        const bool gpu = xpl_str_starts(name, XPL_STR("/device:GPU:"));
        if (gpu || xpl_str_starts(name, XPL_STR("/device:TPU:"))) v.accelerator = true;
        v.gpu = gpu && ask_gpu;
    }
    return v;
}

static xpl_status_t make(const struct xpl_product_input *in, void **ret, struct xpl_error *err) {
    struct xpl_devices_value *const v = xpl_sys_alloc(sizeof *v);
    if (!v) XPL_RETURN_OOM(err, "devices");
    *v = find_devices(in->profile, in->variant & XPL_DEVICES_GPU);
    *ret = v;
    return XPL_OK;
}

static size_t size(const void *value) {
    (void)value;
    return sizeof(struct xpl_devices_value);
}

static const char *const variants[] = {"gpu", NULL};

const struct xpl_product xpl_product_devices = {
    .name = "devices",
    .version = 1,
    .variants = variants,
    .residency = XPL_RESIDENCY_MEMORY,
    .make = make,
    .size = size,
    .free = xpl_sys_free,
};
