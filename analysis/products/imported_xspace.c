// SPDX-License-Identifier: Apache-2.0
// Product imported_xspace: a file of another format as an XSpace, from which all other products are
// made.  The bytes of the product's file are checked each time that it is opened: they are not
// synced, and an XSpace of zeros would be a broken profile.
#include "analysis/formats/format.h"
#include "analysis/products/product.h"
#include "analysis/products/values.h"
#include "base/arena.h"
#include "base/hash.h"

enum { SEED = 0x1ee, SUM_SIZE = sizeof(uint32_t) }; // the sum follows the XSpace
static const uint64_t FACTOR = 0x9e3779b97f4a7c15;

// Every fourth word is of one chain: each waits for its multiplications, four side by side do not.
static uint32_t sum_of(xpl_bytes_t xspace) {
    enum { CHAINS = 4 };
    uint64_t sums[CHAINS + 1] = {SEED, SEED + 1, SEED + 2, SEED + 3}, words[CHAINS];
    size_t at = 0;
    for (; at + sizeof words <= xspace.len; at += sizeof words) {
        memcpy(words, xspace.ptr + at, sizeof words);
        for (size_t i = 0; i < CHAINS; i++)
            sums[i] = xpl_hash_fold(sums[i] ^ words[i], FACTOR);
    }
    sums[CHAINS] = xpl_hash_str(SEED, (xpl_str_t){(const char *)xspace.ptr + at, xspace.len - at});
    return xpl_hash_str(xspace.len, (xpl_str_t){(const char *)sums, sizeof sums});
}

static struct xpl_imported_xspace_value *value_new(const uint8_t *bytes, size_t len, void *owned) {
    struct xpl_imported_xspace_value *const v = xpl_sys_alloc(sizeof *v);
    if (v) *v = (struct xpl_imported_xspace_value){.xspace = {bytes, len}, .owned = owned};
    return v;
}

static xpl_status_t make(const struct xpl_product_input *in, void **ret, struct xpl_error *err) {
    const struct xpl_format_limits limits = {.max_bytes = in->limit, .exec = in->exec};
    struct xpl_profile p = {0};
    XPL_TRY(xpl_profile_import(in->format, in->profile, &limits, &p, err));
    const uint32_t sum = sum_of(p.bytes);
    const size_t len = p.bytes.len;
    uint8_t *const bytes = xpl_sys_realloc(p.owned, len + SUM_SIZE);
    struct xpl_imported_xspace_value *const v = bytes ? value_new(bytes, len, bytes) : NULL;
    if (!v) {
        xpl_sys_free(bytes ? bytes : p.owned);
        XPL_RETURN_OOM(err, "imported XSpace");
    }
    memcpy(bytes + len, &sum, SUM_SIZE);
    *ret = v;
    return XPL_OK;
}

static xpl_bytes_t encoded(const void *value) {
    const struct xpl_imported_xspace_value *const v = value;
    return (xpl_bytes_t){v->xspace.ptr, v->xspace.len + SUM_SIZE};
}

static xpl_status_t decode(xpl_bytes_t bytes, size_t limit, void **ret, struct xpl_error *err) {
    (void)limit;
    uint32_t sum = 0;
    const size_t len = bytes.len < SUM_SIZE ? 0 : bytes.len - SUM_SIZE;
    if (bytes.len >= SUM_SIZE) memcpy(&sum, bytes.ptr + len, SUM_SIZE);
    if (bytes.len < SUM_SIZE || sum != sum_of((xpl_bytes_t){bytes.ptr, len}))
        XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "an imported XSpace does not match its checksum");
    struct xpl_imported_xspace_value *const v = value_new(bytes.ptr, len, NULL);
    if (!v) XPL_RETURN_OOM(err, "imported XSpace");
    *ret = v;
    return XPL_OK;
}

static size_t size(const void *value) {
    const struct xpl_imported_xspace_value *const v = value;
    return sizeof *v + (v->owned ? v->xspace.len + SUM_SIZE : 0);
}

static void value_free(void *value) {
    struct xpl_imported_xspace_value *const v = value;
    if (v) xpl_sys_free(v->owned);
    xpl_sys_free(v);
}

const struct xpl_product xpl_product_imported_xspace = {
    .name = "imported_xspace",
    .version = 2, // of the file; its contents have the version of the format
    .residency = XPL_RESIDENCY_FILE,
    .form = XPL_FORM_FILE,
    .make = make,
    .encoded = encoded,
    .decode = decode,
    .size = size,
    .free = value_free,
};
