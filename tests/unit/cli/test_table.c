// SPDX-License-Identifier: Apache-2.0
// Numbers as the command line shows them.
#include "cli/table.h"

#include "tests/check.h"

static void test_change(void) {
    static const struct {
        double percent;
        int digits;
        const char *text;
    } cases[] = {
        {5.234, 2, "+5.23%"}, {-50, 1, "-50.0%"},     {300, 1, "+300.0%"},
        {320, 1, "×4.2"},     {327287.9, 1, "×3274"}, {1e300, 1, "×1e+298"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[32];
        xpl_show_change(text, cases[i].percent, cases[i].digits);
        CHECK_STR(text, cases[i].text);
    }
}

int main(void) {
    test_change();
    return 0;
}
