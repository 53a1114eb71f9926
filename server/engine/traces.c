#include "server/engine/traces.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "analysis/tools/pipeline.h" // XPL_ANALYSIS_VERSION
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/exec.h"
#include "base/log.h"

enum { MAX_ENTRIES = 64, NAME_MAX_LEN = 160, PART_MAX_S = 600 };
#define MEMORY_BYTES ((size_t)256 << 20) // of indexes that are not written, or not yet

enum state { BUILDING, READY, FAILED };

struct xpl_trace_handle { // an entry
    struct xpl_trace_handle *next;
    struct xpl_fingerprint print;
    size_t limit; // of memory
    enum state state;
    unsigned refs; // whoever works with it, and the list
    bool listed, built, unsaved;
    uint64_t used;           // when it was last asked for
    struct xpl_buf memory;   // a fresh index
    struct xpl_source *file; // or a mapped one
    struct xpl_arena arena;
    struct xpl_trace *trace;
    struct xpl_trace_build *build; // unfinished: memory and trace are for one answer
};

struct xpl_traces {
    char dir[512]; // "": no files
    uint64_t limit, clock;
    pthread_mutex_t mu;
    pthread_cond_t changed; // an entry is built, or is to be saved, or stop
    struct xpl_trace_handle *entries;
    pthread_t saver;
    bool has_saver, stop;
};

// ---- names ----

static bool path_of(const struct xpl_traces *t, const struct xpl_fingerprint *p, const char *suffix,
                    char *ret, size_t size) {
    const int n = snprintf(
        ret, size, "%s/%" PRIx64 "-%" PRIx64 "-%" PRIx64 "-%" PRIx64 "-%" PRIx64 ".%d.%d.trace%s",
        t->dir, p->dev, p->ino, p->size, (uint64_t)p->mtime_ns, (uint64_t)p->ctime_ns,
        XPL_TRACE_VERSION, XPL_ANALYSIS_VERSION, suffix);
    return n > 0 && (size_t)n < size;
}

// ---- entries; the mutex is held where it says so ----

static void destroy(struct xpl_trace_handle *h) {
    xpl_arena_fini(&h->arena);
    xpl_buf_fini(&h->memory);
    xpl_trace_build_free(h->build);
    xpl_source_free(h->file);
    xpl_sys_free(h);
}

// Held.
static void unref(struct xpl_trace_handle *h) {
    if (--h->refs == 0) destroy(h);
}

// Held.
static void unlist(struct xpl_traces *t, struct xpl_trace_handle *h) {
    if (!h->listed) return;
    for (struct xpl_trace_handle **at = &t->entries; *at; at = &(*at)->next) {
        if (*at != h) continue;
        *at = h->next;
        break;
    }
    h->listed = false;
    unref(h);
}

// Held.  Lets go of idle entries beyond what may stay: files are only mapped, memory counts.
static void trim(struct xpl_traces *t) {
    for (;;) {
        size_t n = 0, bytes = 0;
        struct xpl_trace_handle *oldest = NULL;
        for (struct xpl_trace_handle *h = t->entries; h; h = h->next) {
            n++;
            if (h->state == READY) bytes += h->memory.n; // else it is being written to
            if (h->refs == 1 && h->state == READY && !h->unsaved &&
                (!oldest || h->used < oldest->used))
                oldest = h;
        }
        if (!oldest || (n <= MAX_ENTRIES && bytes <= MEMORY_BYTES)) return;
        unlist(t, oldest);
    }
}

// Held.  Whether a fresh index may wait for the saver: one always may, more while they are small.
// The disk may be slower than those who ask.
static bool may_wait(const struct xpl_traces *t, size_t bytes) {
    size_t waiting = 0;
    for (const struct xpl_trace_handle *h = t->entries; h; h = h->next)
        if (h->unsaved) waiting += h->memory.n;
    return waiting == 0 || waiting + bytes <= MEMORY_BYTES;
}

// Held.
static struct xpl_trace_handle *find(struct xpl_traces *t, const struct xpl_fingerprint *p) {
    for (struct xpl_trace_handle *h = t->entries; h; h = h->next)
        if (xpl_fingerprint_eq(&h->print, p)) return h;
    return NULL;
}

// ---- files ----

struct file {
    char name[NAME_MAX_LEN];
    int64_t mtime_ns;
    uint64_t size;
};

static int older_first(const void *pa, const void *pb) {
    const struct file *const a = pa, *const b = pb;
    return (a->mtime_ns > b->mtime_ns) - (a->mtime_ns < b->mtime_ns);
}

// Removes the least recently used files until the rest fits, and what a crash left half written:
// another daemon may be writing what is young.
static void evict_files(const struct xpl_traces *t) {
    DIR *const d = opendir(t->dir);
    const time_t now = time(NULL);
    struct file *v = NULL;
    size_t n = 0, cap = 0;
    uint64_t bytes = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        struct stat st;
        const xpl_str_t name = xpl_str_from(e->d_name);
        const bool part = xpl_str_ends(name, XPL_STR(".part"));
        if ((!part && !xpl_str_ends(name, XPL_STR(".trace"))) || name.len >= NAME_MAX_LEN ||
            fstatat(dirfd(d), e->d_name, &st, 0) != 0)
            continue;
        if (part && now - st.st_mtim.tv_sec > PART_MAX_S) (void)unlinkat(dirfd(d), e->d_name, 0);
        if (part) continue;
        if (n == cap) {
            struct file *const grown = xpl_sys_realloc(v, (cap ? cap * 2 : 64) * sizeof *v);
            if (!grown) break;
            v = grown;
            cap = cap ? cap * 2 : 64;
        }
        memcpy(v[n].name, e->d_name, name.len + 1);
        v[n].mtime_ns = st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec;
        v[n].size = (uint64_t)st.st_size;
        bytes += v[n++].size;
    }
    if (n) qsort(v, n, sizeof *v, older_first);
    for (size_t i = 0; i < n && bytes > t->limit; i++)
        if (unlinkat(dirfd(d), v[i].name, 0) == 0) bytes -= v[i].size;
    xpl_sys_free(v);
    if (d) closedir(d);
}

static bool write_all(int fd, const uint8_t *p, size_t n) {
    while (n) {
        const ssize_t got = write(fd, p, n);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        p += got;
        n -= (size_t)got;
    }
    return true;
}

static bool save(const struct xpl_traces *t, const struct xpl_trace_handle *h) {
    char path[PATH_MAX], part[PATH_MAX];
    if (!path_of(t, &h->print, "", path, sizeof path) ||
        !path_of(t, &h->print, ".XXXXXX.part", part, sizeof part))
        return false;
    const int fd = mkostemps(part, sizeof ".part" - 1, O_CLOEXEC); // another daemon has its own
    if (fd < 0) {
        xpl_log(XPL_LOG_WARN, "traces", "cannot write a trace index: %s", strerror(errno));
        return false;
    }
    bool ok = write_all(fd, h->memory.p, h->memory.n);
    ok = close(fd) == 0 && ok;
    ok = ok && rename(part, path) == 0;
    if (!ok) {
        xpl_log(XPL_LOG_WARN, "traces", "cannot write a trace index: %s", strerror(errno));
        (void)unlink(part);
    }
    return ok;
}

static void *saver_main(void *arg) {
    struct xpl_traces *const t = arg;
    pthread_mutex_lock(&t->mu);
    for (;;) {
        struct xpl_trace_handle *h = t->entries;
        while (h && !(h->unsaved && h->state == READY))
            h = h->next;
        if (!h && t->stop) break;
        if (!h) {
            pthread_cond_wait(&t->changed, &t->mu);
            continue;
        }
        h->refs++;
        pthread_mutex_unlock(&t->mu);
        const bool ok = save(t, h);
        if (ok) evict_files(t);
        pthread_mutex_lock(&t->mu);
        h->unsaved = false;
        if (ok) unlist(t, h); // from now on the file is asked
        unref(h);
        trim(t);
    }
    pthread_mutex_unlock(&t->mu);
    return NULL;
}

static xpl_status_t from_file(const struct xpl_traces *t, struct xpl_trace_handle *h) {
    char path[PATH_MAX];
    if (!t->dir[0] || !path_of(t, &h->print, "", path, sizeof path)) return XPL_NOT_FOUND;
    XPL_TRY(xpl_source_open(AT_FDCWD, path, 0, &h->file, NULL));
    const xpl_status_t st = xpl_trace_open(xpl_source_bytes(h->file), &h->arena, &h->trace, NULL);
    if (st == XPL_OK) {
        (void)utimensat(AT_FDCWD, path, (struct timespec[]){{0, UTIME_NOW}, {0, UTIME_NOW}}, 0);
        return XPL_OK;
    }
    xpl_source_free(h->file);
    h->file = NULL;
    if (st == XPL_DATA_LOSS) (void)unlink(path);
    return st;
}

// ---- life ----

struct xpl_traces *xpl_traces_new(const char *dir, uint64_t limit_bytes) {
    struct xpl_traces *const t = xpl_sys_alloc(sizeof *t);
    if (!t) return NULL;
    *t = (struct xpl_traces){.limit = limit_bytes};
    pthread_mutex_init(&t->mu, NULL);
    pthread_cond_init(&t->changed, NULL);
    const int n = dir && dir[0] ? snprintf(t->dir, sizeof t->dir, "%s/traces", dir) : 0;
    if (n <= 0 || (size_t)n >= sizeof t->dir || (mkdir(t->dir, 0700) != 0 && errno != EEXIST) ||
        access(t->dir, W_OK) != 0)
        t->dir[0] = 0;
    if (!t->dir[0]) return t;
    evict_files(t);
    t->has_saver = pthread_create(&t->saver, NULL, saver_main, t) == 0;
    if (!t->has_saver) t->dir[0] = 0;
    return t;
}

void xpl_traces_free(struct xpl_traces *t) {
    if (!t) return;
    pthread_mutex_lock(&t->mu);
    t->stop = true;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->mu);
    if (t->has_saver) pthread_join(t->saver, NULL);
    pthread_mutex_lock(&t->mu);
    while (t->entries)
        unlist(t, t->entries);
    pthread_mutex_unlock(&t->mu);
    pthread_mutex_destroy(&t->mu);
    pthread_cond_destroy(&t->changed);
    xpl_sys_free(t);
}

// ---- asking ----

// Held.  Waits until the entry is no longer being built; false when nobody wants it any more.
static bool wait_built(struct xpl_traces *t, struct xpl_trace_handle *h, struct xpl_exec *exec) {
    while (h->state == BUILDING) {
        struct timespec until;
        if (xpl_exec_cancelled(exec)) return false;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 50000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&t->changed, &t->mu, &until);
    }
    return true;
}

static struct xpl_trace_handle *new_entry(struct xpl_traces *t, const struct xpl_fingerprint *print,
                                          size_t limit) {
    struct xpl_trace_handle *const h = xpl_sys_alloc(sizeof *h);
    if (!h) return NULL;
    *h = (struct xpl_trace_handle){
        .print = *print, .limit = limit, .refs = 2, .listed = true, .next = t->entries};
    xpl_arena_init(&h->arena, limit);
    xpl_buf_init(&h->memory, limit);
    t->entries = h;
    return h;
}

static xpl_status_t open_memory(struct xpl_trace_handle *h, struct xpl_error *err) {
    return xpl_trace_open((xpl_bytes_t){h->memory.p, h->memory.n}, &h->arena, &h->trace, err);
}

static xpl_status_t build_rest(struct xpl_trace_handle *h, struct xpl_exec *exec,
                               struct xpl_error *err) {
    const struct xpl_trace_sink sink = {xpl_trace_sink_buf, &h->memory};
    XPL_TRY(xpl_trace_build_finish(h->build, exec, &sink, err));
    xpl_trace_build_free(h->build);
    h->build = NULL;
    return open_memory(h, err);
}

static xpl_status_t fill(struct xpl_traces *t, struct xpl_trace_handle *h, xpl_bytes_t profile,
                         struct xpl_exec *exec, bool fresh, const struct xpl_trace_options *first,
                         struct xpl_error *err) {
    if (!fresh && from_file(t, h) == XPL_OK) return XPL_OK;
    const struct xpl_trace_sink sink = {xpl_trace_sink_buf, &h->memory};
    h->built = true;
    XPL_TRY(xpl_trace_build_begin(profile, exec, h->limit, &h->build, err));
    if (!first || !xpl_trace_build_has_part(h->build, first)) return build_rest(h, exec, err);
    XPL_TRY(xpl_trace_build_part(h->build, first, &sink, err));
    return open_memory(h, err);
}

// What a build came to.
static void settle(struct xpl_traces *t, struct xpl_trace_handle *h,
                   const struct xpl_source *profile, xpl_status_t st) {
    const bool settled = xpl_source_is_stable(profile);
    pthread_mutex_lock(&t->mu);
    h->state = st == XPL_OK ? READY : FAILED;
    h->used = ++t->clock;
    h->unsaved = st == XPL_OK && h->built && t->dir[0] && settled && may_wait(t, h->memory.n);
    if (st != XPL_OK || (h->built && !settled)) unlist(t, h);
    pthread_cond_broadcast(&t->changed);
    if (st == XPL_OK) trim(t);
    pthread_mutex_unlock(&t->mu);
}

xpl_status_t xpl_traces_get(struct xpl_traces *t, const struct xpl_source *profile,
                            struct xpl_exec *exec, size_t memory_limit, bool fresh,
                            const struct xpl_trace_options *first, struct xpl_trace_handle **ret,
                            struct xpl_error *err) {
    const struct xpl_fingerprint *const print = xpl_source_fingerprint(profile);
    pthread_mutex_lock(&t->mu);
    for (struct xpl_trace_handle *h; (h = find(t, print));) {
        h->refs++;
        const bool wanted = wait_built(t, h, exec);
        const bool ready = wanted && h->state == READY && !fresh;
        if (ready) {
            h->used = ++t->clock;
            pthread_mutex_unlock(&t->mu);
            *ret = h;
            return XPL_OK;
        }
        if (wanted && h->state == READY) unlist(t, h);
        unref(h);
        if (wanted) continue;
        pthread_mutex_unlock(&t->mu);
        XPL_RETURN_ERROR(err, XPL_CANCELLED, "cancelled");
    }
    struct xpl_trace_handle *const h = new_entry(t, print, memory_limit);
    pthread_mutex_unlock(&t->mu);
    if (!h) XPL_RETURN_OOM(err, "trace index");
    xpl_status_t st = fill(t, h, xpl_source_bytes(profile), exec, fresh, first, err);
    // What was read from a file that changed meanwhile is nobody's index.
    if (st == XPL_OK && h->built) st = xpl_source_verify(profile, err);
    if (st != XPL_OK || !h->build) settle(t, h, profile, st);
    if (st == XPL_OK)
        *ret = h;
    else
        xpl_trace_held_put(t, h, false);
    return st;
}

bool xpl_trace_held_unfinished(const struct xpl_trace_handle *h) {
    return h->build != NULL;
}

void xpl_traces_finish(struct xpl_traces *t, struct xpl_trace_handle *h,
                       const struct xpl_source *profile, struct xpl_exec *exec) {
    struct xpl_error err = {0};
    xpl_buf_fini(&h->memory);
    xpl_arena_fini(&h->arena);
    xpl_buf_init(&h->memory, h->limit);
    xpl_arena_init(&h->arena, h->limit);
    h->trace = NULL;
    xpl_status_t st = build_rest(h, exec, &err);
    if (st == XPL_OK) st = xpl_source_verify(profile, &err);
    if (st != XPL_OK && st != XPL_CANCELLED && st != XPL_ABORTED)
        xpl_log(XPL_LOG_WARN, "traces", "an index could not be finished: %s", err.msg);
    settle(t, h, profile, st);
}

const struct xpl_trace *xpl_trace_held_get(const struct xpl_trace_handle *h) {
    return h->trace;
}

bool xpl_trace_held_built(const struct xpl_trace_handle *h) {
    return h->built;
}

bool xpl_trace_held_torn(const struct xpl_trace_handle *h) {
    return h->file && xpl_source_is_truncated(h->file);
}

void xpl_trace_held_put(struct xpl_traces *t, struct xpl_trace_handle *h, bool damaged) {
    char path[PATH_MAX];
    pthread_mutex_lock(&t->mu);
    if (h->state == BUILDING) { // unfinished, and given up
        h->state = FAILED;
        unlist(t, h);
        pthread_cond_broadcast(&t->changed);
    }
    if (damaged && h->listed) { // else somebody found it out before, and the file is another
        unlist(t, h);
        if (h->file && path_of(t, &h->print, "", path, sizeof path)) (void)unlink(path);
    }
    unref(h);
    trim(t);
    pthread_mutex_unlock(&t->mu);
}
