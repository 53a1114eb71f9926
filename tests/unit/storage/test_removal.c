// SPDX-License-Identifier: Apache-2.0
// Removing sessions and uploads: what is named goes, everything else stays.
#include "storage/sessions/removal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <time.h>

#include "storage/sessions/uploads.h"
#include "tests/unit/storage/store_helpers.h"

static bool match(xpl_str_t file, xpl_str_t *ret_host, unsigned *ret_rank,
                  const char **ret_refusal) {
    const bool other = xpl_str_ends(file, XPL_STR(".xplane.old"));
    if (!other && !xpl_str_ends(file, XPL_STR(".xplane.pb"))) return false;
    *ret_host = xpl_str_sub(file, 0, file.len - 10);
    *ret_rank = other;
    *ret_refusal = other ? "not read" : NULL;
    return true;
}

static void make(const char *cmd) {
    char whole[600];
    (void)snprintf(whole, sizeof whole, "cd %s && %s", store_dir, cmd);
    CHECK(system(whole) == 0);
}

static bool is_there(const char *file) {
    return access(in_dir(file), F_OK) == 0;
}

static void test_sessions(void) {
    struct stat sb;
    struct xpl_error err = {0};
    new_dir();
    make("mkdir -p p/run/sub p/two p/all && touch p/run/a.xplane.pb p/run/b.xplane.old "
         "p/run/capture.json p/run/notes.txt p/two/a.xplane.pb p/all/x p/all/.y.part && "
         "ln -s two p/link");
    CHECK_EQ(xpl_session_count_files(store_dir, "p/run", match), 2);
    CHECK_EQ(xpl_session_count_files(store_dir, "p/all", match), 1); // that is being written
    CHECK_EQ(xpl_session_count_files(store_dir, "p/none", match), 0);
    CHECK_EQ(xpl_session_remove(store_dir, "p/run", match, false, 0, 0, &err), XPL_OK);
    CHECK(!is_there("p/run/a.xplane.pb") && !is_there("p/run/capture.json"));
    CHECK(is_there("p/run/b.xplane.old") && is_there("p/run/notes.txt") && is_there("p/run/sub"));
    CHECK_EQ(xpl_session_remove(store_dir, "p/none", match, false, 0, 0, &err), XPL_NOT_FOUND);
    err = (struct xpl_error){0};
    CHECK_EQ(xpl_session_remove(store_dir, "p/link", match, true, 0, 0, &err),
             XPL_FAILED_PRECONDITION);
    CHECK(is_there("p/two/a.xplane.pb"));
    CHECK(stat(in_dir("p/all"), &sb) == 0); // another directory than the one that was meant
    CHECK_EQ(xpl_session_remove(store_dir, "p/two", match, true, sb.st_dev, sb.st_ino, &err),
             XPL_FAILED_PRECONDITION);
    CHECK(is_there("p/two/a.xplane.pb"));
    CHECK_EQ(xpl_session_remove(store_dir, "p/all", match, true, sb.st_dev, sb.st_ino, NULL),
             XPL_OK);
    CHECK(!is_there("p/all") && is_there("p"));
    remove_dir();
}

static void test_leftovers(void) {
    struct stat sb;
    new_dir();
    make("mkdir -p s/.xplaned-dir && touch s/.xplaned-1.part s/.xplaned-2.part s/.xplaned-dir/x");
    CHECK(stat(in_dir("s"), &sb) == 0);
    const int fd = open(in_dir("s/.xplaned-2.part"), O_RDONLY);
    CHECK(fd >= 0 && flock(fd, LOCK_EX) == 0); // somebody writes it
    xpl_session_clean(in_dir("s"), sb.st_dev, sb.st_ino + 1);
    CHECK(is_there("s/.xplaned-1.part"));
    xpl_session_clean(in_dir("s"), sb.st_dev, sb.st_ino);
    CHECK(!is_there("s/.xplaned-1.part") && !is_there("s/.xplaned-dir"));
    CHECK(is_there("s/.xplaned-2.part"));
    CHECK(close(fd) == 0);
    xpl_session_clean(in_dir("s"), sb.st_dev, sb.st_ino);
    CHECK(!is_there("s"));
    remove_dir();
}

static void test_uploads(void) {
    int fd = -1, again = -1;
    struct xpl_error err = {0};
    new_dir();
    const char *const dir = in_dir("incoming");
    CHECK_EQ(xpl_upload_open(dir, 7, &fd, &err), XPL_UNAVAILABLE);
    xpl_uploads_sweep(dir, 100);
    CHECK_EQ(xpl_upload_open(dir, 7, &fd, NULL), XPL_OK);
    CHECK(write(fd, "abc", 3) == 3);
    CHECK_EQ(xpl_upload_open(dir, 7, &again, NULL), XPL_ABORTED);
    CHECK(close(fd) == 0);
    xpl_uploads_sweep(dir, 100); // young
    CHECK_EQ(xpl_upload_open(dir, 7, &fd, NULL), XPL_OK);
    char got[4] = {0};
    CHECK(read(fd, got, 3) == 3 && strcmp(got, "abc") == 0);
    CHECK_EQ(xpl_upload_open(dir, 8, &again, NULL), XPL_OK);
    const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    CHECK(futimens(again, old) == 0);
    xpl_uploads_sweep(dir, 100);
    CHECK(is_there("incoming/0000000000000007.part") &&
          !is_there("incoming/0000000000000008.part"));
    xpl_upload_remove(dir, 7);
    xpl_upload_remove(dir, 7);
    CHECK(!is_there("incoming/0000000000000007.part"));
    CHECK(close(fd) == 0 && close(again) == 0);
    remove_dir();
}

int main(void) {
    test_sessions();
    test_leftovers();
    test_uploads();
    return 0;
}
