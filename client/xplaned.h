/* libxplaned: ask a running xplaned for profile sessions and tools.
 *
 * Thread-safe: any number of threads may use one client at once.  No global state of its own, no
 * logging, never exits.  Needs gRPC's C core and protobuf-c.
 * Strings given to the library are copied; what it returns is freed by the call named beside it.
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
 * 127.0.0.1:50551.  Connects lazily.  *ret is freed with xpl_client_close. */
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

typedef struct xpl_session_info {
    const char *name;
    uint64_t bytes; /* of all hosts */
    int64_t modified_unix_ms;
    const char *state;
    double progress; /* 0 to 1 while converting */
    size_t n_hosts;
    const xpl_host_info *hosts; /* filled by xpl_client_session; NULL in a listing */
    size_t n_tools;
    const char *const *tools; /* likewise */
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

/* Version of the library, "0.1.0". */
XPLANED_API const char *xpl_client_version(void);

#ifdef __cplusplus
}
#endif
#endif
