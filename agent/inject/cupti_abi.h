// SPDX-License-Identifier: Apache-2.0
// The used parts of CUPTI's and the driver's binary interfaces, as NVIDIA documents them, so that
// the build needs no CUDA, and one library works with every CUPTI from CUDA 12.0 on.  Records grow
// at their end from release to release; these declarations end with the parts that all releases
// share. tests/agent/cupti_layout.c checks every offset and number against the headers of an
// installed CUPTI (meson option `cupti`).
#ifndef XPL_AGENT_INJECT_CUPTI_ABI_H_
#define XPL_AGENT_INJECT_CUPTI_ABI_H_

#include <stddef.h>
#include <stdint.h>

enum {
    CU_OK = 0, // also CUPTI's
    CU_LIMIT_REACHED = 12,
    CU_NOT_INITIALIZED = 15,
    CU_NO_PRIVILEGES = 35,
    CU_MANY_SUBSCRIBERS = 39,
    CU_NO_PRIVILEGES_VIRTUAL = 40,
    CU_FLUSH_FORCED = 1,
    CU_THREAD_ID_SYSTEM = 1,
    CU_DOMAIN_DRIVER = 1,
    CU_DOMAIN_RUNTIME = 2,
};

enum cu_kind {
    CU_MEMCPY = 1,
    CU_MEMSET = 2,
    CU_KERNEL = 3,
    CU_DRIVER = 4,
    CU_RUNTIME = 5,
    CU_CONCURRENT_KERNEL = 10,
    CU_MARKER = 12,
    CU_OVERHEAD = 17,
    CU_MEMCPY2 = 22,
    CU_UNIFIED = 25,
    CU_SYNC = 38,
    CU_MEMORY2 = 49,
    CU_GRAPH_TRACE = 51,
};

#define CU_RECORD struct __attribute__((packed, aligned(8)))

CU_RECORD cu_kernel {
    uint32_t kind;
    uint8_t cache_config, shared_config;
    uint16_t registers;
    uint32_t partitioned[2];
    uint64_t start, end, completed;
    uint32_t device, context, stream;
    int32_t grid[3], block[3];
    int32_t static_shared, dynamic_shared;
    uint32_t local_per_thread, local_total, correlation;
    int64_t grid_id;
    const char *name;
    void *reserved;
    uint64_t queued, submitted;
    uint8_t launch[4];
    uint32_t shared_executed;
    uint64_t graph_node;
    uint32_t shared_limit, graph;
};

CU_RECORD cu_memcpy {
    uint32_t kind;
    uint8_t copy_kind, source_kind, destination_kind, flags;
    uint64_t bytes, start, end;
    uint32_t device, context, stream, correlation, runtime_correlation, pad;
    void *reserved;
    uint64_t graph_node;
    uint32_t graph;
};

CU_RECORD cu_memcpy_peer {
    uint32_t kind;
    uint8_t copy_kind, source_kind, destination_kind, flags;
    uint64_t bytes, start, end;
    uint32_t device, context, stream;
    uint32_t source_device, source_context, destination_device, destination_context;
    uint32_t correlation;
    void *reserved;
    uint64_t graph_node;
    uint32_t graph;
};

CU_RECORD cu_memset {
    uint32_t kind, value;
    uint64_t bytes, start, end;
    uint32_t device, context, stream, correlation;
    uint16_t flags, memory_kind;
    uint32_t pad;
    void *reserved;
    uint64_t graph_node;
    uint32_t graph;
};

CU_RECORD cu_api {
    uint32_t kind, callback;
    uint64_t start, end;
    uint32_t process, thread, correlation, result;
};

// A process and thread, or device, context and stream: CUpti_ActivityObjectKindId.
struct __attribute__((packed, aligned(4))) cu_object {
    uint32_t a, b, c; // process, thread, - ; device, context, stream
};

CU_RECORD cu_marker {
    uint32_t kind, flags;
    uint64_t time;
    uint32_t id, object_kind;
    struct cu_object object;
    uint32_t pad;
    const char *name, *domain;
};

CU_RECORD cu_overhead {
    uint32_t kind, overhead, object_kind;
    struct cu_object object;
    uint64_t start, end;
};

CU_RECORD cu_unified {
    uint32_t kind, counter;
    uint64_t value, start, end, address;
    uint32_t source, destination, stream, process, flags;
};

CU_RECORD cu_sync {
    uint32_t kind, type;
    uint64_t start, end;
    uint32_t correlation, context, stream;
};

CU_RECORD cu_memory {
    uint32_t kind, operation, memory_kind, correlation;
    uint64_t address, bytes, time, counter;
    uint32_t process, device, context, stream;
};

CU_RECORD cu_graph {
    uint32_t kind, correlation;
    uint64_t start, end;
    uint32_t device, graph, context, stream;
};

// CUpti_ActivityUnifiedMemoryCounterConfig
struct cu_unified_config {
    uint32_t scope, counter, device, enable;
};

typedef void (*cu_requested_fn)(uint8_t **buffer, size_t *size, size_t *max_records);
typedef void (*cu_completed_fn)(void *context, uint32_t stream, uint8_t *buffer, size_t size,
                                size_t valid);
typedef void (*cu_callback_fn)(void *user, uint32_t domain, uint32_t id, const void *data);

// name, return type, arguments; optional ones may be absent in an older CUPTI.
#define CU_FUNCTIONS(X)                                                                            \
    X(cuptiActivityRegisterCallbacks, (cu_requested_fn, cu_completed_fn))                          \
    X(cuptiActivityEnable, (uint32_t))                                                             \
    X(cuptiActivityDisable, (uint32_t))                                                            \
    X(cuptiActivityFlushAll, (uint32_t))                                                           \
    X(cuptiActivityGetNextRecord, (uint8_t *, size_t, void **))                                    \
    X(cuptiActivityGetNumDroppedRecords, (void *, uint32_t, size_t *))                             \
    X(cuptiGetTimestamp, (uint64_t *))                                                             \
    X(cuptiGetCallbackName, (uint32_t, uint32_t, const char **))                                   \
    X(cuptiGetResultString, (int, const char **))                                                  \
    X(cuptiSubscribe, (void **, cu_callback_fn, void *))                                           \
    X(cuptiUnsubscribe, (void *))
#define CU_OPTIONAL(X)                                                                             \
    X(cuptiSetThreadIdType, (uint32_t))                                                            \
    X(cuptiActivityFlushPeriod, (uint32_t))                                                        \
    X(cuptiActivityConfigureUnifiedMemoryCounter, (struct cu_unified_config *, uint32_t))

#define CU_MEMBER(name, args) int(*name) args;
struct cu_functions {
    CU_FUNCTIONS(CU_MEMBER)
    CU_OPTIONAL(CU_MEMBER)
};
#undef CU_MEMBER

// Attributes of cuDeviceGetAttribute.
enum {
    CU_THREADS_PER_BLOCK = 1,
    CU_SHARED_PER_BLOCK = 8,
    CU_WARP = 10,
    CU_REGISTERS_PER_BLOCK = 12,
    CU_CLOCK_KHZ = 13,
    CU_CORES = 16,
    CU_MEMORY_CLOCK_KHZ = 36,
    CU_MEMORY_BUS_BITS = 37,
    CU_THREADS_PER_CORE = 39,
    CU_MAJOR = 75,
    CU_MINOR = 76,
    CU_SHARED_PER_CORE = 81,
    CU_REGISTERS_PER_CORE = 82,
    CU_SHARED_PER_BLOCK_OPTIN = 97,
    CU_BLOCKS_PER_CORE = 106,
    CU_SHARED_RESERVED_PER_BLOCK = 111,
};

#endif
