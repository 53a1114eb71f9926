// SPDX-License-Identifier: Apache-2.0
// The records that libxplaned-agent.so streams to xplaned-agent over its Unix socket, and the
// commands that go the other way.  Version 1.
//
// A process serves one connection at a time; another one waits for its HELLO, and after it the
// START must come within ten seconds.
//
// A stream is a HELLO, then, after a START command, the records, and an END. Every record is a
// header and a body: `size` counts both and is a multiple of 8, integers are little-endian (CUDA
// runs on nothing else), and texts follow the body's fixed part, with zeros up to the size.  A
// reader skips kinds that it does not know and reads only the part of a body that it knows, so that
// kinds and fields (at the end of the fixed part, before no text) may be added; anything else needs
// a new version.  A stream that stops without an END is that of a process that died.
//
// Times are CUPTI's nanoseconds; CLOCK records, at the start and the end of a capture, have
// CLOCK_REALTIME at such a time.  Names are sent once, in a NAME record before their first use, and
// referred to by number; 0 means no name.  Kinds, flags and types inside the bodies (copy kinds,
// memory kinds, ...) are CUPTI's numbers.
//
// This header is shared with the part that runs in CUDA programs: libc only.
#ifndef XPL_AGENT_RECORD_H_
#define XPL_AGENT_RECORD_H_

#include <stdint.h>

enum {
    XPL_RECORD_VERSION = 1,
    XPL_RECORD_MAGIC = 0x41505821, // "!XPA"
    XPL_RECORD_MAX = 64 << 10,     // bytes of one record
    XPL_RECORD_NAME_MAX = 16 << 10 // bytes of one name; longer ones are cut
};

struct xpl_record {
    uint16_t kind; // enum xpl_record_kind
    uint16_t reserved;
    uint32_t size;
};

enum xpl_record_kind {
    XPL_RECORD_HELLO = 1,
    XPL_RECORD_NAME = 2,
    XPL_RECORD_DEVICE = 3,
    XPL_RECORD_CLOCK = 4,
    XPL_RECORD_STARTED = 5, // no body: recording has begun
    XPL_RECORD_KERNEL = 6,
    XPL_RECORD_MEMCPY = 7,
    XPL_RECORD_MEMSET = 8,
    XPL_RECORD_API = 9,
    XPL_RECORD_SYNC = 10,
    XPL_RECORD_GRAPH = 11,
    XPL_RECORD_UNIFIED = 12,
    XPL_RECORD_MARKER = 13,
    XPL_RECORD_MEMORY = 14,
    XPL_RECORD_OVERHEAD = 15,
    XPL_RECORD_DROPPED = 16,
    XPL_RECORD_END = 17,
};

enum xpl_record_state {
    XPL_AGENT_READY = 0,   // CUDA is in use: a capture may begin
    XPL_AGENT_NO_CUDA = 1, // the process has not loaded CUDA (yet)
};

struct xpl_record_hello {
    struct xpl_record head;
    uint32_t magic;
    uint16_t version, state; // enum xpl_record_state
    uint32_t pid, text_len;  // text: the program's name
};

struct xpl_record_name {
    struct xpl_record head;
    uint32_t id, text_len;
};

// Attributes of CUDA's driver API; -1 where it gave none.
struct xpl_record_device {
    struct xpl_record head;
    uint32_t ordinal, text_len; // text: the device's name
    uint8_t uuid[16];
    uint64_t memory_bytes;
    int32_t clock_khz, cores, memory_clock_khz, memory_bus_bits, major, minor;
    int32_t threads_per_block, threads_per_core, registers_per_block, registers_per_core, warp;
    int32_t shared_per_block, shared_per_core, shared_per_block_optin, blocks_per_core;
    int32_t shared_reserved_per_block;
};

struct xpl_record_clock {
    struct xpl_record head;
    uint64_t cupti_ns, real_ns, uncertainty_ns;
};

struct xpl_record_kernel {
    struct xpl_record head;
    uint64_t start_ns, end_ns;
    uint32_t device, context, stream, correlation;
    uint32_t name, registers;
    uint32_t grid[3], block[3];
    uint32_t static_shared, dynamic_shared;
    uint32_t graph, reserved;
    uint64_t graph_node;
};

struct xpl_record_memcpy {
    struct xpl_record head;
    uint64_t start_ns, end_ns, bytes;
    uint32_t device, context, stream, correlation;
    uint32_t destination, graph; // destination: the device copied to
    uint64_t graph_node;
    uint8_t copy_kind, source_kind, destination_kind, async;
    uint32_t reserved;
};

struct xpl_record_memset {
    struct xpl_record head;
    uint64_t start_ns, end_ns, bytes;
    uint32_t device, context, stream, correlation;
    uint32_t graph;
    uint16_t memory_kind, async;
    uint64_t graph_node;
};

struct xpl_record_api {
    struct xpl_record head;
    uint64_t start_ns, end_ns;
    uint32_t thread, correlation, name;
    uint16_t domain, reserved; // CUPTI's callback domain: 1 driver, 2 runtime
};

struct xpl_record_sync {
    struct xpl_record head;
    uint64_t start_ns, end_ns;
    uint32_t type, correlation, context, stream;
};

struct xpl_record_graph {
    struct xpl_record head;
    uint64_t start_ns, end_ns;
    uint32_t device, context, stream, correlation;
    uint32_t graph, reserved;
};

struct xpl_record_unified {
    struct xpl_record head;
    uint64_t start_ns, end_ns, value, address;
    uint32_t counter, source, destination, flags;
};

struct xpl_record_marker {
    struct xpl_record head;
    uint64_t time_ns;
    uint32_t id, flags, object_kind, thread;
    uint32_t name, domain;
};

struct xpl_record_memory {
    struct xpl_record head;
    uint64_t time_ns, address, bytes;
    uint32_t operation, memory_kind, device, context, stream, correlation;
};

struct xpl_record_overhead {
    struct xpl_record head;
    uint64_t start_ns, end_ns;
    uint32_t overhead, object_kind, thread, device, stream, reserved;
};

enum xpl_record_drop {
    XPL_DROP_BUFFERS = 1, // all buffers were full: the records came faster than they were read
    XPL_DROP_NAMES = 2,   // the table of names was full: the record came without its name
};
struct xpl_record_dropped {
    struct xpl_record head;
    uint64_t count;
    uint32_t cause, reserved;
};

struct xpl_record_end {
    struct xpl_record head;
    uint32_t failed, text_len; // text: the reason of a failed or shortened capture, one sentence
};

// ---- to the library ----

enum xpl_agent_operation { XPL_AGENT_START = 1, XPL_AGENT_STOP = 2 };

// Options of a START; everything else is always recorded.
enum xpl_agent_option {
    XPL_AGENT_DRIVER_API = 1,
    XPL_AGENT_RUNTIME_API = 2,
    XPL_AGENT_NVTX = 4,
    XPL_AGENT_UNIFIED = 8,
    XPL_AGENT_OVERHEAD = 16,
    XPL_AGENT_GRAPH_NODES = 32, // the nodes of CUDA graphs one by one, not each graph as a whole
};

struct xpl_agent_command {
    uint32_t magic;
    uint16_t version, operation;
    uint32_t options; // enum xpl_agent_option
    uint32_t buffers; // of XPL_AGENT_BUFFER_BYTES each, 2 to XPL_AGENT_BUFFERS_MAX; 0: 16
};
enum { XPL_AGENT_BUFFER_BYTES = 4 << 20, XPL_AGENT_BUFFERS_MAX = 64, XPL_AGENT_BUFFERS = 16 };

#endif
