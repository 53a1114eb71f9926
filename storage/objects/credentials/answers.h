// SPDX-License-Identifier: Apache-2.0
// Credentials in answers of services and in files.  The texts are untrusted: an incomplete, too
// long or unprintable one is DATA_LOSS, with a message that repeats none of it.
// RESOURCE_EXHAUSTED.
#ifndef XPL_STORAGE_OBJECTS_CREDENTIALS_ANSWERS_H_
#define XPL_STORAGE_OBJECTS_CREDENTIALS_ANSWERS_H_

#include <stddef.h>

#include "storage/objects/credentials.h"

// Copies 1 to size - 1 printable bytes without blanks, valid in a header.
bool xpl_answer_copy(xpl_str_t s, char *ret, size_t size);

// JSON of containers and instances: AccessKeyId, SecretAccessKey, Token, Expiration.
xpl_status_t xpl_answer_keys(xpl_str_t text, struct xpl_credential *ret, int64_t *ret_expires_ns,
                             struct xpl_error *err) XPL_NODISCARD;
// XML of STS: the same, as elements.  FAILED_PRECONDITION without Expat.
xpl_status_t xpl_answer_sts(xpl_str_t text, struct xpl_credential *ret, int64_t *ret_expires_ns,
                            struct xpl_error *err) XPL_NODISCARD;
// JSON of OAuth: access_token, expires_in (seconds from now_ns on).
xpl_status_t xpl_answer_bearer(xpl_str_t text, int64_t now_ns, struct xpl_credential *ret,
                               int64_t *ret_expires_ns, struct xpl_error *err) XPL_NODISCARD;
// A file of Google's tools, of one of these types; others are FAILED_PRECONDITION. Missing members
// are "".  Secret: the owner wipes it.
struct xpl_answer_google {
    enum { XPL_ANSWER_USER, XPL_ANSWER_KEY } type; // authorized_user, service_account
    char token_uri[512];
    char client[256];                // client_id, client_email
    char secret[256], refresh[2048]; // of USER
    char key_id[256], key[12 << 10]; // of KEY; the key in PEM, which has lines
};
xpl_status_t xpl_answer_google(xpl_str_t text, struct xpl_answer_google *ret, struct xpl_error *err)
    XPL_NODISCARD;
// A shared file: [PROFILE], then aws_access_key_id and so on.  NOT_FOUND without that profile.
xpl_status_t xpl_answer_profile(xpl_str_t text, xpl_str_t profile, struct xpl_credential *ret,
                                struct xpl_error *err) XPL_NODISCARD;

#endif
