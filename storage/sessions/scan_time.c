// SPDX-License-Identifier: Apache-2.0
// When the profiles of a directory were captured.
#include <limits.h>
#include <stdio.h>

#include "storage/sessions/catalogue_impl.h"

void xpl_scan_read_time(struct xpl_catalogue *c, struct xpl_dir *d) {
    size_t i = 0;
    while (i < d->n_files && d->files[i].rank) // of another format: compressed, or of another kind
        i++;
    const struct xpl_dir_file *const f = i < d->n_files ? &d->files[i] : NULL;
    if (!f) { // a file that comes back, unchanged, is read again
        d->captured_ns = 0;
        d->captured_of = (struct xpl_fingerprint){0};
    }
    if (!f || !c->o.captured_ns || c->root->objects ||
        xpl_fingerprint_eq(&f->fingerprint, &d->captured_of))
        return;
    char path[PATH_MAX];
    struct xpl_source *source = NULL;
    const int n = snprintf(path, sizeof path, "%s%s%s", d->parent ? d->path : "",
                           d->parent ? "/" : "", f->name);
    d->captured_ns = 0;
    d->captured_of = f->fingerprint;
    if (n < 0 || (size_t)n >= sizeof path ||
        xpl_source_open_inside(c->root->fd, path, c->root->links_root, 0, &source, NULL) != XPL_OK)
        return;
    const int64_t ns = c->o.captured_ns(xpl_source_bytes(source));
    if (xpl_source_verify(source, NULL) == XPL_OK) d->captured_ns = ns;
    xpl_source_free(source);
}
