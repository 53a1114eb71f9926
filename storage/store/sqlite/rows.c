// SPDX-License-Identifier: Apache-2.0
// Rows for people: ops, kernels, steps and memory of a profile; sessions and hosts of the
// catalogue.
#include "storage/store/rows.h"
#include "base/clock.h"
#include "base/text/utf8.h"

#include <math.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/vec.h"
#include "storage/hash.h"
#include "storage/sessions/catalogue.h"
#include "storage/sessions/path.h"
#include "storage/store/sqlite/impl.h"

enum { MAX_TEXT = 4096, ROW_BYTES = 192 };

// --- Names ---

// Texts met in one call, so that each is looked up in the database once.
struct names {
    struct xpl_sqlite_store *s;
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

// --- Ops, kernels, steps, memory ---

// The statement that adds a row; its first two values are which row it is.  NULL on failure.
static sqlite3_stmt *begin_row(struct names *n, unsigned sql, int64_t profile, size_t seq,
                               int *rc) {
    sqlite3_stmt *const st = *rc ? NULL : xpl_db_stmt(n->s->w, sql, rc);
    if (!st) return NULL;
    *rc = sqlite3_bind_int64(st, 1, profile);
    if (!*rc) *rc = sqlite3_bind_int64(st, 2, (int64_t)seq);
    return st;
}

static int add_op(struct names *n, int64_t profile, size_t seq, const struct xpl_op_row *r) {
    const xpl_str_t texts[5] = {r->name, r->module, r->category, r->framework_op, r->source};
    const uint64_t values[8] = {r->occurrences,  r->time_ps, r->self_time_ps,   r->min_time_ps,
                                r->dma_stall_ps, r->flops,   r->bytes_accessed, r->num_cores};
    int64_t ids[5];
    int rc = SQLITE_OK;
    for (size_t i = 0; rc == SQLITE_OK && i < 5; i++)
        rc = name_id(n, texts[i], i == 0, &ids[i]);
    sqlite3_stmt *const st = begin_row(n, XPL_SQL_OP_ADD, profile, seq, &rc);
    if (!st) return rc;
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
    sqlite3_stmt *const st = begin_row(n, XPL_SQL_KERNEL_ADD, profile, seq, &rc);
    if (!st) return rc;
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
    sqlite3_stmt *const st = begin_row(n, XPL_SQL_STEP_ADD, profile, seq, &rc);
    if (!st) return rc;
    rc = rc ? rc : xpl_db_bind_u64(st, 3, r->step_num);
    rc = rc ? rc : xpl_db_bind_u64(st, 4, r->core_id);
    rc = rc ? rc : bind_id(st, 5, name);
    for (int i = 0; rc == SQLITE_OK && i < 10; i++)
        rc = xpl_db_bind_u64(st, 6 + i, values[i]);
    return rc ? rc : xpl_db_run(st);
}

static int add_memory(struct names *n, int64_t profile, size_t seq,
                      const struct xpl_memory_row *r) {
    int64_t name;
    int rc = name_id(n, r->name, true, &name);
    sqlite3_stmt *const st = begin_row(n, XPL_SQL_MEMORY_ADD, profile, seq, &rc);
    if (!st) return rc;
    rc = rc ? rc : bind_id(st, 3, name);
    rc = rc ? rc : xpl_db_bind_u64(st, 4, r->peak_bytes);
    rc = rc ? rc : xpl_db_bind_u64(st, 5, r->capacity_bytes);
    return rc ? rc : xpl_db_run(st);
}

static int mark_memory(struct xpl_sqlite_store *s, int64_t profile, uint32_t version) {
    int rc = SQLITE_OK;
    sqlite3_stmt *st = xpl_db_stmt(s->w, XPL_SQL_PROFILE_MEMORY, &rc);
    if (!st) return rc;
    rc = sqlite3_bind_int64(st, 1, profile);
    rc = rc ? rc : sqlite3_bind_int64(st, 2, version);
    rc = rc ? rc : sqlite3_bind_int64(st, 3, xpl_unix_ms());
    return rc ? rc : xpl_db_run(st);
}

static int mark_profile(struct xpl_sqlite_store *s, int64_t profile, uint32_t version,
                        const struct xpl_rows *rows, struct names *n) {
    if (rows->kind == XPL_ROWS_MEMORY) return mark_memory(s, profile, version);
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
    rc = rc ? rc : sqlite3_bind_int64(st, 5, xpl_unix_ms());
    rc = rc ? rc : xpl_db_run(st);
    (void)sqlite3_clear_bindings(st);
    return rc;
}

static size_t at_most(size_t n) {
    return n < XPL_ROWS_MAX ? n : XPL_ROWS_MAX;
}

static int put_rows(struct xpl_sqlite_store *s, const struct xpl_profile_id *id, uint32_t version,
                    const struct xpl_rows *rows, struct names *n) {
    const size_t ops = at_most(rows->n_ops), kernels = at_most(rows->n_kernels),
                 steps = at_most(rows->n_steps), memory = at_most(rows->n_memory);
    int64_t profile = 0;
    int rc = xpl_sqlite_profile_row(s, id, &profile);
    rc = rc ? rc : xpl_sqlite_delete_rows_of(s, profile, rows->kind);
    rc = rc ? rc : xpl_sqlite_make_room(s, (ops + kernels + steps + memory) * ROW_BYTES);
    for (size_t i = 0; rc == SQLITE_OK && i < ops; i++)
        rc = add_op(n, profile, i, &rows->ops[i]);
    for (size_t i = 0; rc == SQLITE_OK && i < kernels; i++)
        rc = add_kernel(n, profile, i, &rows->kernels[i]);
    for (size_t i = 0; rc == SQLITE_OK && i < steps; i++)
        rc = add_step(n, profile, i, &rows->steps[i]);
    for (size_t i = 0; rc == SQLITE_OK && i < memory; i++)
        rc = add_memory(n, profile, i, &rows->memory[i]);
    return rc ? rc : mark_profile(s, profile, version, rows, n);
}

xpl_status_t xpl_sqlite_put_rows(struct xpl_store *base, const struct xpl_profile_id *profile,
                                 uint32_t version, const struct xpl_rows *rows,
                                 struct xpl_error *err) {
    struct xpl_sqlite_store *const s = xpl_sqlite_of(base);
    bool own;
    XPL_TRY(xpl_tx_enter(&s->tx, &own, err));
    struct names n = {.s = s};
    xpl_arena_init(&n.arena, (size_t)256 << 20);
    xpl_buf_init(&n.clean, MAX_TEXT);
    const int rc = put_rows(s, profile, version, rows, &n);
    xpl_buf_fini(&n.clean);
    xpl_arena_fini(&n.arena);
    return xpl_tx_leave(&s->tx, own, rc, err);
}
