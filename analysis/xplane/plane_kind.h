// SPDX-License-Identifier: Apache-2.0
// The kind of a plane, by its name.
#ifndef XPL_ANALYSIS_XPLANE_PLANE_KIND_H_
#define XPL_ANALYSIS_XPLANE_PLANE_KIND_H_

#include "analysis/xplane/xspace.h"

// Sets p->kind and p->core_id from p->name.
void xpl_plane_set_kind(struct xpl_plane *p);
// Of a GPU: whether a line has ops as they ran, and was not derived from them.
bool xpl_line_is_stream(const struct xpl_line *line);

#endif
