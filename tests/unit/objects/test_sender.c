// SPDX-License-Identifier: Apache-2.0
// Objects that exist already: either sent by an earlier request whose answer was lost, or another
// program's.
#include "storage/objects/sender.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "tests/check.h"

enum { SMALL = 5000, LARGE = XPL_SENDER_PART + 3 };

// A store that has one object, and refuses to replace it.
static struct {
    uint8_t bytes[LARGE];
    uint64_t size;
    unsigned tries, asked;
} store;

static xpl_status_t get(struct xpl_transfer *v) {
    const char *const range = v->headers[0];
    CHECK(v->n_headers == 1 && strncmp(range, "Range: bytes=", 13) == 0);
    char *dash;
    const uint64_t first = strtoull(range + 13, &dash, 10);
    CHECK(*dash == '-' && first < store.size);
    uint64_t n = strtoull(dash + 1, NULL, 10) + 1 - first;
    if (n > store.size - first) n = store.size - first;
    store.asked++;
    v->answer->n = 0;
    xpl_buf_put(v->answer, store.bytes + first, n);
    CHECK(!v->answer->failed);
    v->status = 206;
    v->whole = store.size;
    return XPL_OK;
}

static xpl_status_t run(void *arg, struct xpl_transfer *v, size_t n, struct xpl_error *err) {
    (void)arg;
    for (size_t i = 0; i < n; i++) {
        v[i].tries++;
        v[i].status = 200;
        (void)strcpy(v[i].etag, "\"1\"");
    }
    if (!v->method) return get(v);
    if (strstr(v->url, "uploads=")) {
        xpl_buf_str(v->answer, XPL_STR("<R><UploadId>1</UploadId></R>"));
        return XPL_OK;
    }
    const bool stores = strcmp(v->method, "POST") == 0 || !strstr(v->url, "uploadId=");
    if (!stores || strcmp(v->method, "DELETE") == 0) return XPL_OK;
    v->tries = store.tries;
    v->status = 412;
    XPL_RETURN_ERROR(err, XPL_ABORTED, "refused");
}

static xpl_status_t put(int fd, uint64_t size) {
    struct xpl_location at;
    struct xpl_error err = {0};
    CHECK_OK(xpl_location_parse("s3://bucket/a", "http://127.0.0.1:1", "", &at, &err), &err);
    const struct xpl_sender s = {.location = &at, .run = run};
    return xpl_sender_put(&s, XPL_STR("run/vm.xplane.pb"), fd, size, NULL, &err);
}

static void test_there_already(uint64_t size) {
    char path[] = "/tmp/xplaned-test-XXXXXX";
    const int fd = mkstemp(path);
    CHECK(fd >= 0 && unlink(path) == 0);
    for (size_t i = 0; i < size; i++)
        store.bytes[i] = (uint8_t)(i * 7 >> 3);
    store.size = size;
    CHECK_EQ(write(fd, store.bytes, size), (ssize_t)size);
    store.tries = 1; // nothing was sent before
    CHECK_EQ(put(fd, size), XPL_ALREADY_EXISTS);
    CHECK_EQ(store.asked, 0);
    store.tries = 2;
    CHECK_EQ(put(fd, size), XPL_OK);
    // Another's of the same length: its first byte, its last one, is another.
    for (int k = 0; k < 2; k++) {
        store.bytes[k ? size - 1 : 0] ^= 1;
        CHECK_EQ(put(fd, size), XPL_ALREADY_EXISTS);
        store.bytes[k ? size - 1 : 0] ^= 1;
    }
    store.size = size - 1;
    CHECK_EQ(put(fd, size), XPL_ALREADY_EXISTS);
    CHECK_EQ(close(fd), 0);
    store.asked = 0;
}

int main(void) {
    test_there_already(SMALL);
    test_there_already(LARGE);
    return 0;
}
