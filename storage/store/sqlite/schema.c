// SPDX-License-Identifier: Apache-2.0
// The schema of cache.db, by version.  docs/schema.md describes it for people; keep both equal.
#include "storage/store/sqlite/sql.h"
#include "storage/store/views.h"

// "XPLc" in the database header: whose file this is.
enum { APPLICATION_ID = 0x58504c63 };

// Times are milliseconds since 1970 (_ms), seconds (gone_at) or nanoseconds (mtime_ns).
//
// A database is brought to the newest version in one transaction, so each step makes only what no
// later step replaces.  It drops what databases of its version had.

// What LOGDIR holds.
static const char v1_catalogue[] =
    "CREATE TABLE sessions("
    " id INTEGER PRIMARY KEY,"
    " name TEXT NOT NULL UNIQUE, path TEXT NOT NULL,"
    " mtime_ns INTEGER, size_bytes INTEGER, n_hosts INTEGER NOT NULL,"
    " digest INTEGER NOT NULL);"
    "CREATE TABLE hosts("
    " session_id INTEGER NOT NULL REFERENCES sessions(id),"
    " name TEXT NOT NULL,"
    " fingerprint BLOB NOT NULL,"
    " size_bytes INTEGER, mtime_ns INTEGER,"
    " PRIMARY KEY(session_id, name)) WITHOUT ROWID;"
    "CREATE INDEX hosts_by_file ON hosts(fingerprint);";

// Version 2: profiles are known by their content.  Everything can be made again, so what hung on
// files goes; what only describes LOGDIR stays.
static const char v2_drop[] =
    "DROP VIEW IF EXISTS ops; DROP VIEW IF EXISTS kernels; DROP VIEW IF EXISTS steps;"
    "DROP TABLE IF EXISTS result_files; DROP TABLE IF EXISTS result_data;"
    "DROP TABLE IF EXISTS results; DROP TABLE IF EXISTS op_rows; DROP TABLE IF EXISTS kernel_rows;"
    "DROP TABLE IF EXISTS step_rows; DROP TABLE IF EXISTS names; DROP TABLE IF EXISTS profiles;";

// A column of a table of rows (storage/store/columns.h), by its type.
#define TYPE_NAME                    " INTEGER"
#define TYPE_NAME_NEEDED             " INTEGER NOT NULL"
#define TYPE_ALLOCATOR               " INTEGER NOT NULL"
#define TYPE_U64                     " INTEGER"
#define TYPE_REAL                    " REAL"
#define TYPE_FLAG                    " INTEGER"
#define TYPE_FLAG_NEEDED             " INTEGER NOT NULL"
#define COLUMN(column, type, member) " " #column TYPE_##type ","
#define ROW_KEY                      " profile_id INTEGER NOT NULL REFERENCES profiles(id), seq INTEGER NOT NULL,"
#define ROW_END                      " PRIMARY KEY(profile_id, seq)) WITHOUT ROWID;"

// Texts repeat over hosts and sessions, so they are kept once.
static const char v2_rows[] =
    "CREATE TABLE names(id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);"
    "CREATE TABLE op_rows(" ROW_KEY XPL_OP_COLUMNS(COLUMN) ROW_END
    "CREATE INDEX op_rows_by_name ON op_rows(name_id);"
    "CREATE TABLE kernel_rows(" ROW_KEY XPL_KERNEL_COLUMNS(COLUMN) ROW_END
    "CREATE INDEX kernel_rows_by_name ON kernel_rows(name_id);"
    "CREATE TABLE step_rows(" ROW_KEY XPL_STEP_COLUMNS(COLUMN) ROW_END;

static const char v2_profiles[] =
    "CREATE TABLE settings(name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;"
    // One row per content that something was made from, or that a file was found to hold.
    "CREATE TABLE profiles("
    " id INTEGER PRIMARY KEY,"
    " content_id BLOB NOT NULL UNIQUE,"
    " size_bytes INTEGER,"
    " device_type TEXT, device_cores INTEGER,"
    " rows_version INTEGER, rows_at_ms INTEGER,"
    " gone_at INTEGER);"
    "CREATE INDEX profiles_by_size ON profiles(size_bytes);"
    "CREATE INDEX profiles_by_rows ON profiles(rows_at_ms) WHERE rows_at_ms IS NOT NULL;"
    "CREATE INDEX profiles_gone ON profiles(gone_at) WHERE gone_at IS NOT NULL;"
    // Which files hold which content.
    "CREATE TABLE profile_files("
    " fingerprint BLOB PRIMARY KEY,"
    " profile_id INTEGER NOT NULL REFERENCES profiles(id),"
    " gone_at INTEGER) WITHOUT ROWID;"
    "CREATE INDEX profile_files_by_profile ON profile_files(profile_id);"
    "CREATE INDEX profile_files_gone ON profile_files(gone_at) WHERE gone_at IS NOT NULL;"
    "CREATE INDEX hosts_by_size ON hosts(size_bytes);";

static const char v2_results[] =
    "CREATE TABLE results("
    " id INTEGER PRIMARY KEY,"
    " digest INTEGER NOT NULL, key BLOB NOT NULL,"
    " kind TEXT NOT NULL, name TEXT NOT NULL, options TEXT NOT NULL, version INTEGER NOT NULL,"
    " n_hosts INTEGER NOT NULL,"
    " size_bytes INTEGER NOT NULL, checksum INTEGER NOT NULL,"
    " made_at_ms INTEGER NOT NULL, used_at_ms INTEGER NOT NULL,"
    " meta BLOB);"
    "CREATE INDEX results_by_digest ON results(digest);"
    "CREATE INDEX results_by_use ON results(used_at_ms);"
    "CREATE INDEX results_by_version ON results(kind, name, version);"
    "CREATE TABLE result_data(id INTEGER PRIMARY KEY REFERENCES results(id), data BLOB NOT NULL);"
    "CREATE TABLE result_profiles("
    " profile_id INTEGER NOT NULL REFERENCES profiles(id),"
    " result_id INTEGER NOT NULL REFERENCES results(id),"
    " PRIMARY KEY(profile_id, result_id)) WITHOUT ROWID;"
    "CREATE INDEX result_profiles_by_result ON result_profiles(result_id);";

// Version 4: when sessions were captured, by which histories are ordered.  Sessions are written
// again because their digest counts it.
static const char v4_captured[] = "ALTER TABLE sessions ADD COLUMN captured_ns INTEGER;";

// Version 5: the memory of allocators.  It has a version of its own, as it is made of another
// product than the other rows.
static const char v5_memory[] =
    "ALTER TABLE profiles ADD COLUMN memory_version INTEGER;"
    "CREATE TABLE memory_rows(" ROW_KEY XPL_MEMORY_COLUMNS(COLUMN) ROW_END;

// Version 6: the views of today.
static const char v6_drop[] =
    "DROP VIEW IF EXISTS hlo_instructions; DROP VIEW IF EXISTS ops; DROP VIEW IF EXISTS kernels;"
    "DROP VIEW IF EXISTS steps; DROP VIEW IF EXISTS memory;";
#define VIEW(name, select) "CREATE VIEW " name " AS " select ";"
static const char v6_views[] =
    XPL_VIEWS(VIEW, "", "n.text AS name", " JOIN names n ON n.id=r.name_id");

// steps[v] brings a database of version v to version v + 1.  What all of them make together never
// changes once a version was released.
static const char *const step_1[] = {v1_catalogue, NULL};
static const char *const step_2[] = {v2_drop, v2_profiles, v2_results, v2_rows, NULL};
static const char *const step_3[] = {NULL}; // a view
static const char *const step_4[] = {v4_captured, NULL};
static const char *const step_5[] = {v5_memory, NULL};
static const char *const step_6[] = {v6_drop, v6_views, NULL};
static const char *const *const steps[] = {step_1, step_2, step_3, step_4, step_5, step_6};
enum { VERSION = sizeof steps / sizeof *steps };

#define SQL_TEXT(name, text) text,
static const char *const statements[] = {XPL_SQL_LIST(SQL_TEXT)};

const struct xpl_db_schema xpl_cache_schema = {
    .application_id = APPLICATION_ID,
    .steps = steps,
    .version = VERSION,
    .own_table = "result_data",
    .setup_write =
        "PRAGMA synchronous=NORMAL; PRAGMA journal_size_limit=16777216;"
        "PRAGMA wal_autocheckpoint=512; PRAGMA cache_size=-2048; PRAGMA foreign_keys=OFF;",
    // Larger pages make large results faster (1 MiB is read in 0.17 ms with 16 KiB, 0.22 ms with 8,
    // 0.28 ms with 4), and small transactions write more.
    .setup_empty =
        "PRAGMA page_size=8192; PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=WAL;",
    .statements = statements,
    .n_statements = XPL_SQL_COUNT,
};
