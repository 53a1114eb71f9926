// SPDX-License-Identifier: Apache-2.0
// What is made of a profile, once, and kept: the table of products.
//
// A product is one file with one row (struct xpl_product) and one line in rows.h.  Whoever keeps
// products (server/engine/products/; `xplanectl analyze`, which keeps none) knows nothing of what
// they are: it opens the profile, asks make for a value, and encodes and decodes it where the row
// says that it is kept.  Rows are pure: bytes and a variant in, a value out; no sockets, no SQL, no
// logging, no threads of their own.
#ifndef XPL_ANALYSIS_PRODUCTS_PRODUCT_H_
#define XPL_ANALYSIS_PRODUCTS_PRODUCT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/formats/facts.h"
#include "base/buf.h"
#include "base/exec.h"
#include "base/status.h"
#include "base/str.h"

// Where a product stays once it is made.
enum xpl_residency {
    // It is an answer's own bytes, a struct xpl_buf, and the answer is what is kept. A value is
    // made for one request and never shared, and its tool's render takes the bytes out of it.
    XPL_RESIDENCY_NONE,
    XPL_RESIDENCY_MEMORY, // small, and quickly made again
    XPL_RESIDENCY_STORE,  // in memory, and encoded in the store
    XPL_RESIDENCY_FILE,   // encoded in a file of the store, which is mapped while it is used
};

struct xpl_format;

// What a value is made from.  Everything is borrowed for the call.
struct xpl_product_input {
    xpl_bytes_t profile;             // in the product's form
    const struct xpl_format *format; // of the file; NULL: not known
    unsigned variant;                // bits, named by xpl_product.variants
    struct xpl_exec *exec;
    size_t limit; // bytes of each arena and buffer
    // The value of the product that `uses` names, of the same bytes and of the variant with the
    // same bits, where it is at hand; NULL: it is not.
    const void *known;
    // The options of the one request that waits, as its tool's option struct: a product that can be
    // unfinished may then be made for that request alone.  NULL: the whole product is asked for.
    const void *first;
};

struct xpl_product {
    const char *name;
    // Changes whenever a value, or its encoding, could differ from what an earlier build made.
    uint32_t version;
    enum xpl_residency residency;
    enum xpl_form form; // what it is made from
    // Names of the bits of a variant, NULL-terminated; they stand in the store's keys.  NULL: the
    // product has no variants.
    const char *const *variants;
    // Another product whose value spares `make` some work (xpl_product_input.known); what is made
    // is the same without.  NULL: none.
    const struct xpl_product *uses;
    // Makes a value; *ret is freed by `free` below.  DATA_LOSS for a broken profile, with the
    // offset; RESOURCE_EXHAUSTED at the limit; CANCELLED when the exec says so.  *ret refers to
    // nothing of the input once the call is over.
    xpl_status_t (*make)(const struct xpl_product_input *in, void **ret, struct xpl_error *err);
    // RESIDENCY_STORE: appends the encoded value to `out`.
    xpl_status_t (*encode)(const void *value, struct xpl_buf *out, struct xpl_error *err);
    // A value from its encoding; DATA_LOSS when it is none.  RESIDENCY_STORE: *ret does not refer
    // to `bytes`.  RESIDENCY_FILE: it does; they are aligned to 8 and outlive it.
    xpl_status_t (*decode)(xpl_bytes_t bytes, size_t limit, void **ret, struct xpl_error *err);
    // RESIDENCY_FILE: the encoding, which the value holds.
    xpl_bytes_t (*encoded)(const void *value);
    // Of a product of which a session's hosts are too many to be in memory at once: what a tool
    // must know of all hosts before it is given each host's value in turn.  *ret is freed by
    // xpl_sys_free, and refers to nothing of the value.  NULL: tools get all values together.
    xpl_status_t (*outline)(const void *value, void **ret, struct xpl_error *err);
    // The name of the format whose files the product inspects for damage; NULL: none.  `warning`:
    // what the file lost, NULL after the last.
    const char *inspects;
    const char *(*warning)(const void *value, size_t i);
    // Bytes of memory the value holds.
    size_t (*size)(const void *value);
    void (*free)(void *value); // NULL is fine

    // --- Products that can answer one request before they are whole; NULL for all others ---

    // Whether the value was made for in->first alone.
    bool (*is_partial)(const void *value);
    // Makes it whole.  On failure it is still partial, and only good for `free`.  The value must
    // not be in use.
    xpl_status_t (*finish)(void *value, struct xpl_exec *exec, struct xpl_error *err);
};

// The product that inspects files of the format (may be NULL); NULL: there is none.
const struct xpl_product *xpl_products_inspecting(const struct xpl_format *format);
// All products, in the order of rows.h.
const struct xpl_product *const *xpl_products(size_t *ret_n);

// xpl_product_NAME of every row.
#define XPL_PRODUCT_ROW(name) extern const struct xpl_product xpl_product_##name;
#include "analysis/products/rows.h"
#undef XPL_PRODUCT_ROW

#endif
