// SPDX-License-Identifier: Apache-2.0
// The products of a request's hosts, side by side, and which hosts have a say in the answer.
// Private to server/engine.
#ifndef XPL_SERVER_ENGINE_GATHER_H_
#define XPL_SERVER_ENGINE_GATHER_H_

#include "analysis/tools/resolve.h"
#include "server/engine/answers.h"

struct xpl_gathered_product {
    struct xpl_product_handle *handle;   // NULL: not got, or given back until its next turn
    struct xpl_product_handle *unpacked; // in place of a packed one
    // What was got, which stays when it is given back.
    bool got, stable, from_store;
    unsigned variant;
    struct xpl_fingerprint fingerprint;
};

struct xpl_gathered_host {
    struct xpl_opened_profile opened; // of tools that read profiles
    struct xpl_gathered_product products[XPL_TOOL_MAX_NEEDS];
};

struct xpl_gathering {
    const struct xpl_answer_parts *parts;
    const struct xpl_request *q;
    const struct xpl_answer_context *ctx;
    struct xpl_gathered_host *hosts;   // as many as the request has
    atomic_uint *changes;              // likewise: of xpl_build_context
    struct xpl_resolved_host *results; // likewise: what the resolver sees
    struct xpl_stage_times times;
    bool bypass_cache;
    const struct xpl_front *front; // says why hosts are set aside
    const bool *aside;             // of hosts that are not to be read; NULL: all are
    // By host of the session: the file whose devices were looked at, or zeros.  NULL: of none.
    const struct xpl_fingerprint *devices_of;
    bool in_turn; // products with an outline are got and given back in turn
    struct xpl_tool_turns turns;
    const void *first; // of a product that may be partial
    atomic_size_t unpacked_bytes;
    atomic_size_t packed_bytes; // of products that are got in turn
    size_t decompressed_bytes;  // of profiles that stay open
};

// `arena` holds hosts and results.
xpl_status_t xpl_gather_init(struct xpl_gathering *g, const struct xpl_answer_parts *parts,
                             const struct xpl_request *q, const struct xpl_answer_context *ctx,
                             struct xpl_arena *arena, struct xpl_error *err) XPL_NODISCARD;
// The resolver's source of products (analysis/tools/resolve.h); arg is the gathering.
xpl_status_t xpl_gather_host(struct xpl_gathering *g, size_t i, const unsigned *variants,
                             struct xpl_exec *exec, struct xpl_resolved_host *ret,
                             struct xpl_error *err) XPL_NODISCARD;
xpl_status_t xpl_gather_unpack(struct xpl_gathering *g, size_t i, struct xpl_resolved_host *host,
                               struct xpl_error *err) XPL_NODISCARD;
// The resolver's way to products in turn; NULL: all are there at once.
const struct xpl_tool_turns *xpl_gather_turns(const struct xpl_gathering *g);
// After the last read: whether what was read is what the files held.  ABORTED: a profile changed;
// DATA_LOSS: a mapped product was cut.
xpl_status_t xpl_gather_verify(struct xpl_gathering *g, struct xpl_error *err) XPL_NODISCARD;
// After ABORTED: whether no host's file was found changed so often that it is given up.
bool xpl_gather_may_retry(const struct xpl_gathering *g);
// True when every product was made from the bytes that the request's snapshot saw: else the answer
// must not be kept under the request's key.
bool xpl_gather_is_current(const struct xpl_gathering *g);
bool xpl_gather_is_from_store(const struct xpl_gathering *g);
// True when some host has no say: the answer then tells why, with the path of its file.
bool xpl_gather_left_out(const struct xpl_gathering *g);
// Forgets the mapped products, which turned out to be damaged; true when there was one.
bool xpl_gather_report_damage(struct xpl_gathering *g);
// The partial product among them, with its open profile, taken out of `g`; false when there is
// none.
bool xpl_gather_take_partial(struct xpl_gathering *g, struct xpl_product_handle **ret,
                             struct xpl_opened_profile *ret_opened);
// Gives everything back; xpl_gather_run may follow.
void xpl_gather_release(struct xpl_gathering *g);

#endif
