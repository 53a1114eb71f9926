// SPDX-License-Identifier: Apache-2.0
// Tools of a session with thousands of hosts, from stored products: the daemon's time, processor
// time and peak memory ($XPLANED; the peak is that of a fresh daemon for each tool). Every host has
// a separate file of a few bytes, for which the store has the products of XPLANE. Usage:
// bench_hosts XPLANE N [TOOL...]; without TOOL overview_page.
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/products/product.h"
#include "base/clock.h"
#include "storage/sessions/identity.h"
#include "storage/store/store.h"
#include "tests/server/harness.h"
#include "tests/xspace_maker.h"

static const size_t kLimit = (size_t)2 << 30;

static void check(xpl_status_t st, const struct xpl_error *err) {
    if (st != XPL_OK) FAIL_TEST(err->msg);
}

// ---- the session ----

static const char *host_path(const char *logdir, size_t i, char *buf, size_t size) {
    (void)snprintf(buf, size, "%s/plugins/profile/many/h%05zu.xplane.pb", logdir, i);
    return buf;
}

// Bytes that no other host has, and a device.
static void write_host(const char *path, size_t i) {
    struct mk_plane p = mk_plane(1, "/device:GPU:0");
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = mk_open();
    char name[32];
    mk_plane_end(&p, &space);
    (void)snprintf(name, sizeof name, "h%05zu", i);
    mk_text(&space, 4, name);
    write_file(path, space.p, space.n);
}

static void write_session(const char *logdir, size_t n) {
    char path[600];
    (void)snprintf(path, sizeof path, "%s/plugins", logdir);
    CHECK(mkdir(path, 0755) == 0);
    (void)snprintf(path, sizeof path, "%s/plugins/profile", logdir);
    CHECK(mkdir(path, 0755) == 0);
    (void)snprintf(path, sizeof path, "%s/plugins/profile/many", logdir);
    CHECK(mkdir(path, 0755) == 0);
    for (size_t i = 0; i < n; i++)
        write_host(host_path(logdir, i, path, sizeof path), i);
    sleep_ms(30); // younger files would each be waited for
}

// ---- the store ----

static struct xpl_buf encoded_product(const struct xpl_product *p, const char *xplane) {
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_error err = {0};
    struct xpl_buf out;
    struct xpl_source *file;
    void *value;
    check(xpl_source_open(AT_FDCWD, xplane, 0, &file, &err), &err);
    const struct xpl_product_input in = {
        .profile = xpl_source_bytes(file), .exec = &exec, .limit = kLimit};
    xpl_buf_init(&out, kLimit);
    check(p->make(&in, &value, &err), &err);
    check(p->encode(value, &out, &err), &err);
    p->free(value);
    xpl_source_free(file);
    return out;
}

static void put(struct xpl_store *store, const struct xpl_product *p,
                const struct xpl_profile_id *id, const struct xpl_buf *encoded) {
    struct xpl_error err = {0};
    const struct xpl_store_key key = {.kind = XPL_STORE_PRODUCT,
                                      .name = xpl_str_from(p->name),
                                      .options = XPL_STR(""),
                                      .version = p->version,
                                      .profiles = id,
                                      .n_profiles = 1};
    check(xpl_store_put(store, &key, (xpl_bytes_t){encoded->p, encoded->n}, (xpl_bytes_t){0}, &err),
          &err);
}

static void fill_store(const char *logdir, const char *state, const char *xplane, size_t n) {
    const struct xpl_product *const products[] = {&xpl_product_op_stats, &xpl_product_inference,
                                                  &xpl_product_time_breakdown};
    enum { N = sizeof products / sizeof *products };
    const struct xpl_store_options o = {.size = sizeof o, .dir = state};
    struct xpl_buf encoded[N];
    struct xpl_store *store;
    struct xpl_identity *identity;
    struct xpl_error err = {0};
    for (size_t k = 0; k < N; k++)
        encoded[k] = encoded_product(products[k], xplane);
    printf("%zu hosts of %.2f MB OpStats\n", n, (double)encoded[0].n / 1e6);
    check(xpl_store_open(&o, &store, &err), &err);
    check(xpl_identity_new(store, &identity, &err), &err);
    check(xpl_store_begin(store, &err), &err);
    for (size_t i = 0; i < n; i++) {
        char path[600];
        struct xpl_source *file;
        struct xpl_profile_id id;
        check(xpl_source_open(AT_FDCWD, host_path(logdir, i, path, sizeof path), 0, &file, &err),
              &err);
        check(xpl_identity_hash(identity, file, NULL, NULL, &id, &err), &err);
        for (size_t k = 0; k < N; k++)
            put(store, products[k], &id, &encoded[k]);
        xpl_source_free(file);
    }
    check(xpl_store_commit(store, &err), &err);
    xpl_identity_save(identity);
    xpl_identity_free(identity);
    xpl_store_close(store);
    for (size_t k = 0; k < N; k++)
        xpl_buf_fini(&encoded[k]);
}

// ---- measuring ----

static double cpu_s(pid_t pid) {
    char path[64];
    unsigned long user = 0, system = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *const f = fopen(path, "re");
    CHECK(f && fscanf(f, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
                      &system) == 2);
    (void)fclose(f);
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static size_t status_kb(pid_t pid, const char *what) {
    char path[64], line[200];
    size_t kb = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *const f = fopen(path, "re");
    CHECK(f);
    while (fgets(line, sizeof line, f))
        if (strncmp(line, what, strlen(what)) == 0) kb = strtoul(strchr(line, ':') + 1, NULL, 10);
    (void)fclose(f);
    return kb;
}

static uint64_t fnv(const uint8_t *p, size_t n) {
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * UINT64_C(0x100000001b3);
    return h;
}

static void measure(const char *logdir, const char *state, const char *tool) {
    static const char *const flags[] = {"--store-limit",  "64GiB", "--prefetch=false",
                                        "--memory-total", "16GiB", NULL};
    struct daemon_proc d = start_daemon(logdir, state, flags);
    xpl_client *const c = open_client(&d, 600000);
    xpl_answer *a = NULL;
    xpl_result r;
    const double cpu = cpu_s(d.pid);
    const uint64_t began = xpl_clock_ns();
    if (ask_tool(c, "many", tool, NULL, &a, &r) != 0) FAIL_TEST(r.message);
    const double s = (double)(xpl_clock_ns() - began) / 1e9;
    size_t n = 0;
    const uint8_t *const bytes = xpl_answer_data(a, &n);
    printf("%-24s %6.2f s, %6.2f s of processor, peak %5zu MiB, answer %.1f MB %016" PRIx64 "\n",
           tool, s, cpu_s(d.pid) - cpu, status_kb(d.pid, "VmHWM") / 1024, (double)n / 1e6,
           fnv(bytes, n));
    (void)fflush(stdout);
    xpl_answer_free(a);
    xpl_client_close(c);
    kill_daemon(&d, SIGKILL); // so that no answer is stored
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: bench_hosts XPLANE N [TOOL...]\n");
        return 2;
    }
    const size_t n = strtoul(argv[2], NULL, 10);
    const char *const logdir = make_dir(), *const state = make_dir();
    write_session(logdir, n);
    fill_store(logdir, state, argv[1], n);
    if (argc == 3) measure(logdir, state, "overview_page");
    for (int i = 3; i < argc; i++)
        measure(logdir, state, argv[i]);
    return 0;
}
