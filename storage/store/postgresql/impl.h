// SPDX-License-Identifier: Apache-2.0
// Private: what the files of the store on PostgreSQL share.
//
// Each file calls only files above it: libpq; conn; core; schema; secret; link; query; tx;
// profiles, evict; chunks; results, rows, catalogue, maintain, jobs, captures, listings; store.
#ifndef XPL_STORAGE_STORE_POSTGRESQL_IMPL_H_
#define XPL_STORAGE_STORE_POSTGRESQL_IMPL_H_

#include <pthread.h>
#include <stdatomic.h>

#include "storage/store/captures.h"
#include "storage/store/jobs.h"
#include "storage/store/listings.h"
#include "storage/store/notices.h"
#include "storage/store/postgresql/conn.h"
#include "storage/store/tx.h"

enum { PG_TOUCHES = 1024, PG_DAMAGED = 64, PG_KEYWORDS = 64 };

// A thread that waits for a reader's connection, on its own stack.
struct xpl_pg_waiter {
    struct xpl_pg_waiter *next;
    struct xpl_pg_conn *c; // handed over to it
    pthread_cond_t cond;   // separate, so that a connection wakes one
};

struct xpl_pg_store {
    struct xpl_tx tx;
    const struct xpl_pq *pq;
    PQconninfoOption *options; // of the URL; holds the password
    const char *keywords[PG_KEYWORDS], *values[PG_KEYWORDS];
    struct xpl_pg_target target;
    char name[160]; // "PostgreSQL HOST/DATABASE", for texts
    uint64_t limit_bytes;
    unsigned readers;
    bool read_only;
    char owner[33]; // of our leases

    // The writer's: whoever holds the lock of tx has the connection.
    struct xpl_pg_conn *w; // NULL while there is none
    int64_t tx_first_id;   // results from here on are never evicted by the transaction
    int64_t tx_bytes;      // its addition to used_bytes
    int64_t tx_fence;
    atomic_uint_fast64_t lease_at_ns; // time of the next attempt to take another daemon's lease
    int64_t fence;                    // of the lease under which the catalogue was written
    int64_t week;                     // whose partition is known to be there
    uint64_t session;                 // counts the writer's connections, whose sessions hold jobs
    uint64_t lease_session;           // the one that ends when it is silent for a lease
    uint64_t lease_ms;                // 0: this daemon takes no jobs
    int64_t left_lock;                // on this job, by a claim that failed; 0: none
    uint64_t left_session;            // that has it

    // The link: one thread connects, and connects again (link.c).
    pthread_t keeper;
    bool has_keeper;
    int wake_fd; // an eventfd, written when the store closes

    pthread_mutex_t mu; // everything down to the blank line
    pthread_cond_t cond, work;
    bool tried, stop;
    xpl_status_t refused; // why the first attempt was the last
    struct xpl_error refusal;
    struct xpl_pg_conn *next_writer; // for the writer
    struct xpl_pg_conn *idle;        // NULL while there are waiters
    struct xpl_pg_waiter *waiting;   // the one that came first, first
    unsigned n_open, n_wanted, epoch;
    uint64_t reader_at_ns; // before that no more readers are opened
    uint8_t secret[XPL_STORE_SECRET];
    struct xpl_notices notices;

    // The database's clock less this machine's, which counts from its start and is never set.
    _Atomic int64_t since_boot_ms;
    _Atomic int64_t shift_ms; // see xpl_pg_shift_ms

    atomic_int role;
    atomic_bool is_pooled;            // the writer's connection: it cannot hold jobs
    atomic_bool rows_deleted;         // names may be left over
    atomic_bool newer;                // a newer xplaned made the tables: they are only read
    atomic_bool unreadable;           // a newer one's lack what this one reads
    atomic_uint_fast64_t swept_at_ns; // names and partitions
    atomic_uint_fast64_t jobs_swept_at_ns;
    atomic_uint_fast64_t secret_generation;
    atomic_uint_fast64_t hits, misses, read_errors, evicted, statements;
    _Atomic int64_t used_bytes;
    _Atomic int64_t touched[PG_TOUCHES], damaged[PG_DAMAGED]; // ids of results
};

static inline struct xpl_pg_store *xpl_pg_of(struct xpl_store *base) {
    return (struct xpl_pg_store *)base; // its first member
}

static inline struct xpl_pg_arg xpl_pg_owner(const struct xpl_pg_store *s) {
    return xpl_pg_text(xpl_str_from(s->owner));
}

// ---- core.c ----

// Our times as the database's, and back; 0, which means no time, stays 0.
int64_t xpl_pg_shared_ms(struct xpl_pg_store *s, int64_t ours_ms);
int64_t xpl_pg_our_ms(struct xpl_pg_store *s, int64_t shared_ms);
int64_t xpl_pg_now_ms(struct xpl_pg_store *s); // since 1970, by the database's clock
// Asks for the database's clock.
enum xpl_pg_rc xpl_pg_read_clock(struct xpl_pg_store *s, struct xpl_pg_conn *c);
void xpl_pg_notice(struct xpl_pg_store *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
bool xpl_pg_next_notice(struct xpl_store *base, char *buf, size_t size);
// Records what `rc` means.
xpl_status_t xpl_pg_fail(const struct xpl_pg_store *s, enum xpl_pg_rc rc, const char *why,
                         struct xpl_error *err);

// A column of text, copied; false on OOM.
bool xpl_pg_read_text(struct xpl_pg_conn *c, const PGresult *r, int row, int column,
                      struct xpl_arena *arena, xpl_str_t *ret);
// What the database has, by the limit's count.
#define XPL_PG_USED                                                                                \
    "(coalesce((SELECT sum(size_bytes+512) FROM results),0)+"                                      \
    "coalesce((SELECT sum(n_rows)*192 FROM profiles WHERE n_rows>0),0))::bigint"
// Sums that up.
enum xpl_pg_rc xpl_pg_read_used(struct xpl_pg_store *s, struct xpl_pg_conn *c);

// ---- schema.c ----

// Makes the tables or brings them up to date, under a lock.  *ret_newer: a newer xplaned did.
// TAKEN: tables of these names are another program's.
enum xpl_pg_rc xpl_pg_migrate(struct xpl_pg_conn *c, bool read_only, bool *ret_newer);
// Whether tables of this version are a newer xplaned's.
bool xpl_pg_is_newer(int64_t version);
// Makes the partition of this week.
enum xpl_pg_rc xpl_pg_make_week(struct xpl_pg_conn *c, int64_t week);
int64_t xpl_pg_this_week(struct xpl_pg_store *s);

// ---- secret.c ----

uint64_t xpl_pg_get_secret(struct xpl_store *base, uint8_t ret[XPL_STORE_SECRET]);
uint64_t xpl_pg_secret_generation(struct xpl_store *base);
// Takes over the database's secret; gives it ours if it has none and may be written.
enum xpl_pg_rc xpl_pg_load_secret(struct xpl_pg_store *s, struct xpl_pg_conn *c, bool read_only);

// ---- link.c ----

void xpl_pg_link_init(struct xpl_pg_store *s);
// Starts the thread and waits for its first attempt, 3 s at most.
xpl_status_t xpl_pg_link_start(struct xpl_pg_store *s, struct xpl_error *err);
// Ends the thread and its connections.
void xpl_pg_link_fini(struct xpl_pg_store *s);
// A connection to read with, or NULL: the store is off, or all are in use for too long.  To be
// given back with what happened.
struct xpl_pg_conn *xpl_pg_reader(struct xpl_pg_store *s);
void xpl_pg_reader_done(struct xpl_pg_store *s, struct xpl_pg_conn *c, enum xpl_pg_rc rc);
// The writer's connection was lost or is useless; the caller holds the lock of tx.
void xpl_pg_writer_lost(struct xpl_pg_store *s, const char *why);
// Takes over a connection that the keeper made for the writer; the caller holds the lock of tx.
void xpl_pg_take_writer(struct xpl_pg_store *s);

// ---- query.c: one statement on a reader's connection ----

// A column, as a member of a struct; the columns of a statement.
struct xpl_pg_member {
    enum xpl_pg_type type;
    size_t at;
};
struct xpl_pg_shape {
    const struct xpl_pg_member *members;
    size_t n, size;
};
#define XPL_PG_MEMBER(type, of, member)                                                            \
    { XPL_PG_##type, offsetof(of, member) }
#define XPL_PG_SHAPE(members, of)                                                                  \
    { members, sizeof(members) / sizeof *(members), sizeof(of) }
// The columns of a row, from `column` on; texts are copied to `arena`.  False: no memory.
bool xpl_pg_read_row(struct xpl_pg_store *s, const PGresult *r, int row, int column,
                     const struct xpl_pg_shape *shape, struct xpl_arena *arena, void *to);
typedef enum xpl_pg_rc xpl_pg_rows_fn(struct xpl_pg_conn *c, const PGresult *r, void *arg);
// A statement without rows.
xpl_status_t xpl_pg_change(struct xpl_pg_store *s, const char *sql, const struct xpl_pg_args *a,
                           struct xpl_error *err);
// The same between `begin` (BEGIN and settings) and a commit.  Nothing is changed if this process
// stops waiting for the statement.
xpl_status_t xpl_pg_change_in_tx(struct xpl_pg_store *s, const char *begin, const char *sql,
                                 const struct xpl_pg_args *a, struct xpl_error *err);
// `read` gets the rows.
xpl_status_t xpl_pg_read(struct xpl_pg_store *s, const char *sql, const struct xpl_pg_args *a,
                         xpl_pg_rows_fn *read, void *arg, struct xpl_error *err);
// Where rows go: as an array in `arena`, the pointer to which goes to *ret.  With n NULL *ret is
// the struct for the first row, and stays as it is without one.
struct xpl_pg_into {
    const struct xpl_pg_shape *shape;
    struct xpl_arena *arena;
    void *ret;
    size_t *n;
};
#define XPL_PG_INTO(...) (&(const struct xpl_pg_into){__VA_ARGS__})
xpl_status_t xpl_pg_select(struct xpl_pg_store *s, const char *sql, const struct xpl_pg_args *a,
                           const struct xpl_pg_into *to, struct xpl_error *err);
// The first column of the first row; without one *ret stays as it is.
xpl_status_t xpl_pg_select_number(struct xpl_pg_store *s, const char *sql,
                                  const struct xpl_pg_args *a, int64_t *ret, struct xpl_error *err);

// ---- tx.c ----

extern const struct xpl_tx_ops xpl_pg_tx;
static inline xpl_status_t xpl_pg_enter(struct xpl_pg_store *s, bool *ret_own,
                                        struct xpl_error *err) {
    return xpl_tx_enter(&s->tx, ret_own, err);
}
static inline xpl_status_t xpl_pg_leave(struct xpl_pg_store *s, bool own, enum xpl_pg_rc rc,
                                        struct xpl_error *err) {
    return xpl_tx_leave(&s->tx, own, (int)rc, err);
}

// ---- profiles.c ----

bool xpl_pg_find_file(struct xpl_store *base, const struct xpl_fingerprint *file,
                      struct xpl_profile_id *ret);
void xpl_pg_find_files(struct xpl_store *base, const struct xpl_fingerprint *const *files, size_t n,
                       struct xpl_profile_id *ret, bool *known);
bool xpl_pg_has_size(struct xpl_store *base, uint64_t bytes);
bool xpl_pg_list_files(struct xpl_store *base, size_t max, xpl_store_file_fn *each, void *arg);
bool xpl_pg_has_rows(struct xpl_store *base, const struct xpl_profile_id *profile,
                     enum xpl_rows_kind kind, uint32_t version);
xpl_status_t xpl_pg_put_file(struct xpl_store *base, const struct xpl_fingerprint *file,
                             const struct xpl_profile_id *profile, struct xpl_error *err);
// Inside a transaction: the profile's row, made when there is none, and locked against removal.
enum xpl_pg_rc xpl_pg_profile_row(struct xpl_pg_store *s, const struct xpl_profile_id *id,
                                  int64_t *ret);
// Inside a transaction: notes that a result was made of these.
enum xpl_pg_rc xpl_pg_add_profiles(struct xpl_pg_store *s, int64_t result,
                                   const struct xpl_store_key *key);

// ---- evict.c; inside a transaction ----

// Removes the results whose ids the statement gives, and counts them.  At most `PG_BATCH` rows: id,
// week (NULL: inline), size_bytes.  OTHER, and nothing is removed: there are more.
enum { PG_BATCH = 64 };
enum xpl_pg_rc xpl_pg_remove(struct xpl_pg_store *s, const char *sql, const struct xpl_pg_args *a,
                             int64_t *ret_n);
// Removes the rows of a profile.
enum xpl_pg_rc xpl_pg_delete_rows(struct xpl_pg_store *s, int64_t profile_id);
// Those of one kind, which others take the place of.
enum xpl_pg_rc xpl_pg_delete_rows_of(struct xpl_pg_store *s, int64_t profile_id,
                                     enum xpl_rows_kind kind);
// Writes down which results were used.
enum xpl_pg_rc xpl_pg_flush_touches(struct xpl_pg_store *s);
// Removes results that were found damaged.
enum xpl_pg_rc xpl_pg_remove_damaged(struct xpl_pg_store *s);
// Whether one of these two has something to do.
bool xpl_pg_has_notes(const struct xpl_pg_store *s);
// Removes results, then rows, until `need` more bytes fit under the limit; nothing of this
// transaction.  TOOBIG when they cannot.
enum xpl_pg_rc xpl_pg_make_room(struct xpl_pg_store *s, uint64_t need);

// ---- chunks.c ----

enum { PG_CHUNK = 1 << 20, PG_INLINE = 64 << 10 };
// Compresses at most PG_CHUNK bytes.
bool xpl_pg_compress(xpl_bytes_t data, struct xpl_buf *ret);
// Decompresses what must give `len` bytes, which *to has room for.
bool xpl_pg_decompress(xpl_bytes_t frame, uint8_t *to, size_t len);

// Of results: bytes of a digest, and of a row without its data, as the limit counts.
enum { PG_DIGEST = 16, PG_OVERHEAD = 512 };
// Finds rows; which of two keys it is, the key itself says.
xpl_bytes_t xpl_pg_digest(xpl_bytes_t key, uint8_t ret[PG_DIGEST]);

// ---- results.c, rows.c, catalogue.c, maintain.c: functions of the table ----

xpl_status_t xpl_pg_get(struct xpl_store *base, const struct xpl_store_key *key, size_t max_bytes,
                        struct xpl_store_value *ret, struct xpl_error *err);
bool xpl_pg_has(struct xpl_store *base, const struct xpl_store_key *key);
void xpl_pg_has_many(struct xpl_store *base, const struct xpl_store_key *keys, size_t n, bool *ret);
xpl_status_t xpl_pg_put(struct xpl_store *base, const struct xpl_store_key *key, xpl_bytes_t data,
                        xpl_bytes_t meta, struct xpl_error *err);
xpl_status_t xpl_pg_put_rows(struct xpl_store *base, const struct xpl_profile_id *profile,
                             uint32_t version, const struct xpl_rows *rows, struct xpl_error *err);
xpl_status_t xpl_pg_put_catalogue(struct xpl_store *base, const struct xpl_snapshot *snap,
                                  const struct xpl_cancel *cancel, struct xpl_error *err);
// Takes or renews the lease of the catalogue; NONE: another daemon has it.
enum xpl_pg_rc xpl_pg_lease_catalogue(struct xpl_pg_store *s, int64_t *ret_fence);
// Another daemon has it: it is not asked for in the next seconds.
void xpl_pg_leave_catalogue(struct xpl_pg_store *s);
xpl_status_t xpl_pg_maintain(struct xpl_store *base, const struct xpl_store_maintenance *m,
                             bool *ret_more, struct xpl_error *err);

// ---- batch.c, jobs_text.c, jobs_claim.c, jobs.c: the table of jobs ----

extern const struct xpl_job_ops xpl_pg_jobs; // jobs.c
// Files as text: size, time, host.  NULL without memory.
xpl_str_t *xpl_pg_write_files(struct xpl_arena *arena, const struct xpl_job_file *files, size_t n);
// Those of a column with slashes between them.
enum xpl_pg_rc xpl_pg_read_files(struct xpl_pg_conn *c, const PGresult *r, int column,
                                 struct xpl_arena *arena, struct xpl_job_file **ret, size_t *ret_n);
// j->products.
enum xpl_pg_rc xpl_pg_read_products(struct xpl_pg_conn *c, const PGresult *r,
                                    struct xpl_arena *arena, struct xpl_job *j);
// A product and its version, as text.
bool xpl_pg_write_product(struct xpl_arena *arena, xpl_str_t name, uint32_t version,
                          xpl_str_t *ret);
xpl_status_t xpl_pg_put_jobs(struct xpl_store *base, const struct xpl_job_put *puts, size_t n,
                             struct xpl_error *err);
xpl_status_t xpl_pg_claim_job(struct xpl_store *base, const struct xpl_job_offer *o,
                              struct xpl_arena *arena, struct xpl_job **ret, struct xpl_error *err);
xpl_status_t xpl_pg_renew_jobs(struct xpl_store *base, struct xpl_job_claim *c, size_t n,
                               bool *ret_kept, struct xpl_error *err);
xpl_status_t xpl_pg_conclude_job(struct xpl_store *base, const struct xpl_job_end *e,
                                 struct xpl_error *err);

// ---- captures.c: captures and schedules of all daemons ----

extern const struct xpl_captures_ops xpl_pg_captures;

// ---- listings.c: listings of buckets ----

extern const struct xpl_listing_ops xpl_pg_listings;

#endif
