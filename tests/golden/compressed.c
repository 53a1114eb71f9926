// SPDX-License-Identifier: Apache-2.0
// Compressed profiles give the answers of plain ones, byte for byte: every tool and export of
// `xplanectl`, over a file and over a directory of mixed ones.
//   compressed XPLANECTL TESTS_DIR
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "analysis/tools/tool.h"
#include "base/buf.h"
#include "tests/check.h"

extern char **environ;

enum { MAX_BYTES = 128 << 20 };
static char top[] = "/tmp/xpl_compressed_XXXXXX";
static char errors[sizeof top + 8]; // what xplanectl said last
static const char *xplanectl, *tests;

static struct xpl_buf slurp(const char *path) {
    struct xpl_buf b = xpl_buf_of(MAX_BYTES);
    FILE *const f = fopen(path, "rb");
    if (!f) perror(path);
    CHECK(f);
    for (size_t n = 1; n; b.n += n) {
        CHECK(xpl_buf_room(&b, 65536));
        n = fread(b.p + b.n, 1, 65536, f);
    }
    CHECK_EQ(fclose(f), 0);
    return b;
}

static void put_file(const char *path, const void *p, size_t n) {
    FILE *const f = fopen(path, "wbe");
    CHECK(f && fwrite(p, 1, n, f) == n && fclose(f) == 0);
}

// ---- files ----

enum way { PLAIN, GZIP, ZSTD, WAYS };
static const char *const suffixes[WAYS] = {".xplane.pb", ".xplane.pb.gz", ".xplane.pb.zst"};

static void pack(const char *from, const char *to, enum way way) {
    struct xpl_buf in = slurp(from), out;
    xpl_buf_init(&out, 2 * MAX_BYTES);
    CHECK(xpl_buf_room(&out, compressBound(in.n) + ZSTD_compressBound(in.n) + 64));
    if (way == GZIP) {
        z_stream z = {.next_in = in.p,
                      .avail_in = (unsigned)in.n,
                      .next_out = out.p,
                      .avail_out = (unsigned)out.cap};
        CHECK(deflateInit2(&z, 1, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
        CHECK(deflate(&z, Z_FINISH) == Z_STREAM_END);
        put_file(to, out.p, z.total_out);
        CHECK(z.total_out < in.n);
        deflateEnd(&z);
    } else if (way == ZSTD) {
        const size_t n = ZSTD_compress(out.p, out.cap, in.p, in.n, 1);
        CHECK(!ZSTD_isError(n) && n < in.n);
        put_file(to, out.p, n);
    } else {
        put_file(to, in.p, in.n);
    }
    xpl_buf_fini(&out);
    xpl_buf_fini(&in);
}

// ---- answers ----

// Runs xplanectl; its exit status.
static int run(const char *const *args, const char *out) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&actions, 2, errors, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    pid_t pid = 0;
    int status = -1;
    union {
        const char *const *in;
        char **out;
    } argv = {.in = args};
    CHECK_EQ(posix_spawn(&pid, xplanectl, &actions, NULL, argv.out, environ), 0);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    posix_spawn_file_actions_destroy(&actions);
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

// Returns whether there was an answer.
static bool same(const char *command, const char *what, const char *path, const char *plain) {
    char one[PATH_MAX], two[PATH_MAX];
    (void)snprintf(one, sizeof one, "%s/one", top);
    (void)snprintf(two, sizeof two, "%s/two", top);
    const int expected = run((const char *const[]){xplanectl, command, what, plain, NULL}, one);
    const int got = run((const char *const[]){xplanectl, command, what, path, NULL}, two);
    struct xpl_buf a = slurp(one), b = slurp(two);
    const bool equal = expected == got && a.n == b.n && memcmp(a.p, b.p, a.n) == 0;
    if (!equal)
        fprintf(stderr, "%s %s %s: status %d, %zu bytes; of %s: status %d, %zu bytes\n", command,
                what, path, got, b.n, plain, expected, a.n);
    CHECK(equal);
    const bool answered = expected == 0 && a.n > 0;
    xpl_buf_fini(&a);
    xpl_buf_fini(&b);
    return answered;
}

static void same_everywhere(const char *path, const char *plain) {
    size_t n, answered = 0;
    const struct xpl_tool *const *const tools = xpl_tools(&n);
    for (size_t i = 0; i < n; i++)
        answered += same("analyze", tools[i]->name, path, plain);
    CHECK(answered >= 5);
    CHECK(same("export", "chrome", path, plain));
    CHECK(same("export", "perfetto", path, plain));
}

static void test_file(const char *name) {
    char plain[PATH_MAX], path[PATH_MAX];
    const char *const slash = strrchr(name, '/') + 1;
    const int host = (int)(strlen(slash) - strlen(suffixes[PLAIN]));
    (void)snprintf(plain, sizeof plain, "%s/%s", tests, name);
    for (enum way way = GZIP; way < WAYS; way++) {
        (void)snprintf(path, sizeof path, "%s/%.*s%s", top, host, slash, suffixes[way]);
        pack(plain, path, way);
        same_everywhere(path, plain);
        CHECK_EQ(unlink(path), 0);
    }
}

// A session whose hosts' files are of all formats; one host has two files.
static void test_directory(void) {
    static const char session[] = "data/logdir/cpu/plugins/profile/jax_4hosts";
    char plain[PATH_MAX / 2], dir[PATH_MAX / 2], from[PATH_MAX], path[PATH_MAX];
    (void)snprintf(plain, sizeof plain, "%s/%s", tests, session);
    (void)snprintf(dir, sizeof dir, "%s/jax_4hosts", top);
    CHECK_EQ(mkdir(dir, 0700), 0);
    for (int i = 0; i < 4; i++) {
        (void)snprintf(from, sizeof from, "%s/host-%d.cluster.local.xplane.pb", plain, i);
        (void)snprintf(path, sizeof path, "%s/host-%d.cluster.local%s", dir, i, suffixes[i % WAYS]);
        pack(from, path, (enum way)(i % WAYS));
    }
    (void)snprintf(path, sizeof path, "%s/host-0.cluster.local.xplane.pb.gz", dir);
    put_file(path, "no profile", 10);
    same_everywhere(dir, plain);
}

// A file that becomes a thousand times as long is refused.
static void test_refused(void) {
    char path[PATH_MAX], out[PATH_MAX];
    const size_t n = (size_t)32 << 20;
    uint8_t *const zeros = calloc(1, n);
    CHECK(zeros);
    (void)snprintf(path, sizeof path, "%s/zeros.xplane.pb", top);
    put_file(path, zeros, n - 100);
    (void)snprintf(out, sizeof out, "%s/bomb.xplane.pb.zst", top);
    pack(path, out, ZSTD);
    free(zeros);
    (void)snprintf(path, sizeof path, "%s/one", top);
    CHECK_EQ(run((const char *const[]){xplanectl, "analyze", "overview_page", out, NULL}, path), 1);
    struct xpl_buf b = slurp(path), said = slurp(errors);
    CHECK_EQ(b.n, 0);
    CHECK(xpl_str_has((xpl_str_t){(const char *)said.p, said.n},
                      XPL_STR("more than 256 times as long")));
    xpl_buf_fini(&said);
    xpl_buf_fini(&b);
}

int main(int argc, char **argv) {
    CHECK_EQ(argc, 3);
    xplanectl = argv[1];
    tests = argv[2];
    CHECK(mkdtemp(top));
    (void)snprintf(errors, sizeof errors, "%s/errors", top);
    test_file("data/logdir/cpu/plugins/profile/jax_matmul_nopy/vm.xplane.pb");
    test_file("data/logdir/accel/plugins/profile/mi300_jax_gemm/mi300_jax_gemm.xplane.pb");
    test_file("data/logdir/accel/plugins/profile/tpu_inference_a/tpu_inference_a.xplane.pb");
    test_directory();
    test_refused();
    char command[PATH_MAX];
    (void)snprintf(command, sizeof command, "rm -rf %s", top);
    CHECK_EQ(system(command), 0);
    return 0;
}
