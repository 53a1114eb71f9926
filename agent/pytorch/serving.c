// SPDX-License-Identifier: Apache-2.0
#include "agent/pytorch/serving.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/collect.h"
#include "agent/pytorch/http.h"
#include "agent/pytorch/traces.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"

enum {
    START_MS = 10000,
    STOP_MS = 40000,  // servers answer when their workers have written
    WRITE_MS = 10000, // for those that answer earlier
    STILL_MS = 1000,  // a directory that did not change for so long is complete
    SCAN_MS = 100,
    MAX_FILES = 4096,
    MAX_NAME = 160,
};

struct file {
    char name[MAX_NAME];
    int64_t size, changed_ns;
};
struct listing { // of the newest files
    size_t n;
    int64_t oldest_ns; // of a full listing: further files are not newer than that
    struct file v[MAX_FILES];
};

struct serving {
    const struct xpl_pytorch_serving *s;
    const atomic_int *state;
    int wake, dir;
    bool is_still; // nothing changed for a while before the end
    struct listing before, after, again;
};

static bool is_cancelled(const struct serving *v) {
    return atomic_load(v->state) == XPL_COLLECT_CANCEL;
}

// A second request ends it early, with its data.
static void pause_for(const struct serving *v, uint64_t ms) {
    xpl_collect_wait(v->state, v->wake, xpl_collect_now_ms() + ms);
}

// ---- the directory ----

// The length of a trace's name without its suffix; 0: it is none.
static size_t stem_of(xpl_str_t name) {
    static const char *const suffixes[] = {".pt.trace.json", ".trace.json", ".json"};
    if (xpl_str_ends(name, XPL_STR(".gz"))) name.len -= 3;
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (xpl_str_ends(name, xpl_str_from(suffixes[i]))) return name.len - strlen(suffixes[i]);
    return 0;
}

static bool is_full(const struct listing *l) {
    return l->n == MAX_FILES;
}

// The place of a further file: in a full listing that of the oldest one.  NULL: it is older.
static struct file *place_for(struct listing *l, int64_t changed_ns) {
    struct file *oldest = &l->v[l->n];
    if (is_full(l)) {
        if (changed_ns <= l->oldest_ns) return NULL;
        oldest = l->v;
        for (size_t i = 1; i < MAX_FILES; i++)
            if (l->v[i].changed_ns < oldest->changed_ns) oldest = &l->v[i];
    } else {
        l->n++;
    }
    oldest->changed_ns = changed_ns;
    if (!is_full(l)) return oldest;
    l->oldest_ns = INT64_MAX;
    for (size_t i = 0; i < MAX_FILES; i++)
        if (l->v[i].changed_ns < l->oldest_ns) l->oldest_ns = l->v[i].changed_ns;
    return oldest;
}

static void list(const struct serving *v, struct listing *ret) {
    const int again = openat(v->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *const d = again >= 0 ? fdopendir(again) : NULL;
    struct stat st;
    ret->n = 0;
    if (!d && again >= 0) (void)close(again);
    for (const struct dirent *e; d && (e = readdir(d));) {
        const xpl_str_t name = xpl_str_from(e->d_name);
        if (name.len >= MAX_NAME || e->d_name[0] == '.' || !stem_of(name) ||
            fstatat(v->dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        struct file *const f =
            place_for(ret, (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec);
        if (!f) continue;
        memcpy(f->name, name.ptr, name.len + 1);
        f->size = st.st_size;
    }
    if (d) (void)closedir(d);
}

// Whether the listing has a file, which is probably at `hint`.
static bool has(const struct listing *l, const struct file *f, size_t hint) {
    for (size_t i = 0; i < l->n; i++) {
        const struct file *const one = &l->v[(hint + i) % l->n];
        if (one->changed_ns == f->changed_ns && one->size == f->size &&
            strcmp(one->name, f->name) == 0)
            return true;
    }
    return false;
}

static bool is_same(const struct listing *a, const struct listing *b) {
    if (a->n != b->n) return false;
    for (size_t i = 0; i < a->n; i++)
        if (!has(b, &a->v[i], i)) return false;
    return true;
}

// Whether file i of those after the capture was written during it.
static bool is_new(const struct serving *v, size_t i) {
    const struct file *const f = &v->after.v[i];
    return !(is_full(&v->before) && f->changed_ns <= v->before.oldest_ns) && !has(&v->before, f, i);
}

// Until something is new and nothing changes.
static void wait_for_files(struct serving *v) {
    const uint64_t until = xpl_collect_now_ms() + WRITE_MS;
    uint64_t still_since = xpl_collect_now_ms();
    list(v, &v->after);
    for (uint64_t now; (now = xpl_collect_now_ms()) < until && !is_cancelled(v);) {
        if (!is_same(&v->after, &v->before) && now - still_since >= STILL_MS) break;
        xpl_clock_pause_ms(SCAN_MS);
        list(v, &v->again);
        if (is_same(&v->after, &v->again)) continue;
        v->after = v->again;
        still_since = xpl_collect_now_ms();
    }
    v->is_still = xpl_collect_now_ms() - still_since >= STILL_MS;
}

// Whether the file is complete, as far as its time says.
static bool is_written(const struct serving *v, const struct file *f) {
    return v->is_still || xpl_unix_ns() - f->changed_ns >= (int64_t)STILL_MS * 1000000;
}

// ---- traces ----

static xpl_status_t take_files(struct serving *v, struct xpl_buf *out, struct xpl_error *err) {
    size_t n_new = 0, taken = 0;
    bool too_large = false;
    for (size_t i = 0; i < v->after.n; i++) {
        const struct file *const f = &v->after.v[i];
        char name[MAX_NAME + 32];
        if (!is_new(v, i)) continue;
        if (!is_written(v, f)) {
            n_new++;
            continue;
        }
        (void)snprintf(name, sizeof name, "%.*s.pt.trace.json.gz",
                       (int)stem_of(xpl_str_from(f->name)), f->name);
        const enum xpl_pytorch_trace is = xpl_pytorch_take(v->dir, f->name, name, v->state, out);
        n_new++;
        taken += is == XPL_PYTORCH_TAKEN || is == XPL_PYTORCH_IDLE;
        too_large |= is == XPL_PYTORCH_TOO_LARGE;
    }
    if (!n_new)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                         "%.100s: the server wrote no trace there: is this its profiler's "
                         "directory?",
                         v->s->directory);
    if (!taken)
        XPL_RETURN_ERROR(err, too_large ? XPL_RESOURCE_EXHAUSTED : XPL_FAILED_PRECONDITION,
                         too_large ? "the traces do not fit: capture for a shorter time, or raise "
                                     "--memory of xplaned-agent"
                                   : "the server's traces are links, other users' files, or "
                                     "incomplete");
    if (taken < n_new) {
        char note[160];
        (void)snprintf(note, sizeof note, "%zu of %zu traces were not taken%s", n_new - taken,
                       n_new, too_large ? ": raise --memory of xplaned-agent" : "");
        xpl_pytorch_put_text("notes", xpl_str_from(note), out);
    }
    xpl_log(XPL_LOG_INFO, "capture", "captured traces=%zu of=%zu bytes=%zu", taken, n_new, out->n);
    if (out->failed) XPL_RETURN_OOM(err, "traces");
    return XPL_OK;
}

// ---- the capture ----

static xpl_status_t request(const struct serving *v, const char *what, uint64_t timeout_ms,
                            const atomic_int *cancel, struct xpl_error *err) {
    char url[512];
    const size_t n = strlen(v->s->url);
    const bool slash = n && v->s->url[n - 1] == '/';
    const int len = snprintf(url, sizeof url, "%s%s%s", v->s->url, slash ? "" : "/", what);
    if (len < 0 || (size_t)len >= sizeof url)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "the address of --serving is too long");
    return xpl_pytorch_post(url, timeout_ms, cancel, err);
}

static xpl_status_t run(struct serving *v, uint64_t start_ns, uint64_t duration_ms,
                        struct xpl_buf *out, struct xpl_error *err) {
    const uint64_t now = (uint64_t)xpl_unix_ns();
    if (start_ns > now) pause_for(v, (start_ns - now) / 1000000);
    list(v, &v->before);
    xpl_status_t st = request(v, "start_profile", START_MS, v->state, err);
    if (st != XPL_OK && st != XPL_UNAVAILABLE && st != XPL_CANCELLED) return st;
    if (st == XPL_OK) pause_for(v, duration_ms);
    // Also when it is not known whether it began: a profiler that runs on fills the memory.
    struct xpl_error last = {0};
    const xpl_status_t stopped =
        request(v, "stop_profile", STOP_MS, NULL, st == XPL_OK ? err : &last);
    if (is_cancelled(v)) XPL_RETURN_ERROR(err, XPL_CANCELLED, "the capture was cancelled");
    if (st != XPL_OK) return st;
    XPL_TRY(stopped);
    wait_for_files(v);
    if (is_cancelled(v)) XPL_RETURN_ERROR(err, XPL_CANCELLED, "the capture was cancelled");
    return take_files(v, out, err);
}

xpl_status_t xpl_pytorch_serve(const struct xpl_pytorch_serving *s, uint64_t start_ns,
                               uint64_t duration_ms, const atomic_int *state, int wake,
                               struct xpl_buf *out, struct xpl_error *err) {
    struct serving *const v = xpl_sys_alloc(sizeof *v);
    if (!v) XPL_RETURN_OOM(err, "capture");
    v->s = s, v->state = state, v->wake = wake;
    v->dir = open(s->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    xpl_status_t st = XPL_OK;
    if (v->dir < 0)
        st = xpl_error_set(err, XPL_FAILED_PRECONDITION, __FILE__, __LINE__, UINT64_MAX,
                           "%.100s: %s", s->directory, strerror(errno));
    if (st == XPL_OK) st = run(v, start_ns, duration_ms, out, err);
    if (v->dir >= 0) (void)close(v->dir);
    xpl_sys_free(v);
    return st;
}
