// SPDX-License-Identifier: Apache-2.0
// Removing sessions from a bucket: the removed objects, their order, and the kept ones.
#include <stdlib.h>

#include "storage/sessions/removal.h"
#include "tests/unit/storage/fake_objects.h"

#define RUN "a/plugins/profile/run/"

static char dir[] = "/tmp/xplaned-test-XXXXXX";

static bool match(xpl_str_t file, struct xpl_profile_file *ret) {
    const bool other = xpl_str_ends(file, XPL_STR(".xplane.old"));
    if (!other && !xpl_str_ends(file, XPL_STR(".xplane.pb"))) return false;
    *ret = (struct xpl_profile_file){.host = xpl_str_sub(file, 0, file.len - 10),
                                     .rank = other,
                                     .refusal = other ? "not read" : NULL};
    return true;
}

static void fill(const char *const *paths) {
    fake.n_put = 0;
    fake.failure = XPL_OK;
    fake.max_names = 0;
    for (; *paths; paths++)
        (void)snprintf(fake.put[fake.n_put++].path, sizeof fake.put->path, "%s", *paths);
}

static bool has(const char *path) {
    for (size_t i = 0; i < fake.n_put; i++)
        if (strcmp(fake.put[i].path, path) == 0) return true;
    return false;
}

static void check(const char *path, const struct xpl_session_made *made, xpl_status_t code,
                  const char *why) {
    struct xpl_error err = {0};
    CHECK_STATUS(xpl_session_remove_objects(&fake.base, path, match, made, &err), code, &err);
    CHECK(strstr(err.msg, why));
}

static void test_what_goes(void) {
    static const char *const run[] = {
        RUN "vm.xplane.pb", RUN "old.xplane.old",     RUN "capture.json",   RUN "vm.op_stats.pb",
        RUN "notes.txt",    RUN "below/vm.xplane.pb", "a/plugins/other.pb", NULL};
    static const char *const flat[] = {"b/vm.xplane.pb", "b/old.xplane.old", "b/vm.op_stats.pb",
                                       "b/capture.json", "bb/vm.xplane.pb",  NULL};
    fill(run);
    check("a/plugins/profile/run", NULL, XPL_OK, "");
    CHECK_EQ(fake.n_put, 3);
    CHECK(has(RUN "notes.txt") && has(RUN "below/vm.xplane.pb") && has("a/plugins/other.pb"));
    check("a/plugins/profile/run", NULL, XPL_NOT_FOUND, "nothing of a session is there");
    check("a/plugins/profile/none", NULL, XPL_NOT_FOUND, "nothing of a session is there");
    // Not a run of XProf's: files next to profiles there may belong to a user.
    fill(flat);
    check("b", NULL, XPL_OK, "");
    CHECK_EQ(fake.n_put, 3);
    CHECK(has("b/old.xplane.old") && has("b/vm.op_stats.pb") && has("bb/vm.xplane.pb"));
}

static void test_failures(void) {
    static const char *const run[] = {RUN "vm.xplane.pb", RUN "capture.json", NULL};
    fill(run);
    fake.failure = XPL_PERMISSION_DENIED;
    fake.only_failing = "a removal";
    check("a/plugins/profile/run", NULL, XPL_PERMISSION_DENIED, "the fake fails");
    fake.only_failing = "a/plugins/profile/run";
    check("a/plugins/profile/run", NULL, XPL_PERMISSION_DENIED, "the fake fails");
    CHECK_EQ(fake.n_put, 2);
    fake.failure = XPL_OK;
    fake.only_failing = NULL;
}

// What a schedule knows of its session.
static void test_made(void) {
    static const char *const run[] = {RUN "one.xplane.pb", RUN "two.xplane.pb", NULL};
    static const struct fake_object later[] = {{RUN "one.xplane.pb", "\"1\"", ""}};
    const int64_t written_ms = INT64_C(1700000000000); // of the objects in fake.v
    const struct xpl_session_made fewer = {1, written_ms}, right = {2, written_ms},
                                  earlier = {1, written_ms - 16 * 60 * 1000},
                                  same = {1, written_ms - 14 * 60 * 1000};
    fill(run);
    check("a/plugins/profile/run", &fewer, XPL_FAILED_PRECONDITION, "profiles of others");
    CHECK_EQ(fake.n_put, 2);
    check("a/plugins/profile/run", &right, XPL_OK, "");
    CHECK_EQ(fake.n_put, 0);
    memcpy(fake.v, later, sizeof later);
    check("a/plugins/profile/run", &earlier, XPL_FAILED_PRECONDITION, "written later");
    check("a/plugins/profile/run", &same, XPL_OK, "");
    memset(fake.v, 0, sizeof fake.v);
}

int main(void) {
    char cmd[100];
    struct xpl_error err = {0};
    CHECK(mkdtemp(dir));
    CHECK_OK(xpl_objects_init(&fake.base, &fake_ops, XPL_STR("place"), dir, 1 << 20, &err), &err);
    test_what_goes();
    test_failures();
    test_made();
    xpl_objects_unref(&fake.base);
    (void)snprintf(cmd, sizeof cmd, "rm -r '%s'", dir);
    CHECK_EQ(system(cmd), 0);
    return 0;
}
