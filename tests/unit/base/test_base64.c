// SPDX-License-Identifier: Apache-2.0
// Both alphabets: the vectors of RFC 4648, section 10, and the letters that differ.
#include "base/text/base64.h"

#include "tests/check.h"

static void check(const char *bytes, size_t n, const char *plain, const char *url) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(100);
    xpl_base64_put(&b, (xpl_bytes_t){(const uint8_t *)bytes, n});
    CHECK_STR(((xpl_str_t){(char *)b.p, b.n}), xpl_str_from(plain));
    b.n = 0;
    xpl_base64_put_url(&b, (xpl_bytes_t){(const uint8_t *)bytes, n});
    CHECK_STR(((xpl_str_t){(char *)b.p, b.n}), xpl_str_from(url));
    CHECK(!b.failed);
}

int main(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf small = xpl_buf_of(7);
    check("", 0, "", "");
    check("f", 1, "Zg==", "Zg");
    check("fo", 2, "Zm8=", "Zm8");
    check("foo", 3, "Zm9v", "Zm9v");
    check("foob", 4, "Zm9vYg==", "Zm9vYg");
    check("fooba", 5, "Zm9vYmE=", "Zm9vYmE");
    check("foobar", 6, "Zm9vYmFy", "Zm9vYmFy");
    check("\373\377\277", 3, "+/+/", "-_-_");
    check("\0\377", 2, "AP8=", "AP8");
    xpl_base64_put(&small, (xpl_bytes_t){(const uint8_t *)"foobar", 6});
    CHECK(small.failed);
    return 0;
}
