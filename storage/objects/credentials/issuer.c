// SPDX-License-Identifier: Apache-2.0
#include "storage/objects/credentials/issuer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/objects/credentials/answers.h"
#include "storage/objects/location.h"

const char *xpl_issuer_variable(const char *name) {
    const char *const value = getenv(name);
    return value && value[0] ? value : NULL;
}

bool xpl_issuer_copy_variable(const char *name, char *ret, size_t size) {
    const char *const value = xpl_issuer_variable(name);
    return value && xpl_answer_copy(xpl_str_from(value), ret, size);
}

xpl_status_t xpl_issuer_text_init(struct xpl_buf *b, struct xpl_error *err) {
    xpl_buf_init(b, XPL_ISSUER_MAX_TEXT);
    if (xpl_buf_room(b, XPL_ISSUER_MAX_TEXT)) return XPL_OK;
    xpl_buf_fini(b);
    XPL_RETURN_OOM(err, "credentials");
}

void xpl_issuer_text_fini(struct xpl_buf *b) {
    if (b->p) explicit_bzero(b->p, b->cap);
    xpl_buf_fini(b);
}

static xpl_status_t read_whole(int fd, const char *what, struct xpl_buf *ret,
                               struct xpl_error *err) {
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "%s is not a regular file", what);
    for (;;) {
        const ssize_t n = read(fd, ret->p + ret->n, XPL_ISSUER_MAX_TEXT - ret->n);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "%s cannot be read", what);
        if (n == 0) break;
        ret->n += (size_t)n;
    }
    if (ret->n < XPL_ISSUER_MAX_TEXT) return XPL_OK;
    XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "%s is longer than %d KiB", what,
                     XPL_ISSUER_MAX_TEXT >> 10);
}

void xpl_issuer_put_form(struct xpl_buf *b, const char *name, xpl_str_t value) {
    xpl_buf_printf(b, "%s%s=", b->n ? "&" : "", name);
    xpl_location_encode(b, value, false);
}

xpl_status_t xpl_issuer_read_file(const char *path, const char *what, struct xpl_buf *ret,
                                  struct xpl_error *err) {
    char why[96];
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "%s cannot be read: %s", what,
                         strerror_r(errno, why, sizeof why));
    const xpl_status_t st = read_whole(fd, what, ret, err);
    (void)close(fd);
    return st;
}

xpl_status_t xpl_issuer_ask(const struct xpl_issuer_context *c, struct xpl_transfer *v,
                            struct xpl_buf *answer, struct xpl_error *err) {
    const struct xpl_credential nobody = {.kind = XPL_CREDENTIAL_NONE};
    v->answer = answer;
    v->fd = -1;
    v->ends_early = true;
    const xpl_status_t st = xpl_transfers_run(c->transfers, &nobody, v, 1, err);
    if (st == XPL_OK || !answer->failed) return st;
    if (err) *err = (struct xpl_error){0};
    XPL_RETURN_ERROR(err, XPL_UNAVAILABLE, "%s answered with more than %d KiB", v->shown,
                     XPL_ISSUER_MAX_TEXT >> 10);
}

xpl_status_t xpl_issuer_post(const struct xpl_issuer_context *c, const char *url, const char *shown,
                             bool direct, const struct xpl_buf *form, struct xpl_buf *answer,
                             struct xpl_error *err) {
    struct xpl_transfer v = {.url = url,
                             .shown = shown,
                             .headers = {"Content-Type: application/x-www-form-urlencoded"},
                             .n_headers = 1,
                             .method = "POST",
                             .from = (char *)form->p,
                             .from_n = form->n,
                             .direct = direct,
                             .max_tries = 3,
                             .max_s = 10};
    return xpl_issuer_ask(c, &v, answer, err);
}

// A host, and a port if there is one; an ambiguous text is invalid.
static bool take_authority(xpl_str_t rest, xpl_str_t *ret) {
    size_t n = 0;
    while (n < rest.len && rest.ptr[n] != '/')
        n++;
    *ret = xpl_str_sub(rest, 0, n);
    for (size_t i = 0; i < rest.len; i++)
        if (rest.ptr[i] <= ' ' || rest.ptr[i] > '~' || rest.ptr[i] == '\\' || rest.ptr[i] == '#' ||
            (i < n && strchr("@?%", rest.ptr[i])))
            return false;
    return n > 0;
}

bool xpl_issuer_is_safe_url(const char *url, const char *const *others, bool *ret_direct) {
    const xpl_str_t all = xpl_str_from(url);
    const bool plain = xpl_str_starts(all, XPL_STR("http://"));
    xpl_str_t authority;
    if ((!plain && !xpl_str_starts(all, XPL_STR("https://"))) ||
        !take_authority(xpl_str_sub(all, plain ? 7 : 8, SIZE_MAX), &authority))
        return false;
    *ret_direct = xpl_location_is_loopback(authority);
    for (; !*ret_direct && others && *others; others++)
        *ret_direct = xpl_location_is_host(authority, *others);
    return *ret_direct || !plain;
}
