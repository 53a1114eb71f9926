// SPDX-License-Identifier: Apache-2.0
// The profile in a file, as the name and the content say: analysis/formats reads it,
// storage/sessions groups files into sessions by it, and neither knows the other.
#ifndef XPL_BASE_TEXT_PROFILE_FILE_H_
#define XPL_BASE_TEXT_PROFILE_FILE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

// What a process wrote into its file about itself.
struct xpl_profile_identity {
    int64_t rank, world_size; // of the process among those of its job; -1: not said
    int64_t begin_ns;         // of the profile, since 1970; 0: not said
    int64_t written_ns;       // when the name says that the file was written; 0: it does not
    size_t worker_len;        // the front of the file's name that all captures of one process share
    uint64_t program;         // processes of one job have equal ones; 0: not said
    bool is_part;             // of another file's profile, and no host
};

struct xpl_profile_file {
    xpl_str_t host;
    // 0 is the best of the formats, of several files of one host the best counts; each
    // XPL_RANKS_OF_KIND of them are a kind of profiles (storage/sessions/catalogue.h).
    unsigned rank;
    const char *refusal; // why files of this format are not read; NULL: they are
    bool is_doubtful;    // other files have such names, too: `identify` decides
    // Reads the identity of a file from its path and its bytes; without bytes from the path.
    // False: the file is not a profile of the format, as far as is known.  NULL: files of the
    // format say nothing.
    bool (*identify)(xpl_str_t path, xpl_bytes_t file, struct xpl_profile_identity *ret);
};

// Whether a file of this name can be a profile; *ret is set only then.  Any thread.
typedef bool (*xpl_profile_match_fn)(xpl_str_t file, struct xpl_profile_file *ret);

#endif
