# SPDX-License-Identifier: Apache-2.0
"""Profiles of JAX, TensorFlow, PyTorch/XLA and IREE programs, as xplaned analyses them.

    import xplaned

    with xplaned.connect() as client:          # or xplaned.start("~/logs"): a daemon of one's own
        run = client.sessions()[0]
        for finding in run.findings():
            print(finding.text, finding.advice)
        run.ops().to_pandas()

`xplaned.v1` has the messages and calls of gRPC, for what is not here.
"""
from .batch import Conversion, Left, convert
from .capture import Capture, CapturedHost, CaptureRecord
from .client import Client, Event, Option, Tool, connect
from .errors import Error, InvalidArgument, NotFound, Unavailable
from .notebook import load_ipython_extension, watch
from .private import PrivateClient, start
from .rows import Column, Comparison, Finding, Fleet, Op, Rows, Step, Table, Timing, Verdict
from .session import Answer, Host, Session, Warning

__all__ = [
    "Answer", "Capture", "CaptureRecord", "CapturedHost", "Client", "Column", "Comparison", "Conversion", "Error", "Event", "Finding", "Fleet", "Host",
    "InvalidArgument", "Left", "NotFound", "Op", "Option", "PrivateClient", "Rows", "Session", "Step", "Table", "Timing", "Tool", "Unavailable", "Verdict", "Warning",
    "connect", "convert", "load_ipython_extension", "start", "watch",
]
