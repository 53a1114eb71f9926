// SPDX-License-Identifier: Apache-2.0
#include "storage/objects/location.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/text/utf8.h"

// Bytes of a bucket's name in all; of one part between dots.
enum { MAX_BUCKET = 222, MAX_LABEL = 63 };

static bool is_alnum(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// Of letters, digits and `others` only.
static bool consists_of(xpl_str_t s, const char *others) {
    for (size_t i = 0; i < s.len; i++)
        if (!is_alnum(s.ptr[i]) && (!s.ptr[i] || !strchr(others, s.ptr[i]))) return false;
    return true;
}

static bool copy(char *to, size_t size, xpl_str_t s) {
    if (s.len >= size) return false;
    if (s.len) memcpy(to, s.ptr, s.len);
    to[s.len] = 0;
    return true;
}

// ---- keys ----

bool xpl_location_is_key(xpl_str_t key) {
    if (!key.len || key.len > XPL_KEY_MAX) return false;
    for (size_t i = 0, n; i < key.len; i += n)
        if (!(n = xpl_utf8_next(xpl_str_sub(key, i, 4))) || (unsigned char)key.ptr[i] < ' ' ||
            key.ptr[i] == 127)
            return false;
    for (size_t at = 0; at <= key.len;) {
        const size_t slash = xpl_str_find(key, XPL_STR("/"), at);
        const size_t end = slash == SIZE_MAX ? key.len : slash;
        const xpl_str_t part = xpl_str_sub(key, at, end - at);
        if (!part.len || xpl_str_eq(part, XPL_STR(".")) || xpl_str_eq(part, XPL_STR("..")))
            return false;
        at = end + 1;
    }
    return true;
}

bool xpl_location_key(const struct xpl_location *l, xpl_str_t path, char *ret, size_t size) {
    const int n =
        snprintf(ret, size, "%s%s%.*s", l->prefix, l->prefix[0] ? "/" : "", XPL_STR_FMT(path));
    return n > 0 && (size_t)n < size &&
           (size_t)n == strlen(l->prefix) + !!l->prefix[0] + path.len &&
           xpl_location_is_key((xpl_str_t){ret, (size_t)n});
}

// ---- URLs ----

void xpl_location_encode(struct xpl_buf *b, xpl_str_t s, bool slashes) {
    static const char hex[] = "0123456789ABCDEF";
    for (size_t i = 0; i < s.len; i++) {
        const unsigned char c = (unsigned char)s.ptr[i];
        const bool plain = is_alnum((char)c) || c == '-' || c == '.' || c == '_' || c == '~';
        if (plain || (slashes && c == '/')) {
            xpl_buf_putc(b, (char)c);
        } else {
            xpl_buf_putc(b, '%');
            xpl_buf_putc(b, hex[c >> 4]);
            xpl_buf_putc(b, hex[c & 15]);
        }
    }
}

void xpl_location_url(const struct xpl_location *l, xpl_str_t key,
                      const struct xpl_url_parameter *parameters, size_t n, struct xpl_buf *ret) {
    xpl_buf_str(ret, xpl_str_from(l->endpoint));
    xpl_buf_putc(ret, '/');
    if (l->path_style) {
        xpl_location_encode(ret, xpl_str_from(l->bucket), false);
        xpl_buf_putc(ret, '/');
    }
    xpl_location_encode(ret, key, true);
    for (size_t i = 0; i < n; i++) {
        assert(!i || strcmp(parameters[i - 1].name, parameters[i].name) < 0);
        xpl_buf_putc(ret, i ? '&' : '?');
        xpl_location_encode(ret, xpl_str_from(parameters[i].name), false);
        xpl_buf_putc(ret, '=');
        xpl_location_encode(ret, parameters[i].value, false);
    }
    xpl_buf_putc(ret, '\0');
}

// ---- the configured URL ----

static bool take_scheme(const char *url, enum xpl_object_service *ret, xpl_str_t *ret_rest) {
    static const char *const schemes[] = {[XPL_OBJECTS_S3] = "s3://", [XPL_OBJECTS_GCS] = "gs://"};
    for (unsigned i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        if (strncmp(url, schemes[i], strlen(schemes[i])) != 0) continue;
        *ret = (enum xpl_object_service)i;
        *ret_rest = xpl_str_from(url + strlen(schemes[i]));
        return true;
    }
    return false;
}

bool xpl_location_is_url(const char *logdir) {
    enum xpl_object_service service;
    xpl_str_t rest;
    return take_scheme(logdir, &service, &rest);
}

// A name with dots may be longer at Google, where each part of it has that limit.
static bool has_length(enum xpl_object_service service, xpl_str_t s) {
    size_t part = 0, longest = 0;
    for (size_t i = 0; i < s.len; i++) {
        part = s.ptr[i] == '.' && service == XPL_OBJECTS_GCS ? 0 : part + 1;
        if (part > longest) longest = part;
    }
    return s.len >= 3 && s.len <= MAX_BUCKET && longest <= MAX_LABEL;
}

// `strict`: as the names of hosts are, which that of a bucket of Amazon's becomes.
static bool is_spelled(xpl_str_t s, bool strict) {
    for (size_t i = 0; strict && i < s.len; i++)
        if (s.ptr[i] == '_' || (s.ptr[i] >= 'A' && s.ptr[i] <= 'Z')) return false;
    return is_alnum(s.ptr[0]) && is_alnum(s.ptr[s.len - 1]) && consists_of(s, ".-_") &&
           !xpl_str_has(s, XPL_STR(".."));
}

static xpl_status_t check_bucket(enum xpl_object_service service, bool own, xpl_str_t s,
                                 struct xpl_error *err) {
    if (!s.len)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                         "--logdir: no bucket's name in the URL; write s3://BUCKET/PREFIX or "
                         "gs://BUCKET/PREFIX");
    if (!has_length(service, s))
        XPL_RETURN_ERROR(
            err, XPL_INVALID_ARGUMENT,
            "--logdir: the bucket's name has %zu bytes; those of buckets have 3 to %d%s", s.len,
            MAX_LABEL, service == XPL_OBJECTS_GCS ? " between dots, and 222 in all" : "");
    const bool strict = own && service == XPL_OBJECTS_S3;
    if (is_spelled(s, strict)) return XPL_OK;
    XPL_RETURN_ERROR(
        err, XPL_INVALID_ARGUMENT,
        "--logdir: the bucket's name has a character that no bucket has: it consists of "
        "%s, and begins and ends with a letter or digit",
        strict ? "a-z, 0-9, \"-\" and single \".\""
               : "letters, digits, \"-\", \"_\" and single \".\"");
}

static xpl_status_t take_place(xpl_str_t rest, bool own, struct xpl_location *ret,
                               struct xpl_error *err) {
    const size_t slash = xpl_str_find(rest, XPL_STR("/"), 0);
    const xpl_str_t bucket = xpl_str_sub(rest, 0, slash);
    xpl_str_t prefix = slash == SIZE_MAX ? (xpl_str_t){0} : xpl_str_sub(rest, slash, SIZE_MAX);
    while (prefix.len && prefix.ptr[0] == '/')
        prefix = xpl_str_sub(prefix, 1, SIZE_MAX);
    while (prefix.len && prefix.ptr[prefix.len - 1] == '/')
        prefix.len--;
    XPL_TRY(check_bucket(ret->service, own, bucket, err));
    (void)copy(ret->bucket, sizeof ret->bucket, bucket);
    if ((prefix.len && !xpl_location_is_key(prefix)) ||
        !copy(ret->prefix, sizeof ret->prefix, prefix))
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                         "--logdir: the prefix behind the bucket has an empty part, \".\", \"..\", "
                         "or characters that no key has");
    return XPL_OK;
}

bool xpl_location_is_host(xpl_str_t authority, const char *host) {
    const xpl_str_t name = xpl_str_from(host);
    return xpl_str_starts(authority, name) &&
           (authority.len == name.len || authority.ptr[name.len] == ':');
}

bool xpl_location_is_loopback(xpl_str_t authority) {
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (xpl_location_is_host(authority, names[i])) return true;
    return false;
}

static xpl_status_t take_endpoint(const char *endpoint, struct xpl_location *ret,
                                  struct xpl_error *err) {
    xpl_str_t all = xpl_str_from(endpoint);
    if (all.len && all.ptr[all.len - 1] == '/') all.len--;
    const bool plain = xpl_str_starts(all, XPL_STR("http://"));
    const size_t scheme = plain ? 7 : 8;
    const xpl_str_t authority = xpl_str_sub(all, scheme, SIZE_MAX);
    if ((!plain && !xpl_str_starts(all, XPL_STR("https://"))) || !authority.len ||
        !consists_of(authority, ".-_:[]") || !copy(ret->endpoint, sizeof ret->endpoint, all))
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                         "--object-endpoint: write http://HOST:PORT or https://HOST:PORT, nothing "
                         "more");
    ret->direct = xpl_location_is_loopback(authority);
    if (plain && ret->service == XPL_OBJECTS_GCS && !ret->direct)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                         "--object-endpoint: with gs:// it must be https://, as requests have the "
                         "token itself");
    ret->path_style = true;
    return XPL_OK;
}

const char *xpl_location_amazon(const char *region) {
    return strncmp(region, "cn-", 3) == 0 ? "amazonaws.com.cn" : "amazonaws.com";
}

static void use_own_endpoint(struct xpl_location *ret) {
    ret->path_style = ret->service == XPL_OBJECTS_GCS || strchr(ret->bucket, '.') != NULL;
    if (ret->service == XPL_OBJECTS_GCS)
        (void)strcpy(ret->endpoint, "https://storage.googleapis.com");
    else // the name of a certificate has one part before it
        (void)snprintf(ret->endpoint, sizeof ret->endpoint, "https://%.63s%ss3.%s.%s",
                       ret->path_style ? "" : ret->bucket, ret->path_style ? "" : ".", ret->region,
                       xpl_location_amazon(ret->region));
}

xpl_status_t xpl_location_parse(const char *url, const char *endpoint, const char *region,
                                struct xpl_location *ret, struct xpl_error *err) {
    struct xpl_location l = {.service = XPL_OBJECTS_S3};
    xpl_str_t rest = {0};
    if (!take_scheme(url, &l.service, &rest))
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "--logdir: neither s3:// nor gs://");
    if (!region[0]) region = l.service == XPL_OBJECTS_GCS ? "auto" : "us-east-1";
    if (!consists_of(xpl_str_from(region), "-_") ||
        !copy(l.region, sizeof l.region, xpl_str_from(region)))
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "--object-region: no region's name");
    XPL_TRY(take_place(rest, !endpoint[0], &l, err));
    if (endpoint[0])
        XPL_TRY(take_endpoint(endpoint, &l, err));
    else
        use_own_endpoint(&l);
    *ret = l;
    return XPL_OK;
}
