// SPDX-License-Identifier: Apache-2.0
// Tables as CSV: texts of profiles stay cells of one table, and none is a spreadsheet's formula,
// but where the answer is XProf's byte for byte.
#include "server/http/csv.h"

#include <string.h>

#include "tests/check.h"

static const char TABLE[] =
    "{\"cols\":[{\"id\":\"name\",\"label\":\"=Name\"},{\"id\":\"n\",\"label\":\"N\"}],\"rows\":["
    "{\"c\":[{\"v\":\"=cmd|' /C calc'!A0\"},{\"v\":-1}]},"
    "{\"c\":[{\"v\":\"@x\\\",\\n=1\"},{\"v\":2.5}]},"
    "{\"c\":[{\"v\":\"\\tx\"},{\"v\":true}]},"
    "{\"c\":[{\"v\":\"a=b\"},{\"v\":null}]}]}";

static void check(const struct xpl_tool *tool, const char *expected) {
    struct xpl_arena scratch;
    struct xpl_buf out;
    struct xpl_error err = {0};
    xpl_arena_init(&scratch, 1 << 20);
    xpl_buf_init(&out, 1 << 20);
    CHECK_OK(xpl_http_csv(xpl_str_from(TABLE), tool, &scratch, &out, &err), &err);
    CHECK_STR(((xpl_str_t){(const char *)out.p, out.n}), expected);
    xpl_buf_fini(&out);
    xpl_arena_fini(&scratch);
}

int main(void) {
    check(xpl_tool_find(XPL_STR("kernel_stats")),
          "\"'=Name\",\"N\"\n\"'=cmd|' /C calc'!A0\",\"-1\"\n\"'@x\"\",\n=1\",\"2.5\"\n"
          "\"'\tx\",\"True\"\n\"a=b\",\"\"\n");
    check(NULL, "\"=Name\",\"N\"\n\"=cmd|' /C calc'!A0\",\"-1\"\n\"@x\"\",\n=1\",\"2.5\"\n"
                "\"\tx\",\"True\"\n\"a=b\",\"\"\n");
    return 0;
}
