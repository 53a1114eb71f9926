// SPDX-License-Identifier: Apache-2.0
#include "base/text/terminal.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/std_fds.h"
#include "base/text/utf8.h"

// TAIL: the longest begin of a character, behind a carriage return.
enum { TAIL = 4, CHUNK = 4096 };

struct terminal {
    int fd;
    bool on_heap;
    size_t n_tail;
    char tail[TAIL]; // written when its end is known
};

// The length of the prefix of `s` that can be filtered without the bytes after it.
static size_t complete_length(xpl_str_t s) {
    const size_t n = xpl_utf8_whole(s).len;
    return n && s.ptr[n - 1] == '\r' ? n - 1 : n;
}

// Layout of our lines: a carriage return belongs to CSV, before a newline.
static bool is_layout(xpl_str_t s) {
    return s.ptr[0] == '\n' || s.ptr[0] == '\t' ||
           (s.ptr[0] == '\r' && s.len > 1 && s.ptr[1] == '\n');
}

static bool write_filtered(int fd, xpl_str_t s) {
    char out[TAIL + CHUNK]; // a character never becomes longer
    size_t n = 0, used = 1;
    for (size_t i = 0; i < s.len; i += used) {
        const xpl_str_t rest = xpl_str_sub(s, i, SIZE_MAX);
        xpl_str_t shown = xpl_utf8_shown(rest, &used);
        if (is_layout(rest)) shown = xpl_str_sub(rest, 0, 1);
        memcpy(out + n, shown.ptr, shown.len);
        n += shown.len;
    }
    return xpl_write_all(fd, out, n);
}

static ssize_t write_to(void *cookie, const char *p, size_t n) {
    struct terminal *const t = cookie;
    char in[TAIL + CHUNK];
    for (size_t at = 0, part; at < n; at += part) {
        part = n - at < CHUNK ? n - at : CHUNK;
        memcpy(in, t->tail, t->n_tail);
        memcpy(in + t->n_tail, p + at, part);
        const xpl_str_t all = {in, t->n_tail + part};
        const size_t known = complete_length(all);
        t->n_tail = all.len - known;
        memcpy(t->tail, in + known, t->n_tail);
        if (!write_filtered(t->fd, xpl_str_sub(all, 0, known))) return 0; // stdio's error
    }
    return (ssize_t)n;
}

static int close_it(void *cookie) {
    struct terminal *const t = cookie;
    const int fd = t->fd;
    if (t->on_heap) xpl_sys_free(t);
    return close(fd);
}

static FILE *open_filtered(struct terminal *t) {
    const cookie_io_functions_t functions = {.write = write_to, .close = close_it};
    return fopencookie(t, "w", functions);
}

FILE *xpl_terminal_open(int fd) {
    if (!isatty(fd)) return fdopen(fd, "wb");
    struct terminal *const t = xpl_sys_alloc(sizeof *t);
    if (!t) errno = ENOMEM;
    if (!t) return NULL;
    *t = (struct terminal){.fd = fd, .on_heap = true};
    FILE *const f = open_filtered(t);
    if (!f) xpl_sys_free(t);
    return f;
}

// glibc's streams are variables that may be set.
static void guard(FILE **stream, struct terminal *t, int buffering) {
    FILE *const f = isatty(t->fd) ? open_filtered(t) : NULL;
    if (!f) return;
    (void)setvbuf(f, NULL, buffering, 0);
    *stream = f;
}

void xpl_terminal_guard(void) {
    static struct terminal out = {.fd = STDOUT_FILENO}, err = {.fd = STDERR_FILENO};
    guard(&stdout, &out, _IOLBF);
    guard(&stderr, &err, _IONBF);
}

void xpl_terminal_text(xpl_str_t s, size_t max, FILE *out) {
    char text[512]; // stderr writes whatever it gets at once
    size_t n = 0;
    for (size_t i = 0, used; i < s.len && max > 0; i += used, max--) {
        const xpl_str_t c = xpl_utf8_shown(xpl_str_sub(s, i, SIZE_MAX), &used);
        memcpy(text + n, c.ptr, c.len);
        n += c.len;
        if (n + 4 <= sizeof text) continue;
        (void)fwrite(text, 1, n, out);
        n = 0;
    }
    (void)fwrite(text, 1, n, out);
}

void xpl_terminal_clear_line(void) {
    static const char clear[] = "\r\033[K";
    (void)fflush(stderr);
    (void)xpl_write_all(STDERR_FILENO, clear, sizeof clear - 1);
}
