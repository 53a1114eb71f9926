// SPDX-License-Identifier: Apache-2.0
// Private to analysis/hlo/text: elements of literals as XLA prints them.
#ifndef XPL_ANALYSIS_HLO_TEXT_NUMBER_H_
#define XPL_ANALYSIS_HLO_TEXT_NUMBER_H_

#include "analysis/hlo/text/impl.h"

// The fewest digits that are read back as the same number: six or nine for f32, 15 or 17 for f64.
void txt_f32(struct hlo_text *t, float v);
void txt_f64(struct hlo_text *t, double v);
// A number of a narrow type from its bits.
void txt_narrow(struct hlo_text *t, uint64_t type, uint32_t bits);

#endif
