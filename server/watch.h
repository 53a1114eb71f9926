// SPDX-License-Identifier: Apache-2.0
// Keeps the catalogue up to date: directory notifications, and a timer for what has none.
// All functions on the loop's thread.
#ifndef XPL_SERVER_WATCH_H_
#define XPL_SERVER_WATCH_H_

#include "server/loop.h"
#include "storage/sessions/catalogue.h"

struct xpl_watch;

// `changed(arg, before, after)` runs on the loop's thread for each new snapshot, the first included
// (then `before` is the same as `after`).  A catalogue that was not scanned yet is scanned as soon
// as the loop runs, and its empty snapshot is only the first `before`.  NULL when out of memory.
struct xpl_watch *
xpl_watch_new(struct xpl_loop *loop, struct xpl_catalogue *catalogue, uint64_t interval_ms,
              void (*changed)(void *arg, struct xpl_snapshot *before, struct xpl_snapshot *after),
              void *arg);
// A file was written in the directory `path` below LOGDIR: scans it and those above it without
// waiting for notifications.
void xpl_watch_scan(struct xpl_watch *w, const char *path);
// Closes the handles; memory goes when the last of them is closed.
void xpl_watch_close(struct xpl_watch *w);

#endif
