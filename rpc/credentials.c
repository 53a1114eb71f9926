// SPDX-License-Identifier: Apache-2.0
#include "rpc/credentials.h"

#include <errno.h>
#include <fcntl.h>
#include <grpc/grpc_security.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "rpc/impl.h"
#include "rpc/pem.h"

enum { CERT, KEY, CLIENT_CA, FILES };
enum { MAX_PEM = 1 << 20 };

struct pem_file {
    char *path; // NULL: not used
    char *text; // NUL-terminated
    struct timespec mtime;
    off_t size;
};

// The configuration that one listener was last given.
struct fetcher {
    struct fetcher *next;
    struct xpl_rpc_tls *tls;
    unsigned seen; // loads
};

struct xpl_rpc_tls {
    pthread_mutex_t mu;
    struct pem_file files[FILES];
    struct fetcher *fetchers;
    atomic_uint loads;
};

// ---- files ----

xpl_status_t xpl_rpc_pem_read(const char *path, const char *what, char **ret,
                              struct xpl_error *err) {
    struct xpl_buf b;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "%s: %s", path, strerror(errno));
    xpl_buf_init(&b, MAX_PEM);
    ssize_t got = 1;
    while (got > 0 && xpl_buf_room(&b, 4096)) {
        got = read(fd, b.p + b.n, b.cap - b.n);
        if (got > 0)
            b.n += (size_t)got;
        else if (got < 0 && errno == EINTR)
            got = 1;
    }
    const int saved = errno;
    close(fd);
    xpl_buf_putc(&b, '\0');
    const bool failed = b.failed, pem = !failed && got == 0 && strstr((char *)b.p, what);
    if (pem)
        *ret = (char *)b.p;
    else
        xpl_buf_fini(&b);
    if (got < 0) XPL_RETURN_ERROR(err, XPL_UNAVAILABLE, "%s: %s", path, strerror(saved));
    if (failed)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED, "%s: larger than 1 MiB, or no memory", path);
    if (!pem)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "%s: not a PEM file with a '%s'", path, what);
    return XPL_OK;
}

void xpl_rpc_pem_free(char *text) {
    if (!text) return;
    explicit_bzero(text, strlen(text)); // it may be a key
    xpl_sys_free(text);
}

static const char *const WHAT[FILES] = {"BEGIN CERTIFICATE", "PRIVATE KEY", "BEGIN CERTIFICATE"};

// Reads all files.  They replace the ones in use together, or not at all.
static xpl_status_t load_files(struct xpl_rpc_tls *t, struct xpl_error *err) {
    char *text[FILES] = {0};
    struct stat st[FILES];
    xpl_status_t rc = XPL_OK;
    for (int i = 0; i < FILES && rc == XPL_OK; i++) {
        if (!t->files[i].path) continue;
        if (stat(t->files[i].path, &st[i]) != 0) st[i] = (struct stat){0};
        rc = xpl_rpc_pem_read(t->files[i].path, WHAT[i], &text[i], err);
    }
    for (int i = 0; i < FILES; i++) {
        struct pem_file *const f = &t->files[i];
        if (rc == XPL_OK && f->path) {
            char *const old = f->text;
            f->text = text[i], f->mtime = st[i].st_mtim, f->size = st[i].st_size;
            text[i] = old;
        }
        xpl_rpc_pem_free(text[i]);
    }
    if (rc == XPL_OK) atomic_fetch_add(&t->loads, 1);
    return rc;
}

static bool files_changed(const struct xpl_rpc_tls *t) {
    for (int i = 0; i < FILES; i++) {
        const struct pem_file *const f = &t->files[i];
        struct stat st;
        if (!f->path || stat(f->path, &st) != 0) continue;
        if (st.st_size != f->size || st.st_mtim.tv_sec != f->mtime.tv_sec ||
            st.st_mtim.tv_nsec != f->mtime.tv_nsec)
            return true;
    }
    return false;
}

// ---- called by gRPC at the start and before each handshake ----

static grpc_ssl_server_certificate_config *make_config(const struct xpl_rpc_tls *t) {
    const grpc_ssl_pem_key_cert_pair pair = {t->files[KEY].text, t->files[CERT].text};
    // gRPC 1.51 aborts without roots, even when no client needs a certificate.
    const char *const roots = t->files[CLIENT_CA].text ? t->files[CLIENT_CA].text : pair.cert_chain;
    return grpc_ssl_server_certificate_config_create(roots, &pair, 1);
}

static grpc_ssl_certificate_config_reload_status
fetch_config(void *arg, grpc_ssl_server_certificate_config **ret) {
    struct fetcher *const f = arg;
    struct xpl_rpc_tls *const t = f->tls;
    grpc_ssl_certificate_config_reload_status st = GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    pthread_mutex_lock(&t->mu);
    if (files_changed(t))
        (void)load_files(t, NULL); // half-written or unreadable: the old pair stays in use
    const unsigned loads = atomic_load(&t->loads);
    if (f->seen != loads) {
        *ret = make_config(t);
        f->seen = loads;
        st = GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
    }
    pthread_mutex_unlock(&t->mu);
    return st;
}

grpc_server_credentials *xpl_rpc_tls_make(struct xpl_rpc_tls *t) {
    struct fetcher *const f = xpl_sys_alloc(sizeof *f);
    if (!f) return NULL;
    pthread_mutex_lock(&t->mu);
    *f = (struct fetcher){.next = t->fetchers, .tls = t};
    t->fetchers = f;
    pthread_mutex_unlock(&t->mu);
    const grpc_ssl_client_certificate_request_type ask =
        t->files[CLIENT_CA].path ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                                 : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE;
    return grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(ask, fetch_config, f));
}

// ---- life ----

static bool copy_path(struct pem_file *f, const char *path) {
    if (!path) return true;
    const size_t n = strlen(path) + 1;
    f->path = xpl_sys_alloc(n);
    if (f->path) memcpy(f->path, path, n);
    return f->path != NULL;
}

xpl_status_t xpl_rpc_tls_new(const struct xpl_rpc_tls_options *opt, struct xpl_rpc_tls **ret,
                             struct xpl_error *err) {
    if (opt->size != sizeof *opt)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "TLS: options of another version");
    if (!opt->cert_path || !opt->key_path)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "TLS needs a certificate and its key");
    struct xpl_rpc_tls *const t = xpl_sys_alloc(sizeof *t);
    if (!t) XPL_RETURN_OOM(err, "TLS");
    *t = (struct xpl_rpc_tls){0};
    pthread_mutex_init(&t->mu, NULL);
    xpl_status_t rc = XPL_OK;
    if (!copy_path(&t->files[CERT], opt->cert_path) || !copy_path(&t->files[KEY], opt->key_path) ||
        !copy_path(&t->files[CLIENT_CA], opt->client_ca_path))
        rc = xpl_error_set(err, XPL_RESOURCE_EXHAUSTED, __FILE__, __LINE__, UINT64_MAX,
                           "TLS: out of memory");
    if (rc == XPL_OK) rc = load_files(t, err);
    if (rc != XPL_OK) {
        xpl_rpc_tls_free(t);
        return rc;
    }
    *ret = t;
    return XPL_OK;
}

void xpl_rpc_tls_free(struct xpl_rpc_tls *t) {
    if (!t) return;
    for (int i = 0; i < FILES; i++) {
        xpl_sys_free(t->files[i].path);
        xpl_rpc_pem_free(t->files[i].text);
    }
    for (struct fetcher *f = t->fetchers, *next; f; f = next) {
        next = f->next;
        xpl_sys_free(f);
    }
    pthread_mutex_destroy(&t->mu);
    xpl_sys_free(t);
}

xpl_status_t xpl_rpc_tls_reload(struct xpl_rpc_tls *t, struct xpl_error *err) {
    pthread_mutex_lock(&t->mu);
    const xpl_status_t rc = load_files(t, err);
    pthread_mutex_unlock(&t->mu);
    return rc;
}

unsigned xpl_rpc_tls_get_loads(const struct xpl_rpc_tls *t) {
    return atomic_load(&t->loads);
}
