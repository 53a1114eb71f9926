// SPDX-License-Identifier: Apache-2.0
// One answer: from the store, or rendered from the hosts' products.
#ifndef XPL_SERVER_ENGINE_ANSWERS_H_
#define XPL_SERVER_ENGINE_ANSWERS_H_

#include "server/engine/products.h"
#include "server/engine/request.h"
#include "server/engine/tool_data.h"

enum xpl_answer_source { XPL_FROM_MEMORY = 1, XPL_FROM_STORE = 2, XPL_COMPUTED = 3 };

struct xpl_outcome {
    xpl_status_t code;
    struct xpl_error err;         // when code is not OK
    int64_t retry_ms;             // negative: none
    struct xpl_tool_data *answer; // when OK; borrowed during the callback
    enum xpl_answer_source source;
    bool kept; // the engine gives it again until the catalogue changes: else a file may be another
               // by then, and the answer holds for this asker alone
    uint64_t stage_us[XPL_N_STAGES]; // 0: did not happen
    bool joined;                     // shared another's job
};

// Sets code and error.
void xpl_outcome_fail(struct xpl_outcome *o, xpl_status_t code, int64_t retry_ms, const char *text);

// ---- other daemons that make products for this one (server/jobs/front.h) ----

// Products of each host of a request.  Everything is borrowed.
struct xpl_front_request {
    struct xpl_store *store; // one that has jobs
    struct xpl_product_manager *products;
    const struct xpl_request *q;
    const unsigned *variants; // of its tool's needs
    struct xpl_work_owner owner;
    size_t limit; // bytes
};

struct xpl_front {
    // Waits until workers have published what the store and memory have not got, or have left it to
    // this daemon: the caller then gets every product as usual, and makes the others.  The same
    // applies to products that were never begun if no worker runs, and to all if the database is
    // away.  ret_aside[i]: not host i's, which workers were lost with; explain_aside says so.  On
    // the calling thread.  CANCELLED, RESOURCE_EXHAUSTED.
    xpl_status_t (*wait)(const struct xpl_front_request *f, bool *ret_aside, struct xpl_error *err);
    // Why a host is set aside: an error about its file.
    xpl_status_t (*explain_aside)(const char *path, struct xpl_error *ret);
};

// ---- answers ----

// The parts are borrowed.
struct xpl_answer_parts {
    struct xpl_product_manager *products;
    struct xpl_store *store;
    struct xpl_store_writer *writer;
    struct xpl_cache *cache;
    const struct xpl_front *front; // has other daemons make missing products; NULL: none
};

// Whose answer it is.
struct xpl_answer_context {
    struct xpl_exec *exec;
    struct xpl_work_owner owner;
    size_t limit; // bytes
    void *arg;    // of the callbacks
    // Asked before anything is made that the store has not got; false: the daemon is busy.
    bool (*admit)(void *arg);
    // Gives the outcome to all who wait, before work that goes on for later requests.
    void (*deliver)(void *arg, struct xpl_outcome *o);
    struct xpl_work_owner rest_owner; // of that work
};

// Makes the answer of `q`: from the store, or from products.  ret->answer is referenced for the
// caller.
void xpl_request_make_answer(const struct xpl_answer_parts *parts, const struct xpl_request *q,
                             const struct xpl_answer_context *ctx, struct xpl_outcome *ret);

#endif
