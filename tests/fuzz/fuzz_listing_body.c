// SPDX-License-Identifier: Apache-2.0
// Listings as daemons hand them to each other: names are parts of paths, and writing an accepted
// listing gives the same bytes.
#include "storage/store/listing_body.h"

#include "base/buf.h"
#include "storage/objects/objects.h"
#include "tests/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_name(xpl_str_t name) {
    CHECK(name.len && !memchr(name.ptr, '/', name.len) && !memchr(name.ptr, 0, name.len));
    CHECK(!xpl_str_eq(name, XPL_STR("..")) && !xpl_str_eq(name, XPL_STR(".")));
}

static bool on_object(void *arg, const struct xpl_stored_object *o) {
    check_name(o->path);
    CHECK(o->version.len && o->size <= INT64_MAX && o->mtime_ns >= 0);
    xpl_listing_body_put_object(arg, o);
    return true;
}

static bool on_folder(void *arg, xpl_str_t name) {
    check_name(name);
    xpl_listing_body_put_folder(arg, name);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf again;
    struct xpl_object_list list = {.object = on_object, .folder = on_folder, .arg = &again};
    xpl_buf_init(&again, 2 << 20);
    if (xpl_listing_body_read((xpl_bytes_t){data, size}, &list)) {
        xpl_listing_body_end(&again, &list);
        CHECK_EQ(again.n, size);
        for (size_t i = 0; i + 9 < size; i++) // of `cut` only whether it is 0 counts
            CHECK_EQ(again.p[i], data[i]);
    }
    return 0;
}
