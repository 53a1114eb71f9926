// SPDX-License-Identifier: Apache-2.0
// A host's profile, open while something is made or read of it, and the exec that stops the work
// when the file is truncated under it.
#ifndef XPL_SERVER_ENGINE_OPENED_H_
#define XPL_SERVER_ENGINE_OPENED_H_

#include "analysis/formats/format.h"
#include "base/exec.h"
#include "storage/sessions/catalogue.h"

// One open, and as many more when the file changed meanwhile.
enum { XPL_OPEN_ATTEMPTS = 4 };

struct xpl_opened_profile {
    struct xpl_source *source;
    struct xpl_profile profile; // of a compressed one: what it was unpacked to
    // For a file of another kind than requested (xpl_product_open_profile): the product that holds
    // the bytes, and the file that they are mapped from; NULL: they are in memory.
    struct xpl_object *import;
    const struct xpl_source *import_file;
    xpl_bytes_t bytes; // of the requested kind; valid until xpl_opened_profile_close
};

// Accepts a zero-initialised one.
void xpl_opened_profile_close(struct xpl_opened_profile *o);

// Whom the work is done for.
struct xpl_work_owner {
    bool (*is_cancelled)(void *arg); // NULL: never
    void *arg;
};

// Runs pieces in `inner`, and is cancelled when the owner is, or the source (NULL: none) is
// truncated: whatever comes out then is worth nothing.  Lives as long as the work.
struct xpl_guarded_exec {
    struct xpl_exec exec; // hand out &x.exec
    struct xpl_exec *inner;
    struct xpl_work_owner owner;
    const struct xpl_source *source;
};
void xpl_guarded_exec_init(struct xpl_guarded_exec *x, struct xpl_exec *inner,
                           struct xpl_work_owner owner, const struct xpl_source *source);

// Opens a host of the snapshot, as a profile of the kind that its file is of.  Errors are those of
// xpl_snapshot_open, and of the file's format; CANCELLED when the owner is.  After DATA_LOSS *ret
// has the source, without bytes, so that the failure can be remembered of that very file; it is
// closed as after success.
// `limit`: bytes of memory that a compressed profile may be decompressed to.
xpl_status_t xpl_opened_profile_open(const struct xpl_snapshot *snapshot,
                                     const struct xpl_host *host, size_t limit,
                                     struct xpl_work_owner owner, struct xpl_opened_profile *ret,
                                     struct xpl_error *err) XPL_NODISCARD;
// The same from a source of the host; *ret keeps a separate reference to it.
xpl_status_t xpl_opened_profile_read(struct xpl_source *source, const struct xpl_host *host,
                                     size_t limit, struct xpl_work_owner owner,
                                     struct xpl_opened_profile *ret, struct xpl_error *err)
    XPL_NODISCARD;
// Bytes of memory that opening a host as `form` takes, as far as its file says.  Opens a compressed
// one, but fetches no object: of those their lengths have to do.
size_t xpl_opened_profile_expect(const struct xpl_snapshot *snapshot, const struct xpl_host *host,
                                 enum xpl_form form);
// And took.
size_t xpl_opened_profile_memory(const struct xpl_opened_profile *o);
// A file from which its bytes are mapped was truncated: results read from them are invalid.
bool xpl_opened_profile_is_truncated(const struct xpl_opened_profile *o);

#endif
