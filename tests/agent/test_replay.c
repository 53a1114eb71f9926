// SPDX-License-Identifier: Apache-2.0
// Recorded streams of two programs (tests/data/agent, written by libxplaned-agent.so) become the
// XSpace that is a golden case: what the real XProf says of it is checked there.
//   test_replay XSPACE RECORDS...          compares
//   test_replay --write XSPACE RECORDS...  writes it anew
#include <string.h>

#include "agent/occupancy.h"
#include "agent/xspace_writer.h"
#include "analysis/wire/wire.h"
#include "tests/check.h"

static struct xpl_buf slurp(const char *path) {
    struct xpl_buf b = xpl_buf_of(64 << 20);
    FILE *const f = fopen(path, "rb");
    CHECK(f);
    for (size_t n = 1; n; b.n += n) {
        CHECK(xpl_buf_room(&b, 65536));
        n = fread(b.p + b.n, 1, 65536, f);
    }
    (void)fclose(f);
    return b;
}

static struct xpl_buf convert(const struct xpl_agent_process *p, size_t n,
                              struct xpl_agent_result *ret) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(256 << 20);
    struct xpl_buf out = xpl_buf_of(64 << 20);
    CHECK_EQ(xpl_agent_write_xspace(p, n, XPL_STR("gpuhost"), &a, &out, ret, NULL), XPL_OK);
    return out;
}

// Any beginning of a stream gives an XSpace that parses, and never more events than the whole.
static void check_prefixes(const struct xpl_buf *records) {
    struct xpl_agent_process p = {{records->p, records->n}, {0}};
    struct xpl_agent_result whole, part;
    struct xpl_buf out = convert(&p, 1, &whole);
    CHECK(whole.device_events && whole.host_events && !whole.dropped);
    xpl_buf_fini(&out);
    for (size_t n = 0; n < records->n; n += n < 2000 ? 1 : 997) {
        p.records.len = n;
        out = convert(&p, 1, &part);
        struct xpl_wire w = xpl_wire_begin((xpl_bytes_t){out.p, out.n});
        struct xpl_field f;
        enum xpl_wire_result r;
        while ((r = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD)
            continue;
        CHECK(r == XPL_WIRE_END);
        CHECK(part.device_events <= whole.device_events);
        CHECK(part.host_events <= whole.host_events);
        xpl_buf_fini(&out);
    }
}

// A memory limit is an error, not a shorter XSpace.
static void check_limits(const struct xpl_buf *records) {
    const struct xpl_agent_process p = {{records->p, records->n}, {0}};
    struct xpl_agent_result result;
    for (size_t limit = 1 << 12; limit < 1 << 18; limit *= 4) {
        struct xpl_arena a = xpl_arena_of(limit == 1 << 12 ? 64 << 20 : limit);
        struct xpl_buf out = xpl_buf_of(limit == 1 << 12 ? 1000 : 64 << 20);
        CHECK_EQ(xpl_agent_write_xspace(&p, 1, XPL_STR("h"), &a, &out, &result, NULL),
                 XPL_RESOURCE_EXHAUSTED);
        xpl_buf_fini(&out);
        xpl_arena_fini(&a);
    }
}

// As cuda_occupancy.h has it for these, compute capability 8.0.
static void check_occupancy(void) {
    static const struct {
        uint32_t block, registers, shared;
        double percent;
        int32_t grid, best;
    } rows[] = {{256, 32, 4096, 100, 216, 1024},  {256, 64, 0, 50, 108, 1024},
                {1024, 255, 0, 0, 108, 256},      {128, 32, 49000, 18.75, 216, 1024},
                {1, 8, 0, 1.5625, 216, 1024},     {2048, 32, 0, 0, 216, 1024},
                {512, 40, 166000, 25, 108, 1024}, {512, 40, 170000, 0, 0, 0}};
    const struct xpl_record_device a100 = {.cores = 108,
                                           .major = 8,
                                           .threads_per_block = 1024,
                                           .threads_per_core = 2048,
                                           .registers_per_block = 65536,
                                           .registers_per_core = 65536,
                                           .warp = 32,
                                           .shared_per_block = 49152,
                                           .shared_per_core = 167936,
                                           .shared_per_block_optin = 166912,
                                           .blocks_per_core = 32,
                                           .shared_reserved_per_block = 1024};
    const struct xpl_record_device unknown = {.cores = -1};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct xpl_occupancy o =
            xpl_occupancy(&a100, rows[i].block, rows[i].registers, 0, rows[i].shared);
        CHECK(o.percent <= rows[i].percent && o.percent >= rows[i].percent);
        CHECK_EQ(o.grid_min, rows[i].grid);
        CHECK_EQ(o.block_best, rows[i].best);
    }
    CHECK(xpl_occupancy(&unknown, 256, 32, 0, 0).percent <= 0);
    struct xpl_record_device thin = a100; // each kernel would try 1,024 sizes of blocks
    thin.warp = 1;
    CHECK(xpl_occupancy(&thin, 256, 32, 0, 0).percent <= 0);
}

static void put_record(struct xpl_buf *b, uint16_t kind, void *record, size_t size,
                       xpl_str_t text) {
    struct xpl_record *const head = record;
    *head = (struct xpl_record){.kind = kind, .size = (uint32_t)((size + text.len + 7) & ~7u)};
    xpl_buf_put(b, record, size);
    xpl_buf_put(b, text.ptr, text.len);
    for (size_t n = size + text.len; n < head->size; n++)
        xpl_buf_putc(b, 0);
}

// Ranges with one long name: the name is there once, not once for each.
static void check_long_ranges(void) {
    enum { RANGES = 20000 };
    static char text[XPL_RECORD_NAME_MAX];
    struct xpl_buf b = xpl_buf_of(64 << 20);
    struct xpl_record_clock clock = {.cupti_ns = 1, .real_ns = 1};
    struct xpl_record_name name = {.id = 1, .text_len = sizeof text};
    struct xpl_agent_result result;
    memset(text, 'n', sizeof text);
    put_record(&b, XPL_RECORD_CLOCK, &clock, sizeof clock, (xpl_str_t){0});
    put_record(&b, XPL_RECORD_NAME, &name, sizeof name, (xpl_str_t){text, sizeof text});
    for (uint32_t i = 0; i < RANGES; i++) {
        struct xpl_record_marker m = {
            .time_ns = 2 + i, .id = i, .flags = 2, .object_kind = 2, .name = 1};
        put_record(&b, XPL_RECORD_MARKER, &m, sizeof m, (xpl_str_t){0});
    }
    const struct xpl_agent_process p = {{b.p, b.n}, {0}};
    struct xpl_buf out = convert(&p, 1, &result);
    CHECK_EQ(result.host_events, RANGES);
    CHECK(out.n < 4 << 20);
    xpl_buf_fini(&out);
    xpl_buf_fini(&b);
}

static size_t count_texts(const struct xpl_buf *b, const char *text) {
    size_t n = 0;
    for (size_t at = 0; at + strlen(text) <= b->n; at++)
        n += memcmp(b->p + at, text, strlen(text)) == 0;
    return n;
}

// Processes that claim more GPUs than a machine has, each of them another one.
static void check_many_devices(void) {
    enum { PROCESSES = 3, DEVICES = 256 };
    struct xpl_buf b[PROCESSES];
    struct xpl_agent_process p[PROCESSES] = {0};
    struct xpl_agent_result result;
    for (uint32_t i = 0; i < PROCESSES; i++) {
        b[i] = xpl_buf_of(1 << 20);
        struct xpl_record_clock clock = {.cupti_ns = 1, .real_ns = 1};
        put_record(&b[i], XPL_RECORD_CLOCK, &clock, sizeof clock, (xpl_str_t){0});
        for (uint32_t k = 0; k < DEVICES; k++) {
            struct xpl_record_device d = {.ordinal = k, .uuid = {1, (uint8_t)i, (uint8_t)k}};
            put_record(&b[i], XPL_RECORD_DEVICE, &d, sizeof d, (xpl_str_t){0});
        }
        p[i].records = (xpl_bytes_t){b[i].p, b[i].n};
    }
    struct xpl_buf out = convert(p, PROCESSES, &result);
    CHECK_EQ(count_texts(&out, "/device:GPU:"), DEVICES);
    CHECK_EQ(count_texts(&out, "sent invalid records"), PROCESSES - 1);
    xpl_buf_fini(&out);
    for (size_t i = 0; i < PROCESSES; i++)
        xpl_buf_fini(&b[i]);
}

int main(int argc, char **argv) {
    const int write = argc > 1 && strcmp(argv[1], "--write") == 0;
    struct xpl_agent_process p[4] = {0};
    struct xpl_buf records[4];
    struct xpl_agent_result result;
    size_t n = 0;
    CHECK(argc > 2 + write);
    for (int i = 2 + write; i < argc && n < 4; i++, n++) {
        records[n] = slurp(argv[i]);
        p[n].records = (xpl_bytes_t){records[n].p, records[n].n};
    }
    struct xpl_buf out = convert(p, n, &result);
    if (write) {
        FILE *const f = fopen(argv[2], "wb");
        CHECK(f && fwrite(out.p, 1, out.n, f) == out.n);
        CHECK_EQ(fclose(f), 0);
    } else {
        struct xpl_buf expected = slurp(argv[1]);
        CHECK_EQ(out.n, expected.n);
        CHECK(memcmp(out.p, expected.p, expected.n) == 0);
        xpl_buf_fini(&expected);
        check_occupancy();
        check_prefixes(&records[0]);
        check_limits(&records[0]);
        check_long_ranges();
        check_many_devices();
    }
    xpl_buf_fini(&out);
    for (size_t i = 0; i < n; i++)
        xpl_buf_fini(&records[i]);
    return 0;
}
