// SPDX-License-Identifier: Apache-2.0
// Finding sessions: names, links, cycles, odd files, what a rescan notices, and inputs by path.
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "analysis/formats/format.h"
#include "base/arena.h"
#include "storage/sessions/catalogue.h"
#include "storage/sessions/scan.h"
#include "tests/check.h"

static char top[PATH_MAX];

static const char *at(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static const char *at(const char *fmt, ...) {
    static char buf[4][PATH_MAX];
    static int turn;
    char *p = buf[turn++ & 3];
    va_list ap;
    va_start(ap, fmt);
    const int n = snprintf(p, PATH_MAX, "%s/", top);
    (void)vsnprintf(p + n, PATH_MAX - (size_t)n, fmt, ap);
    va_end(ap);
    return p;
}

// Writes `size` bytes to a file below the top, making its directories.
static void put(const char *rel, size_t size) {
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s", at("%s", rel));
    for (char *p = path + strlen(top) + 1; *p; p++)
        if (*p == '/') *p = 0, (void)mkdir(path, 0700), *p = '/';
    FILE *f = fopen(path, "wb");
    CHECK(f);
    for (size_t i = 0; i < size; i++)
        CHECK(fputc('x', f) != EOF);
    CHECK_EQ(fclose(f), 0);
}

static void sh(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void sh(const char *fmt, ...) {
    char cmd[PATH_MAX];
    va_list ap;
    va_start(ap, fmt);
    const int n = snprintf(cmd, sizeof cmd, "cd %s && ", top);
    (void)vsnprintf(cmd + n, sizeof cmd - (size_t)n, fmt, ap);
    va_end(ap);
    CHECK_EQ(system(cmd), 0);
}

static struct xpl_catalogue *open_at(const char *path, bool links_anywhere) {
    const struct xpl_catalogue_options o = {.size = sizeof o,
                                            .logdir = path,
                                            .match = xpl_format_match,
                                            .links_anywhere = links_anywhere};
    struct xpl_catalogue *c = NULL;
    struct xpl_error err = {0};
    CHECK_OK(xpl_catalogue_new(&o, &c, &err), &err);
    return c;
}

static bool scan(struct xpl_catalogue *c, enum xpl_scan what) {
    bool changed = false;
    CHECK_OK(xpl_catalogue_scan(c, what, &changed, NULL), NULL);
    return changed;
}

// "NAME=HOST,HOST NAME=..." of everything in the catalogue, to be compared as text.
static const char *shown(struct xpl_catalogue *c) {
    static char buf[8192];
    struct xpl_snapshot *s = xpl_catalogue_get(c);
    size_t n = 0;
    buf[0] = 0;
    for (size_t i = 0; i < s->n_sessions; i++) {
        const struct xpl_session *se = &s->sessions[i];
        n += (size_t)snprintf(buf + n, sizeof buf - n, "%s%.*s=", i ? " " : "",
                              XPL_STR_FMT(se->name));
        for (size_t h = 0; h < se->n_hosts; h++)
            n += (size_t)snprintf(buf + n, sizeof buf - n, "%s%.*s", h ? "," : "",
                                  XPL_STR_FMT(se->hosts[h].name));
        for (size_t h = 0; h < se->n_riegeli; h++)
            n += (size_t)snprintf(buf + n, sizeof buf - n, "!%.*s", XPL_STR_FMT(se->riegeli[h]));
        CHECK(xpl_snapshot_find(s, se->name) == se);
    }
    CHECK(!xpl_snapshot_find(s, XPL_STR("no such session")));
    CHECK(!xpl_snapshot_find(s, XPL_STR("")));
    xpl_snapshot_unref(s);
    return buf;
}

static void check_shown(struct xpl_catalogue *c, const char *expected) {
    const char *got = shown(c);
    if (strcmp(got, expected) != 0) fprintf(stderr, "got  %s\nwant %s\n", got, expected);
    CHECK_STR(got, expected);
}

static void make_top(void) {
    const bool shm = access("/dev/shm", W_OK) == 0; // thousands of files are made here
    (void)snprintf(top, sizeof top, "%s/xpl-catalogue-XXXXXX", shm ? "/dev/shm" : "/tmp");
    CHECK(mkdtemp(top));
}

static void remove_top(void) {
    sh("chmod -R u+rwx . && rm -rf %s", top);
}

static void test_names(void) {
    make_top();
    put("logs/plugins/profile/run1/h2.xplane.pb", 5);
    put("logs/plugins/profile/run1/h1.xplane.pb", 7);
    put("logs/plugins/profile/run1/h1.op_stats_v2.pb", 9);
    put("logs/plugins/profile/run1/._h1.xplane.pb", 9);
    put("logs/plugins/profile/run1/.xplane.pb", 9);
    put("logs/train/plugins/profile/run1/h.xplane.pb", 1);
    put("logs/plugins/profile/run1/sub/h.xplane.pb", 1);
    put("logs/plugins/profile/loose.xplane.pb", 1);
    put("logs/plugins/profile/empty/trace.json.gz", 1);
    put("logs/other/deep/h.xplane.pb", 1);
    put("logs/xplugins/profile/r/h.xplane.pb", 1);
    put("logs/here.xplane.pb", 1);
    struct xpl_catalogue *c = open_at(at("logs"), false);
    check_shown(c, "empty= logs=here other/deep=h plugins/profile=loose "
                   "plugins/profile/run1/sub=h run1=h1,h2 train/run1=h xplugins/profile/r=h");
    struct xpl_snapshot *s = xpl_catalogue_get(c);
    const struct xpl_session *se = xpl_snapshot_find(s, XPL_STR("run1"));
    CHECK_EQ(se->bytes, 12);
    CHECK_EQ(se->hosts[0].fingerprint.size, 7);
    CHECK_STR(se->path, "plugins/profile/run1");
    CHECK_STR(se->hosts[1].path, "plugins/profile/run1/h2.xplane.pb");
    CHECK(xpl_session_find_host(se, XPL_STR("h1")) == &se->hosts[0]);
    CHECK(!xpl_session_find_host(se, XPL_STR("../run1/h1")));
    struct xpl_source *src = NULL;
    CHECK_OK(xpl_snapshot_open(s, &se->hosts[1], 0, &src, NULL), NULL);
    CHECK_EQ(xpl_source_bytes(src).len, 5);
    CHECK(xpl_fingerprint_eq(xpl_source_fingerprint(src), &se->hosts[1].fingerprint));
    xpl_source_free(src);
    struct xpl_error err = {0};
    CHECK_STATUS(xpl_snapshot_open(s, &se->hosts[1], 4, &src, &err), XPL_RESOURCE_EXHAUSTED, &err);
    xpl_catalogue_free(c);
    CHECK_OK(xpl_snapshot_open(s, &se->hosts[0], 0, &src, NULL), NULL); // outlives the catalogue
    xpl_source_free(src);
    xpl_snapshot_unref(s);
    remove_top();
}

static void test_claims(void) {
    make_top();
    put("d/plugins/profile/run/h.xplane.pb", 1);
    put("d/run/h.xplane.pb", 2); // same name, weaker claim
    put("d/d/h.xplane.pb", 3);   // LOGDIR's own name
    put("d/top.xplane.pb", 4);
    struct xpl_catalogue *c = open_at(at("d/"), false);
    check_shown(c, "./d=h ./run=h d=top run=h");
    struct xpl_snapshot *s = xpl_catalogue_get(c);
    CHECK_EQ(xpl_snapshot_find(s, XPL_STR("run"))->bytes, 1);
    CHECK_EQ(xpl_snapshot_find(s, XPL_STR("./run"))->bytes, 2);
    const uint64_t before = xpl_snapshot_find(s, XPL_STR("run"))->changed;
    xpl_snapshot_unref(s);
    sh("rm -r d/plugins"); // now the name means the other directory
    CHECK(scan(c, XPL_SCAN_ALL));
    check_shown(c, "./d=h d=top run=h");
    s = xpl_catalogue_get(c);
    CHECK(xpl_snapshot_find(s, XPL_STR("run"))->changed != before);
    CHECK_EQ(s->removed, s->generation);
    xpl_snapshot_unref(s);
    xpl_catalogue_free(c);
    CHECK_EQ(chdir(at("d")), 0);
    c = open_at(".", false);
    check_shown(c, "./d=h d=top run=h");
    xpl_catalogue_free(c);
    CHECK_EQ(chdir("/"), 0);
    remove_top();
}

static void test_escapes(void) {
    make_top();
    put("plugins/profile/a\xff%b/h\xfe.xplane.pb", 1);
    put("plugins/profile/100%/h%41.xplane.pb", 1);
    put("plugins/profile/\xc3\xa4\xe4\xb8\xad\xf0\x9f\x98\x80/h.xplane.pb", 1);
    put("plugins/profile/\xed\xa0\x80\xc0\xaf/h.xplane.pb", 1); // surrogate, overlong
    put("plugins/profile/twin/\xff.xplane.pb", 1);
    put("plugins/profile/twin/%FF.xplane.pb", 2);
    put("x\xff/h.xplane.pb", 1);
    put("x%FF/h.xplane.pb", 1);
    put("new\nline/h\"q.xplane.pb", 1);
    struct xpl_catalogue *c = open_at(top, false);
    check_shown(c, "%ED%A0%80%C0%AF=h ./x%FF=h 100%=h%41 a%FF%25b=h%FE new\nline=h\"q "
                   "twin=%FF,%FF~2 x%FF=h \xc3\xa4\xe4\xb8\xad\xf0\x9f\x98\x80=h");
    struct xpl_snapshot *s = xpl_catalogue_get(c);
    const struct xpl_session *twin = xpl_snapshot_find(s, XPL_STR("twin"));
    CHECK_EQ(xpl_session_find_host(twin, XPL_STR("%FF"))->fingerprint.size, 2);
    struct xpl_source *src = NULL;
    CHECK_OK(xpl_snapshot_open(s, xpl_session_find_host(twin, XPL_STR("%FF~2")), 0, &src, NULL),
             NULL);
    CHECK_EQ(xpl_source_bytes(src).len, 1);
    xpl_source_free(src);
    xpl_snapshot_unref(s);
    xpl_catalogue_free(c);
    remove_top();
}

static void test_odd_files(void) {
    make_top();
    put("r/h.xplane.pb", 1);
    put("r/h.xplane.riegeli", 1);
    put("r/only.xplane.riegeli", 1);
    put("r/old.xplane.pb.bak", 1);
    sh("mkfifo r/pipe.xplane.pb && ln -s /nowhere r/dangling.xplane.pb && "
       "mkdir r/dir.xplane.pb && ln -s h.xplane.pb r/link.xplane.pb");
    put("r/dir.xplane.pb/inner.xplane.pb", 1);
    put("rg/a.xplane.riegeli", 1);
    struct xpl_catalogue *c = open_at(top, false);
    check_shown(c, "r=h,link!only r/dir.xplane.pb=inner rg=!a");
    struct xpl_snapshot *s = xpl_catalogue_get(c);
    CHECK(xpl_session_has_riegeli(xpl_snapshot_find(s, XPL_STR("r")), XPL_STR("only")));
    CHECK(!xpl_session_has_riegeli(xpl_snapshot_find(s, XPL_STR("r")), XPL_STR("h")));
    CHECK_EQ(s->n_problems, 2);
    CHECK_EQ(s->n_problems_kept, 1); // one sentence for each directory
    CHECK(s->problems[0].len > 0);
    xpl_snapshot_unref(s);
    xpl_catalogue_free(c);
    // A log directory that is one file.
    c = open_at(at("r/h.xplane.pb"), false);
    check_shown(c, "h=h");
    s = xpl_catalogue_get(c);
    struct xpl_source *src = NULL;
    CHECK_OK(xpl_snapshot_open(s, &s->sessions[0].hosts[0], 0, &src, NULL), NULL);
    xpl_source_free(src);
    CHECK_STR(s->base, at("r"));
    xpl_snapshot_unref(s);
    CHECK(!scan(c, XPL_SCAN_MARKED));
    put("r/h.xplane.pb", 9);
    CHECK(scan(c, XPL_SCAN_MARKED));
    sh("rm r/h.xplane.pb");
    CHECK(scan(c, XPL_SCAN_ALL));
    check_shown(c, "");
    xpl_catalogue_free(c);
    remove_top();
}

// Of several files of one host the one of the best format counts; the others are reported.
static void test_formats(void) {
    make_top();
    put("r/a.xplane.pb", 1);
    put("r/a.xplane.pb-b.xplane.pb", 1); // between the two of a
    put("r/a.xplane.pb.gz", 2);
    put("r/c.xplane.pb.zst", 3);
    put("r/c.xplane.pb.gz", 4);
    put("r/c.xplane.riegeli", 4);
    put("r/.d.xplane.pb.gz", 4);
    struct xpl_catalogue *c = open_at(top, false);
    check_shown(c, "r=a,a.xplane.pb-b,c");
    struct xpl_snapshot *s = xpl_catalogue_get(c);
    const struct xpl_session *const r = xpl_snapshot_find(s, XPL_STR("r"));
    CHECK_EQ(r->bytes, 6);
    CHECK_STR(r->hosts[0].path, "r/a.xplane.pb");
    CHECK_STR(r->hosts[2].path, "r/c.xplane.pb.gz");
    CHECK_EQ(s->n_problems, 2);
    CHECK(xpl_str_has(s->problems[0], XPL_STR("left out: its host has another file here")));
    xpl_snapshot_unref(s);
    // When the better one goes, the other counts.
    sh("rm r/a.xplane.pb r/c.xplane.pb.gz r/c.xplane.pb.zst");
    CHECK(scan(c, XPL_SCAN_ALL));
    check_shown(c, "r=a,a.xplane.pb-b!c");
    s = xpl_catalogue_get(c);
    CHECK_EQ(s->n_problems, 0);
    CHECK_STR(s->sessions[0].hosts[0].path, "r/a.xplane.pb.gz");
    xpl_snapshot_unref(s);
    xpl_catalogue_free(c);
    remove_top();
}

static void refused(const char *path, xpl_status_t code, const char *word) {
    const struct xpl_catalogue_options o = {
        .size = sizeof o, .logdir = path, .match = xpl_format_match};
    struct xpl_catalogue *c = NULL;
    struct xpl_error err = {0};
    CHECK_EQ(xpl_catalogue_new(&o, &c, &err), code);
    CHECK(!c);
    CHECK(strstr(err.msg, word));
}

// Bundles of IREE are no XSpaces: a session each, or one of a run's directory.
static void test_kinds(void) {
    make_top();
    put("plugins/profile/both/h.xplane.pb", 1);
    put("plugins/profile/both/h.ireeprof", 1);
    put("plugins/profile/both/i.ireeprof", 1);
    put("plugins/profile/own/a.ireeprof", 1);
    put("sub/x.ireeprof", 1);
    put("sub/x.xplane.pb", 1);
    put("sub/y.ireeprof", 1);
    put("z.ireeprof", 1);
    struct xpl_catalogue *c = open_at(top, false);
    check_shown(c, "both=h both.ireeprof=h,i own=a sub=x sub/x=x sub/y=y z=z");
    struct xpl_snapshot *s = xpl_catalogue_get(c);
    const struct xpl_session *const x = xpl_snapshot_find(s, XPL_STR("sub/x"));
    const struct xpl_session *const both = xpl_snapshot_find(s, XPL_STR("both.ireeprof"));
    // No directory is removed for a session that shares it.
    CHECK_STR(x->path, "sub/x.ireeprof");
    CHECK_STR(both->path, "plugins/profile/both/*.ireeprof");
    CHECK_STR(x->hosts[0].path, "sub/x.ireeprof");
    CHECK_EQ(s->n_problems, 0);
    const uint64_t before = x->changed;
    put("sub/x.ireeprof", 2); // it grows
    CHECK(scan(c, XPL_SCAN_ALL));
    struct xpl_snapshot *const t = xpl_catalogue_get(c);
    CHECK(xpl_snapshot_find(t, XPL_STR("sub/x"))->changed > before);
    CHECK_EQ(xpl_snapshot_find(t, XPL_STR("z"))->changed,
             xpl_snapshot_find(s, XPL_STR("z"))->changed);
    xpl_snapshot_unref(s);
    xpl_snapshot_unref(t);
    xpl_catalogue_free(c);
    remove_top();
}

static void test_refused(void) {
    make_top();
    put("x.txt", 1);
    refused(at("none"), XPL_NOT_FOUND, "none: cannot open");
    refused(at("x.txt"), XPL_INVALID_ARGUMENT, "neither a directory nor");
    refused("", XPL_INVALID_ARGUMENT, "no log directory");
    remove_top();
}

static void test_links(void) {
    make_top();
    put("outside/run9/h.xplane.pb", 1);
    put("outside/file.xplane.pb", 1);
    put("logs/plugins/profile/run1/h.xplane.pb", 1);
    sh("cd logs && ln -s run1 plugins/profile/latest && ln -s ../outside out && "
       "ln -s .. up && ln -s ../.. plugins/profile/self && ln -s loop loop && "
       "ln -s ../../../../outside/file.xplane.pb plugins/profile/run1/far.xplane.pb");
    struct xpl_catalogue *c = open_at(at("logs"), true);
    check_shown(c, "latest=far,h out=file out/run9=h run1=far,h self= up/outside=file "
                   "up/outside/run9=h");
    struct xpl_snapshot *s = xpl_catalogue_get(c);
    CHECK(s->n_problems >= 2); // the cycles
    xpl_snapshot_unref(s);
    xpl_catalogue_free(c);
    c = open_at(at("logs"), false);
    check_shown(c, "latest=h run1=h self=");
    s = xpl_catalogue_get(c);
    CHECK(s->n_problems >= 4); // the cycles and the links that lead out
    // A link that comes in later, before the next scan, is refused too.
    sh("cd logs/plugins/profile/run1 && rm h.xplane.pb && "
       "ln -s ../../../../outside/file.xplane.pb h.xplane.pb");
    struct xpl_source *src = NULL;
    CHECK_STATUS(
        xpl_snapshot_open(s, &xpl_snapshot_find(s, XPL_STR("run1"))->hosts[0], 0, &src, NULL),
        XPL_PERMISSION_DENIED, NULL);
    xpl_snapshot_unref(s);
    xpl_catalogue_free(c);
    // LOGDIR may be a link itself, or lead through one; so may the only profile.
    sh("ln -s outside/run9 dir && ln -s outside/file.xplane.pb file.xplane.pb");
    c = open_at(at("dir"), false);
    check_shown(c, "dir=h");
    xpl_catalogue_free(c);
    c = open_at(at("file.xplane.pb"), false);
    check_shown(c, "file=file");
    s = xpl_catalogue_get(c);
    CHECK_OK(xpl_snapshot_open(s, &s->sessions[0].hosts[0], 0, &src, NULL), NULL);
    xpl_source_free(src);
    xpl_snapshot_unref(s);
    xpl_catalogue_free(c);
    remove_top();
}

// ---- scans that are stopped ----

// Of the directory entries that scans looked at: all, and after how many a stop comes.
static struct {
    size_t n, stop_at;
    struct xpl_catalogue *c; // to stop; NULL: it answers
} entries;

static bool count_entry(xpl_str_t file, struct xpl_profile_file *ret) {
    if (++entries.n == entries.stop_at && entries.c) xpl_catalogue_stop(entries.c);
    return xpl_format_match(file, ret);
}

static bool is_stop_due(void *arg) {
    (void)arg;
    return entries.n >= entries.stop_at;
}

// At most so many entries, wherever the stop comes; in the first scan, which may be asked, and in
// later ones, of entries that are read and of profiles that are checked.
static void test_stopped(void) {
    enum { N_DIRS = 5, N_FILES = 300, LATEST = N_DIRS * N_FILES - 64 };
    const struct xpl_cancel cancel = {.is_cancelled = is_stop_due};
    struct xpl_catalogue_options o = {
        .size = sizeof o, .logdir = top, .match = count_entry, .cancel = &cancel};
    struct xpl_catalogue *c = NULL;
    make_top();
    for (int i = 0; i < N_DIRS; i++)
        sh("mkdir d%d && cd d%d && for i in $(seq %d); do : > $i.xplane.pb; done", i, i, N_FILES);
    for (size_t at = 1; at < LATEST; at += 83) {
        entries.n = 0, entries.stop_at = at, entries.c = NULL;
        CHECK_STATUS(xpl_catalogue_new(&o, &c, NULL), XPL_CANCELLED, NULL);
        CHECK(entries.n < at + 64);
    }
    for (size_t at = 1; at < LATEST; at += 83) {
        entries.n = 0, entries.stop_at = SIZE_MAX, entries.c = NULL;
        CHECK_OK(xpl_catalogue_new(&o, &c, NULL), NULL);
        CHECK_EQ(entries.n, N_DIRS * (N_FILES + 1)); // every entry is counted once
        sh("touch d*");
        entries.n = 0, entries.stop_at = at, entries.c = c;
        CHECK_STATUS(xpl_catalogue_scan(c, XPL_SCAN_ALL, NULL, NULL), XPL_CANCELLED, NULL);
        CHECK(entries.n < at + 64);
        const size_t seen = entries.n;
        CHECK_STATUS(xpl_catalogue_scan(c, XPL_SCAN_ALL, NULL, NULL), XPL_CANCELLED, NULL);
        CHECK_EQ(entries.n, seen);
        struct xpl_snapshot *s = xpl_catalogue_get(c); // the last one stays
        CHECK_EQ(s->n_sessions, N_DIRS);
        xpl_snapshot_unref(s);
        xpl_catalogue_free(c);
    }
    remove_top();
}

static bool count_identity(xpl_str_t path, xpl_bytes_t file, struct xpl_profile_identity *ret) {
    (void)path, (void)file;
    if (++entries.n == entries.stop_at && entries.c) xpl_catalogue_stop(entries.c);
    *ret = (struct xpl_profile_identity){.rank = -1, .world_size = -1};
    return true;
}

static bool match_trace(xpl_str_t file, struct xpl_profile_file *ret) {
    const bool is = xpl_format_match(file, ret);
    ret->identify = count_identity;
    return is;
}

// As above, of files that are opened to see whose they are.
static void test_stopped_identities(void) {
    enum { N_FILES = 300 };
    const struct xpl_cancel cancel = {.is_cancelled = is_stop_due};
    struct xpl_catalogue_options o = {
        .size = sizeof o, .logdir = top, .match = match_trace, .cancel = &cancel};
    struct xpl_catalogue *c = NULL;
    make_top();
    sh("mkdir d && cd d && for i in $(seq %d); do : > $i.pt.trace.json; done", N_FILES);
    for (size_t at = 1; at < N_FILES - 64; at += 83) {
        entries.n = 0, entries.stop_at = at, entries.c = NULL;
        CHECK_STATUS(xpl_catalogue_new(&o, &c, NULL), XPL_CANCELLED, NULL);
        CHECK(entries.n < at + 64);
        entries.n = 0, entries.stop_at = SIZE_MAX;
        CHECK_OK(xpl_catalogue_new(&o, &c, NULL), NULL);
        CHECK_EQ(entries.n, N_FILES);
        sh("touch d/*"); // each is looked into again
        entries.n = 0, entries.stop_at = at, entries.c = c;
        CHECK_STATUS(xpl_catalogue_scan(c, XPL_SCAN_ALL, NULL, NULL), XPL_CANCELLED, NULL);
        CHECK(entries.n < at + 64);
        xpl_catalogue_free(c);
    }
    remove_top();
}

// ---- runs that are joined ----

// The profiles here say "BEGIN END PROGRAM" in seconds; an empty one says nothing.
static bool read_run(xpl_bytes_t file, struct xpl_profile_identity *ret) {
    char text[64] = "";
    unsigned begin = 0, end = 0, program = 0;
    memcpy(text, file.ptr, file.len < sizeof text ? file.len : sizeof text - 1);
    (void)sscanf(text, "%u %u %u", &begin, &end, &program);
    *ret = (struct xpl_profile_identity){.rank = -1,
                                         .world_size = -1,
                                         .begin_ns = begin * INT64_C(1000000000),
                                         .written_ns = end * INT64_C(1000000000),
                                         .program = program};
    return begin != 0;
}

static int64_t read_begin(xpl_bytes_t file) {
    struct xpl_profile_identity id;
    return read_run(file, &id) ? id.begin_ns : 0;
}

static struct xpl_catalogue *open_joining(bool joins) {
    const struct xpl_catalogue_options o = {.size = sizeof o,
                                            .logdir = top,
                                            .match = xpl_format_match,
                                            .captured_ns = read_begin,
                                            .identify_run = joins ? read_run : NULL};
    struct xpl_catalogue *c = NULL;
    CHECK_OK(xpl_catalogue_new(&o, &c, NULL), NULL);
    return c;
}

// Writes such a profile.
static void put_run(const char *file, const char *text) {
    put(file, 0);
    sh("printf '%s' > %s", text, file);
}

static void test_joined(void) {
    make_top();
    put_run("plugins/profile/a/h0.xplane.pb", "100 110 7");
    put_run("plugins/profile/b/h1.xplane.pb", "105 115 7");
    put_run("plugins/profile/c/h0.xplane.pb", "200 210 7"); // another capture
    put_run("plugins/profile/d/h2.xplane.pb", "105 115 8"); // another program
    put_run("plugins/profile/e/h3.xplane.pb", "");
    put_run("copy/a/h0.xplane.pb", "100 110 7");
    // Each process has a log directory, and calls its host alike.
    put_run("r0/plugins/profile/x/h.xplane.pb", "300 310 7");
    put_run("r1/plugins/profile/x/h.xplane.pb", "301 311 0");
    struct xpl_catalogue *c = open_joining(false);
    check_shown(c, "a=h0 b=h1 c=h0 copy/a=h0 d=h2 e=h3 r0/x=h r1/x=h");
    xpl_catalogue_free(c);
    c = open_joining(true);
    check_shown(c, "a+joined=h0,h1 c=h0 copy/a=h0 d=h2 e=h3 r0/x+joined=r0_x_h,r1_x_h");
    struct xpl_snapshot *s = xpl_catalogue_get(c);
    const struct xpl_session *const joint = xpl_snapshot_find(s, XPL_STR("a+joined")),
                                    *const part = xpl_snapshot_find(s, XPL_STR("b"));
    CHECK(joint && part);
    CHECK_EQ(joint->n_runs, 2);
    CHECK_EQ(joint->captured_ns, 100000000000);
    CHECK_EQ(joint->bytes, 18);
    CHECK_EQ(part->n_runs, 0);
    CHECK_STR(part->hosts[0].path, "plugins/profile/b/h1.xplane.pb");
    const uint64_t changed = joint->changed;
    // What did not change keeps its generation.
    put_run("plugins/profile/z/h9.xplane.pb", "900 910 7");
    CHECK(scan(c, XPL_SCAN_ALL));
    struct xpl_snapshot *after = xpl_catalogue_get(c);
    CHECK_EQ(xpl_snapshot_find(after, XPL_STR("a+joined"))->changed, changed);
    CHECK_EQ(after->removed, s->removed);
    xpl_snapshot_unref(s);
    xpl_snapshot_unref(after);
    // What loses a part has changed, and stays so.
    put_run("plugins/profile/f/h4.xplane.pb", "106 116 7");
    CHECK(scan(c, XPL_SCAN_ALL));
    check_shown(c, "a+joined=h0,h1,h4 c=h0 copy/a=h0 d=h2 e=h3 r0/x+joined=r0_x_h,r1_x_h z=h9");
    sh("rm -r plugins/profile/f");
    CHECK(scan(c, XPL_SCAN_ALL));
    after = xpl_catalogue_get(c);
    const uint64_t lost = after->generation;
    CHECK_EQ(xpl_snapshot_find(after, XPL_STR("a+joined"))->changed, lost);
    xpl_snapshot_unref(after);
    put_run("plugins/profile/z/h8.xplane.pb", "901 911 8");
    CHECK(scan(c, XPL_SCAN_ALL));
    after = xpl_catalogue_get(c);
    CHECK_EQ(xpl_snapshot_find(after, XPL_STR("a+joined"))->changed, lost);
    xpl_snapshot_unref(after);
    sh("rm -r plugins/profile/z");
    put_run("plugins/profile/z/h9.xplane.pb", "900 910 7");
    CHECK(scan(c, XPL_SCAN_ALL));
    sh("rm -r plugins/profile/b");
    CHECK(scan(c, XPL_SCAN_ALL));
    check_shown(c, "a=h0 c=h0 copy/a=h0 d=h2 e=h3 r0/x+joined=r0_x_h,r1_x_h z=h9");
    s = xpl_catalogue_get(c);
    CHECK_EQ(s->removed, s->generation);
    CHECK_EQ(xpl_snapshot_find(s, XPL_STR("a"))->changed,
             s->generation); // the store has no such row
    xpl_snapshot_unref(s);
    xpl_catalogue_free(c);
    remove_top();
}

// Ranks say of which job they are: one is missing of all, not of each.
static void test_joined_ranks(void) {
    make_top();
    for (int i = 0; i < 3; i++) {
        char file[64], text[160];
        (void)snprintf(file, sizeof file, "rank%d/w.%d.pt.trace.json", i, 1700000000 + i);
        (void)snprintf(text, sizeof text,
                       "{\"distributedInfo\": {\"rank\": %d, \"world_size\": 4}, "
                       "\"traceEvents\": []}",
                       i);
        put_run(file, text);
    }
    struct xpl_catalogue *const c = open_joining(true);
    check_shown(c, "rank0+joined=rank 0,rank 1,rank 2");
    struct xpl_snapshot *const s = xpl_catalogue_get(c);
    CHECK_EQ(s->sessions[0].n_lost, 1);
    CHECK_STR(s->sessions[0].lost[0].target, "1 of 4 ranks");
    CHECK_STR(xpl_snapshot_find(s, XPL_STR("rank1"))->lost[0].target, "3 of 4 ranks");
    xpl_snapshot_unref(s);
    xpl_catalogue_free(c);
    remove_top();
}

// Such a name joins nothing, and the snapshot stays.
static void check_alone(struct xpl_snapshot *s, const char *name, xpl_status_t st) {
    struct xpl_snapshot *same = s;
    const struct xpl_session *one = NULL;
    struct xpl_error err = {0};
    CHECK_EQ(xpl_snapshot_find_all(&same, xpl_str_from(name), &one, &err), st);
    CHECK_EQ(err.code, st);
    CHECK(one == xpl_snapshot_find(s, xpl_str_from(name)) && !one == (st != XPL_OK) && same == s);
}

// "A,B" is the session of both, as a request names it.
static void test_several_names(void) {
    make_top();
    put("a/h0.xplane.pb", 1);
    put("b/h0.xplane.pb", 2);
    put("c,d/h1.xplane.pb", 4);
    struct xpl_catalogue *const c = open_at(top, false);
    struct xpl_snapshot *const s = xpl_catalogue_get(c), *joined = xpl_snapshot_ref(s);
    const struct xpl_session *both = NULL;
    CHECK_OK(xpl_snapshot_find_all(&joined, XPL_STR("b,a"), &both, NULL), NULL);
    CHECK(joined != s);
    CHECK_STR(both->name, "b,a");
    CHECK_EQ(both->bytes, 3);
    CHECK_EQ(both->n_hosts, 2);
    CHECK_STR(both->hosts[0].name, "a_h0");
    CHECK_STR(both->hosts[1].name, "b_h0");
    CHECK(xpl_session_find_host(both, XPL_STR("b_h0")) == &both->hosts[1]);
    CHECK(xpl_snapshot_find(joined, XPL_STR("a")) == xpl_snapshot_find(s, XPL_STR("a")));
    CHECK_EQ(joined->n_sessions, 3); // it is not listed
    xpl_snapshot_unref(joined);
    check_alone(s, "a", XPL_OK);
    check_alone(s, "c,d", XPL_OK);
    check_alone(s, "a,a", XPL_NOT_FOUND);
    check_alone(s, "a,", XPL_NOT_FOUND);
    check_alone(s, "a,nix", XPL_NOT_FOUND);
    check_alone(s, ",", XPL_NOT_FOUND);
    xpl_snapshot_unref(s);
    xpl_catalogue_free(c);
    remove_top();
}

// A request joins at most 256 sessions; their names have at most 64 KiB.
static void test_too_many_names(void) {
    static char names[(64 << 10) + 2];
    size_t n = 0;
    make_top();
    sh("for i in $(seq 100 356); do mkdir $i && touch $i/h.xplane.pb; done");
    struct xpl_catalogue *const c = open_at(top, false);
    struct xpl_snapshot *s = xpl_catalogue_get(c);
    for (int i = 0; i < 257; i++)
        n += (size_t)snprintf(names + n, sizeof names - n, "%s%d", i ? "," : "", 100 + i);
    check_alone(s, names, XPL_INVALID_ARGUMENT);
    names[n - 4] = '\0';
    const struct xpl_session *all = NULL;
    CHECK_OK(xpl_snapshot_find_all(&s, xpl_str_from(names), &all, NULL), NULL);
    CHECK_EQ(all->n_hosts, 256);
    memset(names, ',', sizeof names - 1);
    check_alone(s, names, XPL_INVALID_ARGUMENT);
    xpl_snapshot_unref(s);
    xpl_catalogue_free(c);
    remove_top();
}

// The names of 8 sessions in 40,320 orders: each request pays for its own, and none for the others.
static void test_orders_of_names(void) {
    make_top();
    for (int i = 0; i < 8; i++)
        sh("mkdir %c && touch %c/h.xplane.pb", 'a' + i, 'a' + i);
    struct xpl_catalogue *const c = open_at(top, false);
    for (unsigned order = 0; order < 40320; order++) {
        char letters[] = "abcdefgh", names[] = "a,a,a,a,a,a,a,a";
        for (unsigned i = 0, rest = order; i < 8; rest /= 8 - i, i++) {
            const unsigned at = i + rest % (8 - i);
            const char one = letters[at];
            letters[at] = letters[i];
            letters[i] = names[2 * i] = one;
        }
        struct xpl_snapshot *s = xpl_catalogue_get(c);
        const struct xpl_session *all = NULL;
        CHECK_OK(xpl_snapshot_find_all(&s, xpl_str_from(names), &all, NULL), NULL);
        CHECK_EQ(all->n_hosts, 8);
        xpl_snapshot_unref(s);
    }
    xpl_catalogue_free(c);
    remove_top();
}

// Sorting the hosts of very large sessions would take seconds of a thread that serves all.
static void test_too_many_to_join(void) {
    enum { HOSTS = 33000 };
    struct xpl_root root = {.refs = 1, .fd = -1};
    struct xpl_dir above = {.path = (char *)(uintptr_t) ".", .path_len = 1, .n_groups = 1};
    struct xpl_dir d[3];
    struct xpl_dir *const dirs[] = {&above, &d[0], &d[1], &d[2]};
    const struct xpl_snapshot_spec spec = {
        .root = &root, .dirs = dirs, .n_dirs = 4, .base = "/", .logdir_name = XPL_STR("top")};
    static char names[HOSTS][8];
    static struct xpl_dir_file files[HOSTS];
    struct xpl_snapshot *s = NULL;
    for (int i = 0; i < HOSTS; i++) {
        (void)snprintf(names[i], sizeof names[i], "%05d.x", i);
        files[i] = (struct xpl_dir_file){.name = names[i], .len = 5};
    }
    for (size_t i = 0; i < 3; i++)
        d[i] = (struct xpl_dir){.parent = &above,
                                .path = (char *)(uintptr_t)(const char *[]){"a", "b", "c"}[i],
                                .path_len = 1,
                                .n_groups = 1,
                                .files = files,
                                .n_files = i == 2 ? 1 : HOSTS};
    CHECK_OK(xpl_snapshot_build(&spec, &s, NULL), NULL);
    check_alone(s, "a", XPL_OK);
    check_alone(s, "a,b", XPL_INVALID_ARGUMENT);
    const struct xpl_session *both = NULL;
    CHECK_OK(xpl_snapshot_find_all(&s, XPL_STR("a,c"), &both, NULL), NULL);
    xpl_snapshot_unref(s);
}

// ---- directories with very many sessions ----

// The processor's time for a snapshot of `n` sessions in one directory, each of one file: of kind 0
// they are captures of one process, one after the other.
static double snapshot_seconds(size_t n, uint8_t kind) {
    struct xpl_root root = {.refs = 1, .fd = -1};
    struct xpl_dir above = {.path = (char *)(uintptr_t) ".", .path_len = 1, .n_groups = 1};
    struct xpl_dir d = {
        .parent = &above, .path = (char *)(uintptr_t) "d", .path_len = 1, .n_files = n};
    struct xpl_dir *const dirs[] = {&above, &d};
    const struct xpl_snapshot_spec spec = {
        .root = &root, .dirs = dirs, .n_dirs = 2, .base = "/", .logdir_name = XPL_STR("top")};
    struct xpl_profile_identity *const ids = calloc(n, sizeof *ids);
    char(*const names)[32] = calloc(n, sizeof *names);
    struct xpl_snapshot *s = NULL;
    struct timespec begin, end;
    d.files = calloc(n, sizeof *d.files);
    CHECK(ids && names && d.files);
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(names[i], sizeof names[i], "w.%08zu.x", i);
        ids[i] = (struct xpl_profile_identity){.rank = -1,
                                               .world_size = -1,
                                               .worker_len = 1,
                                               .begin_ns = (int64_t)(i + 1) * 100000000000};
        d.files[i] = (struct xpl_dir_file){.name = names[i], .len = 10, .kind = kind};
        if (kind == 0) d.files[i].identity = &ids[i];
    }
    CHECK_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin), 0);
    CHECK(xpl_dir_group(&d));
    CHECK_OK(xpl_snapshot_build(&spec, &s, NULL), NULL);
    CHECK_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end), 0);
    CHECK_EQ(s->n_sessions, n);
    for (size_t i = 0; i < n; i++)
        CHECK_EQ(s->sessions[i].n_hosts, 1);
    xpl_snapshot_unref(s);
    free(d.groups);
    free(d.files);
    free(ids);
    free(names);
    return (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
}

// 8 times as many take about 8 times as long, not 64 times.
static void test_many_of_a_directory(void) {
    for (uint8_t kind = 0; kind < 2; kind++) {
        const double few = snapshot_seconds(5000, kind), many = snapshot_seconds(40000, kind);
        if (many > 24 * few) fprintf(stderr, "%u: %g s, %g s\n", kind, few, many);
        CHECK(many < 24 * few);
    }
}

// Each name that a directory gets is another one's: that ends after a few rounds.
static void test_names_built_to_collide(void) {
    enum { N = 40 };
    char name[3 + 2 * N + 1] = "%FF";
    size_t marked = 0;
    make_top();
    put("\xff/h.xplane.pb", 1);
    for (int i = 0; i < N; i++) {
        put(at("%s/h.xplane.pb", name) + strlen(top) + 1, 1);
        put(at("plugins/profile/%s/h.xplane.pb", name) + strlen(top) + 1, 1);
        (void)strcat(name, "~2");
    }
    const struct xpl_catalogue_options o = {
        .size = sizeof o, .logdir = top, .match = xpl_format_match};
    struct xpl_catalogue *c = NULL;
    CHECK_OK(xpl_catalogue_new(&o, &c, NULL), NULL);
    struct xpl_snapshot *const s = xpl_catalogue_get(c);
    CHECK_EQ(s->n_sessions, 2 * N + 1);
    for (size_t i = 0; i < s->n_sessions; i++) {
        const struct xpl_session *const one = &s->sessions[i];
        CHECK(!i || xpl_str_cmp(s->sessions[i - 1].name, one->name) < 0);
        CHECK(xpl_snapshot_find(s, one->name) == one);
        marked += xpl_str_has(one->name, XPL_STR("//"));
    }
    CHECK_EQ(marked, 1);
    xpl_snapshot_unref(s);
    xpl_catalogue_free(c);
    remove_top();
}

// Links that multiply: 2^n paths to one directory. The limit ends it, and nearby sessions survive.
static void test_explosion(void) {
    make_top();
    put("near/h.xplane.pb", 1);
    for (int i = 0; i < 24; i++)
        sh("mkdir -p z/%d && ln -s ../%d z/%d/a && ln -s ../%d z/%d/b", i, i + 1, i, i + 1, i);
    const struct xpl_catalogue_options o = {
        .size = sizeof o, .logdir = top, .match = xpl_format_match, .max_dirs = 1000};
    struct xpl_catalogue *c = NULL;
    CHECK_OK(xpl_catalogue_new(&o, &c, NULL), NULL);
    struct xpl_snapshot *s = xpl_catalogue_get(c);
    CHECK_EQ(s->n_dirs, 1000);
    CHECK(s->n_problems > 0);
    CHECK(xpl_snapshot_find(s, XPL_STR("near")));
    xpl_snapshot_unref(s);
    xpl_catalogue_free(c);
    const struct xpl_catalogue_options few = {
        .size = sizeof few, .logdir = top, .match = xpl_format_match, .max_hosts = 2};
    put("zz/1.xplane.pb", 1);
    put("zz/2.xplane.pb", 1);
    sh("rm -r z");
    CHECK_OK(xpl_catalogue_new(&few, &c, NULL), NULL);
    check_shown(c, "near=h");
    sh("rm zz/2.xplane.pb");
    CHECK(scan(c, XPL_SCAN_ALL));
    check_shown(c, "near=h zz=1");
    xpl_catalogue_free(c);
    remove_top();
}

static void test_deep(void) {
    make_top();
    char path[PATH_MAX];
    size_t n = 0;
    for (int i = 0; i < 70; i++)
        n += (size_t)snprintf(path + n, sizeof path - n, "d%d/", i);
    (void)snprintf(path + n, sizeof path - n, "h.xplane.pb");
    put(path, 1);
    put("d0/ok/h.xplane.pb", 1);
    struct xpl_catalogue *c = open_at(top, false);
    check_shown(c, "d0/ok=h");
    xpl_catalogue_free(c);
    remove_top();
}

// Makes every time of a directory look old, so that scans trust them.
static void let_times_age(void) {
    struct timespec pause = {.tv_sec = 2, .tv_nsec = 100000000};
    (void)nanosleep(&pause, NULL);
}

static void test_rescan(void) {
    make_top();
    put("a/h.xplane.pb", 1);
    put("b/c/h.xplane.pb", 1);
    struct xpl_catalogue *c = open_at(top, false);
    struct xpl_snapshot *first = xpl_catalogue_get(c);
    CHECK(!scan(c, XPL_SCAN_ALL));
    put("a/h2.xplane.pb", 1); // within the clock's coarseness: still seen
    CHECK(scan(c, XPL_SCAN_MARKED));
    check_shown(c, "a=h,h2 b/c=h");
    struct xpl_snapshot *s = xpl_catalogue_get(c);
    CHECK_EQ(s->generation, first->generation + 1);
    CHECK_EQ(xpl_snapshot_find(s, XPL_STR("a"))->changed, s->generation);
    CHECK_EQ(xpl_snapshot_find(s, XPL_STR("b/c"))->changed, first->generation);
    CHECK_EQ(first->n_sessions, 2); // old snapshots stay as they were
    CHECK_EQ(xpl_snapshot_find(first, XPL_STR("a"))->n_hosts, 1);
    xpl_snapshot_unref(first);
    // Watched directories are not scanned unless marked.
    for (size_t i = 0; i < s->n_dirs; i++)
        xpl_catalogue_set_watched(c, s->dirs[i].path, true);
    xpl_snapshot_unref(s);
    let_times_age();
    CHECK(!scan(c, XPL_SCAN_MARKED)); // becomes stable
    put("a/h.xplane.pb", 4);
    put("b/c/new.xplane.pb", 4);
    CHECK(!scan(c, XPL_SCAN_MARKED));
    xpl_catalogue_mark(c, XPL_STR("b/c"));
    xpl_catalogue_mark(c, XPL_STR("b/none"));
    CHECK(scan(c, XPL_SCAN_MARKED));
    check_shown(c, "a=h,h2 b/c=h,new");
    CHECK(scan(c, XPL_SCAN_ALL)); // a file's bytes changed, not its directory
    s = xpl_catalogue_get(c);
    CHECK_EQ(xpl_snapshot_find(s, XPL_STR("a"))->hosts[0].fingerprint.size, 4);
    CHECK_EQ(xpl_snapshot_find(s, XPL_STR("a"))->changed, s->generation);
    xpl_snapshot_unref(s);
    xpl_catalogue_set_watched(c, XPL_STR("a"), false);
    sh("rm a/h.xplane.pb");
    CHECK(scan(c, XPL_SCAN_MARKED));
    check_shown(c, "a=h2 b/c=h,new");
    sh("mv b moved");
    CHECK(scan(c, XPL_SCAN_ALL));
    check_shown(c, "a=h2 moved/c=h,new");
    sh("rm -r a moved");
    CHECK(scan(c, XPL_SCAN_ALL));
    check_shown(c, "");
    xpl_catalogue_free(c);
    remove_top();
}

// LOGDIR itself goes away, comes back, or is replaced.
static void test_logdir_moves(void) {
    make_top();
    put("logs/a/h.xplane.pb", 1);
    struct xpl_catalogue *c = open_at(at("logs"), false);
    sh("mv logs away");
    struct xpl_error err = {0};
    CHECK_STATUS(xpl_catalogue_scan(c, XPL_SCAN_ALL, NULL, &err), XPL_NOT_FOUND, &err);
    check_shown(c, "a=h"); // known entries stay
    put("logs/b/h.xplane.pb", 1);
    CHECK(scan(c, XPL_SCAN_ALL));
    check_shown(c, "b=h");
    xpl_catalogue_free(c);
    if (getuid() != 0) { // root may read everything
        put("logs/secret/h.xplane.pb", 1);
        CHECK_EQ(chmod(at("logs/secret"), 0), 0);
        c = open_at(at("logs"), false);
        check_shown(c, "b=h");
        struct xpl_snapshot *s = xpl_catalogue_get(c);
        CHECK_EQ(s->n_problems, 1);
        xpl_snapshot_unref(s);
        CHECK_EQ(chmod(at("logs/secret"), 0700), 0);
        CHECK(scan(c, XPL_SCAN_ALL));
        check_shown(c, "b=h secret=h");
        xpl_catalogue_free(c);
    }
    remove_top();
}

// Readers while scans publish; and the time of a scan over many sessions.
static struct xpl_catalogue *busy;
static atomic_bool stop;
static atomic_long lookups;

static void *reader(void *arg) {
    (void)arg;
    while (!atomic_load(&stop)) {
        struct xpl_snapshot *s = xpl_catalogue_get(busy);
        const struct xpl_session *se = xpl_snapshot_find(s, XPL_STR("run7"));
        CHECK(se && se->n_hosts >= 1);
        CHECK(xpl_session_find_host(se, XPL_STR("h")));
        xpl_snapshot_unref(s);
        atomic_fetch_add(&lookups, 1);
    }
    return NULL;
}

static double now_ms(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void test_many(void) {
    make_top();
    enum { N = 3000 };
    for (int i = 0; i < N; i++) {
        char rel[64];
        (void)snprintf(rel, sizeof rel, "plugins/profile/run%d/h.xplane.pb", i);
        put(rel, 1);
    }
    double t = now_ms();
    busy = open_at(top, false);
    fprintf(stderr, "first scan of %d sessions: %.1f ms\n", N, now_ms() - t);
    pthread_t readers[2];
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_create(&readers[i], NULL, reader, NULL), 0);
    for (int i = 0; i < 20; i++) {
        char rel[64];
        (void)snprintf(rel, sizeof rel, "plugins/profile/run%d/i%d.xplane.pb", i % 10, i);
        put(rel, 1);
        CHECK(scan(busy, XPL_SCAN_ALL));
        xpl_catalogue_mark(busy, XPL_STR("plugins/profile/run3"));
    }
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_join(readers[i], NULL), 0);
    let_times_age();
    (void)scan(busy, XPL_SCAN_ALL);
    t = now_ms();
    CHECK(!scan(busy, XPL_SCAN_ALL));
    fprintf(stderr, "scan with nothing new: %.1f ms; lookups meanwhile %ld\n", now_ms() - t,
            atomic_load(&lookups));
    xpl_catalogue_free(busy);
    remove_top();
}

static void inputs_fail(struct xpl_arena *a, const char *p, const char *q, xpl_status_t code,
                        const char *word) {
    const char *paths[2] = {p, q};
    struct xpl_inputs in = {0};
    struct xpl_error err = {0};
    CHECK_EQ(xpl_inputs_from_paths(paths, q ? 2 : 1, xpl_format_match, a, &in, &err), code);
    if (!strstr(err.msg, word)) fprintf(stderr, "%s\n", err.msg);
    CHECK(strstr(err.msg, word));
}

static void test_inputs(void) {
    make_top();
    put("run/b.xplane.pb", 1);
    put("run/a.xplane.pb", 1);
    put("run/x.xplane.riegeli", 1);
    put("rg/x.xplane.riegeli", 1);
    put("other/a.xplane.pb", 1);
    put("other/odd.pb", 1);
    sh("mkdir none");
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 20);
    struct xpl_inputs in = {0};
    const char *dir[] = {at("run/")};
    CHECK_OK(xpl_inputs_from_paths(dir, 1, xpl_format_match, &a, &in, NULL), NULL);
    CHECK_EQ(in.n_hosts, 2);
    CHECK_STR(in.session, "run");
    CHECK_STR(in.hosts[0].name, "a");
    CHECK_EQ(access(in.hosts[0].path, R_OK), 0);
    const char *files[] = {at("run/b.xplane.pb"), at("other/odd.pb"), at("other/a.xplane.pb")};
    CHECK_OK(xpl_inputs_from_paths(files, 3, xpl_format_match, &a, &in, NULL), NULL);
    CHECK_EQ(in.n_hosts, 3);
    CHECK_STR(in.session, "a");
    CHECK_STR(in.hosts[2].name, "odd.pb");
    // Equal names of different directories.
    const char *twins[] = {at("run"), at("other/a.xplane.pb")};
    CHECK_OK(xpl_inputs_from_paths(twins, 2, xpl_format_match, &a, &in, NULL), NULL);
    CHECK_EQ(in.n_hosts, 3);
    CHECK_STR(in.hosts[0].name, "b");
    CHECK_STR(in.hosts[1].name, "other_a");
    CHECK_STR(in.hosts[2].name, "run_a");
    inputs_fail(&a, at("run/a.xplane.pb"), at("run/a.xplane.pb"), XPL_INVALID_ARGUMENT,
                "two files for host run_a");
    // A log directory with one run, and with two.
    put("log/plugins/profile/r1/h.xplane.pb", 1);
    const char *const log[] = {at("log")};
    CHECK_OK(xpl_inputs_from_paths(log, 1, xpl_format_match, &a, &in, NULL), NULL);
    CHECK_EQ(in.n_hosts, 1);
    CHECK_STR(in.hosts[0].name, "h");
    put("log/plugins/profile/r2/h.xplane.pb", 1);
    inputs_fail(&a, at("log"), NULL, XPL_INVALID_ARGUMENT, "2 runs are below this directory");
    inputs_fail(&a, at("run/x.xplane.riegeli"), NULL, XPL_INVALID_ARGUMENT, "Riegeli");
    inputs_fail(&a, at("rg"), NULL, XPL_INVALID_ARGUMENT, "Riegeli");
    inputs_fail(&a, at("none"), NULL, XPL_NOT_FOUND, "no profile in this directory");
    put("ranks/rank0/trace.json", 1);
    put("ranks/other/trace.txt", 1);
    inputs_fail(&a, at("ranks"), NULL, XPL_NOT_FOUND, "in directories below it");
    put("mix/h.xplane.pb", 1);
    put("mix/h.xplane.pb.gz", 1);
    put("mix/i.xplane.pb.zst", 1);
    const char *mix[] = {at("mix")};
    CHECK_OK(xpl_inputs_from_paths(mix, 1, xpl_format_match, &a, &in, NULL), NULL);
    CHECK_EQ(in.n_hosts, 2);
    CHECK_EQ(in.n_left_out, 1);
    CHECK(xpl_str_ends(xpl_str_from(in.hosts[0].path), XPL_STR("/h.xplane.pb")));
    CHECK_STR(in.hosts[1].name, "i");
    CHECK(xpl_str_ends(xpl_str_from(in.left_out[0]), XPL_STR("/h.xplane.pb.gz")));
    inputs_fail(&a, at("mix/h.xplane.pb"), at("mix/h.xplane.pb.gz"), XPL_INVALID_ARGUMENT,
                "two files for host mix_h");
    inputs_fail(&a, at("missing"), NULL, XPL_NOT_FOUND, "cannot open");
    // The first part that is missing has a name that is near.
    put("run_one/host-a.xplane.pb", 1);
    put("run_\033/h.xplane.pb", 1); // no text for a terminal
    inputs_fail(&a, at("run_on"), NULL, XPL_NOT_FOUND, "directory; did you mean \"run_one\"?");
    inputs_fail(&a, at("run_on/"), NULL, XPL_NOT_FOUND, "; did you mean \"run_one\"?");
    inputs_fail(&a, at("run_onee/x/y"), NULL, XPL_NOT_FOUND, "; did you mean \"run_one\"?");
    inputs_fail(&a, at("run_one/host-b.xplane.pb"), NULL, XPL_NOT_FOUND,
                "; did you mean \"host-a.xplane.pb\"?");
    struct xpl_error err = {0};
    const char *const odd[] = {at("run_x")};
    CHECK_STATUS(xpl_inputs_from_paths(odd, 1, xpl_format_match, &a, &in, &err), XPL_NOT_FOUND,
                 &err);
    CHECK(!strstr(err.msg, "did you mean"));
    CHECK_STATUS(xpl_inputs_from_paths(files, 0, xpl_format_match, &a, &in, NULL),
                 XPL_INVALID_ARGUMENT, NULL);
    remove_top();
}

int main(void) {
    test_names();
    test_claims();
    test_escapes();
    test_odd_files();
    test_formats();
    test_kinds();
    test_refused();
    test_links();
    test_stopped();
    test_stopped_identities();
    test_joined();
    test_joined_ranks();
    test_several_names();
    test_too_many_names();
    test_orders_of_names();
    test_too_many_to_join();
    test_many_of_a_directory();
    test_names_built_to_collide();
    test_explosion();
    test_deep();
    test_rescan();
    test_logdir_moves();
    test_many();
    test_inputs();
    return 0;
}
