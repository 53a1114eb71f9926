// SPDX-License-Identifier: Apache-2.0
#include "capture/profile_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"

enum {
    BUFFER = 256 << 10,
    LARGE = 32 << 10,     // a piece that is worth a separate write
    WRITE_BACK = 8 << 20, // how often to request that the kernel write to the disk
};

struct xpl_profile_writer {
    struct xpl_session_writer *session;
    struct xpl_check check;
    char host[XPL_SESSION_WRITER_NAME_SIZE];
    char temp[XPL_SESSION_WRITER_TEMP_SIZE];
    int fd;
    unsigned flags;
    const char *suffix;                 // of another format, or NULL
    uint64_t max_bytes, written, begun; // begun: bytes for which write-back was requested
    uint64_t taken;                     // bytes put
    size_t n_buffer;
    uint8_t buffer[BUFFER];
};

xpl_status_t xpl_profile_writer_begin(struct xpl_session_writer *s,
                                      const struct xpl_profile_writer_options *opt,
                                      struct xpl_profile_writer **ret, struct xpl_error *err) {
    if (opt->size != sizeof *opt)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "profile writer: options of another version");
    struct xpl_profile_writer *const in = xpl_sys_alloc(sizeof *in);
    if (!in) XPL_RETURN_OOM(err, "profile writer");
    in->session = s;
    in->flags = opt->flags;
    in->max_bytes = opt->max_bytes ? opt->max_bytes : UINT64_MAX;
    in->suffix = opt->suffix;
    in->written = in->begun = in->taken = 0;
    in->n_buffer = 0;
    memset(in->host, 0, sizeof in->host);
    (void)xpl_session_writer_safe_name(in->host, opt->host);
    xpl_check_init(&in->check);
    const xpl_status_t st = xpl_session_writer_open_temp(s, in->temp, &in->fd, err);
    if (st == XPL_OK)
        *ret = in;
    else
        xpl_sys_free(in);
    return st;
}

// Writes, and lets the disk begin, so that the sync at the end has little left to wait for.
static xpl_status_t put_out(struct xpl_profile_writer *in, const uint8_t *p, size_t n,
                            struct xpl_error *err) {
    XPL_TRY(xpl_session_writer_write(in->session, in->fd, (xpl_bytes_t){p, n}, err));
    in->written += n;
    if (in->written - in->begun >= WRITE_BACK) {
        (void)sync_file_range(in->fd, (off_t)in->begun, (off_t)(in->written - in->begun),
                              SYNC_FILE_RANGE_WRITE);
        in->begun = in->written;
    }
    return XPL_OK;
}

xpl_status_t xpl_profile_writer_check(struct xpl_profile_writer *in, xpl_bytes_t piece,
                                      struct xpl_error *err) {
    return xpl_check_put(&in->check, piece, err);
}

// Counts the bytes, and checks them where they are the XSpace.
static xpl_status_t count_bytes(struct xpl_profile_writer *in, xpl_bytes_t piece,
                                struct xpl_error *err) {
    if (piece.len > in->max_bytes - in->taken)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED,
                         "the profile is larger than %llu bytes: capture for a shorter time",
                         (unsigned long long)in->max_bytes);
    in->taken += piece.len;
    return in->suffix ? XPL_OK : xpl_check_put(&in->check, piece, err);
}

xpl_status_t xpl_profile_writer_put(struct xpl_profile_writer *in, xpl_bytes_t piece,
                                    struct xpl_error *err) {
    XPL_TRY(count_bytes(in, piece, err));
    if (piece.len >= LARGE || piece.len > BUFFER - in->n_buffer) {
        XPL_TRY(put_out(in, in->buffer, in->n_buffer, err));
        in->n_buffer = 0;
    }
    if (piece.len >= LARGE) return put_out(in, piece.ptr, piece.len, err);
    if (piece.len) memcpy(in->buffer + in->n_buffer, piece.ptr, piece.len);
    in->n_buffer += piece.len;
    return XPL_OK;
}

const char *xpl_profile_writer_get_notice(const struct xpl_profile_writer *in) {
    return in->check.notice;
}

xpl_status_t xpl_profile_writer_put_fd(struct xpl_profile_writer *in, int fd,
                                       struct xpl_error *err) {
    for (;;) {
        // Its own buffer when that is free, so that nothing is copied twice.
        XPL_TRY(put_out(in, in->buffer, in->n_buffer, err));
        in->n_buffer = 0;
        const ssize_t n = read(fd, in->buffer, BUFFER);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return xpl_session_writer_fail(in->session, errno, "reading for", err);
        if (n == 0) return XPL_OK;
        XPL_TRY(count_bytes(in, (xpl_bytes_t){in->buffer, (size_t)n}, err));
        in->n_buffer = (size_t)n;
    }
}

static const char *suffix_of(const struct xpl_profile_writer *in) {
    return in->suffix ? in->suffix : XPL_PROFILE_WRITER_SUFFIX;
}

static xpl_status_t check_events(struct xpl_profile_writer *in, struct xpl_error *err) {
    XPL_TRY(xpl_check_end(&in->check, err));
    if (in->check.counts.events == 0 && !(in->flags & XPL_PROFILE_WRITER_ALLOW_IDLE))
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "the profile has no events");
    return XPL_OK;
}

static xpl_status_t finish_file(struct xpl_profile_writer *in, struct xpl_error *err) {
    if (!(in->flags & XPL_PROFILE_WRITER_NO_XSPACE)) XPL_TRY(check_events(in, err));
    XPL_TRY(put_out(in, in->buffer, in->n_buffer, err));
    const bool sync = !(in->flags & XPL_PROFILE_WRITER_SYNC_LATER);
    if (sync && fsync(in->fd) != 0)
        return xpl_session_writer_fail(in->session, errno, "writing to", err);
    const int fd = in->fd;
    in->fd = -1;
    if (close(fd) != 0) return xpl_session_writer_fail(in->session, errno, "writing to", err);
    const enum xpl_session_writer_taken taken =
        in->flags & XPL_PROFILE_WRITER_UNIQUE    ? XPL_TAKEN_NUMBER
        : in->flags & XPL_PROFILE_WRITER_REPLACE ? XPL_TAKEN_REPLACE
                                                 : XPL_TAKEN_REFUSE;
    return xpl_session_writer_publish(in->session, in->temp, in->host, suffix_of(in), taken, sync,
                                      err);
}

xpl_status_t xpl_profile_writer_commit(struct xpl_profile_writer *in,
                                       struct xpl_profile_writer_file *ret, struct xpl_error *err) {
    const xpl_status_t st = finish_file(in, err);
    if (st != XPL_OK) {
        xpl_profile_writer_abort(in);
        return st;
    }
    if (ret) {
        *ret =
            (struct xpl_profile_writer_file){.suffix = suffix_of(in), .counts = in->check.counts};
        memcpy(ret->name, in->host, sizeof ret->name);
        memcpy(ret->hostname, in->check.hostname, sizeof ret->hostname);
    }
    xpl_sys_free(in);
    return XPL_OK;
}

void xpl_profile_writer_abort(struct xpl_profile_writer *in) {
    if (!in) return;
    if (in->fd >= 0) (void)close(in->fd);
    xpl_session_writer_drop_temp(in->session, in->temp);
    xpl_sys_free(in);
}
