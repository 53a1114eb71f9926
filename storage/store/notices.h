// SPDX-License-Identifier: Apache-2.0
// What a store has for the daemon's log: the newest sixteen, and never the same twice in a row.
// Any thread.
#ifndef XPL_STORAGE_STORE_NOTICES_H_
#define XPL_STORAGE_STORE_NOTICES_H_

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

enum { XPL_NOTICES = 16, XPL_NOTICE_SIZE = 400 };

struct xpl_notices {
    pthread_mutex_t mu; // protects the rest
    char texts[XPL_NOTICES][XPL_NOTICE_SIZE];
    unsigned first, n;
};

void xpl_notices_init(struct xpl_notices *v);
void xpl_notices_fini(struct xpl_notices *v);
// The oldest is dropped if they are not fetched.
void xpl_notices_add(struct xpl_notices *v, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));
// Takes the oldest; false when there is none.
bool xpl_notices_next(struct xpl_notices *v, char *buf, size_t size);

#endif
