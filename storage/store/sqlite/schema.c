// SPDX-License-Identifier: Apache-2.0
// The schema of cache.db, by version.  docs/schema.md describes it for people; keep both equal.
#include "storage/store/sqlite/sql.h"

// "XPLc" in the database header: whose file this is.
enum { APPLICATION_ID = 0x58504c63 };

// Times are milliseconds since 1970 (_ms), seconds (gone_at) or nanoseconds (mtime_ns).
static const char v1_catalogue[] =
    // One row per version of a profile's bytes that something was made from.
    "CREATE TABLE profiles("
    " id INTEGER PRIMARY KEY,"
    " fingerprint BLOB NOT NULL UNIQUE,"
    " size_bytes INTEGER, mtime_ns INTEGER,"
    " device_type TEXT, device_cores INTEGER,"
    " rows_version INTEGER, rows_at_ms INTEGER,"
    " gone_at INTEGER);"
    "CREATE INDEX profiles_by_rows ON profiles(rows_at_ms) WHERE rows_at_ms IS NOT NULL;"
    "CREATE INDEX profiles_gone ON profiles(gone_at) WHERE gone_at IS NOT NULL;"
    // What LOGDIR holds.
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

// Products and answers: opaque bytes.  The bytes lie apart, so that marking a result as used does
// not rewrite them.
static const char v1_results[] =
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
    "CREATE INDEX results_by_version ON results(version);"
    "CREATE TABLE result_data(id INTEGER PRIMARY KEY REFERENCES results(id), data BLOB NOT NULL);"
    "CREATE TABLE result_files("
    " profile_id INTEGER NOT NULL REFERENCES profiles(id),"
    " result_id INTEGER NOT NULL REFERENCES results(id),"
    " PRIMARY KEY(profile_id, result_id)) WITHOUT ROWID;"
    "CREATE INDEX result_files_by_result ON result_files(result_id);";

// Rows, the same in versions 1 and 2.  Texts repeat over hosts and sessions, so they are kept once.
static const char rows_tables[] =
    "CREATE TABLE names(id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);"
    "CREATE TABLE op_rows("
    " profile_id INTEGER NOT NULL REFERENCES profiles(id), seq INTEGER NOT NULL,"
    " on_device INTEGER NOT NULL,"
    " name_id INTEGER NOT NULL, module_id INTEGER, category_id INTEGER,"
    " framework_op_id INTEGER, source_id INTEGER,"
    " occurrences INTEGER, time_ps INTEGER, self_time_ps INTEGER, min_time_ps INTEGER,"
    " dma_stall_ps INTEGER, flops INTEGER, bytes_accessed INTEGER, num_cores INTEGER,"
    " PRIMARY KEY(profile_id, seq)) WITHOUT ROWID;"
    "CREATE INDEX op_rows_by_name ON op_rows(name_id);"
    "CREATE TABLE kernel_rows("
    " profile_id INTEGER NOT NULL REFERENCES profiles(id), seq INTEGER NOT NULL,"
    " name_id INTEGER NOT NULL, op_name_id INTEGER,"
    " occurrences INTEGER, total_ns INTEGER, min_ns INTEGER, max_ns INTEGER,"
    " registers_per_thread INTEGER, static_shmem_bytes INTEGER, dynamic_shmem_bytes INTEGER,"
    " block_x INTEGER, block_y INTEGER, block_z INTEGER,"
    " grid_x INTEGER, grid_y INTEGER, grid_z INTEGER,"
    " occupancy_percent REAL, uses_tensor_core INTEGER, tensor_core_eligible INTEGER,"
    " PRIMARY KEY(profile_id, seq)) WITHOUT ROWID;"
    "CREATE INDEX kernel_rows_by_name ON kernel_rows(name_id);"
    "CREATE TABLE step_rows("
    " profile_id INTEGER NOT NULL REFERENCES profiles(id), seq INTEGER NOT NULL,"
    " step_num INTEGER, core_id INTEGER, name_id INTEGER,"
    " begin_ps INTEGER, duration_ps INTEGER,"
    " compute_ps INTEGER, input_ps INTEGER, output_ps INTEGER, collective_ps INTEGER,"
    " compile_ps INTEGER, host_ps INTEGER, idle_ps INTEGER, other_ps INTEGER,"
    " PRIMARY KEY(profile_id, seq)) WITHOUT ROWID;";

static const char v1_views[] =
    "CREATE VIEW ops AS SELECT s.name AS session, s.mtime_ns AS session_mtime_ns, h.name AS host,"
    " r.on_device, m.text AS module, n.text AS name, c.text AS category,"
    " f.text AS framework_op, o.text AS source,"
    " r.occurrences, r.time_ps, r.self_time_ps, r.min_time_ps, r.dma_stall_ps, r.flops,"
    " r.bytes_accessed, r.num_cores"
    " FROM op_rows r JOIN names n ON n.id=r.name_id JOIN profiles p ON p.id=r.profile_id"
    " JOIN hosts h ON h.fingerprint=p.fingerprint JOIN sessions s ON s.id=h.session_id"
    " LEFT JOIN names m ON m.id=r.module_id LEFT JOIN names c ON c.id=r.category_id"
    " LEFT JOIN names f ON f.id=r.framework_op_id LEFT JOIN names o ON o.id=r.source_id;"
    "CREATE VIEW kernels AS SELECT s.name AS session, s.mtime_ns AS session_mtime_ns,"
    " h.name AS host, n.text AS name, o.text AS op_name,"
    " r.occurrences, r.total_ns, r.min_ns, r.max_ns, r.registers_per_thread,"
    " r.static_shmem_bytes, r.dynamic_shmem_bytes, r.block_x, r.block_y, r.block_z,"
    " r.grid_x, r.grid_y, r.grid_z, r.occupancy_percent, r.uses_tensor_core,"
    " r.tensor_core_eligible"
    " FROM kernel_rows r JOIN names n ON n.id=r.name_id JOIN profiles p ON p.id=r.profile_id"
    " JOIN hosts h ON h.fingerprint=p.fingerprint JOIN sessions s ON s.id=h.session_id"
    " LEFT JOIN names o ON o.id=r.op_name_id;"
    "CREATE VIEW steps AS SELECT s.name AS session, s.mtime_ns AS session_mtime_ns,"
    " h.name AS host, r.step_num, r.core_id, n.text AS name, r.begin_ps, r.duration_ps,"
    " r.compute_ps, r.input_ps, r.output_ps, r.collective_ps, r.compile_ps, r.host_ps,"
    " r.idle_ps, r.other_ps"
    " FROM step_rows r JOIN profiles p ON p.id=r.profile_id"
    " JOIN hosts h ON h.fingerprint=p.fingerprint JOIN sessions s ON s.id=h.session_id"
    " LEFT JOIN names n ON n.id=r.name_id;";

// Version 2: profiles are known by their content.  Everything can be made again, so what hung on
// files goes; what only describes LOGDIR stays.
static const char v2_drop[] =
    "DROP VIEW ops; DROP VIEW kernels; DROP VIEW steps;"
    "DROP TABLE result_files; DROP TABLE result_data; DROP TABLE results;"
    "DROP TABLE op_rows; DROP TABLE kernel_rows; DROP TABLE step_rows; DROP TABLE names;"
    "DROP TABLE profiles;";

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

// What people query; `more` are columns behind the others.
#define OPS(more)                                                                                  \
    " SELECT s.name AS session, s.mtime_ns AS session_mtime_ns, h.name AS host,"                   \
    " r.on_device, m.text AS module, n.text AS name, c.text AS category,"                          \
    " f.text AS framework_op, o.text AS source,"                                                   \
    " r.occurrences, r.time_ps, r.self_time_ps, r.min_time_ps, r.dma_stall_ps, r.flops,"           \
    " r.bytes_accessed, r.num_cores" more                                                          \
    " FROM op_rows r JOIN names n ON n.id=r.name_id JOIN profile_files p ON "                      \
    "p.profile_id=r.profile_id"                                                                    \
    " JOIN hosts h ON h.fingerprint=p.fingerprint JOIN sessions s ON s.id=h.session_id"            \
    " LEFT JOIN names m ON m.id=r.module_id LEFT JOIN names c ON c.id=r.category_id"               \
    " LEFT JOIN names f ON f.id=r.framework_op_id LEFT JOIN names o ON o.id=r.source_id"
#define VIEWS(more)                                                                                \
    "CREATE VIEW ops AS" OPS(                                                                      \
        more) ";"                                                                                  \
              "CREATE VIEW kernels AS SELECT s.name AS session, s.mtime_ns AS session_mtime_ns,"   \
              " h.name AS host, n.text AS name, o.text AS op_name,"                                \
              " r.occurrences, r.total_ns, r.min_ns, r.max_ns, r.registers_per_thread,"            \
              " r.static_shmem_bytes, r.dynamic_shmem_bytes, r.block_x, r.block_y, r.block_z,"     \
              " r.grid_x, r.grid_y, r.grid_z, r.occupancy_percent, r.uses_tensor_core,"            \
              " r.tensor_core_eligible" more                                                       \
              " FROM kernel_rows r JOIN names n ON n.id=r.name_id JOIN profile_files p ON "        \
              "p.profile_id=r.profile_id"                                                          \
              " JOIN hosts h ON h.fingerprint=p.fingerprint JOIN sessions s ON s.id=h.session_id"  \
              " LEFT JOIN names o ON o.id=r.op_name_id;"                                           \
              "CREATE VIEW steps AS SELECT s.name AS session, s.mtime_ns AS session_mtime_ns,"     \
              " h.name AS host, r.step_num, r.core_id, n.text AS name, r.begin_ps, r.duration_ps," \
              " r.compute_ps, r.input_ps, r.output_ps, r.collective_ps, r.compile_ps, r.host_ps,"  \
              " r.idle_ps, r.other_ps" more                                                        \
              " FROM step_rows r JOIN profile_files p ON p.profile_id=r.profile_id"                \
              " JOIN hosts h ON h.fingerprint=p.fingerprint JOIN sessions s ON s.id=h.session_id"  \
              " LEFT JOIN names n ON n.id=r.name_id;"

static const char v2_views[] = VIEWS("");

// Version 3: instructions of HLO programs with what they cost.  They are the ops of devices that
// have a module, so there is nothing more to write or keep.
#define INSTRUCTIONS(more)                                                                         \
    "CREATE VIEW hlo_instructions AS SELECT session, session_mtime_ns, host, module, name, "       \
    "category,"                                                                                    \
    " framework_op, source, occurrences, time_ps, self_time_ps, flops, bytes_accessed,"            \
    " 1e3*nullif(flops,0)/nullif(time_ps,0) AS gflops_per_s,"                                      \
    " 1e12*nullif(bytes_accessed,0)/1073741824/nullif(time_ps,0) AS gib_per_s,"                    \
    " 1.0*nullif(flops,0)/nullif(bytes_accessed,0) AS flops_per_byte" more                         \
    " FROM ops WHERE on_device AND module IS NOT NULL;"
static const char v3_views[] = INSTRUCTIONS("");

// Version 4: when sessions were captured, by which histories are ordered.  Sessions are written
// again because their digest counts it.
#define CAPTURED ", coalesce(s.captured_ns, s.mtime_ns) AS session_captured_ns"
static const char v4_captured[] = "DROP VIEW hlo_instructions;"
                                  "DROP VIEW ops; DROP VIEW kernels; DROP VIEW steps;"
                                  "ALTER TABLE sessions ADD COLUMN captured_ns INTEGER;";
static const char v4_views[] = VIEWS(CAPTURED) INSTRUCTIONS(", session_captured_ns");

// Version 5: the memory of allocators.  It has a version of its own, as it is made of another
// product than the other rows.
static const char v5_memory[] =
    "ALTER TABLE profiles ADD COLUMN memory_version INTEGER;"
    "CREATE TABLE memory_rows("
    " profile_id INTEGER NOT NULL REFERENCES profiles(id), seq INTEGER NOT NULL,"
    " name_id INTEGER NOT NULL, peak_bytes INTEGER, capacity_bytes INTEGER,"
    " PRIMARY KEY(profile_id, seq)) WITHOUT ROWID;"
    "CREATE VIEW memory AS SELECT s.name AS session, s.mtime_ns AS session_mtime_ns,"
    " h.name AS host, n.text AS name, r.peak_bytes, r.capacity_bytes,"
    " coalesce(s.captured_ns, s.mtime_ns) AS session_captured_ns"
    " FROM memory_rows r JOIN names n ON n.id=r.name_id JOIN profile_files p ON "
    "p.profile_id=r.profile_id"
    " JOIN hosts h ON h.fingerprint=p.fingerprint JOIN sessions s ON s.id=h.session_id;";

// Version 6: the view `ops` leaves out idle time, so that a sum over it is the time of ops.  Other
// views refer to `ops` by name and need no change.
static const char v6_ops[] =
    "DROP VIEW ops;"
    "CREATE VIEW ops_with_idle AS" OPS(
        CAPTURED) ";"
                  "CREATE VIEW ops AS SELECT * FROM ops_with_idle"
                  " WHERE NOT (name='IDLE' AND coalesce(category,'')='IDLE');";

// steps[v] brings a database of version v to version v + 1.  Never change one that was released.
static const char *const step_1[] = {v1_catalogue, v1_results, rows_tables, v1_views, NULL};
static const char *const step_2[] = {v2_drop, v2_profiles, v2_results, rows_tables, v2_views, NULL};
static const char *const step_3[] = {v3_views, NULL};
static const char *const step_4[] = {v4_captured, v4_views, NULL};
static const char *const step_5[] = {v5_memory, NULL};
static const char *const step_6[] = {v6_ops, NULL};
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
