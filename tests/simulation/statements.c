// SPDX-License-Identifier: Apache-2.0
// What the statements about jobs and daemons do to the tables.  Each is recognized by how it
// begins; one that is not known ends the test.
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "storage/store/jobs.h"
#include "tests/check.h"
#include "tests/simulation/faults.h"
#include "tests/simulation/tables.h"
#include "tests/simulation/world.h"

enum { MAX_DAEMONS = 256, FILES_MAX = 1 << 16 };

// A row of daemons.
struct daemon {
    xpl_bytes_t id, role, version;
    int64_t n_threads;
    uint64_t expires_at;
};

static struct {
    struct daemon daemons[MAX_DAEMONS];
    size_t n_daemons;
    int64_t version; // of the tables
    xpl_bytes_t secret;
} tables;

void sim_statements_reset(void) {
    const int64_t version = tables.version; // made by the first run
    memset(&tables, 0, sizeof tables);
    tables.version = version;
}

// ---- parameters and values ----

static int64_t number_at(const uint8_t *p) {
    uint64_t be;
    memcpy(&be, p, sizeof be);
    return (int64_t)be64toh(be);
}

int64_t sim_arg_i64(const struct sim_statement *st, int i) {
    CHECK(i < st->n && st->args[i].len == 8);
    return number_at(st->args[i].ptr);
}

static uint32_t take_u32(const uint8_t **p) {
    uint32_t be;
    memcpy(&be, *p, sizeof be);
    *p += sizeof be;
    return be32toh(be);
}

// An array's elements follow its dimension: number, and the first index.
struct sim_texts sim_arg_texts(const struct sim_statement *st, int i) {
    const uint8_t *p = st->args[i].ptr;
    struct sim_texts ret = {0};
    CHECK(i < st->n && st->args[i].len >= 12);
    if (!take_u32(&p)) return ret;
    p += 8;
    ret.n = take_u32(&p);
    p += 4;
    ret.list = sim_alloc(ret.n * sizeof *ret.list);
    for (size_t k = 0; k < ret.n; k++) {
        const size_t len = take_u32(&p);
        ret.list[k] = (xpl_bytes_t){p, len};
        p += len;
    }
    return ret;
}

const int64_t *sim_arg_numbers(const struct sim_statement *st, int i, size_t *ret_n) {
    const struct sim_texts all = sim_arg_texts(st, i);
    int64_t *const ret = sim_alloc(all.n * sizeof *ret);
    for (size_t k = 0; k < all.n; k++)
        ret[k] = number_at(all.list[k].ptr);
    *ret_n = all.n;
    return ret;
}

bool sim_bytes_eq(xpl_bytes_t a, xpl_bytes_t b) {
    return a.len == b.len && (!a.len || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static bool contains(struct sim_texts all, xpl_bytes_t one) {
    for (size_t i = 0; i < all.n; i++)
        if (sim_bytes_eq(all.list[i], one)) return true;
    return false;
}

int sim_result_row(PGresult *r, int n_columns) {
    const size_t n = (size_t)(r->n_rows * n_columns);
    xpl_bytes_t *const values = sim_alloc((n + (size_t)n_columns) * sizeof *values);
    if (n) memcpy(values, r->values, n * sizeof *values);
    r->values = values;
    r->n_columns = n_columns;
    return r->n_rows++;
}

void sim_result_bytes(PGresult *r, int row, int column, xpl_bytes_t v) {
    r->values[row * r->n_columns + column] = v.ptr ? v : (xpl_bytes_t){(const uint8_t *)"", 0};
}

void sim_result_i64(PGresult *r, int row, int column, int64_t v) {
    const uint64_t be = htobe64((uint64_t)v);
    sim_result_bytes(r, row, column, (xpl_bytes_t){sim_copy(&be, sizeof be), sizeof be});
}

static void give_i64(PGresult *r, int64_t v) {
    sim_result_i64(r, sim_result_row(r, 1), 0, v);
}

// array_to_string(..., '/'), of several arrays.
struct joined {
    uint8_t *p;
    size_t n;
};

static void join(struct joined *j, struct sim_texts t) {
    if (!j->p) j->p = sim_alloc(FILES_MAX);
    for (size_t i = 0; i < t.n; i++) {
        CHECK(j->n + t.list[i].len + 1 < FILES_MAX);
        if (j->n) j->p[j->n++] = '/';
        memcpy(j->p + j->n, t.list[i].ptr, t.list[i].len);
        j->n += t.list[i].len;
    }
}

static xpl_bytes_t joined_texts(struct sim_texts t) {
    struct joined j = {0};
    join(&j, t);
    return (xpl_bytes_t){j.p, j.n};
}

static xpl_bytes_t joined_numbers(const int64_t *v, size_t n) {
    char *const text = sim_alloc(32 * n + 1);
    size_t len = 0;
    for (size_t i = 0; i < n; i++)
        len += (size_t)snprintf(text + len, 32, "%s%lld", i ? "/" : "", (long long)v[i]);
    return (xpl_bytes_t){(const uint8_t *)text, len};
}

// ---- rows ----

// In the order of ids.
#define EACH_ROW(s, r, j)                                                                          \
    for (struct sim_row *r = sim_tables.rows; r < sim_tables.rows + sim_tables.n_rows; r++)        \
        for (const struct sim_job *j = sim_row_seen(s, r); j; j = NULL)

static bool is_noted(const struct sim_job *j, xpl_bytes_t owner) {
    for (size_t i = 0; i < j->n_notes; i++)
        if (sim_bytes_eq(j->notes[i].owner, owner)) return true;
    return false;
}

static void remove_note(struct sim_job *j, xpl_bytes_t owner) {
    size_t n = 0;
    for (size_t i = 0; i < j->n_notes; i++)
        if (!sim_bytes_eq(j->notes[i].owner, owner)) j->notes[n++] = j->notes[i];
    j->n_notes = n;
}

static uint64_t lock_key(int64_t id) {
    return (uint64_t)id;
}

static bool is_held(const struct sim_job *j) {
    return sim_lock_is_held(lock_key(j->id));
}

static struct sim_row *row_of(const struct sim_session *s, int64_t id) {
    struct sim_row *const r = &sim_tables.rows[id - 1];
    CHECK(id >= 1 && (size_t)id <= sim_tables.n_rows);
    return sim_row_seen(s, r) ? r : NULL;
}

// ---- requests ----

static bool insert_jobs(struct sim_session *s, const struct sim_statement *st, PGresult *r) {
    enum { REQUEST, SESSION, TRACE, PRODUCTS, VARIANTS, FILES, BEGINS, ENDS };
    const struct sim_texts files = sim_arg_texts(st, FILES);
    size_t n;
    const int64_t *const begins = sim_arg_numbers(st, BEGINS, &n);
    const int64_t *const ends = sim_arg_numbers(st, ENDS, &n);
    EACH_ROW(s, row, j)
    if (sim_bytes_eq(j->request, st->args[REQUEST]) && !j->aside_at) return true;
    s->verb = SIM_QUEUE;
    for (size_t i = 0; i < n; i++) {
        struct sim_job *const j = &sim_row_add(s)->next;
        size_t n_variants;
        j->request = st->args[REQUEST];
        j->session = st->args[SESSION];
        j->trace = st->args[TRACE];
        j->products = sim_arg_texts(st, PRODUCTS);
        j->variants = sim_arg_numbers(st, VARIANTS, &n_variants);
        j->files =
            (struct sim_texts){files.list + begins[i] - 1, (size_t)(ends[i] - begins[i] + 1)};
        j->rank = (int64_t)i + 1;
        r->n_changed++;
    }
    return true;
}

static void give_progress(PGresult *r, int64_t n_left, int64_t n_unclaimed, struct joined lost) {
    const int row = sim_result_row(r, 3);
    sim_result_i64(r, row, 0, n_left);
    sim_result_i64(r, row, 1, n_unclaimed);
    sim_result_bytes(r, row, 2, (xpl_bytes_t){lost.p, lost.n});
}

static bool inspect(struct sim_session *s, const struct sim_statement *st, PGresult *r) {
    int64_t n_left = 0, n_unclaimed = 0;
    struct joined lost = {0};
    EACH_ROW(s, row, j) {
        if (!sim_bytes_eq(j->request, st->args[0])) continue;
        n_left += !j->aside_at;
        n_unclaimed += !j->n_notes;
        if (j->n_notes && !is_held(j)) join(&lost, j->files);
    }
    give_progress(r, n_left, n_unclaimed, lost);
    return true;
}

static bool find_aside(struct sim_session *s, const struct sim_statement *st, PGresult *r) {
    struct joined lost = {0};
    EACH_ROW(s, row, j)
    if (sim_bytes_eq(j->session, st->args[0]) && j->aside_at) join(&lost, j->files);
    give_progress(r, 0, 0, lost);
    return true;
}

static bool withdraw(struct sim_session *s, const struct sim_statement *st, PGresult *r) {
    (void)r;
    s->verb = SIM_WITHDRAW;
    EACH_ROW(s, row, j) {
        if (!sim_bytes_eq(j->request, st->args[0]) || j->n_notes) continue;
        if (!sim_row_lock(s, row)) return false;
        row->will_be = false;
    }
    return true;
}

// ---- claims ----

static bool is_open(const struct sim_job *j, struct sim_texts offered, xpl_bytes_t owner) {
    bool made = !j->aside_at && j->ready_at <= sim_database_now() && !is_noted(j, owner);
    for (size_t i = 0; i < j->products.n && made; i++)
        made = contains(offered, j->products.list[i]);
    return made;
}

static bool is_earlier(const struct sim_job *a, const struct sim_job *b) {
    return a->rank < b->rank || (a->rank == b->rank && a->queued_at < b->queued_at);
}

static bool lock_job(struct sim_session *s, const struct sim_statement *st, PGresult *r) {
    const struct sim_texts offered = sim_arg_texts(st, 0);
    const struct sim_job *first = NULL;
    EACH_ROW(s, row, j) {
        const uint64_t key = lock_key(j->id);
        const bool ours = sim_lock_is_ours(s, key);
        if (is_open(j, offered, st->args[1]) && (ours || !sim_lock_is_held(key)) &&
            (!first || is_earlier(j, first)))
            first = j;
    }
    if (!first) {
        r->n_columns = 2;
        return true;
    }
    CHECK(sim_lock_try(s, lock_key(first->id), false));
    const int row = sim_result_row(r, 2);
    sim_result_i64(r, row, 0, first->id);
    sim_result_i64(r, row, 1, first->files.n == 1 && first->n_notes);
    return true;
}

static struct sim_texts part_of(struct sim_texts t, size_t begin, size_t n) {
    return (struct sim_texts){t.list + begin, begin + n < t.n ? n : t.n - begin};
}

// The rest of a divided job, in three more rows.
static void divide(struct sim_session *s, const struct sim_job *from, size_t k) {
    for (size_t i = 1; i <= 3 && i * k < from->files.n; i++) {
        struct sim_job *const j = &sim_row_add(s)->next;
        const int64_t id = j->id;
        *j = *from;
        j->id = id;
        j->ready_at = 0;
        j->files = part_of(from->files, i * k, k);
        if (sim_fault_is(SIM_FAULT_HALVED) && j->files.n > 1) j->files.n--;
    }
}

static void give_job(PGresult *r, const struct sim_job *j) {
    const int row = sim_result_row(r, 9);
    sim_result_i64(r, row, 0, j->id);
    sim_result_bytes(r, row, 1, j->session);
    sim_result_bytes(r, row, 2, joined_texts(j->files));
    sim_result_bytes(r, row, 3, joined_texts(j->products));
    sim_result_bytes(r, row, 4, joined_numbers(j->variants, j->products.n));
    sim_result_bytes(r, row, 5, j->trace);
    sim_result_i64(r, row, 6, (int64_t)j->n_notes);
    sim_result_i64(r, row, 7, (int64_t)(sim_database_now() - j->queued_at) / (int64_t)SIM_MS);
    sim_result_i64(r, row, 8, j->aside_at != 0);
}

static bool begin_job(struct sim_session *s, const struct sim_statement *st, PGresult *r) {
    const size_t most = (size_t)sim_arg_i64(st, 2);
    struct sim_row *const row = row_of(s, sim_arg_i64(st, 0));
    r->n_columns = 9;
    if (row && !sim_row_lock(s, row)) return false;
    if (!row || row->next.aside_at) return true;
    struct sim_job *const j = &row->next;
    const size_t k = (j->files.n + 3) / 4;
    const bool many = j->files.n > 1;
    s->verb = SIM_CLAIM;
    if (many && j->n_notes > (size_t)j->n_divided) {
        if (k == 1 && j->n_notes > most - 1) j->n_notes = most - 1;
        j->n_divided = (int64_t)j->n_notes;
        divide(s, j, k);
        j->files = part_of(j->files, 0, k);
    }
    if (!many && j->n_notes >= most) {
        j->aside_at = sim_database_now();
    } else {
        CHECK(j->n_notes < SIM_NOTES);
        j->notes[j->n_notes++] = (struct sim_note){st->args[1], sim_conn_process(s->c)};
        r->job = s->claimed = j->id;
    }
    give_job(r, j);
    return true;
}

static bool unlock_job(struct sim_session *s, const struct sim_statement *st, PGresult *r) {
    sim_lock_release(s, lock_key(sim_arg_i64(st, 0)));
    give_i64(r, 1);
    return true;
}

static bool keep_lock(struct sim_session *s, const struct sim_statement *st, PGresult *r) {
    const uint64_t key = lock_key(sim_arg_i64(st, 0));
    const bool is = row_of(s, sim_arg_i64(st, 0)) || sim_fault_is(SIM_FAULT_DOUBLE);
    give_i64(r, is && (sim_lock_is_ours(s, key) || sim_lock_try(s, key, false)));
    return true;
}

static bool remove_notes(struct sim_session *s, const struct sim_statement *st, PGresult *r) {
    size_t n;
    const int64_t *const kept = sim_arg_numbers(st, 1, &n);
    (void)r;
    EACH_ROW(s, row, j) {
        bool works = !is_noted(j, st->args[0]);
        for (size_t i = 0; i < n; i++)
            works |= kept[i] == j->id;
        if (works) continue;
        if (!sim_row_lock(s, row)) return false;
        remove_note(&row->next, st->args[0]);
    }
    return true;
}

// The session's lock goes; the statement may keep it until the transaction ends.
static void release_job(struct sim_session *s, const struct sim_statement *st, int64_t id) {
    if (strstr(st->sql, "_advisory_xact_lock('jobs'")) CHECK(sim_lock_try(s, lock_key(id), true));
    sim_lock_release(s, lock_key(id));
}

static bool give_rest_back(struct sim_session *s, const struct sim_statement *st, PGresult *r) {
    struct sim_row *const row = row_of(s, sim_arg_i64(st, 0));
    if (row && !sim_row_lock(s, row)) return false;
    if (!row) return true;
    s->verb = SIM_END;
    row->next.files = sim_arg_texts(st, 2);
    row->next.ready_at = sim_database_now() + (uint64_t)sim_arg_i64(st, 3) * SIM_MS;
    if (!sim_fault_is(SIM_FAULT_COUNTED)) remove_note(&row->next, st->args[1]);
    release_job(s, st, row->next.id);
    r->n_changed = 1;
    return true;
}

static bool end_job(struct sim_session *s, const struct sim_statement *st, PGresult *r) {
    struct sim_row *const row = row_of(s, sim_arg_i64(st, 0));
    if (row && !sim_row_lock(s, row)) return false;
    s->verb = SIM_END;
    if (!row && sim_fault_is(SIM_FAULT_DOUBLE)) {
        sim_world_ends_again(&sim_tables.rows[sim_arg_i64(st, 0) - 1].now);
        r->n_changed = 1;
    }
    if (!row) return true;
    row->will_be = false;
    release_job(s, st, row->next.id);
    r->n_changed = 1;
    return true;
}

// ---- daemons ----

static bool sweep(struct sim_session *s, const struct sim_statement *st, PGresult *r) {
    const uint64_t now = sim_database_now(), aside = (uint64_t)sim_arg_i64(st, 0) * SIM_S;
    (void)r;
    s->verb = SIM_SWEEP;
    EACH_ROW(s, row, j) {
        const bool old = j->queued_at + 86400 * SIM_S < now && !is_held(j);
        if ((!j->aside_at || j->aside_at + aside >= now) && !old) continue;
        if (sim_row_lock(s, row)) row->will_be = false; // SKIP LOCKED
    }
    return true;
}

static bool report(struct sim_session *s, const struct sim_statement *st, PGresult *r) {
    struct daemon *d = tables.daemons;
    (void)s, (void)r;
    while (d < tables.daemons + tables.n_daemons && !sim_bytes_eq(d->id, st->args[0]))
        d++;
    CHECK(d < tables.daemons + MAX_DAEMONS);
    tables.n_daemons += d == tables.daemons + tables.n_daemons;
    *d = (struct daemon){.id = st->args[0],
                         .role = st->args[2],
                         .version = st->args[3],
                         .n_threads = sim_arg_i64(st, 6),
                         .expires_at = sim_database_now() + (uint64_t)sim_arg_i64(st, 5) * SIM_MS};
    return true;
}

static bool get_stats(struct sim_session *s, const struct sim_statement *st, PGresult *r) {
    enum { QUEUED, RUNNING, ASIDE, WORKERS, PEERS, THREADS, OLDEST_MS, N = 16 };
    int64_t v[N] = {0};
    (void)st;
    EACH_ROW(s, row, j)
    v[j->aside_at ? ASIDE : is_held(j) ? RUNNING : QUEUED]++;
    for (size_t i = 0; i < tables.n_daemons; i++) {
        const struct daemon *const d = &tables.daemons[i];
        if (d->role.len != 6 || memcmp(d->role.ptr, "worker", 6) != 0 ||
            d->expires_at <= sim_database_now())
            continue;
        v[WORKERS]++;
        v[PEERS]++; // all of one version
        v[THREADS] += d->n_threads;
    }
    const int row = sim_result_row(r, N);
    for (int i = 0; i < N; i++)
        sim_result_i64(r, row, i, v[i]);
    return true;
}

// ---- what connecting asks for ----

static bool get_clock(struct sim_session *s, const struct sim_statement *st, PGresult *r) {
    (void)s, (void)st;
    give_i64(r, (int64_t)(sim_database_now() / SIM_MS) + INT64_C(1700000000000));
    return true;
}

static bool get_zero(struct sim_session *s, const struct sim_statement *st, PGresult *r) {
    (void)s, (void)st;
    give_i64(r, 0);
    return true;
}

static bool get_pid(struct sim_session *s, const struct sim_statement *st, PGresult *r) {
    (void)st;
    give_i64(r, s->number);
    return true;
}

static bool get_version(struct sim_session *s, const struct sim_statement *st, PGresult *r) {
    (void)s, (void)st;
    give_i64(r, tables.version);
    return true;
}

static bool set_version(struct sim_session *s, const struct sim_statement *st, PGresult *r) {
    (void)s, (void)r;
    tables.version = strtoll(strchr(st->sql, '=') + 1, NULL, 10);
    return true;
}

static bool get_secret(struct sim_session *s, const struct sim_statement *st, PGresult *r) {
    (void)s, (void)st;
    r->n_columns = 1;
    if (tables.secret.len) sim_result_bytes(r, sim_result_row(r, 1), 0, tables.secret);
    return true;
}

static bool set_secret(struct sim_session *s, const struct sim_statement *st, PGresult *r) {
    (void)s, (void)r;
    if (!tables.secret.len) tables.secret = st->args[0];
    return true;
}

static bool do_nothing(struct sim_session *s, const struct sim_statement *st, PGresult *r) {
    (void)s, (void)st, (void)r;
    return true;
}

// ---- the table of them ----

static const struct {
    const char *begin;
    bool (*run)(struct sim_session *s, const struct sim_statement *st, PGresult *r);
} known[] = {
    {"WITH open AS MATERIALIZED (SELECT id, ", lock_job},
    {"WITH j AS (SELECT *, cardinality(files) AS n, ", begin_job},
    {"SELECT pg_advisory_unlock('jobs'", unlock_job},
    {"SELECT (CASE WHEN NOT EXISTS (SELECT FROM jobs WHERE id=$1)", keep_lock},
    {"UPDATE jobs SET attempts=array_remove(attempts,$1)", remove_notes},
    {"UPDATE jobs SET files=$3, attempts=array_remove(", give_rest_back},
    {"DELETE FROM jobs WHERE id=$1 RETURNING", end_job},
    {"SELECT count(*) FILTER (WHERE aside_at IS NULL),", inspect},
    {"WITH held AS (SELECT * FROM ", get_stats},
    {"INSERT INTO jobs(request, session, trace, ", insert_jobs},
    {"SELECT 0::bigint, 0::bigint, coalesce(string_agg(", find_aside},
    {"DELETE FROM jobs WHERE request=$1 AND cardinality(", withdraw},
    {"INSERT INTO daemons VALUES(", report},
    {"WITH gone AS (DELETE FROM daemons WHERE ", sweep},
    {"SELECT (extract(epoch FROM clock_timestamp())*1000)", get_clock},
    {"SELECT (current_setting('transaction_read_only')", get_zero},
    {"SELECT (coalesce((SELECT sum(size_bytes+512) FROM results", get_zero},
    {"SELECT pg_backend_pid()", get_pid},
    {"SELECT version FROM xplaned_schema", get_version},
    {"UPDATE xplaned_schema SET version=", set_version},
    {"SELECT value FROM settings WHERE name='profile_secret'", get_secret},
    {"INSERT INTO settings(name, value) VALUES('profile_secret'", set_secret},
    {"INSERT INTO settings VALUES('names'", do_nothing},
    {"INSERT INTO xplaned_schema", do_nothing},
    {"UPDATE leases SET expires_at=", do_nothing},
    {"CREATE ", do_nothing},
    {"ALTER ", do_nothing},
    {"DROP ", do_nothing},
};

bool sim_statement_run(struct sim_session *s, const struct sim_statement *st, PGresult *r) {
    bool done = true;
    r->n_columns = 0;
    if (sim_result_statement(s, st, r, &done)) return done;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strncmp(st->sql, known[i].begin, strlen(known[i].begin)) == 0)
            return known[i].run(s, st, r);
    fprintf(stderr, "the model of the database does not know: %s\n", st->sql);
    FAIL_TEST("an unknown statement");
}
