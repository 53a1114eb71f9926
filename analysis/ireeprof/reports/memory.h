// SPDX-License-Identifier: Apache-2.0
// Private to analysis/ireeprof/reports/: balances of memory, of the reports memory and explain.
#ifndef XPL_ANALYSIS_IREEPROF_REPORTS_MEMORY_H_
#define XPL_ANALYSIS_IREEPROF_REPORTS_MEMORY_H_

#include "analysis/ireeprof/reader.h"
#include "analysis/ireeprof/reports/report.h"
#include "analysis/ireeprof/table.h"

struct xpl_iree_balance {
    uint64_t current_count, high_water_count, total_open_count, total_close_count;
    uint64_t partial_close_count; // closed more than was open
    uint64_t current_bytes, high_water_bytes, total_open_bytes, total_close_bytes;
    uint64_t partial_close_bytes;
};

// What balances are kept of, on each device; the first five are also kinds of lives.
enum xpl_iree_memory_kind {
    XPL_IREE_MEMORY_SLAB,
    XPL_IREE_MEMORY_POOL,
    XPL_IREE_MEMORY_QUEUE,
    XPL_IREE_MEMORY_BUFFER,
    XPL_IREE_MEMORY_IMPORT,
    XPL_IREE_MEMORY_MATERIALIZED,
    XPL_IREE_N_MEMORY_KINDS,
    XPL_IREE_N_LIVES = XPL_IREE_MEMORY_MATERIALIZED // kinds of lives
};
extern const char *const xpl_iree_memory_kind_names[XPL_IREE_N_LIVES];

struct xpl_iree_memory_device {
    uint64_t physical_device_ordinal; // the key
    uint64_t events, events_of[XPL_IREE_N_MEMORY_TYPES];
    struct xpl_iree_balance balances[XPL_IREE_N_MEMORY_KINDS];
};
struct xpl_iree_pool_key {
    uint64_t pool_id, memory_type;
    uint32_t kind, physical_device_ordinal;
};
struct xpl_iree_pool {
    struct xpl_iree_pool_key key;
    uint64_t buffer_usage, events, waits, materializes;
    struct xpl_iree_balance life, materialized;
    uint64_t stats; // samples of what follows
    uint64_t reserved, reserved_high, free, free_low, committed, committed_high, budget;
    uint32_t reservations, reservations_high, slabs, slabs_high;
};
struct xpl_iree_allocation_key {
    uint64_t allocation_id, pool_id;
    uint32_t kind, physical_device_ordinal;
};
// The balance of one allocation, of which there are many: as struct xpl_iree_balance, without what
// few have.  Counts are of events of 160 bytes each, so that 32 bits are enough.
struct xpl_iree_small_balance {
    uint32_t current_count, high_water_count, total_open_count, total_close_count;
    uint64_t current_bytes, high_water_bytes, total_open_bytes, total_close_bytes;
};
struct xpl_iree_allocation {
    struct xpl_iree_allocation_key key;
    uint32_t flags, first_queue, last_queue, events;
    uint64_t backing_id, memory_type, buffer_usage;
    uint64_t first_event_id, last_event_id, first_submission_id, last_submission_id;
    int64_t first_ns, last_ns;
    struct xpl_iree_small_balance life;
};
// What only reservations of pools have: waits, and what was materialized of them.
struct xpl_iree_reservation {
    struct xpl_iree_allocation_key key;
    uint32_t waits, materializes;
    struct xpl_iree_small_balance materialized;
};
// Closes of more than was open, which hardly any allocation has.
struct xpl_iree_partial {
    struct xpl_iree_allocation_key key;
    struct {
        uint64_t count, bytes;
    } life, materialized;
};

struct xpl_iree_memory {
    const struct xpl_iree_run *run;
    bool everything;                              // --filter and --id do not count (explain)
    struct xpl_iree_table devices, pools;         // struct xpl_iree_memory_device, xpl_iree_pool
    struct xpl_iree_table allocations;            // struct xpl_iree_allocation
    struct xpl_iree_table reservations, partials; // struct xpl_iree_reservation, xpl_iree_partial
    struct xpl_iree_table latest;                 // of an allocation id: its pool
    uint64_t total, matched, truncated_chunks, dropped, truncated_events;
    void (*on_match)(void *ctx, const struct xpl_iree_memory_event *e); // may be NULL
    void *ctx;
};
// everything: as in the struct; then nothing is kept but balances of devices.
void xpl_iree_memory_init(struct xpl_iree_memory *m, const struct xpl_iree_run *run,
                          bool everything);
void xpl_iree_memory_fini(struct xpl_iree_memory *m);
// Adds a chunk of memory events; other records are passed over.  RESOURCE_EXHAUSTED on OOM.
xpl_status_t xpl_iree_memory_add(struct xpl_iree_memory *m, const struct xpl_iree_record *r,
                                 struct xpl_error *err) XPL_NODISCARD;

// What an event does.
struct xpl_iree_memory_rule {
    uint8_t kind;       // of life
    int8_t life;        // 1: opens it, -1: closes it
    bool of_allocation; // it is one's even without XPL_IREE_MEMORY_RESERVATION
};
extern const struct xpl_iree_memory_rule xpl_iree_memory_rules[XPL_IREE_N_MEMORY_TYPES];

#endif
