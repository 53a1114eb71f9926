// SPDX-License-Identifier: Apache-2.0
// The schema and every statement of the store.  X(name, text).
#ifndef XPL_STORAGE_STORE_SQLITE_SQL_H_
#define XPL_STORAGE_STORE_SQLITE_SQL_H_

#include "storage/store/columns.h"
#include "storage/store/sqlite/db.h"

// Whether a profile is in LOGDIR, or may be: a file of its size that nothing is remembered of may
// be a copy, or the same file after a remount.
#define XPL_SQL_IN_LOGDIR                                                                          \
    "(EXISTS (SELECT 1 FROM profile_files f JOIN hosts h ON h.fingerprint=f.fingerprint "          \
    "WHERE f.profile_id=profiles.id) OR EXISTS (SELECT 1 FROM hosts h "                            \
    "WHERE h.size_bytes=profiles.size_bytes AND NOT EXISTS "                                       \
    "(SELECT 1 FROM profile_files f WHERE f.fingerprint=h.fingerprint)))"

// The next parameter, for a column (storage/store/columns.h).
#define XPL_SQL_VALUE(column, type, member) ",?"

#define XPL_SQL_LIST(X)                                                                            \
    X(BEGIN, "BEGIN IMMEDIATE")                                                                    \
    X(COMMIT, "COMMIT")                                                                            \
    X(PAGE_COUNT, "PRAGMA page_count")                                                             \
    X(FREE_COUNT, "PRAGMA freelist_count")                                                         \
    /* results */                                                                                  \
    X(RESULT_FIND, "SELECT id, size_bytes, checksum, meta FROM results WHERE digest=?1 AND "       \
                   "key=?2")                                                                       \
    X(RESULT_ADD, "INSERT INTO results(digest, key, kind, name, options, version, n_hosts, "       \
                  "size_bytes, checksum, made_at_ms, used_at_ms, meta) "                           \
                  "VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?10,?11)")                                \
    X(RESULT_MAX_ID, "SELECT max(id) FROM results")                                                \
    X(RESULT_TOUCH, "UPDATE results SET used_at_ms=?2 WHERE id=?1 AND used_at_ms<?2")              \
    X(RESULT_OLDEST, "SELECT id FROM results WHERE id<=?1 ORDER BY used_at_ms, id LIMIT 1")        \
    X(RESULT_STALE, "SELECT id FROM results WHERE kind=?2 AND name=?3 AND version<?1 UNION ALL "   \
                    "SELECT id FROM results WHERE kind=?2 AND name=?3 AND version>?1 LIMIT 1")     \
    X(RESULT_OF_PROFILE, "SELECT result_id FROM result_profiles WHERE profile_id=?1 LIMIT 1")      \
    X(RESULT_DEL, "DELETE FROM results WHERE id=?1")                                               \
    X(DATA_ADD, "INSERT INTO result_data(id, data) VALUES(?1,?2)")                                 \
    X(DATA_DEL, "DELETE FROM result_data WHERE id=?1")                                             \
    X(RESULT_PROFILE_ADD,                                                                          \
      "INSERT OR IGNORE INTO result_profiles(profile_id, result_id) VALUES(?1,?2)")                \
    X(RESULT_PROFILE_DEL, "DELETE FROM result_profiles WHERE result_id=?1")                        \
    /* profiles, and the files they lie in */                                                      \
    X(SECRET_FIND, "SELECT value FROM settings WHERE name='profile_secret'")                       \
    X(SECRET_ADD, "INSERT INTO settings(name, value) VALUES('profile_secret', ?1)")                \
    X(FILE_FIND, "SELECT p.content_id FROM profile_files f JOIN profiles p ON p.id=f.profile_id "  \
                 "WHERE f.fingerprint=?1")                                                         \
    X(FILE_LIST, "SELECT f.fingerprint, p.content_id FROM profile_files f JOIN profiles p ON "     \
                 "p.id=f.profile_id ORDER BY f.profile_id DESC LIMIT ?1")                          \
    X(FILE_ADD, "INSERT OR REPLACE INTO profile_files(fingerprint, profile_id) VALUES(?1,?2)")     \
    X(FILE_DEL, "DELETE FROM profile_files WHERE profile_id=?1")                                   \
    X(FILE_GONE, "UPDATE profile_files SET gone_at=?1 WHERE gone_at IS NULL AND NOT EXISTS "       \
                 "(SELECT 1 FROM hosts h WHERE h.fingerprint=profile_files.fingerprint)")          \
    X(FILE_BACK, "UPDATE profile_files SET gone_at=NULL WHERE gone_at IS NOT NULL AND EXISTS "     \
                 "(SELECT 1 FROM hosts h WHERE h.fingerprint=profile_files.fingerprint)")          \
    X(FILE_SWEEP, "DELETE FROM profile_files WHERE fingerprint IN "                                \
                  "(SELECT fingerprint FROM profile_files WHERE gone_at<=?1 LIMIT 256)")           \
    X(SIZE_FIND, "SELECT 1 FROM profiles WHERE size_bytes=?1 LIMIT 1")                             \
    X(PROFILE_FIND, "SELECT id FROM profiles WHERE content_id=?1")                                 \
    X(PROFILE_ADD, "INSERT INTO profiles(content_id) VALUES(?1)")                                  \
    X(PROFILE_SIZE, "UPDATE profiles SET size_bytes=?2 WHERE id=?1 AND size_bytes IS NOT ?2")      \
    X(PROFILE_ROWS, "UPDATE profiles SET device_type=?2, device_cores=NULLIF(?3, 0), "             \
                    "rows_version=?4, rows_at_ms=?5 WHERE id=?1")                                  \
    X(PROFILE_HAS_ROWS, "SELECT 1 FROM profiles WHERE content_id=?1 AND rows_version=?2")          \
    X(PROFILE_MEMORY, "UPDATE profiles SET memory_version=?2, rows_at_ms=?3 WHERE id=?1")          \
    X(PROFILE_HAS_MEMORY, "SELECT 1 FROM profiles WHERE content_id=?1 AND memory_version=?2")      \
    X(PROFILE_NO_ROWS, "UPDATE profiles SET rows_version=NULL, memory_version=NULL, "              \
                       "rows_at_ms=NULL WHERE id=?1")                                              \
    X(PROFILE_OLD_ROWS, "SELECT id FROM profiles WHERE rows_at_ms IS NOT NULL AND rows_at_ms<?1 "  \
                        "ORDER BY rows_at_ms, id LIMIT 1")                                         \
    X(PROFILE_GONE,                                                                                \
      "UPDATE profiles SET gone_at=?1 WHERE gone_at IS NULL AND NOT " XPL_SQL_IN_LOGDIR)           \
    X(PROFILE_BACK,                                                                                \
      "UPDATE profiles SET gone_at=NULL WHERE gone_at IS NOT NULL AND " XPL_SQL_IN_LOGDIR)         \
    X(PROFILE_SWEEP, "SELECT id FROM profiles WHERE gone_at<=?1 LIMIT 1")                          \
    X(PROFILE_DEL, "DELETE FROM profiles WHERE id=?1")                                             \
    /* rows */                                                                                     \
    X(NAME_FIND, "SELECT id FROM names WHERE text=?1")                                             \
    X(NAME_ADD, "INSERT INTO names(text) VALUES(?1)")                                              \
    X(NAME_SWEEP, "DELETE FROM names WHERE id NOT IN ("                                            \
                  "SELECT name_id FROM op_rows UNION SELECT module_id FROM op_rows "               \
                  "WHERE module_id IS NOT NULL UNION SELECT category_id FROM op_rows "             \
                  "WHERE category_id IS NOT NULL UNION SELECT framework_op_id FROM op_rows "       \
                  "WHERE framework_op_id IS NOT NULL UNION SELECT source_id FROM op_rows "         \
                  "WHERE source_id IS NOT NULL UNION SELECT name_id FROM kernel_rows "             \
                  "UNION SELECT op_name_id FROM kernel_rows WHERE op_name_id IS NOT NULL "         \
                  "UNION SELECT name_id FROM step_rows WHERE name_id IS NOT NULL "                 \
                  "UNION SELECT name_id FROM memory_rows)")                                        \
    X(OP_ADD, "INSERT INTO op_rows VALUES(?1,?2" XPL_OP_COLUMNS(XPL_SQL_VALUE) ")")                \
    X(KERNEL_ADD, "INSERT INTO kernel_rows VALUES(?1,?2" XPL_KERNEL_COLUMNS(XPL_SQL_VALUE) ")")    \
    X(STEP_ADD, "INSERT INTO step_rows VALUES(?1,?2" XPL_STEP_COLUMNS(XPL_SQL_VALUE) ")")          \
    X(MEMORY_ADD, "INSERT INTO memory_rows VALUES(?1,?2" XPL_MEMORY_COLUMNS(XPL_SQL_VALUE) ")")    \
    X(OP_DEL, "DELETE FROM op_rows WHERE profile_id=?1")                                           \
    X(KERNEL_DEL, "DELETE FROM kernel_rows WHERE profile_id=?1")                                   \
    X(STEP_DEL, "DELETE FROM step_rows WHERE profile_id=?1")                                       \
    X(MEMORY_DEL, "DELETE FROM memory_rows WHERE profile_id=?1")                                   \
    /* catalogue */                                                                                \
    X(SESSION_FIND, "SELECT id, digest FROM sessions WHERE name=?1")                               \
    X(SESSION_ADD, "INSERT INTO sessions(name, path, mtime_ns, size_bytes, n_hosts, digest, "      \
                   "captured_ns) VALUES(?1,?2,?3,?4,?5,?6,?7)")                                    \
    X(SESSION_SET, "UPDATE sessions SET path=?2, mtime_ns=?3, size_bytes=?4, n_hosts=?5, "         \
                   "digest=?6, captured_ns=?7 WHERE name=?1")                                      \
    X(SESSION_ALL, "SELECT id, name FROM sessions")                                                \
    X(SESSION_DEL, "DELETE FROM sessions WHERE id=?1")                                             \
    X(HOST_ADD, "INSERT INTO hosts(session_id, name, fingerprint, size_bytes, mtime_ns) "          \
                "VALUES(?1,?2,?3,?4,?5)")                                                          \
    X(HOST_DEL, "DELETE FROM hosts WHERE session_id=?1")

#define XPL_SQL_ENUM(name, text) XPL_SQL_##name,
enum xpl_sql { XPL_SQL_LIST(XPL_SQL_ENUM) XPL_SQL_COUNT };

// cache.db (schema.c).
extern const struct xpl_db_schema xpl_cache_schema;

#endif
