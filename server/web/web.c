// SPDX-License-Identifier: Apache-2.0
#include "server/web/web.h"

#include <string.h>

// strcmp of PATH[0..PATH_LEN) and NAME; a NUL inside PATH cannot match, for a NAME has none.
static int compare(const char *path, size_t path_len, const char *name) {
    size_t name_len = strlen(name);
    size_t common = path_len < name_len ? path_len : name_len;
    int order = common ? memcmp(path, name, common) : 0;
    return order ? order : (path_len > name_len) - (path_len < name_len);
}

const struct xpl_web_file *xpl_web_find(const char *path, size_t path_len) {
    if (path_len == 0) {
        path = "index.html";
        path_len = strlen(path);
    }
    size_t low = 0, high = xpl_web_files_len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare(path, path_len, xpl_web_files[middle].path);
        if (order == 0) return &xpl_web_files[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}
