// SPDX-License-Identifier: Apache-2.0
// The files that hold profiles: a table with one row for each format.  Suffixes of file names stand
// in this table alone; whoever asks whether a file is a profile, or opens one, asks here.
//
// A row turns the bytes of a file into the bytes of an XSpace, from which everything else is made;
// bundles of IREE stay what they are, and have tools of their own.
// The name of a file says its format, and its first bytes confirm it: what a name promises and the
// bytes do not keep is an error that says so.
//
// Threads: the table is constant; any thread may open any file.
#ifndef XPL_ANALYSIS_FORMATS_FORMAT_H_
#define XPL_ANALYSIS_FORMATS_FORMAT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/formats/kind.h"
#include "base/exec.h"
#include "base/status.h"
#include "base/str.h"

// Of the files that this project writes itself, HOST.xplane.pb: the first row's.
#define XPL_FORMAT_SUFFIX ".xplane.pb"

enum {
    // A file may become at most this many times as long, or XPL_FORMAT_SMALL, whichever is more.
    // The profiles of this repository shrink to an eleventh at best.
    XPL_FORMAT_MAX_RATIO = 256,
    XPL_FORMAT_SMALL = 16 << 20, // bytes
    // What is expected of a file that does not say how long it becomes.
    XPL_FORMAT_USUAL_RATIO = 16,
    // A view has at most about this many times the bytes of its file: bundles of IREE 1.4 to 1.6.
    XPL_FORMAT_VIEW_RATIO = 2,
};

// An opened file.  The bytes stay valid until xpl_profile_close, and, where they are the file's own
// (nothing was decompressed), only as long as the file's.  Trace details are read from them when an
// answer is made: whoever keeps a trace to answer from keeps its profile open, or opens it anew.
// Zero-initialised, it is closed.
struct xpl_profile {
    xpl_bytes_t bytes; // of the XSpace; ptr is never NULL in an open profile
    void *owned;       // the memory of the bytes; NULL when they are the file's own
    bool partial;      // a view of a file that is damaged, or was never finished
};

struct xpl_format_limits {
    size_t max_bytes;      // of the XSpace, when it must be decompressed into memory
    struct xpl_exec *exec; // asked between pieces whether to give up; may be NULL
};

struct xpl_format {
    const char *name;        // for messages and documents: "gzip-compressed"
    const char *const *tail; // suffixes of file names, NULL-terminated; the host's name is before
    // Changes whenever `open` or `view` could give another profile of the same bytes than an
    // earlier build gave: it is part of the key of everything that is made of such files.  At most
    // 65535. 0: the bytes are the XSpace, compressed or not, and always give the same.
    uint32_t version;
    // Whether the bytes begin as this format does; NULL for a format that has no mark of its own.
    bool (*sniff)(xpl_bytes_t file);
    // See xpl_format_open.  NULL for a format that is known by name only, to be refused.
    xpl_status_t (*open)(xpl_bytes_t file, const struct xpl_format_limits *limits,
                         struct xpl_profile *ret, struct xpl_error *err);
    // Makes an XSpace of a file of another kind, so that what is made of XSpaces can be made of it.
    // As `open`; NULL: there is none.
    xpl_status_t (*view)(xpl_bytes_t file, const struct xpl_format_limits *limits,
                         struct xpl_profile *ret, struct xpl_error *err);
    // How many bytes the file says that it becomes, without decompressing any: to be doubted.  0:
    // it does not say.  NULL: it never does.
    uint64_t (*stated)(xpl_bytes_t file);
    // Whether a file that is imported may be stored: its first bytes are right, if not all.  Fails
    // as xpl_format_open.  NULL: it must open, and be a profile from end to end.
    xpl_status_t (*check)(xpl_bytes_t file, struct xpl_error *err);
    // Where a file says how long it is, which its writer changes when it has written more; all else
    // is written once.  Both 0: a file of this format is there when it is whole.
    unsigned length_at, length_end;
    enum xpl_kind kind;  // of the profiles
    const char *refusal; // where `open` is NULL: why, and what to do instead
};

// The table.  Of two files of one host the one of the earlier row counts.
const struct xpl_format *xpl_formats(size_t *ret_n);

// The format of a file of this name (a path is fine), and the host's name, which is what stands
// before the suffix and is not empty; NULL when it is no profile by its name.  ret_host may be
// NULL.
const struct xpl_format *xpl_format_of_name(xpl_str_t file, xpl_str_t *ret_host);
// The same for storage/sessions, which knows no formats (xpl_profile_match_fn): the row's number,
// more by XPL_FORMAT_RANKS_OF_KIND for each kind before its own, and NULL or the reason why such
// files are not read.
enum { XPL_FORMAT_RANKS_OF_KIND = 64 };
bool xpl_format_match(xpl_str_t file, xpl_str_t *ret_host, unsigned *ret_rank,
                      const char **ret_refusal);
// The format's version as keys spell it, "ireeprof=1"; "" where it is 0, and for NULL.  `ret` has
// XPL_FORMAT_VERSION_TEXT bytes; returns the length.
enum { XPL_FORMAT_VERSION_TEXT = 32 };
size_t xpl_format_version_text(const struct xpl_format *f, char *ret);
// The format that the bytes look like; the first row when they have no mark of another one.
const struct xpl_format *xpl_format_sniff(xpl_bytes_t file);

// Opens the bytes of a file as a profile of format `f`.  An uncompressed file costs nothing: its
// bytes are borrowed.  *ret is to be closed after success, and untouched otherwise.  Fails with
//   DATA_LOSS           the bytes are of another format, truncated or corrupt; with the offset in
//                       the file up to which they were read
//                       or it becomes more than XPL_FORMAT_MAX_RATIO times as long: no profile does
//   RESOURCE_EXHAUSTED  the XSpace is larger than limits->max_bytes; or no memory.  Never more than
//   the
//                       smaller of the two is allocated, beside what the decompressor needs (40 KiB
//                       for gzip; for zstd its window, at most 128 MiB)
//   CANCELLED           limits->exec says so
//   FAILED_PRECONDITION files of this format are not read
xpl_status_t xpl_format_open(const struct xpl_format *f, xpl_bytes_t file,
                             const struct xpl_format_limits *limits, struct xpl_profile *ret,
                             struct xpl_error *err) XPL_NODISCARD;
// The same for a file called `name` (a path is fine); one whose name says nothing is what its bytes
// look like.
xpl_status_t xpl_profile_open(xpl_str_t name, xpl_bytes_t file,
                              const struct xpl_format_limits *limits, struct xpl_profile *ret,
                              struct xpl_error *err) XPL_NODISCARD;
// The same for who reads profiles of a kind: a file of another kind is opened by its format's view,
// where it has one.
xpl_status_t xpl_profile_open_as(enum xpl_kind kind, xpl_str_t name, xpl_bytes_t file,
                                 const struct xpl_format_limits *limits, struct xpl_profile *ret,
                                 struct xpl_error *err) XPL_NODISCARD;
// Converts an opened profile to `kind`, as xpl_profile_open_as does; for a caller that stores it.
xpl_status_t xpl_kind_view(enum xpl_kind kind, xpl_bytes_t profile,
                           const struct xpl_format_limits *limits, struct xpl_profile *ret,
                           struct xpl_error *err) XPL_NODISCARD;
// Whether xpl_profile_open_as makes something else of the file than xpl_profile_open does.
bool xpl_profile_is_view(enum xpl_kind kind, xpl_str_t name);
// About how many bytes of memory opening the file as a profile of `kind` takes.  0 where its bytes
// are borrowed.  For a compressed file: the size that it states, if plausible, else
// XPL_FORMAT_USUAL_RATIO times its length; at most the limit of decompression.  For a view:
// XPL_FORMAT_VIEW_RATIO times the file's length in addition.  Reads a few bytes at both ends of the
// file.
size_t xpl_profile_expect(enum xpl_kind kind, xpl_str_t name, xpl_bytes_t file);
// The same by the file's name and length only, where reading it costs much.
size_t xpl_profile_expect_unread(enum xpl_kind kind, xpl_str_t name, size_t len);
// Frees what was decompressed.  A closed profile is fine.
void xpl_profile_close(struct xpl_profile *p);

#endif
