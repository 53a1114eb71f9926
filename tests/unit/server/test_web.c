// SPDX-License-Identifier: Apache-2.0
// The embedded pages: sorted, complete, found by path.
#include "server/web/web.h"

#include <string.h>

#include "tests/check.h"

static void check_table(void) {
    CHECK(xpl_web_files_len > 20);
    for (size_t i = 0; i < xpl_web_files_len; i++) {
        const struct xpl_web_file *f = &xpl_web_files[i];
        CHECK(f->size > 0 && f->data);
        CHECK(strchr(f->type, '/') && f->path[0] != '/');
        CHECK(strlen(f->etag) > 10 && f->etag[0] == '"' && f->etag[strlen(f->etag) - 1] == '"');
        CHECK(i == 0 || strcmp(xpl_web_files[i - 1].path, f->path) < 0);
        CHECK(xpl_web_find(f->path, strlen(f->path)) == f);
        CHECK(!xpl_web_find(f->path, strlen(f->path) - 1));
    }
}

static void check_find(void) {
    const struct xpl_web_file *index = xpl_web_find("", 0);
    CHECK(index && strcmp(index->path, "index.html") == 0);
    CHECK(index == xpl_web_find("index.html?", 10)); // the length counts, not a NUL
    CHECK(memmem(index->data, index->size, "<script type=\"module\"", 21));
    CHECK(!xpl_web_find("index.html\0x", 12));
    CHECK(!xpl_web_find("../web.h", 8));
    CHECK(!xpl_web_find("lib", 3));
    CHECK(!xpl_web_find("zzz", 3));
    const struct xpl_web_file *script = xpl_web_find("trace/view.js", 13);
    CHECK(script && strcmp(script->type, "text/javascript; charset=utf-8") == 0);
    CHECK(strstr(XPL_WEB_CSP, "default-src 'none'") && !strstr(XPL_WEB_CSP, "unsafe"));
}

int main(void) {
    check_table();
    check_find();
    return 0;
}
