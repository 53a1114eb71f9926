// SPDX-License-Identifier: Apache-2.0
// The address in a target's text, and its protocol.
#include <stdio.h>
#include <string.h>

#include "capture/impl.h"

#define PYTORCH    "pytorch:"
#define AGENT_PORT "9011" // xplaned-agent's

void xpl_capture_address(struct xpl_capture_address *ret, const char *target) {
    *ret =
        (struct xpl_capture_address){.of_pytorch = strncmp(target, PYTORCH, strlen(PYTORCH)) == 0};
    const char *const t = ret->of_pytorch ? target + strlen(PYTORCH) : target;
    const char *const colon = strrchr(t, ':');
    const char *const bracket = strrchr(t, ']');
    const bool has_port = !ret->of_pytorch || (colon && (!bracket || colon > bracket));
    (void)snprintf(ret->text, sizeof ret->text, "%s%s", t, has_port || !*t ? "" : ":" AGENT_PORT);
}
