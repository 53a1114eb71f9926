// SPDX-License-Identifier: Apache-2.0
// The manager of products: the only place that finds, makes, verifies, retries, waits for, and
// keeps what is made of a host's profile.
//
//   memory -> store or file -> one maker at a time, while others wait -> open, make, verify, retry
//   -> keep in memory -> hand to the store's writer
//
// What a product is, says its row (analysis/products/product.h).  In memory a product is known by
// the file's fingerprint, in the store by the profile's content.
#ifndef XPL_SERVER_ENGINE_PRODUCTS_H_
#define XPL_SERVER_ENGINE_PRODUCTS_H_

#include "analysis/products/product.h"
#include "server/engine/cache.h"
#include "server/engine/opened.h"
#include "server/engine/stages.h"
#include "storage/store/store.h"

struct xpl_product_manager;
struct xpl_identity;
struct xpl_index_files;
struct xpl_job_end;
struct xpl_store_writer;

// The parts are borrowed and outlive the manager.
struct xpl_product_manager_parts {
    struct xpl_store *store;
    struct xpl_identity *identity;
    struct xpl_store_writer *writer;
    struct xpl_cache *cache;
    struct xpl_index_files *files; // of products that reside in files
};

// NULL when out of memory.
struct xpl_product_manager *xpl_product_manager_new(const struct xpl_product_manager_parts *parts,
                                                    size_t memory_limit);
// Nothing may be under way, and no handle be held.  NULL is fine.
void xpl_product_manager_free(struct xpl_product_manager *m);
// Bytes that one build may use.
void xpl_product_manager_set_limit(struct xpl_product_manager *m, size_t memory_limit);

// A product of one host, or why there is none.  Immutable, but for a partial one.  Referenced by
// xpl_object_ref, given back by xpl_object_unref(&h->object).
struct xpl_product_handle {
    struct xpl_object object;
    const struct xpl_product *product;
    unsigned variant;
    const struct xpl_format *format; // of the file it was made from
    // OK; DATA_LOSS when the profile is broken, or why its file cannot be opened.
    xpl_status_t status;
    struct xpl_error err;
    void *value;     // NULL when not OK, or packed:
    uint8_t *packed; // encoded, a fraction of the size: of many hosts in one session
    size_t packed_len;
    struct xpl_fingerprint fingerprint; // of the file it was made from
    struct xpl_source *file;            // a mapped product's own file
    struct xpl_source *profile;      // of a product that resides in a file: until that is written
    bool from_store;                 // it was not made from the profile
    bool has_rows;                   // people query rows of it
    bool stable;                     // a later change of the profile would show: it may be kept
    struct xpl_product_build *build; // partial: the build that waits for xpl_product_finish
};

// Who asks for a product, and how.
struct xpl_build_context {
    struct xpl_exec *exec;
    struct xpl_work_owner owner;
    bool bypass_cache; // neither memory nor store will do
    bool prefetch;     // gives way to requests, and leaves memory to what was asked for
    bool packed;       // a packed product will do
    bool passing;      // one of so many that memory is left to others
    bool published;    // the caller stores it (xpl_product_publish), and knows that it is missing
    // How often the host's file was found changed, for all that one request makes of it: at
    // XPL_OPEN_ATTEMPTS nothing is tried again.  NULL: counted for each call.
    atomic_uint *changes;
};

struct xpl_product_request {
    const struct xpl_product *product;
    unsigned variant;
    struct xpl_snapshot *snapshot; // in which the host is
    const struct xpl_host *host;
    // The host's profile where the caller has it open, or its source, without bytes; NULL: it is
    // opened when it is needed.
    const struct xpl_opened_profile *opened;
    // Options of the one request that waits (xpl_product_input.first); NULL: none.
    const void *first;
    // What the product uses, of the same variant, where the caller has it; NULL: it is searched in
    // memory.
    struct xpl_product_handle *used;
};

// From memory, from the store, or by making it.  *ret is referenced for the caller; its status may
// tell that the profile is broken.  It is packed only where that will do, and partial only where
// r->first is given: then the caller uses it and calls xpl_product_finish or xpl_product_give_up.
// Fails with ABORTED (the file keeps changing), RESOURCE_EXHAUSTED, CANCELLED.  Any thread.
xpl_status_t xpl_product_get(struct xpl_product_manager *m, const struct xpl_product_request *r,
                             const struct xpl_build_context *ctx, struct xpl_stage_times *times,
                             struct xpl_product_handle **ret, struct xpl_error *err) XPL_NODISCARD;
// A product that was made for a job.
struct xpl_product_publication {
    struct xpl_product_request request;
    struct xpl_product_handle *handle;
    struct xpl_profile_id id;
};
// Hashes a file whose id memory has not got, so that copies of profiles are found stored.
void xpl_product_hash_file(struct xpl_product_manager *m, struct xpl_snapshot *snapshot,
                           const struct xpl_host *host, struct xpl_work_owner owner);
// Fills p->id.  ABORTED: the file changed, or may change unseen: its bytes have no id yet.
// CANCELLED; else as the source says.
xpl_status_t xpl_product_identify(struct xpl_product_manager *m, struct xpl_product_publication *p,
                                  struct xpl_work_owner owner, struct xpl_error *err) XPL_NODISCARD;
// Stores products for the requester of a job, those of one file in a row, and ends the job (NULL:
// none was queued), in one transaction.  On the calling thread.  NOT_FOUND: the job is another's
// by now, nothing was stored; else as the store says.
xpl_status_t xpl_product_publish(struct xpl_product_manager *m,
                                 const struct xpl_product_publication *p, size_t n,
                                 const struct xpl_job_end *end, struct xpl_error *err)
    XPL_NODISCARD;
// Makes a partial product whole for all who wait for it.  Takes the caller's reference; nobody may
// use the value.  Logs a failure: nobody else learns of it.
void xpl_product_finish(struct xpl_product_manager *m, struct xpl_product_handle *h,
                        const struct xpl_opened_profile *opened,
                        const struct xpl_build_context *ctx);
// Gives a partial product up: one of those who wait makes it.  Takes the caller's reference.
void xpl_product_give_up(struct xpl_product_manager *m, struct xpl_product_handle *h);
// Its file was cut while it was mapped: whatever was read from it since says nothing.
bool xpl_product_is_truncated(const struct xpl_product_handle *h);
// What was read of a product from the store turned out to be damaged: it is forgotten and removed.
void xpl_product_report_damage(struct xpl_product_manager *m, const struct xpl_product_handle *h);

// Opens the profile of r->host as one of `kind`; of `r` only snapshot and host count.  A file of
// another kind gives its XSpace, which is a product: made once for all requests at a time, and
// kept. DATA_LOSS is as xpl_opened_profile_open has it; ABORTED when the file changed meanwhile;
// else as xpl_product_get.  Any thread.
xpl_status_t xpl_product_open_profile(struct xpl_product_manager *m,
                                      const struct xpl_product_request *r, enum xpl_form form,
                                      const struct xpl_build_context *ctx,
                                      struct xpl_stage_times *times, struct xpl_opened_profile *ret,
                                      struct xpl_error *err) XPL_NODISCARD;
// After the last read of its bytes: as xpl_source_verify.  An import whose file was cut is
// forgotten, and ABORTED.
xpl_status_t xpl_product_verify_profile(struct xpl_product_manager *m,
                                        const struct xpl_opened_profile *opened,
                                        struct xpl_error *err) XPL_NODISCARD;

// A product that is made for one answer and kept by nobody (XPL_RESIDENCY_NONE).
struct xpl_made_product {
    void *value;                        // the caller's, freed by the row
    struct xpl_fingerprint fingerprint; // of the file that was read
    bool stable;                        // xpl_source_is_stable
};
// Errors name the file.
xpl_status_t xpl_product_make(struct xpl_product_manager *m, const struct xpl_product_request *r,
                              const struct xpl_build_context *ctx, struct xpl_stage_times *times,
                              struct xpl_made_product *ret, struct xpl_error *err) XPL_NODISCARD;

// The product in memory, referenced, or NULL.
struct xpl_product_handle *xpl_product_lookup(struct xpl_product_manager *m,
                                              const struct xpl_product *product, unsigned variant,
                                              const struct xpl_fingerprint *fingerprint);
// True while the product is being made, in any variant.
bool xpl_product_is_running(struct xpl_product_manager *m, const struct xpl_product *product,
                            const struct xpl_fingerprint *fingerprint);
bool xpl_product_is_stored(struct xpl_product_manager *m, const struct xpl_product *product,
                           unsigned variant, const struct xpl_format *format,
                           const struct xpl_fingerprint *fingerprint);
// Which of many are stored; a store that daemons share is asked twice, and not for each.
struct xpl_product_ref {
    const struct xpl_product *product;
    unsigned variant;
    const struct xpl_format *format; // of the file
    const struct xpl_fingerprint *file;
    bool stored; // the answer
};
// RESOURCE_EXHAUSTED.
xpl_status_t xpl_product_find_stored(struct xpl_product_manager *m, struct xpl_product_ref *refs,
                                     size_t n, struct xpl_arena *arena, struct xpl_error *err)
    XPL_NODISCARD;
// Reads which profiles the files of these hold, so that getting them does not ask for each.
xpl_status_t xpl_product_identify_files(struct xpl_product_manager *m,
                                        const struct xpl_product_ref *refs, size_t n,
                                        struct xpl_arena *arena, struct xpl_error *err)
    XPL_NODISCARD;

// The id of a host's profile, when it is known, or when the store may know the profile: then the
// file is hashed.  False when the host is not the one any more that the snapshot saw.
bool xpl_product_profile_id(struct xpl_product_manager *m, const struct xpl_snapshot *snapshot,
                            const struct xpl_host *host, struct xpl_work_owner owner,
                            struct xpl_profile_id *ret);

// Whether any host of the session has a device plane; reads plane names at most.  A host that is
// broken has none.  A failure (CANCELLED, RESOURCE_EXHAUSTED, ...) leaves it open: ret->any is then
// that of the other hosts.
struct xpl_session_devices {
    bool any;
    struct xpl_fingerprint
        *files; // of the caller, or NULL: gets the file of each host that it read
};
xpl_status_t
xpl_product_session_has_device(struct xpl_product_manager *m, struct xpl_snapshot *snapshot,
                               const struct xpl_session *s, const struct xpl_build_context *ctx,
                               struct xpl_stage_times *times, struct xpl_session_devices *ret,
                               struct xpl_error *err) XPL_NODISCARD;

struct xpl_product_stats {
    uint64_t conversions, conversions_failed; // products of the store that were made
    uint64_t imports;                         // files of other formats that became XSpaces
    uint64_t bytes_converted;                 // of the profiles they were made from
};
struct xpl_product_stats xpl_product_get_stats(struct xpl_product_manager *m);

#endif
