// SPDX-License-Identifier: Apache-2.0
// SessionService's ImportSession: what clients write to LOGDIR.
//
// An upload is kept in a separate file below incoming/, named after the client's description, so
// that a later call continues where an interrupted one ended. When all files of a call are
// complete, they go through capture/profile_writer.h into the session.
#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/crc32.h"
#include "base/log.h"
#include "capture/profile_writer.h"
#include "proto/xplaned/v1/session.pb-c.h"
#include "rpc/message.h"
#include "server/audit.h"
#include "server/capture_jobs/captures.h"
#include "server/engine/opened.h"
#include "server/engine/pool.h"
#include "server/grpc/import.h"
#include "server/grpc/import_store.h"
#include "server/grpc/services.h"
#include "storage/hash.h"
#include "storage/sessions/layout.h"
#include "storage/sessions/uploads.h"

enum {
    THREADS = 4,
    MAX_QUEUED = 256,
    MAX_FILES = 256,    // of one call
    MAX_IMPORTS = 32,   // calls at once; each holds one descriptor
    KEEP_S = 86400,     // parts that no call goes on with
    PIECE = 1 << 18,    // when a part is read again
    PROGRESS = 1 << 16, // bytes; less does not count as progress
};
#define MAX_FILE_BYTES ((uint64_t)16 << 30)

struct part { // one file of a call
    xpl_str_t host;
    const char *suffix; // of the formats' table; NULL: what its bytes look like
    uint64_t bytes, got;
    uint32_t crc, crc_now;
    int fd; // while it is written or read
    bool used, grows;
    uint64_t key; // of its file below incoming/, which is in use
};

enum import_state {
    IMPORT_NEW,       // nothing came yet
    IMPORT_RECEIVING, // the session is named
    IMPORT_ENDED,     // the call is finished, well or not
};

struct import {                 // a call's user data; belongs to the job that works on its message
    struct import *next, *prev; // of the service's list, under its mutex
    struct xpl_svc_import *svc;
    struct xpl_rpc_call *call;
    atomic_bool working;           // on a message, or waiting for a thread
    uint64_t began_ns;             // with that
    atomic_uint_fast64_t moved_ns; // when it last came on; our own work does not count
    uint64_t bytes_since;          // then
    xpl_bytes_t message;           // the one being handled; NULL ptr: the client ended its side
    struct xpl_arena arena;
    enum import_state state;
    xpl_str_t session;
    struct part *parts[MAX_FILES];
    size_t n_parts;
};

static xpl_status_t os_fail(const char *what, struct xpl_error *err) {
    const bool full = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
    XPL_RETURN_ERROR(err, full ? XPL_RESOURCE_EXHAUSTED : XPL_UNAVAILABLE, "%s: %s%s", what,
                     strerror(errno),
                     full ? "; free some space in the daemon's cache directory" : "");
}

// ---- parts ----

static uint64_t key_of(const struct import *m, const struct part *p) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(1 << 16);
    xpl_buf_printf(&b, "%zu:", m->session.len);
    xpl_buf_str(&b, m->session);
    xpl_buf_printf(&b, "/%zu:", p->host.len);
    xpl_buf_str(&b, p->host);
    xpl_buf_printf(&b, "/%llu/%08x%s", (unsigned long long)p->bytes, p->crc,
                   p->suffix ? p->suffix : "");
    return xpl_digest64((xpl_bytes_t){b.p, b.n}, 0);
}

// Goes on with what an earlier call left of the same file.  It is read again, because its checksum
// is not kept anywhere.
static xpl_status_t read_again(const struct import *m, struct part *p, struct xpl_error *err) {
    uint8_t *piece = xpl_sys_alloc(PIECE);
    if (!piece) XPL_RETURN_OOM(err, "import");
    ssize_t n = 1;
    while (!xpl_rpc_call_cancelled(m->call) &&
           (n = pread(p->fd, piece, PIECE, (off_t)p->got)) > 0) {
        p->crc_now = xpl_crc32(p->crc_now, (xpl_bytes_t){piece, (size_t)n});
        p->got += (uint64_t)n;
    }
    xpl_sys_free(piece);
    if (n < 0) return os_fail("import", err);
    if (n > 0) XPL_RETURN_ERROR(err, XPL_CANCELLED, "cancelled");
    if (p->got <= p->bytes) return XPL_OK;
    p->got = p->crc_now = 0; // a wrong checksum
    return ftruncate(p->fd, 0) == 0 ? XPL_OK : os_fail("import", err);
}

static void close_part(struct part *p) {
    if (p->fd >= 0) (void)close(p->fd);
    p->fd = -1;
}

static xpl_status_t open_part(struct import *m, struct part *p, struct xpl_error *err) {
    p->key = key_of(m, p);
    XPL_TRY(xpl_upload_open(m->svc->uploads, p->key, &p->fd, err));
    p->used = true;
    XPL_TRY(read_again(m, p, err));
    if (p->got == p->bytes) close_part(p);
    return XPL_OK;
}

// ---- imports that do not come on ----

static void note_progress(struct import *m, uint64_t bytes) {
    m->bytes_since += bytes;
    if (m->bytes_since < PROGRESS) return;
    m->bytes_since = 0;
    atomic_store(&m->moved_ns, m->began_ns);
}

static void list_import(struct import *m) {
    struct xpl_svc_import *const s = m->svc;
    pthread_mutex_lock(&s->mu);
    m->next = s->imports;
    if (m->next) m->next->prev = m;
    s->imports = m;
    pthread_mutex_unlock(&s->mu);
}

static void unlist_import(struct import *m) {
    struct xpl_svc_import *const s = m->svc;
    pthread_mutex_lock(&s->mu);
    *(m->prev ? &m->prev->next : &s->imports) = m->next;
    if (m->next) m->next->prev = m->prev;
    pthread_mutex_unlock(&s->mu);
}

void xpl_svc_import_tick(struct xpl_svc_import *s) {
    const uint64_t now = xpl_clock_ns(), idle_ns = s->o.idle_ms * UINT64_C(1000000);
    pthread_mutex_lock(&s->mu);
    // A call on the list lives: who releases it takes it off before.
    for (struct import *m = s->imports; m; m = m->next)
        if (!atomic_load(&m->working) &&
            xpl_clock_between(atomic_load(&m->moved_ns), now) > idle_ns &&
            !xpl_rpc_call_finished(m->call))
            xpl_rpc_finish_status(m->call, XPL_DEADLINE_EXCEEDED,
                                  "the import did not come on (--import-idle): import again, which "
                                  "goes on where this ended");
    pthread_mutex_unlock(&s->mu);
}

// ---- messages of a call; on a thread of the pool ----

// One file may take the place of another, as long as nothing has to be given up then.
static xpl_status_t check_growing(const struct import *m,
                                  const Xplaned__V1__ImportSessionRequest__File *f,
                                  struct xpl_error *err) {
    const bool grown = m->n_parts && m->parts[0]->grows;
    if ((f->grows && m->n_parts) || grown)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                         "a growing file must be the only file of an import");
    if (f->grows && m->svc->o.remote)
        XPL_RETURN_ERROR(err, XPL_UNIMPLEMENTED, "files of a bucket do not grow");
    return XPL_OK;
}

static xpl_status_t begin_file(struct import *m, const Xplaned__V1__ImportSessionRequest__File *f,
                               struct xpl_error *err) {
    if (m->n_parts && m->parts[m->n_parts - 1]->got != m->parts[m->n_parts - 1]->bytes)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "the previous file is incomplete");
    if (m->n_parts == MAX_FILES)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED, "at most %d files in one import",
                         (int)MAX_FILES);
    if (f->bytes > MAX_FILE_BYTES)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED, "%.100s: longer than 16 GiB", f->host);
    struct part *p = xpl_arena_zalloc(&m->arena, sizeof *p);
    if (!p) XPL_RETURN_OOM(err, "import");
    XPL_TRY(xpl_import_name(f->host, f->suffix, &p->host, &p->suffix, err));
    if (!xpl_arena_str(&m->arena, p->host, &p->host)) XPL_RETURN_OOM(err, "import");
    XPL_TRY(check_growing(m, f, err));
    p->grows = f->grows;
    p->bytes = f->bytes;
    p->crc = f->crc32;
    p->fd = -1;
    m->parts[m->n_parts++] = p;
    XPL_TRY(open_part(m, p, err));
    Xplaned__V1__ImportSessionResponse r;
    xplaned__v1__import_session_response__init(&r);
    r.offset = p->got;
    return xpl_rpc_send_message(m->call, &r.base);
}

static xpl_status_t add_data(struct import *m, xpl_bytes_t data, struct xpl_error *err) {
    struct part *const p = m->n_parts ? m->parts[m->n_parts - 1] : NULL;
    if (!p)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                         "data without a file: the first message names one");
    if (data.len > p->bytes - p->got)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "%.*s: more bytes than were announced",
                         XPL_STR_FMT(xpl_str_sub(p->host, 0, 100)));
    if (!data.len) return XPL_OK;
    XPL_TRY(xpl_upload_grow(m->svc->uploads, p->key, p->got + data.len, err));
    p->crc_now = xpl_crc32(p->crc_now, data);
    note_progress(m, data.len);
    while (data.len) {
        const ssize_t n = pwrite(p->fd, data.ptr, data.len, (off_t)p->got);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return os_fail("import: the daemon's cache directory", err);
        data.ptr += n;
        data.len -= (size_t)n;
        p->got += (uint64_t)n;
    }
    if (p->got == p->bytes) close_part(p);
    return XPL_OK;
}

// Lets others have the parts' files. Before the call is finished: a client that reads its status
// may send the next import at once, and that may need the room, or the same file.
static void release_parts(struct import *m) {
    for (size_t i = 0; i < m->n_parts; i++) {
        struct part *const p = m->parts[i];
        close_part(p);
        if (p->used) xpl_upload_release(m->svc->uploads, p->key);
        p->used = false;
    }
}

static void set_state(struct import *m, enum import_state to) {
    assert(to > m->state && m->state != IMPORT_ENDED);
    m->state = to;
}

static xpl_status_t begin_session(struct import *m, const Xplaned__V1__ImportSessionRequest *q,
                                  struct xpl_error *err) {
    if (m->state == IMPORT_RECEIVING) {
        if (q->session[0])
            XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                             "the session is named in the first message only");
        return XPL_OK;
    }
    set_state(m, IMPORT_RECEIVING);
    if (q->session[0])
        XPL_TRY(xpl_session_writer_check_name("a session", xpl_str_from(q->session), err));
    if (!xpl_arena_str(&m->arena, xpl_str_from(q->session), &m->session))
        XPL_RETURN_OOM(err, "import");
    return XPL_OK;
}

static xpl_status_t handle_message(struct import *m, struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of((size_t)16 << 20);
    ProtobufCMessage *msg = NULL;
    XPL_TRY(xpl_rpc_message_unpack(&xplaned__v1__import_session_request__descriptor, m->message,
                                   &arena, &msg, err));
    const Xplaned__V1__ImportSessionRequest *const q =
        (const Xplaned__V1__ImportSessionRequest *)msg;
    XPL_TRY(begin_session(m, q, err));
    if (q->file && q->data.len)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                         "data beside `file`: wait for the offset to go on from");
    if (q->file) return begin_file(m, q->file, err);
    return add_data(m, (xpl_bytes_t){q->data.data, q->data.len}, err);
}

// ---- the end ----

static xpl_status_t check_whole(struct import *m, struct xpl_error *err) {
    if (!m->n_parts) XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "no file to import");
    for (size_t i = 0; i < m->n_parts; i++) {
        struct part *const p = m->parts[i];
        const xpl_str_t host = xpl_str_sub(p->host, 0, 100);
        if (p->got != p->bytes)
            XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "%.*s: %llu of %llu bytes came",
                             XPL_STR_FMT(host), (unsigned long long)p->got,
                             (unsigned long long)p->bytes);
        if (p->crc_now == p->crc) continue;
        xpl_upload_remove(m->svc->uploads, p->key);
        XPL_RETURN_ERROR(
            err, XPL_DATA_LOSS,
            "%.*s: the checksum is wrong (it changed while it was read, or on the way); "
            "import it again",
            XPL_STR_FMT(host));
    }
    return XPL_OK;
}

static xpl_status_t copy_part(const struct import *m, struct xpl_session_writer *s,
                              const struct part *p, struct xpl_profile_writer_file *ret,
                              struct xpl_error *err) {
    struct xpl_exec serial = xpl_exec_serial();
    struct xpl_guarded_exec exec;
    xpl_guarded_exec_init(&exec, &serial, (struct xpl_work_owner){xpl_svc_is_cancelled, m->call},
                          NULL);
    const struct xpl_upload u = {.host = p->host,
                                 .suffix = p->suffix,
                                 .fd = p->fd,
                                 .bytes = p->bytes,
                                 .grows = p->grows,
                                 .max_bytes = m->svc->o.max_bytes,
                                 .decompressing = &m->svc->decompressing,
                                 .exec = &exec.exec};
    return xpl_import_store(s, &u, ret, err);
}

static xpl_status_t store_part(struct import *m, struct xpl_session_writer *s, struct part *p,
                               struct xpl_profile_writer_file *ret, struct xpl_error *err) {
    struct stat sb;
    XPL_TRY(xpl_upload_open_again(m->svc->uploads, p->key, &p->fd, err));
    xpl_status_t st = XPL_OK;
    if (fstat(p->fd, &sb) != 0 || (uint64_t)sb.st_size != p->bytes)
        st = xpl_error_set(err, XPL_ABORTED, __FILE__, __LINE__, UINT64_MAX,
                           "%.*s: changed by another daemon; import it again",
                           XPL_STR_FMT(xpl_str_sub(p->host, 0, 100)));
    else
        st = copy_part(m, s, p, ret, err);
    close_part(p);
    return st;
}

// Stores all parts, or none.
static xpl_status_t store_all(struct import *m, struct xpl_session_writer *s,
                              struct xpl_profile_writer_file *files, struct xpl_error *err) {
    xpl_status_t st = XPL_OK;
    size_t n = 0;
    while (st == XPL_OK && n < m->n_parts) {
        st = store_part(m, s, m->parts[n], &files[n], err);
        n += st == XPL_OK;
    }
    while (st != XPL_OK && n > 0) {
        n--;
        xpl_session_writer_remove(s, files[n].name, files[n].suffix);
    }
    return st;
}

static void reply(struct import *m, const char *session,
                  const struct xpl_profile_writer_file *files) {
    char *names[MAX_FILES];
    Xplaned__V1__ImportSessionResponse r;
    Xplaned__V1__ImportedSession done;
    xplaned__v1__import_session_response__init(&r);
    xplaned__v1__imported_session__init(&done);
    for (size_t i = 0; i < m->n_parts; i++) {
        names[i] = (char *)(uintptr_t)files[i].name;
        done.bytes += m->parts[i]->bytes;
    }
    done.session = (char *)(uintptr_t)session;
    done.hosts = names;
    done.n_hosts = m->n_parts;
    r.imported = &done;
    (void)xpl_rpc_send_message(m->call, &r.base);
    xpl_rpc_finish_ok(m->call);
}

// A file that grows may come every second: its line would be most of the log.
static void audit(const struct import *m, const char *session, xpl_status_t code,
                  const struct xpl_error *err) {
    if (code == XPL_OK && m->parts[0]->grows) return;
    const struct xpl_audit_client client = xpl_audit_client_of(m->call);
    struct xpl_log_line l;
    xpl_audit_begin(&l, "session imported", &client, code, err);
    if (session)
        xpl_log_z(&l, "session", session);
    else
        xpl_log_str(&l, "session", m->session);
    xpl_log_int(&l, "hosts", (int64_t)m->n_parts);
    xpl_log_end(&l);
}

static struct xpl_capture_jobs_listed stored_in(const struct import *m) {
    struct xpl_capture_jobs_listed what = {.n_hosts = m->n_parts};
    for (size_t i = 0; i < m->n_parts; i++)
        what.bytes += m->parts[i]->bytes;
    return what;
}

struct directory { // a session's, as it is noted for the next daemon
    struct xpl_capture_jobs *captures;
    uint64_t note;
};

static void note_making(void *arg, const char *path) {
    struct directory *const d = arg;
    xpl_capture_jobs_forget_directory(d->captures, d->note); // another had that name
    d->note = xpl_capture_jobs_note_directory(d->captures, path);
}

static xpl_status_t finish(struct import *m, struct xpl_error *err) {
    XPL_TRY(check_whole(m, err));
    struct xpl_session_writer *s = NULL;
    struct directory directory = {.captures = m->svc->captures};
    const struct xpl_session_writer_options o = {.size = sizeof o,
                                                 .logdir = m->svc->o.logdir,
                                                 .name = m->session,
                                                 .unique = !m->session.len,
                                                 .making = note_making,
                                                 .making_arg = &directory,
                                                 .remote = m->svc->o.remote};
    struct xpl_profile_writer_file *files = xpl_arena_array(&m->arena, m->n_parts, sizeof *files);
    if (!files) XPL_RETURN_OOM(err, "import");
    xpl_status_t st = xpl_session_writer_open(&o, &s, err);
    if (st != XPL_OK) {
        xpl_capture_jobs_forget_directory(m->svc->captures, directory.note);
        return st;
    }
    if (!directory.note) note_making(&directory, xpl_session_writer_get_path(s)); // it was there
    st = store_all(m, s, files, err);
    // With no space, or no permission, a later try needs not send them again.
    for (size_t i = 0; st == XPL_OK || st == XPL_DATA_LOSS || st == XPL_ALREADY_EXISTS; i++) {
        if (i == m->n_parts) break;
        xpl_upload_remove(m->svc->uploads, m->parts[i]->key);
    }
    if (st == XPL_OK) {
        struct xpl_session_path path;
        const char *const name = xpl_session_writer_get_name(s);
        xpl_capture_jobs_await(m->svc->captures, xpl_session_path(xpl_str_from(name), &path),
                               stored_in(m));
        audit(m, name, XPL_OK, NULL);
        release_parts(m);
        reply(m, name, files);
    }
    xpl_session_writer_close(s);
    xpl_capture_jobs_forget_directory(m->svc->captures, directory.note);
    xpl_uploads_sweep(m->svc->uploads, KEEP_S);
    return st;
}

// ---- the call ----

static void import_release(void *user) {
    struct import *m = user;
    unlist_import(m);
    release_parts(m);
    atomic_fetch_sub(&m->svc->open, 1);
    xpl_arena_fini(&m->arena);
    xpl_sys_free(m);
}

// Handles m->message, or the end of the client's side.
static void run_message(void *arg) {
    struct import *const m = arg;
    struct xpl_rpc_call *const c = m->call;
    struct xpl_error err = {0};
    const bool end = !m->message.ptr;
    if (!xpl_rpc_call_cancelled(c) && m->state != IMPORT_ENDED) {
        const xpl_status_t st = end ? finish(m, &err) : handle_message(m, &err);
        if (end || st != XPL_OK) set_state(m, IMPORT_ENDED);
        if (st != XPL_OK) {
            if (!err.code) (void)xpl_error_set(&err, st, __FILE__, __LINE__, UINT64_MAX, "import");
            audit(m, NULL, st, &err);
            release_parts(m);
            xpl_rpc_finish_error(c, &err);
        }
    }
    // From here on the next message may come: `m` is another's.
    if (!end) {
        atomic_fetch_add(&m->moved_ns, xpl_clock_ns() - m->began_ns);
        atomic_store(&m->working, false);
        xpl_rpc_call_read(c);
    }
    xpl_rpc_call_unref(c);
}

static struct import *import_new(struct xpl_svc_import *s, struct xpl_rpc_call *c) {
    if (atomic_fetch_add(&s->open, 1) >= MAX_IMPORTS) {
        atomic_fetch_sub(&s->open, 1);
        return NULL;
    }
    struct import *m = xpl_sys_alloc(sizeof *m);
    if (!m) {
        atomic_fetch_sub(&s->open, 1);
        return NULL;
    }
    memset(m, 0, sizeof *m);
    m->svc = s;
    m->call = c;
    atomic_store(&m->moved_ns, xpl_clock_ns());
    xpl_arena_init(&m->arena, (size_t)8 << 20);
    xpl_rpc_call_set_user(c, m, import_release);
    list_import(m);
    return m;
}

static void on_import(struct xpl_rpc_call *c, xpl_bytes_t message, void *service) {
    struct xpl_svc_import *const s = service;
    struct import *m = xpl_rpc_call_get_user(c);
    if (!m) m = import_new(s, c);
    if (m) {
        m->message = message;
        m->began_ns = xpl_clock_ns();
        atomic_store(&m->working, true);
        xpl_rpc_call_ref(c);
        if (xpl_pool_submit(s->pool, run_message, m)) return;
        xpl_rpc_call_unref(c);
    }
    xpl_rpc_finish_status(c, XPL_RESOURCE_EXHAUSTED, "too many imports at once; try again soon");
}

// ---- life ----

struct xpl_svc_import *xpl_svc_import_new(struct xpl_capture_jobs *captures,
                                          struct xpl_catalogue *catalogue,
                                          const struct xpl_svc_import_options *o) {
    struct xpl_svc_import *s = xpl_sys_alloc(sizeof *s);
    if (!s) return NULL;
    memset(s, 0, sizeof *s);
    s->captures = captures;
    s->catalogue = catalogue;
    s->o = *o;
    pthread_mutex_init(&s->decompressing, NULL);
    pthread_mutex_init(&s->mu, NULL);
    s->uploads = xpl_uploads_new(o->dir, o->limit_bytes);
    if (s->uploads) xpl_uploads_sweep(s->uploads, KEEP_S);
    if (s->uploads && (s->pool = xpl_pool_new(THREADS, MAX_QUEUED)) != NULL) return s;
    xpl_svc_import_free(s);
    return NULL;
}

void xpl_svc_import_free(struct xpl_svc_import *s) {
    if (!s) return;
    xpl_pool_free(s->pool);
    pthread_mutex_destroy(&s->decompressing);
    xpl_uploads_free(s->uploads);
    pthread_mutex_destroy(&s->mu);
    xpl_sys_free(s);
}

void xpl_svc_import_methods(struct xpl_svc_import *s,
                            struct xpl_rpc_method ret[XPL_SVC_IMPORT_METHODS]) {
    ret[0] =
        (struct xpl_rpc_method){.path = "/xplaned.v1.SessionService/ImportSession",
                                .flags = XPL_RPC_LATE_BODY | XPL_RPC_CLIENT_STREAM | XPL_RPC_PACED,
                                .on_message = on_import,
                                .service = s};
    ret[1] = (struct xpl_rpc_method){.path = "/xplaned.v1.SessionService/DeleteSession",
                                     .on_request = xpl_svc_delete_session,
                                     .service = s};
}
