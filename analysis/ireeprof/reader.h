// SPDX-License-Identifier: Apache-2.0
// Pull reader over the bytes of a bundle: file records, and the typed records of a chunk.
//
// A bundle that was cut, never finished or damaged is read as far as it is good: opening it finds
// the end of what can be read, and each damage is noted with its offset and the reason (in the
// words of IREE's tools, which refuse such files).  Opening reads the headers of the records and
// the metadata.  Events, which are nearly all of a bundle, are checked by whoever reads them:
// damage there is noted in xpl_iree_record.damage.  Nothing is allocated, and every length is
// checked where it is used, so that bytes which change while they are read cause wrong rows, not
// wrong reads.  Threads: an opened bundle is constant.
#ifndef XPL_ANALYSIS_IREEPROF_READER_H_
#define XPL_ANALYSIS_IREEPROF_READER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "analysis/ireeprof/schema.h"
#include "base/status.h"
#include "base/str.h"

enum {
    XPL_IREE_FILE_HEADER = 24,    // bytes
    XPL_IREE_FILE_LENGTH_AT = 16, // in it: u64, which is written again when there is more
    XPL_IREE_RECORD_HEADER = 104, // bytes
    XPL_IREE_NOTES_KEPT = 16,
    XPL_IREE_PLACES = 4096,    // of chunks that are known
    XPL_IREE_HEAD = 256,       // bytes of a record that are read at once: its header and names
    XPL_IREE_WINDOW = 1 << 18, // bytes of events that are read at once: they stay in a cache
};

struct xpl_iree_header {
    uint16_t version_major, version_minor;
    uint32_t header_length, flags;
    uint64_t file_length; // 0: the capture was never finished
};

struct xpl_iree_note {
    uint64_t offset; // in the file
    char text[160];  // a clause: why what stands there is not read
};
struct xpl_iree_notes {
    struct xpl_iree_note kept[XPL_IREE_NOTES_KEPT]; // the first ones
    size_t n;                                       // all of them
};

// A bundle that was made of rows (ireeperf/) has this in its header: what could not be read of
// them, with offsets in the file of the rows.
struct xpl_iree_origin {
    char mark[16];
    struct xpl_iree_notes notes;
};
#define XPL_IREE_ORIGIN_MARK "ireeperf-jsonl"

// What can be done with the bytes of a mapped file.
struct xpl_iree_mapping {
    // Called with bytes that are not read again soon, when they are many: their pages may be given
    // back.  May be NULL.
    void (*done)(const void *p, size_t n);
    // Reads n bytes from `offset` on without touching the mapping; false when it cannot, and they
    // are read there.  May be NULL.
    bool (*read)(void *ctx, uint64_t offset, void *ret, size_t n);
    void *ctx;
};

struct xpl_iree_chunk_at {
    uint64_t at;    // of the record, in the file
    uint32_t index; // which record it is
    uint32_t chunk; // enum xpl_iree_chunk
};

struct xpl_iree_bundle {
    xpl_bytes_t bytes; // as far as records can be read
    struct xpl_iree_header header;
    uint64_t file_bytes;            // of the whole file
    uint64_t n_records, n_sessions; // n_sessions: that begin
    struct xpl_iree_notes notes;    // what is damaged, events aside
    bool never_finished;            // file_length is 0: still being written, or the program died
    // Records follow the end that the header states: another session that was never finished.
    bool unfinished_behind;
    bool from_rows;                         // it was made of rows: struct xpl_iree_origin
    const struct xpl_iree_mapping *mapping; // of the file; may be NULL
    uint32_t has;                           // types of chunks that it has: 1 << enum xpl_iree_chunk
    // The first chunks of known types, in order, and how many there are: who is after one type need
    // not look for it among thousands of others.
    uint64_t n_places;
    struct xpl_iree_chunk_at places[XPL_IREE_PLACES]; // the last member: not set beyond n_places
};
static inline void xpl_iree_done(const struct xpl_iree_bundle *b, const void *p, size_t n) {
    if (b->mapping && b->mapping->done) b->mapping->done(p, n);
}

// Opens a bundle.  Fails only without a valid header: DATA_LOSS or INVALID_ARGUMENT, in IREE's
// words.  with_unfinished: also what follows the end that the header states, when it is records.
xpl_status_t xpl_iree_open(xpl_bytes_t file, bool with_unfinished, struct xpl_iree_bundle *ret,
                           struct xpl_error *err) XPL_NODISCARD;
// The same for a mapped file; the mapping lives as long as the bundle.
xpl_status_t xpl_iree_open_mapped(xpl_bytes_t file, bool with_unfinished,
                                  const struct xpl_iree_mapping *mapping,
                                  struct xpl_iree_bundle *ret, struct xpl_error *err) XPL_NODISCARD;
// Whether the bytes begin as a bundle does.
bool xpl_iree_sniff(xpl_bytes_t file);

struct xpl_iree_record {
    uint64_t offset, index; // in the file; among the records
    uint64_t record_length, payload_length, session_id, stream_id, event_id, executable_id;
    uint64_t command_buffer_id;
    uint32_t physical_device_ordinal, queue_ordinal;
    uint64_t chunk_flags, dropped_record_count;
    uint32_t session_status_code;
    uint16_t record_type;
    enum xpl_iree_chunk chunk; // XPL_IREE_NO_CHUNK for other records
    bool old_name;             // the content type is what IREE called it before May 2026
    xpl_str_t content_type, name;
    xpl_bytes_t payload;
    const struct xpl_iree_reading *reading; // the cursor's
};

// Bytes of the file that were read: those of the bundle from `at` on, n of them.
struct xpl_iree_window {
    uint8_t *bytes; // XPL_IREE_WINDOW
    uint64_t at;
    size_t n;
};

// How a bundle is read, and what is to be told of it.
struct xpl_iree_reading {
    struct xpl_iree_notes *damage; // gets damage among events, once for each place; may be NULL
    const struct xpl_iree_bundle *bundle;
    // Large chunks of events are read into it, where the mapping can do that: to copy them costs
    // less than to map their pages and to wait for them.  NULL: they are read where they are
    // mapped.
    struct xpl_iree_window *window;
};

// struct xpl_iree_cursor c = {.bundle = b};
struct xpl_iree_cursor {
    const struct xpl_iree_bundle *bundle;
    uint64_t at, index; // 0: the first record
    bool is_far;        // the record before is long
    uint8_t head[XPL_IREE_HEAD];
    const struct xpl_iree_reading *reading; // may be NULL
};
// The next record; false at the end.  Views in *ret point into the bundle, those of its names maybe
// into the cursor: they are good until the next call.
bool xpl_iree_next(struct xpl_iree_cursor *c, struct xpl_iree_record *ret);

static inline bool xpl_iree_truncated(const struct xpl_iree_record *r) {
    return (r->chunk_flags & XPL_IREE_CHUNK_TRUNCATED) != 0;
}

// The typed records of a chunk of a known type.
struct xpl_iree_items {
    const struct xpl_iree_chunk_type *type;
    bool by_size;  // each is as long as its struct, whatever its length says
    bool any_tail; // what its length members say is not held up to a record's length
    bool left_out; // what should follow a record is not there: XPL_IREE_CHUNK_LEFT_OUT
    const uint8_t *p;
    size_t left;
    const uint8_t *end; // of the payload in the bundle's bytes; `left` counts back from there
    bool in_file;       // they are read from the file, through reading->window
    bool in_window;     // p is in the window
    // Records that are just their struct are read here while more than this is left.
    size_t stop;
    uint64_t fixed; // bytes of such a record; UINT64_MAX, which no length is: these are others
    const struct xpl_iree_reading *reading;
};
struct xpl_iree_item { // good until the next one
    const uint8_t *p;  // type->size bytes, at least
    xpl_bytes_t tail;  // what follows them: strings, values, code, a trace
};
// Of a chunk of unknown type: none.
struct xpl_iree_items xpl_iree_items_of(const struct xpl_iree_record *r);
// The same, but in a payload that is whole structs nobody looks at their lengths: as IREE's
// statistics do, which refuse other payloads.
struct xpl_iree_items xpl_iree_items_by_size(const struct xpl_iree_record *r);
// The next one; false at the end, or where one is damaged.  *ret_reason (may be NULL) is then the
// reason, or NULL at the end.
#define XPL_IREE_QUICK static inline __attribute__((always_inline))
bool xpl_iree_item_slow(struct xpl_iree_items *it, struct xpl_iree_item *ret,
                        const char **ret_reason);
XPL_IREE_QUICK bool xpl_iree_item_next(struct xpl_iree_items *it, struct xpl_iree_item *ret,
                                       const char **ret_reason) {
    uint32_t length;
    if (it->left <= it->stop) return xpl_iree_item_slow(it, ret, ret_reason);
    memcpy(&length, it->p, sizeof length);
    if (length != it->fixed) return xpl_iree_item_slow(it, ret, ret_reason);
    // The step does not wait for the length: most of the time is waiting for memory.
    const size_t step = (size_t)it->fixed;
    *ret = (struct xpl_iree_item){it->p, {it->p + step, 0}};
    it->p += step, it->left -= step;
    if (ret_reason) *ret_reason = NULL;
    return true;
}

// Copies the fixed part into a struct of schema.h.
#define xpl_iree_copy(item, ret) memcpy((ret), (item)->p, sizeof *(ret))

#endif
