// SPDX-License-Identifier: Apache-2.0
// Tool events: counts of known lines, by our rules and by ejKernel's (docs/events.md), the names of
// both, and options that are refused.
#include "tests/processor_time.h"
#include "tests/unit/tools/ask_tool.h"
#include "tests/xspace_maker.h"

enum { LIMIT = 1 << 24, CANCEL_AT = 8192 };
static struct xpl_error err;

struct asked {
    const char *o[3][2];
};

static xpl_status_t try_events(const struct xpl_buf *spaces, size_t n, struct asked a,
                               struct xpl_buf *out) {
    if (!a.o[0][0]) a.o[0][0] = "rules", a.o[0][1] = "own";
    return ask_tool(&(struct tool_request){.tool = "events",
                                           .key = a.o[0][0],
                                           .value = a.o[0][1],
                                           .more = {{a.o[1][0], a.o[1][1]}, {a.o[2][0], a.o[2][1]}},
                                           .spaces = spaces,
                                           .n = n,
                                           .limit = LIMIT},
                    out, &err);
}

static void answers(const struct xpl_buf *spaces, size_t n, struct asked a, const char *text) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out;
    CHECK_OK(try_events(spaces, n, a, &out), &err);
    CHECK_STR(((xpl_str_t){(const char *)out.p, out.n}), text);
}

static void refuses(const struct xpl_buf *space, struct asked a, xpl_status_t status,
                    const char *text) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out;
    CHECK_STATUS(try_events(space, 1, a, &out), status, &err);
    CHECK_STR(xpl_str_from(err.msg), text);
}

// Line 1: a 0 to 100 with b 10 to 30 and another a 40 to 60 inside; b 90 to 120 continues after it.
// Line 2: a 0 to 50. Another plane without events.
static struct xpl_buf nested_profile(void) {
    struct xpl_buf space = mk_open();
    struct mk_plane p = mk_plane(1, "/device:GPU:0");
    struct xpl_buf line = mk_line(1, "stream 1");
    mk_plain(&p, &line, "a", 0, 100);
    mk_plain(&p, &line, "b", 10, 20);
    mk_plain(&p, &line, "a", 40, 20);
    mk_plain(&p, &line, "b", 90, 30);
    mk_line_end(&p, &line);
    line = mk_line(2, "stream 2");
    mk_plain(&p, &line, "a", 0, 50);
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    mk_plane_begin(&p, 2, "/host:CPU");
    mk_plane_end(&p, &space);
    return space;
}

#define HEAD(events, cut)                                                                          \
    "{\"rules\":\"own\",\"events\":" events ",\"cut\":" cut ",\"planes\":[\"/device:GPU:0\"],"     \
    "\"rows\":["
#define ROW(name, count, total, self, mean, std, min, p50, p99)                                    \
    "{\"name\":\"" name "\",\"count\":" count ",\"total_ps\":" total ",\"self_ps\":" self          \
    ",\"mean_ps\":" mean ",\"std_ps\":" std ",\"min_ps\":" min ",\"p50_ps\":" p50                  \
    ",\"p99_ps\":" p99 "}"
#define B ROW("b", "2", "50", "50", "25", "5", "20", "20", "30")

static void test_own(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = nested_profile();
    // The inner a is part of the outer one; of 0 to 120 b has its own time, a the rest.
    answers(&space, 1, (struct asked){{{"plane", "gPu"}}},
            HEAD("5", "false") ROW("a", "2", "150", "120", "75", "25", "50", "50", "100") "," B
                                                                                          "]}");
    answers(&space, 1, (struct asked){{{"plane", "gpu"}, {"prefix", "b"}}},
            HEAD("5", "false") B "]}");
    answers(&space, 1, (struct asked){{{"plane", "gpu"}, {"match", "^[^a]$"}}},
            HEAD("5", "false") B "]}");
    // Without events shorter than 30, only the outer a lasts until 90.
    answers(&space, 1, (struct asked){{{"plane", "gpu"}, {"min_duration", "0.03ns"}}},
            HEAD("3", "false") ROW("a", "2", "150", "140", "75", "25", "50", "50", "100") "," ROW(
                "b", "1", "30", "30", "30", "0", "30", "30", "30") "]}");
    // The first two of each profile; both planes are meant, of which one has nothing.
    const struct xpl_buf twice[] = {space, space};
    answers(twice, 2, (struct asked){{{"max_events", "2"}}},
            "{\"rules\":\"own\",\"events\":4,\"cut\":true,\"planes\":[\"/device:GPU:0\","
            "\"/host:CPU\"],\"rows\":[" ROW("a", "2", "200", "160", "100", "0", "100", "100",
                                            "100") "," ROW("b", "2", "40", "40", "20", "0", "20",
                                                           "20", "20") "]}");
    answers(&space, 1, (struct asked){{{"plane", "cpu"}, {"max_events", "all"}}},
            "{\"rules\":\"own\",\"events\":0,\"cut\":false,\"planes\":[\"/host:CPU\"],"
            "\"rows\":[]}");
}

// Of events that begin together the longer one is the outer one, however they are recorded; those
// that stand for occurrences have no separate time.
static void test_order(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = mk_open();
    struct mk_plane p = mk_plane(1, "/device:GPU:0");
    struct xpl_buf line = mk_line(1, "");
    mk_plain(&p, &line, "late", 50, 50);
    mk_plain(&p, &line, "inner", 0, 40);
    mk_plain(&p, &line, "outer", 0, 60);
    struct xpl_buf many = mk_open();
    mk_int(&many, 1, mk_name(p.events, &p.n_events, "many"));
    mk_int(&many, 5, 7);
    mk_event_end(&line, &many);
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    answers(&space, 1, (struct asked){0},
            HEAD("3", "false") ROW("outer", "1", "60", "10", "60", "0", "60", "60", "60") "," ROW(
                "late", "1", "50", "50", "50", "0", "50", "50",
                "50") "," ROW("inner", "1", "40", "40", "40", "0", "40", "40", "40") "]}");
}

// ---- names and numbers ----

static void stat_real(struct mk_plane *p, struct xpl_buf *ev, const char *name, double v) {
    struct xpl_buf s = mk_open();
    mk_int(&s, 1, mk_name(p->stats, &p->n_stats, name));
    mk_varint(&s, 2 << 3 | 1);
    xpl_buf_put(&s, &v, sizeof v);
    mk_close(ev, 4, &s);
}

static void stat_uint(struct mk_plane *p, struct xpl_buf *ev, const char *name, uint64_t v) {
    struct xpl_buf s = mk_open();
    mk_int(&s, 1, mk_name(p->stats, &p->n_stats, name));
    mk_varint(&s, 3 << 3);
    mk_varint(&s, v);
    mk_close(ev, 4, &s);
}

// By rules=ejkernel, the one name of an event "jit_e" with a program id that is not a whole number.
static void shows_real(double v, const char *text) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = mk_open();
    struct mk_plane p = mk_plane(1, "gpu");
    char expected[200];
    struct xpl_buf line = mk_line(1, ""), ev = mk_event(&p, "jit_e", 0, 1000000);
    stat_real(&p, &ev, "program_id", v);
    mk_event_end(&line, &ev);
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    (void)snprintf(expected, sizeof expected,
                   "{\"rules\":\"ejkernel\",\"hosts\":[{\"host\":\"a\",\"events\":1,"
                   "\"cut\":false,\"planes\":[\"gpu\"],\"rows\":[{\"name\":\"jit_e(%s-None)\","
                   "\"total_ps\":1000000}]}]}",
                   text);
    answers(&space, 1, (struct asked){{{"rules", "ejkernel"}}}, expected);
}

// Numbers are shown as Python's str() does.
static void test_reals(void) {
    shows_real(0.1, "0.1");
    shows_real(3, "3.0");
    shows_real(100000, "100000.0");
    shows_real(-1200000, "-1200000.0");
    shows_real(123456789.25, "123456789.25");
    shows_real(9007199254740991.0, "9007199254740991.0");
    shows_real(1e15, "1000000000000000.0");
    shows_real(1e16, "1e+16");
    shows_real(12345678901234568.0, "1.2345678901234568e+16");
    shows_real(-98765432109876544.0, "-9.876543210987654e+16");
    shows_real(1.5e22, "1.5e+22");
    shows_real(0.0001, "0.0001");
    shows_real(0.00012345, "0.00012345");
    shows_real(0.00001, "1e-05");
    shows_real(2.0 / 3, "0.6666666666666666");
    shows_real(0, "None");
    shows_real(__builtin_inf(), "inf");
    shows_real(-__builtin_inf(), "-inf");
}

// By names of ejKernel's: module, program or else run, scope, and None without a value.
static void test_names(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = mk_open();
    struct mk_plane p = mk_plane(1, "/device:GPU:0");
    struct xpl_buf line = mk_line(1, ""), ev = mk_event(&p, "whole", 0, 5);
    mk_stat_str(&p, &ev, "hlo_module", "jit_f_007");
    stat_uint(&p, &ev, "program_id", 18446744073709551615U);
    mk_stat_int(&p, &ev, "run_id", 5);
    mk_stat_int(&p, &ev, "scope_range_id", -3);
    mk_event_end(&line, &ev);
    ev = mk_event(&p, "run", 10, 4);
    mk_stat_ref(&p, &ev, "hlo_module", "jit_f_7");
    mk_stat_int(&p, &ev, "run_id", 5);
    mk_stat_int(&p, &ev, "scope_range_id", 0);
    mk_event_end(&line, &ev);
    ev = mk_event(&p, "empty", 20, 3);
    mk_stat_str(&p, &ev, "hlo_module", "");
    stat_uint(&p, &ev, "program_id", 0);
    mk_stat_int(&p, &ev, "run_id", 5);
    mk_event_end(&line, &ev);
    mk_plain(&p, &line, "plain", 30, 2);
    mk_plain(&p, &line, "plain", 40, 4);
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    answers(&space, 1, (struct asked){{{"by", "id"}}},
            HEAD("5", "false")
                ROW("plain(None-None)", "2", "6", "6", "3", "1", "2", "2", "4") "," ROW(
                    "jit_f_007(18446744073709551615--3)", "1", "5", "5", "5", "0", "5", "5",
                    "5") "," ROW("jit_f_7(5-None)", "1", "4", "4", "4", "0", "4", "4",
                                 "4") "," ROW("None(None-None)", "1", "3", "3", "3", "0", "3", "3",
                                              "3") "]}");
    // 007 and 7 are one number; ids in the order of rows, the longest first; one without a match.
    answers(&space, 1, (struct asked){{{"by", "id"}, {"by_id", "^(?:jit_f_|(?=p))([0-9]+|p)"}}},
            HEAD("5", "false")
                ROW("plain(None-None)", "2", "6", "6", "3", "1", "2", "2", "4") "," ROW(
                    "jit_f_007(18446744073709551615--3)", "1", "5", "5", "5", "0", "5", "5",
                    "5") "," ROW("jit_f_7(5-None)", "1", "4", "4", "4", "0", "4", "4",
                                 "4") "," ROW("None(None-None)", "1", "3", "3", "3", "0", "3", "3",
                                              "3") "],\"ids\":[{\"id\":\"p\",\"count\":1,"
                                                   "\"times_ps\":[3],\"mean_ps\":3,"
                                                   "\"std_ps\":0},{\"id\":\"7\",\"count\":2,"
                                                   "\"times_ps\":[5,4],\"mean_ps\":4.5,"
                                                   "\"std_ps\":0.5}]}");
}

// ---- ejKernel's rules ----

#define THEIRS(host, events, cut, plane)                                                           \
    "{\"host\":\"" host "\",\"events\":" events ",\"cut\":" cut ",\"planes\":[\"" plane "\"],"     \
    "\"rows\":["
#define US INT64_C(1000000)

// jit_x twice, the second from 100 us on for 50; events at the same time on another line: c 105 to
// 115, d 110 to 125 and 140 to 145, c 148 to 160 (which is not within), short ones.
static struct xpl_buf tuned_profile(void) {
    struct xpl_buf space = mk_open();
    struct mk_plane p = mk_plane(1, "/host:CPU");
    mk_plane_end(&p, &space);
    mk_plane_begin(&p, 2, "/device:GPU:0");
    struct xpl_buf line = mk_line(1, "modules");
    mk_plain(&p, &line, "jit_x", 100 * US, 50 * US);
    mk_plain(&p, &line, "jit_x", 0, 20 * US);
    mk_plain(&p, &line, "jit_y", 10 * US, 1 * US);
    mk_line_end(&p, &line);
    line = mk_line(2, "kernels");
    mk_int(&line, 3, 77); // its begin does not count
    mk_plain(&p, &line, "d", 110 * US, 15 * US);
    mk_plain(&p, &line, "c", 105 * US, 10 * US);
    mk_plain(&p, &line, "other", 126 * US, 9 * US);
    mk_plain(&p, &line, "c", 141 * US, US / 2);
    mk_plain(&p, &line, "d", 140 * US, 5 * US);
    mk_plain(&p, &line, "c", 148 * US, 12 * US);
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    return space;
}

static void test_ejkernel(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = tuned_profile();
    const char *const x = "jit_x(None-None)";
    char text[600];
    // The last one by its begin; names in the order of their first.
    (void)snprintf(text, sizeof text,
                   "{\"rules\":\"ejkernel\",\"hosts\":[" THEIRS(
                       "a", "8", "false",
                       "/device:GPU:0") "{\"name\":\"%s\",\"total_ps\":50000000},"
                                        "{\"name\":\"jit_y(None-None)\",\"total_ps\":1000000}]}]}",
                   x);
    answers(&space, 1, (struct asked){{{"rules", "ejkernel"}, {"plane", "gpu"}}}, text);
    // Children: 105 to 125 and 140 to 145 are covered by c and d, and jit_y has none.
    (void)snprintf(text, sizeof text,
                   "{\"rules\":\"ejkernel\",\"hosts\":[" THEIRS(
                       "a", "8", "false",
                       "/device:GPU:0") "{\"name\":\"%s\",\"total_ps\":25000000},"
                                        "{\"name\":\"jit_y(None-None)\",\"total_ps\":0}]}]}",
                   x);
    answers(&space, 1,
            (struct asked){{{"rules", "ejkernel"}, {"plane", "gpu"}, {"match", "^[cd]\\("}}}, text);
    // Of a maximum the first ones in the file, whatever their time.
    (void)snprintf(
        text, sizeof text,
        "{\"rules\":\"ejkernel\",\"hosts\":[" THEIRS(
            "a", "1", "true", "/device:GPU:0") "{\"name\":\"%s\",\"total_ps\":50000000}]}]}",
        x);
    answers(&space, 1,
            (struct asked){{{"rules", "ejkernel"}, {"plane", "gpu"}, {"max_events", "1"}}}, text);
    // By ids totals count, over hosts; a host without such a plane is left out.
    XPL_AUTO(xpl_buf_fini) struct xpl_buf other = nested_profile();
    const struct xpl_buf both[] = {other, space};
    (void)snprintf(
        text, sizeof text,
        "{\"rules\":\"ejkernel\",\"hosts\":[" THEIRS(
            "a", "0", "false",
            "/device:GPU:0") "]}," THEIRS("b", "8", "false",
                                          "/device:GPU:0") "{"
                                                           "\"name\":\"%s\",\"total_ps\":50000000},"
                                                           "{\"name\":\"jit_y(None-None)\","
                                                           "\"total_ps\":1000000}]}],\"ids\":[{"
                                                           "\"id\":\"x\",\"count\":1,\"times_ps\":["
                                                           "50000000],\"mean_ps\":50000000,\"std_"
                                                           "ps\":0},{\"id\":\"y\",\"count\":1,"
                                                           "\"times_ps\":[1000000],\"mean_ps\":"
                                                           "1000000,\"std_ps\":0}]}",
        x);
    answers(both, 2,
            (struct asked){{{"rules", "ejkernel"}, {"plane", "gpu"}, {"by_id", "_(.)\\("}}}, text);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf empty = mk_open();
    const struct xpl_buf one_of_two[] = {empty, space};
    (void)snprintf(
        text, sizeof text,
        "{\"rules\":\"ejkernel\",\"hosts\":[" THEIRS(
            "b", "1", "true", "/device:GPU:0") "{\"name\":\"%s\",\"total_ps\":50000000}]}]}",
        x);
    answers(one_of_two, 2,
            (struct asked){{{"rules", "ejkernel"}, {"plane", "gpu"}, {"max_events", "1"}}}, text);
    answers(&empty, 1, (struct asked){{{"rules", "ejkernel"}}},
            "{\"rules\":\"ejkernel\",\"hosts\":[{\"host\":\"a\",\"events\":0,\"cut\":false,"
            "\"planes\":[],\"rows\":[]}]}");
}

// ---- refusals ----

static void test_refused(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = nested_profile();
    refuses(&space, (struct asked){{{"plane", "tpu"}}}, XPL_NOT_FOUND,
            "no plane has \"tpu\" in its name; there are: /device:GPU:0, /host:CPU");
    refuses(&space, (struct asked){{{"plane", "tpu"}, {"rules", "ejkernel"}}}, XPL_NOT_FOUND,
            "no plane has \"tpu\" in its name; there are: /device:GPU:0, /host:CPU");
    refuses(&space, (struct asked){{{"min_duration", "1.5.2us"}}}, XPL_INVALID_ARGUMENT,
            "min_duration: character 4 of \"1.5.2us\": write a number and ps, ns, us, ms or s, as "
            "1us");
    refuses(&space, (struct asked){{{"min_duration", "99999999s"}}}, XPL_INVALID_ARGUMENT,
            "min_duration: character 9 of \"99999999s\": write a number and ps, ns, us, ms or s, "
            "as 1us");
    refuses(&space, (struct asked){{{"max_events", "-1"}}}, XPL_INVALID_ARGUMENT,
            "max_events: \"-1\" is not a number, all or auto");
    refuses(&space, (struct asked){{{"match", "("}}}, XPL_INVALID_ARGUMENT,
            "match: character 2: missing closing parenthesis");
    refuses(&space, (struct asked){{{"by_id", "(["}}}, XPL_INVALID_ARGUMENT,
            "by_id: character 3: missing terminating ] for character class");
}

static void add_plane(struct xpl_buf *space, const char *name) {
    struct mk_plane p = mk_plane(1, name);
    mk_plane_end(&p, space);
}

// The message lists each name of several hosts once, in one order, and a long list is cut.
static void test_no_plane(void) {
    static const char *const rules[] = {"own", "ejkernel"};
    struct xpl_buf spaces[] = {mk_open(), mk_open(), mk_open()};
    struct xpl_buf out;
    add_plane(&spaces[0], "/host:CPU");
    add_plane(&spaces[0], "/device:GPU:1");
    add_plane(&spaces[1], "/device:GPU:0");
    add_plane(&spaces[1], "/host:CPU");
    add_plane(&spaces[1], "/host:CPU");
    for (size_t i = 0; i < 2; i++) {
        CHECK_STATUS(
            try_events(spaces, 3, (struct asked){{{"plane", "tpu"}, {"rules", rules[i]}}}, &out),
            XPL_NOT_FOUND, &err);
        CHECK_STR(xpl_str_from(err.msg), "no plane has \"tpu\" in its name; there are: "
                                         "/device:GPU:0, /device:GPU:1, /host:CPU");
        xpl_buf_fini(&out);
    }
    refuses(&spaces[2], (struct asked){{{"plane", "tpu"}}}, XPL_NOT_FOUND,
            "no plane has \"tpu\" in its name; there are: none");
    for (char name[] = "a-name-of-twenty-two-0"; name[21] < '9'; name[21]++)
        add_plane(&spaces[2], name);
    refuses(&spaces[2], (struct asked){{{"plane", "tpu"}}}, XPL_NOT_FOUND,
            "no plane has \"tpu\" in its name; there are: a-name-of-twenty-two-0, "
            "a-name-of-twenty-two-1, a-name-of-twenty-two-2, a-name-of-twenty-two-3 and 5 others");
    for (size_t i = 0; i < 3; i++)
        xpl_buf_fini(&spaces[i]);
}

// More ids than anyone reads: one of each name.
static void test_many_ids(void) {
    enum { NAMES = 10001 };
    XPL_AUTO(xpl_buf_fini)
    struct xpl_buf space = mk_open(), plane = mk_open(), line = mk_line(1, "");
    char name[16];
    mk_text(&plane, 2, "gpu");
    for (int i = 1; i <= NAMES; i++) {
        struct xpl_buf entry = mk_open(), md = mk_open(), ev = mk_open();
        (void)snprintf(name, sizeof name, "jit_%d", i);
        mk_int(&entry, 1, i);
        mk_int(&md, 1, i);
        mk_text(&md, 2, name);
        mk_close(&entry, 2, &md);
        mk_close(&plane, 4, &entry);
        mk_int(&ev, 1, i);
        mk_int(&ev, 2, i);
        mk_int(&ev, 3, 1);
        mk_event_end(&line, &ev);
    }
    mk_close(&plane, 3, &line);
    mk_close(&space, 1, &plane);
    refuses(&space, (struct asked){{{"by_id", "[0-9]+"}}}, XPL_INVALID_ARGUMENT,
            "by_id: gives more than 10000 ids; write a narrower expression");
}

// ---- cancelling ----

struct cancelling {
    struct xpl_exec exec; // first: is_cancelled gets its address
    unsigned n, at;       // calls; the one that returns true
};

static bool is_cancelled(struct xpl_exec *e) {
    struct cancelling *const c = (struct cancelling *)e;
    return ++c->n >= c->at;
}

// However far it has come, it ends; and says nothing else.
static void test_cancelled(const char *rules, const char *match) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = mk_open();
    struct mk_plane p = mk_plane(1, "gpu");
    for (int l = 0; l < 2; l++) {
        struct xpl_buf line = mk_line(l + 1, "");
        for (int i = 0; i <= CANCEL_AT; i++)
            mk_plain(&p, &line, i ? "child" : "jit_e", i * US, (i ? 1 : CANCEL_AT) * US);
        mk_line_end(&p, &line);
    }
    mk_plane_end(&p, &space);
    unsigned at = 0;
    for (xpl_status_t st = XPL_CANCELLED; st == XPL_CANCELLED;) {
        struct cancelling c = {.exec = xpl_exec_serial(), .at = ++at};
        struct xpl_buf out;
        c.exec.cancelled = is_cancelled;
        st = ask_tool(&(struct tool_request){.tool = "events",
                                             .key = "rules",
                                             .value = rules,
                                             .more = {{"match", match}, {"max_events", "all"}},
                                             .spaces = &space,
                                             .n = 1,
                                             .limit = LIMIT,
                                             .exec = &c.exec},
                      &out, &err);
        CHECK(st == XPL_OK || st == XPL_CANCELLED);
        xpl_buf_fini(&out);
    }
    CHECK(at > 4); // each line at its begin, and once more
}

// A plane's name and the text sought in it are long, and agree but for the last byte.
static void test_long_names_of_planes(void) {
    enum { LONG = 1 << 20, PART = 20000 };
    static char name[LONG + 1], part[PART + 1];
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = mk_open(), out;
    memset(name, 'a', LONG);
    memset(part, 'a', PART);
    part[PART - 1] = 'b';
    struct mk_plane p = mk_plane(1, name);
    mk_plane_end(&p, &space);
    const double begin = processor_s();
    CHECK_STATUS(try_events(&space, 1, (struct asked){{{"plane", part}}}, &out), XPL_NOT_FOUND,
                 &err);
    xpl_buf_fini(&out);
    memset(part + 4000, 0, PART - 4000);
    CHECK_OK(try_events(&space, 1, (struct asked){{{"plane", part}}}, &out), &err);
    CHECK(is_within(begin, 2));
}

// As many lines of one event as names: no line makes a table of all names.
static void test_many_lines(void) {
    enum { MANY = 100000 };
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = mk_open(), out;
    struct mk_plane p = mk_plane(1, "/device:GPU:0");
    for (int64_t i = 1; i <= MANY; i++) {
        struct xpl_buf entry = mk_open(), md = mk_open(), line = mk_line(i, "s"), ev = mk_open();
        mk_int(&md, 1, i);
        mk_text(&md, 2, "op");
        mk_int(&entry, 1, i);
        mk_close(&entry, 2, &md);
        mk_close(&p.body, 4, &entry);
        mk_int(&ev, 1, i);
        mk_int(&ev, 3, 2);
        mk_event_end(&line, &ev);
        mk_line_end(&p, &line);
    }
    mk_plane_end(&p, &space);
    const double begin = processor_s();
    CHECK_OK(ask_tool(&(struct tool_request){.tool = "events",
                                             .key = "rules",
                                             .value = "own",
                                             .spaces = &space,
                                             .n = 1,
                                             .limit = 1 << 28},
                      &out, &err),
             &err);
    CHECK(is_within(begin, 4));
    xpl_buf_putc(&out, 0);
    CHECK(strstr((const char *)out.p, "{\"name\":\"op\",\"count\":100000,\"total_ps\":200000"));
}

int main(void) {
    test_own();
    test_order();
    test_reals();
    test_names();
    test_ejkernel();
    test_refused();
    test_no_plane();
    test_many_ids();
    test_many_lines();
    test_long_names_of_planes();
    test_cancelled("own", "e");
    test_cancelled("ejkernel", "child");
    return 0;
}
