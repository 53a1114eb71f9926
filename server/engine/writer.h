// SPDX-License-Identifier: Apache-2.0
// The one thread that writes to the store.  Its queue is bounded: what does not fit is dropped and
// counted, because all of it can be made again.  While a store that daemons share is away
// (PostgreSQL), up to 64 MiB of products and answers wait until it is back, the newest.
//
// Results are kept under the ids of profiles.  A file whose id is not known yet is hashed here,
// when the answer that was made from it has left: the writer waits until no request is running, a
// second at most.  If the file is not the one any more that the result was made from, the result
// is dropped.
#ifndef XPL_SERVER_ENGINE_WRITER_H_
#define XPL_SERVER_ENGINE_WRITER_H_

#include <stdbool.h>
#include <stdint.h>

#include "server/engine/cache.h"
#include "storage/sessions/catalogue.h"
#include "storage/store/store.h"

struct xpl_arena;
struct xpl_buf;
struct xpl_identity;
struct xpl_store_writer;

struct xpl_store_writer_options {
    struct xpl_store *store;
    struct xpl_identity *identity; // both outlive the writer
    // The versions in which results are made now: older ones are removed.  Outlives the writer.
    const struct xpl_store_version *current;
    size_t n_current;
    uint32_t rows_version;
    // Whether requests are running; NULL: never.  Any thread.
    bool (*busy)(void *arg);
    void *arg;
};
// NULL when the thread or memory cannot be had.
struct xpl_store_writer *xpl_store_writer_new(const struct xpl_store_writer_options *o);
// From now on `busy` is asked.  Before the first put.
void xpl_store_writer_set_busy(struct xpl_store_writer *w, bool (*busy)(void *arg), void *arg);
// Writes what is queued (at most `drain_ms`), then joins.
void xpl_store_writer_free(struct xpl_store_writer *w, uint64_t drain_ms);

// Key of a result, copied when queued.
struct xpl_store_writer_key {
    enum xpl_store_kind kind;
    xpl_str_t name, options;
    uint32_t version;
    struct xpl_snapshot *snapshot;       // in which the hosts are; a reference is kept
    const struct xpl_host *const *hosts; // what it was made from
    const struct xpl_fingerprint *files; // as they were then; NULL: as the snapshot has them
    size_t n_hosts;
    bool names_shown; // the hosts' names are in the result
};

// A product: a value and how to encode it, or, when `value` is NULL, its encoded bytes.
struct xpl_store_writer_product {
    struct xpl_object *owner; // holds the value or the bytes; a reference is kept until written
    const void *value;
    xpl_bytes_t encoded;
    xpl_status_t (*encode)(const void *value, struct xpl_buf *out, struct xpl_error *err);
    // What people query of it, in `arena`; NULL: nothing.  Written when nothing else is waiting and
    // no request is running (10 s at most), or xpl_store_writer_flush asks for it; all that are
    // queued in one transaction: readers see those of all hosts of a session, or of none.
    xpl_status_t (*rows)(const void *value, xpl_bytes_t encoded, struct xpl_arena *arena,
                         struct xpl_rows *ret, struct xpl_error *err);
};
// Queues a host's product.  Any thread; when the queue is full it waits for room, for seconds at
// most: to make the product once more would take longer.
void xpl_store_writer_put_product(struct xpl_store_writer *w,
                                  const struct xpl_store_writer_key *key,
                                  const struct xpl_store_writer_product *p);
// Queues the rows alone, of a product that is stored.  Never waits.
void xpl_store_writer_put_rows(struct xpl_store_writer *w, const struct xpl_store_writer_key *key,
                               const struct xpl_store_writer_product *p);
// Queues an answer: its bytes, kept by a reference to `owner`.  Never waits.
void xpl_store_writer_put_bytes(struct xpl_store_writer *w, const struct xpl_store_writer_key *key,
                                struct xpl_object *owner, xpl_bytes_t data, xpl_bytes_t meta);
// Queues the tables of sessions and hosts.
void xpl_store_writer_put_catalogue(struct xpl_store_writer *w, struct xpl_snapshot *snapshot);

// Waits until what was queued before is in the store, with its rows, or `wait_ms` are over.  Rows
// are due then whatever runs: of a session that is just being converted, those of some hosts may be
// seen.  Any thread.
void xpl_store_writer_flush(struct xpl_store_writer *w, uint64_t wait_ms);

struct xpl_store_writer_stats {
    uint64_t writes, dropped, failed;
    uint64_t hashed_bytes; // of files, by the writer
    uint32_t queued;
    char error[sizeof(((struct xpl_error *)0)->msg)]; // the last one
};
void xpl_store_writer_get_stats(struct xpl_store_writer *w, struct xpl_store_writer_stats *ret);

#endif
