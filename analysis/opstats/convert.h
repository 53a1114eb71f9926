// One XSpace into its OpStats: the order of the parts, and what each part fills in.
// Rules: XProf's xplane_to_op_stats.cc (ConvertXSpaceToOpStats).
#ifndef XPL_ANALYSIS_OPSTATS_CONVERT_H_
#define XPL_ANALYSIS_OPSTATS_CONVERT_H_

#include "analysis/grouping/groups.h"
#include "analysis/opstats/opstats.h"
#include "analysis/xplane/xspace.h"
#include "base/exec.h"
#include "base/status.h"

struct xpl_arena;

struct xpl_convert_options {
    // Count XLA and framework ops on host threads as device ops.  The caller sets it only when no
    // host of the session has a device plane (xpl_xspace_has_device).
    bool cpu_as_device;
    // Keep the first and the last of more than five steps, which are dropped otherwise because they
    // may be incomplete.  XProf's workers keep them (op_stats_processor.cc), all else drops them.
    bool keep_incomplete_steps;
};

// True when the space has a /device:TPU: or /device:GPU: plane.
bool xpl_xspace_has_device(const struct xpl_xspace *xs);

// Converts an opened space.  `result` receives what outlives the call (`*ret` and all it points
// to); temporaries go to arenas of its own, each limited to `scratch_limit` bytes.  CANCELLED when
// the exec says so.
xpl_status_t xpl_opstats_convert(const struct xpl_xspace *xs, const struct xpl_convert_options *opt,
                                 struct xpl_exec *exec, struct xpl_arena *result,
                                 size_t scratch_limit, struct xpl_opstats **ret,
                                 struct xpl_error *err) XPL_NODISCARD;

// ---- parts; each fills its fields of *s and touches no others ----

struct xpl_hlo_map;   // analysis/hlo/hlo_map.h
struct xpl_host_scan; // analysis/opstats/host/host_scan.h

struct xpl_convert {
    const struct xpl_xspace *xs;
    const struct xpl_groups *groups;
    struct xpl_hlo_map *hlo; // read lazily, under its own lock
    const struct xpl_convert_options *opt;
    struct xpl_exec *exec;
    struct xpl_arena *result; // one thread: parts run one after another
    size_t scratch_limit;     // for each temporary arena a part makes
    bool is_tpu, is_gpu;      // which device planes count: TPU if any, else GPU
    // What one pass over the host threads found, for the three host parts below; zero-initialised
    // by the caller, who frees it with xpl_host_scan_fini.  NULL: each part makes the pass again.
    struct xpl_host_scan *host;
};

// device_part.c: perf_env, run_environment, diagnostics, device_op_metrics_db, duty cycle,
// core_id_to_details, kernel_reports, program_id_to_name_map, disaggregated serving.
xpl_status_t xpl_convert_device(const struct xpl_convert *c, struct xpl_opstats *s,
                                struct xpl_error *err) XPL_NODISCARD;
// host_part.c: host_op_metrics_db, tf_functions, performance counters.
xpl_status_t xpl_convert_host(const struct xpl_convert *c, struct xpl_opstats *s,
                              struct xpl_error *err) XPL_NODISCARD;
// steps.c: step_db, precision stats of device_op_metrics_db, hlo_metrics_db_complete_steps_only.
// Runs last: reads device_op_metrics_db and core_id_to_details.
xpl_status_t xpl_convert_steps(const struct xpl_convert *c, struct xpl_opstats *s,
                               struct xpl_error *err) XPL_NODISCARD;
// cpu_device.c: with cpu_as_device, device_op_metrics_db from host threads.
xpl_status_t xpl_convert_cpu_device(const struct xpl_convert *c, struct xpl_opstats *s,
                                    struct xpl_error *err) XPL_NODISCARD;

#endif
