// SPDX-License-Identifier: Apache-2.0
// A tool's answer from a file with XProf's OpStats bytes:
//   render_opstats TOOL FILE [KEY=VALUE]...
// The answer goes to standard output.  Exit 1: the tool failed; 2: wrong usage.
#include <stdio.h>
#include <string.h>

#include "analysis/opstats/codec/codec.h"
#include "base/cleanup.h"
#include "tests/render.h"

static const size_t kLimit = (size_t)4 << 30;

static bool read_file(const char *path, struct xpl_buf *ret) {
    FILE *const f = fopen(path, "rb");
    if (!f) return false;
    size_t n = 1;
    while (n && xpl_buf_room(ret, 65536)) {
        n = fread(ret->p + ret->n, 1, 65536, f);
        ret->n += n;
    }
    const bool ok = !ferror(f) && !ret->failed;
    (void)fclose(f);
    return ok;
}

static xpl_status_t render(const struct xpl_tool *tool, const char *const *options,
                           const struct xpl_buf *in, struct xpl_buf *out, struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(kLimit);
    struct xpl_opstats *stats;
    XPL_TRY(xpl_opstats_decode((xpl_bytes_t){in->p, in->n}, &arena, &stats, err));
    return render_op_stats(tool, stats, options, kLimit, out, err);
}

int main(int argc, char **argv) {
    const struct xpl_tool *const tool = argc >= 3 ? xpl_tool_find(xpl_str_from(argv[1])) : NULL;
    const char *options[9] = {NULL};
    bool ok = tool && tool_shows_op_stats(tool) && argc <= 7;
    for (int i = 3; ok && i < argc; i++) {
        char *const eq = strchr(argv[i], '=');
        if (!(ok = eq != NULL)) break;
        *eq = 0;
        options[2 * (i - 3)] = argv[i];
        options[2 * (i - 3) + 1] = eq + 1;
    }
    if (!ok) {
        fprintf(stderr, "usage: render_opstats TOOL FILE [KEY=VALUE]...\n");
        return 2;
    }
    XPL_AUTO(xpl_buf_fini) struct xpl_buf in, out;
    xpl_buf_init(&in, kLimit);
    xpl_buf_init(&out, kLimit);
    if (!read_file(argv[2], &in)) {
        perror(argv[2]);
        return 1;
    }
    struct xpl_error err = {0};
    if (render(tool, options, &in, &out, &err) != XPL_OK) {
        fprintf(stderr, "%s: %s: %s\n", argv[2], xpl_status_name(err.code), err.msg);
        return 1;
    }
    return fwrite(out.p, 1, out.n, stdout) == out.n && fflush(stdout) == 0 ? 0 : 1;
}
