// SPDX-License-Identifier: Apache-2.0
#include "storage/objects/libs.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "base/arena.h"

#define XPL_CURL_NAME(name)   "curl_" #name,
#define XPL_EXPAT_NAME(name)  "XML_" #name,
#define XPL_CRYPTO_NAME(name) #name,
static const char *const curl_names[] = {XPL_CURL_LIST(XPL_CURL_NAME)};
static const char *const expat_names[] = {XPL_EXPAT_LIST(XPL_EXPAT_NAME)};
static const char *const crypto_names[] = {XPL_CRYPTO_LIST(XPL_CRYPTO_NAME)};
enum {
    N_CURL = sizeof curl_names / sizeof *curl_names,
    N_EXPAT = sizeof expat_names / sizeof *expat_names,
    N_CRYPTO = sizeof crypto_names / sizeof *crypto_names
};

static pthread_once_t curl_once = PTHREAD_ONCE_INIT, expat_once = PTHREAD_ONCE_INIT,
                      crypto_once = PTHREAD_ONCE_INIT;
static struct xpl_curl curl;
static struct xpl_expat expat;
static struct xpl_crypto crypto;
// NULL: it is there, whole.
static const char *curl_missing = "libcurl.so.4", *expat_missing = "libexpat.so.1",
                  *crypto_missing = "libcrypto.so.3";

// Fills ret[0..n); returns the name of the missing library or symbol, or NULL.
static const char *load(const char *library, const char *const *names, size_t n, void **ret) {
    void *const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle) return library;
    for (size_t i = 0; i < n; i++)
        if (!(ret[i] = dlsym(handle, names[i]))) return names[i];
    return NULL;
}

static void load_curl(void) {
    void *functions[N_CURL];
    if ((curl_missing = load("libcurl.so.4", curl_names, N_CURL, functions))) return;
    _Static_assert(sizeof curl == sizeof functions, "pointers to functions are pointers");
    memcpy(&curl, functions, sizeof curl);
    if (curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) curl_missing = "what libcurl needs";
}

static void load_expat(void) {
    void *functions[N_EXPAT];
    if ((expat_missing = load("libexpat.so.1", expat_names, N_EXPAT, functions))) return;
    _Static_assert(sizeof expat == sizeof functions, "pointers to functions are pointers");
    memcpy(&expat, functions, sizeof expat);
}

static void load_crypto(void) {
    void *functions[N_CRYPTO];
    if ((crypto_missing = load("libcrypto.so.3", crypto_names, N_CRYPTO, functions))) return;
    _Static_assert(sizeof crypto == sizeof functions, "pointers to functions are pointers");
    memcpy(&crypto, functions, sizeof crypto);
}

static void *expat_alloc(size_t n) {
    return xpl_sys_alloc(n);
}
static void *expat_realloc(void *p, size_t n) {
    return xpl_sys_realloc(p, n);
}
static void expat_free(void *p) {
    xpl_sys_free(p);
}

const XML_Memory_Handling_Suite xpl_expat_memory = {expat_alloc, expat_realloc, expat_free};

xpl_status_t xpl_curl_load(const struct xpl_curl **ret, struct xpl_error *err) {
    (void)pthread_once(&curl_once, load_curl);
    if (curl_missing)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                         "--logdir: %s is missing; install libcurl (libcurl4)", curl_missing);
    *ret = &curl;
    return XPL_OK;
}

xpl_status_t xpl_expat_load(const struct xpl_expat **ret, struct xpl_error *err) {
    (void)pthread_once(&expat_once, load_expat);
    if (expat_missing)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                         "--logdir: %s is missing; install Expat (libexpat1)", expat_missing);
    *ret = &expat;
    return XPL_OK;
}

xpl_status_t xpl_crypto_load(const struct xpl_crypto **ret, struct xpl_error *err) {
    (void)pthread_once(&crypto_once, load_crypto);
    if (crypto_missing)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "%s is missing; install OpenSSL (libssl3)",
                         crypto_missing);
    *ret = &crypto;
    return XPL_OK;
}
