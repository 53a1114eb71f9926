// SPDX-License-Identifier: Apache-2.0
// Where an answer goes: standard output, or a file (-o) that appears complete or not at all.
//
// A file is written beside its place under a hidden name, and renamed at the end: a full disk, a
// limit or a signal leaves what was there before.  What is no regular file (/dev/null, a pipe) is
// written in place.
#ifndef XPL_CLI_OUTPUT_H_
#define XPL_CLI_OUTPUT_H_

#include <stdbool.h>
#include <stdio.h>

struct xpl_output {
    FILE *f;
    const char *path; // for messages
    char *target;     // to rename to: the path, or what it links to; NULL: nothing to rename
    char *temp;
};

// `path` NULL or "-": standard output.  False after saying why on stderr.
bool xpl_output_open(struct xpl_output *o, const char *path);
// Writes what is left and gives the file its name.  False after saying why on stderr, and then no
// file is left.  Either this or xpl_output_abort ends the output.
bool xpl_output_commit(struct xpl_output *o);
// Gives up.
void xpl_output_abort(struct xpl_output *o);

// All of the above: what `print` prints of `what`.  It returns false when memory ran out.  False
// after saying why on stderr.
bool xpl_output_print(const char *path, bool (*print)(const void *what, FILE *out),
                      const void *what);

#endif
