// SPDX-License-Identifier: Apache-2.0
/* libxplaned: request profile sessions and tool answers from a running xplaned.
 *
 * Thread-safe: any number of threads may use one client at once.  No global state, no
 * logging, never exits.  Needs gRPC's C core and protobuf-c.
 * Strings given to the library are copied; results are freed by the function named with them.
 * Times are in milliseconds unless a name says otherwise; sizes in bytes. */
#ifndef XPLANED_H_
#define XPLANED_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define XPLANED_API __attribute__((visibility("default")))
#else
#define XPLANED_API
#endif

typedef struct xpl_client xpl_client;
typedef struct xpl_answer xpl_answer;
typedef struct xpl_sessions xpl_sessions;

/* Outcome of a call.  Codes are gRPC's (google.rpc.Code): 0 is success.  `message` is a sentence a
 * person can act on.  retry_after_ms is 0 unless the server said when to try again. */
typedef struct xpl_result {
    int code;
    int64_t retry_after_ms;
    char message[1024];
} xpl_result;

/* Grows at the end; set size to sizeof of what you were compiled with. */
typedef struct xpl_client_options {
    size_t size;
    const char *tls_roots; /* PEM file: use TLS and trust these roots; NULL: plain text */
    const char *tls_cert;  /* PEM files of a client certificate, or NULL */
    const char *tls_key;
    const char *tls_name; /* server name to expect instead of the address, or NULL */
    const char *token;    /* bearer token, or NULL */
    int64_t timeout_ms;   /* per call; 0: five minutes */
} xpl_client_options;

/* Prepares a client for "HOST:PORT" or "unix:/PATH"; NULL or "" means $XPLANED_SERVER, else
 * 127.0.0.1:50551.  Connects lazily.  Whatever the daemon sends, messages of more than 1 GiB and
 * answers of more than 4 GiB are refused.  *ret is freed with xpl_client_close. */
XPLANED_API int xpl_client_open(const char *server, const xpl_client_options *options,
                                xpl_client **ret, xpl_result *result);
/* Calls in progress on other threads must have returned.  NULL is fine. */
XPLANED_API void xpl_client_close(xpl_client *c);

typedef struct xpl_host_info {
    const char *name;
    uint64_t bytes;
    int64_t modified_unix_ms;
    const char *state; /* "new", "converting", "stored", "broken" */
    const char *error; /* why it is broken, or "" */
} xpl_host_info;

typedef struct xpl_lost_info {
    const char *target, *reason;
} xpl_lost_info;

typedef struct xpl_session_info {
    const char *name;
    uint64_t bytes; /* of all hosts */
    int64_t modified_unix_ms;
    const char *state; /* as of a host; "partial": its capture lost hosts */
    double progress;   /* 0 to 1 while converting */
    size_t n_hosts;
    const xpl_host_info *hosts; /* filled by xpl_client_session; NULL in a listing */
    size_t n_tools;
    const char *const *tools; /* likewise */
    const char *kind; /* of its files' format: "xspace"; "" from a daemon that does not say */
    int64_t captured_unix_ms; /* as the profile says, its name, or the oldest file, in this order */
    size_t n_lost;            /* hosts that were asked for and gave no profile */
    const xpl_lost_info *lost;
    size_t n_labels; /* what people call it */
    const char *const *labels;
} xpl_session_info;

/* All sessions, newest first.  *ret is freed with xpl_sessions_free. */
XPLANED_API int xpl_client_sessions(xpl_client *c, xpl_sessions **ret, xpl_result *result);
/* One session with its hosts and tools, as a list of one. */
XPLANED_API int xpl_client_session(xpl_client *c, const char *session, xpl_sessions **ret,
                                   xpl_result *result);
XPLANED_API size_t xpl_sessions_count(const xpl_sessions *s);
/* Valid as long as `s`; NULL beyond the end. */
XPLANED_API const xpl_session_info *xpl_sessions_get(const xpl_sessions *s, size_t i);
XPLANED_API void xpl_sessions_free(xpl_sessions *s);

/* Adds and removes labels of a session, all or none. */
typedef struct xpl_labeling {
    size_t size; /* sizeof(xpl_labeling) */
    const char *session;
    const char *const *add, *const *remove;
    size_t n_add, n_remove;
} xpl_labeling;
XPLANED_API int xpl_client_label(xpl_client *c, const xpl_labeling *labeling, xpl_result *result);

typedef struct xpl_tool_request {
    size_t size; /* sizeof(xpl_tool_request) */
    const char *session;
    const char *tool;
    const char *const *hosts; /* none: all together */
    size_t n_hosts;
    const char *const *options; /* key, value, key, value ... */
    size_t n_options;           /* pairs */
} xpl_tool_request;

/* A tool's answer, whatever its size.  *ret is freed with xpl_answer_free. */
XPLANED_API int xpl_client_tool(xpl_client *c, const xpl_tool_request *request, xpl_answer **ret,
                                xpl_result *result);

/* A SELECT over the events of sessions; docs/sql.md of the daemon has the tables. */
typedef struct xpl_sql_statement {
    size_t size; /* sizeof(xpl_sql_statement) */
    const char *statement;
    const char *const *sessions; /* none: all of them */
    size_t n_sessions;
} xpl_sql_statement;
/* The answer's data is JSON: {"columns": [...], "rows": [[...], ...], "cut": false}. */
XPLANED_API int xpl_client_sql(xpl_client *c, const xpl_sql_statement *statement, xpl_answer **ret,
                               xpl_result *result);

/* The daemons that share the daemon's database, and who works on what.  The answer's data is JSON,
 * as `xplanectl fleet --format json` writes it. */
XPLANED_API int xpl_client_fleet(xpl_client *c, xpl_answer **ret, xpl_result *result);

/* Comparison of two groups of sessions; docs/compare.md of the daemon has the definitions. */
typedef struct xpl_comparison {
    size_t size; /* sizeof(xpl_comparison) */
    const char *const *a, *const *b;
    size_t n_a, n_b;
} xpl_comparison;
/* The answer's data is JSON, as `xplanectl compare --format json` writes it. */
XPLANED_API int xpl_client_compare(xpl_client *c, const xpl_comparison *comparison,
                                   xpl_answer **ret, xpl_result *result);

/* Metrics over sessions that all of it is true of; docs/history.md of the daemon has them. */
typedef struct xpl_history_request {
    size_t size;           /* sizeof(xpl_history_request) */
    const char *label;     /* NULL: any, as of the others */
    const char *directory; /* within the log directory */
    uint64_t schedule_id;
    int64_t since_unix_ms;
    uint32_t last;              /* the newest so many; 0: 100 */
    const char *const *metrics; /* none: step_time */
    size_t n_metrics;
} xpl_history_request;
/* The answer's data is JSON, as `xplanectl history --format json` writes it. */
XPLANED_API int xpl_client_history(xpl_client *c, const xpl_history_request *request,
                                   xpl_answer **ret, xpl_result *result);
/* XProf's OpStats message of the hosts, serialized. */
XPLANED_API int xpl_client_op_stats(xpl_client *c, const xpl_tool_request *request,
                                    xpl_answer **ret, xpl_result *result);
XPLANED_API const void *xpl_answer_data(const xpl_answer *a, size_t *ret_len);
XPLANED_API const char *xpl_answer_content_type(const xpl_answer *a);
/* "memory", "store" or "computed". */
XPLANED_API const char *xpl_answer_source(const xpl_answer *a);
/* Warnings that came with the answer: "HOST: text"; NULL beyond the end. */
XPLANED_API const char *xpl_answer_warning(const xpl_answer *a, size_t i);
XPLANED_API void xpl_answer_free(xpl_answer *a);

/* ---- captures: profiles of running programs, by their profiler servers ---- */

typedef struct xpl_captured_host {
    const char *target;
    const char *state;  /* "connecting" ... "stored", "idle", "failed", "cancelled" */
    const char *host;   /* what its file is called, once it is stored */
    const char *reason; /* why it was not stored, and what to do; of a stored host what its profiler
                           complains of; or "" */
    int code;           /* likewise, as in xpl_result */
    uint64_t bytes;
    unsigned attempts;
    uint64_t events;       /* of a stored host; 0 also when the daemon does not say */
    int64_t start_unix_ns; /* when it was asked to begin; likewise */
} xpl_captured_host;

typedef struct xpl_capture_status {
    uint64_t id;                    /* of the daemon's job; 0 without a daemon */
    const char *session;            /* "" while nothing is stored */
    const xpl_captured_host *hosts; /* in the order of the targets */
    size_t n_hosts, n_stored;
    int64_t elapsed_ms;
    int over;         /* the last one, also when the capture failed */
    const char *json; /* of a finished direct capture: the text of capture.json; else NULL */
} xpl_capture_status;

/* Grows at the end; set size, and the levels to -1 for the usual ones. */
typedef struct xpl_capture_request {
    size_t size;
    const char *const *targets; /* "host:port", "[::1]:port", "unix:/path" */
    size_t n_targets;
    /* Names of their files, one for each target; NULL, or "" for one: after the target,
     * "host1_9999" for host1:9999, independent of the program's name.  Up to 128 letters, digits
     * and . _ - + = @, without a dot at the beginning; other names are INVALID_ARGUMENT.  Hosts of
     * one name get "_2", "_3", ...  The last status has the final names
     * (xpl_captured_host.host). */
    const char *const *host_names;
    const char *session; /* NULL: named by the time */
    int64_t duration_ms; /* 0: one second */
    int64_t delay_ms;
    int host_tracer_level, device_tracer_level, python_tracer_level;
    /* ProfileOptions.advanced_configuration: key, value, key, value ...  "true", "false" and
     * whole numbers are sent as such, other values as text. */
    const char *const *advanced;
    size_t n_advanced; /* pairs */
    unsigned retries;
    const char *remote_logdir; /* LOGDIR as the hosts see it, for very old servers; or NULL */
    int detach;                /* go on when this client goes away */
    /* Called on the calling thread whenever a host moves on, and last with `over`; may be NULL. */
    void (*progress)(void *arg, const xpl_capture_status *s);
    /* Asked at least once a second; not 0 cancels the capture; may be NULL. */
    int (*cancelled)(void *arg);
    void *arg;
    /* Without a daemon only: until a host must have been reached (0: 10 s), and from the end of the
     * capture to its answer (0: 60 s or twice the duration). */
    int64_t connect_timeout_ms, answer_timeout_ms;
} xpl_capture_request;

/* Captures through the daemon, into its log directory.  0 when at least one host was stored; the
 * last status says which were not, and why.  The client's timeout does not count. */
XPLANED_API int xpl_client_capture(xpl_client *c, const xpl_capture_request *request,
                                   xpl_result *result);
/* Captures without a daemon, into a session below logdir/plugins/profile, with capture.json beside
 * the profiles.  `channel` (may be NULL): TLS and token for the targets, which profiler servers
 * usually do not have. */
XPLANED_API int xpl_capture_direct(const char *logdir, const xpl_client_options *channel,
                                   const xpl_capture_request *request, xpl_result *result);

/* ---- schedules and history ---- */

typedef struct xpl_schedule_request {
    size_t size;
    const xpl_capture_request *capture;
    int64_t every_ms;
    int continuous; /* the servers record all the time; each turn fetches what they have */
    uint64_t keep_count, keep_bytes; /* of its own sessions; 0: no limit */
    int64_t keep_age_ms;
} xpl_schedule_request;

XPLANED_API int xpl_client_schedule(xpl_client *c, const xpl_schedule_request *request,
                                    uint64_t *ret_id, xpl_result *result);
XPLANED_API int xpl_client_unschedule(xpl_client *c, uint64_t id, xpl_result *result);
XPLANED_API int xpl_client_cancel_capture(xpl_client *c, uint64_t id, xpl_result *result);

typedef struct xpl_capture_info {
    uint64_t id, schedule_id; /* schedule_id 0: somebody asked for it */
    const char *state; /* "running", "done", "partial", "failed", "cancelled", "interrupted" */
    const char *session, *message;
    int64_t begin_unix_ms, end_unix_ms;
    size_t n_hosts, n_stored;
    const xpl_captured_host *hosts;
} xpl_capture_info;

typedef struct xpl_schedule_info {
    uint64_t id;
    int64_t every_ms, next_unix_ms;
    size_t n_targets;
    const char *const *targets;
    uint64_t last_capture_id, bytes;
    unsigned sessions;
    int continuous;
} xpl_schedule_info;

typedef struct xpl_captures xpl_captures;
/* The last `limit` captures (0: 100), newest first, and all schedules.  *ret is freed with
 * xpl_captures_free. */
XPLANED_API int xpl_client_captures(xpl_client *c, unsigned limit, xpl_captures **ret,
                                    xpl_result *result);
/* NULL beyond the end; valid as long as `list`. */
XPLANED_API const xpl_capture_info *xpl_captures_get(const xpl_captures *list, size_t i);
XPLANED_API const xpl_schedule_info *xpl_captures_schedule(const xpl_captures *list, size_t i);
XPLANED_API void xpl_captures_free(xpl_captures *list);

/* ---- import ---- */

typedef struct xpl_import_file {
    const char *path;
    const char *host; /* what it is called in the session; NULL: the file's name without suffix */
} xpl_import_file;

typedef struct xpl_import_request {
    size_t size;
    const xpl_import_file *files;
    size_t n_files;
    const char *session; /* NULL: named by the time */
    unsigned retries;    /* of a connection that breaks: it goes on where it was */
    void (*progress)(void *arg, uint64_t sent_bytes, uint64_t all_bytes); /* may be NULL */
    void *arg;
    /* For a single file that is still being written, or was during an earlier import: it replaces
     * the host's file in the session if that is its prefix.  Only for formats that say where they
     * keep their length. */
    int grows;
} xpl_import_request;

/* Uploads profiles as one session, all or none.  `session` gets its name, cut to `size`. */
XPLANED_API int xpl_client_import(xpl_client *c, const xpl_import_request *request, char *session,
                                  size_t size, xpl_result *result);
/* Needs a daemon with --allow-delete. */
XPLANED_API int xpl_client_delete_session(xpl_client *c, const char *session, xpl_result *result);

/* Version of the library, "0.1.0". */
XPLANED_API const char *xpl_client_version(void);

#ifdef __cplusplus
}
#endif
#endif
