// SPDX-License-Identifier: Apache-2.0
// NAME.ireeprof: a profile bundle of IREE, as it is.  No XSpace is made of it: tools of its own
// read the bytes (analysis/ireeprof), whether the bundle is whole or not.
#include <string.h>

#include "analysis/formats/impl.h"

bool xpl_ireeprof_sniff(xpl_bytes_t file) {
    return file.len >= 4 && memcmp(file.ptr, "IRPF", 4) == 0;
}
