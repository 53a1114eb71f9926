// SPDX-License-Identifier: Apache-2.0
#include "storage/places.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/check.h"

static void test_join(void) {
    char path[8];
    CHECK(xpl_place_join("/a", XPL_STR("b"), path, sizeof path));
    CHECK_STR(path, "/a/b");
    CHECK(xpl_place_join("a", (xpl_str_t){"bcdefgh", 5}, path, sizeof path));
    CHECK_STR(path, "a/bcdef");
    CHECK(!xpl_place_join("a", XPL_STR("bcdefg"), path, sizeof path)); // one byte too long
    CHECK_STR(path, "");
    CHECK(!xpl_place_join("a", XPL_STR("b"), path, 0));
}

static void test_resolve(void) {
    char path[PATH_MAX] = "as it was", target[PATH_MAX];
    CHECK(mkdir("d", 0700) == 0 && symlink("d", "link") == 0);
    CHECK(!xpl_place_resolve("none", path));
    CHECK_EQ(errno, ENOENT);
    CHECK_STR(path, "as it was");
    CHECK(xpl_place_resolve("d", target) && xpl_place_resolve("./link/../link", path));
    CHECK_STR(path, target);
    CHECK(path[0] == '/');
}

static void test_absolute(void) {
    char path[PATH_MAX], here[PATH_MAX], expected[PATH_MAX + 8], *const longest = malloc(PATH_MAX);
    CHECK(longest && getcwd(here, sizeof here));
    CHECK(xpl_place_make_absolute("/a/link//", path));
    CHECK_STR(path, "/a/link");
    CHECK(xpl_place_make_absolute("///", path));
    CHECK_STR(path, "/");
    CHECK(xpl_place_make_absolute("x/y/", path)); // need not be there
    (void)snprintf(expected, sizeof expected, "%s/x/y", here);
    CHECK_STR(path, expected);
    memset(longest, 'x', PATH_MAX - 1);
    longest[PATH_MAX - 1] = 0;
    CHECK(!xpl_place_make_absolute(longest, path));
    CHECK_EQ(errno, ENAMETOOLONG);
    free(longest);
}

int main(void) {
    char dir[] = "/tmp/xpl-places-XXXXXX";
    CHECK(mkdtemp(dir) && chdir(dir) == 0);
    test_join();
    test_resolve();
    test_absolute();
    CHECK(unlink("link") == 0 && rmdir("d") == 0 && chdir("/") == 0 && rmdir(dir) == 0);
    return 0;
}
