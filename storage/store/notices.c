// SPDX-License-Identifier: Apache-2.0
#include "storage/store/notices.h"

#include <stdio.h>
#include <string.h>

void xpl_notices_init(struct xpl_notices *v) {
    pthread_mutex_init(&v->mu, NULL);
}

void xpl_notices_fini(struct xpl_notices *v) {
    pthread_mutex_destroy(&v->mu);
}

void xpl_notices_add(struct xpl_notices *v, const char *fmt, va_list ap) {
    char text[XPL_NOTICE_SIZE];
    (void)vsnprintf(text, sizeof text, fmt, ap);
    pthread_mutex_lock(&v->mu);
    const unsigned last = (v->first + v->n + XPL_NOTICES - 1) % XPL_NOTICES;
    if (strcmp(v->texts[last], text) != 0) { // fetched ones stay there to be compared with
        memcpy(v->texts[(last + 1) % XPL_NOTICES], text, sizeof text);
        if (v->n == XPL_NOTICES)
            v->first = (v->first + 1) % XPL_NOTICES;
        else
            v->n++;
    }
    pthread_mutex_unlock(&v->mu);
}

bool xpl_notices_next(struct xpl_notices *v, char *buf, size_t size) {
    pthread_mutex_lock(&v->mu);
    const bool any = v->n > 0;
    if (any) {
        (void)snprintf(buf, size, "%s", v->texts[v->first]);
        v->first = (v->first + 1) % XPL_NOTICES;
        v->n--;
    }
    pthread_mutex_unlock(&v->mu);
    return any;
}
