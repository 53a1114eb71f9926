// SPDX-License-Identifier: Apache-2.0
// `xplanectl iree capture`: runs a program with IREE's profiling flags; its bundle becomes a
// session.
#ifndef XPL_CLI_IREE_CAPTURE_H_
#define XPL_CLI_IREE_CAPTURE_H_

#include "cli/args.h"

// rest: "iree", "capture", the program and its arguments.
int xpl_iree_capture_program(const struct xpl_args *args);

#endif
