// SPDX-License-Identifier: Apache-2.0
#include "storage/sessions/source.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "storage/sessions/path.h"

// --- The mappings that the SIGBUS handler knows ---
//
// A static table, so that the handler needs no lock and no memory.  A slot's range is guarded by a
// sequence number: odd while it is being written.  The faulting thread reads a mapping that is
// alive, so its own slot stands still; a slot that changes meanwhile cannot be the one.

struct slot {
    atomic_bool used; // claimed; only its owner writes the rest
    _Atomic uint32_t seq;
    _Atomic uintptr_t start, end; // multiples of the page size; empty when free
    atomic_bool truncated;
};
static struct slot slots[XPL_SOURCE_MAX_OPEN];
static atomic_size_t slots_top; // none at or above was ever used
static struct sigaction previous;
static pthread_once_t installed = PTHREAD_ONCE_INIT;
static uintptr_t page_size;

static void slot_write(struct slot *s, uintptr_t start, uintptr_t end) {
    const uint32_t seq = atomic_load_explicit(&s->seq, memory_order_relaxed);
    atomic_store(&s->seq, seq + 1);
    atomic_store(&s->start, start);
    atomic_store(&s->end, end);
    atomic_store(&s->seq, seq + 2);
}

static struct slot *slot_claim(void) {
    for (size_t i = 0; i < XPL_SOURCE_MAX_OPEN; i++) {
        bool none = false;
        if (atomic_load_explicit(&slots[i].used, memory_order_relaxed) ||
            !atomic_compare_exchange_strong(&slots[i].used, &none, true))
            continue;
        size_t top = atomic_load(&slots_top);
        while (top <= i && !atomic_compare_exchange_weak(&slots_top, &top, i + 1))
            continue;
        atomic_store(&slots[i].truncated, false);
        return &slots[i];
    }
    return NULL;
}

static void slot_release(struct slot *s) {
    slot_write(s, 0, 0);
    atomic_store(&s->used, false);
}

static struct slot *slot_of(uintptr_t addr, uintptr_t *ret_end) {
    const size_t top = atomic_load(&slots_top);
    for (size_t i = 0; i < top; i++) {
        const uint32_t before = atomic_load(&slots[i].seq);
        const uintptr_t start = atomic_load(&slots[i].start), end = atomic_load(&slots[i].end);
        if ((before & 1) || atomic_load(&slots[i].seq) != before) continue;
        if (addr < start || addr >= end) continue;
        *ret_end = end;
        return &slots[i];
    }
    return NULL;
}

static void chain(int sig, siginfo_t *info, void *context) {
    if (previous.sa_flags & SA_SIGINFO) {
        previous.sa_sigaction(sig, info, context);
    } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
        previous.sa_handler(sig);
    } else if (previous.sa_handler == SIG_DFL || info->si_code > 0) {
        // The default again: a fault repeats itself on return, a signal sent by someone does not.
        struct sigaction dfl = {.sa_handler = SIG_DFL};
        (void)sigaction(SIGBUS, &dfl, NULL);
        if (info->si_code <= 0) (void)raise(sig);
    }
}

// From the fault to the end of the mapping everything becomes zeros at once: a truncated file has
// lost all of it, and one mapping for each page could exceed the kernel's limit of mappings.
// Only atomics and system calls in here: it may interrupt anything.
static void on_sigbus(int sig, siginfo_t *info, void *context) {
    const int saved = errno;
    uintptr_t end = 0;
    struct slot *s = info->si_code > 0 ? slot_of((uintptr_t)info->si_addr, &end) : NULL;
    if (s) {
        const uintptr_t page = (uintptr_t)info->si_addr & ~(page_size - 1);
        atomic_store(&s->truncated, true);
        const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
        // The bare system call: sanitizers wrap mmap(), which a signal handler must not enter.
        if (syscall(SYS_mmap, page, end - page, PROT_READ, flags, -1, 0) == -1) s = NULL;
    }
    errno = saved;
    if (!s) chain(sig, info, context);
}

static void install(void) {
    page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
    struct sigaction sa = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&sa.sa_mask);
    (void)sigaction(SIGBUS, &sa, &previous);
}

// --- Sources ---

struct xpl_source {
    atomic_uint refs;
    struct xpl_fingerprint fingerprint;
    xpl_bytes_t bytes;
    size_t mapped;  // 0: nothing mapped
    size_t skipped; // of the mapping, before `bytes`
    struct slot *slot;
    int fd;
    bool stable;
    bool is_copy; // the file's own times say nothing
    char path[];  // for messages
};

// Longer than a tick of the kernel's coarse clock (CONFIG_HZ >= 100); how often it is waited for.
enum { TICK_NS = 10000000, PAUSES = 2 };

// Reads the fingerprint until a further change would show, after as many pauses at most.  Only
// ctime counts: programs can set mtime as they like.
static xpl_status_t read_fingerprint(int fd, const char *path, int pauses,
                                     struct xpl_fingerprint *ret, bool *ret_stable,
                                     struct xpl_error *err) {
    struct stat st;
    for (;; pauses--) {
        if (fstat(fd, &st) != 0) return xpl_path_fail(errno, "read", path, err);
        if (!S_ISREG(st.st_mode))
            XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "%s: not a regular file",
                             xpl_path_shown(path, &(struct xpl_path_text){0}));
        *ret = xpl_fingerprint_of(&st);
        const int64_t age = xpl_unix_ns() - ret->ctime_ns;
        const bool coarse = ret->ctime_ns % 1000000000 == 0 && ret->mtime_ns % 1000000000 == 0;
        *ret_stable = age >= (coarse ? 2000000000 : TICK_NS) || age < -2000000000;
        if (*ret_stable || coarse || !pauses) return XPL_OK;
        const struct timespec pause = {.tv_nsec = TICK_NS};
        (void)nanosleep(&pause, NULL);
    }
}

// Opening a device or a pipe may have side effects, so this checks the kind first; O_NONBLOCK
// covers the rest of that race.
static xpl_status_t open_regular(int dirfd, const char *path, const char *root, int *ret,
                                 struct xpl_error *err) {
    struct stat st;
    if (fstatat(dirfd, path, &st, 0) != 0)
        return dirfd == AT_FDCWD ? xpl_path_fail_near(errno, path, err)
                                 : xpl_path_fail(errno, "open", path, err);
    if (!S_ISREG(st.st_mode))
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "%s: not a regular file",
                         xpl_path_shown(path, &(struct xpl_path_text){0}));
    const int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return xpl_path_fail(errno, "open", path, err);
    if (root && !xpl_path_inside(fd, root)) {
        (void)close(fd);
        XPL_RETURN_ERROR(err, XPL_PERMISSION_DENIED, "%s: leads out of the log directory",
                         xpl_path_shown(path, &(struct xpl_path_text){0}));
    }
    *ret = fd;
    return XPL_OK;
}

static xpl_status_t map_it(struct xpl_source *s, uint64_t max_bytes, struct xpl_error *err) {
    const uint64_t size = s->fingerprint.size;
    if (max_bytes && size > max_bytes)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED, "%s: %llu bytes, more than the limit of %llu",
                         xpl_path_shown(s->path, &(struct xpl_path_text){0}),
                         (unsigned long long)size, (unsigned long long)max_bytes);
    s->bytes = (xpl_bytes_t){(const uint8_t *)"", 0};
    if (size == 0) return XPL_OK;
    if (size > SIZE_MAX / 2) return xpl_path_fail(ENOMEM, "map", s->path, err);
    s->slot = slot_claim();
    if (!s->slot)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED, "%s: %d files are open already",
                         xpl_path_shown(s->path, &(struct xpl_path_text){0}), XPL_SOURCE_MAX_OPEN);
    void *p = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, s->fd, 0);
    if (p == MAP_FAILED) return xpl_path_fail(errno, "map", s->path, err);
    s->mapped = (size_t)size;
    s->bytes = (xpl_bytes_t){p, (size_t)size};
    slot_write(s->slot, (uintptr_t)p,
               ((uintptr_t)p + (size_t)size + page_size - 1) & ~(page_size - 1));
    return XPL_OK;
}

static struct xpl_source *source_new(const char *path) {
    const size_t len = strlen(path) + 1;
    struct xpl_source *const s = xpl_sys_alloc(sizeof *s + len);
    if (!s) return NULL;
    *s = (struct xpl_source){.fd = -1};
    atomic_init(&s->refs, 1);
    memcpy(s->path, path, len);
    return s;
}

static xpl_status_t open_source(int dirfd, const char *path, const char *root, uint64_t max_bytes,
                                int pauses, struct xpl_source **ret, struct xpl_error *err) {
    (void)pthread_once(&installed, install);
    struct xpl_source *const s = source_new(path);
    if (!s) XPL_RETURN_OOM(err, "opening a profile");
    xpl_status_t st = open_regular(dirfd, path, root, &s->fd, err);
    if (st == XPL_OK) st = read_fingerprint(s->fd, path, pauses, &s->fingerprint, &s->stable, err);
    if (st == XPL_OK) st = map_it(s, max_bytes, err);
    if (st != XPL_OK) {
        xpl_source_free(s);
        return st;
    }
    *ret = s;
    return XPL_OK;
}

xpl_status_t xpl_source_open_inside(int dirfd, const char *path, const char *root,
                                    uint64_t max_bytes, struct xpl_source **ret,
                                    struct xpl_error *err) {
    return open_source(dirfd, path, root, max_bytes, PAUSES, ret, err);
}

xpl_status_t xpl_source_open(int dirfd, const char *path, uint64_t max_bytes,
                             struct xpl_source **ret, struct xpl_error *err) {
    return open_source(dirfd, path, NULL, max_bytes, PAUSES, ret, err);
}

xpl_status_t xpl_source_open_own(const char *path, struct xpl_source **ret, struct xpl_error *err) {
    return open_source(AT_FDCWD, path, NULL, 0, 0, ret, err);
}

xpl_status_t xpl_source_open_copy(int fd, const char *path, const struct xpl_fingerprint *as,
                                  struct xpl_source **ret, struct xpl_error *err) {
    (void)pthread_once(&installed, install);
    struct xpl_source *const s = source_new(path);
    if (!s) {
        (void)close(fd);
        XPL_RETURN_OOM(err, "opening a profile");
    }
    s->fd = fd;
    s->fingerprint = *as;
    s->stable = s->is_copy = true;
    const xpl_status_t st = map_it(s, 0, err);
    if (st != XPL_OK) {
        xpl_source_free(s);
        return st;
    }
    *ret = s;
    return XPL_OK;
}

struct xpl_source *xpl_source_ref(struct xpl_source *s) {
    atomic_fetch_add(&s->refs, 1);
    return s;
}

void xpl_source_free(struct xpl_source *s) {
    if (!s || atomic_fetch_sub(&s->refs, 1) != 1) return;
    // The slot goes first: once the range is unmapped it may become anybody's, whose faults are
    // not ours to answer.  No reader is left to miss it.
    if (s->slot) slot_release(s->slot);
    if (s->mapped) (void)munmap((void *)(uintptr_t)(s->bytes.ptr - s->skipped), s->mapped);
    if (s->fd >= 0) (void)close(s->fd);
    xpl_sys_free(s);
}

xpl_bytes_t xpl_source_bytes(const struct xpl_source *s) {
    return s->bytes;
}

void xpl_source_skip(struct xpl_source *s, size_t n) {
    assert(n <= s->bytes.len);
    s->bytes.ptr += n;
    s->bytes.len -= n;
    s->skipped += n;
}

void xpl_source_release(const void *p, size_t n) {
    const uintptr_t begin = ((uintptr_t)p + page_size - 1) & ~(page_size - 1);
    const uintptr_t end = ((uintptr_t)p + n) & ~(page_size - 1);
    if (begin < end) (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
}

bool xpl_source_read(const struct xpl_source *s, uint64_t offset, void *ret, size_t n) {
    if (n > s->bytes.len || offset > s->bytes.len - n) return false;
    ssize_t got;
    do
        got = pread(s->fd, ret, n, (off_t)(s->skipped + offset));
    while (got < 0 && errno == EINTR);
    return got >= 0 && (size_t)got == n;
}

const struct xpl_fingerprint *xpl_source_fingerprint(const struct xpl_source *s) {
    return &s->fingerprint;
}

bool xpl_source_is_stable(const struct xpl_source *s) {
    return s->stable;
}

bool xpl_source_is_truncated(const struct xpl_source *s) {
    return s->slot && atomic_load_explicit(&s->slot->truncated, memory_order_relaxed);
}

xpl_status_t xpl_source_verify(const struct xpl_source *s, struct xpl_error *err) {
    struct stat st;
    if (fstat(s->fd, &st) != 0) return xpl_path_fail(errno, "read", s->path, err);
    const struct xpl_fingerprint now = s->is_copy ? s->fingerprint : xpl_fingerprint_of(&st);
    if (now.size < s->fingerprint.size || xpl_source_is_truncated(s))
        XPL_RETURN_ERROR(err, XPL_ABORTED,
                         "%s: truncated while it was read (%llu of %llu bytes are left); try "
                         "again when it is written completely",
                         xpl_path_shown(s->path, &(struct xpl_path_text){0}),
                         (unsigned long long)now.size, (unsigned long long)s->fingerprint.size);
    if (!xpl_fingerprint_eq(&now, &s->fingerprint))
        XPL_RETURN_ERROR(err, XPL_ABORTED,
                         "%s: changed while it was read (%llu bytes then, %llu now); try again "
                         "when it is written completely",
                         xpl_path_shown(s->path, &(struct xpl_path_text){0}),
                         (unsigned long long)s->fingerprint.size, (unsigned long long)now.size);
    return XPL_OK;
}
