// SPDX-License-Identifier: Apache-2.0
// Quantiles of Student's t distribution, by its cumulative distribution: a regularised incomplete
// beta function, as a continued fraction (Abramowitz and Stegun, 26.5.8 and 26.7.1).
#include <math.h>

#include "analysis/compare/impl.h"

enum { MOST_TERMS = 300, HALVINGS = 48 };
#define TINY 1e-300
#define GOOD 1e-14

// The fraction by Lentz's method; it converges fast for x below (a + 1) / (a + b + 2).
static double fraction(double x, double a, double b) {
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < TINY ? TINY : d);
    double h = d;
    for (int m = 1; m < MOST_TERMS; m++) {
        const double k = 2 * m;
        const double terms[2] = {m * (b - m) * x / ((a + k - 1) * (a + k)),
                                 -(a + m) * (a + b + m) * x / ((a + k) * (a + k + 1))};
        double change = 1;
        for (int i = 0; i < 2; i++) {
            d = 1 + terms[i] * d;
            c = 1 + terms[i] / c;
            d = 1 / (fabs(d) < TINY ? TINY : d);
            c = fabs(c) < TINY ? TINY : c;
            change = c * d;
            h *= change;
        }
        if (fabs(change - 1) < GOOD) break;
    }
    return h;
}

static double incomplete_beta(double x, double a, double b) {
    if (x <= 0) return 0;
    if (x >= 1) return 1;
    const double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    return x < (a + 1) / (a + b + 2) ? front * fraction(x, a, b) / a
                                     : 1 - front * fraction(1 - x, b, a) / b;
}

// The probability of a distance above t is I(x; freedom / 2, 1 / 2) with x = freedom / (freedom +
// t²): x is sought.
double xpl_compare_student(double probability, double freedom) {
    const double outside = 2 * (1 - probability);
    double low = 0, high = 1;
    for (int i = 0; i < HALVINGS; i++) {
        const double x = (low + high) / 2;
        if (incomplete_beta(x, freedom / 2, 0.5) < outside)
            low = x;
        else
            high = x;
    }
    return sqrt(freedom * (1 - high) / high);
}
