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

#define TASK "2:\"Task Environment\" "
#define NAME "5:{1:7 2:{1:7 2:\"profile_start_time\"}} 5:{1:8 2:{1:8 2:\"profile_stop_time\"}} "
#define TIME "6:{1:7 3:1795339230000000000} 6:{1:8 3:1795339231000000000}"

int main(void) {
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
