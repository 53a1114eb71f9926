// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/text/utf8.h"

xpl_status_t xpl_error_set(struct xpl_error *err, xpl_status_t code, const char *file, int line,
                           uint64_t offset, const char *fmt, ...) {
    if (err && err->code == XPL_OK) {
        va_list ap;
        err->code = code;
        err->file = file;
        err->line = line;
        err->offset = offset;
        va_start(ap, fmt);
        const int n = vsnprintf(err->msg, sizeof err->msg, fmt, ap);
        va_end(ap);
        if (n >= (int)sizeof err->msg) err->msg[xpl_utf8_whole(xpl_str_from(err->msg)).len] = '\0';
    }
    return code;
}

xpl_status_t xpl_error_of_profile(const struct xpl_error *why, const char *path,
                                  struct xpl_error *err) {
    if (why->code == XPL_DATA_LOSS)
        XPL_RETURN_ERROR_AT(err, why->code, why->offset, "%s: %s", path, why->msg);
    if (err) *err = *why;
    return why->code;
}

const char *xpl_status_name(xpl_status_t code) {
    static const char *const names[] = {
        "OK",
        "CANCELLED",
        "UNKNOWN",
        "INVALID_ARGUMENT",
        "DEADLINE_EXCEEDED",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
        "INTERNAL",
        "UNAVAILABLE",
        "DATA_LOSS",
        "UNAUTHENTICATED",
    };
    const unsigned i = (unsigned)code;
    return i < sizeof names / sizeof *names ? names[i] : "UNKNOWN";
}
