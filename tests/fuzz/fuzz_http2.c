// SPDX-License-Identifier: Apache-2.0
// rpc/listen/guard.c: bytes of a client behind HTTP/2's preface, or of a server.  In one piece and
// in pieces of any size the verdict is the same, unless a length was changed in place, which needs
// it in one piece.  rpc/listen/announced.c: bytes of a server; the same length in any pieces.
#include <stdlib.h>
#include <string.h>

#include "rpc/listen/announced.h"
#include "rpc/listen/guard.h"
#include "tests/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct xpl_rpc_guard_shared *make_shared(void) {
    struct xpl_rpc_guard_shared *const s = calloc(1, sizeof *s);
    CHECK(s);
    pthread_mutex_init(&s->mu, NULL);
    return s;
}

static void check_calls(const struct xpl_rpc_guard *g, struct xpl_rpc_guard_shared *shared) {
    CHECK(g->n_calls <= XPL_RPC_GUARD_CALLS);
    CHECK_EQ(atomic_load(&shared->calls), g->n_calls);
    for (size_t i = 0; i + 1 < g->n_calls; i++)
        CHECK(g->calls[i].id < g->calls[i + 1].id);
    size_t held = 0;
    for (size_t i = 0; i < g->n_calls; i++)
        held += g->calls[i].held;
    CHECK_EQ(g->held, held);
    CHECK_EQ(atomic_load(&shared->held), held);
}

// The same bytes as a server's.
static void send_pieces(struct xpl_rpc_guard *g, struct xpl_rpc_guard_shared *shared,
                        const uint8_t *data, size_t size, size_t step) {
    for (size_t at = 0; at < size; at += step) {
        const size_t n = size - at < step ? size - at : step;
        uint8_t *const p = malloc(n);
        CHECK(p);
        memcpy(p, data + at, n);
        xpl_rpc_guard_sent(g, p, n, shared);
        free(p);
    }
}

static enum xpl_rpc_guard_verdict run(const uint8_t *data, size_t size, size_t step,
                                      bool *ret_same) {
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    struct xpl_rpc_guard_shared *const shared = make_shared();
    struct xpl_rpc_guard g;
    enum xpl_rpc_guard_verdict v = XPL_RPC_GUARD_FINE;
    uint8_t head[sizeof preface - 1];
    xpl_rpc_guard_init(&g, 100);
    memcpy(head, preface, sizeof head);
    CHECK_EQ(xpl_rpc_guard_feed(&g, head, sizeof head, 1, shared), XPL_RPC_GUARD_FINE);
    *ret_same = true;
    for (size_t at = 0; at < size && v == XPL_RPC_GUARD_FINE; at += step) {
        const size_t n = size - at < step ? size - at : step;
        uint8_t *const p = malloc(n); // of exactly this size: an access beyond it is seen
        CHECK(p);
        memcpy(p, data + at, n);
        v = xpl_rpc_guard_feed(&g, p, n, 1 + at, shared);
        if (memcmp(p, data + at, n) != 0) *ret_same = false;
        free(p);
        check_calls(&g, shared);
    }
    send_pieces(&g, shared, data, size, step);
    check_calls(&g, shared);
    xpl_rpc_guard_fini(&g, shared);
    CHECK_EQ(atomic_load(&shared->calls), 0);
    CHECK_EQ(atomic_load(&shared->held), 0);
    pthread_mutex_destroy(&shared->mu);
    free(shared);
    return v;
}

// The same bytes as a server's, by a client that asks how large its answer is.
static uint64_t follow(const uint8_t *data, size_t size, size_t step) {
    struct xpl_rpc_announced a = {.begun = false};
    xpl_rpc_announced_feed(&a, (const uint8_t *)"\0\0\0\4\0\0\0\0\0", 9, 1);
    for (size_t at = 0; at < size; at += step) {
        const size_t n = size - at < step ? size - at : step;
        uint8_t *const p = malloc(n);
        CHECK(p);
        memcpy(p, data + at, n);
        xpl_rpc_announced_feed(&a, p, n, 1);
        free(p);
        CHECK(a.length <= UINT32_MAX && a.missing <= a.length);
    }
    return a.length;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    const size_t step = 1 + data[0] % 32;
    bool same, same_in_pieces;
    const enum xpl_rpc_guard_verdict whole = run(data + 1, size - 1, size, &same);
    const enum xpl_rpc_guard_verdict pieces = run(data + 1, size - 1, step, &same_in_pieces);
    CHECK_EQ(follow(data + 1, size - 1, size), follow(data + 1, size - 1, step));
    if (same && same_in_pieces && pieces != XPL_RPC_GUARD_MESSAGE) CHECK_EQ(whole, pieces);
    return 0;
}
