// SPDX-License-Identifier: Apache-2.0
#include "server/monitor/table.h"

#include "server/monitor/figures.h"

const char *const xpl_metric_type_names[] = {"counter", "gauge", "histogram"};

#define WIDTH(field) (unsigned)sizeof(((struct xpl_figures *)NULL)->field)
#define SCALED(name, type, help, labels, field, per)                                               \
    {                                                                                              \
        name, XPL_METRIC_##type, help, labels, XPL_METRIC_FIGURE,                                  \
            offsetof(struct xpl_figures, field), WIDTH(field), per                                 \
    }
#define FIGURE(name, type, help, labels, field) SCALED(name, type, help, labels, field, 1)
// Of the metric of the row before, for another label.
#define MORE(name, labels, field) FIGURE(name, GAUGE, NULL, labels, field)
// Connections closed for a verdict of the guard.
#define CLOSED(cause, verdict)                                                                     \
    MORE("xplaned_connections_closed_total", "protocol=\"grpc\",cause=\"" cause "\"",              \
         guarded[XPL_RPC_GUARD_##verdict])
#define BY(name, type, help, labels, source)                                                       \
    { name, XPL_METRIC_##type, help, labels, XPL_METRIC_##source, 0, 0, 1 }

// Calls to an object store.
#define CALLS(call, result, field)                                                                 \
    MORE("xplaned_object_calls_total", "call=\"" call "\",result=\"" result "\"", objects.field)

// What the database tells of all daemons.
#define FLEET(name, help, labels, field)                                                           \
    {                                                                                              \
        name, XPL_METRIC_GAUGE, help, labels, XPL_METRIC_FLEET,                                    \
            offsetof(struct xpl_figures, jobs.fleet.field), WIDTH(jobs.fleet.field), 1             \
    }

#define OLDEST(name, help)                                                                         \
    {                                                                                              \
        name, XPL_METRIC_GAUGE, help, NULL, XPL_METRIC_FLEET,                                      \
            offsetof(struct xpl_figures, jobs.fleet.oldest_ms), WIDTH(jobs.fleet.oldest_ms), 1e3   \
    }

#define LABELED(name, help, labels, which)                                                         \
    { name, XPL_METRIC_GAUGE, help, labels, XPL_METRIC_LABELS, XPL_LABEL_##which, 0, 1 }

// clang-format off
const struct xpl_metric xpl_metric_table[] = {
    // ---- the process, under the names that all exporters use ----
    SCALED("process_cpu_seconds_total", COUNTER, "CPU time used, user and system", NULL,
           server.process.cpu_us, 1e6),
    SCALED("process_start_time_seconds", GAUGE, "When the daemon started, since 1970", NULL,
           server.started_unix_ns, 1e9),
    FIGURE("process_resident_memory_bytes", GAUGE, "Resident memory, with mapped profiles", NULL,
           server.process.resident_bytes),
    FIGURE("process_open_fds", GAUGE, "Open file descriptors", NULL, server.process.descriptors),
    FIGURE("process_max_fds", GAUGE, "File descriptors allowed", NULL,
           server.process.descriptors_limit),
    FIGURE("process_threads", GAUGE, "Threads", NULL, server.process.threads),
    FIGURE("xplaned_build_info", GAUGE, "1, with the version as label",
           "version=\"" XPL_VERSION "\"", build),

    // ---- requests for tools ----
    BY("xplaned_requests_total", COUNTER, "Finished requests for tools", "tool,code", REQUESTS),
    BY("xplaned_request_duration_seconds", HISTOGRAM,
       "Time from a request for a tool to its answer handed over", "tool", DURATION),
    BY("xplaned_request_stage_duration_seconds", HISTOGRAM,
       "Time that requests which were not answered from memory spent in each stage", "tool,stage",
       STAGES),
    FIGURE("xplaned_answers_total", COUNTER, "Answers, by source",
           "source=\"memory\"", server.engine.from_memory),
    MORE("xplaned_answers_total", "source=\"store\"", server.engine.from_store),
    MORE("xplaned_answers_total", "source=\"computed\"", server.engine.computed),
    FIGURE("xplaned_answers_joined_total", COUNTER,
           "Computed answers that waited for a request under way", NULL, server.engine.joined),
    FIGURE("xplaned_requests_cancelled_total", COUNTER, "Requests whose client went away", NULL,
           server.engine.cancelled),
    FIGURE("xplaned_requests_timed_out_total", COUNTER, "Requests whose deadline passed", NULL,
           server.engine.timed_out),
    FIGURE("xplaned_conversions_total", COUNTER, "Profiles converted", NULL,
           server.engine.conversions),
    FIGURE("xplaned_conversions_failed_total", COUNTER, "Profiles that could not be converted",
           NULL, server.engine.conversions_failed),
    FIGURE("xplaned_conversions_ahead_total", COUNTER, "Profiles converted ahead of requests",
           NULL, server.engine.prefetched),
    FIGURE("xplaned_imports_total", COUNTER, "Profiles of other formats that became XSpaces", NULL,
           server.engine.imports),
    FIGURE("xplaned_converted_bytes_total", COUNTER, "Bytes of the profiles converted", NULL,
           server.engine.bytes_converted),

    // ---- load ----
    FIGURE("xplaned_workers", GAUGE, "Worker threads, by state", "state=\"busy\"",
           server.pool.busy),
    MORE("xplaned_workers", "state=\"all\"", server.pool.workers),
    FIGURE("xplaned_queue_length", GAUGE, "Requests that wait for a worker", NULL,
           server.pool.queued),
    FIGURE("xplaned_queue_limit", GAUGE, "Requests that may wait (--max-concurrent-requests)",
           NULL, server.pool.max_queued),
    FIGURE("xplaned_connections", GAUGE, "Open client connections", "protocol=\"http\"",
           http.connections),
    MORE("xplaned_connections", "protocol=\"grpc\"", connections.open),
    FIGURE("xplaned_connections_accepted_total", COUNTER, "Accepted connections",
           "protocol=\"grpc\"", connections.accepted),
    FIGURE("xplaned_connections_closed_total", COUNTER,
           "Connections closed because of the data their clients sent, by cause",
           "protocol=\"grpc\",cause=\"preface\"", guarded[XPL_RPC_GUARD_PREFACE]),
    CLOSED("headers", HEADERS),
    CLOSED("unknown_stream", UNKNOWN),
    CLOSED("open_streams", OPEN),
    CLOSED("message", MESSAGE),
    CLOSED("resets", RESETS),
    CLOSED("settings", SETTINGS),
    CLOSED("useless_frames", CONTROL),
    CLOSED("memory", MEMORY),
    FIGURE("xplaned_streams", GAUGE, "Requests and calls under way", "protocol=\"http\"",
           http.requests_open),
    MORE("xplaned_streams", "protocol=\"grpc\"", server.rpc.open),
    FIGURE("xplaned_calls_begun_total", COUNTER, "Received requests and calls of every kind",
           "protocol=\"http\"", http.requests),
    MORE("xplaned_calls_begun_total", "protocol=\"grpc\"", server.rpc.calls),
    BY("xplaned_calls_total", COUNTER, "Requests and calls of every kind that were answered",
       "protocol,method,code", CALLS),
    FIGURE("xplaned_calls_ended_total", COUNTER,
           "Calls ended because their clients neither sent nor read", "protocol=\"grpc\"",
           server.rpc.slow),
    FIGURE("xplaned_refusals_total", COUNTER, "Refused requests and connections, by cause",
           "protocol=\"any\",cause=\"busy\"", server.engine.refused),
    MORE("xplaned_refusals_total", "protocol=\"grpc\",cause=\"connections\"",
         connections.refused_total),
    MORE("xplaned_refusals_total", "protocol=\"grpc\",cause=\"address\"",
         connections.refused_address),
    MORE("xplaned_refusals_total", "protocol=\"grpc\",cause=\"descriptors\"",
         connections.refused_descriptors),
    MORE("xplaned_refusals_total", "protocol=\"grpc\",cause=\"token\"", server.rpc.unauthenticated),
    MORE("xplaned_refusals_total", "protocol=\"grpc\",cause=\"role\"", server.rpc.denied),
    MORE("xplaned_refusals_total", "protocol=\"grpc\",cause=\"calls\"", server.rpc.refused),
    MORE("xplaned_refusals_total", "protocol=\"grpc\",cause=\"method\"", server.rpc.unimplemented),
    MORE("xplaned_refusals_total", "protocol=\"http\",cause=\"connections\"",
         http.refused_connections),
    MORE("xplaned_refusals_total", "protocol=\"http\",cause=\"address\"", http.refused_address),
    MORE("xplaned_refusals_total", "protocol=\"http\",cause=\"descriptors\"",
         http.refused_descriptors),
    MORE("xplaned_refusals_total", "protocol=\"http\",cause=\"host\"", http.refused_host),
    MORE("xplaned_refusals_total", "protocol=\"http\",cause=\"origin\"", http.refused_origin),
    MORE("xplaned_refusals_total", "protocol=\"http\",cause=\"site\"", http.refused_site),
    MORE("xplaned_refusals_total", "protocol=\"http\",cause=\"token\"", http.refused_token),
    MORE("xplaned_refusals_total", "protocol=\"http\",cause=\"role\"", http.refused_role),
    MORE("xplaned_refusals_total", "protocol=\"http\",cause=\"method\"", http.refused_method),
    MORE("xplaned_refusals_total", "protocol=\"http\",cause=\"uri\"", http.refused_uri),
    MORE("xplaned_refusals_total", "protocol=\"http\",cause=\"body\"", http.refused_body),
    MORE("xplaned_refusals_total", "protocol=\"http\",cause=\"busy\"", http.refused_busy),

    // ---- memory ----
    FIGURE("xplaned_memory_bytes", GAUGE,
           "Memory by owner; anonymous is all that the process has, and holds the others",
           "owner=\"anonymous\"", server.process.anonymous_bytes),
    MORE("xplaned_memory_bytes", "owner=\"buffers\"", large_blocks),
    MORE("xplaned_memory_bytes", "owner=\"answers\"", server.cache.bytes),
    MORE("xplaned_memory_bytes", "owner=\"requests\"", server.engine.in_flight_bytes),
    MORE("xplaned_memory_bytes", "owner=\"captures\"", captures.reserved_bytes),
    FIGURE("xplaned_memory_limit_bytes", GAUGE,
           "Limits of owners (--answer-cache, --memory-total)", "owner=\"answers\"",
           server.cache.limit),
    MORE("xplaned_memory_limit_bytes", "owner=\"requests\"", server.engine.memory_total),
    FIGURE("xplaned_cache_objects", GAUGE, "Answers and products kept in memory", NULL,
           server.cache.objects),
    FIGURE("xplaned_cache_evicted_total", COUNTER, "Objects dropped from memory for room", NULL,
           server.cache.evicted),

    // ---- cache.db ----
    FIGURE("xplaned_store_bytes", GAUGE, "Pages in use in cache.db", NULL, server.store.used_bytes),
    FIGURE("xplaned_store_limit_bytes", GAUGE, "Limit of cache.db (--store-limit)", NULL,
           server.store.limit_bytes),
    FIGURE("xplaned_store_writable", GAUGE,
           "1 while results are written, 0 while cache.db is only read", NULL, store_writable),
    FIGURE("xplaned_store_lookups_total", COUNTER, "Lookups of results in cache.db",
           "result=\"hit\"", server.store.hits),
    MORE("xplaned_store_lookups_total", "result=\"miss\"", server.store.misses),
    FIGURE("xplaned_store_read_errors_total", COUNTER,
           "Misses because cache.db could not be read", NULL, server.store.read_errors),
    FIGURE("xplaned_store_writes_total", COUNTER, "Writes to cache.db", "result=\"done\"",
           server.store.puts),
    MORE("xplaned_store_writes_total", "result=\"failed\"", server.store.dropped),
    MORE("xplaned_store_writes_total", "result=\"dropped\"", server.writer.dropped),
    FIGURE("xplaned_store_write_queue_length", GAUGE, "Results that wait to be written", NULL,
           server.writer.queued),
    FIGURE("xplaned_store_hashed_bytes_total", COUNTER, "Bytes of profiles hashed by the writer",
           NULL, server.writer.hashed_bytes),
    FIGURE("xplaned_store_evicted_total", COUNTER, "Results removed from cache.db for room", NULL,
           server.store.evicted),
    FIGURE("xplaned_store_rebuilt_total", COUNTER, "Broken databases moved aside", NULL,
           server.store.rebuilds),

    FIGURE("xplaned_store_statements_total", COUNTER, "Statements sent to PostgreSQL (--store)",
           NULL, server.store.statements),

    // ---- jobs of daemons that share a store (docs/scale.md) ----
    FLEET("xplaned_fleet_jobs", "Jobs of all daemons, by state, as of some seconds ago",
          "state=\"queued\"", queued),
    FLEET("xplaned_fleet_jobs", NULL, "state=\"running\"", running),
    FLEET("xplaned_fleet_jobs", NULL, "state=\"set_aside\"", set_aside),
    OLDEST("xplaned_fleet_oldest_job_seconds",
           "Time since the request of the oldest job that is not set aside, as of some seconds ago"),
    FLEET("xplaned_fleet_workers", "Daemons that take jobs, as of some seconds ago", NULL, workers),
    FLEET("xplaned_fleet_schedules", "Schedules of all daemons, as of some seconds ago", NULL,
          schedules),
    FLEET("xplaned_fleet_leases", "Leases of all daemons, by kind, as of some seconds ago",
          "on=\"schedule\"", leases[XPL_JOB_LEASE_SCHEDULE]),
    FLEET("xplaned_fleet_leases", NULL, "on=\"capture\"", leases[XPL_JOB_LEASE_CAPTURE]),
    FLEET("xplaned_fleet_leases", NULL, "on=\"scanner\"", leases[XPL_JOB_LEASE_SCANNER]),
    FLEET("xplaned_fleet_leases", NULL, "on=\"catalogue\"", leases[XPL_JOB_LEASE_CATALOGUE]),
    FLEET("xplaned_leases", "Leases of this daemon, by kind, as of some seconds ago", "on=\"schedule\"",
          held[XPL_JOB_LEASE_SCHEDULE]),
    FLEET("xplaned_leases", NULL, "on=\"capture\"", held[XPL_JOB_LEASE_CAPTURE]),
    FLEET("xplaned_leases", NULL, "on=\"scanner\"", held[XPL_JOB_LEASE_SCANNER]),
    FLEET("xplaned_leases", NULL, "on=\"catalogue\"", held[XPL_JOB_LEASE_CATALOGUE]),
    FIGURE("xplaned_job_leases", GAUGE, "Jobs that this daemon works on", NULL, jobs.leases),
    FIGURE("xplaned_job_attempts_total", COUNTER, "Jobs that this daemon began", NULL,
           jobs.claimed),
    FIGURE("xplaned_job_attempts_ended_total", COUNTER, "What became of them",
           "outcome=\"published\"", jobs.published),
    MORE("xplaned_job_attempts_ended_total", "outcome=\"given_back\"", jobs.given_back),
    MORE("xplaned_job_attempts_ended_total", "outcome=\"left_to_client\"", jobs.dropped),
    MORE("xplaned_job_attempts_ended_total", "outcome=\"lease_lost\"", jobs.lost),
    SCALED("xplaned_job_seconds_total", COUNTER,
           "Time that the jobs that this daemon began waited for it, and that it took to claim and "
           "to publish them",
           "stage=\"queued\"", jobs.queued_ms, 1e3),
    SCALED("xplaned_job_seconds_total", COUNTER, NULL, "stage=\"claim\"", jobs.claim_us, 1e6),
    SCALED("xplaned_job_seconds_total", COUNTER, NULL, "stage=\"publish\"", jobs.publish_us, 1e6),

    // ---- a bucket (docs/objects.md) ----
    FIGURE("xplaned_object_calls_total", COUNTER,
           "Listings, fetches, writes and deletions in the bucket, each with all its tries",
           "call=\"list\",result=\"done\"", objects.done[XPL_OBJECTS_LIST]),
    CALLS("list", "failed", failed[XPL_OBJECTS_LIST]),
    CALLS("fetch", "done", done[XPL_OBJECTS_FETCH]),
    CALLS("fetch", "failed", failed[XPL_OBJECTS_FETCH]),
    CALLS("put", "done", done[XPL_OBJECTS_PUT]),
    CALLS("put", "failed", failed[XPL_OBJECTS_PUT]),
    CALLS("remove", "done", done[XPL_OBJECTS_REMOVE]),
    CALLS("remove", "failed", failed[XPL_OBJECTS_REMOVE]),
    FIGURE("xplaned_object_fetched_bytes_total", COUNTER, "Bytes of objects fetched", NULL,
           objects.fetched_bytes),
    FIGURE("xplaned_object_sent_bytes_total", COUNTER, "Bytes of objects written", NULL,
           objects.sent_bytes),

    // ---- sessions and captures ----
    FIGURE("xplaned_sessions", GAUGE, "Profile sessions known", NULL, server.catalogue.sessions),
    FIGURE("xplaned_session_hosts", GAUGE, "Profiles in them", NULL, server.catalogue.hosts),
    FIGURE("xplaned_session_bytes", GAUGE, "Size of these profiles", NULL, server.catalogue.bytes),
    FIGURE("xplaned_sessions_removed_total", COUNTER, "Sessions removed, by cause",
           "cause=\"client\"", removed[XPL_REMOVAL_CLIENT]),
    MORE("xplaned_sessions_removed_total", "cause=\"schedule\"", removed[XPL_REMOVAL_SCHEDULE]),
    MORE("xplaned_sessions_removed_total", "cause=\"retention\"", removed[XPL_REMOVAL_RETENTION]),
    FIGURE("xplaned_captures_running", GAUGE, "Captures under way", NULL, captures.running),
    FIGURE("xplaned_captures_total", COUNTER, "Captures ended, by outcome", "outcome=\"done\"",
           captures.ended[XPL_CAPTURED_ALL]),
    MORE("xplaned_captures_total", "outcome=\"partial\"", captures.ended[XPL_CAPTURED_SOME]),
    MORE("xplaned_captures_total", "outcome=\"failed\"", captures.ended[XPL_CAPTURED_NOTHING]),
    MORE("xplaned_captures_total", "outcome=\"cancelled\"",
         captures.ended[XPL_CAPTURED_CANCELLED]),

    // ---- labels of sessions ----
    LABELED("xplaned_label_sessions", "Sessions that have a label", "label", SESSIONS),
    LABELED("xplaned_label_newest_captured_timestamp_seconds",
            "When the newest session of a label was captured, since 1970", "label", CAPTURED),
    LABELED("xplaned_label_newest_step_seconds",
            "Mean time of a step in the newest session of a label", "label", STEP),
    LABELED("xplaned_label_newest_time_seconds",
            "Time for each device and step in the newest session of a label, by cause",
            "label,cause", TIME),
    LABELED("xplaned_label_newest_peak_memory_bytes",
            "Greatest use of an allocator in the newest session of a label", "label", MEMORY),
    LABELED("xplaned_label_newest_utilization_ratio",
            "Rate of operations by the peak of a device in the newest session of a label", "label",
            UTILIZATION),

    // ---- the log ----
    FIGURE("xplaned_log_dropped_lines_total", COUNTER,
           "Log lines lost because stderr did not take them", NULL, log_dropped),
};
// clang-format on
const size_t xpl_n_metrics = sizeof xpl_metric_table / sizeof *xpl_metric_table;
