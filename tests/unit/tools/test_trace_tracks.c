// SPDX-License-Identifier: Apache-2.0
// Which tracks trace_sums and trace_search mean: processes and their threads.
#include "tests/unit/tools/ask_tool.h"
#include "tests/xspace_maker.h"

enum { LIMIT = 1 << 26 };
static struct xpl_error err;

// Events of one name on each of two lines of a GPU, and of one line of another.  trace_viewer@
// shows them as rows 1 and 8 of process 1002, and row 1 of process 1004.
static struct xpl_buf profile(void) {
    static const char *const names[] = {"alpha", "beta", "gamma"};
    struct xpl_buf space = mk_open();
    for (int i = 0; i < 3; i++) {
        struct mk_plane p;
        if (i == 1) continue;
        mk_plane_begin(&p, i + 1, i ? "/device:GPU:1" : "/device:GPU:0");
        for (int k = i; k < (i ? 3 : 2); k++) {
            struct xpl_buf line = mk_line(k + 1, "Stream #1(Compute)");
            mk_plain(&p, &line, names[k], 0, 1000000);
            mk_line_end(&p, &line);
        }
        mk_plane_end(&p, &space);
    }
    return space;
}

static xpl_status_t ask(const struct xpl_buf *space, const char *tracks, struct xpl_buf *out) {
    return ask_tool(&(struct tool_request){.tool = "trace_sums",
                                           .key = "tracks",
                                           .value = tracks,
                                           .spaces = space,
                                           .n = 1,
                                           .limit = LIMIT},
                    out, &err);
}

static void finds(const struct xpl_buf *space, const char *tracks, bool alpha, bool beta,
                  bool gamma) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out;
    CHECK_OK(ask(space, tracks, &out), &err);
    const xpl_str_t text = {(const char *)out.p, out.n};
    CHECK_EQ(xpl_str_has(text, XPL_STR("\"alpha\"")), alpha);
    CHECK_EQ(xpl_str_has(text, XPL_STR("\"beta\"")), beta);
    CHECK_EQ(xpl_str_has(text, XPL_STR("\"gamma\"")), gamma);
}

static void refuses(const struct xpl_buf *space, const char *tracks, const char *text) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out;
    CHECK_STATUS(ask(space, tracks, &out), XPL_INVALID_ARGUMENT, &err);
    CHECK_STR(xpl_str_from(err.msg), text);
}

int main(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = profile();
    finds(&space, "", true, true, true);
    finds(&space, "1002", true, true, false);
    finds(&space, "1004", false, false, true);
    finds(&space, "1002:8", false, true, false);
    finds(&space, "1002:1,1004:1", true, false, true);
    finds(&space, "1002:8,1002", true, true, false);
    finds(&space, "3,1002:9,4294967295", false, false, false);
    refuses(&space, "x", "tracks: character 1 of \"x\" is not PID[:TID],...");
    refuses(&space, "1:", "tracks: character 3 of \"1:\" is not PID[:TID],...");
    refuses(&space, "1,", "tracks: character 2 of \"1,\" is not PID[:TID],...");
    refuses(&space, "1;2", "tracks: character 2 of \"1;2\" is not PID[:TID],...");
    refuses(&space, "4294967296", "tracks: character 10 of \"4294967296\" is not PID[:TID],...");
    return 0;
}
