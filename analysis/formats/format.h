// SPDX-License-Identifier: Apache-2.0
// The files that hold profiles: decoders, which undo compression, composed with formats, each of
// which imports what a decoder gives.
//
//   file -> decoder (none, gzip, zstd, ...) -> format (xspace, kineto, ...) -> XSpace
//
// A format is one row.  The content of a file decides its format, and its name is a hint: it
// decides only where the content does not say enough.  Suffixes of names are only in this table.
// An XSpace is its own import and costs nothing; that of another format is made once, and cached
// (product imported_xspace).
//
// Threads: the tables are constant; any thread may open any file.
#ifndef XPL_ANALYSIS_FORMATS_FORMAT_H_
#define XPL_ANALYSIS_FORMATS_FORMAT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/formats/facts.h"
#include "base/exec.h"
#include "base/status.h"
#include "base/str.h"
#include "base/text/profile_file.h"

// The suffix of the files that this project writes: HOST.xplane.pb.
#define XPL_FORMAT_SUFFIX ".xplane.pb"

enum {
    // A file may become at most this many times as long, or XPL_FORMAT_SMALL, whichever is more.
    // The profiles of this repository shrink to an eleventh at best.
    XPL_FORMAT_MAX_RATIO = 256,
    XPL_FORMAT_SMALL = 16 << 20, // bytes
    // The ratio expected of a compressed file that does not state its decoded size.
    XPL_FORMAT_USUAL_RATIO = 16,
    XPL_FORMAT_HEAD = 64 << 10, // decoded bytes that a format's sniff may read
};

// An opened file.  The bytes stay valid until xpl_profile_close, and, where they are the file's own
// (nothing was decoded or imported), only as long as the file's.  Trace details are read from them
// when an answer is made: a cached trace needs its profile open, or opened again.
// Zero-initialised, it is closed.
struct xpl_profile {
    xpl_bytes_t bytes; // ptr is never NULL in an open profile
    void *owned;       // the memory of the bytes; NULL when they are the file's own
    bool partial;      // an import of a file that is damaged, or was never finished
    const struct xpl_format *format;
};

struct xpl_format_limits {
    size_t max_bytes;      // decoded or imported into memory
    struct xpl_exec *exec; // polled between pieces for cancellation; may be NULL
};

// How surely content is of a format; 0: it is not.
enum {
    XPL_SURE_WEAK = 1,    // nothing contradicts it: loses to the name
    XPL_SURE_LIKELY = 50, // overrules a name that promises another format
    XPL_SURE = 100,       // a magic number, or keys that no other format has
};

struct xpl_format {
    const char *name;   // in keys and listings: "kineto"
    const char *label;  // in sentences: "a trace of PyTorch"
    const char *family; // the kind of its sessions in listings and the API
    const char *title;  // in the tables of pages: "PyTorch"; NULL: never listed
    // Changes whenever `import` (or a decoder that yields only this format) could give another
    // XSpace for the same bytes than an earlier build gave.  It is part of the key of every result
    // made from such files.  At most 65535.  0: the bytes are the XSpace.
    uint32_t version;
    // Suffixes of file names, NULL-terminated, the best first: of several files of one host in a
    // directory the best counts.  XPL_FORMAT_SUFFIXES lists one with those of decoders.
    const char *const *suffixes;
    // Suffixes that files of other programs have, too, NULL-terminated, or NULL: directories list
    // such a file only if `identify` says that it is a profile.
    const char *const *doubtful_suffixes;
    // Directories do not list such files: they are recognized when their path is given.
    bool is_unlisted;
    // Files of grouping 0 in a directory are the hosts of one session; of another number, each is a
    // separate session (storage/sessions/catalogue.h).
    unsigned grouping;
    unsigned facts; // XPL_FACT_… that its profiles can have
    // The tool to propose in place of those that need more; NULL: none.
    const char *instead;
    // How surely a file is of this format whose decoded bytes begin with `head`, the first
    // XPL_FORMAT_HEAD bytes.  NULL: only the name says it.
    unsigned (*sniff)(xpl_bytes_t head);
    // Makes an XSpace from the decoded bytes; only sets ret's bytes, owned and partial.  Errors as
    // xpl_profile_open.  NULL: the bytes are an XSpace.
    xpl_status_t (*import)(xpl_bytes_t decoded, const struct xpl_format_limits *limits,
                           struct xpl_profile *ret, struct xpl_error *err);
    // `import` and `check` get the file as it is and decode it piece by piece: the decoded bytes
    // would take too much memory, and those in front of damage count.
    bool imports_encoded;
    // An import has at most about this many times the bytes of the decoded file.
    unsigned import_ratio;
    // Whether a file that a client uploads may be stored: its first decoded bytes are right, if not
    // all.  Fails as xpl_profile_open.  NULL: it must be a complete XSpace.
    xpl_status_t (*check)(xpl_bytes_t decoded, struct xpl_error *err);
    // The bytes of an uncompressed file that hold its length: its writer changes them when it
    // appends, and changes nothing else.  Both 0: files of this format do not grow.
    unsigned length_at, length_end;
    // Of which process a file is, as struct xpl_profile_file says; NULL: files do not say it.
    bool (*identify)(xpl_str_t path, xpl_bytes_t file, struct xpl_profile_identity *ret);
    // Why files of this format are not read, and what to do instead; NULL: they are read.
    const char *refusal;
};
#define XPL_FORMAT_SUFFIXES(suffix) suffix, suffix ".gz", suffix ".zst", suffix ".zstd"

struct xpl_unpacker;
struct xpl_decoder {
    const char *label;                // in sentences: "gzip-compressed"
    const char *suffix, *also_suffix; // of file names; NULL: none
    const char *yields;               // the only format that it decodes to; NULL: any
    bool (*sniff)(xpl_bytes_t file);
    // Decodes the file; of a longer one at least `head` bytes, if that is not 0.
    xpl_status_t (*decode)(xpl_bytes_t file, size_t head, const struct xpl_format_limits *limits,
                           struct xpl_profile *ret, struct xpl_error *err);
    // Decodes piece by piece (impl.h); `begin` gives NULL without memory, `end` takes NULL.  Both
    // NULL: only `decode`.
    struct xpl_unpacker *(*begin)(xpl_bytes_t file);
    void (*end)(struct xpl_unpacker *u);
    // The decoded size that the file states, without decoding; untrusted.  0: it states none.
    uint64_t (*stated)(xpl_bytes_t file);
    const char *refusal; // as in struct xpl_format
};

// The table of formats: XSpaces first.
const struct xpl_format *const *xpl_formats(size_t *ret_n);

// The format that a file's name promises (a path is fine), and the host's name, which precedes the
// suffix and is not empty; NULL when directories do not list such a name.  ret_host may be NULL.
const struct xpl_format *xpl_format_of_name(xpl_str_t file, xpl_str_t *ret_host);
// The same for storage/sessions, which knows no formats (xpl_profile_match_fn): a rank by format
// and suffix.
enum { XPL_FORMAT_RANKS = 64, XPL_FORMAT_RANKS_OF_FORMAT = 8 };
bool xpl_format_match(xpl_str_t file, struct xpl_profile_file *ret);
// The format's version as keys spell it, "kineto=1"; "" where it is 0, and for NULL.  `ret` has
// XPL_FORMAT_VERSION_TEXT bytes; returns the length.
enum { XPL_FORMAT_VERSION_TEXT = 32 };
size_t xpl_format_version_text(const struct xpl_format *f, char *ret);

// A file's format and its encoding.
struct xpl_file_format {
    const struct xpl_decoder *decoder; // NULL: none
    const struct xpl_format *format;   // one that is read
    const char *suffix;                // of files like this one: ".xplane.pb.gz"
};
// Recognizes a file; its name (a path is fine, empty: none) is a hint.  Fails with
//   FAILED_PRECONDITION  it is of a format that is known and not read; the message says what to do
//   DATA_LOSS            it is of no known format, or the beginning cannot be decoded
//   RESOURCE_EXHAUSTED, CANCELLED   as xpl_profile_open
xpl_status_t xpl_file_recognize(xpl_str_t name, xpl_bytes_t file, struct xpl_exec *exec,
                                struct xpl_file_format *ret, struct xpl_error *err) XPL_NODISCARD;

// Recognizes and decodes a file.  That of an uncompressed file costs nothing: its bytes are
// borrowed.  *ret is to be closed after success, and untouched otherwise.  Fails as
// xpl_file_recognize, and with
//   DATA_LOSS           the bytes are truncated or corrupt; with the offset in the file up to which
//                       they were read; or it becomes more than XPL_FORMAT_MAX_RATIO times as long
//   RESOURCE_EXHAUSTED  the result is larger than limits->max_bytes; or no memory.  At most the
//                       smaller of the two limits is allocated, in addition to what the
//                       decompressor needs (40 KiB for gzip; for zstd its window, at most 128 MiB)
//   CANCELLED           limits->exec says so
xpl_status_t xpl_profile_open(xpl_str_t name, xpl_bytes_t file,
                              const struct xpl_format_limits *limits, struct xpl_profile *ret,
                              struct xpl_error *err) XPL_NODISCARD;
// The same, and imports it for XPL_FORM_XSPACE.
xpl_status_t xpl_profile_open_as(enum xpl_form form, xpl_str_t name, xpl_bytes_t file,
                                 const struct xpl_format_limits *limits, struct xpl_profile *ret,
                                 struct xpl_error *err) XPL_NODISCARD;
// Fails with DATA_LOSS unless the opened profile is of the format that its name promises: keys of
// stored results spell the version of that one.
xpl_status_t xpl_profile_check_name(const struct xpl_profile *p, xpl_str_t name,
                                    struct xpl_error *err) XPL_NODISCARD;
// The XSpace of a decoded file of that format, which is imported (xpl_format.import is not NULL).
xpl_status_t xpl_profile_import(const struct xpl_format *f, xpl_bytes_t decoded,
                                const struct xpl_format_limits *limits, struct xpl_profile *ret,
                                struct xpl_error *err) XPL_NODISCARD;
// About how many bytes of memory opening the file takes: for a compressed file the size that it
// states, if plausible, else XPL_FORMAT_USUAL_RATIO times its length, at most the limit of
// decompression; for an import in addition import_ratio times that (the length of an uncompressed
// one).  0 where the bytes are borrowed.  Reads a few bytes at both ends of the file.
size_t xpl_profile_expect(enum xpl_form form, xpl_str_t name, xpl_bytes_t file);
// The same only by the file's name and length, where reading it is expensive.
size_t xpl_profile_expect_unread(enum xpl_form form, xpl_str_t name, size_t len);
// Frees what was decoded or imported.  A closed profile is fine.
void xpl_profile_close(struct xpl_profile *p);

#endif
