// SPDX-License-Identifier: Apache-2.0
// The formats, one line each: XPL_FORMAT_ROW(id) stands for xpl_format_id in id.c of this folder,
// XPL_UNREAD_FORMAT_ROW(id) in unread.c.  Of files of different formats of one host, the format of
// the earlier line counts.  Included by formats.c, which defines the macros, and read by
// meson.build.
#ifndef XPL_FORMAT_ROW
#define XPL_FORMAT_ROW(id)
#define XPL_UNREAD_FORMAT_ROW(id)
#endif
XPL_FORMAT_ROW(xspace)
XPL_UNREAD_FORMAT_ROW(riegeli)
XPL_FORMAT_ROW(ireeprof)
XPL_FORMAT_ROW(kineto)
// Those that directories do not list.
XPL_UNREAD_FORMAT_ROW(trace_json)
XPL_UNREAD_FORMAT_ROW(tar)
XPL_UNREAD_FORMAT_ROW(nsys)
XPL_UNREAD_FORMAT_ROW(sqlite)
