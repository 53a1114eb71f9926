// SPDX-License-Identifier: Apache-2.0
// Removing sessions and uploads: the named ones go, all others stay.
#include "storage/sessions/removal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <time.h>

#include "storage/sessions/beneath.h"
#include "storage/sessions/uploads.h"
#include "tests/unit/storage/store_helpers.h"

static bool match(xpl_str_t file, struct xpl_profile_file *ret) {
    const bool other = xpl_str_ends(file, XPL_STR(".xplane.old"));
    if (!other && !xpl_str_ends(file, XPL_STR(".xplane.pb"))) return false;
    *ret = (struct xpl_profile_file){.host = xpl_str_sub(file, 0, file.len - 10),
                                     .rank = other,
                                     .refusal = other ? "not read" : NULL};
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

static xpl_status_t remove_it(const char *path, uint64_t dev, uint64_t ino) {
    struct xpl_error err = {0};
    return xpl_session_remove(store_dir, path, match, dev, ino, NULL, &err);
}

static void test_sessions(void) {
    struct stat sb;
    new_dir();
    make("mkdir -p p/run/sub p/two p/all && touch p/run/a.xplane.pb p/run/b.xplane.old "
         "p/run/capture.json p/run/notes.txt p/two/a.xplane.pb p/all/a.xplane.pb && ln -s two "
         "p/link && cd p/run && touch capture_2.json capture_13.json captured_results_2024.json "
         "capture_.json capture_02.json capture_1.json capture_3a.json capture3.json "
         "capture_2.json.json Capture.json");
    CHECK_EQ(xpl_session_count_files(store_dir, "p/run", match, NULL), 2);
    CHECK_EQ(xpl_session_count_files(store_dir, "p/none", match, NULL), 0);
    CHECK_EQ(xpl_session_count_files(store_dir, "p/link", match, NULL), 0);
    CHECK_EQ(remove_it("p/run", 0, 0), XPL_OK);
    CHECK(!is_there("p/run/a.xplane.pb") && !is_there("p/run/capture.json"));
    CHECK(!is_there("p/run/capture_2.json") && !is_there("p/run/capture_13.json"));
    CHECK(is_there("p/run/b.xplane.old") && is_there("p/run/notes.txt") && is_there("p/run/sub"));
    // Somebody's own files, whose names are like those of our notes.
    CHECK(is_there("p/run/captured_results_2024.json") && is_there("p/run/capture_.json"));
    CHECK(is_there("p/run/capture_02.json") && is_there("p/run/capture_1.json"));
    CHECK(is_there("p/run/capture_3a.json") && is_there("p/run/capture3.json"));
    CHECK(is_there("p/run/capture_2.json.json") && is_there("p/run/Capture.json"));
    CHECK_EQ(remove_it("p/none", 0, 0), XPL_NOT_FOUND);
    CHECK_EQ(remove_it("p/link", 0, 0), XPL_FAILED_PRECONDITION);
    CHECK(is_there("p/two/a.xplane.pb"));
    CHECK(stat(in_dir("p/all"), &sb) == 0); // another directory than the one that was meant
    CHECK_EQ(remove_it("p/two", sb.st_dev, sb.st_ino), XPL_FAILED_PRECONDITION);
    CHECK(is_there("p/two/a.xplane.pb"));
    CHECK_EQ(remove_it("p/all", sb.st_dev, sb.st_ino), XPL_OK);
    CHECK(!is_there("p/all") && is_there("p"));
    remove_dir();
}

// Of one of XProf's run directories everything goes that a session consists of, and nothing else.
static void test_run_directory(void) {
    new_dir();
    make("mkdir -p a/plugins/profile/run a/plugins/profile/mine && cd a/plugins/profile/run && "
         "touch a.xplane.pb b.xplane.old capture.json cache_version.txt ALL_HOSTS.op_stats_v2.pb "
         "a.op_stats_v2.pb a.SSTABLE a.metadata.SSTABLE a.trie.SSTABLE "
         "ALL_HOSTS.smart_suggestion.pb "
         "NO_HOST.dcn_collective_stats.pb "
         "a.trace.json.gz m.hlo_proto.pb .xplaned-1.part .xplaned-2.part && "
         "cd ../mine && touch a.xplane.pb thesis.tex .hlo_proto.pb && ln -s ../run m.hlo_proto.pb");
    const int fd = open(in_dir("a/plugins/profile/run/.xplaned-2.part"), O_RDONLY);
    CHECK(fd >= 0 && flock(fd, LOCK_EX) == 0); // a writer has it
    CHECK_EQ(xpl_session_count_files(store_dir, "a/plugins/profile/run", match, NULL), 4);
    CHECK_EQ(remove_it("a/plugins/profile/run", 0, 0), XPL_OK);
    CHECK(is_there("a/plugins/profile/run/.xplaned-2.part"));
    CHECK(close(fd) == 0);
    CHECK_EQ(remove_it("a/plugins/profile/run", 0, 0), XPL_OK);
    CHECK(!is_there("a/plugins/profile/run"));
    CHECK_EQ(remove_it("a/plugins/profile/mine", 0, 0), XPL_OK);
    CHECK(!is_there("a/plugins/profile/mine/a.xplane.pb"));
    CHECK(is_there("a/plugins/profile/mine/thesis.tex"));
    CHECK(is_there("a/plugins/profile/mine/.hlo_proto.pb"));   // a tail without a name
    CHECK(!is_there("a/plugins/profile/mine/m.hlo_proto.pb")); // the link, not its target
    remove_dir();
}

// "myplugins/profile/thesis" is not a run directory, and contains none.
static void test_whole_components(void) {
    static const char *const others[] = {"myplugins/profile/thesis", "plugins/profile/run/deep",
                                         "plugins/profiles/x", "plugins/myprofile/y"};
    new_dir();
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char cmd[300];
        (void)snprintf(cmd, sizeof cmd,
                       "mkdir -p %s && touch %s/cache_version.txt %s/a.xplane.old %s/a.xplane.pb",
                       others[i], others[i], others[i], others[i]);
        make(cmd);
        CHECK_EQ(remove_it(others[i], 0, 0), XPL_OK);
        (void)snprintf(cmd, sizeof cmd,
                       "test -e %s/cache_version.txt -a -e %s/a.xplane.old -a ! "
                       "-e %s/a.xplane.pb",
                       others[i], others[i], others[i]);
        make(cmd);
    }
    remove_dir();
}

// A link above the session leads out of the log directory: nothing there is touched.
static void test_links_above(void) {
    new_dir();
    make("mkdir -p logs out/plugins/profile/run logs/real/plugins/profile && "
         "touch out/plugins/profile/run/a.xplane.pb && ln -s ../out logs/link && "
         "ln -s ../../../../out/plugins/profile/run logs/real/plugins/profile/run && "
         "ln -s ../out/plugins logs/plugins");
    static const char *const paths[] = {"link/plugins/profile/run", "real/plugins/profile/run",
                                        "plugins/profile/run", "../out/plugins/profile/run",
                                        "real/../link/plugins/profile/run"};
    const char *const logs = in_dir("logs");
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        CHECK_EQ(xpl_session_remove(logs, paths[i], match, 0, 0, NULL, NULL),
                 XPL_FAILED_PRECONDITION);
        CHECK_EQ(xpl_session_count_files(logs, paths[i], match, NULL), 0);
        const int top = open(logs, O_PATH | O_DIRECTORY);
        CHECK(top >= 0 && xpl_beneath_open(top, paths[i]) < 0 &&
              xpl_beneath_walk(top, paths[i]) < 0);
        CHECK(!xpl_beneath_rmdir(top, paths[i]));
        CHECK(close(top) == 0);
    }
    CHECK(is_there("out/plugins/profile/run/a.xplane.pb"));
    // An absolute path, as the history has it.
    struct stat sb;
    make("touch out/plugins/profile/run/.xplaned-1.part");
    CHECK(stat(in_dir("out/plugins/profile/run"), &sb) == 0);
    xpl_session_clean(in_dir("logs/link/plugins/profile/run"), sb.st_dev, sb.st_ino);
    CHECK(is_there("out/plugins/profile/run/.xplaned-1.part"));
    remove_dir();
}

// Both ways of opening agree.
static void test_beneath(void) {
    new_dir();
    make("mkdir -p a/b/c && touch a/file");
    const int top = open(store_dir, O_PATH | O_DIRECTORY);
    CHECK(top >= 0);
    static const char *const good[] = {".", "a", "a/b/c", "a//b/", "./a/./b"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct stat x, y;
        const int p = xpl_beneath_open(top, good[i]), q = xpl_beneath_walk(top, good[i]);
        CHECK(p >= 0 && q >= 0 && fstat(p, &x) == 0 && fstat(q, &y) == 0);
        CHECK_EQ(x.st_ino, y.st_ino);
        CHECK(close(p) == 0 && close(q) == 0);
    }
    static const struct {
        const char *path;
        int errnum;
    } bad[] = {
        {"/", EXDEV}, {"..", EXDEV}, {"a/../a", EXDEV}, {"a/x", ENOENT}, {"a/file", ENOTDIR}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(xpl_beneath_open(top, bad[i].path) < 0);
        CHECK_EQ(errno, bad[i].errnum);
        CHECK(xpl_beneath_walk(top, bad[i].path) < 0);
        CHECK_EQ(errno, bad[i].errnum);
    }
    char longer[300];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    CHECK(xpl_beneath_walk(top, longer) < 0 && errno == ENAMETOOLONG);
    CHECK(!xpl_beneath_rmdir(top, ".") && !xpl_beneath_rmdir(top, "a"));
    CHECK(xpl_beneath_rmdir(top, "a/b/c") && !is_there("a/b/c"));
    CHECK(close(top) == 0);
    remove_dir();
}

static void test_leftovers(void) {
    struct stat sb;
    new_dir();
    make("mkdir -p s/.xplaned-dir && touch s/.xplaned-1.part s/.xplaned-2.part s/.xplaned-dir/x");
    CHECK(stat(in_dir("s"), &sb) == 0);
    const int fd = open(in_dir("s/.xplaned-2.part"), O_RDONLY);
    CHECK(fd >= 0 && flock(fd, LOCK_EX) == 0); // a writer has it
    xpl_session_clean(in_dir("s"), sb.st_dev, sb.st_ino + 1);
    CHECK(is_there("s/.xplaned-1.part"));
    xpl_session_clean(in_dir("s"), sb.st_dev, sb.st_ino);
    CHECK(!is_there("s/.xplaned-1.part") && !is_there("s/.xplaned-dir"));
    CHECK(is_there("s/.xplaned-2.part"));
    CHECK(close(fd) == 0);
    xpl_session_clean(in_dir("s"), sb.st_dev, sb.st_ino);
    CHECK(!is_there("s"));
    // Noted before it was made: whatever is there, and nothing is fine, too.
    xpl_session_clean(in_dir("s"), 0, 0);
    make("mkdir -p s && touch s/.xplaned-1.part");
    xpl_session_clean(in_dir("s"), 0, 0);
    CHECK(!is_there("s"));
    make("mkdir -p s && touch s/h.xplane.pb");
    xpl_session_clean(in_dir("s"), 0, 0);
    CHECK(is_there("s/h.xplane.pb"));
    remove_dir();
}

static void write_upload(struct xpl_uploads *u, uint64_t key, size_t n, time_t age_s) {
    int fd = -1;
    CHECK_EQ(xpl_upload_open(u, key, &fd, NULL), XPL_OK);
    CHECK_EQ(xpl_upload_grow(u, key, n, NULL), XPL_OK);
    CHECK_EQ(ftruncate(fd, (off_t)n), 0);
    const struct timespec t = {.tv_sec = time(NULL) - age_s};
    CHECK(futimens(fd, (const struct timespec[]){t, t}) == 0 && close(fd) == 0);
}

static bool has_upload(uint64_t key) {
    char name[60];
    (void)snprintf(name, sizeof name, "incoming/%016llx.part", (unsigned long long)key);
    return is_there(name);
}

static void test_uploads(void) {
    int fd = -1, again = -1;
    struct xpl_error err = {0};
    new_dir();
    const char *const dir = in_dir("incoming");
    struct xpl_uploads *u = xpl_uploads_new(dir, 1000);
    CHECK_EQ(rmdir(in_dir("incoming")), 0);
    CHECK_EQ(xpl_upload_open(u, 7, &fd, &err), XPL_UNAVAILABLE);
    CHECK_EQ(mkdir(in_dir("incoming"), 0700), 0);
    xpl_uploads_sweep(u, 100);
    CHECK_EQ(xpl_upload_open(u, 7, &fd, NULL), XPL_OK);
    CHECK(write(fd, "abc", 3) == 3);
    CHECK_EQ(xpl_upload_open(u, 7, &again, NULL), XPL_ABORTED);
    CHECK(close(fd) == 0);
    CHECK_EQ(xpl_upload_open(u, 7, &again, NULL), XPL_ABORTED); // still in use
    CHECK_EQ(xpl_upload_open_again(u, 7, &fd, NULL), XPL_OK);
    struct xpl_uploads *other = xpl_uploads_new(dir, 1000); // of another daemon
    CHECK_EQ(xpl_upload_open(other, 7, &again, NULL), XPL_ABORTED);
    xpl_uploads_sweep(other, -100); // as if it were old
    CHECK(has_upload(7));
    xpl_uploads_free(other);
    CHECK(close(fd) == 0);
    xpl_upload_release(u, 7);
    xpl_uploads_sweep(u, 100); // young
    CHECK_EQ(xpl_upload_open(u, 7, &fd, NULL), XPL_OK);
    char got[4] = {0};
    CHECK(read(fd, got, 3) == 3 && strcmp(got, "abc") == 0);
    CHECK_EQ(close(fd), 0);
    write_upload(u, 8, 10, 1000);
    xpl_uploads_sweep(u, 100); // in use
    CHECK(has_upload(7) && has_upload(8));
    xpl_upload_release(u, 8);
    xpl_uploads_sweep(u, 100);
    CHECK(has_upload(7) && !has_upload(8));
    xpl_upload_remove(u, 7);
    xpl_upload_remove(u, 7);
    CHECK(!has_upload(7));
    xpl_upload_release(u, 7);
    xpl_uploads_free(u);
    remove_dir();
}

// All together stay within the limit: interrupted ones go, oldest first; running ones stay.
static void test_uploads_limit(void) {
    struct xpl_error err = {0};
    new_dir();
    struct xpl_uploads *u = xpl_uploads_new(in_dir("incoming"), 1000);
    for (uint64_t key = 1; key <= 3; key++) {
        write_upload(u, key, 300, 100 - (time_t)key);
        xpl_upload_release(u, key);
    }
    write_upload(u, 4, 300, 0);
    CHECK(!has_upload(1) && has_upload(2) && has_upload(3));
    CHECK_EQ(xpl_upload_grow(u, 4, 900, NULL), XPL_OK);
    CHECK(!has_upload(2) && !has_upload(3) && has_upload(4));
    CHECK_EQ(xpl_upload_grow(u, 4, 1001, &err), XPL_RESOURCE_EXHAUSTED);
    CHECK(strstr(err.msg, "1000 bytes"));
    write_upload(u, 5, 100, 0);
    err = (struct xpl_error){0};
    CHECK_EQ(xpl_upload_grow(u, 5, 101, &err), XPL_RESOURCE_EXHAUSTED);
    CHECK(has_upload(4) && has_upload(5));
    xpl_upload_remove(u, 4);
    xpl_upload_release(u, 4);
    CHECK_EQ(xpl_upload_grow(u, 5, 1000, NULL), XPL_OK);
    xpl_upload_release(u, 5);
    xpl_uploads_free(u);
    u = xpl_uploads_new(in_dir("incoming"), 50); // a smaller one
    xpl_uploads_sweep(u, 1000);
    CHECK(!has_upload(5));
    xpl_uploads_free(u);
    remove_dir();
}

int main(void) {
    test_sessions();
    test_run_directory();
    test_whole_components();
    test_links_above();
    test_beneath();
    test_leftovers();
    test_uploads();
    test_uploads_limit();
    return 0;
}
