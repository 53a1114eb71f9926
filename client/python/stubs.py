# SPDX-License-Identifier: Apache-2.0
"""Makes the package's part xplaned.v1, messages and calls, of the schemas in proto/.

    stubs.py OUT     writes OUT/xplaned/v1/*.py and *.pyi, and the documents of the MCP server into OUT/xplaned/docs

Needs grpcio-tools 1.62: what it writes runs with protobuf 4.25 and every later one; newer tools demand their own protobuf.
"""
import pathlib
import shutil
import subprocess
import sys

PROTO = pathlib.Path(__file__).resolve().parents[2] / "proto"


# What the MCP server shows of the documents.
DOCUMENTS = [PROTO.parent / "docs" / name for name in ("findings.md", "schema.md", "sql.md")]


def make(out):
    """Writes the stubs; returns their paths."""
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    schemas = sorted(str(path.relative_to(PROTO)) for path in (PROTO / "xplaned" / "v1").glob("*.proto"))
    subprocess.run([sys.executable, "-m", "grpc_tools.protoc", "-I", str(PROTO), f"--python_out={out}", f"--pyi_out={out}",
                    f"--grpc_python_out={out}", *schemas], check=True)
    (out / "xplaned" / "docs").mkdir(exist_ok=True)
    for path in DOCUMENTS:
        shutil.copy(path, out / "xplaned" / "docs")
    return sorted(path for kind in ("v1", "docs") for path in (out / "xplaned" / kind).iterdir())


if __name__ == "__main__":
    make(sys.argv[1])
