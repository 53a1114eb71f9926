// SPDX-License-Identifier: Apache-2.0
// PCRE2 reports an item that its automaton does not support only when a search reaches it, which
// depends on the texts, and without its position.  So this file checks the compiled items of an
// expression.
#include "base/text/regex_items.h"

#include <stdio.h>
#include <string.h>

#include "base/text/parse.h"

enum { MOST_GROUPS = 512, MOST_OPEN = 64 }; // an expression has 1000 bytes, and nests 50 deep
enum { AUTOMATIC = 255 };                   // number of a callout

// A pair of parentheses that is open.
struct open {
    unsigned number;      // of the group; 0: it has none
    bool resets;          // (?|: each alternative counts from the same number on
    unsigned first, last; // of these: before the first group, and the greatest so far
};

struct finding {
    const pcre2_code *code;
    xpl_str_t pattern;
    size_t
        next; // items before it were checked: of (a){2} PCRE2 reports the second a like the first
    bool has_back;
    unsigned n_groups; // that have begun
    bool complete[MOST_GROUPS];
    struct open open[MOST_OPEN];
    unsigned n_open;
    struct xpl_regex_item *ret;
};

static bool starts(xpl_str_t s, const char *with) {
    return xpl_str_starts(s, xpl_str_from(with));
}

static char at(xpl_str_t s, size_t i) {
    return i < s.len ? s.ptr[i] : '\0';
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// Between \Q and \E each character is literal.
static bool is_quoted(xpl_str_t pattern, size_t place) {
    bool quoted = false;
    for (size_t i = 0; i < place; i++) {
        if (pattern.ptr[i] != '\\') continue;
        if (at(pattern, i + 1) == (quoted ? 'E' : 'Q'))
            quoted = !quoted;
        else if (quoted)
            continue;
        i++;
    }
    return quoted;
}

// ---- items ----

static bool refers_back(xpl_str_t item) {
    if (starts(item, "(?P=") || starts(item, "\\k")) return true;
    if (starts(item, "\\g")) return !starts(item, "\\g<") && !starts(item, "\\g'"); // calls
    return at(item, 0) == '\\' && is_digit(at(item, 1)) && at(item, 1) != '0';
}

static bool is_unknown(xpl_str_t item) {
    // Assertions that go back into themselves, and runs of one script.
    static const char *const groups[] = {"(?*",   "(?<*",   "(*napl",       "(*non_atomic",
                                         "(*sr:", "(*asr:", "(*script_run", "(*atomic_script_run"};
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        if (starts(item, groups[i])) return true;
    if (starts(item, "(?("))
        return !starts(item, "(?(DEFINE)") && !starts(item, "(?(R)") && !starts(item, "(?(VERSION");
    if (starts(item, "(*")) // a verb; names in lower case are groups
        return !(at(item, 2) >= 'a' && at(item, 2) <= 'z') && item.len > 2 &&
               !starts(item, "(*F)") && !starts(item, "(*FAIL)");
    return starts(item, "\\K");
}

// ---- calls ----

// A group that is called within itself may call itself without end at the same place of a text.
// One that is complete before the call cannot, nor can those that it calls.

// The name of the group that an item calls, as "1", "-1" or "name", of (?R) "R"; false: it calls
// none.
static bool get_called(xpl_str_t item, xpl_str_t *ret) {
    const char c = at(item, 2), after = at(item, 3);
    size_t begin = 2;
    if (starts(item, "(?&") || starts(item, "\\g<") || starts(item, "\\g'"))
        begin = 3;
    else if (starts(item, "(?P>"))
        begin = 4;
    else if (!starts(item, "(?R)") &&
             !(starts(item, "(?") && (is_digit(c) || ((c == '+' || c == '-') && is_digit(after)))))
        return false;
    size_t end = begin;
    while (end < item.len && !strchr(")>'", item.ptr[end]))
        end++;
    *ret = (xpl_str_t){item.ptr + begin, end - begin};
    return true;
}

// The group's number; 0: the whole expression, or it is not known.
static unsigned number_of(const struct finding *f, xpl_str_t called) {
    char name[128];
    int64_t n;
    const char sign = at(called, 0);
    const xpl_str_t digits = xpl_str_sub(called, sign == '+' || sign == '-', SIZE_MAX);
    if (xpl_parse_int(digits, 0, MOST_GROUPS, &n)) {
        if (sign == '-') return n <= f->n_groups ? f->n_groups + 1 - (unsigned)n : 0;
        return (unsigned)n + (sign == '+' ? f->n_groups : 0);
    }
    if (called.len >= sizeof name) return 0;
    (void)snprintf(name, sizeof name, "%.*s", XPL_STR_FMT(called));
    const int found = pcre2_substring_number_from_name(f->code, (PCRE2_SPTR)name);
    return found > 0 ? (unsigned)found : 0;
}

static bool calls_itself(const struct finding *f, xpl_str_t item) {
    xpl_str_t called;
    if (!get_called(item, &called)) return false;
    const unsigned n = number_of(f, called);
    return starts(item, "(?R)") || !n || n >= MOST_GROUPS || !f->complete[n];
}

// ---- groups ----

// Whether the item opens a pair of parentheses, and one of a group that has a number.
static bool opens(xpl_str_t item, bool *ret_numbered) {
    const char c = at(item, 2), after = at(item, 3);
    *ret_numbered = false;
    if (at(item, 0) != '(') return false;
    if (at(item, 1) == '*') return c >= 'a' && c <= 'z';
    *ret_numbered = at(item, 1) != '?' || c == '\'' || (c == 'P' && after == '<') ||
                    (c == '<' && after != '=' && after != '!');
    if (*ret_numbered || item.len == 2 || c == '(' || (c && strchr(":|>=!*<", c))) return true;
    size_t end = 2; // (?i:  but not  (?i)
    while (end < item.len && item.ptr[end] != ')' && item.ptr[end] != ':')
        end++;
    return c != 'C' && at(item, end) == ':';
}

static void open_group(struct finding *f, xpl_str_t item, bool numbered) {
    if (f->n_open == MOST_OPEN) return;
    if (numbered) f->n_groups++;
    f->open[f->n_open++] = (struct open){.number = numbered ? f->n_groups : 0,
                                         .resets = starts(item, "(?|"),
                                         .first = f->n_groups,
                                         .last = f->n_groups};
}

static void end_alternative(struct finding *f, bool is_last) {
    struct open *const o = &f->open[f->n_open - 1];
    if (!o->resets) return;
    if (f->n_groups > o->last) o->last = f->n_groups;
    f->n_groups = is_last ? o->last : o->first;
}

static void follow_groups(struct finding *f, xpl_str_t item) {
    bool numbered;
    if (opens(item, &numbered)) {
        open_group(f, item, numbered);
    } else if (f->n_open && at(item, 0) == '|') {
        end_alternative(f, false);
    } else if (f->n_open && at(item, 0) == ')') {
        end_alternative(f, true);
        const unsigned n = f->open[--f->n_open].number;
        if (n < MOST_GROUPS) f->complete[n] = true;
    }
}

// ---- all ----

static int refuse_item(const struct finding *f, xpl_str_t item, const char *kind, const char *why) {
    *f->ret = (struct xpl_regex_item){
        .text = item, .at = (size_t)(item.ptr - f->pattern.ptr), .kind = kind, .why = why};
    return 1; // no further
}

// A callout in the expression replaces the automatic one, and PCRE2 reports it with the position
// after it.
static int refuse_callout(const struct finding *f, const pcre2_callout_enumerate_block *block) {
    const xpl_str_t before = xpl_str_sub(f->pattern, 0, block->pattern_position);
    size_t begin = block->callout_string ? block->callout_string_offset - 1 : before.len;
    while (begin && !starts(xpl_str_sub(before, begin, SIZE_MAX), "(?C"))
        begin--;
    return refuse_item(f, xpl_str_sub(before, begin, SIZE_MAX), "", "");
}

static int on_item(pcre2_callout_enumerate_block *block, void *arg) {
    struct finding *const f = arg;
    const size_t begin = block->pattern_position;
    if (block->callout_number != AUTOMATIC || block->callout_string)
        return refuse_callout(f, block);
    // After options at the end of an expression, PCRE2 reports an item beyond the end.
    if (begin < f->next || begin >= f->pattern.len || !block->next_item_length) return 0;
    const size_t most = f->pattern.len - begin, length = block->next_item_length;
    const xpl_str_t item = {f->pattern.ptr + begin, length < most ? length : most};
    f->next = begin + 1;
    if (is_quoted(f->pattern, begin)) return 0;
    if (f->has_back && refers_back(item))
        return refuse_item(f, item, "the backreference ", ": it can take forever");
    if (is_unknown(item)) return refuse_item(f, item, "", "");
    if (calls_itself(f, item))
        return refuse_item(f, item, "", ": a group can only be called after its end");
    follow_groups(f, item);
    return 0;
}

bool xpl_regex_item_find(const pcre2_code *code, xpl_str_t pattern, struct xpl_regex_item *ret) {
    uint32_t back = 0;
    (void)pcre2_pattern_info(code, PCRE2_INFO_BACKREFMAX, &back);
    *ret = (struct xpl_regex_item){.kind = "", .why = ""};
    // Without a reference \1 is a character.
    struct finding f = {.code = code, .pattern = pattern, .has_back = back > 0, .ret = ret};
    (void)pcre2_callout_enumerate(code, on_item, &f);
    return ret->text.len > 0;
}
