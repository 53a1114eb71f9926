// SPDX-License-Identifier: Apache-2.0
#include "base/text/near.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { MAX_LETTERS = 64, FAR = 1000, MIN_PREFIX = 3 };

static char lower(char c) {
    return (char)tolower((unsigned char)c);
}

// How many letters may be wrong.
static unsigned max_distance(size_t len) {
    return len < 3 ? 0 : len < 6 ? 1 : len < 9 ? 2 : 3;
}

static unsigned least(unsigned a, unsigned b) {
    return a < b ? a : b;
}

// Removes the common beginning and end of both.
static void strip_common(xpl_str_t *a, xpl_str_t *b) {
    while (a->len && b->len && lower(a->ptr[0]) == lower(b->ptr[0])) {
        a->ptr++, a->len--;
        b->ptr++, b->len--;
    }
    while (a->len && b->len && lower(a->ptr[a->len - 1]) == lower(b->ptr[b->len - 1]))
        a->len--, b->len--;
}

// Letters to insert, remove, replace or swap with their neighbour, each letter once (optimal string
// alignment); FAR when that is more than `max`, or the texts are long.
static unsigned distance(xpl_str_t a, xpl_str_t b, unsigned max) {
    strip_common(&a, &b);
    const size_t more = a.len > b.len ? a.len - b.len : b.len - a.len;
    if (more > max || a.len > MAX_LETTERS || b.len > MAX_LETTERS) return FAR;
    unsigned rows[3][MAX_LETTERS + 1]; // of the letters of `a`: this one, the last, the one before
    for (unsigned k = 0; k <= b.len; k++)
        rows[0][k] = k;
    for (unsigned i = 1; i <= a.len; i++) {
        unsigned *const now = rows[i % 3];
        const unsigned *const last = rows[(i + 2) % 3], *const before = rows[(i + 1) % 3];
        unsigned best = now[0] = i;
        for (unsigned k = 1; k <= b.len; k++) {
            const char x = lower(a.ptr[i - 1]), y = lower(b.ptr[k - 1]);
            now[k] = least(least(last[k], now[k - 1]) + 1, last[k - 1] + (x != y));
            if (i > 1 && k > 1 && x == lower(b.ptr[k - 2]) && y == lower(a.ptr[i - 2]))
                now[k] = least(now[k], before[k - 2] + 1);
            best = least(best, now[k]);
        }
        if (best > max) return FAR;
    }
    const unsigned d = rows[a.len % 3][b.len];
    return d > max ? FAR : d;
}

static bool begins(xpl_str_t name, xpl_str_t with) {
    if (with.len < MIN_PREFIX || name.len < with.len) return false;
    for (size_t i = 0; i < with.len; i++)
        if (lower(name.ptr[i]) != lower(with.ptr[i])) return false;
    return true;
}

// The distance of `given`, if it has no slash, to the part after the last slash of `name`: people
// leave out the directory in a session's name.  Adds one letter unless the part is equal.
static unsigned distance_of_end(xpl_str_t given, xpl_str_t name, unsigned max) {
    size_t at = name.len;
    while (at && name.ptr[at - 1] != '/')
        at--;
    if (!at || !given.len || memchr(given.ptr, '/', given.len)) return FAR;
    const unsigned d = distance(given, (xpl_str_t){name.ptr + at, name.len - at}, max);
    return d ? least(d + 1, FAR) : 0;
}

struct xpl_near xpl_near_begin(xpl_str_t given) {
    return (struct xpl_near){.given = given, .distance = FAR};
}

void xpl_near_add(struct xpl_near *n, xpl_str_t name) {
    xpl_near_add_part(n, name, name);
}

void xpl_near_add_part(struct xpl_near *n, xpl_str_t name, xpl_str_t part) {
    const unsigned max = max_distance(n->given.len);
    if (name.len == 0 || name.len > XPL_NEAR_TEXT - sizeof "; did you mean \"--\"?") return;
    unsigned d = least(distance(n->given, part, max), distance_of_end(n->given, part, max));
    // A mere prefix is never better than a misspelled name.
    if (d == FAR && begins(part, n->given)) d = max + 1;
    if (d >= n->distance) return;
    n->distance = d;
    n->best = name;
}

void xpl_near_add_list(struct xpl_near *n, const char *names) {
    for (const char *p = names; *p;) {
        const size_t len = strcspn(p, "|");
        xpl_near_add(n, (xpl_str_t){p, len});
        p += len + (p[len] == '|');
    }
}

// Writes the proposal, with `dashes` before the name.
static const char *write_text(const struct xpl_near *n, const char *dashes,
                              char buf[XPL_NEAR_TEXT]) {
    buf[0] = '\0';
    if (n->best.len)
        (void)snprintf(buf, XPL_NEAR_TEXT, "; did you mean \"%s%.*s\"?", dashes,
                       XPL_STR_FMT(n->best));
    return buf;
}

const char *xpl_near_text(const struct xpl_near *n, char buf[XPL_NEAR_TEXT]) {
    return write_text(n, "", buf);
}

const char *xpl_near_of(const char *given, const char *names, char buf[XPL_NEAR_TEXT]) {
    struct xpl_near n = xpl_near_begin(xpl_str_from(given));
    xpl_near_add_list(&n, names);
    return xpl_near_text(&n, buf);
}

const char *xpl_near_flag(const struct xpl_near *n, char buf[XPL_NEAR_TEXT]) {
    return write_text(n, "--", buf);
}
