// SPDX-License-Identifier: Apache-2.0
// The parts of capture/ that need no server: pieces, checks, names, files.
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/message.h"
#include "capture/profile_writer.h"
#include "tests/check.h"
#include "tests/dir_entries.h"
#include "tests/xspace_maker.h"

static struct xpl_buf small_xspace(void) {
    struct xpl_buf b = mk_open();
    for (int p = 0; p < 2; p++) {
        struct xpl_buf plane = mk_open();
        mk_int(&plane, 1, 7);
        mk_text(&plane, 2, "/host:CPU");
        for (int l = 0; l < 3; l++) {
            struct xpl_buf line = mk_open();
            mk_text(&line, 2, "a line");
            for (int e = 0; e < 4; e++) {
                struct xpl_buf event = mk_open();
                mk_int(&event, 1, 1);
                mk_int(&event, 2, 123456789012);
                mk_close(&line, 4, &event);
            }
            mk_close(&plane, 3, &line);
        }
        mk_close(&b, 1, &plane);
    }
    mk_text(&b, 4, "the-host");
    mk_text(&b, 4, "another");
    return b;
}

static xpl_status_t check_in_pieces(xpl_bytes_t x, size_t size, struct xpl_check *c) {
    xpl_check_init(c);
    for (size_t at = 0; at < x.len; at += size)
        XPL_TRY(xpl_check_put(c, (xpl_bytes_t){x.ptr + at, x.len - at < size ? x.len - at : size},
                              NULL));
    return xpl_check_end(c, NULL);
}

static void test_check(void) {
    struct xpl_buf b = small_xspace();
    const xpl_bytes_t x = {b.p, b.n};
    struct xpl_check c;
    for (size_t size = 1; size <= x.len; size++) {
        CHECK_OK(check_in_pieces(x, size, &c), NULL);
        CHECK_EQ(c.counts.planes, 2);
        CHECK_EQ(c.counts.lines, 6);
        CHECK_EQ(c.counts.events, 24);
        CHECK_EQ(c.counts.bytes, x.len);
        CHECK_STR(c.hostname, "the-host");
    }
    // Every proper prefix is cut off, unless it ends between two fields.
    size_t whole = 0;
    for (size_t n = 0; n < x.len; n++)
        for (size_t size = 1; size < 9; size += 7)
            whole += check_in_pieces((xpl_bytes_t){x.ptr, n}, size, &c) == XPL_OK;
    CHECK_EQ(whole, 2 * 3); // after the first plane, the second, the first host name
    // A plane that claims one byte more than there is, and one whose line does.
    b.p[1]++;
    CHECK_STATUS(check_in_pieces(x, 5, &c), XPL_DATA_LOSS, NULL);
    xpl_buf_fini(&b);
    // A line that is longer than its plane, and a tag that does not end within its plane, are seen
    // where they are, not at the end of it all.
    static const uint8_t beyond[][9] = {{0x0a, 3, 0x1a, 2, 0x20, 1, 0x0a, 0, 0},
                                        {0x0a, 2, 0x82, 0x80, 0x01, 0x0a, 0, 0x0a, 0},
                                        {0x0a, 2, 0x1a, 0x80, 0x01, 0x0a, 0, 0x0a, 0}};
    for (size_t i = 0; i < 3; i++)
        for (size_t size = 1; size <= sizeof beyond[i]; size++) {
            xpl_check_init(&c);
            xpl_status_t st = XPL_OK;
            for (size_t at = 0; at < 5 && st == XPL_OK; at += size)
                st = xpl_check_put(&c,
                                   (xpl_bytes_t){beyond[i] + at, sizeof beyond[i] - at < size
                                                                     ? sizeof beyond[i] - at
                                                                     : size},
                                   NULL);
            CHECK_STATUS(st, XPL_DATA_LOSS, NULL);
            CHECK_EQ(c.walk.at, 2);
        }
    static const uint8_t group[] = {0x0b};
    CHECK_STATUS(check_in_pieces((xpl_bytes_t){group, 1}, 1, &c), XPL_DATA_LOSS, NULL);
    // A tag and a length of ten bytes each are fine, one more is not.
    static const uint8_t longest[] = {0xa2, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0,
                                      0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0};
    for (size_t size = 1; size <= sizeof longest; size++)
        CHECK_OK(check_in_pieces((xpl_bytes_t){longest, sizeof longest}, size, &c), NULL);
    static const uint8_t endless[] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
                                      0x80, 0x80, 0x80, 0x80, 0x80};
    CHECK_STATUS(check_in_pieces((xpl_bytes_t){endless, sizeof endless}, 1, &c), XPL_DATA_LOSS,
                 NULL);
}

// Lines of many events: short ones are counted where they lie, long ones and those that are cut
// field by field, with the same outcome.
// What the profiler complains of: the first error, else the first warning, wherever they stand.
static void test_check_notice(void) {
    static const struct {
        const char *fields, *expected; // 'w' and 'e': a warning, an error; numbered
    } rows[] = {{"", ""},     {"w", "w0"},  {"ww", "w0"},   {"e", "e0"},
                {"we", "e1"}, {"ew", "e0"}, {"wewe", "e1"}, {"hwhe", "e3"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct xpl_buf b = mk_open();
        struct xpl_check c;
        for (int k = 0; rows[i].fields[k]; k++) {
            const char kind = rows[i].fields[k], text[] = {kind, (char)('0' + k), '\0'};
            mk_text(&b, kind == 'e' ? 2 : kind == 'w' ? 3 : 4, text);
        }
        mk_text(&b, 4, "late");
        for (size_t size = 1; size <= b.n; size++) {
            CHECK_OK(check_in_pieces((xpl_bytes_t){b.p, b.n}, size, &c), NULL);
            CHECK_STR(c.notice, rows[i].expected);
            CHECK_STR(c.hostname, rows[i].fields[0] == 'h' ? "h0" : "late");
        }
        xpl_buf_fini(&b);
    }
    // Long ones are cut.
    struct xpl_buf b = mk_open();
    struct xpl_check c;
    char many[600];
    memset(many, 'x', sizeof many - 1);
    many[sizeof many - 1] = '\0';
    mk_text(&b, 2, many);
    CHECK_OK(check_in_pieces((xpl_bytes_t){b.p, b.n}, 7, &c), NULL);
    CHECK_EQ(strlen(c.notice), XPL_CHECK_TEXT - 1);
    xpl_buf_fini(&b);
}

static void test_check_long_lines(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = mk_open(), plane = mk_open();
    struct xpl_check c;
    uint64_t n_events = 0;
    for (int i = 0; i < 3; i++) {
        struct xpl_buf line = mk_open();
        mk_text(&line, 2, "line");
        for (int k = 0; k < 400; k++, n_events++) {
            static const uint8_t zeros[300];
            mk_len(&line, 4, zeros, (size_t)(k % 50 == 49 ? 100 + k / 2 : k * 7 % 31));
            if (k % 97 == 0) mk_int(&line, 3, k);
        }
        mk_close(&plane, 3, &line);
    }
    mk_close(&b, 1, &plane);
    const xpl_bytes_t x = {b.p, b.n};
    for (size_t size = 1; size <= x.len; size += size < 400 ? 1 : 331) {
        CHECK_OK(check_in_pieces(x, size, &c), NULL);
        CHECK_EQ(c.counts.planes, 1);
        CHECK_EQ(c.counts.lines, 3);
        CHECK_EQ(c.counts.events, n_events);
    }
    CHECK_OK(check_in_pieces(x, x.len, &c), NULL);
    // A changed byte gives the same verdict, at the same place, in one piece and in small ones.
    for (size_t at = 0; at < x.len; at += 3) {
        struct xpl_check cut;
        b.p[at] ^= 0x15;
        const xpl_status_t whole = check_in_pieces(x, x.len, &c),
                           small = check_in_pieces(x, 100, &cut);
        CHECK_EQ(small, whole);
        CHECK_EQ(cut.walk.at, c.walk.at);
        CHECK_EQ(cut.counts.events, c.counts.events);
        b.p[at] ^= 0x15;
    }
}

static bool collect(void *ctx, xpl_bytes_t piece) {
    xpl_buf_put(ctx, piece.ptr, piece.len);
    return true;
}

// The traces' names and bytes, in order.
static bool collect_name(void *ctx, xpl_str_t name) {
    xpl_buf_putc(ctx, '<');
    xpl_buf_str(ctx, name);
    xpl_buf_putc(ctx, '>');
    return true;
}

// Traces of PyTorch's processes and notes about them, in pieces of every size.
static void test_traces(void) {
    static const char expected[] =
        "<a.pt.trace.json.gz>one<.pt.trace.json.gz><b.pt.trace.json.gz>2";
    static const struct {
        const char *name, *bytes;
    } tools[] = {{"a.pt.trace.json.gz", "one"},
                 {"notes", "process 3\nis late"},
                 {".pt.trace.json.gz", ""},
                 {"a.pt.trace.json", "x"},
                 {"b.pt.trace.json.gz", "2"}};
    struct xpl_buf answer = mk_open();
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++) {
        struct xpl_buf tool = mk_open();
        mk_text(&tool, 1, tools[i].name);
        mk_text(&tool, 2, tools[i].bytes);
        mk_close(&answer, 6, &tool);
    }
    for (size_t size = 1; size <= answer.n; size++) {
        struct xpl_capture_reply r;
        struct xpl_buf got = mk_open();
        xpl_capture_reply_init(&r, collect, &got);
        r.on_trace = collect_name;
        for (size_t at = 0; at < answer.n; at += size)
            CHECK(xpl_capture_reply_put(
                &r, (xpl_bytes_t){answer.p + at, answer.n - at < size ? answer.n - at : size}));
        CHECK(xpl_capture_reply_end(&r));
        CHECK_BYTES(got.p, got.n, expected, sizeof expected - 1);
        CHECK_STR(r.notes, "process 3?is late");
        xpl_buf_fini(&got);
    }
    xpl_buf_fini(&answer);
}

static void test_reply(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf x = small_xspace(), answer = mk_open(), tool = mk_open();
    mk_text(&tool, 1, "overview.json");
    mk_text(&tool, 2, "not the profile");
    mk_close(&answer, 6, &tool);
    mk_int(&answer, 7, 1);
    mk_len(&answer, 8, x.p, x.n);
    tool = mk_open();
    mk_text(&tool, 1, "xplane.pb");
    mk_len(&tool, 2, x.p, x.n);
    mk_close(&answer, 6, &tool);
    for (size_t size = 1; size <= answer.n; size++) {
        struct xpl_capture_reply r;
        struct xpl_buf got = mk_open();
        xpl_capture_reply_init(&r, collect, &got);
        for (size_t at = 0; at < answer.n; at += size)
            CHECK(xpl_capture_reply_put(
                &r, (xpl_bytes_t){answer.p + at, answer.n - at < size ? answer.n - at : size}));
        CHECK(xpl_capture_reply_end(&r) && r.empty_trace);
        CHECK_EQ(got.n, 2 * x.n);
        CHECK_EQ(r.xspace_bytes, got.n);
        CHECK_BYTES(got.p, x.n, x.p, x.n);
        CHECK_BYTES(got.p + x.n, x.n, x.p, x.n);
        xpl_buf_fini(&got);
    }
    xpl_buf_fini(&answer);
}

static void test_names(void) {
    static const struct {
        const char *given, *safe;
    } names[] = {{"host-1.example", "host-1.example"},
                 {"a:9999", "a_9999"},
                 {"../../etc/passwd", "_._.._etc_passwd"},
                 {".hidden", "_hidden"},
                 {"", "host"},
                 {"..", "_."},
                 {"\x01\xff\n", "___"},
                 {"ALL_HOSTS", "ALL_HOSTS_"},
                 {"\xc3\xa4", "__"}};
    char out[XPL_SESSION_WRITER_NAME_SIZE];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        CHECK_EQ(xpl_session_writer_safe_name(out, xpl_str_from(names[i].given)),
                 strlen(names[i].safe));
        CHECK_STR(out, names[i].safe);
    }
    char longest[400];
    memset(longest, 'x', sizeof longest);
    CHECK_EQ(xpl_session_writer_safe_name(out, (xpl_str_t){longest, sizeof longest}),
             XPL_PROFILE_WRITER_MAX_NAME);
    static const char *const bad[] = {"", ".", "..", ".x", "a/b", "a b", "a\n", "\xc3\xa4"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_STATUS(xpl_session_writer_check_name("a session", xpl_str_from(bad[i]), NULL),
                     XPL_INVALID_ARGUMENT, NULL);
    CHECK_STATUS(xpl_session_writer_check_name(
                     "a session", (xpl_str_t){longest, XPL_PROFILE_WRITER_MAX_NAME + 1}, NULL),
                 XPL_INVALID_ARGUMENT, NULL);
    CHECK_OK(xpl_session_writer_check_name("a session", XPL_STR("2026_11_21_14_05_09"), NULL),
             NULL);
}

// ---- files ----

static char logdir[] = "/tmp/xpl_profile_writer_XXXXXX";

static struct xpl_session_writer *open_session(const char *name, bool unique) {
    const struct xpl_session_writer_options o = {
        .size = sizeof o, .logdir = logdir, .name = xpl_str_from(name), .unique = unique};
    struct xpl_session_writer *s = NULL;
    CHECK_OK(xpl_session_writer_open(&o, &s, NULL), NULL);
    return s;
}

struct making {
    char path[600];
    int calls;
};

static void note_making(void *arg, const char *path) {
    struct making *const m = arg;
    CHECK(path[0] == '/' && access(path, F_OK) != 0); // not there yet
    (void)snprintf(m->path, sizeof m->path, "%s", path);
    m->calls++;
}

// A directory is announced before it is made, under the name that it gets, and only then.
static void test_announced(void) {
    struct making m = {.calls = 0};
    struct xpl_session_writer_options o = {.size = sizeof o,
                                           .logdir = logdir,
                                           .name = XPL_STR("told"),
                                           .unique = true,
                                           .making = note_making,
                                           .making_arg = &m};
    struct xpl_session_writer *first = NULL, *second = NULL, *third = NULL;
    CHECK_OK(xpl_session_writer_open(&o, &first, NULL), NULL);
    CHECK_EQ(m.calls, 1);
    CHECK(strcmp(m.path, xpl_session_writer_get_path(first)) == 0);
    CHECK_OK(xpl_session_writer_open(&o, &second, NULL), NULL);
    CHECK_EQ(m.calls, 2);
    CHECK(strcmp(m.path, xpl_session_writer_get_path(second)) == 0 && strstr(m.path, "told_2"));
    o.unique = false;
    CHECK_OK(xpl_session_writer_open(&o, &third, NULL), NULL);
    CHECK_EQ(m.calls, 2);
    xpl_session_writer_close(third);
    xpl_session_writer_close(second);
    xpl_session_writer_close(first);
    CHECK(access(m.path, F_OK) != 0);
}

static struct xpl_profile_writer *begin(struct xpl_session_writer *s, const char *host,
                                        unsigned flags, uint64_t max) {
    const struct xpl_profile_writer_options o = {
        .size = sizeof o, .host = xpl_str_from(host), .flags = flags, .max_bytes = max};
    struct xpl_profile_writer *in = NULL;
    CHECK_OK(xpl_profile_writer_begin(s, &o, &in, NULL), NULL);
    return in;
}

// Opens a file of the session for reading; below 0 without it.
static int open_in(const struct xpl_session_writer *s, const char *name) {
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", xpl_session_writer_get_path(s), name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static void test_profile_writer(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = small_xspace();
    const xpl_bytes_t x = {b.p, b.n};
    struct xpl_session_writer *const s = open_session("run", false);
    struct xpl_profile_writer_file f;
    struct xpl_profile_writer *in = begin(s, "a:1", 0, 0);
    CHECK_OK(xpl_profile_writer_put(in, x, NULL), NULL);
    CHECK_OK(xpl_profile_writer_commit(in, &f, NULL), NULL);
    CHECK_STR(f.name, "a_1");
    CHECK_EQ(f.counts.events, 24);
    // The same host again: refused, or another name; the same through a second view of the session.
    in = begin(s, "a:1", 0, 0);
    CHECK_OK(xpl_profile_writer_put(in, x, NULL), NULL);
    CHECK_STATUS(xpl_profile_writer_commit(in, NULL, NULL), XPL_ALREADY_EXISTS, NULL);
    struct xpl_session_writer *const again = open_session("run", false);
    in = begin(again, "a:1", XPL_PROFILE_WRITER_UNIQUE, 0);
    CHECK_OK(xpl_profile_writer_put(in, x, NULL), NULL);
    CHECK_OK(xpl_profile_writer_commit(in, &f, NULL), NULL);
    CHECK_STR(f.name, "a_1_2");
    CHECK_EQ(entries(xpl_session_writer_get_path(s)), 2);
    CHECK_OK(xpl_session_writer_note(s, "capture", ".json", x, NULL), NULL);
    CHECK_OK(xpl_session_writer_note(s, "capture", ".json", x, NULL), NULL);
    int fd = open_in(s, "capture_2.json");
    CHECK(fd >= 0);
    (void)close(fd);
    // Nothing, half of it, too much, no events: nothing is left.
    static const uint8_t no_events[] = {0x0a, 0};
    CHECK_STATUS(xpl_profile_writer_commit(begin(s, "b", 0, 0), NULL, NULL), XPL_DATA_LOSS, NULL);
    in = begin(s, "b", 0, 0);
    CHECK_OK(xpl_profile_writer_put(in, (xpl_bytes_t){x.ptr, x.len - 1}, NULL), NULL);
    CHECK_STATUS(xpl_profile_writer_commit(in, NULL, NULL), XPL_DATA_LOSS, NULL);
    in = begin(s, "b", 0, x.len - 1);
    CHECK_STATUS(xpl_profile_writer_put(in, x, NULL), XPL_RESOURCE_EXHAUSTED, NULL);
    xpl_profile_writer_abort(in);
    in = begin(s, "b", 0, 0);
    CHECK_OK(xpl_profile_writer_put(in, (xpl_bytes_t){no_events, 2}, NULL), NULL);
    CHECK_STATUS(xpl_profile_writer_commit(in, NULL, NULL), XPL_FAILED_PRECONDITION, NULL);
    in = begin(s, "b", XPL_PROFILE_WRITER_ALLOW_IDLE, 0);
    CHECK_OK(xpl_profile_writer_put(in, (xpl_bytes_t){no_events, 2}, NULL), NULL);
    CHECK_OK(xpl_profile_writer_commit(in, NULL, NULL), NULL);
    CHECK_EQ(entries(xpl_session_writer_get_path(s)), 5);
    // A fresh session gets another name, and vanishes unused.
    struct xpl_session_writer *const second = open_session("run", true);
    CHECK_STR(xpl_session_writer_get_name(second), "run_2");
    xpl_session_writer_close(second);
    // From a file: the one just written.
    fd = open_in(s, "a_1.xplane.pb");
    CHECK(fd >= 0);
    in = begin(s, "c", 0, 0);
    CHECK_OK(xpl_profile_writer_put_fd(in, fd, NULL), NULL);
    CHECK_OK(xpl_profile_writer_commit(in, &f, NULL), NULL);
    CHECK_EQ(f.counts.bytes, x.len);
    (void)close(fd);
    xpl_session_writer_undo(again);
    xpl_session_writer_close(again);
    xpl_session_writer_undo(s);
    CHECK_EQ(entries(xpl_session_writer_get_path(s)), 0);
    xpl_session_writer_close(s);
    CHECK_EQ(entries(logdir), 0);
}

// A link in the place of a directory below LOGDIR is not written through.
static void test_profile_writer_links(void) {
    static const char *const places[] = {"plugins", "plugins/profile", "plugins/profile/run"};
    char command[600];
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(
            command, sizeof command,
            "mkdir -p %s-out/plugins/profile/run && cd %s && mkdir -p plugins/profile && "
            "rm -rf %s && ln -s %s-out/%s %s",
            logdir, logdir, places[i], logdir, places[i], places[i]);
        CHECK_EQ(system(command), 0);
        const struct xpl_session_writer_options o = {
            .size = sizeof o, .logdir = logdir, .name = XPL_STR("run")};
        struct xpl_session_writer *s = NULL;
        struct xpl_error err = {0};
        CHECK_STATUS(xpl_session_writer_open(&o, &s, &err), XPL_FAILED_PRECONDITION, NULL);
        CHECK(strstr(err.msg, "is a link"));
        (void)snprintf(command, sizeof command,
                       "test -z \"$(find %s-out -type f)\" && rm -rf %s/plugins %s-out", logdir,
                       logdir, logdir);
        CHECK_EQ(system(command), 0);
    }
}

// One gives up and removes the directories it made, which another has open already.
static void test_profile_writer_race(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = small_xspace();
    struct xpl_session_writer *const maker = open_session("race", false);
    struct xpl_session_writer *const other = open_session("race", false);
    xpl_session_writer_close(maker);
    CHECK_EQ(entries(logdir), 0);
    struct xpl_profile_writer *const in = begin(other, "h", 0, 0);
    CHECK_OK(xpl_profile_writer_put(in, (xpl_bytes_t){b.p, b.n}, NULL), NULL);
    CHECK_OK(xpl_profile_writer_commit(in, NULL, NULL), NULL);
    CHECK_EQ(entries(xpl_session_writer_get_path(other)), 1);
    xpl_session_writer_undo(other);
    xpl_session_writer_close(other);
    CHECK_EQ(entries(logdir), 0);
}

// A session's file that is another file: a link, or a copy where that is elsewhere.
static void test_added_files(void) {
    static const char *const roots[] = {"/tmp", "/dev/shm"};
    char dir[] = "/tmp/xpl-added-XXXXXX";
    CHECK(mkdtemp(dir));
    const struct xpl_session_writer_options o = {
        .size = sizeof o, .logdir = dir, .name = XPL_STR("s")};
    for (size_t i = 0; i < sizeof roots / sizeof *roots && access(roots[i], W_OK) == 0; i++) {
        struct xpl_session_writer *s = NULL;
        struct xpl_error err = {0};
        struct stat file, from;
        char path[64], name[XPL_SESSION_WRITER_NAME_SIZE] = "h", temp[XPL_SESSION_WRITER_TEMP_SIZE];
        (void)snprintf(path, sizeof path, "%s/xpl-added-XXXXXX", roots[i]);
        const int fd = mkstemp(path);
        CHECK(fd >= 0 && write(fd, "bytes", 5) == 5);
        CHECK_OK(xpl_session_writer_open(&o, &s, &err), &err);
        CHECK_OK(xpl_session_writer_add_file(s, path, temp, &err), &err);
        CHECK_OK(
            xpl_session_writer_publish(s, temp, name, ".xplane.pb", XPL_TAKEN_REFUSE, false, &err),
            &err);
        CHECK_OK(xpl_session_writer_sync(s, &err), &err);
        const int copy = xpl_session_writer_open_file(s, "h.xplane.pb");
        CHECK(copy >= 0 && fstat(copy, &file) == 0 && fstat(fd, &from) == 0);
        CHECK_EQ(file.st_size, 5);
        CHECK_EQ(file.st_ino == from.st_ino && file.st_dev == from.st_dev,
                 file.st_dev == from.st_dev);
        CHECK_STATUS(xpl_session_writer_add_file(s, "/none/such", temp, NULL), XPL_NOT_FOUND, NULL);
        xpl_session_writer_undo(s);
        xpl_session_writer_close(s);
        CHECK_EQ(close(copy) + close(fd) + unlink(path), 0);
    }
    (void)rmdir(dir);
}

int main(void) {
    test_added_files();
    test_check();
    test_check_notice();
    test_check_long_lines();
    test_reply();
    test_traces();
    test_names();
    CHECK(mkdtemp(logdir));
    test_announced();
    test_profile_writer();
    test_profile_writer_race();
    test_profile_writer_links();
    CHECK_EQ(rmdir(logdir), 0);
    return 0;
}
