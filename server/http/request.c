// SPDX-License-Identifier: Apache-2.0
#include "server/http/request.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/text/utf8.h"

enum { MAX_ARGS = 4096 }; // hosts by name, above all

static int hex(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

// Percent-decodes `in` (and '+' when `form`), in `arena`.  False: malformed, a NUL, or no memory.
static bool http_decode(xpl_str_t in, bool form, struct xpl_arena *arena, xpl_str_t *ret) {
    char *out = xpl_arena_alloc(arena, in.len + 1);
    size_t n = 0;
    if (!out) return false;
    for (size_t i = 0; i < in.len; i++) {
        char c = in.ptr[i];
        if (c == '+' && form) {
            c = ' ';
        } else if (c == '%') {
            const int high = i + 2 < in.len ? hex(in.ptr[i + 1]) : -1;
            const int low = i + 2 < in.len ? hex(in.ptr[i + 2]) : -1;
            if (high < 0 || low < 0) return false;
            c = (char)(high << 4 | low);
            i += 2;
        }
        if (c == 0) return false;
        out[n++] = c;
    }
    out[n] = 0;
    *ret = (xpl_str_t){out, n};
    return xpl_utf8_valid(*ret);
}

static bool add_arg(struct xpl_http_request *r, xpl_str_t pair) {
    const size_t eq = xpl_str_find(pair, XPL_STR("="), 0);
    const xpl_str_t key = eq == SIZE_MAX ? pair : xpl_str_sub(pair, 0, eq);
    const xpl_str_t value = eq == SIZE_MAX ? XPL_STR("") : xpl_str_sub(pair, eq + 1, SIZE_MAX);
    struct xpl_http_arg *a = &r->args[r->n_args];
    if (!http_decode(key, true, &r->arena, &a->key) ||
        !http_decode(value, true, &r->arena, &a->value))
        return false;
    r->n_args++;
    return true;
}

static size_t count_pairs(xpl_str_t query) {
    size_t n = 1;
    for (size_t i = 0; i < query.len; i++)
        n += query.ptr[i] == '&';
    return n;
}

static bool add_args(struct xpl_http_request *r, xpl_str_t query) {
    while (query.len) {
        const size_t amp = xpl_str_find(query, XPL_STR("&"), 0);
        const size_t len = amp == SIZE_MAX ? query.len : amp;
        if (len && !add_arg(r, xpl_str_sub(query, 0, len))) return false;
        query = xpl_str_sub(query, len + 1, SIZE_MAX);
    }
    return true;
}

static bool parse_query(struct xpl_http_request *r, xpl_str_t query) {
    const xpl_str_t form = {r->form, r->n_form};
    const size_t n = count_pairs(query) + (form.len ? count_pairs(form) : 0);
    r->too_many = n > MAX_ARGS;
    if (r->too_many || !(r->args = xpl_arena_array(&r->arena, n, sizeof *r->args))) return false;
    return add_args(r, query) && add_args(r, form);
}

// Takes `prefix` off the path where it ends a component; true when it was there.
static bool strip(xpl_str_t *path, xpl_str_t prefix) {
    if (!prefix.len || !xpl_str_starts(*path, prefix)) return false;
    if (path->len > prefix.len && path->ptr[prefix.len] != '/') return false;
    *path = xpl_str_sub(*path, prefix.len, SIZE_MAX);
    return true;
}

bool xpl_http_request_parse(struct xpl_http_request *r, const char *prefix) {
    const xpl_str_t uri = {r->uri, r->n_uri};
    const size_t mark = xpl_str_find(uri, XPL_STR("?"), 0);
    if (!http_decode(xpl_str_sub(uri, 0, mark), false, &r->arena, &r->path)) return false;
    if (!xpl_str_starts(r->path, XPL_STR("/"))) return false;
    // XProf's page asks for graphs below "//"; its own server merges slashes, too.
    while (xpl_str_starts(r->path, XPL_STR("//")))
        r->path = xpl_str_sub(r->path, 1, SIZE_MAX);
    (void)strip(&r->path, xpl_str_from(prefix));
    r->mounted = strip(&r->path, XPL_STR("/data/plugin/profile"));
    if (mark == SIZE_MAX && !r->n_form) return true;
    return parse_query(r, mark == SIZE_MAX ? XPL_STR("") : xpl_str_sub(uri, mark + 1, SIZE_MAX));
}

xpl_str_t xpl_http_arg(const struct xpl_http_request *r, const char *key) {
    for (size_t i = 0; i < r->n_args; i++)
        if (xpl_str_eq(r->args[i].key, xpl_str_from(key))) return r->args[i].value;
    return (xpl_str_t){0};
}

xpl_str_t xpl_http_header(const struct xpl_http_request *r, const char *name) {
    const char *const v = MHD_lookup_connection_value(r->mhd, MHD_HEADER_KIND, name);
    return v ? xpl_str_from(v) : (xpl_str_t){0};
}

bool xpl_http_is_form(const struct xpl_http_request *r) {
    static const char type[] = "application/x-www-form-urlencoded";
    const xpl_str_t given = xpl_http_header(r, MHD_HTTP_HEADER_CONTENT_TYPE);
    const size_t n = sizeof type - 1;
    return given.len >= n && strncasecmp(given.ptr, type, n) == 0 &&
           (given.len == n || given.ptr[n] == ';' || given.ptr[n] == ' ');
}

// ---- where a request ends ----

// RFC 9110's characters of a field's name.
static bool is_name_char(char c) {
    return isalnum((unsigned char)c) || c == '-' || c == '_' || (c && strchr("!#$%&'*+.^`|~", c));
}

static bool is_token(const char *key, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!is_name_char(key[i])) return false;
    return n > 0;
}

// libmicrohttpd before 0.9.77 appends a folded line to the name in place of the value, and hides or
// makes a header by that.  Else the value follows the name, a NUL and white space.
static bool is_folded(const char *key, size_t n_key, const char *value) {
    if (MHD_VERSION >= 0x00097700 || !value) return false;
    const char *at = key + n_key + 1;
    if (value < at || key[n_key]) return true;
    while (at < value && (*at == ' ' || *at == '\t'))
        at++;
    return at != value;
}

// RFC 9110, 5.5: a NUL or a CR makes a field wrong. libmicrohttpd before 0.9.77 ends the value at a
// NUL, and the line at a single CR or LF, so that a header is cut or made. It writes zeros for the
// end of a line: two for CR and LF. At least the empty line follows the last header.
static bool is_cut(const char *value, size_t n) {
    if (!value) return false;
    if (memchr(value, '\r', n) || memchr(value, 0, n)) return true;
    return MHD_VERSION < 0x00097700 && (value[n] || value[n + 1]);
}

static const struct {
    const char *name;
    size_t len;
    bool once; // two are read differently by different readers
} known_headers[XPL_N_HEADERS] = {
#define KNOWN(text, once)                                                                          \
    { text, sizeof text - 1, once }
    [XPL_HEADER_HOST] = KNOWN("Host", true),
    [XPL_HEADER_ORIGIN] = KNOWN("Origin", true),
    [XPL_HEADER_REFERER] = KNOWN("Referer", true),
    [XPL_HEADER_USER_AGENT] = KNOWN("User-Agent", false),
    [XPL_HEADER_SITE] = KNOWN("Sec-Fetch-Site", true),
    [XPL_HEADER_OURS] = KNOWN("Xplaned-Request", false),
    [XPL_HEADER_CONTENT_LENGTH] = KNOWN("Content-Length", true),
    [XPL_HEADER_TRANSFER_ENCODING] = KNOWN("Transfer-Encoding", true),
    [XPL_HEADER_ACCEPT_ENCODING] = KNOWN("Accept-Encoding", false),
#undef KNOWN
};

struct headers {
    struct xpl_http_request *request;
    const char *wrong;
    const char *end; // of the last value, or of the request line
};

// RFC 3986's characters of a host and its port.
static bool is_host(xpl_str_t s) {
    xpl_str_t name;
    for (size_t i = 0; i < s.len; i++)
        if (!isalnum((unsigned char)s.ptr[i]) &&
            (!s.ptr[i] || !strchr("-._~%!$&'()*+,;=:[]", s.ptr[i])))
            return false;
    return s.len == 0 || xpl_http_host_name(s, &name);
}

// libmicrohttpd before 0.9.77 takes a line without a name (": x") for the end of the headers, and
// the rest for another request. Between the last value and the end are the line's end and the empty
// line.
static bool ends_early(const struct headers *h, const char *method) {
    const union MHD_ConnectionInfo *const i =
        MHD_get_connection_info(h->request->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    const uintptr_t begin = (uintptr_t)method, last = (uintptr_t)h->end;
    return MHD_VERSION < 0x00097700 && (!i || last < begin || last - begin + 4 != i->header_size);
}

static enum MHD_Result read_header(void *arg, enum MHD_ValueKind kind, const char *key,
                                   size_t n_key, const char *value, size_t n_value) {
    struct headers *const h = arg;
    (void)kind;
    if (value && (uintptr_t)(value + n_value) > (uintptr_t)h->end) h->end = value + n_value;
    if (!is_token(key, n_key))
        h->wrong = "a header's name has characters that names do not have";
    else if (is_folded(key, n_key, value))
        h->wrong = "a header goes on in the next line";
    else if (is_cut(value, n_value))
        h->wrong = "a header's value has a NUL, or its line does not end with CR and LF";
    for (int i = 0; i < XPL_N_HEADERS; i++) {
        xpl_str_t *const known = &h->request->known[i];
        if (n_key != known_headers[i].len || strncasecmp(key, known_headers[i].name, n_key) != 0)
            continue;
        if (known->ptr && known_headers[i].once) h->wrong = "a header is there twice";
        if (!known->ptr) *known = (xpl_str_t){value ? value : "", value ? n_value : 0};
    }
    return MHD_YES;
}

// libmicrohttpd takes all between the first and the last run of blanks for the URI, and ends it at
// a NUL.  Its method and version lie where the line has them.
static bool is_line_clean(const struct xpl_http_request *r, const char *method,
                          const char *version) {
    for (size_t i = 0; i < r->n_uri; i++)
        if ((unsigned char)r->uri[i] <= ' ' || r->uri[i] == 0x7f) return false;
    return (uintptr_t)version - (uintptr_t)method == strlen(method) + 1 + r->n_uri + 1;
}

static const char *read_host(struct xpl_http_request *r, const char *version) {
    xpl_str_t *const host = &r->known[XPL_HEADER_HOST];
    if (!host->ptr && strcmp(version, MHD_HTTP_VERSION_1_0) != 0) return "Host is missing";
    // RFC 9110, 5.5: blanks at the end do not belong to the value; libmicrohttpd leaves them there.
    while (host->len && (host->ptr[host->len - 1] == ' ' || host->ptr[host->len - 1] == '\t'))
        host->len--;
    return is_host(*host) ? NULL : "Host is not a host name with a port";
}

const char *xpl_http_read_headers(struct xpl_http_request *r, const char *method,
                                  const char *version) {
    struct headers h = {.request = r, .end = version + strlen(version)};
    (void)MHD_get_connection_values_n(r->mhd, MHD_HEADER_KIND, read_header, &h);
    if (h.wrong) return h.wrong;
    if (!is_line_clean(r, method, version)) return "the request line is not METHOD URI VERSION";
    if (ends_early(&h, method))
        return "a header has no name, or a line does not end with CR and LF";
    const char *const host = read_host(r, version);
    if (host) return host;
    const xpl_str_t length = r->known[XPL_HEADER_CONTENT_LENGTH];
    for (size_t i = 0; i < length.len; i++)
        if (!isdigit((unsigned char)length.ptr[i])) return "Content-Length is a number";
    return length.ptr && r->known[XPL_HEADER_TRANSFER_ENCODING].ptr
               ? "Content-Length and Transfer-Encoding exclude each other"
               : NULL;
}

// ---- lists ----

static xpl_str_t trim(xpl_str_t s) {
    while (s.len && (s.ptr[0] == ' ' || s.ptr[0] == '\t'))
        s = xpl_str_sub(s, 1, SIZE_MAX);
    while (s.len && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t'))
        s.len--;
    return s;
}

// Takes the next element off a list; false at its end.
static bool next_element(xpl_str_t *list, char separator, xpl_str_t *ret) {
    if (!list->len) return false;
    const char *const hit = memchr(list->ptr, separator, list->len);
    const size_t n = hit ? (size_t)(hit - list->ptr) : list->len;
    *ret = trim(xpl_str_sub(*list, 0, n));
    *list = xpl_str_sub(*list, n + 1, SIZE_MAX);
    return true;
}

static bool same_word(xpl_str_t a, const char *b) {
    return a.len == strlen(b) && strncasecmp(a.ptr, b, a.len) == 0;
}

// The weight "q=0", "q=0.0" and so on means: not this one.
static bool is_refused(xpl_str_t parameters) {
    xpl_str_t p;
    while (next_element(&parameters, ';', &p)) {
        if (p.len < 3 || (p.ptr[0] != 'q' && p.ptr[0] != 'Q') || p.ptr[1] != '=') continue;
        bool zero = true;
        for (size_t i = 2; i < p.len; i++)
            zero = zero && (p.ptr[i] == '0' || p.ptr[i] == '.');
        return zero;
    }
    return false;
}

bool xpl_http_accepts_gzip(xpl_str_t list) {
    xpl_str_t one;
    bool any = false;
    while (next_element(&list, ',', &one)) {
        const size_t semicolon = xpl_str_find(one, XPL_STR(";"), 0);
        const xpl_str_t name = trim(xpl_str_sub(one, 0, semicolon));
        const bool refused =
            semicolon != SIZE_MAX && is_refused(xpl_str_sub(one, semicolon + 1, SIZE_MAX));
        if (same_word(name, "gzip") || same_word(name, "x-gzip")) return !refused;
        if (same_word(name, "*")) any = !refused;
    }
    return any;
}

bool xpl_http_etag_listed(xpl_str_t list, const struct xpl_http_body *b) {
    xpl_str_t one;
    while (next_element(&list, ',', &one)) {
        if (xpl_str_eq(one, XPL_STR("*"))) return true;
        if (xpl_str_starts(one, XPL_STR("W/"))) one = xpl_str_sub(one, 2, SIZE_MAX);
        for (int i = 0; i < XPL_HTTP_ENCODINGS; i++)
            if (b->etag[i][0] && xpl_str_eq(one, xpl_str_from(b->etag[i]))) return true;
    }
    return false;
}

// ---- ranges ----

static bool number(xpl_str_t s, uint64_t *ret) {
    *ret = 0;
    if (!s.len || s.len > 18) return false;
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9') return false;
        *ret = *ret * 10 + (uint64_t)(s.ptr[i] - '0');
    }
    return true;
}

enum xpl_http_range xpl_http_range(xpl_str_t header, uint64_t size, uint64_t *ret_from,
                                   uint64_t *ret_len) {
    const size_t eq = xpl_str_find(header, XPL_STR("="), 0);
    if (eq == SIZE_MAX || !same_word(xpl_str_sub(header, 0, eq), "bytes")) return XPL_RANGE_NONE;
    const xpl_str_t set = trim(xpl_str_sub(header, eq + 1, SIZE_MAX));
    const size_t dash = xpl_str_find(set, XPL_STR("-"), 0);
    if (dash == SIZE_MAX || xpl_str_has(set, XPL_STR(","))) return XPL_RANGE_NONE;
    const xpl_str_t a = trim(xpl_str_sub(set, 0, dash)),
                    b = trim(xpl_str_sub(set, dash + 1, SIZE_MAX));
    uint64_t first = 0, last = UINT64_MAX;
    if ((a.len && !number(a, &first)) || (b.len && !number(b, &last)) || (!a.len && !b.len))
        return XPL_RANGE_NONE;
    if (!a.len) { // the last so many
        if (last == 0 || size == 0) return XPL_RANGE_BAD;
        first = last < size ? size - last : 0;
        last = size - 1;
    }
    if (last < first) return XPL_RANGE_NONE;
    if (first >= size) return XPL_RANGE_BAD;
    *ret_from = first;
    *ret_len = (last < size ? last : size - 1) - first + 1;
    return XPL_RANGE_OK;
}

// ---- hosts ----

bool xpl_http_host_name(xpl_str_t host, xpl_str_t *ret) {
    xpl_str_t name = host, port = {0};
    uint64_t n;
    if (xpl_str_starts(host, XPL_STR("["))) {
        const size_t end = xpl_str_find(host, XPL_STR("]"), 0);
        if (end == SIZE_MAX) return false;
        name = xpl_str_sub(host, 1, end - 1);
        port = xpl_str_sub(host, end + 1, SIZE_MAX);
        if (port.len && port.ptr[0] != ':') return false;
    } else {
        const size_t colon = xpl_str_find(host, XPL_STR(":"), 0);
        name = xpl_str_sub(host, 0, colon);
        if (colon != SIZE_MAX) port = xpl_str_sub(host, colon, SIZE_MAX);
    }
    if (port.len > 1 && (!number(xpl_str_sub(port, 1, SIZE_MAX), &n) || n > 65535)) return false;
    *ret = name;
    return name.len > 0 && name.len < 256;
}
