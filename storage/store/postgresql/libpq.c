// SPDX-License-Identifier: Apache-2.0
#include "storage/store/postgresql/libpq.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#define XPL_PQ_NAME(name) "PQ" #name,
static const char *const names[] = {XPL_PQ_LIST(XPL_PQ_NAME)};
enum { N_NAMES = sizeof names / sizeof *names };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct xpl_pq loaded;
static const char *missing = "libpq.so.5"; // NULL: it is there, whole

static void load(void) {
    void *functions[N_NAMES];
    void *const library = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
    missing = NULL;
    for (size_t i = 0; i < N_NAMES; i++)
        if (!(functions[i] = dlsym(library, names[i]))) missing = names[i];
    _Static_assert(sizeof loaded == sizeof functions, "pointers to functions are pointers");
    memcpy(&loaded, functions, sizeof loaded);
}

xpl_status_t xpl_pq_load(const struct xpl_pq **ret, struct xpl_error *err) {
    (void)pthread_once(&once, load);
    if (missing)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                         "--store: %s is missing; install PostgreSQL's client library (libpq5)",
                         missing);
    *ret = &loaded;
    return XPL_OK;
}
