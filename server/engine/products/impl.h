// SPDX-License-Identifier: Apache-2.0
// Private: what the files of the manager of products share.  build.c knows the builds under way,
// kept.c what memory, store and files hold, make.c how a product is made; manager.c uses all three,
// publish.c stores what was made for others.
#ifndef XPL_SERVER_ENGINE_PRODUCTS_IMPL_H_
#define XPL_SERVER_ENGINE_PRODUCTS_IMPL_H_

#include <pthread.h>

#include "server/engine/products.h"

enum build_state {
    BUILD_MAKING,
    BUILD_PARTIAL, // one request has its answer; the rest is still to be made
    BUILD_READY,
    BUILD_FAILED,
};

// A product that is being made, or whose outcome somebody still reads, or that is not saved yet.
struct xpl_product_build {
    struct xpl_product_build *next;
    const struct xpl_product *product;
    struct xpl_fingerprint fingerprint;
    const struct xpl_format *format; // of the file
    unsigned variant;
    unsigned refs;        // the maker's, one for each who waits, the saver's; under the mutex
    bool prefetch;        // made ahead of requests
    bool listed, unsaved; // unsaved: READY, and found here until its file is written
    atomic_bool others;   // somebody waits: readable without the mutex
    atomic_bool give_way; // a request waits for what a prefetch is making
    enum build_state state;
    bool made;           // from the profile, not from memory or the store
    xpl_status_t status; // when READY or FAILED, as what follows
    struct xpl_error err;
    struct xpl_product_handle *handle;
};

struct xpl_product_manager {
    struct xpl_product_manager_parts parts;
    atomic_size_t limit;    // bytes
    pthread_mutex_t mu;     // protects builds and what they point to
    pthread_cond_t changed; // a build changed its state
    struct xpl_product_build *builds;
    // xpl_product_get: a product may be made of another one.
    xpl_status_t (*get)(struct xpl_product_manager *m, const struct xpl_product_request *r,
                        const struct xpl_build_context *ctx, struct xpl_stage_times *times,
                        struct xpl_product_handle **ret, struct xpl_error *err);
    // Forgets a product whose file was cut: xpl_product_report_damage.
    void (*report_damage)(struct xpl_product_manager *m, const struct xpl_product_handle *h);
    atomic_ullong made, failed, imports, bytes_made;
};

// ---- build.c; the caller holds m->mu ----

// Tells all who wait.  States only go forward.
void xpl_product_build_set_state(struct xpl_product_manager *m, struct xpl_product_build *b,
                                 enum build_state state);
bool xpl_product_build_is_done(const struct xpl_product_build *b);
// From now on others find the build, until it is unlisted; unlisting twice is fine.
void xpl_product_build_list(struct xpl_product_manager *m, struct xpl_product_build *b);
void xpl_product_build_unlist(struct xpl_product_manager *m, struct xpl_product_build *b);
// The last one frees it.
void xpl_product_build_unref(struct xpl_product_build *b);
// Borrowed; NULL when there is none.  A build that a prefetch makes counts only with `prefetches`.
struct xpl_product_build *xpl_product_build_find(struct xpl_product_manager *m,
                                                 const struct xpl_product *product,
                                                 unsigned variant,
                                                 const struct xpl_fingerprint *fingerprint,
                                                 bool prefetches);

// ---- kept.c; the caller does not hold m->mu ----

void xpl_product_keep_in_memory(struct xpl_product_manager *m, struct xpl_product_handle *h);
void xpl_product_forget_in_memory(struct xpl_product_manager *m,
                                  const struct xpl_product_handle *h);
// The product that is kept outside of memory, packed where that will do, referenced for the caller;
// NULL when there is none.
struct xpl_product_handle *xpl_product_read_kept(struct xpl_product_manager *m,
                                                 const struct xpl_product_request *r,
                                                 const struct xpl_product_build *b,
                                                 const struct xpl_build_context *ctx,
                                                 struct xpl_stage_times *times);
// Whether people query rows of it; asked while the value is unpacked.
bool xpl_product_has_rows(const struct xpl_product_handle *h);
// What a product is stored under; `buf`, of XPL_PRODUCT_OPTIONS_TEXT bytes, is part of it.
enum { XPL_PRODUCT_OPTIONS_TEXT = 128 };
struct xpl_store_key xpl_product_store_key(const struct xpl_product *p, unsigned variant,
                                           const struct xpl_format *format,
                                           const struct xpl_profile_id *id, char *buf);
// Hands the rows that people query of a stored product to the store's writer, whether or not they
// are missing.
void xpl_product_write_new_rows(struct xpl_product_manager *m, const struct xpl_product_request *r,
                                struct xpl_product_handle *h);
// Hands a product, and the rows that people query, to the store's writer.
void xpl_product_write_to_store(struct xpl_product_manager *m, const struct xpl_product_request *r,
                                struct xpl_product_handle *h);
// Has the file written; until then the build stays listed, and the product is found there.
void xpl_product_write_to_file(struct xpl_product_manager *m, struct xpl_product_build *b);

// ---- make.c; the caller does not hold m->mu ----

// Opens the profile, makes and verifies, again when the file changed meanwhile; of an open profile
// once: the caller has to open it anew.  *ret may carry DATA_LOSS.
xpl_status_t
xpl_product_make_with_retries(struct xpl_product_manager *m, const struct xpl_product_request *r,
                              const struct xpl_build_context *ctx, struct xpl_work_owner owner,
                              struct xpl_stage_times *times, struct xpl_product_handle **ret,
                              struct xpl_error *err) XPL_NODISCARD;
// The same for a build, as long as anyone waits for it: fills b->handle, or b->err.
xpl_status_t xpl_product_make_for_build(struct xpl_product_manager *m,
                                        const struct xpl_product_request *r,
                                        const struct xpl_build_context *ctx,
                                        struct xpl_product_build *b, struct xpl_stage_times *times)
    XPL_NODISCARD;

#endif
