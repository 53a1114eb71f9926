// SPDX-License-Identifier: Apache-2.0
// Pages of listings: as servers write them, cut at every byte, and of other programs.
#include "storage/objects/listing.h"

#include "tests/check.h"

static const char PAGE[] =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
    "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>b</Name>"
    "<Prefix>p/</Prefix><KeyCount>3</KeyCount><IsTruncated>true</IsTruncated>"
    "<Contents><Key>p/a &amp; &#228;&lt;.xplane.pb</Key>"
    "<LastModified>2026-11-23T19:13:15.250Z</LastModified><ETag>&quot;abc&quot;</ETag>"
    "<Size>17</Size><StorageClass>STANDARD</StorageClass><Owner><ID>Key</ID></Owner></Contents>"
    "<Contents><Key>p/g</Key><Generation>1700000000000001</Generation><Size>0</Size></Contents>"
    "<CommonPrefixes><Prefix>p/run/</Prefix></CommonPrefixes>"
    "<NextContinuationToken>1/t=</NextContinuationToken></ListBucketResult>";

struct seen {
    char text[1000];
    unsigned objects, fail_at;
};

static bool on_object(void *arg, const struct xpl_listed_object *o) {
    struct seen *const s = arg;
    const size_t n = strlen(s->text);
    (void)snprintf(s->text + n, sizeof s->text - n, "[%.*s|%.*s|%llu|%lld]", XPL_STR_FMT(o->key),
                   XPL_STR_FMT(o->etag), (unsigned long long)o->size, (long long)o->mtime_ns);
    return ++s->objects != s->fail_at;
}

static bool on_folder(void *arg, xpl_str_t key) {
    struct seen *const s = arg;
    const size_t n = strlen(s->text);
    (void)snprintf(s->text + n, sizeof s->text - n, "{%.*s}", XPL_STR_FMT(key));
    return true;
}

// Reads it in two pieces.
static xpl_status_t read_page(xpl_str_t page, size_t cut, struct seen *ret, char next[100]) {
    const struct xpl_listing_sink sink = {on_object, on_folder, ret};
    struct xpl_listing *l = NULL;
    struct xpl_error err = {0};
    xpl_str_t token = {0};
    CHECK_OK(xpl_listing_new(&sink, &l, &err), &err);
    (void)xpl_listing_feed(l, (xpl_bytes_t){(const uint8_t *)page.ptr, cut});
    (void)xpl_listing_feed(l, (xpl_bytes_t){(const uint8_t *)page.ptr + cut, page.len - cut});
    const xpl_status_t st = xpl_listing_end(l, &token, &err);
    CHECK((st == XPL_OK) == !err.msg[0]);
    (void)snprintf(next, 100, "%.*s", XPL_STR_FMT(token));
    xpl_listing_free(l);
    return st;
}

static void test_page(void) {
    for (size_t cut = 0; cut < sizeof PAGE - 1; cut++) {
        struct seen s = {.text = ""};
        char next[100];
        CHECK_EQ(read_page(xpl_str_from(PAGE), cut, &s, next), XPL_OK);
        CHECK_STR(s.text, "[p/a & \xc3\xa4<.xplane.pb|\"abc\"|17|1795461195250000000]"
                          "[p/g||0|0]{p/run/}");
        CHECK_STR(next, "1/t=");
    }
    for (size_t n = 0; n < sizeof PAGE - 1; n++) {
        struct seen s = {.text = ""};
        char next[100];
        CHECK_EQ(read_page((xpl_str_t){PAGE, n}, n / 2, &s, next), XPL_DATA_LOSS);
    }
    struct seen s = {.fail_at = 1};
    char next[100];
    CHECK_EQ(read_page(xpl_str_from(PAGE), 100, &s, next), XPL_RESOURCE_EXHAUSTED);
    CHECK_EQ(s.objects, 1);
}

static void test_odd(void) {
    static const char *const bad[] = {
        "<Error><Code>AccessDenied</Code></Error>",
        "{}",
        "<html><ListBucketResult/></html>",
        "<!DOCTYPE a [<!ENTITY e \"x\">]><ListBucketResult/>",
        "<ListBucketResult><Contents><Size>1</Size></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key>a</Key><Size>-1</Size></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key>a</Key><Size>1e3</Size></Contents></ListBucketResult>",
        "<ListBucketResult><CommonPrefixes/></ListBucketResult>",
        "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
        "<ListBucketResult/><ListBucketResult/>",
        "<ListBucketResult>&e;</ListBucketResult>",
    };
    char next[100];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct seen s = {.text = ""};
        CHECK_EQ(read_page(xpl_str_from(bad[i]), 0, &s, next), XPL_DATA_LOSS);
        CHECK_STR(s.text, "");
    }
    struct seen s = {.text = ""};
    // A token without IsTruncated is ignored; a more deeply nested element is not a key.
    CHECK_EQ(read_page(XPL_STR("<ListBucketResult><NextContinuationToken>t</NextContinuationToken>"
                               "<Contents><Key>a<b>c</b></Key><Size>1</Size>"
                               "<LastModified>yesterday</LastModified></Contents>"
                               "</ListBucketResult>"),
                       9, &s, next),
             XPL_OK);
    CHECK_STR(next, "");
    CHECK_STR(s.text, "[a||1|0]");
}

// Longer than any key may be: refused, not cut.
static void test_long(void) {
    static char page[9000];
    (void)strcpy(page, "<ListBucketResult><Contents><Size>1</Size><Key>");
    memset(page + strlen(page), 'a', 3000);
    (void)strcat(page, "</Key></Contents></ListBucketResult>");
    struct seen s = {.text = ""};
    char next[100];
    CHECK_EQ(read_page(xpl_str_from(page), 100, &s, next), XPL_DATA_LOSS);
    CHECK_STR(s.text, "");
}

// Elements in elements: refused, before they take a hundred times their bytes.
static void test_deep(void) {
    enum { DEEP = 100000 };
    static char page[30 + 3 * DEEP + 4 * DEEP + 30];
    for (size_t n = 10; n <= DEEP; n *= DEEP / 10) {
        (void)strcpy(page, "<ListBucketResult>");
        char *at = page + strlen(page);
        for (size_t i = 0; i < n; i++)
            at = stpcpy(at, "<a>");
        for (size_t i = 0; i < n; i++)
            at = stpcpy(at, "</a>");
        (void)strcpy(at, "</ListBucketResult>");
        struct seen s = {.text = ""};
        char next[100];
        CHECK_EQ(read_page(xpl_str_from(page), 100, &s, next), n == DEEP ? XPL_DATA_LOSS : XPL_OK);
    }
}

static void test_errors(void) {
    static const struct {
        const char *body, *code;
    } rows[] = {{"<?xml?><Error><Code>SlowDown</Code><Message>AKIA</Message></Error>", "SlowDown"},
                {"<Error><Code></Code>", ""},
                {"<Code>a\"b</Code>", "a"},
                {"<Code>unended", "unended"},
                {"", ""},
                {"<Code>NoSuchBucketButMuchLonger", "NoSuchBucketBut"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char code[16];
        xpl_listing_error_code(xpl_str_from(rows[i].body), code, sizeof code);
        CHECK_STR(code, rows[i].code);
    }
}

int main(void) {
    test_page();
    test_odd();
    test_long();
    test_deep();
    test_errors();
    return 0;
}
