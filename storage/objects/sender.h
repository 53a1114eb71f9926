// SPDX-License-Identifier: Apache-2.0
// Objects that are written, small ones by one request, others in parts.  An object is there as a
// whole or not at all, and takes no other one's place where the store knows If-None-Match.
#ifndef XPL_STORAGE_OBJECTS_SENDER_H_
#define XPL_STORAGE_OBJECTS_SENDER_H_

#include "storage/objects/location.h"
#include "storage/objects/transfer.h"

enum { XPL_SENDER_PART = 16 << 20 }; // bytes; longer files are sent in parts of at least that size

struct xpl_sender {
    const struct xpl_location *location;
    // Does requests, signed.
    xpl_status_t (*run)(void *arg, struct xpl_transfer *v, size_t n, struct xpl_error *err);
    void *arg;
};

// Any thread; blocks. `cancel` may be NULL. ALREADY_EXISTS; else as xpl_transfers_run.  If a part
// fails, or it is cancelled, the upload is aborted in the store.
xpl_status_t xpl_sender_put(const struct xpl_sender *s, xpl_str_t path, int fd, uint64_t size,
                            const struct xpl_cancel *cancel, struct xpl_error *err) XPL_NODISCARD;
// An object that is not there is fine.
xpl_status_t xpl_sender_remove(const struct xpl_sender *s, xpl_str_t path, struct xpl_error *err)
    XPL_NODISCARD;

#endif
