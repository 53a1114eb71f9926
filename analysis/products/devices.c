// SPDX-License-Identifier: Apache-2.0
// Product devices: which devices a profile has.
#include "analysis/products/product.h"
#include "analysis/products/values.h"
#include "analysis/wire/wire.h"
#include "analysis/xplane/fields.h"

enum { MAP_KEY = 1, MAP_VALUE = 2 };

// The last field `num` of bytes of a message; none when there is none.
static xpl_bytes_t last_bytes(xpl_bytes_t message, uint32_t num) {
    struct xpl_wire w = xpl_wire_begin(message);
    struct xpl_field f;
    xpl_bytes_t last = {0};
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD)
        if (f.num == num && f.type == XPL_WIRE_LEN) last = f.len;
    return last;
}

static uint64_t last_number(xpl_bytes_t message, uint32_t num) {
    struct xpl_wire w = xpl_wire_begin(message);
    struct xpl_field f;
    uint64_t last = 0;
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD)
        if (f.num == num && f.type == XPL_WIRE_VARINT) last = f.u;
    return last;
}

static xpl_str_t text_of(xpl_bytes_t b) {
    return (xpl_str_t){(const char *)b.ptr, b.len};
}

// The next field `num` of bytes; false at the end, and at malformed bytes.
static bool next_bytes(struct xpl_wire *w, uint32_t num, xpl_bytes_t *ret) {
    struct xpl_field f;
    while (xpl_wire_next(w, &f) == XPL_WIRE_FIELD)
        if (f.num == num && f.type == XPL_WIRE_LEN) {
            *ret = f.len;
            return true;
        }
    return false;
}

// ---- what decides which tools are shown ----

static bool has_megascale(xpl_bytes_t plane) {
    struct xpl_wire w = xpl_wire_begin(plane);
    xpl_bytes_t entry;
    while (next_bytes(&w, XPLANE_EVENT_MD, &entry)) {
        const xpl_bytes_t md = last_bytes(entry, MAP_VALUE);
        if (xpl_str_starts(text_of(last_bytes(md, XEVENT_MD_NAME)), XPL_STR("MegaScale:")))
            return true;
    }
    return false;
}

// The id by which events of the plane say the value of a counter.
static bool counter_id(xpl_bytes_t plane, uint64_t *ret) {
    struct xpl_wire w = xpl_wire_begin(plane);
    xpl_bytes_t entry;
    while (next_bytes(&w, XPLANE_STAT_MD, &entry)) {
        const xpl_str_t name = text_of(last_bytes(last_bytes(entry, MAP_VALUE), XSTAT_MD_NAME));
        if (!xpl_str_eq(name, XPL_STR("counter_value"))) continue;
        *ret = last_number(entry, MAP_KEY);
        return true;
    }
    return false;
}

static bool line_has_stat(xpl_bytes_t line, uint64_t id) {
    struct xpl_wire events = xpl_wire_begin(line);
    xpl_bytes_t event, stat;
    while (next_bytes(&events, XLINE_EVENTS, &event)) {
        struct xpl_wire stats = xpl_wire_begin(event);
        while (next_bytes(&stats, XEVENT_STATS, &stat))
            if (last_number(stat, XSTAT_MD_ID) == id) return true;
    }
    return false;
}

// Reads lines only where the plane knows such a statistic.
static bool has_counters(xpl_bytes_t plane) {
    uint64_t id;
    if (!counter_id(plane, &id)) return false;
    struct xpl_wire w = xpl_wire_begin(plane);
    xpl_bytes_t line;
    while (next_bytes(&w, XPLANE_LINES, &line))
        if (line_has_stat(line, id)) return true;
    return false;
}

// ---- the product ----

// Reads no further than the answer takes: planes follow each other over the whole file.
static struct xpl_devices_value find_devices(xpl_bytes_t profile, bool shown) {
    struct xpl_devices_value v = {0};
    struct xpl_wire w = xpl_wire_begin(profile);
    xpl_bytes_t plane;
    while ((shown || !v.accelerator) && next_bytes(&w, XSPACE_PLANES, &plane)) {
        const xpl_str_t name = text_of(last_bytes(plane, XPLANE_NAME));
        const bool gpu = xpl_str_starts(name, XPL_STR("/device:GPU:"));
        const bool tpu = xpl_str_starts(name, XPL_STR("/device:TPU:"));
        if (gpu || tpu) v.accelerator = true;
        if (!shown) continue;
        if (gpu) v.gpu = true;
        if (tpu && !v.counters) v.counters = has_counters(plane);
        if (xpl_str_eq(name, XPL_STR("/host:CPU")) && !v.megascale)
            v.megascale = has_megascale(plane);
    }
    return v;
}

static xpl_status_t make(const struct xpl_product_input *in, void **ret, struct xpl_error *err) {
    struct xpl_devices_value *const v = xpl_sys_alloc(sizeof *v);
    if (!v) XPL_RETURN_OOM(err, "devices");
    *v = find_devices(in->profile, in->variant & XPL_DEVICES_SHOWN);
    *ret = v;
    return XPL_OK;
}

static size_t size(const void *value) {
    (void)value;
    return sizeof(struct xpl_devices_value);
}

static const char *const variants[] = {"shown", NULL};

const struct xpl_product xpl_product_devices = {
    .name = "devices",
    .version = 2,
    .variants = variants,
    .residency = XPL_RESIDENCY_MEMORY,
    .make = make,
    .size = size,
    .free = xpl_sys_free,
};
