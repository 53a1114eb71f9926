// SPDX-License-Identifier: Apache-2.0
// What the tests of captures and of imports share.
#ifndef XPL_TESTS_SERVER_CAPTURES_FIXTURE_H_
#define XPL_TESTS_SERVER_CAPTURES_FIXTURE_H_

#include "rpc/client.h"
#include "tests/check.h"
#include "tests/server/harness.h"

#define TRAIN "logdir/cpu/plugins/profile/jax_matmul_nopy/vm.xplane.pb"

static const char *const plain[] = {"--no-prefetch", NULL};

static inline size_t count_sessions(xpl_client *c) {
    xpl_sessions *s = NULL;
    CHECK_EQ(xpl_client_sessions(c, &s, NULL), 0);
    const size_t n = xpl_sessions_count(s);
    xpl_sessions_free(s);
    return n;
}

// The catalogue may still show the directory of a capture that was given up.
static inline bool has_sessions(xpl_client *c, size_t n) {
    for (int waited = 0; waited < PATIENCE_MS; waited += 50) {
        if (count_sessions(c) == n) return true;
        sleep_ms(50);
    }
    return false;
}

static inline struct xpl_rpc_channel *open_channel(const char *address) {
    const struct xpl_rpc_channel_options o = {.size = sizeof o, .target = address};
    struct xpl_rpc_channel *ch = NULL;
    CHECK_OK(xpl_rpc_channel_open(&o, &ch, NULL), NULL);
    return ch;
}

#endif
