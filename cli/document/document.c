// SPDX-License-Identifier: Apache-2.0
#include "cli/document/document.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/document/parse.h"

json_t *xpl_document_read(const void *p, size_t n) {
    json_error_t why;
    json_t *const all = xpl_document_parse(p, n, &why);
    if (!all) xpl_say("an answer cannot be read: %s", why.text);
    return all;
}

xpl_str_t xpl_document_text(const json_t *o, const char *key) {
    const json_t *const v = json_object_get(o, key);
    return json_is_string(v) ? (xpl_str_t){json_string_value(v), json_string_length(v)}
                             : XPL_STR("");
}

const char *xpl_document_chars(const json_t *o, const char *key) {
    return xpl_document_text(o, key).ptr;
}

double xpl_document_real(const json_t *o, const char *key) {
    return json_number_value(json_object_get(o, key));
}

int xpl_document_write(const struct xpl_args *a, const json_t *all) {
    char *const text = json_dumps(all, JSON_INDENT(1));
    const bool written = text && xpl_write_line(a, text, strlen(text));
    if (!text) (void)fputs("xplanectl: out of memory\n", stderr);
    free(text);
    return written ? XPL_EXIT_OK : XPL_EXIT_FAILED;
}
