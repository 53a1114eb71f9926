// SPDX-License-Identifier: Apache-2.0
// When a profile was taken: its own statements, in any order, and profiles without one.
#include "analysis/xplane/captured.h"

#include "tests/wire_text.h"

static int64_t captured(const char *text) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = wt_message(text);
    const int64_t ns = xpl_xspace_captured_ns((xpl_bytes_t){b.p, b.n});
    for (size_t n = 0; n < b.n; n++) // every beginning of it, in a block of that size
        CHECK(xpl_xspace_captured_ns((xpl_bytes_t){b.p, n}) >= 0);
    return ns;
}

static struct xpl_profile_identity identity(const char *text) {
    struct xpl_profile_identity id;
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = wt_message(text);
    for (size_t n = 0; n <= b.n; n++)
        CHECK_EQ(xpl_xspace_identify((xpl_bytes_t){b.p, n}, &id), id.begin_ns != 0);
    return id;
}

#define TASK "2:\"Task Environment\" "
#define NAME "5:{1:7 2:{1:7 2:\"profile_start_time\"}} 5:{1:8 2:{1:8 2:\"profile_stop_time\"}} "
#define TIME "6:{1:7 3:1795339230000000000} 6:{1:8 3:1795339231000000000}"

#define PROGRAM(id, name, text) "4:{1:" id " 2:{1:" id " 2:\"" name "\" 3:\"" text "\"}} "

// Whether two runs are of one job: their times, and the program that is longest.
static void test_identity(void) {
    const struct xpl_profile_identity a =
        identity("1:{2:\"/host:metadata\" " PROGRAM("1", "jit_step(12)", "a long one")
                     PROGRAM("2", "jit_init(13)", "") "} 1:{" TASK NAME TIME "}");
    const struct xpl_profile_identity b = identity(
        "1:{" TASK NAME TIME "} 1:{2:\"/host:metadata\" " PROGRAM("2", "jit_other(13)", "x")
            PROGRAM("1", "jit_step(99)", "a long one") "}");
    CHECK_EQ(a.begin_ns, 1795339230000000000);
    CHECK_EQ(a.written_ns, 1795339231000000000);
    CHECK_EQ(a.rank, -1);
    CHECK(a.program);
    CHECK_EQ(a.program, b.program);
    const struct xpl_profile_identity c = identity("1:{" TASK NAME TIME "}");
    CHECK_EQ(c.program, 0);
    CHECK_EQ(identity("").begin_ns, 0);
}

int main(void) {
    test_identity();
    CHECK_EQ(captured("1:{" TASK NAME TIME "}"), 1795339230000000000);
    CHECK_EQ(captured("1:{" TASK TIME NAME "}"), 1795339230000000000);
    // Before lines, which are earlier here.
    CHECK_EQ(
        captured("1:{2:\"/host:CPU\" 3:{3:1700000000000000000 4:{1:1}}} 1:{" TASK NAME TIME "}"),
        1795339230000000000);
    // The earliest of the lines that have absolute times.
    CHECK_EQ(captured("1:{2:\"/host:CPU\" 3:{3:12345} 3:{3:1700000000000000002 4:{1:1}} "
                      "3:{3:1700000000000000001}}"),
             1700000000000000001);
    // Behind events a line's time is not sought.
    CHECK_EQ(captured("1:{3:{4:{1:1} 3:1700000000000000001}}"), 0);
    CHECK_EQ(captured("1:{" TASK NAME "6:{1:7 3:5}}"), 0); // since the start of something
    CHECK_EQ(captured("1:{" TASK NAME "6:{1:7 3:-1}}"), 0);
    CHECK_EQ(captured("1:{2:\"Task\" " NAME TIME "}"), 0);
    CHECK_EQ(captured("1:7 2:\"error\" 4:\"host\""), 0);
    CHECK_EQ(captured(""), 0);
    return 0;
}
