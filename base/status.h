// SPDX-License-Identifier: Apache-2.0
// Status codes and error details.  Codes equal google.rpc.Code, so the RPC edge casts, never maps.
#ifndef XPL_BASE_STATUS_H_
#define XPL_BASE_STATUS_H_

#include <stdint.h>

typedef enum xpl_status {
    XPL_OK = 0,
    XPL_CANCELLED = 1,
    XPL_UNKNOWN = 2,
    XPL_INVALID_ARGUMENT = 3,
    XPL_DEADLINE_EXCEEDED = 4,
    XPL_NOT_FOUND = 5,
    XPL_ALREADY_EXISTS = 6,
    XPL_PERMISSION_DENIED = 7,
    XPL_RESOURCE_EXHAUSTED = 8,
    XPL_FAILED_PRECONDITION = 9,
    XPL_ABORTED = 10,
    XPL_OUT_OF_RANGE = 11,
    XPL_UNIMPLEMENTED = 12,
    XPL_INTERNAL = 13,
    XPL_UNAVAILABLE = 14,
    XPL_DATA_LOSS = 15,
    XPL_UNAUTHENTICATED = 16,
} xpl_status_t;

// Details of the first failure.  Fixed size: filling it never allocates, so it works after OOM.
// Zero-initialise before use.
struct xpl_error {
    xpl_status_t code;
    int line;
    const char *file;
    uint64_t offset; // byte offset in the input, UINT64_MAX if unknown
    char msg[232];
};

#define XPL_NODISCARD __attribute__((warn_unused_result))

// Records a failure in `err` (which may be NULL) unless one is already recorded; returns `code`.
xpl_status_t xpl_error_set(struct xpl_error *err, xpl_status_t code, const char *file, int line,
                           uint64_t offset, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));

// Copies `why`, an error of reading the profile at `path`, to *err (which may be NULL), and returns
// its code.  Errors of the profile itself (DATA_LOSS) get the path as a prefix.
xpl_status_t xpl_error_of_profile(const struct xpl_error *why, const char *path,
                                  struct xpl_error *err) XPL_NODISCARD;

// "DATA_LOSS" and so on; "UNKNOWN" for an invalid code.
const char *xpl_status_name(xpl_status_t code);

#define XPL_RETURN_ERROR(err, code, ...)                                                           \
    return xpl_error_set((err), (code), __FILE__, __LINE__, UINT64_MAX, __VA_ARGS__)
#define XPL_RETURN_ERROR_AT(err, code, off, ...)                                                   \
    return xpl_error_set((err), (code), __FILE__, __LINE__, (off), __VA_ARGS__)
// The one way to report that memory, or an arena's limit, ran out.
#define XPL_RETURN_OOM(err, what)                                                                  \
    XPL_RETURN_ERROR((err), XPL_RESOURCE_EXHAUSTED,                                                \
                     "%s: out of memory or over the request's limit", (what))
#define XPL_TRY(expr)                                                                              \
    do {                                                                                           \
        const xpl_status_t xpl_try_ = (expr);                                                      \
        if (xpl_try_ != XPL_OK) return xpl_try_;                                                   \
    } while (0)

#endif
