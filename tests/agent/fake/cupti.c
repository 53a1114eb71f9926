// SPDX-License-Identifier: Apache-2.0
// CUPTI's interface over the records of the fake driver.  FAKE_CUPTI_FAIL=N: subscribing fails with
// that number.
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/inject/cupti_abi.h"
#include "agent/inject/inject.h"
#include "tests/agent/fake/fake.h"

#pragma GCC visibility push(default)

enum { KINDS = 64 };

static struct {
    pthread_mutex_t mu;
    cu_requested_fn requested;
    cu_completed_fn completed;
    bool enabled[KINDS];
    bool subscribed;
    uint8_t *buffer;
    size_t size, used, dropped;
} me = {.mu = PTHREAD_MUTEX_INITIALIZER};

#define API(name, ...)                                                                             \
    int name(__VA_ARGS__);                                                                         \
    int name(__VA_ARGS__)

// In the buffer each record follows the last; its size is that of its kind.
static size_t size_of(uint32_t kind) {
    switch (kind) {
        case CU_CONCURRENT_KERNEL: return sizeof(struct cu_kernel);
        case CU_MEMCPY: return sizeof(struct cu_memcpy);
        case CU_MEMSET: return sizeof(struct cu_memset);
        case CU_DRIVER:
        case CU_RUNTIME: return sizeof(struct cu_api);
        case CU_MARKER: return sizeof(struct cu_marker);
        case CU_OVERHEAD: return sizeof(struct cu_overhead);
        case CU_UNIFIED: return sizeof(struct cu_unified);
        case CU_SYNC: return sizeof(struct cu_sync);
        case CU_MEMORY2: return sizeof(struct cu_memory);
        case CU_GRAPH_TRACE: return sizeof(struct cu_graph);
        default: return 0;
    }
}

static void complete(void) { // under mu
    if (me.buffer) me.completed(NULL, 0, me.buffer, me.size, me.used);
    me.buffer = NULL, me.size = me.used = 0;
}

static void on_record(const void *record, size_t size) {
    const uint32_t kind = *(const uint32_t *)record;
    size_t most = 0;
    pthread_mutex_lock(&me.mu);
    if (me.enabled[kind]) {
        if (me.buffer && me.size - me.used < size) complete();
        if (!me.buffer) me.requested(&me.buffer, &me.size, &most);
        if (me.buffer) {
            memcpy(me.buffer + me.used, record, size);
            me.used += size;
        } else {
            me.dropped++;
        }
    }
    pthread_mutex_unlock(&me.mu);
}

static void set_sink(fake_sink_fn sink) {
    void *const cuda = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    void (*const set)(fake_sink_fn) =
        cuda ? __extension__(void (*)(fake_sink_fn)) dlsym(cuda, "fake_cuda_set_sink") : NULL;
    if (set) set(sink);
}

API(cuptiSubscribe, void **ret, cu_callback_fn fn, void *user) {
    const char *const fail = getenv("FAKE_CUPTI_FAIL");
    (void)fn, (void)user;
    if (fail) return atoi(fail);
    if (me.subscribed) return CU_MANY_SUBSCRIBERS;
    me.subscribed = true;
    *ret = &me;
    return CU_OK;
}
API(cuptiUnsubscribe, void *subscriber) {
    (void)subscriber;
    me.subscribed = false;
    return CU_OK;
}
API(cuptiActivityRegisterCallbacks, cu_requested_fn requested, cu_completed_fn completed) {
    pthread_mutex_lock(&me.mu);
    me.requested = requested, me.completed = completed;
    pthread_mutex_unlock(&me.mu);
    return CU_OK;
}
static void set_enabled(uint32_t kind, bool on) {
    pthread_mutex_lock(&me.mu);
    me.enabled[kind] = on;
    pthread_mutex_unlock(&me.mu);
    if (kind == CU_CONCURRENT_KERNEL && !on) set_sink(NULL);
}
API(cuptiActivityEnable, uint32_t kind) {
    if (!size_of(kind)) return 21;
    set_enabled(kind, true);
    return CU_OK;
}
API(cuptiActivityDisable, uint32_t kind) {
    if (size_of(kind)) set_enabled(kind, false);
    return CU_OK;
}
API(cuptiActivityFlushAll, uint32_t flag) {
    pthread_mutex_lock(&me.mu);
    if (flag & CU_FLUSH_FORCED) complete();
    pthread_mutex_unlock(&me.mu);
    return CU_OK;
}
API(cuptiActivityGetNextRecord, uint8_t *buffer, size_t valid, void **record) {
    uint8_t *const at = *record ? (uint8_t *)*record + size_of(*(const uint32_t *)*record) : buffer;
    if (at >= buffer + valid) return CU_LIMIT_REACHED;
    *record = at;
    return CU_OK;
}
API(cuptiActivityGetNumDroppedRecords, void *context, uint32_t stream, size_t *ret) {
    (void)context, (void)stream;
    pthread_mutex_lock(&me.mu);
    *ret = me.dropped;
    me.dropped = 0;
    pthread_mutex_unlock(&me.mu);
    return CU_OK;
}
// The tracer reads the clock when it has enabled all its kinds, and leaves out what began before
// the read that it takes: from its last read on the program is traced.
API(cuptiGetTimestamp, uint64_t *ret) {
    static int reads;
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    *ret = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec - 1000000000u;
    if (++reads % INJECT_CLOCK_TRIES == 0 && me.enabled[CU_CONCURRENT_KERNEL]) set_sink(on_record);
    return CU_OK;
}
API(cuptiGetCallbackName, uint32_t domain, uint32_t id, const char **ret) {
    static const struct {
        uint32_t id;
        const char *name[2];
    } names[] = {{307, {"cuLaunchKernel", "cudaLaunchKernel"}},
                 {276, {"cuMemcpyHtoDAsync_v2", "cudaMemcpyAsync"}},
                 {203, {"cuMemsetD8Async", "cudaMemsetAsync"}},
                 {243, {"cuMemAlloc_v2", "cudaMalloc"}},
                 {247, {"cuMemFree_v2", "cudaFree"}},
                 {514, {"cuGraphLaunch", "cudaGraphLaunch"}},
                 {126, {"cuStreamSynchronize", "cudaStreamSynchronize"}}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].id == id) {
            *ret = names[i].name[domain - 1];
            return CU_OK;
        }
    return 1;
}
API(cuptiGetResultString, int code, const char **ret) {
    (void)code;
    *ret = "CUPTI_ERROR_UNKNOWN";
    return CU_OK;
}
API(cuptiSetThreadIdType, uint32_t type) {
    return type == CU_THREAD_ID_SYSTEM ? CU_OK : 1;
}
API(cuptiActivityConfigureUnifiedMemoryCounter, struct cu_unified_config *config, uint32_t n) {
    return n && config[0].enable ? CU_OK : 1;
}
