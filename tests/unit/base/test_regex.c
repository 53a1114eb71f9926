// SPDX-License-Identifier: Apache-2.0
// Regular expressions: matches, refusals with their position, and none takes forever.
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/text/regex.h"
#include "tests/check.h"

static struct xpl_regex *good(const char *pattern) {
    struct xpl_regex *r = NULL;
    struct xpl_error err = {0};
    CHECK_EQ(xpl_regex_new(xpl_str_from(pattern), "match", NULL, &r, &err), XPL_OK);
    return r;
}

static bool finds(const char *pattern, const char *text) {
    struct xpl_regex *const r = good(pattern);
    struct xpl_error err = {0};
    bool found = false;
    CHECK_EQ(xpl_regex_search(r, xpl_str_from(text), &found, &err), XPL_OK);
    xpl_regex_free(r);
    return found;
}

static void searches(void) {
    CHECK(finds("fusion", "loop_fusion.3"));
    CHECK(!finds("^fusion", "loop_fusion.3"));
    CHECK(finds("fusion\\.[0-9]+$", "loop_fusion.3"));
    CHECK(!finds("Fusion", "fusion"));
    CHECK(finds("(?i)Fusion", "fusion"));
    CHECK(finds("", ""));
    CHECK(finds("a|b", "xxb"));
    CHECK(finds("jit_(?!f)", "jit_g"));
    CHECK(!finds("jit_(?!f)", "jit_f"));
    CHECK(finds("x(*FAIL)|(*atomic:a)", "a"));
    CHECK(finds("(?(DEFINE)(?<x>a))(?&x)\\g<x>", "aa"));
    CHECK(finds("(?(?=a)a|b)", "b"));
    CHECK(finds("^\\Q(\\)\\K\\E(a)\\\\(?1)$", "(\\)\\Ka\\a"));
    // Calls of groups that are complete, by all that names them.
    CHECK(finds("^(a)(?1)(?-1)\\g<1>\\g'-1'$", "aaaaa"));
    CHECK(finds("^(?i:x)(?i)(?'n'a)(?:b)(?P>n)(?&n)(?-i)$", "xabaa"));
    CHECK(finds("^(?|(a)|(b(c)))(d){2,3}(?2)(?3)$", "bcddcd"));
    CHECK(finds("^(?(?=(a))a|b)(?>(?<!x)(c){0})(?1)(?2)$", "aac"));
    CHECK(finds("(?x) ^ ( a # ) (\n ) (*atomic:b) (?1) $", "aba"));
    CHECK(finds("[\\1]\\\\1", "\1\\1")); // no group, so none is referred to
}

static void refuses(const char *pattern, const char *message) {
    struct xpl_regex *r = NULL;
    struct xpl_error err = {0};
    CHECK_EQ(xpl_regex_new(xpl_str_from(pattern), "match", NULL, &r, &err), XPL_INVALID_ARGUMENT);
    CHECK(r == NULL);
    if (!strstr(err.msg, message)) CHECK_STR(xpl_str_from(err.msg), message);
}

static void bad_ones(void) {
    refuses("jit_(f", "match: character 7: missing closing parenthesis");
    refuses("a[b", "match: character 4: missing terminating ]");
    refuses("*", "match: character 1: quantifier does not follow");
    refuses("(a)\\1", "match: character 4: the backreference \\1 is not supported");
    refuses("(?<n>a)b\\k<n>", "match: character 9: the backreference \\k<n> is not supported");
    refuses("(a)(\\g{1})*", "match: character 5: the backreference \\g{1} is not supported");
    refuses("(?<n>a)(?P=n)", "match: character 8: the backreference (?P=n) is not supported");
    refuses("(a)?(?(1)b|c)", "match: character 5: (?(1) is not supported");
    refuses("a(?(R1)b|c)(x)", "match: character 2: (?(R1) is not supported");
    refuses("ab\\K", "match: character 3: \\K is not supported");
    refuses("a(*SKIP)b", "match: character 2: (*SKIP) is not supported");
    refuses("(a|(?R)b)+", "match: character 4: (?R) is not supported: a group can only be");
    refuses("a\\Q(?R)\\E(?<R>b)(?R)", "match: character 17: (?R) is not supported");
    refuses("(a\\Q)\\E(?1))", "match: character 8: (?1) is not supported");
    refuses("a(?0)", "match: character 2: (?0) is not supported");
    refuses("a\\g<0>?", "match: character 2: \\g<0>? is not supported");
    refuses("(?:a)(b)(?i:(c(?2)?))", "match: character 15: (?2)? is not supported");
    refuses("(a(?-1)?)", "match: character 3: (?-1)? is not supported");
    refuses("(?+1)(a)", "match: character 1: (?+1) is not supported");
    refuses("(?<n>a|(?&n)b)", "match: character 8: (?&n) is not supported");
    refuses("(?'n'a|(?P>n)b)", "match: character 8: (?P>n) is not supported");
    refuses("(?P<n>a|\\g'n'b)", "match: character 9: \\g'n' is not supported");
    refuses("(?(DEFINE)(?<x>a(?&y)?)(?<y>b(?&x)?))(?&x)", "match: character 17: (?&y)? is not");
    refuses("(?|(a)|(b))(c(?2))", "match: character 14: (?2) is not supported");
    refuses("ab(?C1)c", "match: character 3: (?C1) is not supported");
    refuses("a(?C{x(?C})b", "match: character 2: (?C{x(?C}) is not supported");
    refuses("a(?*b)", "match: character 2: (?* is not supported");
    refuses("(*asr:b)", "match: character 1: (*asr: is not supported");
    char *const lengthy = malloc(XPL_REGEX_MAX + 2);
    CHECK(lengthy != NULL);
    memset(lengthy, 'a', XPL_REGEX_MAX + 1);
    lengthy[XPL_REGEX_MAX + 1] = 0;
    refuses(lengthy, "longer than 1000 characters");
    memset(lengthy, '(', 60);
    lengthy[60] = 0;
    refuses(lengthy, "nested");
    free(lengthy);
}

// Nothing is read behind an expression, which need not end with a NUL.
static void ends(void) {
    static const char pattern[] = "(?i:a)(?i)(b)(?i-x)";
    const size_t n = sizeof pattern - 1;
    char *const exact = malloc(n);
    struct xpl_regex *r = NULL;
    struct xpl_error err = {0};
    CHECK(exact != NULL);
    memcpy(exact, pattern, n);
    CHECK_OK(xpl_regex_new((xpl_str_t){exact, n}, "match", NULL, &r, &err), &err);
    xpl_regex_free(r);
    free(exact);
}

static void groups(void) {
    struct xpl_regex *r = good("jit_autotune_fn_([0-9]+)");
    struct xpl_error err = {0};
    bool found = false;
    xpl_str_t group;
    CHECK_EQ(xpl_regex_group(r, XPL_STR("jit_autotune_fn_12(7)"), &found, &group, &err), XPL_OK);
    CHECK(found);
    CHECK_STR(group, "12");
    CHECK_EQ(xpl_regex_group(r, XPL_STR("jit_autotune_fn_"), &found, &group, &err), XPL_OK);
    CHECK(!found);
    xpl_regex_free(r);
    r = good("ab+");
    CHECK_EQ(xpl_regex_group(r, XPL_STR("xabbc"), &found, &group, &err), XPL_OK);
    CHECK_STR(group, "abb");
    xpl_regex_free(r);
    r = good("a(x)?(b)(c)(d)");
    CHECK_EQ(xpl_regex_group(r, XPL_STR("abcd"), &found, &group, &err), XPL_OK);
    CHECK(found);
    CHECK_STR(group, "");
    xpl_regex_free(r);
}

// What takes other engines 2^n steps: the automaton answers, and the matcher of groups gives up.
static void evil_ones(void) {
    static const char *const patterns[] = {"^(a+)+$",
                                           "^(a|aa)+$",
                                           "(a*)*b",
                                           "(.*a){20}$",
                                           "^(([a-z])+.)+[A-Z]([a-z])+$",
                                           "(?=(a+)+b)a",
                                           "(a?){50}a{50}$",
                                           ("(?<a>a?)(?<b>(?&a)(?&a))(?<c>(?&b)(?&b))(?<d>(?&c)"
                                            "(?&c))(?<e>(?&d)(?&d))(?<f>(?&e)(?&e))+$")};
    char text[XPL_REGEX_TEXT_MAX + 1];
    memset(text, 'a', sizeof text);
    text[sizeof text - 2] = '!', text[sizeof text - 1] = 0;
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        struct xpl_regex *const r = good(patterns[i]);
        struct xpl_error err = {0};
        bool found;
        xpl_str_t group;
        const clock_t begin = clock(); // of the processor: the machine may be busy
        const xpl_status_t st = xpl_regex_search(r, xpl_str_from(text), &found, &err);
        CHECK(st == XPL_OK || st == XPL_INVALID_ARGUMENT);
        const xpl_status_t grouped = xpl_regex_group(r, xpl_str_from(text), &found, &group, &err);
        CHECK(grouped == XPL_OK || grouped == XPL_INVALID_ARGUMENT);
        CHECK((clock() - begin) / CLOCKS_PER_SEC < 20);
        xpl_regex_free(r);
    }
}

// The automaton, too: hundreds of states, from each of thousands of places.
static void many_states(void) {
    char text[XPL_REGEX_TEXT_MAX + 1];
    struct xpl_error err = {0};
    bool found;
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = 0;
    struct xpl_regex *const r = good("(?:[ab]?){90}[xy]");
    CHECK_STATUS(xpl_regex_search(r, xpl_str_from(text), &found, &err), XPL_INVALID_ARGUMENT, &err);
    text[200] = 0; // the next search has its own steps
    CHECK_OK(xpl_regex_search(r, xpl_str_from(text), &found, &err), &err);
    CHECK(!found);
    xpl_regex_free(r);
}

struct stopping {
    struct xpl_exec exec;
    unsigned asked, after; // says so when it was asked `after` times
};

static bool stops(struct xpl_exec *e) {
    struct stopping *const s = (struct stopping *)e;
    return s->asked++ >= s->after;
}

// Somebody asks to give up within a search that takes long, between many that do not, and before
// one for a group.
static void cancelled(void) {
    char text[XPL_REGEX_TEXT_MAX + 1];
    struct stopping s = {.exec = xpl_exec_serial(), .after = 3};
    struct xpl_regex *r = NULL;
    struct xpl_error err = {0};
    bool found;
    xpl_str_t group;
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = 0;
    s.exec.cancelled = stops;
    CHECK_OK(xpl_regex_new(XPL_STR("(?:[ab]?){90}[xy]"), "match", &s.exec, &r, &err), &err);
    CHECK_STATUS(xpl_regex_search(r, xpl_str_from(text), &found, &err), XPL_CANCELLED, &err);
    CHECK_EQ(s.asked, 4);
    CHECK_STATUS(xpl_regex_group(r, xpl_str_from(text), &found, &group, &err), XPL_CANCELLED, &err);
    s.asked = 0;
    unsigned n = 0;
    while (n < 100000 && xpl_regex_search(r, XPL_STR("aaaaaaaa"), &found, &err) == XPL_OK)
        n++;
    CHECK(n < 100000);
    CHECK_EQ(err.code, XPL_CANCELLED);
    xpl_regex_free(r);
}

int main(void) {
    cancelled();
    searches();
    bad_ones();
    ends();
    groups();
    evil_ones();
    many_states();
    return 0;
}
