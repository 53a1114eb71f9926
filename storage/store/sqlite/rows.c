// Rows for people: ops, kernels and steps of a profile; sessions and hosts of the catalogue.
#include "storage/store/rows.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/vec.h"
#include "storage/sessions/catalogue.h"
#include "storage/sessions/path.h"
#include "storage/store/sqlite/hash.h"
#include "storage/store/sqlite/impl.h"

enum { MAX_TEXT = 4096, ROW_BYTES = 192 };

int xpl_store_delete_rows(struct xpl_store *s, int64_t profile_id) {
    static const enum xpl_sql each[] = {XPL_SQL_OP_DEL, XPL_SQL_KERNEL_DEL, XPL_SQL_STEP_DEL,
                                        XPL_SQL_PROFILE_NO_ROWS};
    int rc = SQLITE_OK;
    for (size_t i = 0; rc == SQLITE_OK && i < sizeof each / sizeof *each; i++) {
        sqlite3_stmt *st = xpl_db_stmt(s->w, each[i], &rc);
        if (!st) return rc;
        rc = sqlite3_bind_int64(st, 1, profile_id);
        if (rc == SQLITE_OK) rc = xpl_db_run(st);
        if (sqlite3_changes(s->w->h) > 0) s->rows_deleted = true;
    }
    // The last statement is of the profile itself.
    return rc == SQLITE_OK && sqlite3_changes(s->w->h) != 1 ? SQLITE_CORRUPT : rc;
}

// --- Names ---

// Texts met in one call, so that each is looked up in the database once.
struct names {
    struct xpl_store *s;
    struct xpl_arena arena;
    struct xpl_map ids;
    struct xpl_buf clean;
};

static int name_in_db(struct names *n, xpl_str_t text, int64_t *ret) {
    int rc = SQLITE_OK;
    sqlite3_stmt *st = xpl_db_stmt(n->s->w, XPL_SQL_NAME_FIND, &rc);
    if (!st) return rc;
    rc = xpl_db_bind_text(st, 1, text);
    if (rc == SQLITE_OK) rc = xpl_db_int(st, -1, ret);
    if (rc != SQLITE_OK || *ret >= 0) return rc;
    st = xpl_db_stmt(n->s->w, XPL_SQL_NAME_ADD, &rc);
    if (!st) return rc;
    rc = xpl_db_bind_text(st, 1, text);
    if (rc == SQLITE_OK) rc = xpl_db_run(st);
    if (rc == SQLITE_OK) *ret = sqlite3_last_insert_rowid(n->s->w->h);
    return rc;
}

static int bind_id(sqlite3_stmt *st, int at, int64_t id) {
    return id < 0 ? sqlite3_bind_null(st, at) : sqlite3_bind_int64(st, at, id);
}

// Binds the id of `text`; NULL for "" unless it is `needed`.
static int name_id(struct names *n, xpl_str_t text, bool needed, int64_t *ret) {
    *ret = -1;
    if (text.len == 0 && !needed) return SQLITE_OK;
    n->clean.n = 0;
    xpl_utf8_clean(&n->clean, text, MAX_TEXT);
    if (n->clean.failed) return SQLITE_NOMEM;
    const xpl_bytes_t bytes = {n->clean.p, n->clean.n};
    const uint64_t seed = xpl_hash_seed();
    uint64_t *id = xpl_map_put(&n->arena, &n->ids, xpl_digest64(bytes, seed),
                               xpl_digest64(bytes, ~seed), NULL);
    if (!id) return SQLITE_NOMEM;
    int rc = SQLITE_OK;
    int64_t found = (int64_t)*id - 1; // 0 is new
    if (found < 0) rc = name_in_db(n, (xpl_str_t){(const char *)bytes.ptr, bytes.len}, &found);
    if (rc == SQLITE_OK) *id = (uint64_t)found + 1, *ret = found;
    return rc;
}

// --- Ops, kernels, steps ---

static int add_op(struct names *n, int64_t profile, size_t seq, const struct xpl_op_row *r) {
    const xpl_str_t texts[5] = {r->name, r->module, r->category, r->framework_op, r->source};
    const uint64_t values[8] = {r->occurrences,  r->time_ps, r->self_time_ps,   r->min_time_ps,
                                r->dma_stall_ps, r->flops,   r->bytes_accessed, r->num_cores};
    int64_t ids[5];
    int rc = SQLITE_OK;
    for (size_t i = 0; rc == SQLITE_OK && i < 5; i++)
        rc = name_id(n, texts[i], i == 0, &ids[i]);
    sqlite3_stmt *st = rc ? NULL : xpl_db_stmt(n->s->w, XPL_SQL_OP_ADD, &rc);
    if (!st) return rc;
    rc = sqlite3_bind_int64(st, 1, profile);
    rc = rc ? rc : sqlite3_bind_int64(st, 2, (int64_t)seq);
    rc = rc ? rc : sqlite3_bind_int(st, 3, r->on_device);
    for (int i = 0; rc == SQLITE_OK && i < 5; i++)
        rc = bind_id(st, 4 + i, ids[i]);
    for (int i = 0; rc == SQLITE_OK && i < 8; i++)
        rc = xpl_db_bind_u64(st, 9 + i, values[i]);
    return rc ? rc : xpl_db_run(st);
}

static int add_kernel(struct names *n, int64_t profile, size_t seq,
                      const struct xpl_kernel_row *r) {
    const uint64_t values[13] = {r->occurrences,
                                 r->total_ns,
                                 r->min_ns,
                                 r->max_ns,
                                 r->registers_per_thread,
                                 r->static_shmem_bytes,
                                 r->dynamic_shmem_bytes,
                                 r->block[0],
                                 r->block[1],
                                 r->block[2],
                                 r->grid[0],
                                 r->grid[1],
                                 r->grid[2]};
    int64_t name, op;
    int rc = name_id(n, r->name, true, &name);
    if (rc == SQLITE_OK) rc = name_id(n, r->op_name, false, &op);
    sqlite3_stmt *st = rc ? NULL : xpl_db_stmt(n->s->w, XPL_SQL_KERNEL_ADD, &rc);
    if (!st) return rc;
    rc = sqlite3_bind_int64(st, 1, profile);
    rc = rc ? rc : sqlite3_bind_int64(st, 2, (int64_t)seq);
    rc = rc ? rc : bind_id(st, 3, name);
    rc = rc ? rc : bind_id(st, 4, op);
    for (int i = 0; rc == SQLITE_OK && i < 13; i++)
        rc = xpl_db_bind_u64(st, 5 + i, values[i]);
    rc = rc                               ? rc
         : isfinite(r->occupancy_percent) ? sqlite3_bind_double(st, 18, r->occupancy_percent)
                                          : sqlite3_bind_null(st, 18);
    rc = rc ? rc : sqlite3_bind_int(st, 19, r->uses_tensor_core);
    rc = rc ? rc : sqlite3_bind_int(st, 20, r->tensor_core_eligible);
    return rc ? rc : xpl_db_run(st);
}

static int add_step(struct names *n, int64_t profile, size_t seq, const struct xpl_step_row *r) {
    const uint64_t values[10] = {r->begin_ps,  r->duration_ps,   r->compute_ps, r->input_ps,
                                 r->output_ps, r->collective_ps, r->compile_ps, r->host_ps,
                                 r->idle_ps,   r->other_ps};
    int64_t name;
    int rc = name_id(n, r->name, false, &name);
    sqlite3_stmt *st = rc ? NULL : xpl_db_stmt(n->s->w, XPL_SQL_STEP_ADD, &rc);
    if (!st) return rc;
    rc = sqlite3_bind_int64(st, 1, profile);
    rc = rc ? rc : sqlite3_bind_int64(st, 2, (int64_t)seq);
    rc = rc ? rc : xpl_db_bind_u64(st, 3, r->step_num);
    rc = rc ? rc : xpl_db_bind_u64(st, 4, r->core_id);
    rc = rc ? rc : bind_id(st, 5, name);
    for (int i = 0; rc == SQLITE_OK && i < 10; i++)
        rc = xpl_db_bind_u64(st, 6 + i, values[i]);
    return rc ? rc : xpl_db_run(st);
}

static int mark_profile(struct xpl_store *s, int64_t profile, uint32_t version,
                        const struct xpl_rows *rows, struct names *n) {
    n->clean.n = 0;
    xpl_utf8_clean(&n->clean, rows->device_type, MAX_TEXT);
    if (n->clean.failed) return SQLITE_NOMEM;
    int rc = SQLITE_OK;
    sqlite3_stmt *st = xpl_db_stmt(s->w, XPL_SQL_PROFILE_ROWS, &rc);
    if (!st) return rc;
    rc = sqlite3_bind_int64(st, 1, profile);
    rc = rc ? rc : xpl_db_bind_text(st, 2, (xpl_str_t){(const char *)n->clean.p, n->clean.n});
    rc = rc ? rc : xpl_db_bind_u64(st, 3, rows->device_cores);
    rc = rc ? rc : sqlite3_bind_int64(st, 4, version);
    rc = rc ? rc : sqlite3_bind_int64(st, 5, xpl_store_now_ms());
    rc = rc ? rc : xpl_db_run(st);
    (void)sqlite3_clear_bindings(st);
    return rc;
}

static size_t at_most(size_t n) {
    return n < XPL_ROWS_MAX ? n : XPL_ROWS_MAX;
}

static int put_rows(struct xpl_store *s, const struct xpl_profile_id *id, uint32_t version,
                    const struct xpl_rows *rows, struct names *n) {
    const size_t ops = at_most(rows->n_ops), kernels = at_most(rows->n_kernels),
                 steps = at_most(rows->n_steps);
    int64_t profile = 0;
    int rc = xpl_store_profile_row(s, id, &profile);
    rc = rc ? rc : xpl_store_delete_rows(s, profile);
    rc = rc ? rc : xpl_store_make_room(s, (ops + kernels + steps) * ROW_BYTES);
    for (size_t i = 0; rc == SQLITE_OK && i < ops; i++)
        rc = add_op(n, profile, i, &rows->ops[i]);
    for (size_t i = 0; rc == SQLITE_OK && i < kernels; i++)
        rc = add_kernel(n, profile, i, &rows->kernels[i]);
    for (size_t i = 0; rc == SQLITE_OK && i < steps; i++)
        rc = add_step(n, profile, i, &rows->steps[i]);
    return rc ? rc : mark_profile(s, profile, version, rows, n);
}

xpl_status_t xpl_store_put_rows(struct xpl_store *s, const struct xpl_profile_id *profile,
                                uint32_t version, const struct xpl_rows *rows,
                                struct xpl_error *err) {
    bool own;
    XPL_TRY(xpl_store_enter(s, &own, err));
    struct names n = {.s = s};
    xpl_arena_init(&n.arena, (size_t)256 << 20);
    xpl_buf_init(&n.clean, MAX_TEXT);
    const int rc = put_rows(s, profile, version, rows, &n);
    xpl_buf_fini(&n.clean);
    xpl_arena_fini(&n.arena);
    return xpl_store_leave(s, own, rc, err);
}

// --- Sessions and hosts ---

// Of what the tables hold of a session, so that an unchanged one is not written again.
static int64_t session_digest(const struct xpl_session *se) {
    uint64_t h = xpl_digest64((xpl_bytes_t){(const uint8_t *)se->path.ptr, se->path.len}, 2);
    for (size_t i = 0; i < se->n_hosts; i++) {
        uint8_t print[40];
        xpl_store_print_bytes(&se->hosts[i].print, print);
        h = xpl_digest64((xpl_bytes_t){print, sizeof print}, h);
        h = xpl_digest64(
            (xpl_bytes_t){(const uint8_t *)se->hosts[i].name.ptr, se->hosts[i].name.len}, h);
    }
    return (int64_t)h;
}

// *ret_id -1: not there.
static int find_session(struct xpl_store *s, const struct xpl_session *se, int64_t *ret_id,
                        int64_t *ret_digest) {
    int rc = SQLITE_OK;
    sqlite3_stmt *st = xpl_db_stmt(s->w, XPL_SQL_SESSION_FIND, &rc);
    if (!st) return rc;
    *ret_id = -1;
    rc = xpl_db_bind_text(st, 1, se->name);
    if (rc == SQLITE_OK) rc = sqlite3_step(st);
    if (rc == SQLITE_ROW) {
        *ret_id = sqlite3_column_int64(st, 0);
        *ret_digest = sqlite3_column_int64(st, 1);
    }
    (void)sqlite3_reset(st);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int write_session(struct xpl_store *s, const struct xpl_session *se, int64_t digest,
                         bool there, int64_t *id) {
    struct xpl_arena a;
    xpl_arena_init(&a, 1 << 20);
    xpl_str_t path;
    int rc = xpl_name_escape(&a, se->path, &path) ? SQLITE_OK : SQLITE_NOMEM;
    sqlite3_stmt *st =
        rc ? NULL : xpl_db_stmt(s->w, there ? XPL_SQL_SESSION_SET : XPL_SQL_SESSION_ADD, &rc);
    if (st) {
        rc = xpl_db_bind_text(st, 1, se->name);
        rc = rc ? rc : xpl_db_bind_text(st, 2, path);
        rc = rc            ? rc
             : se->n_hosts ? sqlite3_bind_int64(st, 3, se->mtime_ns)
                           : sqlite3_bind_null(st, 3);
        rc = rc ? rc : xpl_db_bind_u64(st, 4, se->bytes);
        rc = rc ? rc : sqlite3_bind_int64(st, 5, (int64_t)se->n_hosts);
        rc = rc ? rc : sqlite3_bind_int64(st, 6, digest);
        rc = rc ? rc : xpl_db_run(st);
        (void)sqlite3_clear_bindings(st);
    }
    xpl_arena_fini(&a);
    if (rc == SQLITE_OK && !there) *id = sqlite3_last_insert_rowid(s->w->h);
    return rc;
}

static int write_hosts(struct xpl_store *s, const struct xpl_session *se, int64_t id) {
    int rc = SQLITE_OK;
    sqlite3_stmt *st = xpl_db_stmt(s->w, XPL_SQL_HOST_DEL, &rc);
    if (st) rc = sqlite3_bind_int64(st, 1, id);
    if (st && rc == SQLITE_OK) rc = xpl_db_run(st);
    for (size_t i = 0; rc == SQLITE_OK && i < se->n_hosts; i++) {
        const struct xpl_host *h = &se->hosts[i];
        uint8_t print[40];
        xpl_store_print_bytes(&h->print, print);
        st = xpl_db_stmt(s->w, XPL_SQL_HOST_ADD, &rc);
        if (!st) return rc;
        rc = sqlite3_bind_int64(st, 1, id);
        rc = rc ? rc : xpl_db_bind_text(st, 2, h->name);
        rc = rc ? rc : xpl_db_bind_blob(st, 3, (xpl_bytes_t){print, sizeof print});
        rc = rc ? rc : xpl_db_bind_u64(st, 4, h->print.size);
        rc = rc ? rc : sqlite3_bind_int64(st, 5, h->print.mtime_ns);
        rc = rc ? rc : xpl_db_run(st);
        (void)sqlite3_clear_bindings(st);
    }
    return rc;
}

static int put_session(struct xpl_store *s, const struct xpl_session *se) {
    int64_t id = -1, was = 0;
    const int64_t digest = session_digest(se);
    int rc = find_session(s, se, &id, &was);
    if (rc != SQLITE_OK || (id >= 0 && was == digest)) return rc;
    rc = write_session(s, se, digest, id >= 0, &id);
    return rc ? rc : write_hosts(s, se, id);
}

// Ids of sessions in the tables that are not in the snapshot.
static int find_removed(struct xpl_store *s, const struct xpl_snapshot *snap, struct xpl_arena *a,
                        int64_t **ret, size_t *ret_n) {
    XPL_VEC(int64_t) gone = {0};
    int rc = SQLITE_OK;
    sqlite3_stmt *st = xpl_db_stmt(s->w, XPL_SQL_SESSION_ALL, &rc);
    if (!st) return rc;
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(st, 1);
        const int n = sqlite3_column_bytes(st, 1);
        if (text && xpl_snapshot_find(snap, (xpl_str_t){text, (size_t)n})) continue;
        int64_t *slot = text ? xpl_vec_push(a, &gone) : NULL;
        if (!slot) break;
        *slot = sqlite3_column_int64(st, 0);
    }
    (void)sqlite3_reset(st);
    *ret = gone.v;
    *ret_n = gone.n;
    return rc == SQLITE_DONE ? SQLITE_OK : rc == SQLITE_ROW ? SQLITE_NOMEM : rc;
}

static int delete_removed(struct xpl_store *s, const struct xpl_snapshot *snap) {
    struct xpl_arena a;
    int64_t *gone = NULL;
    size_t n = 0;
    xpl_arena_init(&a, (size_t)64 << 20);
    int rc = find_removed(s, snap, &a, &gone, &n);
    for (size_t i = 0; rc == SQLITE_OK && i < 2 * n; i++) {
        sqlite3_stmt *st = xpl_db_stmt(s->w, i % 2 ? XPL_SQL_SESSION_DEL : XPL_SQL_HOST_DEL, &rc);
        if (st) rc = sqlite3_bind_int64(st, 1, gone[i / 2]);
        if (st && rc == SQLITE_OK) rc = xpl_db_run(st);
    }
    xpl_arena_fini(&a);
    return rc;
}

xpl_status_t xpl_store_put_catalogue(struct xpl_store *s, const struct xpl_snapshot *snap,
                                     struct xpl_error *err) {
    bool own;
    XPL_TRY(xpl_store_enter(s, &own, err));
    const bool all = !s->catalogue_known;
    int rc = SQLITE_OK;
    for (size_t i = 0; rc == SQLITE_OK && i < snap->n_sessions; i++)
        if (all || snap->sessions[i].changed > s->catalogue_at)
            rc = put_session(s, &snap->sessions[i]);
    if (rc == SQLITE_OK && (all || snap->removed > s->catalogue_at)) rc = delete_removed(s, snap);
    if (rc == SQLITE_OK) {
        s->tx_catalogue = true;
        s->tx_catalogue_at = snap->generation;
    }
    return xpl_store_leave(s, own, rc, err);
}
