// SPDX-License-Identifier: Apache-2.0
// `xplanectl convert`: runs `xplaned --role convert`, which has the code that makes and stores
// products, and shows its result.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "cli/csv/csv.h"
#include "cli/document/document.h"
#include "cli/program/program.h"
#include "cli/table.h"

enum { MOST_FLAGS = 12, PROGRAM = 4096, LIMIT = 256 << 20 };

// xplaned beside this program, as packages install them, else the first one of PATH.
static const char *find_program(char buf[PROGRAM]) {
    const ssize_t n = readlink("/proc/self/exe", buf, PROGRAM - sizeof "xplaned");
    char *const slash = n > 0 ? memrchr(buf, '/', (size_t)n) : NULL;
    if (!slash) return "xplaned";
    memcpy(slash + 1, "xplaned", sizeof "xplaned");
    return access(buf, X_OK) == 0 ? buf : "xplaned";
}

static void add(const char **argv, size_t *n, const char *flag, const char *value) {
    if (!value) return;
    argv[(*n)++] = flag;
    argv[(*n)++] = value;
}

static bool read_all(int fd, struct xpl_buf *ret) {
    char part[65536];
    ssize_t n;
    if (lseek(fd, 0, SEEK_SET) != 0) return false;
    while ((n = read(fd, part, sizeof part)) > 0)
        xpl_buf_str(ret, (xpl_str_t){part, (size_t)n});
    return n == 0 && !ret->failed;
}

static bool print(const void *all, FILE *out) {
    static const char *const columns[] = {"SESSION", "HOST", "LEFT BECAUSE"};
    const json_t *const left = json_object_get(all, "left");
    (void)fprintf(out, "%.0f of %.0f hosts are stored; %.0f products were made now\n",
                  xpl_document_real(all, "done"), xpl_document_real(all, "hosts"),
                  xpl_document_real(all, "products_made"));
    if (!json_array_size(left)) return true;
    struct xpl_table *const t = xpl_table_new(columns, 3);
    size_t i;
    json_t *h;
    json_array_foreach(left, i, h) {
        xpl_table_text(t, xpl_document_text(h, "session"), 40);
        xpl_table_text(t, xpl_document_text(h, "host"), 40);
        xpl_table_text(t, xpl_document_text(h, "why"), 200);
    }
    (void)fputc('\n', out);
    return xpl_table_finish(t, out);
}

// Standard output gets the answer without the end of its line.
static int show(const struct xpl_args *a, const struct xpl_buf *text) {
    const size_t n = text->n && text->p[text->n - 1] == '\n' ? text->n - 1 : text->n;
    if (a->json) return xpl_write_line(a, text->p, n) ? XPL_EXIT_OK : XPL_EXIT_FAILED;
    json_auto_t *all = xpl_document_read(text->p, n);
    return !all     ? XPL_EXIT_FAILED
           : a->csv ? xpl_csv_show(a, all, "left")
                    : xpl_write_text(a, print, all);
}

static int run(const struct xpl_args *a, const char *const *argv, int fd) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf text = xpl_buf_of(LIMIT);
    struct xpl_program_end end;
    if (!xpl_program_run(argv, fd, NULL, NULL, &end)) return XPL_EXIT_FAILED;
    if (end.signal) xpl_say("xplaned was ended by signal %d; stored products stay", end.signal);
    // The program reports a failure itself.
    if (end.exit_code != XPL_EXIT_OK && end.exit_code != XPL_EXIT_PARTLY)
        return end.exit_code == XPL_EXIT_USAGE ? XPL_EXIT_USAGE : XPL_EXIT_FAILED;
    if (!read_all(fd, &text)) {
        xpl_say("the output of xplaned cannot be read");
        return XPL_EXIT_FAILED;
    }
    const int shown = show(a, &text);
    return shown != XPL_EXIT_OK ? shown : end.exit_code;
}

int xpl_runs_convert(const struct xpl_args *a) {
    char program[PROGRAM], jobs[32];
    size_t n = 0;
    const char **const argv = xpl_sys_alloc((MOST_FLAGS + a->n_rest) * sizeof *argv);
    const int fd = memfd_create("converted", MFD_CLOEXEC);
    if (!argv || fd < 0) {
        xpl_say("%s", argv ? strerror(errno) : "out of memory");
        return XPL_EXIT_FAILED;
    }
    (void)snprintf(jobs, sizeof jobs, "%ld", a->jobs);
    argv[n++] = find_program(program);
    add(argv, &n, "--role", "convert");
    add(argv, &n, "--logdir", a->logdir);
    add(argv, &n, "--store", a->store);
    add(argv, &n, "--shard", a->shard);
    add(argv, &n, "--workers", a->jobs ? jobs : NULL);
    for (size_t i = 1; i < a->n_rest; i++)
        argv[n++] = a->rest[i];
    argv[n] = NULL;
    const int status = run(a, argv, fd);
    (void)close(fd);
    xpl_sys_free(argv);
    return status;
}
