// Between the files of the store.  Functions here speak SQLite's codes unless they take an error.
#ifndef XPL_STORAGE_STORE_SQLITE_IMPL_H_
#define XPL_STORAGE_STORE_SQLITE_IMPL_H_

#include <pthread.h>
#include <stdatomic.h>

#include "storage/store/sqlite/db.h"
#include "storage/store/store.h"

enum { STORE_NOTICES = 16, STORE_NOTICE_SIZE = 400, STORE_TOUCHES = 1024 };

struct xpl_store {
    struct xpl_store_options o;
    char *path;      // DIR/cache.db
    char *lock_path; // DIR/cache.db.lock

    pthread_mutex_t write_mu; // everything down to the blank line
    struct xpl_db *w;         // not NULL exactly while the role is WRITER
    int lock_fd;
    int64_t tried_ms;       // when attaching was last tried in vain
    xpl_status_t tx_status; // of the transaction that is open
    int tx_rc;
    struct xpl_error tx_err;
    uint64_t tx_puts;    // done in it
    int64_t tx_last_old; // results above are of this transaction: never evicted by it
    int64_t tx_began_ms;
    bool catalogue_known;     // the tables of sessions and hosts are this run's
    uint64_t catalogue_at;    // generation that was written
    uint64_t tx_catalogue_at; // generation that will have been written after the commit
    bool tx_catalogue;
    bool rows_deleted; // names may be left over
    bool checked;      // the database passed xpl_store_check, or was never in doubt

    pthread_mutex_t mu; // the pool of readers, and the notices
    pthread_cond_t cond;
    struct xpl_db *idle;
    unsigned n_open;
    uint8_t secret[XPL_STORE_SECRET];
    uint64_t epoch; // grows when the file at the path becomes another one
    char notices[STORE_NOTICES][STORE_NOTICE_SIZE];
    unsigned notice_first, n_notices;

    atomic_int role;
    atomic_bool immutable; // read only, and nobody writes: no locks can be taken
    atomic_bool broken;    // some thread saw damage; the writer moves the file aside
    atomic_bool lost;      // the file is not at its path any more; the writer makes a new one
    atomic_bool unclean;
    atomic_uint_fast64_t secret_generation;
    atomic_uint_fast64_t hits, misses, read_errors, puts, dropped, evicted, rebuilds, used_bytes;
    _Atomic int64_t touched[STORE_TOUCHES]; // ids of results that were read
};

int64_t xpl_store_now_ms(void);
// Formats a notice for the daemon; the oldest is lost when nobody fetches them.
void xpl_store_notice(struct xpl_store *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
// Records what `rc` means; to be called while errno is still that of the failure.
xpl_status_t xpl_store_fail(struct xpl_store *s, int rc, struct xpl_error *err);
bool xpl_store_is_damage(int rc);

// attach.c: opens, or opens again, whatever can be had; sets the role.  Fails only as
// xpl_store_open() does.  Needs write_mu.
xpl_status_t xpl_store_attach(struct xpl_store *s, struct xpl_error *err);
// Closes all connections and lets go of the lock.  Needs write_mu.
void xpl_store_detach(struct xpl_store *s, bool clean);
// Renames the database (`why` not NULL) and attaches again, keeping the lock.  Needs write_mu.
void xpl_store_rebuild(struct xpl_store *s, const char *why);
// A reader connection, or NULL when none can be had; give it back with what happened to it.
struct xpl_db *xpl_store_reader(struct xpl_store *s);
void xpl_store_reader_done(struct xpl_store *s, struct xpl_db *db, int rc);
// The same after a read that ended with `rc`, whatever that is; counts a failure.
void xpl_store_read_done(struct xpl_store *s, struct xpl_db *db, int rc);
// Counts a failed read; damage is left to the writer to repair.
void xpl_store_read_failed(struct xpl_store *s, struct xpl_db *db, int rc);
void xpl_store_drop_readers(struct xpl_store *s);

// profiles.c: takes over the secret of the database, if it has one; the writer gives it the
// process's own if it has none.
int xpl_store_load_secret(struct xpl_store *s, struct xpl_db *db);
int xpl_store_make_secret(struct xpl_store *s, struct xpl_db *db);
void xpl_store_set_secret(struct xpl_store *s, const uint8_t secret[XPL_STORE_SECRET]);

// tx.c: runs the body of a put inside the caller's transaction or one of its own.
xpl_status_t xpl_store_enter(struct xpl_store *s, bool *ret_own, struct xpl_error *err);
xpl_status_t xpl_store_leave(struct xpl_store *s, bool own, int rc, struct xpl_error *err);

// Inside a transaction.
int xpl_store_profile_row(struct xpl_store *s, const struct xpl_profile_id *id, int64_t *ret);
int xpl_store_delete_result(struct xpl_store *s, int64_t id);
int xpl_store_delete_rows(struct xpl_store *s, int64_t profile_id);
int xpl_store_flush_touches(struct xpl_store *s);
// Removes results, then rows, until `need` more bytes fit under the limit; nothing of this
// transaction.  SQLITE_TOOBIG when they cannot.
int xpl_store_make_room(struct xpl_store *s, uint64_t need);
int xpl_store_used(struct xpl_store *s, uint64_t *ret);
// As it is written in the database.
xpl_str_t xpl_store_kind_name(enum xpl_store_kind kind);
// The 40 bytes that stand for a file in the database.
void xpl_store_print_bytes(const struct xpl_fingerprint *print, uint8_t out[40]);

#endif
