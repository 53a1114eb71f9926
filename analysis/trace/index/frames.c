// SPDX-License-Identifier: Apache-2.0
// Stack frames as JSON.
#include <inttypes.h>

#include "analysis/trace/index/read.h"
#include "base/json.h"

// A member that follows another one follows its closing brace.
void trc_put_frame(struct xpl_buf *b, uint32_t number, xpl_str_t text) {
    xpl_buf_printf(b, "%s\"%" PRIu32 "\":{\"name\":", b->n && b->p[b->n - 1] == '}' ? "," : "",
                   number);
    xpl_json_str(b, text, true);
    xpl_buf_putc(b, '}');
}
