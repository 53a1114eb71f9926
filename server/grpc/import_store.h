// SPDX-License-Identifier: Apache-2.0
// How a whole upload becomes a host's file, whatever its format.
#ifndef XPL_SERVER_GRPC_IMPORT_STORE_H_
#define XPL_SERVER_GRPC_IMPORT_STORE_H_

#include <pthread.h>

#include "capture/profile_writer.h"

struct xpl_upload {
    xpl_str_t host;     // as the client says it
    const char *suffix; // of xpl_import_name, a hint; NULL: none
    int fd;
    uint64_t bytes;
    bool grows;                     // the host's file is its beginning, if there is one
    uint64_t max_bytes;             // of the XSpace, where it must be decompressed
    pthread_mutex_t *decompressing; // held meanwhile: one at a time
    struct xpl_exec *exec;          // once it is cancelled, nothing is stored
};

// The host of an import's file and the suffix of the formats' table: the `given` one, or, if that
// is "", the one that the name ends with, which the host then lacks; NULL: none.  ret_host points
// into `name`. INVALID_ARGUMENT for another suffix, and for formats that are not read.
xpl_status_t xpl_import_name(const char *name, const char *given, xpl_str_t *ret_host,
                             const char **ret_suffix, struct xpl_error *err) XPL_NODISCARD;
// Checks the upload by its format, and stores its bytes as they are, under the suffix of their
// format.  DATA_LOSS, RESOURCE_EXHAUSTED (too large, full disk), INVALID_ARGUMENT: files of its
// format do not grow.  ALREADY_EXISTS: the session has such a host, in whatever format, and that is
// not the beginning of one that grows. ABORTED: another one that grows is being stored in the
// session, or the disk cannot read the upload. CANCELLED.
xpl_status_t xpl_import_store(struct xpl_session_writer *s, const struct xpl_upload *u,
                              struct xpl_profile_writer_file *ret, struct xpl_error *err)
    XPL_NODISCARD;

#endif
