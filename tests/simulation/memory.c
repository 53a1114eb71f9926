// SPDX-License-Identifier: Apache-2.0
// Memory that ends with a run: processes that are killed do not free theirs.
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"
#include "tests/simulation/scheduler.h"

void *__real_malloc(size_t n);
void *__real_realloc(void *p, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void __wrap_free(void *p);

enum { SLOTS = 1 << 16, CHUNK = 1 << 20 };
#define REMOVED ((void *)1)

struct chunk {
    struct chunk *next;
    size_t used, size;
    _Alignas(16) char bytes[];
};

static void *slots[SLOTS]; // what simulated threads have allocated
static size_t n_slots;     // also those removed
static struct chunk *chunks;

static size_t slot_of(const void *p) {
    return (size_t)((uintptr_t)p >> 4) * 0x9e3779b97f4a7c15u >> 48;
}

static void *note(void *p) {
    if (!p || !sim_thread()) return p;
    size_t i = slot_of(p);
    while (slots[i] && slots[i] != REMOVED)
        i = (i + 1) % SLOTS;
    n_slots += !slots[i];
    CHECK(n_slots < SLOTS / 4 * 3);
    slots[i] = p;
    return p;
}

static void forget(const void *p) {
    if (!p) return;
    for (size_t i = slot_of(p); slots[i]; i = (i + 1) % SLOTS) {
        if (slots[i] != p) continue;
        slots[i] = REMOVED;
        return;
    }
}

void *__wrap_malloc(size_t n) {
    return note(__real_malloc(n));
}

void *__wrap_calloc(size_t n, size_t size) {
    void *const p = __wrap_malloc(n * size + 1);
    return p ? memset(p, 0, n * size) : NULL;
}

void *__wrap_realloc(void *p, size_t n) {
    forget(p);
    return note(__real_realloc(p, n));
}

void __wrap_free(void *p) {
    forget(p);
    __real_free(p);
}

void *sim_alloc(size_t n) {
    n = (n + 15) / 16 * 16;
    if (!chunks || chunks->size - chunks->used < n) {
        const size_t size = n > CHUNK ? n : CHUNK;
        struct chunk *const c = __real_malloc(sizeof *c + size);
        CHECK(c);
        c->next = chunks;
        c->used = 0;
        c->size = size;
        chunks = c;
    }
    void *const ret = chunks->bytes + chunks->used;
    chunks->used += n;
    return memset(ret, 0, n);
}

void *sim_copy(const void *p, size_t n) {
    char *const ret = sim_alloc(n + 1);
    if (n) memcpy(ret, p, n);
    return ret;
}

void sim_free_all(void) {
    while (chunks && chunks->next) { // one stays for the next run
        struct chunk *const next = chunks->next;
        __real_free(chunks);
        chunks = next;
    }
    if (chunks) chunks->used = 0;
    for (size_t i = 0; n_slots && i < SLOTS; i++) {
        if (slots[i] && slots[i] != REMOVED) __real_free(slots[i]);
        slots[i] = NULL;
    }
    n_slots = 0;
}
