// SPDX-License-Identifier: Apache-2.0
// The OpStats bytes that we make of profiles:
//   convert_opstats [--cpu] [--keep] FILE...
// --cpu counts the CPU as a device, --keep keeps incomplete steps, as XProf's workers do.  Several
// files are combined as the hosts of a session.  The message goes to standard output.  Exit 1: the
// conversion failed.
#include <stdio.h>
#include <string.h>

#include "analysis/opstats/codec/codec.h"
#include "analysis/opstats/combine/combine.h"
#include "analysis/products/product.h"
#include "analysis/products/values.h"
#include "base/arena.h"
#include "base/cleanup.h"

enum { MAX_HOSTS = 64 };
static const size_t limit = (size_t)4 << 30;

static bool slurp(const char *path, struct xpl_buf *ret) {
    FILE *const f = fopen(path, "rb");
    if (!f) return false;
    for (size_t n = 1; n && xpl_buf_room(ret, 1 << 16); ret->n += n)
        n = fread(ret->p + ret->n, 1, 1 << 16, f);
    const bool ok = !ferror(f) && !ret->failed;
    (void)fclose(f);
    return ok;
}

// One host's OpStats, a value of the product.
static xpl_status_t convert_file(const char *path, unsigned variant, void **ret,
                                 struct xpl_error *err) {
    struct xpl_exec exec = xpl_exec_serial();
    XPL_AUTO(xpl_buf_fini) struct xpl_buf file = xpl_buf_of(limit);
    if (!slurp(path, &file)) XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "cannot read %s", path);
    const struct xpl_product_input in = {
        .profile = {file.p, file.n}, .variant = variant, .exec = &exec, .limit = limit};
    return xpl_product_op_stats.make(&in, ret, err);
}

// Values are the process's until it ends.
static xpl_status_t convert(char **files, size_t n, unsigned variant, struct xpl_arena *arena,
                            struct xpl_buf *out, struct xpl_error *err) {
    struct xpl_host_opstats hosts[MAX_HOSTS] = {0};
    struct xpl_opstats *all = NULL;
    for (size_t i = 0; i < n; i++) {
        void *one = NULL;
        XPL_TRY(convert_file(files[i], variant, &one, err));
        hosts[i] =
            (struct xpl_host_opstats){.host = xpl_str_from(files[i]),
                                      .stats = ((const struct xpl_op_stats_value *)one)->stats};
    }
    const struct xpl_combine_input in = {.hosts = hosts, .n = n, .xprof_exact = true};
    XPL_TRY(xpl_opstats_combine(&in, arena, &all, err));
    return xpl_opstats_encode(all, out, err);
}

int main(int argc, char **argv) {
    unsigned variant = 0;
    int at = 1;
    for (; at < argc && argv[at][0] == '-'; at++) {
        if (strcmp(argv[at], "--cpu") == 0)
            variant |= XPL_OP_STATS_CPU_AS_DEVICE;
        else if (strcmp(argv[at], "--keep") == 0)
            variant |= XPL_OP_STATS_ALL_STEPS;
        else
            break;
    }
    if (at >= argc || argc - at > MAX_HOSTS || argv[at][0] == '-') {
        fprintf(stderr, "usage: convert_opstats [--cpu] [--keep] FILE...\n");
        return 2;
    }
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(limit);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(limit);
    struct xpl_error err = {0};
    const xpl_status_t s = convert(argv + at, (size_t)(argc - at), variant, &arena, &out, &err);
    if (s != XPL_OK)
        fprintf(stderr, "%s: %s\n", xpl_status_name(s), err.msg);
    else if (fwrite(out.p, 1, out.n, stdout) != out.n)
        perror("standard output");
    return s == XPL_OK ? 0 : 1;
}
