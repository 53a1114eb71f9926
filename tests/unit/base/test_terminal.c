// SPDX-License-Identifier: Apache-2.0
// base/text/terminal: what a pseudo terminal gets, however the text is cut into writes, and what
// files and pipes get.
#include "base/text/terminal.h"

#include <pty.h>
#include <termios.h>
#include <unistd.h>

#include "tests/check.h"

// The escape to clear a line, a window's title ended by BEL, DEL, CSI as a C1 control, a line
// separator, directions of text, ill-formed bytes, a single carriage return and two ends of lines.
#define HOSTILE                                                                                    \
    "a\x1b[2J\x1b]0;t\x07\x7f\xc2\x9b"                                                             \
    "31m\xe2\x80\xa8\xe2\x80\xae\xe2\x81\xa7\xe2\x80\x8f\xd8\x9c\xff\xe2\x82\xc3*\rb\r\nc\td\n"    \
    "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"
#define SHOWN                                                                                      \
    "a?[2J?]0;t???31m????????*?b\r\nc\td\n"                                                        \
    "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"

static char got[4096];

// All that was written, after the other side was closed.
static size_t read_all(int fd) {
    size_t n = 0;
    for (ssize_t more; (more = read(fd, got + n, sizeof got - n)) > 0;)
        n += (size_t)more;
    CHECK(n < sizeof got);
    CHECK_EQ(close(fd), 0);
    return n;
}

// A terminal that changes nothing.
static void open_raw(int *ret_side, int *ret_fd) {
    struct termios raw;
    CHECK_EQ(openpty(ret_side, ret_fd, NULL, NULL, NULL), 0);
    CHECK_EQ(tcgetattr(*ret_fd, &raw), 0);
    cfmakeraw(&raw);
    CHECK_EQ(tcsetattr(*ret_fd, TCSANOW, &raw), 0);
}

static void put(FILE *f, const char *p, size_t n, size_t part) {
    for (size_t at = 0; at < n; at += part) {
        const size_t some = n - at < part ? n - at : part;
        CHECK_EQ(fwrite(p + at, 1, some, f), some);
        CHECK_EQ(fflush(f), 0);
    }
}

static void test_pieces(void) {
    const xpl_str_t text = XPL_STR(HOSTILE), shown = XPL_STR(SHOWN);
    for (size_t part = 1; part <= text.len; part++) {
        int side, fd;
        open_raw(&side, &fd);
        FILE *const f = xpl_terminal_open(fd);
        CHECK(f);
        put(f, text.ptr, text.len, part);
        CHECK_EQ(fclose(f), 0);
        CHECK_BYTES(got, read_all(side), shown.ptr, shown.len); // fclose has closed its side
    }
}

// Longer than the filter's chunk, with a character at every place.
static void test_long(void) {
    static char text[9000];
    for (size_t i = 0; i + 3 <= sizeof text; i += 3)
        memcpy(text + i, "\xe2\x80\xae", 3);
    for (size_t shift = 0; shift < 3; shift++) {
        int side, fd;
        open_raw(&side, &fd);
        FILE *const f = xpl_terminal_open(fd);
        CHECK(f);
        CHECK_EQ(setvbuf(f, NULL, _IONBF, 0), 0);
        CHECK_EQ(fwrite("\xc3\xa9", 1, shift, f), shift); // half a character is one '?'
        CHECK_EQ(fwrite(text, 1, sizeof text, f), sizeof text);
        CHECK_EQ(fclose(f), 0);
        const size_t n = read_all(side);
        CHECK_EQ(n, sizeof text / 3 + shift);
        for (size_t i = shift; i < n; i++)
            CHECK_EQ(got[i], '?');
    }
}

static void test_error(void) {
    int side, fd;
    open_raw(&side, &fd);
    FILE *const f = xpl_terminal_open(fd);
    CHECK(f);
    CHECK_EQ(close(side), 0);
    CHECK(fputs("text", f) >= 0);
    CHECK_EQ(fflush(f), EOF);
    CHECK(ferror(f));
    (void)fclose(f);
}

static void test_pipe(void) {
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    FILE *const f = xpl_terminal_open(ends[1]);
    CHECK(f);
    put(f, HOSTILE, sizeof HOSTILE - 1, 7);
    CHECK_EQ(fclose(f), 0);
    CHECK_BYTES(got, read_all(ends[0]), HOSTILE, sizeof HOSTILE - 1);
}

// In a line of ours ends of lines are foreign, too, whatever the line is written to.
static void test_text(void) {
    char *text = NULL;
    size_t n = 0;
    FILE *const f = open_memstream(&text, &n);
    CHECK(f);
    xpl_terminal_text(XPL_STR("a\nb\tc\r\xc2\x85\xc3\xa9"), SIZE_MAX, f);
    xpl_terminal_text(XPL_STR("\xc3\xa9\xc3\xa9\xc3\xa9"), 2, f);
    for (size_t i = 0; i < 300; i++)
        xpl_terminal_text(XPL_STR("\xc3\xa9\xc3\xa9\xc3\xa9\n"), SIZE_MAX, f);
    CHECK_EQ(fclose(f), 0);
    CHECK_EQ(n, 9 + 4 + 300 * 7);
    CHECK_BYTES(text, 13, "a?b?c??\xc3\xa9\xc3\xa9\xc3\xa9", 13);
    CHECK_BYTES(text + n - 7, 7, "\xc3\xa9\xc3\xa9\xc3\xa9?", 7);
    free(text);
}

// The streams of the program itself; our own escapes go past the filter.
static void test_guard(void) {
    int side, fd;
    open_raw(&side, &fd);
    const int out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);
    FILE *const was_out = stdout, *const was_err = stderr;
    CHECK(dup2(fd, STDOUT_FILENO) >= 0 && dup2(fd, STDERR_FILENO) >= 0);
    xpl_terminal_guard();
    printf("%s\r\n", "\x1b[1m");
    fprintf(stderr, "%s", "\xc2\x9b");
    xpl_terminal_clear_line();
    FILE *const guarded_out = stdout, *const guarded_err = stderr;
    stdout = was_out, stderr = was_err;
    CHECK(dup2(out, STDOUT_FILENO) >= 0 && dup2(err, STDERR_FILENO) >= 0);
    CHECK(guarded_out != was_out && guarded_err != was_err);
    CHECK_EQ(close(fd) | close(out) | close(err), 0);
    CHECK_BYTES(got, read_all(side), "?[1m\r\n?\r\x1b[K", 11);
}

int main(void) {
    test_pieces();
    test_long();
    test_error();
    test_pipe();
    test_text();
    test_guard();
    return 0;
}
