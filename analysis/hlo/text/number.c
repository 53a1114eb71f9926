// SPDX-License-Identifier: Apache-2.0
#include "analysis/hlo/text/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/hlo/fields.h"
#include "base/json.h"

// "nan" for the quiet NaN; others show their payload.
static void put_nan(struct hlo_text *t, bool negative, uint64_t payload, uint64_t quiet) {
    char text[24];
    if (negative) TXT(t, "-");
    TXT(t, "nan");
    if (payload == quiet) return;
    const int n = snprintf(text, sizeof text, "(0x%llx)", (unsigned long long)payload);
    if (n > 0) txt_put(t, text, (size_t)n);
}

// Small whole numbers, as most constants are, have one text whatever the precision.
static bool put_whole(struct hlo_text *t, double v) {
    const int32_t i = v > -1e6 && v < 1e6 ? (int32_t)v : 0;
    if (i == 0 || (double)i < v || (double)i > v) return false;
    txt_int(t, i);
    return true;
}

void txt_f32(struct hlo_text *t, float v) {
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    if (isnan(v)) {
        put_nan(t, signbit(v), bits & 0x7fffff, 0x400000);
        return;
    }
    if (put_whole(t, (double)v)) return;
    char text[XPL_JSON_FLOAT_MAX];
    txt_put(t, text, xpl_json_float(v, text));
}

void txt_f64(struct hlo_text *t, double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    if (isnan(v)) {
        put_nan(t, signbit(v), bits & 0xfffffffffffff, UINT64_C(1) << 51);
        return;
    }
    if (put_whole(t, v)) return;
    char text[40];
    int n = snprintf(text, sizeof text, "%.15g", v);
    const double back = strtod(text, NULL);
    if (back < v || back > v) n = snprintf(text, sizeof text, "%.17g", v);
    if (n > 0) txt_put(t, text, (size_t)n);
}

// ---- narrow types ----

struct narrow {
    uint8_t exponent, mantissa; // bits
    int16_t bias;
    uint8_t digits; // shown
    uint8_t kind;
};
enum {
    IEEE,          // infinities, and NaNs with payloads
    FINITE,        // all ones is NaN
    UNSIGNED_ZERO, // the negative zero is NaN
    NO_SPECIAL,    // neither
    POWER,         // no sign, no mantissa; all ones is NaN
    UNREAD,        // XProf does not read these: it shows zeros
};
static const struct narrow narrow_types[HLO_N_TYPES] = {
    [HLO_TYPE_F16] = {5, 10, 15, 5, IEEE},
    [HLO_TYPE_BF16] = {8, 7, 127, 4, IEEE},
    [HLO_TYPE_F8E5M2] = {5, 2, 15, 2, IEEE},
    [HLO_TYPE_F8E4M3] = {4, 3, 7, 3, IEEE},
    [HLO_TYPE_F8E3M4] = {3, 4, 3, 3, IEEE},
    [HLO_TYPE_F8E4M3FN] = {4, 3, 7, 3, FINITE},
    [HLO_TYPE_F8E4M3B11FNUZ] = {4, 3, 11, 3, UNSIGNED_ZERO},
    [HLO_TYPE_F8E5M2FNUZ] = {5, 2, 16, 2, UNSIGNED_ZERO},
    [HLO_TYPE_F8E4M3FNUZ] = {4, 3, 8, 3, UNSIGNED_ZERO},
    [HLO_TYPE_F4E2M1FN] = {2, 1, 1, 2, NO_SPECIAL},
    [HLO_TYPE_F8E8M0FNU] = {8, 0, 127, 2, POWER},
    [HLO_TYPE_F6E3M2FN] = {3, 2, 3, 2, UNREAD},
    [HLO_TYPE_F6E2M3FN] = {2, 3, 1, 2, UNREAD},
};

void txt_narrow(struct hlo_text *t, uint64_t type, uint32_t bits) {
    const struct narrow f = narrow_types[type];
    const uint32_t m = bits & ((1u << f.mantissa) - 1);
    const uint32_t top = (1u << f.exponent) - 1;
    const uint32_t e = bits >> f.mantissa & top;
    // Of a byte with four bits too many, too, as XProf has it.
    const bool negative = f.kind != POWER && bits >> (f.mantissa + f.exponent) != 0;
    if (f.kind == UNREAD) {
        TXT(t, "0");
        return;
    }
    const uint32_t quiet = f.mantissa ? 1u << (f.mantissa - 1) : 0;
    if ((f.kind == IEEE && e == top && m) || (f.kind == FINITE && e == top && m == 7) ||
        (f.kind == UNSIGNED_ZERO && negative && !e && !m) || (f.kind == POWER && e == top)) {
        put_nan(t, negative, f.kind == IEEE ? m : quiet, quiet);
        return;
    }
    double v = INFINITY;
    if (f.kind != IEEE || e != top) {
        const bool normal = e > 0 || f.kind == POWER;
        const double fraction = ldexp((double)m, -f.mantissa) + (normal ? 1 : 0);
        v = ldexp(fraction, (normal ? (int)e : 1) - f.bias);
    }
    txt_real(t, negative ? -v : v, f.digits);
}
