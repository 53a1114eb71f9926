// SPDX-License-Identifier: Apache-2.0
// Scope-bound cleanup: XPL_AUTO(xpl_arena_fini) struct xpl_arena a = ...;
#ifndef XPL_BASE_CLEANUP_H_
#define XPL_BASE_CLEANUP_H_

#define XPL_AUTO(fn) __attribute__((cleanup(fn)))

#endif
