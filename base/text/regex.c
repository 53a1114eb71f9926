// SPDX-License-Identifier: Apache-2.0
#include "base/text/regex.h"

#include <stdio.h>

#include "base/arena.h"
#include "base/text/regex_items.h"

enum {
    WORKSPACE = 4000,       // ints of the automaton: some 300 states at once
    RECURSIONS = 10000,     // of the automaton, into assertions; each is a separate search
    SEARCH_STEPS = 5000000, // of the automaton, from state to state: a second or so
    GROUP_STEPS = 100000,   // of the matcher that knows groups: some milliseconds
    GROUP_KIB = 4096,       // and its memory
    CHECK_EVERY = 8192,     // steps: two milliseconds or so
};

struct xpl_regex {
    pcre2_general_context *memory;
    pcre2_match_context *search, *group;
    pcre2_code *code;
    pcre2_match_data *match;
    struct xpl_exec *exec; // may be NULL
    unsigned steps;        // of the current search
    unsigned unchecked;    // steps since `exec` was asked
    char what[32];
    int workspace[WORKSPACE];
};

static void *get_memory(size_t n, void *arg) {
    (void)arg;
    return xpl_sys_alloc(n);
}

static void free_memory(void *p, void *arg) {
    (void)arg;
    xpl_sys_free(p);
}

static bool is_cancelled(const struct xpl_regex *r) {
    return r->exec && xpl_exec_cancelled(r->exec);
}

// PCRE2 bounds the automaton's memory, not its time: it begins anew at each place of a text, and
// follows all its states from there.  It calls this before each item of the expression.
static int on_step(pcre2_callout_block *block, void *arg) {
    struct xpl_regex *const r = arg;
    (void)block;
    if (++r->steps > SEARCH_STEPS) return PCRE2_ERROR_MATCHLIMIT;
    if (++r->unchecked < CHECK_EVERY) return 0;
    r->unchecked = 0;
    return is_cancelled(r) ? PCRE2_ERROR_CALLOUT : 0;
}

static bool make_contexts(struct xpl_regex *r) {
    r->memory = pcre2_general_context_create(get_memory, free_memory, NULL);
    r->search = r->memory ? pcre2_match_context_create(r->memory) : NULL;
    r->group = r->search ? pcre2_match_context_create(r->memory) : NULL;
    if (!r->group) return false;
    (void)pcre2_set_match_limit(r->search, RECURSIONS);
    (void)pcre2_set_callout(r->search, on_step, r);
    (void)pcre2_set_depth_limit(r->search, 100);
    (void)pcre2_set_heap_limit(r->search, GROUP_KIB);
    (void)pcre2_set_match_limit(r->group, GROUP_STEPS);
    (void)pcre2_set_heap_limit(r->group, GROUP_KIB);
    return true;
}

// Room for any message, cut off where it is longer than an error may be.
static void message_of(int code, char out[160]) {
    if (pcre2_get_error_message(code, (PCRE2_UCHAR *)out, 160) == PCRE2_ERROR_BADDATA) out[0] = 0;
}

static xpl_status_t compile(struct xpl_regex *r, xpl_str_t pattern, struct xpl_error *err) {
    int code = 0;
    size_t at = 0;
    char why[160] = "";
    if (pattern.len > XPL_REGEX_MAX)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "%s: longer than %d characters", r->what,
                         XPL_REGEX_MAX);
    pcre2_compile_context *const c = pcre2_compile_context_create(r->memory);
    if (!c) XPL_RETURN_OOM(err, r->what);
    (void)pcre2_set_parens_nest_limit(c, 50);
    r->code = pcre2_compile((PCRE2_SPTR)(pattern.len ? pattern.ptr : ""), pattern.len,
                            PCRE2_NEVER_UTF | PCRE2_NEVER_UCP | PCRE2_NEVER_BACKSLASH_C |
                                PCRE2_DOLLAR_ENDONLY | PCRE2_AUTO_CALLOUT,
                            &code, &at, c);
    pcre2_compile_context_free(c);
    if (r->code) return XPL_OK;
    if (code == PCRE2_ERROR_HEAP_FAILED || code == PCRE2_ERROR_NOMEMORY)
        XPL_RETURN_OOM(err, r->what);
    message_of(code, why);
    XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "%s: character %zu: %s", r->what, at + 1, why);
}

static xpl_status_t refuse_unknown(const struct xpl_regex *r, xpl_str_t pattern,
                                   struct xpl_error *err) {
    struct xpl_regex_item item;
    if (!xpl_regex_item_find(r->code, pattern, &item)) return XPL_OK;
    XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "%s: character %zu: %s%.*s is not supported%s",
                     r->what, item.at + 1, item.kind, XPL_STR_FMT(xpl_str_sub(item.text, 0, 40)),
                     item.why);
}

xpl_status_t xpl_regex_new(xpl_str_t pattern, const char *what, struct xpl_exec *exec,
                           struct xpl_regex **ret, struct xpl_error *err) {
    struct xpl_regex *const r = xpl_sys_alloc(sizeof *r);
    if (!r) XPL_RETURN_OOM(err, what);
    *r = (struct xpl_regex){.exec = exec};
    (void)snprintf(r->what, sizeof r->what, "%s", what);
    xpl_status_t st = XPL_OK;
    if (!make_contexts(r))
        st = xpl_error_set(err, XPL_RESOURCE_EXHAUSTED, __FILE__, __LINE__, UINT64_MAX,
                           "%s: out of memory", what);
    if (st == XPL_OK) st = compile(r, pattern, err);
    if (st == XPL_OK && !(r->match = pcre2_match_data_create(2, r->memory)))
        st = xpl_error_set(err, XPL_RESOURCE_EXHAUSTED, __FILE__, __LINE__, UINT64_MAX,
                           "%s: out of memory", what);
    if (st == XPL_OK) st = refuse_unknown(r, pattern, err);
    if (st == XPL_OK)
        *ret = r;
    else
        xpl_regex_free(r);
    return st;
}

void xpl_regex_free(struct xpl_regex *r) {
    if (!r) return;
    pcre2_match_data_free(r->match);
    pcre2_code_free(r->code);
    pcre2_match_context_free(r->group);
    pcre2_match_context_free(r->search);
    pcre2_general_context_free(r->memory);
    xpl_sys_free(r);
}

static xpl_status_t no_answer(const struct xpl_regex *r, int code, struct xpl_error *err) {
    char why[160];
    if (code == PCRE2_ERROR_NOMEMORY) XPL_RETURN_OOM(err, r->what);
    if (code == PCRE2_ERROR_CALLOUT) XPL_RETURN_ERROR(err, XPL_CANCELLED, "cancelled");
    message_of(code, why);
    XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                     "%s: too much to search a name for: %s; write a simpler expression", r->what,
                     why);
}

static size_t searched(xpl_str_t text) {
    return text.len < XPL_REGEX_TEXT_MAX ? text.len : XPL_REGEX_TEXT_MAX;
}

xpl_status_t xpl_regex_search(struct xpl_regex *r, xpl_str_t text, bool *ret,
                              struct xpl_error *err) {
    r->steps = 0;
    const int rc =
        pcre2_dfa_match(r->code, (PCRE2_SPTR)(text.len ? text.ptr : ""), searched(text), 0,
                        PCRE2_DFA_SHORTEST, r->match, r->search, r->workspace, WORKSPACE);
    *ret = rc >= 0;
    return rc >= 0 || rc == PCRE2_ERROR_NOMATCH ? XPL_OK : no_answer(r, rc, err);
}

xpl_status_t xpl_regex_group(struct xpl_regex *r, xpl_str_t text, bool *ret, xpl_str_t *group,
                             struct xpl_error *err) {
    const char *const p = text.len ? text.ptr : "";
    if (is_cancelled(r)) return no_answer(r, PCRE2_ERROR_CALLOUT, err); // GROUP_STEPS are few
    const int rc = pcre2_match(r->code, (PCRE2_SPTR)p, searched(text), 0, 0, r->match, r->group);
    *ret = rc >= 0;
    if (rc == PCRE2_ERROR_NOMATCH) return XPL_OK;
    if (rc < 0) return no_answer(r, rc, err);
    uint32_t groups = 0;
    (void)pcre2_pattern_info(r->code, PCRE2_INFO_CAPTURECOUNT, &groups);
    const size_t *const at = pcre2_get_ovector_pointer(r->match);
    const size_t k = groups ? 2 : 0;
    // rc is one more than the last group that took part, 0 when not all fit.
    *group = (xpl_str_t){p, 0};
    if ((groups && rc == 1) || at[k] == PCRE2_UNSET || at[k + 1] < at[k]) return XPL_OK;
    *group = (xpl_str_t){p + at[k], at[k + 1] - at[k]};
    return XPL_OK;
}
