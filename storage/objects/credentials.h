// SPDX-License-Identifier: Apache-2.0
// Private: by what requests to an object store are signed, and where it comes from.
#ifndef XPL_STORAGE_OBJECTS_CREDENTIALS_H_
#define XPL_STORAGE_OBJECTS_CREDENTIALS_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "storage/objects/location.h"

// One set.  Whoever copies it wipes the copy.
struct xpl_credential {
    enum { XPL_CREDENTIAL_NONE, XPL_CREDENTIAL_KEYS } kind;
    char access[256], secret[512], token[8192]; // token: of a session; may be empty
};

struct xpl_credentials;

// FAILED_PRECONDITION, with what to do, when there are none.
xpl_status_t xpl_credentials_new(enum xpl_object_service service, bool anonymous,
                                 struct xpl_credentials **ret, struct xpl_error *err) XPL_NODISCARD;
// Wiped.  NULL is fine.
void xpl_credentials_free(struct xpl_credentials *c);
// The ones to use now.  Any thread.
xpl_status_t xpl_credentials_get(struct xpl_credentials *c, struct xpl_credential *ret,
                                 struct xpl_error *err) XPL_NODISCARD;

#endif
