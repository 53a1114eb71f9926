// SPDX-License-Identifier: Apache-2.0
// SKILL.md, embedded: the guide to xplanectl for AI agents.
#ifndef XPL_CLI_AGENTS_SKILL_H_
#define XPL_CLI_AGENTS_SKILL_H_

#include <stddef.h>

extern const unsigned char xpl_skill[];
extern const size_t xpl_skill_len;

#endif
