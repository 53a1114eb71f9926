// SPDX-License-Identifier: Apache-2.0
// Settings of the daemon: one table feeds the configuration file, the environment, the flags,
// --help and xplaned(8).  Flags win over the environment, that over the file.
#ifndef XPL_SERVER_CONFIG_H_
#define XPL_SERVER_CONFIG_H_

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/status.h"

struct xpl_config { // strings are owned; NULL or "" means not set
    char *logdir;
    char *listen; // comma-separated addresses
    char *xprof_worker, *worker_dir, *worker_group, *worker_fallback;
    char *http; // comma-separated addresses; "off"
    char *http_host, *http_prefix, *ui_dir, *src_prefix;
    char *state_dir;
    char *store; // URL of a database; may have a password in it: never shown
    char *role;  // all, front, worker, convert
    char *shard; // of role convert: "I/N"
    char *object_endpoint, *object_region;
    char *tls_cert, *tls_key, *tls_client_ca, *token_file;
    char *log, *log_format;
    char *config;
    bool insecure, prefetch, capture, allow_delete, join, links_anywhere, object_anonymous;
    uint64_t workers;                    // 0: number of processors
    uint64_t memory_limit, memory_total; // bytes
    uint64_t answer_cache, store_limit;  // bytes
    uint64_t max_concurrent_requests;    // that wait for a worker
    uint64_t grpc_connections, http_connections, connections_per_address;
    uint64_t http_idle_ms;
    uint64_t request_timeout_ms, grace_ms, scan_interval_ms, slow_request_ms;
    uint64_t retain_ms;                    // 0: sessions of any age stay
    uint64_t import_idle_ms, import_limit; // bytes
    uint64_t job_lease_ms;
    uint64_t object_cache; // bytes
    uint64_t object_interval_ms, host_patience_ms;
    const char **runs; // sessions of role convert, from argv; the array is owned
    size_t n_runs;
    uint64_t shard_index, n_shards;
    uint64_t given; // settings that were made, a bit each in the order of the table
};

// Whether the daemon has this role.
bool xpl_config_has_role(const struct xpl_config *c, const char *role);

enum xpl_config_result {
    XPL_CONFIG_RUN,   // settings complete
    XPL_CONFIG_HELP,  // --help or --version was printed: exit 0
    XPL_CONFIG_USAGE, // wrong usage, said on stderr: exit 2
};

// Reads defaults, file, environment (XPLANED_...), flags, in that order of strength.  Prints help
// and errors itself.  The caller frees *ret with xpl_config_fini in every case.
enum xpl_config_result xpl_config_load(int argc, char **argv, struct xpl_config *ret);
// What a reload left as it was: settings that changed and cannot change while the daemon runs, as
// "--listen, --token-file"; "" for none.
struct xpl_config_reloaded {
    char restart[512];
};
// Reads file and environment again for SIGHUP and takes over what may change while running
// (log levels, limits, prefetch).  On an error nothing changes.
xpl_status_t xpl_config_reload(struct xpl_config *c, int argc, char **argv,
                               struct xpl_config_reloaded *ret, struct xpl_error *err)
    XPL_NODISCARD;
void xpl_config_fini(struct xpl_config *c);
// The table as troff, for the OPTIONS of xplaned(8): what `xplaned --help-man` prints.
void xpl_config_print_man(FILE *out);

#endif
