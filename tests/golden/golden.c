// SPDX-License-Identifier: Apache-2.0
// Runs one golden case: asks `xplanectl analyze` and compares with what the real XProf said.
//   golden XPLANECTL TESTS_DIR CASE_DIR
// The lines of CASE_DIR/case are described in tests/golden/README.md.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "base/arena.h"
#include "tests/golden/canonical.h"
#include "tests/golden/packets.h"

enum { MAX_HOSTS = 16, MAX_WORDS = 12, MAX_ARGS = 64 };
static const size_t memory_limit = (size_t)1 << 30;

extern char **environ;

struct golden {
    const char *xplanectl, *tests, *dir;
    char *hosts[MAX_HOSTS];
    size_t n_hosts;
    char out[PATH_MAX], err[PATH_MAX];
    int failures, checks;
};

static void problem(struct golden *g, const char *line, const char *what) {
    fprintf(stderr, "%s: %s: %s\n", g->dir, line, what);
    g->failures++;
}

// A whole file, through zlib (which passes plain files on); NULL when it cannot be read.
static char *slurp(const char *path, size_t *ret_n) {
    const gzFile f = gzopen(path, "rb");
    if (!f) return NULL;
    size_t n = 0, cap = 1 << 16;
    char *p = malloc(cap);
    for (int got = 1; p && got > 0; n += (size_t)(got > 0 ? got : 0)) {
        if (cap - n < (1 << 16)) {
            char *const q = realloc(p, cap *= 2);
            if (!q) free(p);
            p = q;
        }
        if (p) got = gzread(f, p + n, 1 << 16);
    }
    gzclose(f);
    if (p) p[n] = 0; // room: a read leaves at least one byte of the 64 KiB unless at the end
    *ret_n = n;
    return p;
}

// Splits at blanks; the last word takes the rest.
static size_t split(char *line, char **words, size_t max) {
    size_t n = 0;
    for (char *p = line; n < max;) {
        p += strspn(p, " \t\n");
        if (!*p) break;
        words[n++] = p;
        if (n == max) break;
        p += strcspn(p, " \t\n");
        if (*p) *p++ = 0;
    }
    return n;
}

static void add_host(struct golden *g, const char *line, const char *file) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", g->dir, file);
    if (access(path, R_OK) != 0) snprintf(path, sizeof path, "%s/%s", g->tests, file);
    if (access(path, R_OK) != 0 || g->n_hosts == MAX_HOSTS) {
        problem(g, line, strerror(errno));
        return;
    }
    g->hosts[g->n_hosts++] = strdup(path);
}

// Runs xplanectl; its standard error goes to g->err.  Exit status, or -1.
static int run(struct golden *g, const char *tool, char **options, size_t n_options) {
    const char *args[MAX_ARGS] = {g->xplanectl, "analyze", tool, "-o", g->out};
    size_t n = 5;
    for (size_t i = 0; i < n_options; i++) {
        args[n++] = "--option";
        args[n++] = options[i];
    }
    for (size_t i = 0; i < g->n_hosts; i++)
        args[n++] = g->hosts[i];
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 2, g->err, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    pid_t pid = 0;
    int status = -1;
    union {
        const char **in;
        char **out;
    } argv = {.in = args};
    if (posix_spawn(&pid, g->xplanectl, &actions, NULL, argv.out, environ) == 0)
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        }
    posix_spawn_file_actions_destroy(&actions);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void compare_packets(const char *tool, xpl_str_t recorded, xpl_str_t got, char *why,
                            size_t why_size) {
    const bool fractions = strcmp(tool, "event_time_fraction_analyzer") == 0;
    const xpl_str_t answers[] = {recorded, got};
    struct xpl_buf lines[2];
    bool ok = true;
    for (size_t i = 0; i < 2; i++) {
        const xpl_bytes_t bytes = {(const uint8_t *)answers[i].ptr, answers[i].len};
        xpl_buf_init(&lines[i], memory_limit);
        ok = (fractions ? packets_of_fractions : packets_of_trace)(bytes, &lines[i]) && ok;
    }
    if (!ok)
        snprintf(why, why_size, "not understood");
    else if (packets_equal(&lines[0], &lines[1], why, why_size))
        why[0] = 0;
    for (size_t i = 0; i < 2; i++)
        xpl_buf_fini(&lines[i]);
}

static void compare(struct golden *g, const char *line, const char *tool, const char *expected) {
    struct xpl_arena arena = xpl_arena_of(memory_limit);
    char why[600] = "";
    size_t n_recorded = 0, n_got = 0;
    char *const recorded = slurp(expected, &n_recorded), *const got = slurp(g->out, &n_got);
    if (!recorded || !got) {
        snprintf(why, sizeof why, "cannot read %.300s", recorded ? g->out : expected);
    } else if (n_recorded == 0 || n_got == 0) {
        if (n_recorded != n_got)
            snprintf(why, sizeof why, "%zu bytes, XProf's has %zu", n_got, n_recorded);
    } else if (strstr(expected, ".pb.gz")) {
        compare_packets(tool, (xpl_str_t){recorded, n_recorded}, (xpl_str_t){got, n_got}, why,
                        sizeof why);
    } else {
        const struct value *const a = value_parse(&arena, (xpl_str_t){recorded, n_recorded});
        const struct value *const b = value_parse(&arena, (xpl_str_t){got, n_got});
        if (!a || !b)
            snprintf(why, sizeof why, "%.300s is not valid JSON", a ? "our answer" : expected);
        else if (canonical_equal(tool, a, b, why, sizeof why))
            why[0] = 0;
    }
    if (why[0]) problem(g, line, why);
    xpl_arena_fini(&arena);
    free(recorded);
    free(got);
}

static bool is_among(const char *const *names, const char *name) {
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

// The file of an answer: CASE_DIR/TOOL[.VALUE of group_by].json.gz; of some tools it is named by
// every option, CASE_DIR/trace_viewer@[.KEY=VALUE]...json.gz.  That of protobuf ends in pb.gz.
static void name_of_answer(const struct golden *g, const char *tool, char **options, size_t n,
                           bool named_by_option, char *ret, size_t size) {
    static const char *const named[] = {"trace_viewer@", "memory_viewer",
                                        "event_time_fraction_analyzer", NULL};
    size_t at = (size_t)snprintf(ret, size, "%s/%s", g->dir, tool);
    bool protobuf = strcmp(tool, "event_time_fraction_analyzer") == 0;
    for (size_t i = 0; named_by_option && i < n && at < size; i++) {
        const bool group = strncmp(options[i], "group_by=", 9) == 0;
        const bool trace = strcmp(options[i], "perfetto=true") == 0;
        if (group || trace || is_among(named, tool))
            at += (size_t)snprintf(ret + at, size - at, ".%s", options[i] + (group ? 9 : 0));
        protobuf = protobuf || trace;
    }
    if (at < size) snprintf(ret + at, size - at, protobuf ? ".pb.gz" : ".json.gz");
}

static void answer(struct golden *g, const char *line, const char *tool, char **options, size_t n,
                   bool named_by_option) {
    char expected[PATH_MAX];
    name_of_answer(g, tool, options, n, named_by_option, expected, sizeof expected);
    g->checks++;
    const int status = run(g, tool, options, n);
    if (status == 0) {
        compare(g, line, tool, expected);
        return;
    }
    size_t length = 0;
    char *const text = slurp(g->err, &length);
    problem(g, line, text && length ? text : "xplanectl died");
    free(text);
}

static void refuse(struct golden *g, const char *line, const char *tool, const char *status,
                   const char *text) {
    g->checks++;
    const int code = run(g, tool, NULL, 0);
    size_t n = 0;
    char *const said = slurp(g->err, &n);
    if (code != atoi(status))
        problem(g, line, code == 0 ? "it was answered" : "another exit status");
    else if (!said || !strstr(said, text))
        problem(g, line, said ? said : "silent");
    free(said);
}

static void one_line(struct golden *g, char *line) {
    char shown[400], *words[MAX_WORDS];
    snprintf(shown, sizeof shown, "%.*s", (int)strcspn(line, "\n"), line);
    const bool refuses = strncmp(line, "refuse", 6) == 0;
    const size_t n = split(line, words, refuses ? 4 : MAX_WORDS);
    if (n == 0 || words[0][0] == '#') return;
    if (n == 2 && strcmp(words[0], "host") == 0)
        add_host(g, shown, words[1]);
    else if (n >= 2 && strcmp(words[0], "answer") == 0)
        answer(g, shown, words[1], words + 2, n - 2, true);
    else if (n >= 2 && strcmp(words[0], "same") == 0)
        answer(g, shown, words[1], words + 2, n - 2, false);
    else if (n == 4 && refuses) {
        words[3][strcspn(words[3], "\n")] = 0;
        refuse(g, shown, words[1], words[2], words[3]);
    } else
        problem(g, shown, "not understood");
}

static bool temporary(char *path, size_t size) {
    const char *const dir = getenv("TMPDIR");
    snprintf(path, size, "%s/xplaned-golden-XXXXXX", dir && dir[0] ? dir : "/tmp");
    const int fd = mkstemp(path);
    if (fd >= 0) close(fd);
    return fd >= 0;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "golden XPLANECTL TESTS_DIR CASE_DIR\n");
        return 2;
    }
    struct golden g = {.xplanectl = argv[1], .tests = argv[2], .dir = argv[3]};
    char path[PATH_MAX], line[PATH_MAX];
    snprintf(path, sizeof path, "%s/case", g.dir);
    FILE *const f = fopen(path, "r");
    if (!f || !temporary(g.out, sizeof g.out) || !temporary(g.err, sizeof g.err)) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return 2;
    }
    while (fgets(line, sizeof line, f))
        one_line(&g, line);
    fclose(f);
    unlink(g.out);
    unlink(g.err);
    for (size_t i = 0; i < g.n_hosts; i++)
        free(g.hosts[i]);
    printf("%d checks, %d failures\n", g.checks, g.failures);
    return g.failures || g.checks == 0 ? 1 : 0;
}
