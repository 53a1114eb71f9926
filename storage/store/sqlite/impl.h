// SPDX-License-Identifier: Apache-2.0
// Private: what the files of the SQLite store share.  Functions give SQLite's codes unless they
// take an error.
//
// Each file calls only files above it: db, dbfile; core; secret; readers; attach; tx; profiles,
// evict; results, rows, catalogue, maintain; store.
#ifndef XPL_STORAGE_STORE_SQLITE_IMPL_H_
#define XPL_STORAGE_STORE_SQLITE_IMPL_H_

#include <pthread.h>
#include <stdatomic.h>

#include "storage/store/notices.h"
#include "storage/store/sqlite/sql.h"
#include "storage/store/tx.h"

enum { STORE_TOUCHES = 1024 };

struct xpl_sqlite_store {
    struct xpl_tx tx; // its lock protects what the next paragraph has
    struct xpl_store_options o;
    char *path;      // DIR/cache.db
    char *lock_path; // DIR/cache.db.lock

    struct xpl_db *w; // not NULL exactly while the role is WRITER
    int lock_fd;
    bool had_lock;        // this store has written before
    uint64_t retry_ms;    // pause after the last attempt to become the writer; 0: it succeeded
    uint64_t retry_at_ns; // of xpl_clock_ns
    int64_t tx_last_old;  // results above are of this transaction: never evicted by it
    bool rows_deleted;    // names may be left over
    bool checked;         // the database passed xpl_store_check, or was never in doubt

    // Read while a connection that reads is being opened, written while the database is moved
    // aside: a connection that opened the old database must not open the log of the new one.
    // Nothing else is locked meanwhile.
    pthread_rwlock_t opening;

    pthread_mutex_t mu; // the pool of readers
    pthread_cond_t cond;
    struct xpl_db *idle;
    unsigned n_open;
    uint8_t secret[XPL_STORE_SECRET];
    uint64_t epoch; // grows when the file at the path becomes another one
    struct xpl_notices notices;

    atomic_int role;
    atomic_bool immutable; // read only, and nobody writes: no locks can be taken
    atomic_bool broken;    // some thread saw damage; the writer moves the file aside
    atomic_bool lost;      // the file is not at its path any more; the writer makes a new one
    atomic_bool unclean;
    atomic_uint_fast64_t secret_generation;
    atomic_uint_fast64_t hits, misses, read_errors, evicted, rebuilds, used_bytes;
    _Atomic int64_t touched[STORE_TOUCHES]; // ids of results that were read
};

static inline struct xpl_sqlite_store *xpl_sqlite_of(struct xpl_store *base) {
    return (struct xpl_sqlite_store *)base; // its first member
}

// ---- core.c ----

// Formats a notice for the daemon; the oldest is lost when nobody fetches them.
void xpl_sqlite_notice(struct xpl_sqlite_store *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
bool xpl_sqlite_next_notice(struct xpl_store *base, char *buf, size_t size);
// Records what `rc` means; to be called while errno is still that of the failure.
xpl_status_t xpl_sqlite_fail(struct xpl_sqlite_store *s, int rc, struct xpl_error *err);
// Broken constraints are damage, too: what we write never breaks one.
bool xpl_sqlite_is_damage(int rc);
// Runs a statement of the writer, without or with one integer parameter.
int xpl_sqlite_run(struct xpl_sqlite_store *s, enum xpl_sql sql);
int xpl_sqlite_run_id(struct xpl_sqlite_store *s, enum xpl_sql sql, int64_t id);
// First column of the first row of a statement with at most one integer parameter; -1 without one.
int xpl_sqlite_ask(struct xpl_sqlite_store *s, enum xpl_sql sql, int64_t arg, int64_t *ret);
// Bytes of the pages in use.
int xpl_sqlite_used(struct xpl_sqlite_store *s, uint64_t *ret);

// ---- secret.c ----

uint64_t xpl_sqlite_get_secret(struct xpl_store *base, uint8_t ret[XPL_STORE_SECRET]);
uint64_t xpl_sqlite_secret_generation(struct xpl_store *base);
// Takes over the database's secret, if it has one.
int xpl_sqlite_load_secret(struct xpl_sqlite_store *s, struct xpl_db *db);
// The same for the writer, which gives the database the process's own if it has none.
int xpl_sqlite_make_secret(struct xpl_sqlite_store *s, struct xpl_db *db);

// ---- readers.c ----

// Opens a connection, of any kind, that only reads.
int xpl_sqlite_open_to_read(struct xpl_sqlite_store *s, struct xpl_db **ret, char *why,
                            size_t size);
// Opens one outside of the pool, and says whose the database is.
int xpl_sqlite_open_reader(struct xpl_sqlite_store *s, struct xpl_db **ret,
                           enum xpl_db_kind *ret_kind);
// A connection of the pool, or NULL when none can be had.  xpl_sqlite_read_done gives it back.
struct xpl_db *xpl_sqlite_reader(struct xpl_sqlite_store *s);
// Gives a connection back after a read that ended with `rc`, whatever that is; counts a failure.
void xpl_sqlite_read_done(struct xpl_sqlite_store *s, struct xpl_db *db, int rc);
// Counts a failed read; damage is left to the writer to repair.
void xpl_sqlite_read_failed(struct xpl_sqlite_store *s, struct xpl_db *db, int rc);
// Closes those that are idle now, and those in use when they come back.
void xpl_sqlite_drop_readers(struct xpl_sqlite_store *s);

// ---- attach.c; the caller holds the lock of tx ----

// Opens, or opens again, whatever can be had; sets the role.  Fails only as xpl_store_open() does.
xpl_status_t xpl_sqlite_attach(struct xpl_sqlite_store *s, struct xpl_error *err);
// Attaches again if there is no writer, there should be one, and the time has come.
xpl_status_t xpl_sqlite_try_again(struct xpl_sqlite_store *s, struct xpl_error *err);
// Closes all connections and releases the lock.
void xpl_sqlite_detach(struct xpl_sqlite_store *s, bool clean);
// Renames the database (`why` not NULL) and attaches again, keeping the lock.
void xpl_sqlite_rebuild(struct xpl_sqlite_store *s, const char *why);

// ---- tx.c ----

extern const struct xpl_tx_ops xpl_sqlite_tx;

// ---- profiles.c ----

bool xpl_sqlite_find_file(struct xpl_store *base, const struct xpl_fingerprint *file,
                          struct xpl_profile_id *ret);
bool xpl_sqlite_has_size(struct xpl_store *base, uint64_t bytes);
bool xpl_sqlite_list_files(struct xpl_store *base, size_t max, xpl_store_file_fn *each, void *arg);
bool xpl_sqlite_has_rows(struct xpl_store *base, const struct xpl_profile_id *profile,
                         enum xpl_rows_kind kind, uint32_t version);
xpl_status_t xpl_sqlite_put_file(struct xpl_store *base, const struct xpl_fingerprint *file,
                                 const struct xpl_profile_id *profile, struct xpl_error *err);
// Inside a transaction: the profile's row, made when there is none.
int xpl_sqlite_profile_row(struct xpl_sqlite_store *s, const struct xpl_profile_id *id,
                           int64_t *ret);

// ---- evict.c; inside a transaction ----

int xpl_sqlite_delete_result(struct xpl_sqlite_store *s, int64_t id);
int xpl_sqlite_delete_rows(struct xpl_sqlite_store *s, int64_t profile_id);
// Those of one kind, which others take the place of.
int xpl_sqlite_delete_rows_of(struct xpl_sqlite_store *s, int64_t profile_id,
                              enum xpl_rows_kind kind);
// Writes down which results were used.
int xpl_sqlite_flush_touches(struct xpl_sqlite_store *s);
// Removes results, then rows, until `need` more bytes fit under the limit; nothing of this
// transaction.  SQLITE_TOOBIG when they cannot.
int xpl_sqlite_make_room(struct xpl_sqlite_store *s, uint64_t need);

// ---- results.c, rows.c, catalogue.c, maintain.c: functions of the table ----

xpl_status_t xpl_sqlite_get(struct xpl_store *base, const struct xpl_store_key *key,
                            size_t max_bytes, struct xpl_store_value *ret, struct xpl_error *err);
bool xpl_sqlite_has(struct xpl_store *base, const struct xpl_store_key *key);
xpl_status_t xpl_sqlite_put(struct xpl_store *base, const struct xpl_store_key *key,
                            xpl_bytes_t data, xpl_bytes_t meta, struct xpl_error *err);
xpl_status_t xpl_sqlite_put_rows(struct xpl_store *base, const struct xpl_profile_id *profile,
                                 uint32_t version, const struct xpl_rows *rows,
                                 struct xpl_error *err);
xpl_status_t xpl_sqlite_put_catalogue(struct xpl_store *base, const struct xpl_snapshot *snap,
                                      const struct xpl_cancel *cancel, struct xpl_error *err);
xpl_status_t xpl_sqlite_maintain(struct xpl_store *base, const struct xpl_store_maintenance *m,
                                 bool *ret_more, struct xpl_error *err);

#endif
