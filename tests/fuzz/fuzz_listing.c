// SPDX-License-Identifier: Apache-2.0
// Listings of object stores, in one piece and in two: the results are equal. Its texts as keys and
// endpoints: accepted ones make URLs of plain characters only.
#include "base/buf.h"
#include "storage/hash.h"
#include "storage/objects/listing.h"
#include "storage/objects/location.h"

#include "tests/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    uint64_t hash;
    size_t n;
};

static void add(struct seen *s, xpl_str_t text) {
    s->hash = xpl_digest64((xpl_bytes_t){(const uint8_t *)text.ptr, text.len}, s->hash);
    s->n++;
}

static void check_url(xpl_str_t key) {
    struct xpl_location l = {.endpoint = "http://h", .bucket = "b", .path_style = true};
    struct xpl_buf b;
    char whole[XPL_KEY_MAX + 1];
    if (!xpl_location_key(&l, key, whole, sizeof whole)) return;
    CHECK_STR(xpl_str_from(whole), key);
    const struct xpl_url_parameter q = {"prefix", key};
    xpl_buf_init(&b, 1 << 16);
    xpl_location_url(&l, key, &q, 1, &b);
    CHECK(!b.failed && b.n == strlen((const char *)b.p) + 1);
    for (size_t i = strlen("http://h"); b.p[i]; i++)
        CHECK(b.p[i] > ' ' && b.p[i] < 127 && !strchr("\"#<>@:\\^`{|}+,;'()*[]!$", b.p[i]));
    xpl_buf_fini(&b);
}

static bool on_object(void *arg, const struct xpl_listed_object *o) {
    CHECK(o->key.len && o->mtime_ns >= 0 && o->size <= INT64_MAX);
    add(arg, o->key);
    add(arg, o->etag);
    add(arg, (xpl_str_t){(const char *)&o->size, sizeof o->size});
    check_url(o->key);
    return true;
}

static bool on_folder(void *arg, xpl_str_t key) {
    CHECK(key.len);
    add(arg, key);
    return true;
}

static xpl_status_t read_page(xpl_bytes_t page, size_t cut, struct seen *ret) {
    const struct xpl_listing_sink sink = {on_object, on_folder, ret};
    struct xpl_listing *l = NULL;
    struct xpl_error err = {0};
    xpl_str_t next = {0};
    CHECK_OK(xpl_listing_new(&sink, &l, &err), &err);
    (void)xpl_listing_feed(l, (xpl_bytes_t){page.ptr, cut});
    (void)xpl_listing_feed(l, (xpl_bytes_t){page.ptr + cut, page.len - cut});
    const xpl_status_t st = xpl_listing_end(l, &next, &err);
    CHECK(st == XPL_OK || st == XPL_DATA_LOSS);
    if (st == XPL_OK) add(ret, next);
    xpl_listing_free(l);
    return st;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct seen whole = {0}, cut = {0};
    const xpl_bytes_t page = {data, size};
    const xpl_status_t st = read_page(page, size, &whole);
    CHECK_EQ(read_page(page, size / 2, &cut), st);
    if (st == XPL_OK) {
        CHECK_EQ(cut.n, whole.n);
        CHECK_EQ(cut.hash, whole.hash);
    }
    check_url((xpl_str_t){(const char *)data, size});
    char text[600], code[20];
    (void)snprintf(text, sizeof text, "%.*s", size < 500 ? (int)size : 500, (const char *)data);
    xpl_listing_error_code(xpl_str_from(text), code, sizeof code);
    const xpl_str_t page_text = {(const char *)data, size};
    char id[64];
    if (xpl_listing_text(page_text, "UploadId", id, sizeof id))
        CHECK(id[0] && strlen(id) < sizeof id && !strpbrk(id, "<& \r\n"));
    struct xpl_location l = {.bucket = ""};
    if (xpl_location_parse("s3://bucket", text, "", &l, NULL) == XPL_OK)
        CHECK(strncmp(l.endpoint, "http", 4) == 0 && !strpbrk(l.endpoint, "@?#\\ \r\n"));
    return 0;
}
