// SPDX-License-Identifier: Apache-2.0
// Buckets that are opened, before any request: which objects are one, and which are refused.
#include "storage/objects/objects.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/check.h"

static char dir[] = "/tmp/xplaned-test-XXXXXX";

static xpl_status_t open_bucket(const char *url, bool anonymous, struct xpl_objects **ret,
                                struct xpl_error *err) {
    const struct xpl_objects_options o = {.size = sizeof o,
                                          .url = url,
                                          .endpoint = "http://127.0.0.1:1",
                                          .region = "",
                                          .anonymous = anonymous,
                                          .first_retry_ns = 1000000,
                                          .cache_dir = dir,
                                          .cache_limit = 1 << 20};
    return xpl_objects_open(&o, ret, err);
}

static void identify(const char *url, const char *path, const char *version, uint64_t ret[2]) {
    struct xpl_objects *o = NULL;
    struct xpl_error err = {0};
    const struct xpl_stored_object of = {.path = xpl_str_from(path),
                                         .version = xpl_str_from(version)};
    CHECK_OK(open_bucket(url, true, &o, &err), &err);
    xpl_objects_identify(o, &of, ret);
    xpl_objects_unref(o);
}

static void test_identity(void) {
    static const char *const other[][3] = {{"s3://bucket/b", "run/x", "\"1\""},
                                           {"s3://bucket", "run/x", "\"1\""},
                                           {"s3://another/a", "run/x", "\"1\""},
                                           {"s3://bucket/a", "run/y", "\"1\""},
                                           {"s3://bucket/a", "run/x", "\"2\""}};
    uint64_t one[2], again[2];
    identify("s3://bucket/a", "run/x", "\"1\"", one);
    identify("s3://bucket/a/", "run/x", "\"1\"", again);
    CHECK_EQ(memcmp(one, again, sizeof one), 0);
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        identify(other[i][0], other[i][1], other[i][2], again);
        CHECK(one[0] != again[0] && one[1] != again[1]);
    }
}

static void test_refused(void) {
    struct xpl_objects *o = NULL;
    struct xpl_error err = {0};
    CHECK_EQ(unsetenv("AWS_ACCESS_KEY_ID"), 0);
    CHECK_EQ(setenv("NO_GCE_CHECK", "true", 1), 0); // no metadata of machines
    CHECK_STATUS(open_bucket("gs://bucket", false, &o, &err), XPL_FAILED_PRECONDITION, &err);
    CHECK(strstr(err.msg, "gs://") && strstr(err.msg, "--object-anonymous") && !o);
    err = (struct xpl_error){0};
    CHECK_STATUS(open_bucket("s3://b", true, &o, &err), XPL_INVALID_ARGUMENT, &err);
    CHECK(!o);
}

static bool take_object(void *arg, const struct xpl_stored_object *o) {
    (void)arg;
    (void)o;
    return true;
}

static bool take_folder(void *arg, xpl_str_t name) {
    (void)arg;
    (void)name;
    return true;
}

// Requests to this machine, a token over http:// included, use no proxy.
static void test_proxy(void) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    char url[64];
    struct xpl_objects *o = NULL;
    struct xpl_error err = {0};
    const int proxy = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(proxy >= 0 && bind(proxy, (struct sockaddr *)&at, size) == 0 && listen(proxy, 8) == 0 &&
          getsockname(proxy, (struct sockaddr *)&at, &size) == 0);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d", ntohs(at.sin_port));
    CHECK_EQ(setenv("http_proxy", url, 1), 0);
    CHECK_OK(open_bucket("gs://bucket", true, &o, &err), &err);
    struct xpl_object_list list = {.object = take_object, .folder = take_folder, .max_pages = 1};
    struct pollfd waits = {.fd = proxy, .events = POLLIN};
    CHECK_EQ(alarm(60), 0); // the proxy would never answer
    CHECK_STATUS(xpl_objects_list(o, XPL_STR("."), &list, &err), XPL_UNAVAILABLE, &err);
    CHECK_EQ(poll(&waits, 1, 0), 0);
    (void)alarm(0);
    CHECK_EQ(close(proxy), 0);
    xpl_objects_unref(o);
    CHECK_EQ(unsetenv("http_proxy"), 0);
}

int main(void) {
    char cmd[100];
    CHECK(mkdtemp(dir));
    test_proxy();
    test_identity();
    test_refused();
    (void)snprintf(cmd, sizeof cmd, "rm -r '%s'", dir);
    CHECK_EQ(system(cmd), 0);
    return 0;
}
