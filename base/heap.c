// SPDX-License-Identifier: Apache-2.0
#include "base/heap.h"

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#elif defined(__has_feature)
enum { SANITIZED = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) };
#else
enum { SANITIZED = 0 };
#endif

// Blocks of this size are worth a read of the kernel's figures, when a quarter of the budget is
// used; the process's memory above the budget is freed memory that malloc holds, or SLACK.
enum { WORTH_ASKING = 1 << 20, SLACK = 32 << 20 };

static atomic_size_t budget = SIZE_MAX, in_use;
static atomic_size_t given;      // of large blocks since malloc was trimmed: it keeps that at most
static atomic_size_t idle_floor; // excess() after the last trim of an idle process
static pthread_mutex_t trimming = PTHREAD_MUTEX_INITIALIZER;

void xpl_heap_set_budget(size_t bytes) {
    atomic_store(&budget, bytes);
}

static size_t read_text(int dir, const char *path, char *ret, size_t size) {
    const int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, ret, size - 1);
    if (fd >= 0) (void)close(fd);
    ret[n > 0 ? n : 0] = 0;
    return n > 0 ? (size_t)n : 0;
}

// Of the control group at `path` below `top`; SIZE_MAX: it has none.
static size_t limit_of_group(int top, const char *path) {
    char text[32];
    unsigned long long n;
    const int dir = openat(top, *path ? path : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    const bool has = dir >= 0 && read_text(dir, "memory.max", text, sizeof text) &&
                     sscanf(text, "%llu", &n) == 1; // not "max"
    if (dir >= 0) (void)close(dir);
    return has ? (size_t)n : SIZE_MAX;
}

// Of the control group (version 2) that the process is in, and of those around it, the least.
static size_t limit_of_groups(void) {
    char groups[4096];
    size_t least = SIZE_MAX;
    if (!read_text(AT_FDCWD, "/proc/self/cgroup", groups, sizeof groups)) return SIZE_MAX;
    char *path = strstr(groups, "0::/");
    const int top = path ? open("/sys/fs/cgroup", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    if (top < 0) return SIZE_MAX;
    path[strcspn(path, "\n")] = 0;
    path += 3 + strspn(path + 3, "/");
    for (bool inner = true; inner;) {
        const size_t limit = limit_of_group(top, path);
        if (limit < least) least = limit;
        char *const end = strrchr(path, '/');
        inner = *path != 0;
        *(end ? end : path) = 0;
    }
    (void)close(top);
    return least;
}

size_t xpl_heap_machine(void) {
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    const size_t all = pages > 0 && page > 0 ? (size_t)pages * (size_t)page : SIZE_MAX;
    const size_t group = limit_of_groups();
    return group < all ? group : all;
}

size_t xpl_heap_in_use(void) {
    return atomic_load_explicit(&in_use, memory_order_relaxed);
}

size_t xpl_heap_resident(void) {
    char text[128];
    unsigned long long resident, shared;
    if (!read_text(AT_FDCWD, "/proc/self/statm", text, sizeof text)) return 0;
    if (sscanf(text, "%*u %llu %llu", &resident, &shared) != 2 || resident < shared) return 0;
    return (size_t)(resident - shared) * (size_t)sysconf(_SC_PAGESIZE);
}

// Memory that malloc holds beyond the bytes in use and that is resident.  gRPC's memory, which
// large blocks do not count, counts only while it is in use.
static size_t excess(void) {
    const struct mallinfo2 m = mallinfo2();
    const size_t resident = xpl_heap_resident(), used = m.uordblks + m.hblkhd;
    return resident > used ? resident - used : 0;
}

void xpl_heap_trim(size_t bytes) {
    if (excess() <= bytes || pthread_mutex_trylock(&trimming) != 0) return;
    (void)malloc_trim(0);
    pthread_mutex_unlock(&trimming);
}

bool xpl_heap_may_trim_idle(size_t bytes) {
    const size_t now = excess(), floor = atomic_load(&idle_floor);
    if (now < floor) atomic_store(&idle_floor, now);
    return now > floor + bytes;
}

void xpl_heap_trim_idle(size_t bytes) {
    if (!xpl_heap_may_trim_idle(bytes)) return;
    xpl_heap_trim(bytes);
    atomic_store(&idle_floor, excess());
}

void xpl_heap_trim_rest(size_t bytes) {
    xpl_heap_trim(bytes);
    atomic_store(&idle_floor, excess());
}

// Returns freed memory to the system if the memory that malloc may hold exceeds the limit, in
// addition to the `now` bytes in use, some of which may not be written yet.
static void trim_beside(size_t now, size_t limit) {
    if (now + atomic_load_explicit(&given, memory_order_relaxed) <= limit) return;
    pthread_mutex_lock(&trimming); // a second thread finds the memory returned
    if (now + atomic_load(&given) > limit) {
        atomic_store(&given, 0); // first: malloc may hold blocks that others free meanwhile
        (void)malloc_trim(0);
    }
    pthread_mutex_unlock(&trimming);
}

// Whether the process has room for `more` bytes, which make large blocks use `now` bytes; returns
// freed memory to the system first if it has not.
static bool has_room(size_t more, size_t now, size_t limit) {
    if (SANITIZED) return true; // the sanitizer uses many times as much
    trim_beside(now, limit);
    // Early: small blocks that were freed do not count in `given`.
    if (xpl_heap_resident() + more > limit / 4 * 3) xpl_heap_trim(SLACK);
    if (xpl_heap_resident() + more <= limit) return true;
    pthread_mutex_lock(&trimming);
    bool room = xpl_heap_resident() + more <= limit;
    if (!room) {
        (void)malloc_trim(0);
        room = xpl_heap_resident() + more <= limit + SLACK;
    }
    pthread_mutex_unlock(&trimming);
    return room;
}

// Counts the block if the budget has room.  The count never exceeds the limit, not even for a
// moment: otherwise a block that is then refused could make others fail, too.
static bool count_within(size_t more, size_t limit, size_t *ret_now) {
    size_t was = atomic_load_explicit(&in_use, memory_order_relaxed);
    do {
        if (was > limit || more > limit - was) return false;
    } while (!atomic_compare_exchange_weak_explicit(&in_use, &was, was + more, memory_order_relaxed,
                                                    memory_order_relaxed));
    *ret_now = was + more;
    return true;
}

bool xpl_heap_take(size_t more) {
    const size_t limit = atomic_load_explicit(&budget, memory_order_relaxed);
    size_t now;
    if (limit == SIZE_MAX) {
        xpl_heap_add(more);
        return true;
    }
    if (!count_within(more, limit, &now)) return false;
    if (more < WORTH_ASKING || now < limit / 4 || has_room(more, now, limit)) return true;
    (void)atomic_fetch_sub_explicit(&in_use, more, memory_order_relaxed);
    return false;
}

void xpl_heap_add(size_t more) {
    (void)atomic_fetch_add_explicit(&in_use, more, memory_order_relaxed);
}

bool xpl_heap_take_small(size_t more) {
    const size_t limit = atomic_load_explicit(&budget, memory_order_relaxed);
    const size_t now = atomic_fetch_add_explicit(&in_use, more, memory_order_relaxed) + more;
    if (limit == SIZE_MAX || now <= limit || now - limit <= XPL_HEAP_LAST) return true;
    xpl_heap_give_small(more);
    return false;
}

void xpl_heap_give_small(size_t less) {
    (void)atomic_fetch_sub_explicit(&in_use, less, memory_order_relaxed);
}

void xpl_heap_give(size_t less) {
    (void)atomic_fetch_add_explicit(&given, less, memory_order_relaxed);
    (void)atomic_fetch_sub_explicit(&in_use, less, memory_order_relaxed);
}
