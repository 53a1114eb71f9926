// SPDX-License-Identifier: Apache-2.0
// What a profile is known by: its bytes, wherever they lie.
//
// Equal bytes have equal ids for every machine that uses one store, and ids of two stores say
// nothing about each other.  Of local files it is a keyed hash of the content (storage/sessions/
// identity.h); elsewhere it may be anything that stands for the bytes, such as an object's ETag.
// Nobody but who made it reads what is in it.
#ifndef XPL_STORAGE_STORE_PROFILE_ID_H_
#define XPL_STORAGE_STORE_PROFILE_ID_H_

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct xpl_profile_id {
    uint8_t bytes[16];
};

static inline bool xpl_profile_id_eq(const struct xpl_profile_id *a,
                                     const struct xpl_profile_id *b) {
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

#endif
