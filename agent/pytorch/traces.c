// SPDX-License-Identifier: Apache-2.0
#include "agent/pytorch/traces.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/collect.h"
#include "analysis/wire/writer.h"
#include "analysis/wire/zlib.h"
#include "base/arena.h"

// proto/tensorflow/profiler_service.proto
enum { RESPONSE_TOOL_DATA = 6, TOOL_NAME = 1, TOOL_BYTES = 2, FIELD_LEN = 2 };
enum {
    PIECE = 256 << 10,
    OVERLAP = 16, // more than the longest of the marks below
    TAIL = 1024,  // bytes at the end that show whether the trace is complete
    LENGTH = 5,   // bytes of a length that is known later: enough for 2 GiB
};

// ---- protobuf ----

static void put_varint(struct xpl_buf *b, uint64_t v) {
    uint8_t bytes[10];
    xpl_buf_put(b, bytes, (size_t)(xpl_varint_put(bytes, v) - bytes));
}

static void put_key(struct xpl_buf *b, unsigned field) {
    put_varint(b, field << 3 | FIELD_LEN);
}

// Room for a length; returns where.
static size_t put_length(struct xpl_buf *b) {
    for (int i = 0; i < LENGTH; i++)
        xpl_buf_putc(b, 0);
    return b->n;
}

// Sets the length in front of `at` to the number of bytes from there on.
static void set_length(struct xpl_buf *b, size_t at) {
    size_t v = b->n - at;
    for (size_t i = at - LENGTH; i < at; i++, v >>= 7)
        b->p[i] = (uint8_t)((v & 0x7f) | (i + 1 < at ? 0x80 : 0));
}

static void put_name(struct xpl_buf *b, const char *name) {
    put_key(b, TOOL_NAME);
    put_varint(b, strlen(name));
    xpl_buf_put(b, name, strlen(name));
}

void xpl_pytorch_put_text(const char *name, xpl_str_t text, struct xpl_buf *out) {
    put_key(out, RESPONSE_TOOL_DATA);
    const size_t at = put_length(out);
    put_name(out, name);
    put_key(out, TOOL_BYTES);
    put_varint(out, text.len);
    xpl_buf_str(out, text);
    if (!out->failed) set_length(out, at);
}

// ---- the file ----

struct taking {
    int fd;
    const atomic_int *state; // of the capture
    uint64_t left;           // bytes of the file
    struct xpl_buf *out;
    bool any_op, is_gzip; // a gzip file is copied unread
    size_t kept;          // of the piece before, at the buffer's begin
    uint8_t buffer[OVERLAP + PIECE];
    z_stream zip;
};

// Whether a piece has an event of an op or of a device.
static bool has_op(const uint8_t *p, size_t n) {
    static const char *const marks[] = {"\"cpu_op\"", "\"kernel\"", "\"gpu_memcpy\"",
                                        "\"Operator\"", "\"Kernel\""};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (memmem(p, n, marks[i], strlen(marks[i]))) return true;
    return false;
}

// The next piece, behind the kept bytes; 0 at the end, below 0 on errors.
static ssize_t next_piece(struct taking *t) {
    const size_t size = t->left < PIECE ? (size_t)t->left : PIECE;
    if (!size) return 0;
    ssize_t n;
    do
        n = read(t->fd, t->buffer + t->kept, size);
    while (n < 0 && errno == EINTR);
    if (n <= 0) return n < 0 ? n : -1; // it became shorter
    if (atomic_load(t->state) == XPL_COLLECT_CANCEL) return -1;
    t->left -= (uint64_t)n;
    if (!t->any_op && !t->is_gzip) t->any_op = has_op(t->buffer, t->kept + (size_t)n);
    return n;
}

// Compresses until nothing more can be written; false: `out` is full.
static bool compress_piece(struct taking *t, const uint8_t *p, size_t n, int flush) {
    t->zip.next_in = (Bytef *)(uintptr_t)p;
    t->zip.avail_in = (uInt)n;
    do {
        if (!xpl_buf_room(t->out, PIECE / 4)) return false;
        const size_t room = t->out->cap - t->out->n < 1 << 30 ? t->out->cap - t->out->n : 1 << 30;
        t->zip.next_out = t->out->p + t->out->n;
        t->zip.avail_out = (uInt)room;
        (void)deflate(&t->zip, flush);
        t->out->n += room - t->zip.avail_out;
    } while (t->zip.avail_out == 0);
    return true;
}

static enum xpl_pytorch_trace copy_file(struct taking *t) {
    ssize_t n;
    t->kept = 0;
    while ((n = next_piece(t)) > 0)
        xpl_buf_put(t->out, t->buffer, (size_t)n);
    if (t->out->failed) return XPL_PYTORCH_TOO_LARGE;
    return n < 0 ? XPL_PYTORCH_UNREADABLE : XPL_PYTORCH_TAKEN;
}

static enum xpl_pytorch_trace compress_file(struct taking *t) {
    ssize_t n;
    // Level 1: the machine has other work.
    t->zip = xpl_zlib_stream();
    if (deflateInit2(&t->zip, 1, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return XPL_PYTORCH_UNREADABLE;
    bool fits = true;
    while (fits && (n = next_piece(t)) > 0) {
        fits = compress_piece(t, t->buffer + t->kept, (size_t)n, Z_NO_FLUSH);
        const size_t all = t->kept + (size_t)n;
        t->kept = all < OVERLAP ? all : OVERLAP;
        memmove(t->buffer, t->buffer + all - t->kept, t->kept);
    }
    if (fits && n == 0) fits = compress_piece(t, NULL, 0, Z_FINISH);
    (void)deflateEnd(&t->zip);
    if (!fits) return XPL_PYTORCH_TOO_LARGE;
    if (n < 0) return XPL_PYTORCH_UNREADABLE;
    return t->any_op ? XPL_PYTORCH_TAKEN : XPL_PYTORCH_IDLE;
}

// Where Kineto does not rename a complete file: the trace's name is its last member.
static bool is_complete(int fd, off_t size) {
    static const char last[] = "\"traceName\"";
    char tail[TAIL];
    const off_t from = size > TAIL ? size - TAIL : 0;
    ssize_t n = pread(fd, tail, (size_t)(size - from), from);
    while (n > 0 && (tail[n - 1] == '\n' || tail[n - 1] == ' '))
        n--;
    return n > 0 && tail[n - 1] == '}' && memmem(tail, (size_t)n, last, sizeof last - 1);
}

static bool is_gzip(int fd) {
    uint8_t head[2];
    return pread(fd, head, sizeof head, 0) == sizeof head && head[0] == 0x1f && head[1] == 0x8b;
}

static enum xpl_pytorch_trace open_trace(int dir, const char *file, int *ret_fd,
                                         uint64_t *ret_size) {
    struct stat st;
    const int fd = openat(dir, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) return XPL_PYTORCH_NOT_YET;
    if (fd < 0) return errno == ELOOP ? XPL_PYTORCH_REFUSED : XPL_PYTORCH_UNREADABLE;
    enum xpl_pytorch_trace is = XPL_PYTORCH_TAKEN;
    if (fstat(fd, &st) != 0)
        is = XPL_PYTORCH_UNREADABLE;
    else if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_nlink != 1)
        is = XPL_PYTORCH_REFUSED;
    else if (!is_gzip(fd) && !is_complete(fd, st.st_size))
        is = XPL_PYTORCH_NOT_YET;
    if (is == XPL_PYTORCH_TAKEN) {
        *ret_fd = fd;
        *ret_size = (uint64_t)st.st_size;
    } else {
        (void)close(fd);
    }
    return is;
}

enum xpl_pytorch_trace xpl_pytorch_take(int dir, const char *file, const char *name,
                                        const atomic_int *state, struct xpl_buf *out) {
    const size_t before = out->n;
    int fd;
    uint64_t size;
    enum xpl_pytorch_trace is = open_trace(dir, file, &fd, &size);
    if (is != XPL_PYTORCH_TAKEN) return is;
    struct taking *const t = xpl_sys_alloc(sizeof *t);
    if (!t) {
        (void)close(fd);
        return XPL_PYTORCH_UNREADABLE;
    }
    t->fd = fd, t->state = state, t->left = size, t->out = out, t->any_op = false, t->kept = 0;
    t->is_gzip = is_gzip(fd);
    put_key(out, RESPONSE_TOOL_DATA);
    const size_t all = put_length(out);
    put_name(out, name);
    put_key(out, TOOL_BYTES);
    const size_t bytes = put_length(out);
    is = out->failed ? XPL_PYTORCH_TOO_LARGE : t->is_gzip ? copy_file(t) : compress_file(t);
    if (is == XPL_PYTORCH_TAKEN || is == XPL_PYTORCH_IDLE) {
        set_length(out, bytes);
        set_length(out, all);
    } else {
        out->n = before;
        out->failed = false; // there may be room for another one
    }
    xpl_sys_free(t);
    (void)close(fd);
    return is;
}

void xpl_pytorch_remove(int dir, const char *path) {
    const int again = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *const d = again >= 0 ? fdopendir(again) : NULL;
    if (!d && again >= 0) (void)close(again);
    for (const struct dirent *e; d && (e = readdir(d));)
        (void)unlinkat(dir, e->d_name, 0); // "." and ".." fail
    if (d) (void)closedir(d);
    (void)rmdir(path);
}
