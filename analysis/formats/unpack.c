// SPDX-License-Identifier: Apache-2.0
// What compressed formats share: a buffer that grows as far as the limits allow.
#include "analysis/formats/impl.h"
#include "base/arena.h"
#include "base/buf.h"

enum {
    FIRST_ROOM = 64 << 10, // bytes
    STEP = 4 << 20,        // bytes between two checks whether to give up
};

size_t xpl_unpack_bound(size_t file) {
    const size_t most =
        file > SIZE_MAX / XPL_FORMAT_MAX_RATIO ? SIZE_MAX : file * XPL_FORMAT_MAX_RATIO;
    return most < XPL_FORMAT_SMALL ? XPL_FORMAT_SMALL : most;
}

static size_t bound(size_t file, const struct xpl_format_limits *limits) {
    const size_t most = xpl_unpack_bound(file);
    return limits->max_bytes < most ? limits->max_bytes : most;
}

static xpl_status_t refuse(size_t file, size_t most, const struct xpl_format_limits *limits,
                           struct xpl_error *err) {
    if (most == limits->max_bytes)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED,
                         "the profile is more than %zu bytes when decompressed, the limit of "
                         "memory",
                         most);
    XPL_RETURN_ERROR(err, XPL_DATA_LOSS,
                     "the file of %zu bytes becomes more than %d times as long when decompressed: "
                     "not a profile",
                     file, XPL_FORMAT_MAX_RATIO);
}

// Appends all that the file holds.
static xpl_status_t unpack_all(struct xpl_unpacker *u, const struct xpl_format_limits *limits,
                               struct xpl_buf *b, struct xpl_error *err) {
    const size_t most = bound(u->file.len, limits);
    xpl_bytes_t in = u->file;
    for (bool end = false; !end;) {
        if (limits->exec && xpl_exec_cancelled(limits->exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "cancelled");
        // The buffer's maximum is one byte more than may be used, to see whether there is more.
        if (b->n > most) return refuse(u->file.len, most, limits, err);
        const size_t left = b->max - b->n;
        if (b->n == b->cap && !xpl_buf_room(b, left < FIRST_ROOM ? left : FIRST_ROOM))
            XPL_RETURN_OOM(err, "decompressing a profile");
        size_t room = b->cap - b->n < STEP ? b->cap - b->n : STEP;
        size_t n = 0;
        if (u->head && room > u->head - b->n) room = u->head - b->n;
        struct xpl_error why = {0};
        const xpl_status_t st = u->step(u, &in, b->p + b->n, room, &n, &end, &why);
        b->n += n;
        if (st == XPL_DATA_LOSS && u->head && b->n) return XPL_OK; // in front of damage
        if (st != XPL_OK) {
            if (err && err->code == XPL_OK) *err = why;
            return st;
        }
        if (u->head && (b->n >= u->head || (b->n && in.len == 0))) return XPL_OK;
        if (!end && in.len == 0 && n < room)
            XPL_RETURN_ERROR_AT(err, XPL_DATA_LOSS, u->file.len,
                                "the compressed file is truncated after %zu bytes", u->file.len);
    }
    if (b->n > most) return refuse(u->file.len, most, limits, err);
    return XPL_OK;
}

xpl_status_t xpl_profile_take(struct xpl_buf *b, xpl_status_t st, const char *what,
                              struct xpl_profile *ret, struct xpl_error *err) {
    size_t n = 0;
    uint8_t *const bytes = st == XPL_OK ? xpl_buf_take(b, &n) : NULL;
    xpl_buf_fini(b);
    if (st != XPL_OK) return st;
    if (!bytes) XPL_RETURN_OOM(err, what);
    // Returns the memory that growing reserved.
    uint8_t *const exact = xpl_sys_realloc(bytes, n ? n : 1), *const owned = exact ? exact : bytes;
    *ret = (struct xpl_profile){.bytes = {owned, n}, .owned = owned};
    return XPL_OK;
}

xpl_status_t xpl_unpack(struct xpl_unpacker *u, const struct xpl_format_limits *limits,
                        struct xpl_profile *ret, struct xpl_error *err) {
    const size_t most = bound(u->file.len, limits);
    struct xpl_buf b = xpl_buf_of(most < SIZE_MAX ? most + 1 : most);
    return xpl_profile_take(&b, unpack_all(u, limits, &b, err), "decompressing a profile", ret,
                            err);
}
