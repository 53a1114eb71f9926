// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "agent/inject/inject.h"

enum { FLUSH_MS = 1000, READY = 2 };

// ---- buffers: CUPTI's threads take and return them, ours empties them ----

enum buffer_state { BUFFER_NONE, BUFFER_FREE, BUFFER_TAKEN, BUFFER_FULL };

struct buffer {
    uint8_t *bytes;
    size_t valid;
    uint64_t order; // full ones are emptied in the order in which they came
    enum buffer_state state;
};

// One for the process: CUPTI's callbacks have no argument, and may come after a capture.
static struct {
    pthread_mutex_t mu;
    struct buffer v[XPL_AGENT_BUFFERS_MAX];
    uint32_t limit; // buffers of this capture; 0: none is running
    uint64_t next;
    int full; // eventfd
} pool = {.mu = PTHREAD_MUTEX_INITIALIZER, .full = -1};

static uint8_t *map_buffer(int flags) {
    void *const p = mmap(NULL, XPL_AGENT_BUFFER_BYTES, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static struct buffer *pool_find(enum buffer_state state) { // under mu
    for (uint32_t i = 0; i < pool.limit; i++)
        if (pool.v[i].state == state) return &pool.v[i];
    return NULL;
}

static void buffer_requested(uint8_t **bytes, size_t *size, size_t *max_records) {
    *bytes = NULL, *size = 0, *max_records = 0; // CUPTI drops records, and counts them
    pthread_mutex_lock(&pool.mu);
    struct buffer *b = pool_find(BUFFER_FREE);
    if (!b && (b = pool_find(BUFFER_NONE)) && !(b->bytes = map_buffer(0))) b = NULL;
    if (b) {
        b->state = BUFFER_TAKEN;
        *bytes = b->bytes, *size = XPL_AGENT_BUFFER_BYTES;
    }
    pthread_mutex_unlock(&pool.mu);
}

static void buffer_completed(void *context, uint32_t stream, uint8_t *bytes, size_t size,
                             size_t valid) {
    (void)context, (void)stream;
    const uint64_t one = 1;
    pthread_mutex_lock(&pool.mu);
    for (uint32_t i = 0; i < XPL_AGENT_BUFFERS_MAX; i++) {
        struct buffer *const b = &pool.v[i];
        if (b->state != BUFFER_TAKEN || b->bytes != bytes) continue;
        b->valid = valid < size ? valid : size;
        b->order = pool.next++;
        b->state = pool.limit && b->valid ? BUFFER_FULL : BUFFER_FREE;
        if (b->state == BUFFER_FULL && write(pool.full, &one, sizeof one) < 0)
            continue; // the counter is full: it wakes anyway
    }
    pthread_mutex_unlock(&pool.mu);
}

static struct buffer *pool_oldest_full(void) {
    struct buffer *found = NULL;
    pthread_mutex_lock(&pool.mu);
    for (uint32_t i = 0; i < XPL_AGENT_BUFFERS_MAX; i++) {
        struct buffer *const b = &pool.v[i];
        if (b->state == BUFFER_FULL && (!found || b->order < found->order)) found = b;
    }
    pthread_mutex_unlock(&pool.mu);
    return found;
}

static void pool_give_back(struct buffer *b) {
    pthread_mutex_lock(&pool.mu);
    b->state = BUFFER_FREE;
    pthread_mutex_unlock(&pool.mu);
}

// Some buffers ahead, with their pages: else the program's threads would wait for the kernel to
// clear each page that CUPTI writes to first.
static void pool_prepare(void) {
    for (;;) {
        uint32_t ready = 0;
        pthread_mutex_lock(&pool.mu);
        for (uint32_t i = 0; i < pool.limit; i++)
            ready += pool.v[i].state == BUFFER_FREE;
        const bool enough = ready >= READY || !pool_find(BUFFER_NONE);
        pthread_mutex_unlock(&pool.mu);
        uint8_t *const p = enough ? NULL : map_buffer(MAP_POPULATE);
        if (!p) return;
        pthread_mutex_lock(&pool.mu);
        struct buffer *const b = pool_find(BUFFER_NONE);
        if (b) b->bytes = p, b->state = BUFFER_FREE;
        pthread_mutex_unlock(&pool.mu);
        if (!b) munmap(p, XPL_AGENT_BUFFER_BYTES); // CUPTI requested it meanwhile
    }
}

static bool pool_open(uint32_t buffers) {
    const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0) return false;
    pthread_mutex_lock(&pool.mu);
    pool.full = fd;
    pool.limit = buffers;
    pthread_mutex_unlock(&pool.mu);
    pool_prepare();
    return true;
}

// A buffer that CUPTI still holds stays mapped: it is used again in the next capture.
static void pool_close(void) {
    pthread_mutex_lock(&pool.mu);
    pool.limit = 0;
    close(pool.full);
    pool.full = -1;
    for (uint32_t i = 0; i < XPL_AGENT_BUFFERS_MAX; i++) {
        struct buffer *const b = &pool.v[i];
        if (b->state != BUFFER_FREE && b->state != BUFFER_FULL) continue;
        munmap(b->bytes, XPL_AGENT_BUFFER_BYTES);
        *b = (struct buffer){0};
    }
    pthread_mutex_unlock(&pool.mu);
}

// ---- one capture ----

struct tracer {
    struct out out;
    struct cu_functions cu;
    void *subscriber;
    uint64_t dropped;
};

static void drain(struct tracer *t) {
    for (struct buffer *b; (b = pool_oldest_full());) {
        void *record = NULL;
        pool_prepare(); // the one after this was taken as this became full
        while (!t->out.failed &&
               t->cu.cuptiActivityGetNextRecord(b->bytes, b->valid, &record) == CU_OK)
            inject_convert_record(&t->out, &t->cu, record);
        pool_give_back(b);
    }
    size_t dropped = 0;
    if (t->cu.cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped) == CU_OK) t->dropped += dropped;
    inject_out_flush(&t->out);
}

static uint64_t real_ns(void) {
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

// The two clocks at one moment: the tightest of a few tries.
static void send_clock(struct tracer *t) {
    struct xpl_record_clock best = {.uncertainty_ns = UINT64_MAX};
    for (int i = 0; i < INJECT_CLOCK_TRIES; i++) {
        uint64_t cupti = 0;
        const uint64_t before = real_ns();
        if (t->cu.cuptiGetTimestamp(&cupti) != CU_OK) return;
        const uint64_t after = real_ns();
        if (after < before || after - before >= best.uncertainty_ns) continue;
        best.cupti_ns = cupti;
        best.real_ns = before + (after - before) / 2;
        best.uncertainty_ns = after - before;
    }
    if (best.cupti_ns) inject_out_record(&t->out, XPL_RECORD_CLOCK, &best, sizeof best, NULL, 0);
}

static void send_end(struct out *o, const char *why) {
    const size_t n = why ? strlen(why) : 0;
    struct xpl_record_end r = {.failed = why != NULL, .text_len = (uint32_t)n};
    inject_out_record(o, XPL_RECORD_END, &r, sizeof r, why, n);
    inject_out_flush(o);
}

static void explain(const struct cu_functions *cu, int code, char *why, size_t size) {
    const char *text = NULL;
    switch (code) {
        case CU_MANY_SUBSCRIBERS:
            snprintf(why, size,
                     "another profiler is attached to the program (CUPTI serves one at a time): "
                     "stop it and capture again");
            break;
        case CU_NO_PRIVILEGES:
        case CU_NO_PRIVILEGES_VIRTUAL:
            snprintf(why, size,
                     "the driver lets only administrators profile: load it with "
                     "NVreg_RestrictProfilingToAdminUsers=0, or give the program CAP_SYS_ADMIN");
            break;
        case CU_NOT_INITIALIZED:
            snprintf(why, size,
                     "CUPTI could not be initialised: the program's driver and this CUPTI do not "
                     "fit, or no GPU is visible; XPLANED_CUPTI can name another libcupti.so");
            break;
        default:
            if (cu->cuptiGetResultString(code, &text) != CU_OK || !text) text = "unknown";
            snprintf(why, size, "CUPTI does not record: error %d, %s", code, text);
            break;
    }
}

static void on_callback(void *user, uint32_t domain, uint32_t id, const void *data) {
    (void)user, (void)domain, (void)id, (void)data; // none is enabled: subscribing claims CUPTI
}

static void enable_unified(struct tracer *t) {
    struct cu_unified_config config[6];
    static const uint32_t counters[] = {1, 2, 3, 4, 5, 8};
    if (!t->cu.cuptiActivityConfigureUnifiedMemoryCounter) return;
    for (size_t i = 0; i < 6; i++) // scope 2: all devices
        config[i] = (struct cu_unified_config){.scope = 2, .counter = counters[i], .enable = 1};
    if (t->cu.cuptiActivityConfigureUnifiedMemoryCounter(config, 6) == CU_OK)
        t->cu.cuptiActivityEnable(CU_UNIFIED);
}

static const uint32_t ALL_KINDS[] = {
    CU_CONCURRENT_KERNEL, CU_MEMCPY, CU_MEMCPY2, CU_MEMSET,   CU_SYNC,       CU_MEMORY2, CU_DRIVER,
    CU_RUNTIME,           CU_MARKER, CU_UNIFIED, CU_OVERHEAD, CU_GRAPH_TRACE};

static bool is_wanted(uint32_t kind, uint32_t options) {
    switch (kind) {
        case CU_DRIVER: return options & XPL_AGENT_DRIVER_API;
        case CU_RUNTIME: return options & XPL_AGENT_RUNTIME_API;
        case CU_MARKER: return options & XPL_AGENT_NVTX;
        case CU_OVERHEAD: return options & XPL_AGENT_OVERHEAD;
        case CU_GRAPH_TRACE: return !(options & XPL_AGENT_GRAPH_NODES);
        case CU_UNIFIED: return false; // needs more: enable_unified
        default: return true;
    }
}

static int enable(struct tracer *t, uint32_t options) {
    int code = t->cu.cuptiSubscribe(&t->subscriber, on_callback, NULL);
    if (code != CU_OK) return code;
    if (t->cu.cuptiSetThreadIdType) t->cu.cuptiSetThreadIdType(CU_THREAD_ID_SYSTEM);
    code = t->cu.cuptiActivityRegisterCallbacks(buffer_requested, buffer_completed);
    if (code == CU_OK) code = t->cu.cuptiActivityEnable(CU_CONCURRENT_KERNEL);
    if (code != CU_OK) {
        t->cu.cuptiUnsubscribe(t->subscriber);
        return code;
    }
    size_t stale;
    t->cu.cuptiActivityGetNumDroppedRecords(NULL, 0, &stale);
    for (size_t i = 1; i < sizeof ALL_KINDS / sizeof *ALL_KINDS; i++)
        if (is_wanted(ALL_KINDS[i], options)) // an old CUPTI may not know a kind: do without
            t->cu.cuptiActivityEnable(ALL_KINDS[i]);
    if (options & XPL_AGENT_UNIFIED) enable_unified(t);
    return CU_OK;
}

static void disable(struct tracer *t) {
    for (size_t i = 0; i < sizeof ALL_KINDS / sizeof *ALL_KINDS; i++)
        t->cu.cuptiActivityDisable(ALL_KINDS[i]);
    t->cu.cuptiActivityFlushAll(CU_FLUSH_FORCED);
    t->cu.cuptiUnsubscribe(t->subscriber);
}

// True when the peer requested the end, or is gone.
static bool is_stopped(struct out *o) {
    struct xpl_agent_command c;
    const ssize_t n = recv(o->fd, &c, sizeof c, MSG_DONTWAIT);
    if (n < 0) return errno != EAGAIN && errno != EINTR;
    if (n == 0) o->failed = true;
    return true;
}

static void record(struct tracer *t, int wake) {
    for (;;) {
        struct pollfd p[] = {{.fd = t->out.fd, .events = POLLIN},
                             {.fd = pool.full, .events = POLLIN},
                             {.fd = wake, .events = POLLIN}};
        const int n = poll(p, 3, FLUSH_MS);
        uint64_t counted;
        if (n < 0 && errno != EINTR) return;
        if (n == 0) t->cu.cuptiActivityFlushAll(0);
        if (n > 0 && (p[1].revents & POLLIN) && read(pool.full, &counted, sizeof counted) < 0)
            counted = 0;
        drain(t);
        if (t->out.failed) return;
        if (n > 0 && p[2].revents) return;
        if (n > 0 && p[0].revents && is_stopped(&t->out)) return;
    }
}

static void send_dropped(struct tracer *t) {
    const uint64_t counts[] = {t->dropped, t->out.nameless};
    for (uint32_t i = 0; i < 2; i++) {
        struct xpl_record_dropped r = {.count = counts[i], .cause = XPL_DROP_BUFFERS + i};
        if (counts[i]) inject_out_record(&t->out, XPL_RECORD_DROPPED, &r, sizeof r, NULL, 0);
    }
}

static void trace(struct tracer *t, int wake, const struct xpl_agent_command *start, void *cuda) {
    char why[400] = "";
    const uint32_t asked = start->buffers ? start->buffers : XPL_AGENT_BUFFERS;
    const uint32_t most = asked < XPL_AGENT_BUFFERS_MAX ? asked : XPL_AGENT_BUFFERS_MAX;
    if (!inject_load_cupti(cuda, &t->cu, why, sizeof why)) {
        send_end(&t->out, why);
        return;
    }
    if (!pool_open(most < 2 ? 2 : most)) {
        send_end(&t->out, "the program has no file descriptor left");
        return;
    }
    const int code = enable(t, start->options);
    if (code != CU_OK) {
        pool_close();
        explain(&t->cu, code, why, sizeof why);
        send_end(&t->out, why);
        return;
    }
    struct xpl_record started;
    send_clock(t);
    inject_send_devices(&t->out, cuda);
    inject_out_record(&t->out, XPL_RECORD_STARTED, &started, sizeof started, NULL, 0);
    inject_out_flush(&t->out);
    record(t, wake);
    send_clock(t);
    disable(t);
    drain(t);
    pool_close();
    send_dropped(t);
    send_end(&t->out, NULL);
}

void inject_run_capture(int fd, int wake, const struct xpl_agent_command *start, void *cuda) {
    struct tracer t = {0};
    if (!inject_out_init(&t.out, fd)) return;
    trace(&t, wake, start, cuda);
    inject_out_fini(&t.out);
}
