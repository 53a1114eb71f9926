// SPDX-License-Identifier: Apache-2.0
// Sources of credentials.  The thread that needs credentials queries a source, one thread at a
// time.
#ifndef XPL_STORAGE_OBJECTS_CREDENTIALS_ISSUER_H_
#define XPL_STORAGE_OBJECTS_CREDENTIALS_ISSUER_H_

#include <stddef.h>

#include "base/buf.h"
#include "storage/objects/credentials.h"
#include "storage/objects/transfer.h"

struct xpl_issuer_context {
    struct xpl_transfers *transfers;
    const char *region;
};

struct xpl_credential_issuer {
    const char *name; // for messages: "credentials by NAME"
    // Whether the environment selects this source; makes no request.
    bool (*is_set)(void);
    // Blocks for seconds.  *ret_expires_ns: since 1970, INT64_MAX for never.  Errors say no secret.
    xpl_status_t (*fetch)(const struct xpl_issuer_context *c, struct xpl_credential *ret,
                          int64_t *ret_expires_ns, struct xpl_error *err);
};

// In the order in which they are tried; the first that is set is used.
extern const struct xpl_credential_issuer xpl_issuers_aws[], xpl_issuers_google[];
extern const size_t xpl_n_issuers_aws, xpl_n_issuers_google;

// ---- for sources ----

enum { XPL_ISSUER_MAX_TEXT = 64 << 10 }; // of an answer or a file
#define XPL_ISSUER_NEVER INT64_MAX
// Interval for rereading a file.
#define XPL_ISSUER_FILE_NS (600 * (int64_t)1000000000)

// The variable, where it is not empty; else NULL.
const char *xpl_issuer_variable(const char *name);
// Copies it, where it fits and is printable.
bool xpl_issuer_copy_variable(const char *name, char *ret, size_t size);
// Room for the whole text from the start: nothing of it is left where a smaller one was.
xpl_status_t xpl_issuer_text_init(struct xpl_buf *b, struct xpl_error *err) XPL_NODISCARD;
// Wipes and frees.
void xpl_issuer_text_fini(struct xpl_buf *b);
// AWS_ACCESS_KEY_ID and so on; with AWS_SESSION_TOKEN, or without.
bool xpl_issuer_env_is_set(void);
xpl_status_t xpl_issuer_env_fetch(const struct xpl_issuer_context *c, struct xpl_credential *ret,
                                  int64_t *ret_expires_ns, struct xpl_error *err) XPL_NODISCARD;
xpl_status_t xpl_issuer_env_fetch_session(const struct xpl_issuer_context *c,
                                          struct xpl_credential *ret, int64_t *ret_expires_ns,
                                          struct xpl_error *err) XPL_NODISCARD;
// Appends a field of a form.
void xpl_issuer_put_form(struct xpl_buf *b, const char *name, xpl_str_t value);
// Reads a complete regular file into an empty text; errors name `what`, not the path.
xpl_status_t xpl_issuer_read_file(const char *path, const char *what, struct xpl_buf *ret,
                                  struct xpl_error *err) XPL_NODISCARD;
// Unsigned; the answer is in `answer`.  UNAVAILABLE for one that is too long; else as
// xpl_transfers_run.
xpl_status_t xpl_issuer_ask(const struct xpl_issuer_context *c, struct xpl_transfer *v,
                            struct xpl_buf *answer, struct xpl_error *err) XPL_NODISCARD;
// The same, of a form that is posted; `direct` as xpl_issuer_is_safe_url has it.
xpl_status_t xpl_issuer_post(const struct xpl_issuer_context *c, const char *url, const char *shown,
                             bool direct, const struct xpl_buf *form, struct xpl_buf *answer,
                             struct xpl_error *err) XPL_NODISCARD;
// Whether a secret may be sent there: https, or loopback, or a host of `others`, which ends with
// NULL. *ret_direct: no proxy may be used.
bool xpl_issuer_is_safe_url(const char *url, const char *const *others, bool *ret_direct);

#endif
