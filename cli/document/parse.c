// SPDX-License-Identifier: Apache-2.0
#include "cli/document/parse.h"

json_t *xpl_document_parse(const void *p, size_t n, json_error_t *why) {
    json_error_t own;
    json_error_t *const e = why ? why : &own;
    json_t *const all = json_loadb(p, n, JSON_ALLOW_NUL, e);
    if (all || json_error_code(e) != json_error_numeric_overflow) return all;
    return json_loadb(p, n, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, e);
}
