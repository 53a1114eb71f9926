// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "agent/inject/inject.h"

static void *map(size_t n) {
    void *const p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

bool inject_out_init(struct out *o, int fd) {
    *o = (struct out){.fd = fd, .bytes = map(OUT_BYTES)};
    o->names = map(NAME_SLOTS * sizeof *o->names);
    if (o->bytes && o->names) return true;
    inject_out_fini(o);
    return false;
}

void inject_out_fini(struct out *o) {
    if (o->bytes) munmap(o->bytes, OUT_BYTES);
    if (o->names) munmap(o->names, NAME_SLOTS * sizeof *o->names);
    o->bytes = NULL, o->names = NULL;
}

// The socket has a send timeout (main.c): a peer that does not read is as good as gone.
void inject_out_flush(struct out *o) {
    size_t at = 0;
    while (at < o->n && !o->failed) {
        const ssize_t sent = send(o->fd, o->bytes + at, o->n - at, MSG_NOSIGNAL);
        if (sent > 0)
            at += (size_t)sent;
        else if (sent == 0 || errno != EINTR)
            o->failed = true;
    }
    o->n = 0;
}

void inject_out_record(struct out *o, uint16_t kind, void *record, size_t size, const char *text,
                       size_t text_len) {
    const size_t padded = (size + text_len + 7) & ~(size_t)7;
    struct xpl_record *const head = record;
    head->kind = kind;
    head->reserved = 0;
    head->size = (uint32_t)padded;
    if (o->failed) return;
    if (OUT_BYTES - o->n < padded) inject_out_flush(o);
    uint8_t *const p = o->bytes + o->n;
    memcpy(p, record, size);
    if (text_len) memcpy(p + size, text, text_len);
    memset(p + size + text_len, 0, padded - size - text_len);
    o->n += padded;
}

static uint64_t mix(uint64_t h) {
    h *= UINT64_C(0x9e3779b97f4a7c15);
    return h ^ h >> 32;
}

// Eight bytes at a time, as names of templates are long; never 0.  Two names with one hash of 64
// bits would become one name.
static uint64_t hash_name(const char *s, size_t n) {
    uint64_t h = n;
    for (size_t i = 0; i < n; i += 8) {
        uint64_t word = 0;
        memcpy(&word, s + i, n - i < 8 ? n - i : 8);
        h = mix(h ^ word);
    }
    h = mix(h); // the last bytes have not yet reached the bits that choose the slot
    return h ? h : 1;
}

uint32_t inject_out_name(struct out *o, const char *name) {
    if (!name) return 0;
    const size_t n = strnlen(name, XPL_RECORD_NAME_MAX);
    if (!n) return 0;
    const uint64_t hash = hash_name(name, n);
    size_t at = hash & (NAME_SLOTS - 1);
    while (o->names[at].hash && o->names[at].hash != hash)
        at = (at + 1) & (NAME_SLOTS - 1);
    if (o->names[at].hash) return o->names[at].id;
    if (o->n_names >= NAME_SLOTS / 4 * 3) {
        o->nameless++;
        return 0;
    }
    o->names[at] = (struct name_slot){hash, ++o->n_names};
    struct xpl_record_name r = {.id = o->n_names, .text_len = (uint32_t)n};
    inject_out_record(o, XPL_RECORD_NAME, &r, sizeof r, name, n);
    return o->n_names;
}
