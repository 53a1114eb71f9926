// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/inject/inject.h"

void *inject_find_cuda(void) {
    return dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
}

// A CUPTI that the program has loaded already is the one to use: two of them get in each other's
// way.
static int find_loaded(struct dl_phdr_info *info, size_t size, void *arg) {
    const char *const slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
    (void)size;
    if (!slash || strncmp(slash + 1, "libcupti.so", 11) != 0) return 0;
    snprintf(arg, 4096, "%s", info->dlpi_name);
    return 1;
}

static void *open_in(const char *dir, const char *file) {
    char path[4200];
    snprintf(path, sizeof path, "%s%s%s", dir, *dir ? "/" : "", file);
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

// CUPTI's major version follows CUDA's, and supports drivers of the same major version and newer.
static void *open_any(int major) {
    static const char *const below[] = {"/extras/CUPTI/lib64", "/lib64", "/lib"};
    const char *const home = getenv("CUDA_HOME") ? getenv("CUDA_HOME") : "/usr/local/cuda";
    for (int v = major; v >= 12; v--) {
        char file[32], dir[4100];
        snprintf(file, sizeof file, "libcupti.so.%d", v);
        void *handle = open_in("", file);
        for (size_t i = 0; !handle && i < sizeof below / sizeof *below; i++) {
            snprintf(dir, sizeof dir, "%.4000s%s", home, below[i]);
            handle = open_in(dir, file);
        }
        if (handle) return handle;
    }
    return NULL;
}

static int driver_major(void *cuda) {
    int (*const version)(int *) = __extension__(int (*)(int *)) dlsym(cuda, "cuDriverGetVersion");
    int v = 0;
    return version && version(&v) == CU_OK && v >= 12000 && v < 100000 ? v / 1000 : 13;
}

static void *open_cupti(void *cuda, char *why, size_t size) {
    char path[4096] = "";
    const char *const given = getenv("XPLANED_CUPTI");
    if (given && *given) {
        void *const handle = dlopen(given, RTLD_NOW | RTLD_LOCAL);
        if (!handle)
            snprintf(why, size, "XPLANED_CUPTI names a CUPTI that cannot be loaded: %s", dlerror());
        return handle;
    }
    if (dl_iterate_phdr(find_loaded, path)) return dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *const handle = open_any(driver_major(cuda));
    if (!handle)
        snprintf(
            why, size,
            "CUPTI was not found in the program's library path nor below CUDA_HOME: install it "
            "(package cuda-cupti, or pip install nvidia-cuda-cupti-cu12) or set XPLANED_CUPTI "
            "to libcupti.so's path");
    return handle;
}

const char *inject_load_symbols(void *handle, const struct cu_symbol *all, size_t n, void *ret) {
    const char *missing = NULL;
    for (size_t i = 0; i < n; i++) {
        void *const at = dlsym(handle, all[i].name);
        memcpy((char *)ret + all[i].offset, &at, sizeof at);
        if (!at && !missing) missing = all[i].name;
    }
    return missing;
}

bool inject_load_cupti(void *cuda, struct cu_functions *cu, char *why, size_t size) {
#define CU_SYMBOL(name, args) {#name, offsetof(struct cu_functions, name)},
    static const struct cu_symbol needed[] = {CU_FUNCTIONS(CU_SYMBOL)};
    static const struct cu_symbol optional[] = {CU_OPTIONAL(CU_SYMBOL)};
    void *const handle = open_cupti(cuda, why, size);
    if (!handle) return false;
    (void)inject_load_symbols(handle, optional, sizeof optional / sizeof optional[0], cu);
    const char *const missing =
        inject_load_symbols(handle, needed, sizeof needed / sizeof needed[0], cu);
    if (missing) snprintf(why, size, "the CUPTI that was found has no %s", missing);
    return !missing;
}
