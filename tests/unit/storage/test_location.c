// SPDX-License-Identifier: Apache-2.0
// URLs of objects: the configuration, the keys, and the request's text.
#include "storage/objects/location.h"

#include "base/buf.h"
#include "tests/check.h"

static void parse(const char *url, const char *endpoint, const char *region,
                  struct xpl_location *ret) {
    struct xpl_error err = {0};
    CHECK_OK(xpl_location_parse(url, endpoint, region, ret, &err), &err);
}

static void check_refused(const char *url, const char *endpoint, const char *region,
                          const char *why) {
    struct xpl_location l = {.region = "untouched"};
    struct xpl_error err = {0};
    CHECK_STATUS(xpl_location_parse(url, endpoint, region, &l, &err), XPL_INVALID_ARGUMENT, &err);
    CHECK(strstr(err.msg, why));
    CHECK_STR(l.region, "untouched");
}

static void check_url(const struct xpl_location *l, const char *key, const char *expected) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(1 << 16);
    xpl_location_url(l, xpl_str_from(key), NULL, 0, &b);
    CHECK(!b.failed);
    CHECK_STR((const char *)b.p, expected);
}

static void test_configured(void) {
    struct xpl_location l;
    parse("s3://bucket/a/b/", "", "", &l);
    CHECK_STR(l.prefix, "a/b");
    check_url(&l, "", "https://bucket.s3.us-east-1.amazonaws.com/");
    parse("s3://bucket", "", "eu-west-1", &l);
    CHECK_STR(l.prefix, "");
    check_url(&l, "k", "https://bucket.s3.eu-west-1.amazonaws.com/k");
    parse("s3://my.bucket//a", "", "eu-west-1", &l); // no certificate has a name for it
    CHECK_STR(l.prefix, "a");
    check_url(&l, "k", "https://s3.eu-west-1.amazonaws.com/my.bucket/k");
    parse("s3://bucket", "", "cn-north-1", &l); // another domain
    check_url(&l, "k", "https://bucket.s3.cn-north-1.amazonaws.com.cn/k");
    parse("s3://my.bucket", "", "cn-north-1", &l);
    check_url(&l, "k", "https://s3.cn-north-1.amazonaws.com.cn/my.bucket/k");
    parse("s3://bucket/a", "http://10.0.0.1:9000/", "", &l);
    check_url(&l, "k", "http://10.0.0.1:9000/bucket/k");
    parse("gs://bucket_1/a", "", "", &l);
    CHECK_STR(l.region, "auto");
    check_url(&l, "k", "https://storage.googleapis.com/bucket_1/k");
    parse("gs://bucket", "http://127.0.0.1:4443", "", &l);
    check_url(&l, "k", "http://127.0.0.1:4443/bucket/k");
    CHECK(xpl_location_is_url("s3://b") && xpl_location_is_url("gs://"));
    CHECK(!xpl_location_is_url("/s3://b") && !xpl_location_is_url("S3://b") &&
          !xpl_location_is_url("s3:/b") && !xpl_location_is_url(""));
}

static void test_refused(void) {
    static const char *const buckets[] = {"s3://",         "s3://ab",          "s3:///a",
                                          "s3://-ab/a",    "s3://a..b/a",      "s3://a%2fb",
                                          "s3://a@b.c/d",  "s3://a:b/d",       "s3://bucket?x",
                                          "gs://bu\ncket", "gs://b\xc3\xa4r/a"};
    for (size_t i = 0; i < sizeof buckets / sizeof *buckets; i++)
        check_refused(buckets[i], "", "", "bucket");
    static const char *const prefixes[] = {"s3://bucket/a/../b", "s3://bucket/./a",
                                           "s3://bucket/..",     "s3://bucket/a//b",
                                           "s3://bucket/a\tb",   "s3://bucket/\xff"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        check_refused(prefixes[i], "", "", "prefix");
    static const char *const endpoints[] = {
        "host:9000",        "ftp://host",      "http://",           "http://user:pw@host",
        "http://host/path", "http://host?x=1", "http://host\r\nX:", "https://host#"};
    for (size_t i = 0; i < sizeof endpoints / sizeof *endpoints; i++)
        check_refused("s3://bucket", endpoints[i], "", "--object-endpoint");
    check_refused("gs://bucket", "http://10.0.0.1:80", "", "https://"); // would show its token
    check_refused("gs://bucket", "http://localhost.example.org", "", "https://");
    check_refused("s3://bucket", "", "eu/../west", "--object-region");
    check_refused("/directory", "", "", "neither");
    char longest[1100] = "s3://bucket/";
    memset(longest + 12, 'a', 1025);
    check_refused(longest, "", "", "prefix");
}

// Names that no bucket has are refused, and never cut to that of another one.
static void test_buckets(void) {
    char url[300] = "s3://", *const name = url + 5;
    struct xpl_location l;
    memset(name, 'b', 63);
    parse(url, "", "", &l);
    CHECK_STR(l.bucket, name);
    CHECK(strstr(l.endpoint, name));
    name[63] = 'b';
    check_refused(url, "", "", "name has 64 bytes; those of buckets have 3 to 63");
    check_refused(url, "http://h:1", "", "name has 64 bytes");
    memcpy(url, "gs://", 5);
    check_refused(url, "", "", "3 to 63 between dots, and 222 in all");
    name[31] = '.';
    parse(url, "", "", &l);
    CHECK_STR(l.bucket, name);
    memcpy(url, "s3://", 5);
    check_refused(url, "", "", "64 bytes");
    check_refused("s3://ab", "", "", "has 2 bytes");
    check_refused("s3://", "", "", "no bucket's name");
    check_refused("s3://My-Bucket", "", "", "a-z, 0-9");
    check_refused("s3://my_bucket", "", "", "a-z, 0-9");
    parse("s3://My_Bucket", "http://h:1", "", &l); // others are not as strict
    check_refused("s3://my bucket", "http://h:1", "", "letters, digits");
    check_refused("gs://-bucket", "", "", "begins and ends with a letter or digit");
}

static void test_encoding(void) {
    struct xpl_location l;
    parse("s3://bucket/p", "http://h:1", "", &l);
    check_url(&l, "p/a+b=c:d@e(f)g*h,i%j~k-l.m_n",
              "http://h:1/bucket/p/a%2Bb%3Dc%3Ad%40e%28f%29g%2Ah%2Ci%25j~k-l.m_n");
    check_url(&l, "\xc3\xa4 \xf0\x9f\x98\x80", "http://h:1/bucket/%C3%A4%20%F0%9F%98%80");
    check_url(&l, "a?b#c&d\"<>[]{}|\\^`'!$;",
              "http://h:1/bucket/"
              "a%3Fb%23c%26d%22%3C%3E%5B%5D%7B%7D%7C%5C%5E%60%27%21%24%3B");
    struct xpl_buf b;
    const struct xpl_url_parameter q[] = {{"continuation-token", XPL_STR("1/a+b==")},
                                          {"delimiter", XPL_STR("/")},
                                          {"prefix", XPL_STR("a b~")}};
    xpl_buf_init(&b, 1 << 16);
    xpl_location_url(&l, (xpl_str_t){0}, q, 3, &b);
    CHECK_STR((const char *)b.p, "http://h:1/bucket/?continuation-token=1%2Fa%2Bb%3D%3D&"
                                 "delimiter=%2F&prefix=a%20b~");
    xpl_buf_fini(&b);
    // Every byte but the unreserved ones is three characters.
    for (unsigned c = 1; c < 256; c++) {
        const char key[] = {(char)c, 0};
        const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                           (c >= 'a' && c <= 'z') || c == '-' || c == '.' || c == '_' || c == '~' ||
                           c == '/';
        xpl_buf_init(&b, 1 << 16);
        xpl_location_url(&l, xpl_str_from(key), NULL, 0, &b);
        CHECK_EQ(b.n, strlen("http://h:1/bucket/") + (plain ? 1 : 3) + 1);
        xpl_buf_fini(&b);
    }
}

static void test_keys(void) {
    static const char *const good[] = {"a",  "a/b",      "...", "a/..b/c..",
                                       ".a", "\xc3\xa4", "a b", "~"};
    static const char *const bad[] = {"",       "/",    "/a",   "a/",   "a//b",
                                      ".",      "..",   "a/.",  "./a",  "../a",
                                      "a/../b", "a\nb", "\x7f", "\xc3", "a/\xff"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CHECK(xpl_location_is_key(xpl_str_from(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(!xpl_location_is_key(xpl_str_from(bad[i])));
    struct xpl_location l;
    char key[XPL_KEY_MAX + 1], path[XPL_KEY_MAX + 1];
    parse("s3://bucket/p", "", "", &l);
    CHECK(xpl_location_key(&l, XPL_STR("a/b"), key, sizeof key));
    CHECK_STR(key, "p/a/b");
    memset(path, 'a', sizeof path);
    CHECK(xpl_location_key(&l, (xpl_str_t){path, XPL_KEY_MAX - 2}, key, sizeof key));
    CHECK(!xpl_location_key(&l, (xpl_str_t){path, XPL_KEY_MAX - 1}, key, sizeof key));
    CHECK(!xpl_location_key(&l, XPL_STR("../x"), key, sizeof key));
    CHECK(!xpl_location_key(&l, XPL_STR("a\0b"), key, sizeof key));
}

int main(void) {
    test_configured();
    test_refused();
    test_buckets();
    test_encoding();
    test_keys();
    return 0;
}
