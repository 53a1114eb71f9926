// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>

// Takes the beginning of a UTF-8 character that was cut off the end of a text.
static void drop_partial(char *text, size_t n) {
    size_t at = n;
    while (at > 0 && n - at < 3 && ((unsigned char)text[at - 1] & 0xc0) == 0x80)
        at--;
    if (at == 0) return;
    const unsigned char lead = (unsigned char)text[at - 1];
    const size_t len = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    if (len > 1 && at - 1 + len > n) text[at - 1] = 0;
}

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
        if (n >= (int)sizeof err->msg) drop_partial(err->msg, sizeof err->msg - 1);
    }
    return code;
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
