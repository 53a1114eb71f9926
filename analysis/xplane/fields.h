// SPDX-License-Identifier: Apache-2.0
// Field numbers of the XSpace messages (tsl/profiler/protobuf/xplane.proto).
#ifndef XPL_ANALYSIS_XPLANE_FIELDS_H_
#define XPL_ANALYSIS_XPLANE_FIELDS_H_

#include "analysis/wire/wire.h"

enum {
    XSPACE_PLANES = 1,
    XSPACE_ERRORS = 2,
    XSPACE_WARNINGS = 3,
    XSPACE_HOSTNAMES = 4,
    XPLANE_ID = 1,
    XPLANE_NAME = 2,
    XPLANE_LINES = 3,
    XPLANE_EVENT_MD = 4,
    XPLANE_STAT_MD = 5,
    XPLANE_STATS = 6,
    XLINE_ID = 1,
    XLINE_NAME = 2,
    XLINE_TIMESTAMP_NS = 3,
    XLINE_EVENTS = 4,
    XLINE_DURATION_PS = 9,
    XLINE_DISPLAY_ID = 10,
    XLINE_DISPLAY_NAME = 11,
    XEVENT_MD_ID = 1,
    XEVENT_OFFSET_PS = 2,
    XEVENT_DURATION_PS = 3,
    XEVENT_STATS = 4,
    XEVENT_OCCURRENCES = 5,
    XSTAT_MD_ID = 1,
    XSTAT_DOUBLE = 2,
    XSTAT_UINT = 3,
    XSTAT_INT = 4,
    XSTAT_STR = 5,
    XSTAT_BYTES = 6,
    XSTAT_REF = 7,
    XEVENT_MD_NAME = 2,
    XEVENT_MD_METADATA = 3,
    XEVENT_MD_DISPLAY_NAME = 4,
    XEVENT_MD_STATS = 5,
    XEVENT_MD_CHILD_ID = 6,
    XSTAT_MD_NAME = 2,
    XSTAT_MD_DESCRIPTION = 3,
};

// A repeated message field 4 (XLine.events, XEvent.stats): the first byte of nearly all there is.
enum { XPL_TAG_FIELD4_LEN = 4 << 3 | XPL_WIRE_LEN };

#endif
