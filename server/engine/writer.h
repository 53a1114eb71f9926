// The one thread that writes to the store.  Its queue is bounded: what does not fit is dropped and
// counted, because all of it can be made again.
#ifndef XPL_SERVER_ENGINE_WRITER_H_
#define XPL_SERVER_ENGINE_WRITER_H_

#include <stdbool.h>
#include <stdint.h>

#include "server/engine/cache.h"
#include "storage/sessions/catalogue.h"
#include "storage/store/store.h"

struct xpl_store_writer;
struct xpl_opstats;

// NULL when the thread or memory cannot be had.
struct xpl_store_writer *xpl_store_writer_new(struct xpl_store *store, uint32_t analysis_version);
// Writes what is queued (at most `drain_ms`), then joins.
void xpl_store_writer_free(struct xpl_store_writer *w, uint64_t drain_ms);

// Key of a result, copied when queued.
struct xpl_store_writer_key {
    enum xpl_store_kind kind;
    xpl_str_t name, options;
    const struct xpl_fingerprint *files;
    const xpl_str_t *hosts; // or NULL
    size_t n_files;
};
// Queues a host's OpStats, as `stats` or, when that is NULL, already encoded: the result, and with
// `rows` what people query, which is written when nothing else is waiting.  A reference to `owner`,
// which holds them, is kept until then.  Any thread; when the queue is full it waits for room, for
// seconds at most: to convert once more would take longer.
void xpl_store_writer_put_opstats(struct xpl_store_writer *w,
                                  const struct xpl_store_writer_key *key, struct xpl_object *owner,
                                  const struct xpl_opstats *stats, xpl_bytes_t encoded, bool rows);
// Queues the rows alone, of a product that is stored.  Never waits.
void xpl_store_writer_put_rows(struct xpl_store_writer *w, const struct xpl_store_writer_key *key,
                               struct xpl_object *owner, const struct xpl_opstats *stats,
                               xpl_bytes_t encoded);
// Queues an answer: its bytes, kept by a reference to `owner`.  Never waits.
void xpl_store_writer_put_bytes(struct xpl_store_writer *w, const struct xpl_store_writer_key *key,
                                struct xpl_object *owner, xpl_bytes_t data, xpl_bytes_t meta);
// Queues the tables of sessions and hosts.
void xpl_store_writer_put_catalogue(struct xpl_store_writer *w, struct xpl_snapshot *snapshot);

struct xpl_store_writer_stats {
    uint64_t writes, dropped, failed;
    uint32_t queued;
    char error[sizeof(((struct xpl_error *)0)->msg)]; // the last one
};
void xpl_store_writer_get_stats(struct xpl_store_writer *w, struct xpl_store_writer_stats *ret);

#endif
