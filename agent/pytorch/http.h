// SPDX-License-Identifier: Apache-2.0
// One kind of HTTP request: an empty POST, by libcurl, which is loaded when it is first needed.
#ifndef XPL_AGENT_PYTORCH_HTTP_H_
#define XPL_AGENT_PYTORCH_HTTP_H_

#include <stdatomic.h>
#include <stdint.h>

#include "base/status.h"

// POSTs to `url` (http or https) and waits for the answer, whose body is ignored.  Redirections are
// not followed, and $http_proxy does not count.  `cancel` NULL, or a number: any but 0 ends the
// request.  FAILED_PRECONDITION: no libcurl, or another answer than 2xx; UNAVAILABLE: none;
// CANCELLED.  Any thread.
xpl_status_t xpl_pytorch_post(const char *url, uint64_t timeout_ms, const atomic_int *cancel,
                              struct xpl_error *err) XPL_NODISCARD;

#endif
