// SPDX-License-Identifier: Apache-2.0
// Transactions of a store: opening, joining and ending them, and what a failure leaves behind.
// What differs between implementations are the functions of a table.  Only for storage/store/.
#ifndef XPL_STORAGE_STORE_TX_H_
#define XPL_STORAGE_STORE_TX_H_

#include <pthread.h>
#include <stdatomic.h>

#include "storage/store/store.h"

struct xpl_tx;

// The caller holds `mu`.  Result codes are the implementation's; 0 is success.
struct xpl_tx_ops {
    // Begins one in the database, or leaves nothing behind.
    xpl_status_t (*open)(struct xpl_tx *t, struct xpl_error *err);
    int (*commit)(struct xpl_tx *t);
    // Gives it up, because of `code` or, with 0, as its owner wants it.
    void (*roll_back)(struct xpl_tx *t, int code);
    // After its end.  t->code is the failure, if there was one.
    void (*ended)(struct xpl_tx *t, bool committed);
    // Records what a code means.
    xpl_status_t (*fail)(struct xpl_tx *t, int code, struct xpl_error *err);
    int too_big; // code of a put that is not kept, and has written nothing
};

// The first member of an implementation's store.
struct xpl_tx {
    struct xpl_store base;
    const struct xpl_tx_ops *ops;
    pthread_mutex_t mu;     // whoever holds it writes; down to the blank line
    xpl_status_t status;    // of the transaction that is open
    int code;               // of its first failure
    struct xpl_error err;   // of that
    uint64_t n_puts;        // done in it
    int64_t began_ms;       // since 1970
    uint64_t catalogue_at;  // generation of the catalogue that was written
    uint64_t catalogue_new; // generation that will have been written after the commit
    bool has_catalogue;     // it writes one

    atomic_bool catalogue_known; // the tables of sessions and hosts are what was written last
    atomic_uint_fast64_t puts, dropped;
};

void xpl_tx_init(struct xpl_tx *t, const struct xpl_store_ops *ops, const struct xpl_tx_ops *tx);
void xpl_tx_fini(struct xpl_tx *t);

// Functions of the store's table.
xpl_status_t xpl_tx_begin(struct xpl_store *base, struct xpl_error *err);
xpl_status_t xpl_tx_commit(struct xpl_store *base, struct xpl_error *err);
void xpl_tx_rollback(struct xpl_store *base);

// Run the body of a put between the two: inside the caller's transaction or in one of its own.
xpl_status_t xpl_tx_enter(struct xpl_tx *t, bool *ret_own, struct xpl_error *err);
xpl_status_t xpl_tx_leave(struct xpl_tx *t, bool own, int code, struct xpl_error *err);

#endif
