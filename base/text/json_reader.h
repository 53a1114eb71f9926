// SPDX-License-Identifier: Apache-2.0
// A pull reader of JSON: one token a call, no tree, no allocation for a token.  A text is read
// where it is, or piece by piece from a source through one buffer, so that any length takes the
// same memory.  Numbers stay text, so that decimals stay decimals.
//
//   struct xpl_json_reader r;
//   xpl_json_reader_init(&r, text, XPL_JSON_LENIENT);
//   while ((t = xpl_json_reader_next(&r)) > XPL_JSON_AT_END) ...
//
// Strict, it accepts what RFC 8259 does, but that it checks no UTF-8.  Lenient, it accepts as well
// what programs that concatenate texts write: NaN, Infinity, inf and other words; members and
// elements without a value; control characters in strings; backslashes that escape nothing; and
// quotes inside of strings, which end where blanks and one of , : } ] follow.
//
// Threads: a reader belongs to one.
#ifndef XPL_BASE_TEXT_JSON_READER_H_
#define XPL_BASE_TEXT_JSON_READER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

enum {
    XPL_JSON_READER_DEPTH = 64, // values within values
    // What a source's reader has in front of it at least, unless the text ends before: a token that
    // is longer is taken for the end of the text.
    XPL_JSON_READER_AHEAD = 1 << 20,
};

enum xpl_json_at {
    XPL_JSON_AT_ERROR, // xpl_json_reader.fault says what; the next call says so again
    XPL_JSON_AT_END,   // of the text, where it may end
    XPL_JSON_AT_OBJECT,
    XPL_JSON_AT_OBJECT_END,
    XPL_JSON_AT_ARRAY,
    XPL_JSON_AT_ARRAY_END,
    XPL_JSON_AT_KEY, // its value is the next token
    XPL_JSON_AT_STRING,
    XPL_JSON_AT_NUMBER,
    XPL_JSON_AT_WORD, // true, false, null; lenient also NaN and others, and "" for a missing value
};

enum {
    XPL_JSON_LENIENT = 1 << 0, // commas may be missing before objects, and be anywhere
    XPL_JSON_RAW = 1 << 1,     // any word is a value; strings may have any bytes and escapes
};

// The next bytes of the text: writes at most `room` (not 0) of them; *ret_n is 0 at the end only.
struct xpl_json_source {
    xpl_status_t (*read)(void *ctx, uint8_t *to, size_t room, size_t *ret_n, struct xpl_error *err);
    void *ctx;
    // Not NULL: all of the text, which stays valid and is read where it is.  `read`, with no room,
    // then says before each piece of it whether to go on.
    xpl_str_t here;
};

struct xpl_json_reader {
    const char *p, *end; // the rest of the loaded part of the text
    xpl_str_t text;      // of the last key, string (both with their escapes), number or word
    bool plain;          // `text` is ASCII and has no escapes
    // Members and elements: what may come next.
    bool comma, value, lenient, raw, held, ended;
    unsigned depth;
    uint64_t objects;  // by depth: an object, not an array
    const char *fault; // of XPL_JSON_AT_ERROR; NULL: none
    bool cut;          // the fault is that the text ends
    // Of a source.
    struct xpl_json_source source;
    struct xpl_error *err;
    xpl_status_t status; // what the source said last
    uint8_t *buffer;     // NULL: the text is there
    const char *begin;   // of the loaded part
    uint64_t base;       // its offset in the text
};

// Reads `text`, which stays valid; nothing is to be freed.
void xpl_json_reader_init(struct xpl_json_reader *r, xpl_str_t text, unsigned flags);
// Reads what `source` gives, whose first failure goes to `err` and is the end of the text.  Fails
// without memory.  The reader is to be ended by xpl_json_reader_fini.
xpl_status_t xpl_json_reader_open(struct xpl_json_reader *r, const struct xpl_json_source *source,
                                  unsigned flags, struct xpl_error *err) XPL_NODISCARD;
void xpl_json_reader_fini(struct xpl_json_reader *r);

// The next token.  Texts are valid until the next call, or, after xpl_json_reader_hold, until it is
// released.
enum xpl_json_at xpl_json_reader_next(struct xpl_json_reader *r);
// After AT_OBJECT or AT_ARRAY: reads behind its end, or, after AT_KEY, behind the value.  False
// after an error.
bool xpl_json_reader_skip(struct xpl_json_reader *r);
// As xpl_json_reader_skip after AT_OBJECT or AT_ARRAY, but reads brackets and strings only,
// quickly; r->text is the whole value.  Only while the reader is held.
bool xpl_json_reader_skip_raw(struct xpl_json_reader *r);
// Brings XPL_JSON_READER_AHEAD bytes here and keeps them where they are until it is released.
void xpl_json_reader_hold(struct xpl_json_reader *r);
static inline void xpl_json_reader_release(struct xpl_json_reader *r) {
    r->held = false;
}
// Goes on after an error at `p`, in the loaded part, in a container of that depth, where an element
// or the container's end may come.
void xpl_json_reader_resume(struct xpl_json_reader *r, const char *p, unsigned depth);
// Where the text is read, in bytes from its begin.
static inline uint64_t xpl_json_reader_offset(const struct xpl_json_reader *r) {
    return r->base + (uint64_t)(r->p - r->begin);
}

// Appends the character of the escape that `s` begins with, U+FFFD for half of a surrogate, and
// then *ret_half.  Returns the escape's length; 0: it is none, and nothing is appended.
size_t xpl_json_reader_escape(xpl_str_t s, struct xpl_buf *out, bool *ret_half);
// Appends a key or string without its escapes, as UTF-8: U+FFFD for bytes that are none, and for
// halves of surrogates.  A backslash that escapes nothing stays.  False if any of these was there.
bool xpl_json_reader_unescape(xpl_str_t text, struct xpl_buf *out);

#endif
