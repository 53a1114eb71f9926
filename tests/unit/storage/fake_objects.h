// SPDX-License-Identifier: Apache-2.0
// An object store in memory, for tests of what reads one.
#ifndef XPL_TESTS_UNIT_STORAGE_FAKE_OBJECTS_H_
#define XPL_TESTS_UNIT_STORAGE_FAKE_OBJECTS_H_

#include <unistd.h>

#include "storage/objects/objects.h"
#include "tests/check.h"

struct fake_object {
    const char *path, *version, *bytes;
};

struct fake_put {
    char path[200], bytes[1000];
};

static struct fake_bucket {
    struct xpl_objects base;
    struct fake_object v[8]; // by path; up to the first without one
    struct fake_put put[8];  // written objects, which listings do not have
    size_t n_put;
    unsigned lists, fetches;
    unsigned max_names;       // of a listing; 0: all
    unsigned n_refused;       // said of LOGDIR
    int64_t mtime_ns;         // of all objects; 0: some day of 2023
    xpl_status_t failure;     // of the next calls
    const char *only_failing; // in this directory; NULL: in all
} fake;

static xpl_status_t fake_fail(xpl_str_t dir, struct xpl_error *err) {
    if (fake.failure == XPL_OK ||
        (fake.only_failing && !xpl_str_eq(dir, xpl_str_from(fake.only_failing))))
        return XPL_OK;
    XPL_RETURN_ERROR(err, fake.failure, "the fake fails");
}

static xpl_status_t fake_list(struct xpl_objects *o, xpl_str_t dir, struct xpl_object_list *list,
                              struct xpl_error *err) {
    xpl_str_t last = {0};
    const bool top = xpl_str_eq(dir, XPL_STR("."));
    unsigned n = 0;
    CHECK(o == &fake.base);
    fake.lists++;
    XPL_TRY(fake_fail(dir, err));
    list->n_refused = top ? fake.n_refused : 0;
    for (const struct fake_object *f = fake.v; f->path; f++) {
        xpl_str_t name = xpl_str_from(f->path);
        if (!top && (!xpl_str_starts(name, dir) || name.ptr[dir.len] != '/')) continue;
        if (!top) name = xpl_str_sub(name, dir.len + 1, SIZE_MAX);
        const size_t slash = xpl_str_find(name, XPL_STR("/"), 0);
        const xpl_str_t folder = xpl_str_sub(name, 0, slash);
        const struct xpl_stored_object object = {
            .path = name,
            .version = xpl_str_from(f->version),
            .size = strlen(f->bytes),
            .mtime_ns = fake.mtime_ns ? fake.mtime_ns : INT64_C(1700000000000000000)};
        if (slash != SIZE_MAX && xpl_str_eq(folder, last)) continue;
        list->cut = fake.max_names && n++ == fake.max_names;
        if (list->cut) return XPL_OK;
        if (!(slash == SIZE_MAX ? list->object(list->arg, &object)
                                : list->folder(list->arg, folder)))
            XPL_RETURN_OOM(err, "fake");
        last = folder;
    }
    for (size_t i = 0; i < fake.n_put; i++) {
        const xpl_str_t path = xpl_str_from(fake.put[i].path);
        const struct xpl_stored_object object = {.path = xpl_str_sub(path, dir.len + 1, SIZE_MAX),
                                                 .version = XPL_STR("\"put\""),
                                                 .size = strlen(fake.put[i].bytes)};
        if (xpl_str_starts(path, dir) && !xpl_str_has(object.path, XPL_STR("/")) &&
            !list->object(list->arg, &object))
            XPL_RETURN_OOM(err, "fake");
    }
    return XPL_OK;
}

static xpl_status_t fake_fetch(struct xpl_objects *o, const struct xpl_stored_object *of, int fd,
                               struct xpl_error *err) {
    CHECK(o == &fake.base);
    fake.fetches++;
    XPL_TRY(fake_fail(XPL_STR("a fetch"), err));
    for (const struct fake_object *f = fake.v; f->path; f++) {
        if (!xpl_str_eq(of->path, xpl_str_from(f->path))) continue;
        if (!xpl_str_eq(of->version, xpl_str_from(f->version)))
            XPL_RETURN_ERROR(err, XPL_ABORTED, "changed since it was listed");
        CHECK_EQ(of->size, strlen(f->bytes));
        CHECK_EQ(pwrite(fd, f->bytes, of->size, 0), (ssize_t)of->size);
        return XPL_OK;
    }
    XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "gone");
}

static xpl_status_t fake_put(struct xpl_objects *o, xpl_str_t path, int fd, uint64_t size,
                             const struct xpl_cancel *cancel, struct xpl_error *err) {
    CHECK(o == &fake.base);
    XPL_TRY(fake_fail(XPL_STR("a put"), err));
    if (xpl_cancel_is_set(cancel)) XPL_RETURN_ERROR(err, XPL_CANCELLED, "cancelled");
    for (size_t i = 0; i < fake.n_put; i++)
        if (xpl_str_eq(path, xpl_str_from(fake.put[i].path)))
            XPL_RETURN_ERROR(err, XPL_ALREADY_EXISTS, "there already");
    CHECK(fake.n_put < sizeof fake.put / sizeof *fake.put && size < sizeof fake.put->bytes);
    struct fake_put *const p = &fake.put[fake.n_put++];
    (void)snprintf(p->path, sizeof p->path, "%.*s", XPL_STR_FMT(path));
    CHECK_EQ(pread(fd, p->bytes, size, 0), (ssize_t)size);
    p->bytes[size] = 0;
    return XPL_OK;
}

static xpl_status_t fake_remove(struct xpl_objects *o, xpl_str_t path, struct xpl_error *err) {
    CHECK(o == &fake.base);
    XPL_TRY(fake_fail(XPL_STR("a removal"), err));
    for (size_t i = 0; i < fake.n_put; i++)
        if (xpl_str_eq(path, xpl_str_from(fake.put[i].path))) fake.put[i] = fake.put[--fake.n_put];
    return XPL_OK;
}

static void fake_stop(struct xpl_objects *o, enum xpl_objects_stop what) {
    (void)o;
    (void)what;
}

static void fake_free(struct xpl_objects *o) {
    CHECK(o == &fake.base);
}

static const struct xpl_objects_ops fake_ops = {fake_list,   fake_fetch, fake_put,
                                                fake_remove, fake_stop,  fake_free};

#endif
