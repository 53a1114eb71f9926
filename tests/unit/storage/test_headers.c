// SPDX-License-Identifier: Apache-2.0
// One flipped bit anywhere in the header of cache.db or state.db: the daemon starts, and keeps
// results, captures and schedules, in that database or in a new one.
#include <time.h>

#include "storage/store/history.h"
#include "tests/unit/storage/store_helpers.h"

enum { HEADER = 100, BITS = 8 * HEADER };

static uint8_t *pristine;
static size_t pristine_len;

static void keep_copy(const char *name) {
    FILE *f = fopen(in_dir(name), "rb");
    CHECK(f && fseek(f, 0, SEEK_END) == 0);
    pristine_len = (size_t)ftell(f);
    rewind(f);
    pristine = malloc(pristine_len);
    CHECK(pristine && pristine_len > HEADER);
    CHECK_EQ(fread(pristine, 1, pristine_len, f), pristine_len);
    CHECK_EQ(fclose(f), 0);
}

// Two bits of every byte; all of them with $XPL_ALL_BITS set.
static bool is_skipped(int bit) {
    return !getenv("XPL_ALL_BITS") && bit % 8 != 0 && bit % 8 != 1 + bit / 8 % 7;
}

// The directory holds nothing but the database as it was closed, with one bit of it flipped.
static void restore(const char *name, int bit) {
    DIR *const d = opendir(store_dir);
    CHECK(d);
    for (const struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.') CHECK_EQ(unlinkat(dirfd(d), e->d_name, 0), 0);
    CHECK_EQ(closedir(d), 0);
    pristine[bit / 8] = (uint8_t)(pristine[bit / 8] ^ 1u << bit % 8);
    FILE *f = fopen(in_dir(name), "wb");
    CHECK(f && fwrite(pristine, 1, pristine_len, f) == pristine_len && fclose(f) == 0);
    pristine[bit / 8] = (uint8_t)(pristine[bit / 8] ^ 1u << bit % 8);
}

static void pause_ms(int ms) {
    const struct timespec t = {.tv_nsec = ms * 1000000L};
    (void)nanosleep(&t, NULL);
}

static bool can_keep(struct xpl_store *s) {
    return put_n(s, 7, 100, NULL) == XPL_OK && get_n(s, 7, 100);
}

static void test_cache(void) {
    new_dir();
    struct xpl_store *s = open_store(0);
    CHECK(can_keep(s));
    xpl_store_close(s);
    keep_copy("cache.db");
    for (int bit = 0; bit < BITS; bit++) {
        if (is_skipped(bit)) continue;
        restore("cache.db", bit);
        const struct xpl_store_options o = {.size = sizeof o, .dir = store_dir};
        struct xpl_error err = {0};
        if (xpl_store_open(&o, &s, &err) != XPL_OK) fprintf(stderr, "bit %d: %s\n", bit, err.msg);
        CHECK_EQ(err.code, XPL_OK);
        bool kept = false; // at once, or, when the damage shows later, in the new database
        for (int tries = 0; !kept && tries < 100; tries++) {
            kept = can_keep(s);
            if (!kept) pause_ms(20);
        }
        char notice[400];
        while (!kept && xpl_store_next_notice(s, notice, sizeof notice))
            fprintf(stderr, "bit %d: nothing is kept: %s\n", bit, notice);
        CHECK(kept);
        xpl_store_close(s);
    }
    free(pristine);
    remove_dir();
}

static bool can_note(struct xpl_history *h) {
    const struct xpl_history_schedule s = {.request = {(const uint8_t *)"r", 1}};
    const struct xpl_history_capture c = {.id = 1, .session = XPL_STR("s"), .message = XPL_STR("")};
    uint64_t id;
    if (!xpl_history_is_on(h)) (void)xpl_history_try_again(h);
    return xpl_history_add_schedule(h, &s, &id, NULL) == XPL_OK &&
           xpl_history_put(h, &c, NULL) == XPL_OK && xpl_history_last_id(h) == 1;
}

static void test_state(void) {
    struct xpl_history *h = NULL;
    new_dir();
    CHECK_OK(xpl_history_open(store_dir, &h, NULL), NULL);
    CHECK(can_note(h));
    xpl_history_close(h);
    keep_copy("state.db");
    for (int bit = 0; bit < BITS; bit++) {
        if (is_skipped(bit)) continue;
        restore("state.db", bit);
        struct xpl_error err = {0};
        if (xpl_history_open(store_dir, &h, &err) != XPL_OK)
            fprintf(stderr, "bit %d: %s\n", bit, err.msg);
        CHECK_EQ(err.code, XPL_OK);
        bool noted = false;
        for (int tries = 0; !noted && tries < 3; tries++)
            noted = can_note(h);
        if (!noted) fprintf(stderr, "bit %d: nothing is noted\n", bit);
        CHECK(noted);
        CHECK_EQ(xpl_history_was_replaced(h), count_files("state.db.broken-") > 0);
        xpl_history_close(h);
    }
    free(pristine);
    remove_dir();
}

int main(void) {
    test_cache();
    test_state();
    return 0;
}
