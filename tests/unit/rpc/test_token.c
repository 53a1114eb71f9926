// SPDX-License-Identifier: Apache-2.0
// Token files: their syntax, and which client a token identifies.
#include "rpc/credentials.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

static const struct {
    const char *text, *token;
    enum xpl_rpc_role role; // of the token
    const char *name;       // "": it is none of the file
} good[] = {
    {"first\n", "first", XPL_RPC_ROLE_ADMIN, "admin"},
    {"first", "first", XPL_RPC_ROLE_ADMIN, "admin"}, // as before there were roles
    {"first\r\n", "first", XPL_RPC_ROLE_ADMIN, "admin"},
    {"first\n", "firs", XPL_RPC_ROLE_NONE, ""},
    {"first\n", "first2", XPL_RPC_ROLE_NONE, ""},
    {"first\n", "firsT", XPL_RPC_ROLE_NONE, ""},
    {"first\n", "", XPL_RPC_ROLE_NONE, ""},
    {"first\n", "admin", XPL_RPC_ROLE_NONE, ""},
    {"# all\n\n  a read grafana \nb\tcapture\tci\r\nc admin\n", "a", XPL_RPC_ROLE_READ, "grafana"},
    {"# all\n\n  a read grafana \nb\tcapture\tci\r\nc admin\n", "b", XPL_RPC_ROLE_CAPTURE, "ci"},
    {"# all\n\n  a read grafana \nb\tcapture\tci\r\nc admin\n", "c", XPL_RPC_ROLE_ADMIN, "admin"},
    {"# all\n\n  a read grafana \nb\tcapture\tci\r\nc admin\n", "all", XPL_RPC_ROLE_NONE, ""},
    {"a\nb read A-Z_0.9@x\n", "b", XPL_RPC_ROLE_READ, "A-Z_0.9@x"},
    {"aaaa read long\na read short\n", "a", XPL_RPC_ROLE_READ, "short"},
    {"aaaa read long\na read short\n", "aa", XPL_RPC_ROLE_NONE, ""},
    {"a read 0123456789012345678901234567890\n", "a", XPL_RPC_ROLE_READ,
     "0123456789012345678901234567890"},
};

static void test_good(void) {
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct xpl_rpc_tokens *t = NULL;
        struct xpl_rpc_identity who;
        struct xpl_error err = {0};
        CHECK_EQ(xpl_rpc_tokens_parse(xpl_str_from(good[i].text), &t, &err), XPL_OK);
        CHECK(t);
        const bool found = xpl_rpc_tokens_find(t, xpl_str_from(good[i].token), &who);
        if (who.role != good[i].role) FAIL_TEST(good[i].text);
        CHECK_EQ(found, good[i].role != XPL_RPC_ROLE_NONE);
        CHECK(strcmp(who.name, good[i].name) == 0);
        xpl_rpc_tokens_free(t);
    }
}

static void test_bad(void) {
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"a reader\n", "line 1: the word after the token is not a role"},
        {"a Read\n", "line 1: the word after the token is not a role"},
        {"read a\n", "line 1: the word after the token is not a role"},
        {"a\nb\n", "line 2: a role is missing"},
        {"a\nold token\n", "line 2: the word after"}, // a second line counted for nothing before
        {"a read\n# b\nb admin x y\n", "line 3: after the role, one name"},
        {"a read n\"\n", "line 1: after the role, one name"},
        {"a read 01234567890123456789012345678901\n", "line 1: after the role, one name"},
        {"a read\nb read\na admin\n", "line 3: the token is there twice"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct xpl_rpc_tokens *t = NULL;
        struct xpl_error err = {0};
        CHECK_EQ(xpl_rpc_tokens_parse(xpl_str_from(bad[i].text), &t, &err), XPL_INVALID_ARGUMENT);
        CHECK(!t);
        if (!strstr(err.msg, bad[i].says)) FAIL_TEST(err.msg);
    }
    // The message may go to a log: it shows no word of the file, which can be a token.
    struct xpl_rpc_tokens *t = NULL;
    struct xpl_error err = {0};
    CHECK_EQ(xpl_rpc_tokens_parse(XPL_STR("admin s3cret"), &t, &err), XPL_INVALID_ARGUMENT);
    CHECK(!strstr(err.msg, "s3cret"));
}

static void test_edges(void) {
    static const char *const empty[] = {"", "\n", " \n\t\r\n", "# a read\n"};
    struct xpl_rpc_tokens *t = (struct xpl_rpc_tokens *)1;
    struct xpl_rpc_identity who;
    struct xpl_error err = {0};
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
        CHECK_EQ(xpl_rpc_tokens_parse(xpl_str_from(empty[i]), &t, &err), XPL_OK);
        CHECK(!t);
    }
    CHECK(xpl_rpc_tokens_find(NULL, XPL_STR("any"), &who)); // no token is needed
    CHECK_EQ(who.role, XPL_RPC_ROLE_ADMIN);
    CHECK(!who.name[0]);
    char text[XPL_RPC_TOKENS_MOST * 12 + 32];
    size_t n = 0;
    for (int i = 0; i < XPL_RPC_TOKENS_MOST; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "t%d read\n", i);
    CHECK_EQ(xpl_rpc_tokens_parse((xpl_str_t){text, n}, &t, &err), XPL_OK);
    CHECK(xpl_rpc_tokens_find(t, XPL_STR("t255"), &who));
    xpl_rpc_tokens_free(t);
    (void)snprintf(text + n, sizeof text - n, "more read\n");
    CHECK_EQ(xpl_rpc_tokens_parse(xpl_str_from(text), &t, &err), XPL_INVALID_ARGUMENT);
    // A method that states no role is an admin's, and a client without one may do nothing.
    CHECK(!xpl_rpc_role_may(XPL_RPC_ROLE_CAPTURE, XPL_RPC_ROLE_NONE));
    CHECK(xpl_rpc_role_may(XPL_RPC_ROLE_ADMIN, XPL_RPC_ROLE_NONE));
    CHECK(!xpl_rpc_role_may(XPL_RPC_ROLE_NONE, XPL_RPC_ROLE_READ));
}

int main(void) {
    test_good();
    test_bad();
    test_edges();
    return 0;
}
