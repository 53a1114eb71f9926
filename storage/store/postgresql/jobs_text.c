// SPDX-License-Identifier: Apache-2.0
// Files and products of jobs as text: "size time host", "name version".  Rows have them as arrays,
// statements return these joined by slashes.
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "storage/store/postgresql/impl.h"

xpl_str_t *xpl_pg_write_files(struct xpl_arena *arena, const struct xpl_job_file *files, size_t n) {
    xpl_str_t *const ret = xpl_arena_array(arena, n, sizeof *ret);
    bool ok = ret != NULL;
    for (size_t i = 0; ok && i < n; i++)
        ok = xpl_arena_printf(arena, &ret[i], "%llu %lld %.*s",
                              (unsigned long long)files[i].size_bytes, (long long)files[i].mtime_ns,
                              XPL_STR_FMT(files[i].host));
    return ok ? ret : NULL;
}

bool xpl_pg_write_product(struct xpl_arena *arena, xpl_str_t name, uint32_t version,
                          xpl_str_t *ret) {
    return xpl_arena_printf(arena, ret, "%.*s %u", XPL_STR_FMT(name), version);
}

static size_t count_parts(xpl_str_t all) {
    size_t n = 1;
    for (size_t i = 0; i < all.len; i++)
        n += all.ptr[i] == '/';
    return n;
}

static bool next_part(xpl_str_t *rest, xpl_str_t *ret) {
    if (!rest->len) return false;
    const char *const slash = memchr(rest->ptr, '/', rest->len);
    ret->ptr = rest->ptr;
    ret->len = slash ? (size_t)(slash - rest->ptr) : rest->len;
    rest->ptr += ret->len + (slash != NULL);
    rest->len -= ret->len + (slash != NULL);
    return true;
}

static bool read_file(xpl_str_t text, struct xpl_job_file *ret) {
    char *end;
    ret->size_bytes = strtoull(text.ptr, &end, 10);
    if (*end != ' ') return false;
    ret->mtime_ns = strtoll(end + 1, &end, 10);
    if (*end != ' ') return false;
    ret->host = (xpl_str_t){end + 1, text.len - (size_t)(end + 1 - text.ptr)};
    return true;
}

enum xpl_pg_rc xpl_pg_read_files(struct xpl_pg_conn *c, const PGresult *r, int column,
                                 struct xpl_arena *arena, struct xpl_job_file **ret,
                                 size_t *ret_n) {
    xpl_str_t all, one;
    *ret_n = 0;
    if (!xpl_pg_read_text(c, r, 0, column, arena, &all)) return XPL_PG_NOMEM;
    if (!all.len) return XPL_PG_OK;
    if (!(*ret = xpl_arena_array(arena, count_parts(all), sizeof **ret))) return XPL_PG_NOMEM;
    while (next_part(&all, &one))
        if (!read_file(one, &(*ret)[(*ret_n)++])) return XPL_PG_OTHER;
    return XPL_PG_OK;
}

enum xpl_pg_rc xpl_pg_read_products(struct xpl_pg_conn *c, const PGresult *r,
                                    struct xpl_arena *arena, struct xpl_job *j) {
    xpl_str_t names, variants, name, variant;
    if (!xpl_pg_read_text(c, r, 0, 3, arena, &names) ||
        !xpl_pg_read_text(c, r, 0, 4, arena, &variants))
        return XPL_PG_NOMEM;
    j->products = xpl_arena_array(arena, count_parts(names), sizeof *j->products);
    if (!j->products) return XPL_PG_NOMEM;
    while (next_part(&names, &name) && next_part(&variants, &variant)) {
        const char *const blank = memchr(name.ptr, ' ', name.len);
        if (!blank) return XPL_PG_OTHER;
        j->products[j->n_products++] =
            (struct xpl_job_product){.name = {name.ptr, (size_t)(blank - name.ptr)},
                                     .version = (uint32_t)strtoul(blank + 1, NULL, 10),
                                     .variant = (unsigned)strtoul(variant.ptr, NULL, 10)};
    }
    return XPL_PG_OK;
}
