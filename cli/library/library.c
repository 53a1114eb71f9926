// SPDX-License-Identifier: Apache-2.0
#include "cli/library/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void *library;

static void load(void) {
    library = dlopen("libxplaned.so.0", RTLD_NOW | RTLD_LOCAL);
}

bool xpl_library_is_there(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, load);
    return library;
}

xpl_library_function *xpl_library_find(const char *name) {
    xpl_library_function *function = NULL;
    if (xpl_library_is_there()) *(void **)&function = dlsym(library, name); // POSIX: they are alike
    if (function) return function;
    (void)fprintf(stderr, "xplanectl: %s\n", dlerror());
    exit(EXIT_FAILURE);
}
