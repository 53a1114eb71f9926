// SPDX-License-Identifier: Apache-2.0
// Profiles, their files, and results: what publications write and lookups read.
#include <string.h>

#include "tests/check.h"
#include "tests/simulation/tables.h"

enum { MAX_ROWS = 4096 };

// A row of profile_files, profiles or results.
struct row {
    xpl_bytes_t key, value; // of a result: digest, compressed bytes
    xpl_bytes_t text;       // of a result: its key
    int64_t size, checksum;
    bool is;
    struct sim_session *writer;
};

struct table {
    struct row rows[MAX_ROWS];
    size_t n;
};

static struct table profiles, files, results;

void sim_results_reset(void) {
    profiles.n = files.n = results.n = 0;
}

static void end_rows(struct table *t, const struct sim_session *s, bool commit) {
    for (size_t i = 0; i < t->n; i++) {
        struct row *const r = &t->rows[i];
        if (r->writer != s) continue;
        r->is |= commit;
        r->writer = NULL;
        if (!r->is) r->key.len = 0; // as if it had never been there
    }
}

void sim_results_end(struct sim_session *s, bool commit) {
    end_rows(&profiles, s, commit);
    end_rows(&files, s, commit);
    end_rows(&results, s, commit);
}

static struct row *find(struct table *t, xpl_bytes_t key) {
    for (size_t i = 0; i < t->n; i++)
        if (sim_bytes_eq(t->rows[i].key, key)) return &t->rows[i];
    return NULL;
}

static bool is_seen(const struct sim_session *s, const struct row *r) {
    return r && (r->is || r->writer == s);
}

static struct row *add(struct sim_session *s, struct table *t, xpl_bytes_t key) {
    CHECK(t->n < MAX_ROWS);
    struct row *const r = &t->rows[t->n++];
    *r = (struct row){.key = key, .writer = s};
    return r;
}

// Whether none of the keys is in a row that another session writes.
static bool are_free(const struct sim_session *s, struct table *t, struct sim_texts keys) {
    for (size_t i = 0; i < keys.n; i++) {
        const struct row *const r = find(t, keys.list[i]);
        if (r && r->writer && r->writer != s) return false;
    }
    return true;
}

// ON CONFLICT DO UPDATE: locks the rows that are there.
static bool insert_or_lock(struct sim_session *s, struct table *t, struct sim_texts keys,
                           struct sim_texts values) {
    if (!are_free(s, t, keys)) return false;
    for (size_t i = 0; i < keys.n; i++) {
        struct row *r = find(t, keys.list[i]);
        if (!r) r = add(s, t, keys.list[i]);
        r->writer = s;
        r->value = values.list[i];
    }
    return true;
}

static bool insert_profiles(struct sim_session *s, const struct sim_statement *st, PGresult *r) {
    const struct sim_texts content = sim_arg_texts(st, 0);
    (void)r;
    return insert_or_lock(s, &profiles, content, content);
}

static bool insert_files(struct sim_session *s, const struct sim_statement *st, PGresult *r) {
    (void)r;
    return insert_or_lock(s, &files, sim_arg_texts(st, 0), sim_arg_texts(st, 1));
}

// ON CONFLICT DO NOTHING RETURNING id, digest
static bool insert_results(struct sim_session *s, const struct sim_statement *st, PGresult *r) {
    enum { DIGESTS, KEYS, NAMES, OPTIONS, VERSIONS, SIZES, CHECKSUMS, FRAMES };
    const struct sim_texts digests = sim_arg_texts(st, DIGESTS), keys = sim_arg_texts(st, KEYS),
                           frames = sim_arg_texts(st, FRAMES);
    size_t n;
    const int64_t *const sizes = sim_arg_numbers(st, SIZES, &n);
    const int64_t *const checksums = sim_arg_numbers(st, CHECKSUMS, &n);
    if (!are_free(s, &results, digests)) return false;
    r->n_columns = 2;
    for (size_t i = 0; i < n; i++) {
        if (find(&results, digests.list[i])) continue;
        struct row *const row = add(s, &results, digests.list[i]);
        row->text = keys.list[i];
        row->value = frames.list[i];
        row->size = sizes[i];
        row->checksum = checksums[i];
        const int at = sim_result_row(r, 2);
        sim_result_i64(r, at, 0, (int64_t)results.n);
        sim_result_bytes(r, at, 1, row->key);
    }
    return true;
}

static bool insert_references(struct sim_session *s, const struct sim_statement *st, PGresult *r) {
    (void)s, (void)st, (void)r;
    return true;
}

static bool is_there(struct sim_session *s, const struct sim_statement *st, PGresult *r) {
    enum { DIGEST, KEY, CHECKSUM, SIZE, FRAME };
    const struct row *const row = find(&results, st->args[DIGEST]);
    r->n_columns = 1;
    if (is_seen(s, row) && sim_bytes_eq(row->text, st->args[KEY]) &&
        row->checksum == sim_arg_i64(st, CHECKSUM) && row->size == sim_arg_i64(st, SIZE) &&
        sim_bytes_eq(row->value, st->args[FRAME]))
        sim_result_i64(r, sim_result_row(r, 1), 0, 1);
    return true;
}

static bool get_result(struct sim_session *s, const struct sim_statement *st, PGresult *r) {
    const struct row *const row = find(&results, st->args[0]);
    r->n_columns = 6;
    if (!is_seen(s, row) || !sim_bytes_eq(row->text, st->args[1])) return true;
    const int at = sim_result_row(r, 6);
    sim_result_i64(r, at, 0, row - results.rows + 1);
    sim_result_i64(r, at, 1, row->size);
    sim_result_i64(r, at, 2, row->checksum);
    sim_result_bytes(r, at, 5, row->value);
    return true;
}

static bool find_results(struct sim_session *s, const struct sim_statement *st, PGresult *r) {
    const struct sim_texts digests = sim_arg_texts(st, 0), keys = sim_arg_texts(st, 1);
    r->n_columns = 1;
    for (size_t i = 0; i < digests.n; i++) {
        const struct row *const row = find(&results, digests.list[i]);
        if (is_seen(s, row) && sim_bytes_eq(row->text, keys.list[i]))
            sim_result_i64(r, sim_result_row(r, 1), 0, (int64_t)i + 1);
    }
    return true;
}

static bool find_files(struct sim_session *s, const struct sim_statement *st, PGresult *r) {
    const struct sim_texts prints = sim_arg_texts(st, 0);
    size_t n;
    const int64_t *const places = sim_arg_numbers(st, 1, &n);
    r->n_columns = 2;
    for (size_t i = 0; i < n; i++) {
        const struct row *const row = find(&files, prints.list[i]);
        if (!is_seen(s, row)) continue;
        const int at = sim_result_row(r, 2);
        sim_result_i64(r, at, 0, places[i]);
        sim_result_bytes(r, at, 1, row->value);
    }
    return true;
}

static const struct {
    const char *begin;
    bool (*run)(struct sim_session *s, const struct sim_statement *st, PGresult *r);
} known[] = {
    {"INSERT INTO profiles(content_id, size_bytes) SELECT", insert_profiles},
    {"INSERT INTO profile_files(fingerprint, profile_id) SELECT", insert_files},
    {"INSERT INTO results(digest, key, name, options, ", insert_results},
    {"INSERT INTO result_profiles(profile_id, result_id) SELECT", insert_references},
    {"SELECT 1::bigint FROM results WHERE digest=$1 AND key=$2 AND checksum=$3", is_there},
    {"SELECT id, size_bytes, checksum, meta, week, small", get_result},
    {"SELECT u.i::bigint FROM unnest($1,$2) WITH ORDINALITY", find_results},
    {"SELECT u.i, p.content_id FROM unnest($1,$2) u(f,i)", find_files},
};

bool sim_result_statement(struct sim_session *s, const struct sim_statement *st, PGresult *r,
                          bool *ret_done) {
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strncmp(st->sql, known[i].begin, strlen(known[i].begin)) != 0) continue;
        *ret_done = known[i].run(s, st, r);
        return true;
    }
    return false;
}
