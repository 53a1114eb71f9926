// SPDX-License-Identifier: Apache-2.0
// The one reader of JSON, for who says himself what is wrong with it.
#ifndef XPL_CLI_DOCUMENT_PARSE_H_
#define XPL_CLI_DOCUMENT_PARSE_H_

#include <jansson.h>

// NULL: it is no JSON, and *why says what is wrong; NULL as `why`: nobody asks.  Texts may have
// bytes of zero.  Numbers may be of any size: where one is too large for an integer, all are reals.
json_t *xpl_document_parse(const void *p, size_t n, json_error_t *why);

#endif
