// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <string.h>

#include "agent/inject/inject.h"

#define CUDA_FUNCTIONS(X)                                                                          \
    X(cuDeviceGetCount, (int *))                                                                   \
    X(cuDeviceGet, (int *, int))                                                                   \
    X(cuDeviceGetName, (char *, int, int))                                                         \
    X(cuDeviceGetUuid, (void *, int))                                                              \
    X(cuDeviceTotalMem_v2, (size_t *, int))                                                        \
    X(cuDeviceGetAttribute, (int *, int, int))
#define CUDA_MEMBER(name, args) int(*name) args;
struct cuda {
    CUDA_FUNCTIONS(CUDA_MEMBER)
};

static bool load(void *handle, struct cuda *cu) {
#define CUDA_SYMBOL(name, args) {#name, offsetof(struct cuda, name)},
    static const struct cu_symbol all[] = {CUDA_FUNCTIONS(CUDA_SYMBOL)};
    return !inject_load_symbols(handle, all, sizeof all / sizeof all[0], cu);
}

static int32_t attribute(const struct cuda *cu, int device, int which) {
    int v = -1;
    return cu->cuDeviceGetAttribute(&v, which, device) == CU_OK ? v : -1;
}

static void send_device(struct out *o, const struct cuda *cu, int ordinal) {
    int d;
    char name[256] = "";
    size_t total = 0;
    if (cu->cuDeviceGet(&d, ordinal) != CU_OK) return;
    struct xpl_record_device r = {
        .ordinal = (uint32_t)ordinal,
        .clock_khz = attribute(cu, d, CU_CLOCK_KHZ),
        .cores = attribute(cu, d, CU_CORES),
        .memory_clock_khz = attribute(cu, d, CU_MEMORY_CLOCK_KHZ),
        .memory_bus_bits = attribute(cu, d, CU_MEMORY_BUS_BITS),
        .major = attribute(cu, d, CU_MAJOR),
        .minor = attribute(cu, d, CU_MINOR),
        .threads_per_block = attribute(cu, d, CU_THREADS_PER_BLOCK),
        .threads_per_core = attribute(cu, d, CU_THREADS_PER_CORE),
        .registers_per_block = attribute(cu, d, CU_REGISTERS_PER_BLOCK),
        .registers_per_core = attribute(cu, d, CU_REGISTERS_PER_CORE),
        .warp = attribute(cu, d, CU_WARP),
        .shared_per_block = attribute(cu, d, CU_SHARED_PER_BLOCK),
        .shared_per_core = attribute(cu, d, CU_SHARED_PER_CORE),
        .shared_per_block_optin = attribute(cu, d, CU_SHARED_PER_BLOCK_OPTIN),
        .blocks_per_core = attribute(cu, d, CU_BLOCKS_PER_CORE),
        .shared_reserved_per_block = attribute(cu, d, CU_SHARED_RESERVED_PER_BLOCK),
    };
    if (cu->cuDeviceTotalMem_v2(&total, d) == CU_OK) r.memory_bytes = total;
    if (cu->cuDeviceGetUuid(r.uuid, d) != CU_OK) memset(r.uuid, 0, sizeof r.uuid);
    if (cu->cuDeviceGetName(name, sizeof name, d) != CU_OK) name[0] = 0;
    r.text_len = (uint32_t)strnlen(name, sizeof name);
    inject_out_record(o, XPL_RECORD_DEVICE, &r, sizeof r, name, r.text_len);
}

void inject_send_devices(struct out *o, void *handle) {
    struct cuda cu;
    int n = 0;
    if (!load(handle, &cu) || cu.cuDeviceGetCount(&n) != CU_OK) return;
    for (int i = 0; i < n && i < 256; i++)
        send_device(o, &cu, i);
}
