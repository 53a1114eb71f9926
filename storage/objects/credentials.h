// SPDX-License-Identifier: Apache-2.0
// The credentials that sign requests to an object store, and their source.
#ifndef XPL_STORAGE_OBJECTS_CREDENTIALS_H_
#define XPL_STORAGE_OBJECTS_CREDENTIALS_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "storage/objects/location.h"

struct xpl_transfers;

// One set.  The owner of a copy wipes it.
struct xpl_credential {
    // Keys sign; a bearer's token is sent as it is.
    enum { XPL_CREDENTIAL_NONE, XPL_CREDENTIAL_KEYS, XPL_CREDENTIAL_BEARER } kind;
    char access[256], secret[512], token[8192]; // token of keys: of a session; may be empty
};

struct xpl_credentials;

struct xpl_credentials_options {
    enum xpl_object_service service;
    bool anonymous;
    const char *region;              // of the bucket
    struct xpl_transfers *transfers; // for requests for credentials; outlives them
    // Called when credentials cannot be renewed while the old ones are still valid.  Any thread;
    // NULL is fine.
    void (*warn)(void *arg, const char *text);
    void *arg;
    uint64_t retry_ns; // after a renewal that failed; 0: 5 s
};

// Makes no request.  FAILED_PRECONDITION, with a remedy, if the environment names no source.
xpl_status_t xpl_credentials_new(const struct xpl_credentials_options *o,
                                 struct xpl_credentials **ret, struct xpl_error *err) XPL_NODISCARD;
// Wiped.  When no call is under way.  NULL is fine.
void xpl_credentials_free(struct xpl_credentials *c);
// The ones to use now.  Any thread that may wait: one of those that find them old asks the source,
// which takes seconds, while the others use the old ones, or wait for it where those have expired.
// Errors name the source and no secret: CANCELLED (see xpl_transfers_stop), PERMISSION_DENIED,
// FAILED_PRECONDITION, UNAVAILABLE, DATA_LOSS.
xpl_status_t xpl_credentials_get(struct xpl_credentials *c, struct xpl_credential *ret,
                                 struct xpl_error *err) XPL_NODISCARD;

#endif
