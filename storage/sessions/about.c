// SPDX-License-Identifier: Apache-2.0
#include "storage/sessions/about.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/text/parse.h"
#include "storage/sessions/path.h"

enum { MAX_NOTE = 1 << 20, MAX_ASKED = 1024, MAX_TEXT = 300, MAX_MEMORY = 8 << 20 };
// Of the notes of a directory; more are not read.
enum { MAX_NOTES = 16 << 20, LEAST_NOTE = 4 << 10 };

bool xpl_about_is_note(xpl_str_t name) {
    static const size_t n_stem = sizeof "capture" - 1, n_tail = sizeof ".json" - 1;
    if (!xpl_str_starts(name, XPL_STR("capture")) || !xpl_str_ends(name, XPL_STR(".json")))
        return false;
    const xpl_str_t number = xpl_str_sub(name, n_stem, name.len - n_stem - n_tail);
    if (!number.len) return true;
    if (number.len < 2 || number.ptr[0] != '_' || number.ptr[1] == '0') return false;
    for (size_t i = 1; i < number.len; i++)
        if (number.ptr[i] < '0' || number.ptr[i] > '9') return false;
    return !xpl_str_eq(number, XPL_STR("_1"));
}

// ---- JSON, as far as notes need it ----

struct scan {
    const char *p, *end;
};

struct text {
    size_t n;
    char v[MAX_TEXT];
};

static bool is_text(const struct text *t, const char *z) {
    return xpl_str_eq((xpl_str_t){t->v, t->n}, xpl_str_from(z));
}

// Behind white space; NUL at the end.
static char next_char(struct scan *s) {
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\n' || *s->p == '\r'))
        s->p++;
    return s->p < s->end ? *s->p : '\0';
}

static bool eat(struct scan *s, char c) {
    if (next_char(s) != c) return false;
    s->p++;
    return true;
}

// A string without its backslashes: reasons have no escapes but those of quotes.
static bool eat_text(struct scan *s, struct text *ret) {
    ret->n = 0;
    if (!eat(s, '"')) return false;
    for (; s->p < s->end && *s->p != '"'; s->p++) {
        if (*s->p == '\\' && ++s->p == s->end) return false;
        if (ret->n < MAX_TEXT && (unsigned char)*s->p >= ' ') ret->v[ret->n++] = *s->p;
    }
    if (s->p == s->end) return false;
    s->p++;
    return true;
}

static bool skip_text(struct scan *s) {
    for (s->p++; s->p < s->end && *s->p != '"'; s->p++)
        if (*s->p == '\\') s->p++;
    if (s->p >= s->end) return false;
    s->p++;
    return true;
}

// Any value; brackets are counted, not matched.
static bool skip_value(struct scan *s) {
    size_t depth = 0;
    do {
        const char c = next_char(s);
        if (!c) return false;
        if (c == '"') {
            if (!skip_text(s)) return false;
            continue;
        }
        depth += c == '{' || c == '[';
        if ((c == '}' || c == ']') && depth-- == 0) return false;
        s->p++;
        const char *const word = depth ? "" : "+-.eE0123456789truefalsnl";
        while (s->p < s->end && c != ']' && c != '}' && *s->p && strchr(word, *s->p))
            s->p++;
    } while (depth);
    return true;
}

// Calls `member` for each key of an object; it reads the value.
static bool read_object(struct scan *s, bool (*member)(struct scan *, const struct text *, void *),
                        void *arg) {
    struct text key;
    if (!eat(s, '{')) return false;
    if (eat(s, '}')) return true;
    do
        if (!eat_text(s, &key) || !eat(s, ':') || !member(s, &key, arg)) return false;
    while (eat(s, ','));
    return eat(s, '}');
}

struct asked {
    struct text target, reason;
    bool stored;
};

static bool read_host_member(struct scan *s, const struct text *key, void *arg) {
    struct asked *const h = arg;
    struct text state;
    if (is_text(key, "target")) return eat_text(s, &h->target);
    if (is_text(key, "reason")) return eat_text(s, &h->reason);
    if (!is_text(key, "state")) return skip_value(s);
    if (!eat_text(s, &state)) return false;
    h->stored = is_text(&state, "stored");
    return true;
}

static bool keep_host(struct xpl_about *a, const struct asked *h) {
    struct xpl_asked_host *const slot = xpl_vec_push(&a->arena, &a->asked);
    if (!slot) return false;
    *slot = (struct xpl_asked_host){.stored = h->stored};
    return xpl_name_escape(&a->arena, (xpl_str_t){h->target.v, h->target.n}, &slot->target) &&
           xpl_name_escape(&a->arena, (xpl_str_t){h->reason.v, h->reason.n}, &slot->reason);
}

static bool read_member(struct scan *s, const struct text *key, void *arg) {
    struct xpl_about *const a = arg;
    if (!is_text(key, "hosts")) return skip_value(s);
    if (!eat(s, '[')) return false;
    if (eat(s, ']')) return true;
    do {
        struct asked h = {.stored = false};
        if (!read_object(s, read_host_member, &h)) return false;
        if (h.target.n && a->asked.n < MAX_ASKED && !keep_host(a, &h)) return false;
    } while (eat(s, ','));
    return eat(s, ']');
}

// ---- notes ----

void xpl_about_add(struct xpl_about **a, xpl_str_t note) {
    struct xpl_about *const to = *a ? *a : xpl_sys_alloc(sizeof *to);
    if (!to) return;
    if (!*a) {
        *to = (struct xpl_about){0};
        xpl_arena_init(&to->arena, MAX_MEMORY);
    }
    *a = to;
    const size_t cost = note.len < LEAST_NOTE ? LEAST_NOTE : note.len; // it was opened
    if (cost > MAX_NOTES - to->read) return;
    to->read += cost;
    struct scan s = {note.ptr, note.ptr + note.len};
    const size_t before = to->asked.n;
    if (!read_object(&s, read_member, to)) to->asked.n = before; // it is none, or is cut
}

void xpl_about_add_file(struct xpl_about **a, int fd, const char *name) {
    if (*a && (*a)->read > MAX_NOTES - MAX_NOTE) return; // without opening it
    const int file = openat(fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    if (file < 0) return;
    if (fstat(file, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 && st.st_size <= MAX_NOTE) {
        char *const text = xpl_sys_alloc((size_t)st.st_size);
        const ssize_t n = text ? pread(file, text, (size_t)st.st_size, 0) : -1;
        if (n > 0) xpl_about_add(a, (xpl_str_t){text, (size_t)n});
        xpl_sys_free(text);
    }
    (void)close(file);
}

// By target, those that gave a profile first, then as they were added.
static int by_target(const void *pa, const void *pb) {
    const struct xpl_asked_host *const a = *(struct xpl_asked_host *const *)pa,
                                       *const b = *(struct xpl_asked_host *const *)pb;
    const int c = xpl_str_cmp(a->target, b->target);
    if (c) return c;
    return a->stored != b->stored ? b->stored - a->stored : (a > b) - (a < b);
}

static bool copy_host(struct xpl_about *to, const struct xpl_asked_host *h) {
    struct xpl_asked_host *const slot = xpl_vec_push(&to->arena, &to->asked);
    if (!slot) return false;
    *slot = (struct xpl_asked_host){.stored = false};
    return xpl_arena_str(&to->arena, h->target, &slot->target) &&
           xpl_arena_str(&to->arena, h->reason, &slot->reason);
}

static bool copy_lost(struct xpl_about *all, struct xpl_about *to) {
    struct xpl_asked_host **const v = xpl_arena_array(&all->arena, all->asked.n, sizeof *v);
    bool ok = v != NULL;
    for (size_t i = 0; ok && i < all->asked.n; i++)
        v[i] = &all->asked.v[i];
    if (ok && all->asked.n) qsort(v, all->asked.n, sizeof *v, by_target);
    for (size_t i = 1; ok && i < all->asked.n; i++) // of one target only the first counts
        v[i]->stored |= xpl_str_eq(v[i]->target, v[i - 1]->target);
    for (size_t i = 0; ok && i < all->asked.n; i++)
        ok = all->asked.v[i].stored || copy_host(to, &all->asked.v[i]);
    return ok;
}

bool xpl_about_finish(struct xpl_about **a, struct xpl_arena_budget *budget) {
    struct xpl_about *const all = *a, *kept = all ? xpl_sys_alloc(sizeof *kept) : NULL;
    *a = NULL;
    if (kept) {
        *kept = (struct xpl_about){0};
        xpl_arena_init_part(&kept->arena, budget);
    }
    const bool ok = !all || (kept && copy_lost(all, kept));
    xpl_about_free(all);
    if (ok && kept && kept->asked.n)
        *a = kept;
    else
        xpl_about_free(kept);
    return ok;
}

bool xpl_about_eq(const struct xpl_about *a, const struct xpl_about *b) {
    const size_t n = a ? a->asked.n : 0;
    if (n != (b ? b->asked.n : 0)) return false;
    for (size_t i = 0; i < n; i++)
        if (!xpl_str_eq(a->asked.v[i].target, b->asked.v[i].target) ||
            !xpl_str_eq(a->asked.v[i].reason, b->asked.v[i].reason))
            return false;
    return true;
}

void xpl_about_free(struct xpl_about *a) {
    if (a) xpl_arena_fini(&a->arena);
    xpl_sys_free(a);
}

// ---- names ----

int64_t xpl_about_time_of_name(xpl_str_t name) {
    static const char form[] = "0000_00_00_00_00_00";
    int64_t v[6] = {0};
    const size_t n = sizeof form - 1;
    if (name.len < n || (name.len > n && name.ptr[name.len - n - 1] != '/')) return 0;
    const char *const at = name.ptr + name.len - n;
    for (size_t i = 0; i < n; i++)
        if (form[i] == '_' ? at[i] != '_' : at[i] < '0' || at[i] > '9') return 0;
    for (size_t i = 0, from = 0; i < 6; i++) {
        const size_t len = i ? 2 : 4;
        if (!xpl_parse_int((xpl_str_t){at + from, len}, 0, 9999, &v[i])) return 0;
        from += len + 1;
    }
    struct tm tm = {.tm_year = (int)v[0] - 1900,
                    .tm_mon = (int)v[1] - 1,
                    .tm_mday = (int)v[2],
                    .tm_hour = (int)v[3],
                    .tm_min = (int)v[4],
                    .tm_sec = (int)v[5],
                    .tm_isdst = -1};
    const bool valid = v[0] >= 1980 && v[1] >= 1 && v[1] <= 12 && v[2] >= 1 && v[2] <= 31 &&
                       v[3] < 24 && v[4] < 60 && v[5] <= 60;
    const time_t t = valid ? mktime(&tm) : -1;
    return t > 0 && t < INT64_MAX / 1000000000 ? (int64_t)t * 1000000000 : 0;
}
