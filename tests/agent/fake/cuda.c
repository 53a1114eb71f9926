// SPDX-License-Identifier: Apache-2.0
#include "tests/agent/fake/fake.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/inject/cupti_abi.h"

#pragma GCC visibility push(default)

enum { DEVICES = 2, BEHIND_NS = 1000000000 };

static _Atomic(fake_sink_fn) sink;
static atomic_uint correlations = 1;

// CUPTI's clock is a second behind the wall clock here, so that aligning them shows.
static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec - BEHIND_NS;
}

static void emit(const void *record, size_t size) {
    const fake_sink_fn to = atomic_load(&sink);
    if (to) to(record, size);
}

void fake_cuda_set_sink(fake_sink_fn to) {
    atomic_store(&sink, to);
}
bool fake_cuda_is_traced(void) {
    return atomic_load(&sink) != NULL;
}

// ---- the driver ----

int cuInit(unsigned flags) {
    const char *const path = getenv("CUDA_INJECTION64_PATH");
    void *const handle = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    int (*const begin)(void) =
        handle ? __extension__(int (*)(void)) dlsym(handle, "InitializeInjection") : NULL;
    (void)flags;
    if (path && (!begin || begin() != 1)) return 1;
    return 0;
}
int cuDriverGetVersion(int *ret) {
    *ret = 12040;
    return 0;
}
int cuDeviceGetCount(int *ret) {
    *ret = DEVICES;
    return 0;
}
int cuDeviceGet(int *ret, int ordinal) {
    *ret = ordinal;
    return ordinal < DEVICES ? 0 : 101;
}
int cuDeviceGetName(char *ret, int size, int device) {
    (void)device;
    snprintf(ret, (size_t)size, "Test GPU");
    return 0;
}
int cuDeviceGetUuid(void *ret, int device) {
    memset(ret, 0x40 + device, 16);
    return 0;
}
int cuDeviceTotalMem_v2(size_t *ret, int device) {
    (void)device;
    *ret = (size_t)80 << 30;
    return 0;
}
int cuDeviceGetAttribute(int *ret, int which, int device) {
    static const int v[][2] = {{CU_CLOCK_KHZ, 1410000},
                               {CU_CORES, 108},
                               {CU_MEMORY_CLOCK_KHZ, 1215000},
                               {CU_MEMORY_BUS_BITS, 5120},
                               {CU_MAJOR, 8},
                               {CU_MINOR, 0},
                               {CU_THREADS_PER_BLOCK, 1024},
                               {CU_THREADS_PER_CORE, 2048},
                               {CU_REGISTERS_PER_BLOCK, 65536},
                               {CU_REGISTERS_PER_CORE, 65536},
                               {CU_WARP, 32},
                               {CU_SHARED_PER_BLOCK, 49152},
                               {CU_SHARED_PER_CORE, 167936},
                               {CU_SHARED_PER_BLOCK_OPTIN, 166912},
                               {CU_BLOCKS_PER_CORE, 32},
                               {CU_SHARED_RESERVED_PER_BLOCK, 1024}};
    (void)device;
    for (size_t i = 0; i < sizeof v / sizeof *v; i++)
        if (v[i][0] == which) {
            *ret = v[i][1];
            return 0;
        }
    return 1;
}

// ---- the program's calls ----

// Asked for once: two system calls would be most of what a launch costs here.
static uint32_t process_id(void) {
    static _Thread_local uint32_t id;
    if (!id) id = (uint32_t)getpid();
    return id;
}
static uint32_t thread_id(void) {
    static _Thread_local uint32_t id;
    if (!id) id = (uint32_t)gettid();
    return id;
}

// A runtime call, the driver call within it, and the number both share.
static uint32_t call(uint32_t callback) {
    const uint32_t correlation = atomic_fetch_add(&correlations, 1);
    const uint64_t t = now();
    struct cu_api a = {.kind = CU_DRIVER,
                       .callback = callback,
                       .start = t + 1000,
                       .end = t + 4000,
                       .process = process_id(),
                       .thread = thread_id(),
                       .correlation = correlation};
    emit(&a, sizeof a);
    a.kind = CU_RUNTIME, a.start = t, a.end = t + 5000;
    emit(&a, sizeof a);
    return correlation;
}

void fake_kernel(const char *name, uint32_t device, uint32_t stream) {
    const uint32_t correlation = call(307);
    const uint64_t t = now() + 6000;
    const struct cu_kernel k = {.kind = CU_CONCURRENT_KERNEL,
                                .registers = 32,
                                .start = t,
                                .end = t + 20000,
                                .device = device,
                                .context = device + 1,
                                .stream = stream,
                                .grid = {108, 1, 1},
                                .block = {256, 1, 1},
                                .dynamic_shared = 4096,
                                .correlation = correlation,
                                .name = name};
    emit(&k, sizeof k);
}

void fake_memcpy(uint32_t stream, uint64_t bytes) {
    const uint32_t correlation = call(276);
    const uint64_t t = now() + 6000;
    const struct cu_memcpy m = {.kind = CU_MEMCPY,
                                .copy_kind = 1,
                                .source_kind = 2,
                                .destination_kind = 3,
                                .flags = 1,
                                .bytes = bytes,
                                .start = t,
                                .end = t + 9000,
                                .context = 1,
                                .stream = stream,
                                .correlation = correlation};
    emit(&m, sizeof m);
}

void fake_memset(uint32_t stream, uint64_t bytes) {
    const uint32_t correlation = call(203);
    const uint64_t t = now() + 6000;
    const struct cu_memset m = {.kind = CU_MEMSET,
                                .bytes = bytes,
                                .start = t,
                                .end = t + 3000,
                                .context = 1,
                                .stream = stream,
                                .correlation = correlation,
                                .memory_kind = 3};
    emit(&m, sizeof m);
}

void fake_malloc(uint64_t address, uint64_t bytes, bool release) {
    const uint32_t correlation = call(release ? 247 : 243);
    const struct cu_memory m = {.kind = CU_MEMORY2,
                                .operation = release ? 2 : 1,
                                .memory_kind = 3,
                                .correlation = correlation,
                                .address = address,
                                .bytes = bytes,
                                .time = now(),
                                .process = (uint32_t)getpid(),
                                .context = 1};
    emit(&m, sizeof m);
}

void fake_graph(uint32_t stream, uint32_t graph) {
    const uint32_t correlation = call(514);
    const uint64_t t = now() + 6000;
    const struct cu_graph g = {.kind = CU_GRAPH_TRACE,
                               .correlation = correlation,
                               .start = t,
                               .end = t + 50000,
                               .graph = graph,
                               .context = 1,
                               .stream = stream};
    emit(&g, sizeof g);
}

void fake_sync(uint32_t stream) {
    const uint32_t correlation = call(126);
    const uint64_t t = now();
    const struct cu_sync s = {.kind = CU_SYNC,
                              .type = 3,
                              .start = t,
                              .end = t + 2000,
                              .correlation = correlation,
                              .context = 1,
                              .stream = stream};
    emit(&s, sizeof s);
}

void fake_range(const char *name, bool begin) {
    static atomic_uint ids;
    static _Thread_local uint32_t open;
    if (begin) open = atomic_fetch_add(&ids, 1) + 1;
    const struct cu_marker m = {.kind = CU_MARKER,
                                .flags = begin ? 2 : 4,
                                .time = now(),
                                .id = open,
                                .object_kind = 2,
                                .object = {.a = (uint32_t)getpid(), .b = (uint32_t)gettid()},
                                .name = begin ? name : NULL};
    emit(&m, sizeof m);
}

void fake_page_fault(void) {
    const uint64_t t = now();
    const struct cu_unified u = {
        .kind = CU_UNIFIED, .counter = 4, .value = 7, .start = t, .end = t + 5000};
    emit(&u, sizeof u);
    const struct cu_overhead h = {.kind = CU_OVERHEAD,
                                  .overhead = 1 << 16,
                                  .object_kind = 2,
                                  .object = {.a = (uint32_t)getpid(), .b = (uint32_t)gettid()},
                                  .start = t,
                                  .end = t + 1000};
    emit(&h, sizeof h);
}
