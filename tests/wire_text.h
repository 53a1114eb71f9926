// SPDX-License-Identifier: Apache-2.0
// Protobuf messages from text: NUMBER:VALUE, blanks between.  A value is a varint (7, -1), bytes
// ("text\001", octal escapes), a message ({...}), packed varints ([1,2]), a float (f1.5) or a
// double (d1.5).
#ifndef XPL_TESTS_WIRE_TEXT_H_
#define XPL_TESTS_WIRE_TEXT_H_

#include <ctype.h>
#include <stdlib.h>

#include "tests/xspace_maker.h"

static inline void wt_tag(struct xpl_buf *b, unsigned long num, unsigned type) {
    mk_varint(b, (uint64_t)num << 3 | type);
}

static inline const char *wt_bytes(struct xpl_buf *b, const char *p) {
    while (*p != '"') {
        CHECK(*p);
        if (*p != '\\') {
            xpl_buf_putc(b, *p++);
            continue;
        }
        CHECK(isdigit((unsigned char)p[1]) && isdigit((unsigned char)p[2]) &&
              isdigit((unsigned char)p[3]));
        xpl_buf_putc(b, (char)((p[1] - '0') * 64 + (p[2] - '0') * 8 + p[3] - '0'));
        p += 4;
    }
    return p + 1;
}

static inline const char *wt_ints(struct xpl_buf *b, const char *p) {
    while (*p != ']') {
        char *end;
        mk_varint(b, *p == '-' ? (uint64_t)strtoll(p, &end, 10) : strtoull(p, &end, 10));
        CHECK(end != p);
        p = end + (*end == ',');
    }
    return p + 1;
}

// Appends fields up to the end of the text or a closing brace; returns what follows.
static inline const char *wt_fields(struct xpl_buf *b, const char *p) {
    for (;;) {
        while (*p == ' ')
            p++;
        if (*p == 0 || *p == '}') return p;
        char *end;
        const unsigned long num = strtoul(p, &end, 10);
        CHECK(end != p && *end == ':');
        p = end + 1;
        struct xpl_buf inner = mk_open();
        const char kind = *p;
        if (kind == '"')
            p = wt_bytes(&inner, p + 1);
        else if (kind == '[')
            p = wt_ints(&inner, p + 1);
        else if (kind == '{')
            p = wt_fields(&inner, p + 1) + 1;
        else if (kind == 'f' || kind == 'd') {
            const double real = strtod(p + 1, &end);
            const float single = (float)real;
            wt_tag(b, num, kind == 'f' ? 5 : 1);
            xpl_buf_put(b, kind == 'f' ? (const void *)&single : &real, kind == 'f' ? 4 : 8);
            p = end;
        } else {
            wt_tag(b, num, 0);
            mk_varint(b, kind == '-' ? (uint64_t)strtoll(p, &end, 10) : strtoull(p, &end, 10));
            CHECK(end != p);
            p = end;
        }
        if (kind == '"' || kind == '[' || kind == '{') {
            wt_tag(b, num, 2);
            mk_varint(b, inner.n);
            xpl_buf_put(b, inner.p, inner.n);
        }
        xpl_buf_fini(&inner);
    }
}

static inline struct xpl_buf wt_message(const char *text) {
    struct xpl_buf b = mk_open();
    CHECK(*wt_fields(&b, text) == 0);
    CHECK(!b.failed);
    return b;
}

#endif
