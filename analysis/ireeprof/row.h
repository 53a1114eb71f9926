// SPDX-License-Identifier: Apache-2.0
// Rows of reports: written once, as lines of JSON or as text for a person.
//
// A row is begun with its type, gets its members in order, and is ended.  JSON is valid whatever
// the bytes of names are: ill-formed UTF-8 becomes U+FFFD, NaN and infinities become null.  Output
// collects in a buffer that is handed to the sink when it is large, and when it is flushed; the
// first failure sticks.  One thread.
#ifndef XPL_ANALYSIS_IREEPROF_ROW_H_
#define XPL_ANALYSIS_IREEPROF_ROW_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "analysis/ireeprof/clock.h"
#include "analysis/ireeprof/schema.h"
#include "base/buf.h"
#include "base/str.h"

enum xpl_iree_rows_format { XPL_IREE_TEXT, XPL_IREE_JSONL };

// A member as somebody who writes it otherwise gets it (xpl_iree_rows.member).
enum xpl_iree_member_kind {
    XPL_IREE_MEMBER_U64,
    XPL_IREE_MEMBER_I64,
    XPL_IREE_MEMBER_BOOL,
    XPL_IREE_MEMBER_DOUBLE, // may be no number
    XPL_IREE_MEMBER_TEXT,
    XPL_IREE_MEMBER_NULL,
    XPL_IREE_MEMBER_OPEN, // what follows up to CLOSE is of the array or object
    XPL_IREE_MEMBER_CLOSE,
};
struct xpl_iree_member {
    const char *name; // NULL in arrays
    enum xpl_iree_member_kind kind;
    union {
        uint64_t u64;
        int64_t i64;
        bool is;
        double number;
        xpl_str_t text;
    };
};

struct xpl_iree_field;
struct xpl_iree_rows {
    enum xpl_iree_rows_format format;
    // Gets the members of rows in place of `out`; the format does not count.  NULL: rows are
    // written.
    void (*member)(void *ctx, const struct xpl_iree_member *m);
    // With `member`: gets members of a record by their table, from the first on, and returns how
    // many it took; `member` gets the next one. NULL: `member` gets all.
    size_t (*fields)(void *ctx, const struct xpl_iree_field *fields, size_t n,
                     const uint8_t *record);
    // With `member`: where a row begins, with its type, and where it ends.  NULL: not said.
    void (*begin)(void *ctx, const char *type);
    void (*end)(void *ctx);
    void *member_ctx; // of all four
    struct xpl_buf *out;
    // Takes what is in `out`, which is then empty, and returns false to end the report.  NULL: all
    // stays in `out`.
    bool (*write)(void *ctx, const void *bytes, size_t n);
    void *ctx;
    bool comma;  // a member stands before
    bool failed; // the sink, or `out` (too large, no memory)
};

// JSON rows begin with the member `key`, "type" for reports; NULL: with none.
void xpl_row_begin(struct xpl_iree_rows *r, const char *key, const char *type);
void xpl_row_end(struct xpl_iree_rows *r);
// Hands everything to the sink, when it is much: for what is written beside rows.
void xpl_iree_rows_flush_large(struct xpl_iree_rows *r);
// Hands everything to the sink.  False once failed.
bool xpl_iree_rows_flush(struct xpl_iree_rows *r);

// Members.  A NULL name is an element of the array that is open.
static inline void xpl_row_u64(struct xpl_iree_rows *r, const char *name, uint64_t v);
static inline void xpl_row_i64(struct xpl_iree_rows *r, const char *name, int64_t v);
void xpl_row_bool(struct xpl_iree_rows *r, const char *name, bool v);
void xpl_row_null(struct xpl_iree_rows *r, const char *name);
void xpl_row_str(struct xpl_iree_rows *r, const char *name, xpl_str_t v);
void xpl_row_text(struct xpl_iree_rows *r, const char *name, const char *v);
// With `decimals` (3, 6 or 9) digits after the point.
void xpl_row_fixed(struct xpl_iree_rows *r, const char *name, double v, int decimals);
// Shortest of 17 digits; null when it is no number.
void xpl_row_double(struct xpl_iree_rows *r, const char *name, double v);
void xpl_row_hash(struct xpl_iree_rows *r, const char *name, const uint64_t hash[2], bool present);
// bracket: '[' or '{', closed by the same call with ']' or '}'.
void xpl_row_open(struct xpl_iree_rows *r, const char *name, char bracket);
void xpl_row_close(struct xpl_iree_rows *r, char bracket);

// --- Members that are a record's, by a table ---

enum xpl_iree_field_kind {
    XPL_IREE_U32,
    XPL_IREE_U64,
    XPL_IREE_I32,
    XPL_IREE_I64,
    XPL_IREE_3U32,
    XPL_IREE_8U32,
    XPL_IREE_ENUM,    // u32, by name: .names
    XPL_IREE_BIT,     // whether .bit of the u32 is set
    XPL_IREE_CONST,   // .text
    XPL_IREE_OBJECT,  // begins an object
    XPL_IREE_END,     // ends it
    XPL_IREE_SPAN,    // ns from the i64, a time of the host, to the next one; 0: not a span
    XPL_IREE_IS_SPAN, // whether these two are a span
};
enum { XPL_IREE_LEAD = 48 };
struct xpl_iree_field {
    const char *name;
    const char *text;
    uint8_t name_length; // of the name; 0: to be counted
    // The name as it stands in JSON, `"name":`, with zeros behind it; its length, 0: not said.
    uint8_t lead_length;
    char lead[XPL_IREE_LEAD];
    enum xpl_iree_field_kind kind;
    enum xpl_iree_names names;
    uint32_t bit;
    size_t offset; // in the struct
};
// The length of a span; -1: not a span.
static inline int64_t xpl_iree_span_at(const uint8_t *p) {
    int64_t v[2];
    memcpy(v, p, sizeof v);
    return xpl_iree_host_valid(v[0], v[1]) ? v[1] - v[0] : -1;
}
void xpl_row_fields(struct xpl_iree_rows *r, const struct xpl_iree_field *fields, size_t n,
                    const void *record);
// Writes a number as text, at most XPL_IREE_DIGITS bytes, and returns its end.
enum { XPL_IREE_DIGITS = 20 };
uint8_t *xpl_iree_digits(uint8_t *p, uint64_t v);
// With the length of the name.
void xpl_row_number(struct xpl_iree_rows *r, const char *name, size_t length, uint64_t v);
void xpl_row_signed(struct xpl_iree_rows *r, const char *name, size_t length, int64_t v);
static inline void xpl_row_u64(struct xpl_iree_rows *r, const char *name, uint64_t v) {
    xpl_row_number(r, name, name ? strlen(name) : 0, v);
}
static inline void xpl_row_i64(struct xpl_iree_rows *r, const char *name, int64_t v) {
    xpl_row_signed(r, name, name ? strlen(name) : 0, v);
}
#define XPL_ROW_FIELDS(r, table, record)                                                           \
    xpl_row_fields((r), (table), sizeof(table) / sizeof *(table), (record))

#endif
