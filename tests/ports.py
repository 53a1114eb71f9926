# SPDX-License-Identifier: Apache-2.0
"""Ports of loopback for servers that need a number before they start."""
import contextlib
import random
import socket

given = set()


def is_free(port):
    with contextlib.ExitStack() as ends:
        for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
            with contextlib.suppress(socket.error):
                s = ends.enter_context(socket.socket(family))
                if s.connect_ex((address, port)) == 0:
                    return False
        try:
            s = ends.enter_context(socket.socket())
            s.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port(*beside):
    """Below the range that the kernel takes ports of connections and of our daemons from, so that nobody else gets it before
    the server that it is for; and so are those that are so much higher.  No port twice, for gRPC servers share one without a
    word."""
    while True:
        port = random.randrange(18000, 32000 - max(beside, default=0))
        ports = {port + more for more in (0, *beside)}
        if not ports & given and all(map(is_free, ports)):
            given.update(ports)
            return port
