// SPDX-License-Identifier: Apache-2.0
// A driver library and a CUPTI without a GPU, for tests: the program's calls become CUPTI's records
// (agent/inject/cupti_abi.h, checked against NVIDIA's headers by cupti_layout.c), which go through
// CUPTI's own interface, buffers and callbacks included.
#ifndef XPL_TESTS_AGENT_FAKE_FAKE_H_
#define XPL_TESTS_AGENT_FAKE_FAKE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// ---- libcuda.so.1 ----

int cuInit(unsigned flags); // loads CUDA_INJECTION64_PATH, as the real one does
int cuDriverGetVersion(int *ret);
int cuDeviceGetCount(int *ret);
int cuDeviceGet(int *ret, int ordinal);
int cuDeviceGetName(char *ret, int size, int device);
int cuDeviceGetUuid(void *ret, int device);
int cuDeviceTotalMem_v2(size_t *ret, int device);
int cuDeviceGetAttribute(int *ret, int which, int device);
// CUPTI takes the records from here; NULL: no more.
typedef void (*fake_sink_fn)(const void *record, size_t size);
void fake_cuda_set_sink(fake_sink_fn sink);
bool fake_cuda_is_traced(void);
// What the program does; each a few records.
void fake_kernel(const char *name, uint32_t device, uint32_t stream);
void fake_memcpy(uint32_t stream, uint64_t bytes);
void fake_memset(uint32_t stream, uint64_t bytes);
void fake_malloc(uint64_t address, uint64_t bytes, bool release);
void fake_graph(uint32_t stream, uint32_t graph);
void fake_sync(uint32_t stream);
void fake_range(const char *name, bool begin);
void fake_page_fault(void);

#endif
