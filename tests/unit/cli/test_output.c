// SPDX-License-Identifier: Apache-2.0
// Where answers go: an incomplete answer leaves no file. tests/cli/test_cli.py tests full disks.
#include "cli/output.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/check.h"

static char folder[] = "/tmp/xplaned-output-XXXXXX";
static char path[64];

static bool print_all(const void *text, FILE *out) {
    return fputs(text, out) >= 0;
}

// As a table does that memory is too small for, after the line above it.
static bool print_half(const void *text, FILE *out) {
    (void)fputs(text, out);
    return false;
}

static void holds(const char *expected) {
    char text[64];
    FILE *const f = fopen(path, "re");
    CHECK(f);
    const size_t n = fread(text, 1, sizeof text, f);
    (void)fclose(f);
    CHECK_STR(((xpl_str_t){text, n}), expected);
}

static size_t n_entries(void) {
    size_t n = 0;
    DIR *const d = opendir(folder);
    CHECK(d);
    for (struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.' || strlen(e->d_name) > 2;
    (void)closedir(d);
    return n;
}

int main(void) {
    CHECK(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/answer", folder);
    CHECK(!xpl_output_print(path, print_half, "half"));
    CHECK_EQ(n_entries(), 0);
    CHECK(xpl_output_print(path, print_all, "all"));
    holds("all");
    CHECK(!xpl_output_print(path, print_half, "half"));
    holds("all");
    CHECK_EQ(n_entries(), 1);
    CHECK(!xpl_output_print(NULL, print_half, "half"));
    CHECK(xpl_output_print("-", print_all, "all\n"));
    CHECK(unlink(path) == 0 && rmdir(folder) == 0);
    return 0;
}
