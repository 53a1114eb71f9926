// SPDX-License-Identifier: Apache-2.0
#include "agent/pytorch/http.h"

#if XPL_CURL
#include <curl/curl.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

struct curl_functions {
    CURLcode (*global_init)(long flags);
    CURL *(*easy_init)(void);
    CURLcode (*easy_setopt)(CURL *, CURLoption, ...);
    CURLcode (*easy_perform)(CURL *);
    CURLcode (*easy_getinfo)(CURL *, CURLINFO, ...);
    void (*easy_cleanup)(CURL *);
    const char *(*easy_strerror)(CURLcode);
};
static const char *const names[] = {"curl_global_init",  "curl_easy_init",    "curl_easy_setopt",
                                    "curl_easy_perform", "curl_easy_getinfo", "curl_easy_cleanup",
                                    "curl_easy_strerror"};
enum { N_NAMES = sizeof names / sizeof *names };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct curl_functions curl;
static bool is_loaded;

static void load(void) {
    void *functions[N_NAMES];
    void *const library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; i < N_NAMES; i++)
        if (!library || !(functions[i] = dlsym(library, names[i]))) return;
    _Static_assert(sizeof curl == sizeof functions, "pointers to functions are pointers");
    memcpy(&curl, functions, sizeof curl);
    is_loaded = curl.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}

static size_t ignore(char *bytes, size_t size, size_t n, void *arg) {
    (void)bytes, (void)arg;
    return size * n;
}

static int is_cancelled(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d) {
    const atomic_int *const cancel = arg;
    (void)a, (void)b, (void)c, (void)d;
    return cancel && atomic_load(cancel) != 0;
}

static bool set_up(CURL *h, const char *url, uint64_t timeout_ms, const atomic_int *cancel) {
    return curl.easy_setopt(h, CURLOPT_URL, url) == CURLE_OK &&
           curl.easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           curl.easy_setopt(h, CURLOPT_PROXY, "") == CURLE_OK &&
           curl.easy_setopt(h, CURLOPT_POST, 1L) == CURLE_OK &&
           curl.easy_setopt(h, CURLOPT_POSTFIELDSIZE, 0L) == CURLE_OK &&
           curl.easy_setopt(h, CURLOPT_POSTFIELDS, "") == CURLE_OK &&
           curl.easy_setopt(h, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl.easy_setopt(h, CURLOPT_TIMEOUT_MS, (long)timeout_ms) == CURLE_OK &&
           curl.easy_setopt(h, CURLOPT_WRITEFUNCTION, ignore) == CURLE_OK &&
           curl.easy_setopt(h, CURLOPT_XFERINFOFUNCTION, is_cancelled) == CURLE_OK &&
           curl.easy_setopt(h, CURLOPT_XFERINFODATA, (void *)(uintptr_t)cancel) == CURLE_OK &&
           curl.easy_setopt(h, CURLOPT_NOPROGRESS, 0L) == CURLE_OK;
}

static xpl_status_t perform(CURL *h, const char *url, struct xpl_error *err) {
    long status = 0;
    const CURLcode code = curl.easy_perform(h);
    if (code == CURLE_ABORTED_BY_CALLBACK) XPL_RETURN_ERROR(err, XPL_CANCELLED, "cancelled");
    if (code != CURLE_OK)
        XPL_RETURN_ERROR(err, XPL_UNAVAILABLE, "%.100s: %s", url, curl.easy_strerror(code));
    (void)curl.easy_getinfo(h, CURLINFO_RESPONSE_CODE, &status);
    if (status >= 200 && status < 300) return XPL_OK;
    XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "%.100s: status %ld%s", url, status,
                     status == 404 ? ": start the server with a directory for its profiler "
                                     "(VLLM_TORCH_PROFILER_DIR, SGLANG_TORCH_PROFILER_DIR)"
                                   : "");
}

xpl_status_t xpl_pytorch_post(const char *url, uint64_t timeout_ms, const atomic_int *cancel,
                              struct xpl_error *err) {
    (void)pthread_once(&once, load);
    if (!is_loaded) XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "libcurl is missing (libcurl4)");
    CURL *const h = curl.easy_init();
    if (!h) XPL_RETURN_OOM(err, "HTTP");
    xpl_status_t st = XPL_OK;
    if (!set_up(h, url, timeout_ms, cancel))
        st = xpl_error_set(err, XPL_INVALID_ARGUMENT, __FILE__, __LINE__, UINT64_MAX,
                           "%.100s: not a URL, or libcurl is too old", url);
    if (st == XPL_OK) st = perform(h, url, err);
    curl.easy_cleanup(h);
    return st;
}
#else
xpl_status_t xpl_pytorch_post(const char *url, uint64_t timeout_ms, const atomic_int *cancel,
                              struct xpl_error *err) {
    (void)timeout_ms, (void)cancel;
    XPL_RETURN_ERROR(err, XPL_UNIMPLEMENTED, "%.100s: this program was built without libcurl", url);
}
#endif
