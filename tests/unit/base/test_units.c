// SPDX-License-Identifier: Apache-2.0
// base/text/units: times and sizes; a number without its unit is refused, with what to write
// instead.
#include "base/text/units.h"

#include "tests/check.h"

static uint64_t parsed(const char *text, enum xpl_unit_kind kind) {
    uint64_t v = 4242;
    CHECK_EQ(xpl_units_parse(text, kind, &v), XPL_UNIT_OK);
    return v;
}

static void check_good(void) {
    CHECK_EQ(parsed("5ms", XPL_UNIT_TIME), 5);
    CHECK_EQ(parsed("5s", XPL_UNIT_TIME), 5000);
    CHECK_EQ(parsed("1.5 h", XPL_UNIT_TIME), 5400000);
    CHECK_EQ(parsed("2m", XPL_UNIT_TIME), 120000);
    CHECK_EQ(parsed("2MIN", XPL_UNIT_TIME), 120000);
    CHECK_EQ(parsed("7d", XPL_UNIT_TIME), 7LL * 86400000);
    CHECK_EQ(parsed("0", XPL_UNIT_TIME), 0);
    CHECK_EQ(parsed("0.0", XPL_UNIT_SIZE), 0);
    CHECK_EQ(parsed("0s", XPL_UNIT_TIME), 0);
    CHECK_EQ(parsed("1.9ms", XPL_UNIT_TIME), 1);
    CHECK_EQ(parsed("1h30m", XPL_UNIT_TIME), 5400000);
    CHECK_EQ(parsed("1m2s3ms", XPL_UNIT_TIME), 62003);
    CHECK_EQ(parsed(".5KiB", XPL_UNIT_SIZE), 512);
    CHECK_EQ(parsed("20GiB", XPL_UNIT_SIZE), 20LL << 30);
    CHECK_EQ(parsed("3T", XPL_UNIT_SIZE), 3LL << 40);
    CHECK_EQ(parsed("17b", XPL_UNIT_SIZE), 17);
}

static void check_bad(void) {
    static const char *const missing[] = {"5", "1.5", "100000", "5 "};
    static const char *const bad[] = {
        "",     " ",   "s",   "-1s",   "+1s",     "1e3ms", "0x10ms", "5KiB",
        "1..s", "nan", "inf", "5 s s", "5parsec", " 5s",   "1,5s",   "9999999999999999999999999d",
        "."};
    uint64_t v = 4242;
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
        CHECK_EQ(xpl_units_parse(missing[i], XPL_UNIT_TIME, &v), XPL_UNIT_MISSING);
        CHECK_EQ(xpl_units_parse(missing[i], XPL_UNIT_SIZE, &v), XPL_UNIT_MISSING);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_EQ(xpl_units_parse(bad[i], XPL_UNIT_TIME, &v), XPL_UNIT_BAD);
    CHECK_EQ(xpl_units_parse("0.0004s", XPL_UNIT_TIME, &v), XPL_UNIT_SMALL);
    CHECK_EQ(xpl_units_parse("0.5B", XPL_UNIT_SIZE, &v), XPL_UNIT_SMALL);
    CHECK_EQ(xpl_units_parse("0.000000001TiB", XPL_UNIT_SIZE, &v), XPL_UNIT_OK); // 1,099 bytes
    v = 4242;
    CHECK_EQ(xpl_units_parse("5s", XPL_UNIT_SIZE, &v), XPL_UNIT_BAD);
    CHECK_EQ(xpl_units_parse("8388608TiB", XPL_UNIT_SIZE, &v), XPL_UNIT_BAD); // 2^63
    CHECK_EQ(v, 4242);
}

static void check_value(uint64_t v, enum xpl_unit_kind kind, const char *text) {
    char buf[XPL_UNITS_VALUE];
    CHECK_STR(xpl_units_show(v, kind, buf), text);
}

static void check_words(void) {
    char why[XPL_UNITS_TEXT], many[300];
    CHECK_STR(xpl_units_explain("5", XPL_UNIT_TIME, XPL_UNIT_MISSING, why),
              "a unit is missing; write 5s or 5ms");
    CHECK_STR(xpl_units_explain("20 ", XPL_UNIT_SIZE, XPL_UNIT_MISSING, why),
              "a unit is missing; write 20GiB or 20B");
    CHECK_STR(xpl_units_explain("0.5B", XPL_UNIT_SIZE, XPL_UNIT_SMALL, why), "less than 1B");
    CHECK_STR(xpl_units_explain("soon", XPL_UNIT_TIME, XPL_UNIT_BAD, why),
              "no time; write 500ms, 2s, 10m, 1h30m or 7d");
    CHECK_STR(xpl_units_explain("5s", XPL_UNIT_SIZE, XPL_UNIT_BAD, why),
              "no size; write 64KiB, 256MiB or 10GiB");
    check_value(0, XPL_UNIT_TIME, "0");
    check_value(1, XPL_UNIT_TIME, "1ms");
    check_value(1500, XPL_UNIT_TIME, "1500ms");
    check_value(60000, XPL_UNIT_TIME, "1m");
    check_value(86400000, XPL_UNIT_TIME, "1d");
    check_value((uint64_t)1 << 40, XPL_UNIT_SIZE, "1TiB");
    check_value(1023, XPL_UNIT_SIZE, "1023B");
    check_value(UINT64_MAX, XPL_UNIT_SIZE, "18446744073709551615B");
    memset(many, '1', sizeof many - 1);
    many[sizeof many - 1] = 0;
    (void)xpl_units_explain(many, XPL_UNIT_SIZE, XPL_UNIT_MISSING, why);
    CHECK(strlen(why) < sizeof why && strstr(why, "111GiB or 111"));
}

int main(void) {
    check_good();
    check_bad();
    check_words();
    return 0;
}
