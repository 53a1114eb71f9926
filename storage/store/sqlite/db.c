// SPDX-License-Identifier: Apache-2.0
#include "storage/store/sqlite/db.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"

// Caches are small, as the operating system has the file in its own.
static const char setup_all[] = "PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON;";
static const char setup_read[] = "PRAGMA cache_size=-512;";
int xpl_db_exec(struct xpl_db *db, const char *sql) {
    return sqlite3_exec(db->h, sql, NULL, NULL, NULL);
}

// file:PATH?immutable=1, with the characters that mean something in a URI escaped.
static bool immutable_uri(struct xpl_buf *b, const char *path) {
    xpl_buf_str(b, XPL_STR("file:"));
    for (; *path; path++)
        if (strchr("?#%", *path))
            xpl_buf_printf(b, "%%%02X", (unsigned)(unsigned char)*path);
        else
            xpl_buf_putc(b, *path);
    xpl_buf_str(b, XPL_STR("?immutable=1"));
    xpl_buf_putc(b, 0);
    return !b->failed;
}

static int open_handle(const char *path, enum xpl_db_mode mode, sqlite3 **ret) {
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    if (mode == XPL_DB_WRITE)
        return sqlite3_open_v2(path, ret, flags | SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    flags |= SQLITE_OPEN_READONLY;
    if (mode == XPL_DB_READ) return sqlite3_open_v2(path, ret, flags, NULL);
    struct xpl_buf uri = xpl_buf_of(1 << 16);
    const int rc = immutable_uri(&uri, path)
                       ? sqlite3_open_v2((char *)uri.p, ret, flags | SQLITE_OPEN_URI, NULL)
                       : SQLITE_NOMEM;
    xpl_buf_fini(&uri);
    return rc;
}

static int set_up(struct xpl_db *db, enum xpl_db_mode mode) {
    // A damaged or foreign database must not run code of its own, and a reader that closes last
    // must not tidy up files that belong to a newer database of the same name.
    int rc = sqlite3_db_config(db->h, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    if (rc == SQLITE_OK) rc = sqlite3_db_config(db->h, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    if (rc == SQLITE_OK && mode != XPL_DB_WRITE)
        rc = sqlite3_db_config(db->h, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_busy_timeout(db->h, mode == XPL_DB_WRITE ? XPL_DB_WRITE_BUSY_MS
                                                              : XPL_DB_READ_BUSY_MS);
    if (rc == SQLITE_OK) rc = xpl_db_exec(db, setup_all);
    if (rc == SQLITE_OK && mode == XPL_DB_WRITE && sqlite3_db_readonly(db->h, "main") == 1)
        rc = SQLITE_READONLY;
    if (rc == SQLITE_OK)
        rc = xpl_db_exec(db, mode == XPL_DB_WRITE ? db->schema->setup_write : setup_read);
    // Reads the header and the schema.
    if (rc == SQLITE_OK) rc = xpl_db_exec(db, "SELECT count(*) FROM sqlite_schema");
    return rc;
}

int xpl_db_make_ours(struct xpl_db *db, enum xpl_db_kind kind) {
    // Without effect, and without writing, on a file that has it already.
    return xpl_db_exec(db,
                       kind == XPL_DB_EMPTY ? db->schema->setup_empty : "PRAGMA journal_mode=WAL;");
}

int xpl_db_open(const char *path, enum xpl_db_mode mode, const struct xpl_db_schema *schema,
                struct xpl_db **ret, char *errmsg, size_t size) {
    const size_t bytes = sizeof(struct xpl_db) + schema->n_statements * sizeof(sqlite3_stmt *);
    struct xpl_db *db = xpl_sys_alloc(bytes);
    if (!db) return SQLITE_NOMEM;
    memset(db, 0, bytes);
    db->schema = schema;
    int rc = open_handle(path, mode, &db->h);
    if (rc == SQLITE_OK) rc = set_up(db, mode);
    if (rc != SQLITE_OK) {
        (void)snprintf(errmsg, size, "%s", db->h ? sqlite3_errmsg(db->h) : sqlite3_errstr(rc));
        xpl_db_close(db);
        return rc;
    }
    *ret = db;
    return SQLITE_OK;
}

void xpl_db_close(struct xpl_db *db) {
    if (!db) return;
    for (size_t i = 0; i < db->schema->n_statements; i++)
        sqlite3_finalize(db->st[i]);
    (void)sqlite3_close(db->h);
    xpl_sys_free(db);
}

sqlite3_stmt *xpl_db_stmt(struct xpl_db *db, unsigned id, int *rc) {
    assert(id < db->schema->n_statements);
    sqlite3_stmt *st = db->st[id];
    if (st) {
        (void)sqlite3_reset(st);
        (void)sqlite3_clear_bindings(st);
        return st;
    }
    const int r = sqlite3_prepare_v3(db->h, db->schema->statements[id], -1,
                                     SQLITE_PREPARE_PERSISTENT, &db->st[id], NULL);
    if (r != SQLITE_OK) *rc = r;
    return db->st[id];
}

int xpl_db_prepare_all(struct xpl_db *db) {
    int rc = SQLITE_OK;
    for (unsigned i = 0; i < db->schema->n_statements && rc == SQLITE_OK; i++)
        (void)xpl_db_stmt(db, i, &rc);
    return rc;
}

int xpl_db_run(sqlite3_stmt *st) {
    const int rc = sqlite3_step(st);
    (void)sqlite3_reset(st);
    return rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_OK : rc;
}

int xpl_db_int(sqlite3_stmt *st, int64_t none, int64_t *ret) {
    const int rc = sqlite3_step(st);
    const bool row = rc == SQLITE_ROW && sqlite3_column_type(st, 0) != SQLITE_NULL;
    if (rc == SQLITE_ROW || rc == SQLITE_DONE) *ret = row ? sqlite3_column_int64(st, 0) : none;
    (void)sqlite3_reset(st);
    return rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_OK : rc;
}

bool xpl_db_is_damage(int rc) {
    const int kind = rc & 0xff;
    return kind == SQLITE_CORRUPT || kind == SQLITE_NOTADB;
}

xpl_status_t xpl_db_status(int rc, int os) {
    const int kind = rc & 0xff;
    if (kind == SQLITE_NOMEM || kind == SQLITE_FULL || kind == SQLITE_TOOBIG ||
        (kind == SQLITE_IOERR && (os == ENOSPC || os == EDQUOT || os == EFBIG)))
        return XPL_RESOURCE_EXHAUSTED;
    if (kind == SQLITE_IOERR || kind == SQLITE_BUSY || kind == SQLITE_LOCKED ||
        kind == SQLITE_READONLY || kind == SQLITE_CANTOPEN || kind == SQLITE_PROTOCOL)
        return XPL_UNAVAILABLE;
    return xpl_db_is_damage(rc) ? XPL_DATA_LOSS : XPL_INTERNAL;
}

bool xpl_db_moved(struct xpl_db *db) {
    int moved = 0;
    return sqlite3_file_control(db->h, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK &&
           moved;
}

int xpl_db_bind_u64(sqlite3_stmt *st, int at, uint64_t v) {
    return v > INT64_MAX ? sqlite3_bind_null(st, at) : sqlite3_bind_int64(st, at, (int64_t)v);
}

int xpl_db_bind_text(sqlite3_stmt *st, int at, xpl_str_t s) {
    return sqlite3_bind_text64(st, at, s.ptr ? s.ptr : "", s.len, SQLITE_STATIC, SQLITE_UTF8);
}

int xpl_db_bind_blob(sqlite3_stmt *st, int at, xpl_bytes_t b) {
    return sqlite3_bind_blob64(st, at, b.ptr && b.len ? (const void *)b.ptr : "", b.len,
                               SQLITE_STATIC);
}

// --- Whose it is, and of which version ---

static int pragma_int(struct xpl_db *db, const char *sql, int64_t *ret) {
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(db->h, sql, -1, &st, NULL);
    if (rc == SQLITE_OK) rc = xpl_db_int(st, 0, ret);
    sqlite3_finalize(st);
    return rc;
}

static int has_own_table(struct xpl_db *db, bool *ret) {
    sqlite3_stmt *st = NULL;
    int64_t n = 0;
    int rc =
        sqlite3_prepare_v2(db->h, "SELECT count(*) FROM sqlite_schema WHERE name=?", -1, &st, NULL);
    if (rc == SQLITE_OK) rc = xpl_db_bind_text(st, 1, xpl_str_from(db->schema->own_table));
    if (rc == SQLITE_OK) rc = xpl_db_int(st, 0, &n);
    sqlite3_finalize(st);
    *ret = n > 0;
    return rc;
}

int xpl_db_try_write(struct xpl_db *db) {
    // BEGIN IMMEDIATE alone does not notice a header that forbids it.
    int rc = xpl_db_exec(db, "BEGIN IMMEDIATE");
    if (rc == SQLITE_OK) rc = xpl_db_exec(db, "CREATE TABLE xplaned_try(x)");
    if (!sqlite3_get_autocommit(db->h)) (void)xpl_db_exec(db, "ROLLBACK");
    return rc;
}

int xpl_db_kind(struct xpl_db *db, enum xpl_db_kind *ret) {
    int64_t app = 0, version = 0, tables = 0;
    bool own = false;
    int rc = pragma_int(db, "PRAGMA application_id", &app);
    if (rc == SQLITE_OK) rc = pragma_int(db, "PRAGMA user_version", &version);
    if (rc == SQLITE_OK) rc = pragma_int(db, "SELECT count(*) FROM sqlite_schema", &tables);
    if (rc == SQLITE_OK) rc = has_own_table(db, &own);
    if (rc != SQLITE_OK) return rc;
    if (app == 0 && version == 0 && tables == 0)
        *ret = XPL_DB_EMPTY;
    else if ((uint64_t)app != db->schema->application_id)
        *ret = own ? XPL_DB_DAMAGED : XPL_DB_FOREIGN;
    else if (version < 0)
        *ret = XPL_DB_DAMAGED;
    else if (version > db->schema->version)
        *ret = XPL_DB_NEWER;
    else
        *ret = version == db->schema->version ? XPL_DB_OURS : XPL_DB_OLDER;
    return SQLITE_OK;
}

int xpl_db_migrate(struct xpl_db *db, enum xpl_db_kind kind) {
    if (kind != XPL_DB_EMPTY && kind != XPL_DB_OLDER) return SQLITE_OK;
    int64_t version = 0;
    int rc = xpl_db_exec(db, "BEGIN EXCLUSIVE");
    if (rc != SQLITE_OK) return rc;
    rc = pragma_int(db, "PRAGMA user_version", &version);
    for (; rc == SQLITE_OK && version < db->schema->version; version++)
        for (const char *const *part = db->schema->steps[version]; rc == SQLITE_OK && *part; part++)
            rc = xpl_db_exec(db, *part);
    char mark[96];
    (void)snprintf(mark, sizeof mark, "PRAGMA application_id=%lld; PRAGMA user_version=%lld;",
                   (long long)db->schema->application_id, (long long)db->schema->version);
    if (rc == SQLITE_OK) rc = xpl_db_exec(db, mark);
    if (rc == SQLITE_OK) rc = xpl_db_exec(db, "COMMIT");
    if (!sqlite3_get_autocommit(db->h)) (void)xpl_db_exec(db, "ROLLBACK");
    return rc;
}
