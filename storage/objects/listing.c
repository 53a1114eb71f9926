// SPDX-License-Identifier: Apache-2.0
#include "storage/objects/listing.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/text/parse.h"
#include "storage/objects/libs.h"

// Of a page of 1,000 objects with the longest keys; of one text.  DEPTH: of elements in each other;
// Expat takes memory for each that is open, much more than its name has bytes.
enum { MAX_PAGE = 8 << 20, MAX_TEXT = 2048, MAX_DEPTH = 32 };

struct text {
    size_t n;
    bool cut; // longer than it may be
    char v[MAX_TEXT];
};

struct xpl_listing {
    const struct xpl_expat *x;
    XML_Parser parser;
    const struct xpl_listing_sink *sink;
    unsigned depth;
    enum { NOWHERE, IN_OBJECT, IN_FOLDER } where;
    struct text *field; // receives the text; NULL: none does
    struct text key, etag, size, modified, folder, truncated, next;
    size_t bytes;
    bool is_listing, no_memory, refused, ended;
};

static xpl_str_t view(const struct text *t) {
    return (xpl_str_t){t->v, t->n};
}

static void refuse_listing(struct xpl_listing *l) {
    l->refused = true;
    (void)l->x->StopParser(l->parser, XML_FALSE);
}

int64_t xpl_listing_time(xpl_str_t s) {
    static const char form[] = "0000-00-00T00:00:00";
    static const uint8_t at[] = {0, 5, 8, 11, 14, 17};
    int64_t v[6] = {0}, ns = 0;
    if (s.len < sizeof form - 1) return 0;
    for (size_t i = 0; i < sizeof form - 1; i++)
        if (form[i] == '0' ? s.ptr[i] < '0' || s.ptr[i] > '9' : s.ptr[i] != form[i]) return 0;
    for (size_t i = 0; i < 6; i++)
        (void)xpl_parse_int(xpl_str_sub(s, at[i], i ? 2 : 4), 0, 9999, &v[i]);
    if (s.len > 19 && s.ptr[19] == '.')
        for (int64_t i = 20, unit = 100000000; i < (int64_t)s.len && unit; i++, unit /= 10)
            ns += s.ptr[i] >= '0' && s.ptr[i] <= '9' ? (s.ptr[i] - '0') * unit : 0;
    struct tm tm = {.tm_year = (int)v[0] - 1900,
                    .tm_mon = (int)v[1] - 1,
                    .tm_mday = (int)v[2],
                    .tm_hour = (int)v[3],
                    .tm_min = (int)v[4],
                    .tm_sec = (int)v[5]};
    const time_t t = v[0] >= 1970 ? timegm(&tm) : 0;
    return t > 0 && t < INT64_MAX / 1000000000 ? (int64_t)t * 1000000000 + ns : 0;
}

// ---- elements ----

static struct text *field_of(struct xpl_listing *l, const char *name) {
    const struct {
        const char *name;
        struct text *field;
    } of_object[] = {
        {"Key", &l->key}, {"ETag", &l->etag}, {"Size", &l->size}, {"LastModified", &l->modified}};
    if (l->where == IN_FOLDER) return strcmp(name, "Prefix") == 0 ? &l->folder : NULL;
    for (size_t i = 0; l->where == IN_OBJECT && i < sizeof of_object / sizeof *of_object; i++)
        if (strcmp(name, of_object[i].name) == 0) return of_object[i].field;
    if (l->where == NOWHERE && strcmp(name, "IsTruncated") == 0) return &l->truncated;
    if (l->where == NOWHERE && strcmp(name, "NextContinuationToken") == 0) return &l->next;
    return NULL;
}

static void clear_object(struct xpl_listing *l) {
    struct text *const fields[] = {&l->key, &l->etag, &l->size, &l->modified, &l->folder};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        fields[i]->n = 0, fields[i]->cut = false;
}

static void on_start(void *arg, const char *name, const char **attributes) {
    struct xpl_listing *const l = arg;
    (void)attributes;
    l->depth++;
    if (l->depth == 1) {
        l->is_listing = strcmp(name, "ListBucketResult") == 0;
        if (!l->is_listing) refuse_listing(l);
    } else if (l->depth == 2 && strcmp(name, "Contents") == 0) {
        l->where = IN_OBJECT;
        clear_object(l);
    } else if (l->depth == 2 && strcmp(name, "CommonPrefixes") == 0) {
        l->where = IN_FOLDER;
        clear_object(l);
    } else if (l->depth == (l->where == NOWHERE ? 2u : 3u)) {
        l->field = field_of(l, name);
        if (l->field) l->field->n = 0, l->field->cut = false;
    } else {
        l->field = NULL; // an element within a text
        if (l->depth > MAX_DEPTH) refuse_listing(l);
    }
}

static bool hand_out(struct xpl_listing *l) {
    int64_t size;
    if (l->where == IN_FOLDER) {
        if (l->folder.n && !l->folder.cut) return l->sink->folder(l->sink->arg, view(&l->folder));
        refuse_listing(l);
        return true;
    }
    if (!l->key.n || l->key.cut || l->etag.cut ||
        !xpl_parse_int(view(&l->size), 0, INT64_MAX, &size)) {
        refuse_listing(l);
        return true;
    }
    const struct xpl_listed_object o = {.key = view(&l->key),
                                        .etag = view(&l->etag),
                                        .size = (uint64_t)size,
                                        .mtime_ns = xpl_listing_time(view(&l->modified))};
    return l->sink->object(l->sink->arg, &o);
}

static void on_end(void *arg, const char *name) {
    struct xpl_listing *const l = arg;
    (void)name;
    l->field = NULL;
    if (l->depth-- != 2 || l->where == NOWHERE) return;
    if (!hand_out(l)) {
        l->no_memory = true;
        (void)l->x->StopParser(l->parser, XML_FALSE);
    }
    l->where = NOWHERE;
}

static void on_text(void *arg, const char *s, int len) {
    struct xpl_listing *const l = arg;
    struct text *const t = l->field;
    const size_t n = (size_t)len;
    if (!t) return;
    if (n > MAX_TEXT - t->n) {
        t->cut = true;
        return;
    }
    memcpy(t->v + t->n, s, n);
    t->n += n;
}

static void on_doctype(void *arg, const char *name, const char *system_id, const char *public_id,
                       int has_subset) {
    (void)name;
    (void)system_id;
    (void)public_id;
    (void)has_subset;
    refuse_listing(arg);
}

// ---- life ----

xpl_status_t xpl_listing_new(const struct xpl_listing_sink *sink, struct xpl_listing **ret,
                             struct xpl_error *err) {
    const struct xpl_expat *x;
    XPL_TRY(xpl_expat_load(&x, err));
    struct xpl_listing *const l = xpl_sys_alloc(sizeof *l);
    if (!l) XPL_RETURN_OOM(err, "listing");
    memset(l, 0, sizeof *l);
    l->x = x;
    l->sink = sink;
    if (!(l->parser = x->ParserCreate_MM(NULL, &xpl_expat_memory, NULL))) {
        xpl_sys_free(l);
        XPL_RETURN_OOM(err, "listing");
    }
    x->SetUserData(l->parser, l);
    x->SetElementHandler(l->parser, on_start, on_end);
    x->SetCharacterDataHandler(l->parser, on_text);
    x->SetStartDoctypeDeclHandler(l->parser, on_doctype);
    *ret = l;
    return XPL_OK;
}

void xpl_listing_free(struct xpl_listing *l) {
    if (!l) return;
    l->x->ParserFree(l->parser);
    xpl_sys_free(l);
}

static bool parse(struct xpl_listing *l, xpl_bytes_t piece, bool last) {
    if (l->ended) return false;
    l->bytes += piece.len;
    l->refused |= l->bytes > MAX_PAGE || piece.len > MAX_PAGE;
    if (!l->refused &&
        l->x->Parse(l->parser, (const char *)piece.ptr, (int)piece.len, last) == XML_STATUS_OK)
        return true;
    l->ended = true;
    if (l->refused || l->no_memory) return false;
    l->no_memory = l->x->GetErrorCode(l->parser) == XML_ERROR_NO_MEMORY;
    l->refused = !l->no_memory;
    return false;
}

bool xpl_listing_feed(struct xpl_listing *l, xpl_bytes_t piece) {
    return parse(l, piece, false);
}

xpl_status_t xpl_listing_end(struct xpl_listing *l, xpl_str_t *ret_next, struct xpl_error *err) {
    (void)parse(l, (xpl_bytes_t){(const uint8_t *)"", 0}, true);
    if (l->no_memory) XPL_RETURN_OOM(err, "listing");
    const bool more = xpl_str_eq(view(&l->truncated), XPL_STR("true"));
    if (l->refused || !l->is_listing || l->next.cut || (more && !l->next.n))
        XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "the object store's listing cannot be read");
    *ret_next = more ? view(&l->next) : (xpl_str_t){0};
    return XPL_OK;
}

void xpl_listing_error_code(xpl_str_t body, char *ret, size_t size) {
    const size_t at = xpl_str_find(body, XPL_STR("<Code>"), 0);
    size_t n = 0;
    for (size_t i = at == SIZE_MAX ? body.len : at + 6; i < body.len && n + 1 < size; i++) {
        const char c = body.ptr[i];
        if ((c < 'a' || c > 'z') && (c < 'A' || c > 'Z')) break;
        ret[n++] = c;
    }
    if (size) ret[n] = 0;
}

bool xpl_listing_text(xpl_str_t body, const char *element, char *ret, size_t size) {
    char open[40];
    const int len = snprintf(open, sizeof open, "<%s>", element);
    const size_t at = xpl_str_find(body, (xpl_str_t){open, (size_t)len}, 0);
    if (at == SIZE_MAX) return false;
    const xpl_str_t rest = xpl_str_sub(body, at + (size_t)len, SIZE_MAX);
    const size_t n = xpl_str_find(rest, XPL_STR("<"), 0);
    if (n == SIZE_MAX || !n || n >= size) return false;
    for (size_t i = 0; i < n; i++)
        if (rest.ptr[i] <= ' ' || rest.ptr[i] > '~' || rest.ptr[i] == '&') return false;
    memcpy(ret, rest.ptr, n);
    ret[n] = 0;
    return true;
}
