// SPDX-License-Identifier: Apache-2.0
// Sessions that go to a bucket: what is sent and when, names that exist there, abandoned uploads,
// and the room that files have until they are sent.
#include "storage/sessions/outgoing.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "tests/unit/storage/fake_objects.h"

#define RUN "plugins/profile/run/"

static char dir[] = "/tmp/xplaned-test-XXXXXX";
static struct xpl_outgoing *out;

static xpl_status_t open_writer(bool unique, const struct xpl_cancel *cancel,
                                struct xpl_session_writer **ret, struct xpl_error *err) {
    const struct xpl_session_writer_options o = {.size = sizeof o,
                                                 .name = XPL_STR("run"),
                                                 .unique = unique,
                                                 .remote = xpl_outgoing_get_remote(out),
                                                 .cancel = cancel};
    return xpl_session_writer_open(&o, ret, err);
}

static struct xpl_session_writer *begin(bool unique) {
    struct xpl_error err = {0};
    struct xpl_session_writer *s = NULL;
    CHECK_OK(open_writer(unique, NULL, &s, &err), &err);
    return s;
}

static xpl_status_t write_file(struct xpl_session_writer *s, const char *stem, const char *text,
                               bool unique, bool synced, struct xpl_error *err) {
    char temp[XPL_SESSION_WRITER_TEMP_SIZE], name[XPL_SESSION_WRITER_NAME_SIZE] = {0};
    int fd;
    (void)snprintf(name, sizeof name, "%s", stem);
    XPL_TRY(xpl_session_writer_open_temp(s, temp, &fd, err));
    const xpl_bytes_t bytes = {(const uint8_t *)text, strlen(text)};
    xpl_status_t st = xpl_session_writer_write(s, fd, bytes, err);
    CHECK_EQ(close(fd), 0);
    if (st == XPL_OK)
        st = xpl_session_writer_publish(s, temp, name, ".pb",
                                        unique ? XPL_TAKEN_NUMBER : XPL_TAKEN_REFUSE, synced, err);
    if (st != XPL_OK) xpl_session_writer_drop_temp(s, temp);
    return st;
}

static int count_files(void) {
    char cmd[200];
    int n = -1;
    (void)snprintf(cmd, sizeof cmd, "find '%s' -type f ! -name boot | wc -l", dir);
    FILE *const p = popen(cmd, "r");
    CHECK(p && fscanf(p, "%d", &n) == 1);
    (void)pclose(p);
    return n;
}

static void check_put(size_t i, const char *path, const char *bytes) {
    CHECK(i < fake.n_put);
    CHECK_STR(fake.put[i].path, path);
    CHECK_STR(fake.put[i].bytes, bytes);
}

// At once, or by the sync at the end; nothing stays here.
static void test_sent(void) {
    struct xpl_error err = {0};
    struct xpl_session_writer *s = begin(true);
    CHECK_OK(write_file(s, "a", "aaa", false, true, &err), &err);
    check_put(0, RUN "a.pb", "aaa");
    CHECK_OK(write_file(s, "b", "bb", false, false, &err), &err);
    CHECK_EQ(fake.n_put, 1);
    CHECK_OK(xpl_session_writer_sync(s, &err), &err);
    CHECK_EQ(fake.n_put, 2);
    check_put(1, RUN "b.pb", "bb");
    CHECK_EQ(count_files(), 2);
    xpl_session_writer_close(s);
    CHECK_EQ(count_files(), 0);
    // The name is taken, also where nothing of it is here any more.
    s = begin(true);
    CHECK_STR(xpl_session_writer_get_name(s), "run_2");
    xpl_session_writer_close(s);
    CHECK_EQ(fake.n_put, 2);
}

// Names of files that the bucket has.
static void test_taken(void) {
    struct xpl_error err = {0};
    bool has = false;
    struct xpl_session_writer *const s = begin(false);
    CHECK_STR(xpl_session_writer_get_name(s), "run");
    CHECK_OK(xpl_session_writer_has(s, "a.pb", &has, &err), &err);
    CHECK(has);
    CHECK_OK(xpl_session_writer_has(s, "c.pb", &has, &err), &err);
    CHECK(!has);
    CHECK_STATUS(write_file(s, "a", "other", false, true, &err), XPL_ALREADY_EXISTS, &err);
    CHECK_OK(write_file(s, "a", "other", true, true, &err), &err);
    check_put(2, RUN "a_2.pb", "other");
    // Removal and rollback apply there, too; objects of other writers stay.
    xpl_session_writer_remove(s, "a", ".pb");
    CHECK_EQ(fake.n_put, 3);
    xpl_session_writer_remove(s, "a_2", ".pb");
    CHECK_EQ(fake.n_put, 2);
    CHECK_OK(write_file(s, "c", "c", false, true, &err), &err);
    xpl_session_writer_undo(s);
    CHECK_EQ(fake.n_put, 2);
    xpl_session_writer_close(s);
    CHECK_EQ(count_files(), 0);
}

static bool is_cancelled(void *arg) {
    return *(bool *)arg;
}

static bool is_cancelled_soon(void *arg) {
    return (*(int *)arg)++ > 0;
}

// Cancelled while the last file was sent, which is there all the same: it is known, and goes again.
static void test_cancelled_late(void) {
    struct xpl_error err = {0};
    struct xpl_session_writer *s = NULL;
    int asked = 0;
    const struct xpl_cancel cancel = {is_cancelled_soon, &asked};
    CHECK_OK(open_writer(false, &cancel, &s, &err), &err);
    CHECK_OK(write_file(s, "late", "late", false, false, &err), &err);
    CHECK_STATUS(xpl_session_writer_sync(s, &err), XPL_CANCELLED, &err);
    CHECK_EQ(fake.n_put, 3);
    xpl_session_writer_undo(s);
    CHECK_EQ(fake.n_put, 2);
    xpl_session_writer_close(s);
}

static void test_failures(void) {
    struct xpl_error err = {0};
    struct xpl_session_writer *s = begin(false);
    fake.failure = XPL_PERMISSION_DENIED;
    fake.only_failing = "a put";
    CHECK_STATUS(write_file(s, "d", "d", true, true, &err), XPL_PERMISSION_DENIED, &err);
    CHECK(strstr(err.msg, "the fake fails"));
    CHECK_EQ(count_files(), 0);
    err = (struct xpl_error){0};
    CHECK_OK(write_file(s, "d", "d", true, false, &err), &err);
    CHECK_STATUS(xpl_session_writer_sync(s, &err), XPL_PERMISSION_DENIED, &err);
    xpl_session_writer_close(s);
    CHECK_EQ(count_files(), 0);
    fake.only_failing = NULL; // it cannot be told whether the name is free
    err = (struct xpl_error){0};
    CHECK_STATUS(open_writer(true, NULL, &s, &err), XPL_PERMISSION_DENIED, &err);
    fake.failure = XPL_OK;
    bool cancelled = false;
    const struct xpl_cancel cancel = {is_cancelled, &cancelled};
    err = (struct xpl_error){0};
    CHECK_OK(open_writer(false, &cancel, &s, &err), &err);
    CHECK_OK(write_file(s, "e", "e", false, false, &err), &err);
    cancelled = true;
    CHECK_STATUS(xpl_session_writer_sync(s, &err), XPL_CANCELLED, &err);
    xpl_session_writer_undo(s);
    xpl_session_writer_close(s);
    CHECK_EQ(fake.n_put, 2);
    CHECK_EQ(count_files(), 0);
}

static void test_room(void) {
    struct xpl_error err = {0};
    char text[101];
    memset(text, 'x', 100);
    text[100] = 0;
    struct xpl_session_writer *const s[] = {begin(false), begin(false)};
    CHECK_OK(write_file(s[0], "f", text, false, false, &err), &err);
    CHECK_STATUS(write_file(s[1], "g", "g", false, false, &err), XPL_RESOURCE_EXHAUSTED, &err);
    CHECK(strstr(err.msg, "--object-cache"));
    xpl_session_writer_close(s[0]);
    err = (struct xpl_error){0};
    CHECK_OK(write_file(s[1], "g", text, false, false, &err), &err);
    xpl_session_writer_close(s[1]);
}

// What a process that was killed left goes; what another one has stays.
static void test_leftovers(void) {
    char path[200];
    struct xpl_outgoing *other = NULL;
    struct xpl_error err = {0};
    struct stat sb;
    (void)snprintf(path, sizeof path,
                   "mkdir -p '%s/session-gone/plugins/profile/run/hidden' && "
                   "touch '%s/session-gone/plugins/profile/run/x'",
                   dir, dir);
    CHECK_EQ(system(path), 0);
    CHECK_OK(xpl_outgoing_new(&fake.base, dir, 100, &other, &err), &err);
    (void)snprintf(path, sizeof path, "%s/session-gone", dir);
    CHECK(stat(path, &sb) != 0);
    CHECK(stat(xpl_outgoing_get_remote(out)->dir, &sb) == 0);
    (void)snprintf(path, sizeof path, "%s", xpl_outgoing_get_remote(other)->dir);
    xpl_outgoing_free(other);
    CHECK(stat(path, &sb) != 0);
    CHECK_STATUS(xpl_outgoing_new(&fake.base, "/dev/null/x", 100, &other, &err), XPL_UNAVAILABLE,
                 &err);
}

int main(void) {
    char cmd[100];
    struct xpl_error err = {0};
    CHECK(mkdtemp(dir));
    CHECK_OK(xpl_objects_init(&fake.base, &fake_ops, XPL_STR("place"), dir, 1 << 20, &err), &err);
    CHECK_OK(xpl_outgoing_new(&fake.base, dir, 100, &out, &err), &err);
    test_sent();
    test_taken();
    test_failures();
    test_cancelled_late();
    test_room();
    test_leftovers();
    xpl_outgoing_free(out);
    xpl_objects_unref(&fake.base);
    (void)snprintf(cmd, sizeof cmd, "rm -r '%s'", dir);
    CHECK_EQ(system(cmd), 0);
    return 0;
}
