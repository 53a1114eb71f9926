// SPDX-License-Identifier: Apache-2.0
#include "server/grpc/import_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/exec.h"
#include "storage/sessions/source.h"

xpl_status_t xpl_import_name(const char *name, const char *given, xpl_str_t *ret_host,
                             const char **ret_suffix, struct xpl_error *err) {
    size_t n;
    const struct xpl_format *const *const formats = xpl_formats(&n);
    *ret_host = xpl_str_from(name);
    *ret_suffix = NULL;
    if (!given[0]) {
        struct xpl_profile_file f;
        if (!xpl_format_match(*ret_host, &f) || f.refusal || f.is_doubtful) return XPL_OK;
        *ret_host = f.host;
        given = f.host.ptr + f.host.len;
    }
    for (size_t i = 0; i < n; i++)
        for (const char *const *t = formats[i]->suffixes; *t; t++) {
            if (strcmp(*t, given) != 0) continue;
            if (formats[i]->refusal)
                XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "%s", formats[i]->refusal);
            *ret_suffix = *t;
            return XPL_OK;
        }
    XPL_RETURN_ERROR(
        err, XPL_INVALID_ARGUMENT,
        "no profile's name ends in \"%.40s\"; uncompressed ones end in " XPL_FORMAT_SUFFIX, given);
}

struct whole { // an upload, with its description
    const struct xpl_upload *upload;
    const struct xpl_source *source; // of `bytes`
    struct xpl_file_format is;
    xpl_bytes_t bytes;
    bool replaces; // the host's file, which is its beginning
};

// Whether the bytes at `at` of the file that was imported before are those of the new one, or say
// how long it is.
static bool same_bytes(const struct whole *w, size_t at, const uint8_t *old, size_t n) {
    if (memcmp(old, w->bytes.ptr + at, n) == 0) return true;
    for (size_t i = 0; i < n; i++)
        if (old[i] != w->bytes.ptr[at + i] &&
            (at + i < w->is.format->length_at || at + i >= w->is.format->length_end))
            return false;
    return true;
}

static bool is_beginning(const struct xpl_session_writer *s, const char *file,
                         const struct whole *w) {
    enum { PIECE = 64 << 10 };
    uint8_t *const piece = xpl_sys_alloc(PIECE);
    const int fd = piece ? xpl_session_writer_open_file(s, file) : -1;
    size_t at = 0;
    ssize_t n = -1;
    while (fd >= 0 && (n = read(fd, piece, PIECE)) > 0) {
        if (xpl_exec_cancelled(w->upload->exec)) break;
        if ((size_t)n > w->bytes.len - at || !same_bytes(w, at, piece, (size_t)n)) break;
        at += (size_t)n;
    }
    if (fd >= 0) (void)close(fd);
    xpl_sys_free(piece);
    return n == 0;
}

// A host has one file, whatever its format: a second one would hide the first, or be hidden by it.
static xpl_status_t check_new(const struct xpl_session_writer *s, struct whole *w,
                              struct xpl_error *err) {
    char name[XPL_SESSION_WRITER_NAME_SIZE] = {0}, file[XPL_SESSION_WRITER_NAME_SIZE + 32];
    size_t n;
    const struct xpl_format *const *const formats = xpl_formats(&n);
    (void)xpl_session_writer_safe_name(name, w->upload->host);
    for (size_t i = 0; i < n; i++)
        for (const char *const *t = formats[i]->suffixes; *t; t++) {
            (void)snprintf(file, sizeof file, "%s%s", name, *t);
            bool taken = false;
            XPL_TRY(xpl_session_writer_has(s, file, &taken, err));
            if (!taken) continue;
            w->replaces = w->upload->grows && *t == w->is.suffix && is_beginning(s, file, w);
            if (w->replaces) continue;
            if (xpl_exec_cancelled(w->upload->exec))
                XPL_RETURN_ERROR(err, XPL_CANCELLED, "cancelled");
            XPL_RETURN_ERROR(err, XPL_ALREADY_EXISTS, "session %.80s has %.120s already",
                             xpl_session_writer_get_name(s), file);
        }
    return XPL_OK;
}

typedef xpl_status_t take_fn(struct xpl_profile_writer *in, xpl_bytes_t piece,
                             struct xpl_error *err);

// Has the writer take the bytes in pieces, unless the import is cancelled.
static xpl_status_t take_bytes(const struct whole *w, xpl_bytes_t bytes, take_fn *take,
                               struct xpl_profile_writer *in, struct xpl_error *err) {
    enum { PIECE = 4 << 20 };
    for (size_t at = 0; at < bytes.len; at += PIECE) {
        const size_t n = bytes.len - at < PIECE ? bytes.len - at : PIECE;
        if (xpl_exec_cancelled(w->upload->exec)) XPL_RETURN_ERROR(err, XPL_CANCELLED, "cancelled");
        XPL_TRY(take(in, (xpl_bytes_t){bytes.ptr + at, n}, err));
    }
    return XPL_OK;
}

static xpl_status_t check_decoded(struct xpl_profile_writer *in, const struct whole *w,
                                  xpl_bytes_t bytes, struct xpl_error *err) {
    const struct xpl_format *const f = w->is.format;
    if (!f->check) return take_bytes(w, bytes, xpl_profile_writer_check, in, err);
    const xpl_status_t st = f->check(bytes, err);
    // The error is in the file, not in the request.
    return st == XPL_INVALID_ARGUMENT ? XPL_DATA_LOSS : st;
}

// The file is what its format says: by the format's own check, else as an XSpace.
static xpl_status_t check_contents(struct xpl_profile_writer *in, const struct whole *w,
                                   struct xpl_error *err) {
    const struct xpl_format_limits limits = {.max_bytes = (size_t)w->upload->max_bytes,
                                             .exec = w->upload->exec};
    struct xpl_profile profile = {0};
    if (!w->is.decoder || w->is.format->imports_encoded) return check_decoded(in, w, w->bytes, err);
    pthread_mutex_lock(w->upload->decompressing);
    xpl_status_t st = w->is.decoder->decode(w->bytes, 0, &limits, &profile, err);
    if (st == XPL_OK) st = check_decoded(in, w, profile.bytes, err);
    xpl_profile_close(&profile);
    pthread_mutex_unlock(w->upload->decompressing);
    return st;
}

static xpl_status_t put(struct xpl_session_writer *s, const struct whole *w,
                        struct xpl_profile_writer_file *ret, struct xpl_error *err) {
    struct xpl_profile_writer *in = NULL;
    const bool plain = !w->is.decoder && !w->is.format->import;
    const unsigned own = w->is.format->check ? XPL_PROFILE_WRITER_NO_XSPACE : 0,
                   place = w->replaces ? XPL_PROFILE_WRITER_REPLACE : 0;
    const struct xpl_profile_writer_options o = {.size = sizeof o,
                                                 .host = w->upload->host,
                                                 .flags =
                                                     XPL_PROFILE_WRITER_ALLOW_IDLE | own | place,
                                                 .suffix = plain ? NULL : w->is.suffix};
    XPL_TRY(xpl_profile_writer_begin(s, &o, &in, err));
    xpl_status_t st = plain ? XPL_OK : check_contents(in, w, err);
    if (st == XPL_OK) st = take_bytes(w, w->bytes, xpl_profile_writer_put, in, err);
    if (st == XPL_OK) st = xpl_source_verify(w->source, err);
    if (st == XPL_OK) return xpl_profile_writer_commit(in, ret, err);
    xpl_profile_writer_abort(in);
    return st;
}

static xpl_status_t store(struct xpl_session_writer *s, const struct xpl_upload *u,
                          const struct xpl_source *source, struct xpl_profile_writer_file *ret,
                          struct xpl_error *err) {
    struct whole w = {.upload = u, .source = source, .bytes = xpl_source_bytes(source)};
    char name[64];
    (void)snprintf(name, sizeof name, "host%s", u->suffix ? u->suffix : XPL_FORMAT_SUFFIX);
    XPL_TRY(xpl_file_recognize(xpl_str_from(name), w.bytes, NULL, &w.is, err));
    if (u->grows && (w.is.decoder || !w.is.format->length_end))
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "%s does not grow",
                         w.is.decoder ? w.is.decoder->label : w.is.format->label);
    // The file compared with the new file must be the one that it replaces.
    if (u->grows) XPL_TRY(xpl_session_writer_hold(s, err));
    xpl_status_t st = check_new(s, &w, err);
    if (st == XPL_OK) st = put(s, &w, ret, err);
    if (u->grows) xpl_session_writer_let_go(s);
    return st;
}

static xpl_status_t open_and_store(struct xpl_session_writer *s, const struct xpl_upload *u,
                                   struct xpl_profile_writer_file *ret, struct xpl_error *err) {
    // The upload's file is the daemon's own and complete; its disk may still fail to read it.
    const struct xpl_fingerprint as = {.size = u->bytes};
    struct xpl_source *source = NULL;
    const int fd = fcntl(u->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        XPL_RETURN_ERROR(err, XPL_UNAVAILABLE, "the upload cannot be read: %s", strerror(errno));
    XPL_TRY(xpl_source_open_copy(fd, "the upload", &as, &source, err));
    xpl_status_t st = store(s, u, source, ret, err);
    if (st != XPL_OK && xpl_source_is_truncated(source)) { // the error is not in the contents
        *err = (struct xpl_error){0};
        st = xpl_source_verify(source, err);
    }
    xpl_source_free(source);
    return st;
}

xpl_status_t xpl_import_store(struct xpl_session_writer *s, const struct xpl_upload *u,
                              struct xpl_profile_writer_file *ret, struct xpl_error *err) {
    struct xpl_error why = {0};
    const xpl_status_t st = open_and_store(s, u, ret, &why);
    if (st == XPL_OK) return XPL_OK;
    XPL_RETURN_ERROR(err, st, "%.*s: %s", XPL_STR_FMT(xpl_str_sub(u->host, 0, 100)), why.msg);
}
