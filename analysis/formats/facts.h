// SPDX-License-Identifier: Apache-2.0
// What products are made from, and what profiles have that tools need.
#ifndef XPL_ANALYSIS_FORMATS_FACTS_H_
#define XPL_ANALYSIS_FORMATS_FACTS_H_

enum xpl_form {
    XPL_FORM_XSPACE, // the XSpace, imported where the file is of another format
    XPL_FORM_FILE,   // the decoded file, whatever its format
};

// What a profile can have (xpl_format.facts), and a tool needs (xpl_tool.facts).
enum {
    XPL_FACT_XPLANES = 1 << 0, // recorded as an XSpace
    XPL_FACT_BUNDLE = 1 << 1,  // a profile bundle of IREE
};

#endif
