// SPDX-License-Identifier: Apache-2.0
// The views that people query (docs/schema.md), in the SQL of both stores.
#ifndef XPL_STORAGE_STORE_VIEWS_H_
#define XPL_STORAGE_STORE_VIEWS_H_

#define XPL_VIEW_HOST "s.name AS session, s.mtime_ns AS session_mtime_ns, h.name AS host, "
#define XPL_VIEW_FROM_HOSTS                                                                        \
    " JOIN profile_files p ON p.profile_id=r.profile_id"                                           \
    " JOIN hosts h ON h.fingerprint=p.fingerprint JOIN sessions s ON s.id=h.session_id"
// Histories are ordered by it.
#define XPL_VIEW_CAPTURED ", coalesce(s.captured_ns, s.mtime_ns) AS session_captured_ns"

// VIEW(name, select) makes a statement of each view.  `real` casts a number, `name` and `join` are
// where the name of an allocator comes from.  The view `ops` leaves out idle time, so that a sum
// over it is the time of ops.  Instructions of HLO programs are the ops of devices that have a
// module.
#define XPL_VIEWS(VIEW, real, name, join)                                                          \
    VIEW(                                                                                          \
        "ops_with_idle",                                                                           \
        "SELECT " XPL_VIEW_HOST                                                                    \
        "r.on_device, m.text AS module, n.text AS name, c.text AS category,"                       \
        " f.text AS framework_op, o.text AS source, r.occurrences, r.time_ps, r.self_time_ps,"     \
        " r.min_time_ps, r.dma_stall_ps, r.flops, r.bytes_accessed, r.num_cores" XPL_VIEW_CAPTURED \
        " FROM op_rows r JOIN names n ON n.id=r.name_id" XPL_VIEW_FROM_HOSTS                       \
        " LEFT JOIN names m ON m.id=r.module_id LEFT JOIN names c ON c.id=r.category_id"           \
        " LEFT JOIN names f ON f.id=r.framework_op_id LEFT JOIN names o ON o.id=r.source_id")      \
    VIEW("ops", "SELECT * FROM ops_with_idle"                                                      \
                " WHERE NOT (name='IDLE' AND coalesce(category,'')='IDLE')")                       \
    VIEW("kernels",                                                                                \
         "SELECT " XPL_VIEW_HOST "n.text AS name, o.text AS op_name, r.occurrences,"               \
         " r.total_ns, r.min_ns, r.max_ns, r.registers_per_thread, r.static_shmem_bytes,"          \
         " r.dynamic_shmem_bytes, r.block_x, r.block_y, r.block_z, r.grid_x, r.grid_y, r.grid_z,"  \
         " r.occupancy_percent, r.uses_tensor_core, r.tensor_core_eligible" XPL_VIEW_CAPTURED      \
         " FROM kernel_rows r JOIN names n ON n.id=r.name_id" XPL_VIEW_FROM_HOSTS                  \
         " LEFT JOIN names o ON o.id=r.op_name_id")                                                \
    VIEW("steps",                                                                                  \
         "SELECT " XPL_VIEW_HOST "r.step_num, r.core_id, n.text AS name, r.begin_ps,"              \
         " r.duration_ps, r.compute_ps, r.input_ps, r.output_ps, r.collective_ps, r.compile_ps,"   \
         " r.host_ps, r.idle_ps, r.other_ps" XPL_VIEW_CAPTURED                                     \
         " FROM step_rows r" XPL_VIEW_FROM_HOSTS " LEFT JOIN names n ON n.id=r.name_id")           \
    VIEW("hlo_instructions",                                                                       \
         "SELECT session, session_mtime_ns, host, module, name, category,"                         \
         " framework_op, source, occurrences, time_ps, self_time_ps, flops, bytes_accessed,"       \
         " 1e3" real "*nullif(flops,0)/nullif(time_ps,0) AS gflops_per_s,"                         \
         " 1e12" real "*nullif(bytes_accessed,0)/1073741824/nullif(time_ps,0) AS gib_per_s,"       \
         " 1.0" real "*nullif(flops,0)/nullif(bytes_accessed,0) AS flops_per_byte,"                \
         " session_captured_ns FROM ops WHERE on_device AND module IS NOT NULL")                   \
    VIEW("memory",                                                                                 \
         "SELECT " XPL_VIEW_HOST name ", r.peak_bytes, r.capacity_bytes" XPL_VIEW_CAPTURED         \
         " FROM memory_rows r" join XPL_VIEW_FROM_HOSTS)

#endif
