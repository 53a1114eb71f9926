// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/crc32.h"
#include "capture/profile_writer.h"
#include "client/impl.h"
#include "proto/xplaned/v1/session.pb-c.h"
#include "rpc/message.h"

enum { CHUNK = 1 << 20, FIELD_DATA = 3, PAUSE_MS = 500, MAX_SUFFIX = 16 };

typedef Xplaned__V1__ImportSessionRequest request_msg;
typedef Xplaned__V1__ImportSessionResponse response_msg;

struct file {
    int fd;
    uint64_t bytes;
    uint32_t crc;
    const char *host;
    const char *suffix; // of a compressed profile, or ""
    char name[256];
};

struct upload {
    xpl_import_request r;
    struct file *files;
    uint8_t *chunk;
    uint64_t sent, all;
    struct xpl_rpc_stream *stream;
    char *session;
    size_t session_size;
};

// ---- files ----

// The file's name without its directory and the suffix of profiles or ".pb"; and the suffix of a
// compressed profile, which the daemon refuses with an explanation where it is of another format.
// The daemon finds the suffixes of other formats itself.
static void name_file(struct file *f, const char *path) {
    const char *const slash = strrchr(path, '/');
    xpl_str_t s = xpl_str_from(slash ? slash + 1 : path);
    const xpl_str_t suffix = XPL_STR(XPL_PROFILE_WRITER_SUFFIX);
    const size_t dot = xpl_str_find(s, XPL_STR(XPL_PROFILE_WRITER_SUFFIX "."), 0);
    const size_t more = dot == SIZE_MAX ? 0 : s.len - dot - suffix.len;
    f->suffix = "";
    if (more > 1 && more < MAX_SUFFIX) {
        f->suffix = s.ptr + dot;
        s.len = dot;
    } else if (xpl_str_ends(s, suffix)) {
        s.len -= suffix.len;
    } else if (xpl_str_ends(s, XPL_STR(".pb"))) {
        s.len -= 3;
    }
    (void)snprintf(f->name, sizeof f->name, "%.*s", XPL_STR_FMT(s));
    f->host = f->name;
}

static xpl_status_t fail_file(const char *path, struct xpl_error *err) {
    const xpl_status_t code = errno == ENOENT   ? XPL_NOT_FOUND
                              : errno == EACCES ? XPL_PERMISSION_DENIED
                                                : XPL_UNAVAILABLE;
    XPL_RETURN_ERROR(err, code, "%.160s: %s", path, strerror(errno));
}

// Opens the file and computes its size and checksum.
static xpl_status_t open_file(struct upload *u, size_t i, struct xpl_error *err) {
    const xpl_import_file *const from = &u->r.files[i];
    struct file *const f = &u->files[i];
    struct stat st;
    f->fd = open(from->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a pipe is refused below
    if (f->fd < 0 || fstat(f->fd, &st) != 0) return fail_file(from->path, err);
    if (!S_ISREG(st.st_mode))
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "%.160s: not a regular file", from->path);
    name_file(f, from->path);
    if (from->host) f->host = from->host;
    ssize_t n;
    while ((n = pread(f->fd, u->chunk, CHUNK, (off_t)f->bytes)) > 0) {
        f->crc = xpl_crc32(f->crc, (xpl_bytes_t){u->chunk, (size_t)n});
        f->bytes += (uint64_t)n;
    }
    if (n < 0) return fail_file(from->path, err);
    u->all += f->bytes;
    return XPL_OK;
}

// ---- messages ----

// False: the call has ended, and the next receive returns the reason.
static bool send_message(struct upload *u, const request_msg *m) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of((size_t)1 << 20);
    xpl_rpc_message_put(&b, &m->base);
    return !b.failed && xpl_rpc_stream_send(u->stream, (xpl_bytes_t){b.p, b.n});
}

static bool send_file(struct upload *u, size_t i) {
    request_msg m;
    Xplaned__V1__ImportSessionRequest__File f;
    xplaned__v1__import_session_request__init(&m);
    xplaned__v1__import_session_request__file__init(&f);
    f.host = (char *)(uintptr_t)u->files[i].host;
    f.bytes = u->files[i].bytes;
    f.crc32 = u->files[i].crc;
    f.suffix = (char *)(uintptr_t)u->files[i].suffix;
    f.grows = u->r.grows != 0;
    m.file = &f;
    if (i == 0 && u->r.session) m.session = (char *)(uintptr_t)u->r.session;
    return send_message(u, &m);
}

static bool send_data(struct upload *u, struct xpl_buf *b, xpl_bytes_t data) {
    b->n = 0;
    xpl_rpc_put_len(b, FIELD_DATA, data.len);
    xpl_buf_put(b, data.ptr, data.len);
    return !b->failed && xpl_rpc_stream_send(u->stream, (xpl_bytes_t){b->p, b->n});
}

// The next message of the daemon.
static xpl_status_t receive(struct upload *u, struct xpl_arena *arena, const response_msg **ret,
                            struct xpl_error *err) {
    XPL_AUTO(xpl_rpc_reply_fini) struct xpl_rpc_reply msg = {0};
    ProtobufCMessage *m = NULL;
    bool more = false;
    XPL_TRY(xpl_rpc_stream_next(u->stream, &msg, &more, err));
    if (!more) XPL_RETURN_ERROR(err, XPL_INTERNAL, "the daemon ended the import without an answer");
    XPL_TRY(xpl_rpc_message_unpack(&xplaned__v1__import_session_response__descriptor, msg.bytes,
                                   arena, &m, err));
    *ret = (const response_msg *)m;
    return XPL_OK;
}

// ---- the upload ----

static xpl_status_t send_from(struct upload *u, struct file *f, uint64_t at,
                              struct xpl_error *err) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(CHUNK + 64);
    xpl_status_t st = XPL_OK;
    u->sent += at;
    while (st == XPL_OK && at < f->bytes) {
        const uint64_t left = f->bytes - at;
        const ssize_t n = pread(f->fd, u->chunk, left < CHUNK ? (size_t)left : CHUNK, (off_t)at);
        if (n <= 0)
            st = xpl_error_set(err, XPL_ABORTED, __FILE__, __LINE__, UINT64_MAX,
                               "%.100s: the file became shorter while it was read", f->name);
        else if (!send_data(u, &b, (xpl_bytes_t){u->chunk, (size_t)n}))
            break; // the next receive says why
        else {
            at += (uint64_t)n;
            u->sent += (uint64_t)n;
            if (u->r.progress) u->r.progress(u->r.arg, u->sent, u->all);
        }
    }
    return st;
}

static xpl_status_t attempt(struct upload *u, struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of((size_t)16 << 20);
    const response_msg *m = NULL;
    u->sent = 0;
    for (size_t i = 0; i < u->r.n_files; i++) {
        if (!send_file(u, i)) break;
        XPL_TRY(receive(u, &arena, &m, err));
        if (m->offset > u->files[i].bytes)
            XPL_RETURN_ERROR(err, XPL_INTERNAL, "the daemon has more of the file than there is");
        XPL_TRY(send_from(u, &u->files[i], m->offset, err));
    }
    xpl_rpc_stream_send_end(u->stream);
    XPL_TRY(receive(u, &arena, &m, err));
    if (!m->imported)
        XPL_RETURN_ERROR(err, XPL_INTERNAL, "the daemon ended the import without a session");
    if (u->session_size) (void)snprintf(u->session, u->session_size, "%s", m->imported->session);
    return XPL_OK;
}

static xpl_status_t upload(xpl_client *c, struct upload *u, struct xpl_error *err) {
    xpl_status_t st = XPL_OK;
    for (unsigned tries = 0;; tries++) {
        *err = (struct xpl_error){0};
        const struct xpl_rpc_call_options o = {.size = sizeof o};
        st = xpl_rpc_duplex_open(c->channel, "/xplaned.v1.SessionService/ImportSession", &o,
                                 &u->stream, err);
        if (st == XPL_OK) st = attempt(u, err);
        xpl_rpc_stream_close(u->stream);
        u->stream = NULL;
        // ABORTED: the daemon may not have noticed yet that the last connection is gone.
        if ((st != XPL_UNAVAILABLE && st != XPL_ABORTED) || tries == u->r.retries) return st;
        const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
        (void)nanosleep(&pause, NULL);
    }
}

static xpl_status_t import(xpl_client *c, struct upload *u, struct xpl_error *err) {
    if (!u->r.n_files) XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "no file to import");
    u->chunk = xpl_sys_alloc(CHUNK);
    u->files = xpl_sys_alloc(u->r.n_files * sizeof *u->files);
    if (!u->chunk || !u->files) {
        u->r.n_files = 0;
        XPL_RETURN_OOM(err, "import");
    }
    for (size_t i = 0; i < u->r.n_files; i++)
        u->files[i] = (struct file){.fd = -1};
    for (size_t i = 0; i < u->r.n_files; i++)
        XPL_TRY(open_file(u, i, err));
    return upload(c, u, err);
}

int xpl_client_import(xpl_client *c, const xpl_import_request *given, char *session, size_t size,
                      xpl_result *result) {
    struct upload u = {.session = session, .session_size = session ? size : 0};
    struct xpl_error err = {0};
    memcpy(&u.r, given, given->size < sizeof u.r ? given->size : sizeof u.r);
    const xpl_status_t st = import(c, &u, &err);
    xpl_client_explain(c, &err);
    for (size_t i = 0; i < u.r.n_files && u.files; i++)
        if (u.files[i].fd >= 0) (void)close(u.files[i].fd);
    xpl_sys_free(u.files);
    xpl_sys_free(u.chunk);
    return xpl_client_result(result, st, err.code ? &err : NULL, 0);
}

int xpl_client_delete_session(xpl_client *c, const char *session, xpl_result *result) {
    Xplaned__V1__DeleteSessionRequest q;
    struct xpl_rpc_reply reply = {0};
    xplaned__v1__delete_session_request__init(&q);
    q.session = (char *)(uintptr_t)session;
    const xpl_status_t st =
        xpl_client_call(c, "/xplaned.v1.SessionService/DeleteSession", &q.base, &reply, result);
    xpl_rpc_reply_fini(&reply);
    return (int)st;
}
