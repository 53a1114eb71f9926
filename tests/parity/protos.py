# SPDX-License-Identifier: Apache-2.0
"""profile.proto as Python classes, compiled when first imported, into a temporary directory."""
import atexit
import importlib.util
import os
import shutil
import sys
import tempfile


def _load():
    from grpc_tools import protoc
    here = os.path.dirname(os.path.abspath(__file__))
    out = tempfile.mkdtemp(prefix="xplaned-parity-")
    atexit.register(shutil.rmtree, out, ignore_errors=True)
    if protoc.main(["protoc", f"-I{here}", f"--python_out={out}", os.path.join(here, "profile.proto")]):
        sys.exit("cannot compile profile.proto")
    spec = importlib.util.spec_from_file_location("profile_pb2", os.path.join(out, "profile_pb2.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


pb = _load()
