// SPDX-License-Identifier: Apache-2.0
// What IREE's tools can record: the names of --device_profiling_mode, checked before a program
// starts.  Names and rules are those of iree-base-runtime 3.13.0 (`iree-run-module --help`).
#ifndef XPL_CLI_IREE_MODES_H_
#define XPL_CLI_IREE_MODES_H_

#include <stdbool.h>
#include <stddef.h>

// Whether the list of modes has names that IREE knows, and counters are there just where they are
// asked for; says why not.
bool xpl_modes_check(const char *modes, bool counters);
// What the device that the program's arguments name (--device=URI) can record, for whoever gives no
// --mode.  NULL after saying why when there is no such device, or none that is known.
const char *xpl_modes_of(const char *const *argv, size_t n);

#endif
