// SPDX-License-Identifier: Apache-2.0
// agent/inject/cupti_abi.h against the CUPTI that is installed: nothing to run, it compiles or not.
#include <cuda.h>
#include <cupti.h>

#include "agent/inject/cupti_abi.h"

// The newest types of each header: those are what its library writes.  CUPTI_API_VERSION is 18 in
// CUDA 12.0 and 28 in 12.9.
#if CUPTI_API_VERSION >= 130000
typedef CUpti_ActivityKernel10 kernel_t;
#else
typedef CUpti_ActivityKernel9 kernel_t;
#endif
#if CUPTI_API_VERSION >= 28
typedef CUpti_ActivityMemcpy6 memcpy_t;
typedef CUpti_ActivityMemory4 memory_t;
typedef CUpti_ActivityOverhead3 overhead_t;
typedef CUpti_ActivityUnifiedMemoryCounter3 unified_t;
typedef CUpti_ActivitySynchronization2 sync_t;
typedef CUpti_ActivityGraphTrace2 graph_t;
#else // of 12.x before: those that are in all of its headers
typedef CUpti_ActivityMemcpy5 memcpy_t;
typedef CUpti_ActivityMemory3 memory_t;
typedef CUpti_ActivityOverhead overhead_t;
typedef CUpti_ActivityUnifiedMemoryCounter2 unified_t;
typedef CUpti_ActivitySynchronization sync_t;
typedef CUpti_ActivityGraphTrace graph_t;
#endif

#define AT(theirs, field, ours, own)                                                               \
    _Static_assert(offsetof(theirs, field) == offsetof(struct ours, own) &&                        \
                       sizeof(((theirs *)0)->field) <= sizeof(((struct ours *)0)->own),            \
                   #theirs "." #field)
#define IS(theirs, own) _Static_assert((int)(theirs) == (int)(own), #theirs)

AT(kernel_t, kind, cu_kernel, kind);
AT(kernel_t, registersPerThread, cu_kernel, registers);
AT(kernel_t, start, cu_kernel, start);
AT(kernel_t, end, cu_kernel, end);
AT(kernel_t, deviceId, cu_kernel, device);
AT(kernel_t, contextId, cu_kernel, context);
AT(kernel_t, streamId, cu_kernel, stream);
AT(kernel_t, gridX, cu_kernel, grid);
AT(kernel_t, blockX, cu_kernel, block);
AT(kernel_t, staticSharedMemory, cu_kernel, static_shared);
AT(kernel_t, dynamicSharedMemory, cu_kernel, dynamic_shared);
AT(kernel_t, correlationId, cu_kernel, correlation);
AT(kernel_t, name, cu_kernel, name);
AT(kernel_t, graphNodeId, cu_kernel, graph_node);
AT(kernel_t, graphId, cu_kernel, graph);
AT(memcpy_t, copyKind, cu_memcpy, copy_kind);
AT(memcpy_t, dstKind, cu_memcpy, destination_kind);
AT(memcpy_t, flags, cu_memcpy, flags);
AT(memcpy_t, bytes, cu_memcpy, bytes);
AT(memcpy_t, start, cu_memcpy, start);
AT(memcpy_t, deviceId, cu_memcpy, device);
AT(memcpy_t, streamId, cu_memcpy, stream);
AT(memcpy_t, correlationId, cu_memcpy, correlation);
AT(memcpy_t, graphNodeId, cu_memcpy, graph_node);
AT(memcpy_t, graphId, cu_memcpy, graph);
AT(CUpti_ActivityMemcpyPtoP4, bytes, cu_memcpy_peer, bytes);
AT(CUpti_ActivityMemcpyPtoP4, streamId, cu_memcpy_peer, stream);
AT(CUpti_ActivityMemcpyPtoP4, srcDeviceId, cu_memcpy_peer, source_device);
AT(CUpti_ActivityMemcpyPtoP4, dstDeviceId, cu_memcpy_peer, destination_device);
AT(CUpti_ActivityMemcpyPtoP4, correlationId, cu_memcpy_peer, correlation);
AT(CUpti_ActivityMemcpyPtoP4, graphNodeId, cu_memcpy_peer, graph_node);
AT(CUpti_ActivityMemcpyPtoP4, graphId, cu_memcpy_peer, graph);
AT(CUpti_ActivityMemset4, bytes, cu_memset, bytes);
AT(CUpti_ActivityMemset4, streamId, cu_memset, stream);
AT(CUpti_ActivityMemset4, correlationId, cu_memset, correlation);
AT(CUpti_ActivityMemset4, flags, cu_memset, flags);
AT(CUpti_ActivityMemset4, memoryKind, cu_memset, memory_kind);
AT(CUpti_ActivityMemset4, graphNodeId, cu_memset, graph_node);
AT(CUpti_ActivityMemset4, graphId, cu_memset, graph);
AT(CUpti_ActivityAPI, cbid, cu_api, callback);
AT(CUpti_ActivityAPI, start, cu_api, start);
AT(CUpti_ActivityAPI, threadId, cu_api, thread);
AT(CUpti_ActivityAPI, correlationId, cu_api, correlation);
AT(CUpti_ActivityMarker2, flags, cu_marker, flags);
AT(CUpti_ActivityMarker2, timestamp, cu_marker, time);
AT(CUpti_ActivityMarker2, id, cu_marker, id);
AT(CUpti_ActivityMarker2, objectKind, cu_marker, object_kind);
AT(CUpti_ActivityMarker2, objectId, cu_marker, object);
AT(CUpti_ActivityMarker2, name, cu_marker, name);
AT(CUpti_ActivityMarker2, domain, cu_marker, domain);
AT(overhead_t, overheadKind, cu_overhead, overhead);
AT(overhead_t, objectKind, cu_overhead, object_kind);
AT(overhead_t, objectId, cu_overhead, object);
AT(overhead_t, start, cu_overhead, start);
AT(overhead_t, end, cu_overhead, end);
AT(unified_t, counterKind, cu_unified, counter);
AT(unified_t, value, cu_unified, value);
AT(unified_t, start, cu_unified, start);
AT(unified_t, address, cu_unified, address);
AT(unified_t, srcId, cu_unified, source);
AT(unified_t, dstId, cu_unified, destination);
AT(unified_t, flags, cu_unified, flags);
AT(sync_t, type, cu_sync, type);
AT(sync_t, start, cu_sync, start);
AT(sync_t, correlationId, cu_sync, correlation);
AT(sync_t, contextId, cu_sync, context);
AT(sync_t, streamId, cu_sync, stream);
AT(memory_t, memoryOperationType, cu_memory, operation);
AT(memory_t, memoryKind, cu_memory, memory_kind);
AT(memory_t, correlationId, cu_memory, correlation);
AT(memory_t, address, cu_memory, address);
AT(memory_t, bytes, cu_memory, bytes);
AT(memory_t, timestamp, cu_memory, time);
AT(memory_t, deviceId, cu_memory, device);
AT(memory_t, contextId, cu_memory, context);
AT(memory_t, streamId, cu_memory, stream);
AT(graph_t, correlationId, cu_graph, correlation);
AT(graph_t, start, cu_graph, start);
AT(graph_t, deviceId, cu_graph, device);
AT(graph_t, graphId, cu_graph, graph);
AT(graph_t, contextId, cu_graph, context);
AT(graph_t, streamId, cu_graph, stream);

IS(CUPTI_ERROR_MAX_LIMIT_REACHED, CU_LIMIT_REACHED);
IS(CUPTI_ERROR_NOT_INITIALIZED, CU_NOT_INITIALIZED);
IS(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, CU_NO_PRIVILEGES);
IS(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, CU_MANY_SUBSCRIBERS);
IS(CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES, CU_NO_PRIVILEGES_VIRTUAL);
IS(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED, CU_FLUSH_FORCED);
IS(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM, CU_THREAD_ID_SYSTEM);
IS(CUPTI_CB_DOMAIN_DRIVER_API, CU_DOMAIN_DRIVER);
IS(CUPTI_CB_DOMAIN_RUNTIME_API, CU_DOMAIN_RUNTIME);
IS(CUPTI_ACTIVITY_KIND_MEMCPY, CU_MEMCPY);
IS(CUPTI_ACTIVITY_KIND_MEMSET, CU_MEMSET);
IS(CUPTI_ACTIVITY_KIND_KERNEL, CU_KERNEL);
IS(CUPTI_ACTIVITY_KIND_DRIVER, CU_DRIVER);
IS(CUPTI_ACTIVITY_KIND_RUNTIME, CU_RUNTIME);
IS(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CU_CONCURRENT_KERNEL);
IS(CUPTI_ACTIVITY_KIND_MARKER, CU_MARKER);
IS(CUPTI_ACTIVITY_KIND_OVERHEAD, CU_OVERHEAD);
IS(CUPTI_ACTIVITY_KIND_MEMCPY2, CU_MEMCPY2);
IS(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER, CU_UNIFIED);
IS(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, CU_SYNC);
IS(CUPTI_ACTIVITY_KIND_MEMORY2, CU_MEMORY2);
IS(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, CU_GRAPH_TRACE);
IS(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, CU_CLOCK_KHZ);
IS(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, CU_CORES);
IS(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, CU_MEMORY_CLOCK_KHZ);
IS(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, CU_MEMORY_BUS_BITS);
IS(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, CU_THREADS_PER_BLOCK);
IS(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, CU_SHARED_PER_BLOCK);
IS(CU_DEVICE_ATTRIBUTE_WARP_SIZE, CU_WARP);
IS(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, CU_REGISTERS_PER_BLOCK);
IS(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, CU_THREADS_PER_CORE);
IS(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, CU_MAJOR);
IS(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, CU_MINOR);
IS(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, CU_SHARED_PER_CORE);
IS(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, CU_REGISTERS_PER_CORE);
IS(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, CU_SHARED_PER_BLOCK_OPTIN);
IS(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, CU_BLOCKS_PER_CORE);
IS(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, CU_SHARED_RESERVED_PER_BLOCK);
AT(CUpti_ActivityUnifiedMemoryCounterConfig, kind, cu_unified_config, counter);
AT(CUpti_ActivityUnifiedMemoryCounterConfig, enable, cu_unified_config, enable);

int main(void) {
    return 0;
}
