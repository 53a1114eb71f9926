// SPDX-License-Identifier: Apache-2.0
// JSON that commands read and write: tools' answers, and documents that are made of them.
#ifndef XPL_CLI_DOCUMENT_DOCUMENT_H_
#define XPL_CLI_DOCUMENT_DOCUMENT_H_

#include <jansson.h>

#include "cli/args.h"

// Reads an answer; NULL after saying on stderr why it cannot be read.
json_t *xpl_document_read(const void *p, size_t n);
// A member as text, "" where there is none; the document's.
xpl_str_t xpl_document_text(const json_t *o, const char *key);
// The same for who needs no length.
const char *xpl_document_chars(const json_t *o, const char *key);
// A member as a number, 0 where there is none.
double xpl_document_real(const json_t *o, const char *key);
// Writes a document and the end of its line to -o or standard output.  Returns the exit status.
int xpl_document_write(const struct xpl_args *a, const json_t *all);

#endif
