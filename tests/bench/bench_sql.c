// SPDX-License-Identifier: Apache-2.0
// Statements over a profile compared with SQLite on an ordinary table of the same rows, and over a
// window of it; timings by name compared with the walk. Usage: bench_sql [FILE]; without one, ten
// million events. Prints ratios of the best of three, and processor time for short runs: on a busy
// machine their wall time says little.
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "analysis/events/events.h"
#include "base/arena.h"
#include "base/clock.h"
#include "sql/sql.h"
#include "tests/check.h"
#include "tests/xspace_maker.h"

enum { EVENTS = 10000000, LINES = 20, NAMES = 200, ROUNDS = 3 };

static xpl_bytes_t profile;
static struct xpl_exec *exec;
static struct xpl_sql_cache *cache;

static xpl_bytes_t make(void) {
    struct xpl_buf space = xpl_buf_of((size_t)4 << 30);
    struct mk_plane p = mk_plane(0, "/device:GPU:0");
    xpl_buf_fini(&p.body);
    xpl_buf_init(&p.body, (size_t)2 << 30);
    mk_text(&p.body, 2, "/device:GPU:0");
    static char names[NAMES][64];
    for (uint32_t i = 0; i < NAMES; i++)
        (void)snprintf(names[i], sizeof names[i], "loop_multiply_fusion.%u", i);
    for (int k = 0; k < LINES; k++) {
        struct xpl_buf line = mk_line(k, "stream");
        line.max = (size_t)1 << 30;
        for (uint32_t i = 0; i < EVENTS / LINES; i++)
            mk_plain(&p, &line, names[(i * 2654435761u >> 8) % NAMES], (int64_t)i * 1000000,
                     500000 + i % 1000);
        mk_line_end(&p, &line);
    }
    mk_plane_end(&p, &space);
    CHECK(!space.failed);
    return (xpl_bytes_t){space.p, space.n};
}

static xpl_status_t open_profile(void *arg, size_t i, struct xpl_exec *unused, void **ret_file,
                                 xpl_bytes_t *ret, struct xpl_error *err) {
    (void)arg, (void)i, (void)unused, (void)err;
    *ret_file = NULL;
    *ret = profile;
    return XPL_OK;
}

static void close_profile(void *file) {
    (void)file;
}

static double processor_s(void) {
    struct timespec t;
    CHECK_EQ(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t), 0);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

// The best of several, on the wall; *ret_cpu: the least processor time of all threads, or NULL.
static double seconds_of(void (*work)(void), double *ret_cpu) {
    double best = 1e9, least = 1e9;
    for (int i = 0; i < ROUNDS; i++) {
        const double before = processor_s();
        const uint64_t begin = xpl_clock_ns();
        work();
        const double s = (double)xpl_clock_between(begin, xpl_clock_ns()) / 1e9;
        const double cpu = processor_s() - before;
        if (s < best) best = s;
        if (cpu < least) least = cpu;
    }
    if (ret_cpu) *ret_cpu = least;
    return best;
}

static void ask(const char *statement) {
    static const struct xpl_sql_profile row = {
        .session = {"run", 3}, .host = {"h", 1}, .path = "h", .key = {"k", 1}};
    struct xpl_sql_request q = {
        .statement = xpl_str_from(statement),
        .source = {.profiles = &row, .n = 1, .open = open_profile, .close = close_profile},
        .limits = xpl_sql_default_limits,
        .cache = cache,
        .exec = exec,
        .limit = (size_t)8 << 30};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(1 << 28);
    struct xpl_error err = {0};
    q.limits.time_ms = 600000;
    q.limits.memory = (uint64_t)16 << 30;
    CHECK_OK(xpl_sql_run(&q, &out, &err), &err);
}

static void by_name(void) {
    ask("SELECT name, count(*) FROM events GROUP BY name");
}
static void sums_by_name(void) {
    ask("SELECT name, sum(duration_ps) FROM events GROUP BY name");
}
static void window(void) {
    ask("SELECT name, start_ps FROM events WHERE start_ps BETWEEN 250000000000 AND 250499999999");
}

static sqlite3 *ordinary;
static void run_ordinary(const char *statement) {
    CHECK_EQ(sqlite3_exec(ordinary, statement, NULL, NULL, NULL), SQLITE_OK);
}
static void ordinary_by_name(void) {
    run_ordinary("SELECT name, count(*) FROM events GROUP BY name");
}
static void ordinary_sums(void) {
    run_ordinary("SELECT name, sum(duration_ps) FROM events GROUP BY name");
}

static uint64_t walked;
static void walk(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of((size_t)8 << 30);
    struct xpl_xspace *space;
    struct xpl_error err = {0};
    CHECK_OK(xpl_xspace_open(profile, &arena, exec, &space, &err), &err);
    for (uint32_t p = 0; p < space->n_planes; p++)
        for (uint32_t i = 0; i < space->planes[p].n_lines; i++) {
            struct xpl_event_cursor c = xpl_events_of(&space->planes[p].lines[i]);
            struct xpl_event ev;
            while (xpl_events_next(&c, &ev) == XPL_WIRE_FIELD)
                walked += (uint64_t)ev.duration_ps;
        }
}

static void timings(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of((size_t)8 << 30);
    struct xpl_xspace *space;
    struct xpl_error err = {0};
    struct xpl_timings_rows rows;
    const struct xpl_timings_rules rules = {.max_events = UINT64_MAX};
    CHECK_OK(xpl_xspace_open(profile, &arena, exec, &space, &err), &err);
    const struct xpl_xspace *const list[] = {space};
    CHECK_OK(xpl_timings_sum_up(list, 1, &rules, exec, &arena, &rows, &err), &err);
}

static xpl_bytes_t map(const char *path) {
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0 && fstat(fd, &st) == 0);
    void *const p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    CHECK(p != MAP_FAILED);
    (void)close(fd);
    return (xpl_bytes_t){p, (size_t)st.st_size};
}

// The rows of the profile in a table of SQLite's own.
static void fill_ordinary(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of((size_t)8 << 30);
    struct xpl_xspace *space;
    struct xpl_error err = {0};
    sqlite3_stmt *st;
    CHECK_OK(xpl_xspace_open(profile, &arena, exec, &space, &err), &err);
    CHECK_EQ(sqlite3_open(":memory:", &ordinary), SQLITE_OK);
    run_ordinary("PRAGMA temp_store=MEMORY; CREATE TABLE events(session TEXT, host TEXT, plane "
                 "TEXT, line TEXT, name TEXT, start_ps INTEGER, duration_ps INTEGER); BEGIN");
    CHECK_EQ(sqlite3_prepare_v2(ordinary, "INSERT INTO events VALUES ('run','h',?,?,?,?,?)", -1,
                                &st, NULL),
             SQLITE_OK);
    for (uint32_t p = 0; p < space->n_planes; p++)
        for (uint32_t i = 0; i < space->planes[p].n_lines; i++) {
            const struct xpl_line *const l = &space->planes[p].lines[i];
            struct xpl_event_cursor c;
            struct xpl_event ev;
            (void)sqlite3_bind_text(st, 1, l->plane->name.ptr, (int)l->plane->name.len, NULL);
            (void)sqlite3_bind_text(st, 2, l->name.ptr, (int)l->name.len, NULL);
            xpl_events_begin(&c, l);
            while (xpl_events_next(&c, &ev) == XPL_WIRE_FIELD) {
                const xpl_str_t name = xpl_event_get_md(l, &ev)->name;
                (void)sqlite3_bind_text(st, 3, name.ptr, (int)name.len, NULL);
                (void)sqlite3_bind_int64(st, 4, ev.offset_ps);
                (void)sqlite3_bind_int64(st, 5, ev.duration_ps);
                CHECK_EQ(sqlite3_step(st), SQLITE_DONE);
                (void)sqlite3_reset(st);
            }
        }
    (void)sqlite3_finalize(st);
    run_ordinary("COMMIT");
}

int main(int argc, char **argv) {
    struct xpl_exec serial = xpl_exec_serial();
    struct xpl_exec_pool *const pool = xpl_exec_pool_new(0);
    exec = pool ? xpl_exec_pool_get(pool) : &serial;
    profile = argc > 1 ? map(argv[1]) : make();
    fill_ordinary();
    cache = xpl_sql_cache_new(1, SIZE_MAX);
    double floor_cpu, timings_cpu, window_cpu;
    const double floor_s = seconds_of(walk, &floor_cpu),
                 timings_s = seconds_of(timings, &timings_cpu);
    const double theirs = seconds_of(ordinary_by_name, NULL), ours = seconds_of(by_name, NULL);
    const double their_sums = seconds_of(ordinary_sums, NULL),
                 our_sums = seconds_of(sums_by_name, NULL);
    const double window_s = seconds_of(window, &window_cpu);
    printf("count(*) by name: %.3f s, %.2f times an ordinary table\n", ours, ours / theirs);
    printf("sum by name: %.3f s, %.2f times an ordinary table\n", our_sums, our_sums / their_sums);
    printf("window of a thousandth: %.2f ms, processor %.2f ms\n", window_s * 1e3,
           window_cpu * 1e3);
    printf("events by name: %.3f s, %.2f times the walk; processor %.3f s, %.2f times\n", timings_s,
           timings_s / floor_s, timings_cpu, timings_cpu / floor_cpu);
    (void)sqlite3_close(ordinary);
    xpl_sql_cache_free(cache);
    xpl_exec_pool_free(pool);
    return walked ? 0 : 1;
}
