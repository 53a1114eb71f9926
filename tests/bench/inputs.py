# SPDX-License-Identifier: Apache-2.0
"""What is measured with, and on: builds, virtual environments, profiles."""
import lzma
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests/data/logdir"
ACCEL, CPU = DATA / "accel/plugins/profile", DATA / "cpu/plugins/profile"
REAL = {  # name: (profile, description)
    "tpu": (ACCEL / "tpu_inference_a/tpu_inference_a.xplane.pb", "TPU inference, 4 chips"),
    "nvidia": (ACCEL / "gpu_multi_worker/gpu_multi_worker.xplane.pb", "TensorFlow on NVIDIA GPUs"),
    "amd": (ACCEL / "mi300_jax_te_fused_attn/mi300_jax_te_fused_attn.xplane.pb",
            "JAX attention on AMD MI300X"),
    "tf-cpu": (CPU / "tf_custom_h2p0/vm.xplane.pb", "TensorFlow on CPU with tf.data"),
}
QUICK = ("tpu", "nvidia")
MB = 10**6
PEERS = {"xprof": "xprof==2.24.2", "rs": "xprof-rs==0.1.3"}


def note(text):
    print(text, file=sys.stderr, flush=True)


def run(*args):
    subprocess.run([str(a) for a in args], check=True, stdout=sys.stderr)


def quietly(*args):
    """Shows what a command says only when it fails."""
    got = subprocess.run([str(a) for a in args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         text=True)
    if got.returncode != 0:
        sys.exit(f"{got.stdout[-4000:]}\n{args[0]} failed")


def build(folder):
    """A release build with everything that is measured."""
    note(f"building below {folder}")
    if not (folder / "build.ninja").exists():
        quietly("meson", "setup", folder, ROOT, "-Dbuildtype=release", "-Db_lto=true", "-Dtests=enabled")
    programs = ["repeat_profile", "rss_sampler", "walk_floor", "rpc_load", "bare_server"]
    quietly("ninja", "-C", folder, "server/xplaned", "cli/xplanectl", *(f"tests/bench/{p}" for p in programs))
    return folder


def venv(folder, package):
    """A virtual environment with one peer, or None when it cannot be had."""
    marker = folder / (package + ".installed")
    if not marker.exists():
        note(f"installing {package}")
        try:
            run(sys.executable, "-m", "venv", "--clear", folder)
            run(folder / "bin/pip", "install", "-q", package)
        except (subprocess.CalledProcessError, OSError) as e:
            note(f"{package}: {e}")
            return None
        marker.touch()
    return folder


class Input:
    def __init__(self, name, path, what, kind):
        self.name, self.path, self.what, self.kind = name, path, what, kind
        self.size = path.stat().st_size

    @property
    def mb(self):
        return self.size / MB


def repeat(bins, source, to, size):
    """A real profile repeated to `size` bytes (tests/bench/repeat_profile.c)."""
    made = to.with_suffix(".making")
    run(bins / "tests/bench/repeat_profile", source, made, size)
    made.rename(to)
    return to


def ten_million(folder, bins, corpus, quick, wanted):
    """Profiles repeated to 10 million events: the corpus' large ones and real ones."""
    found = []
    sources = {f.name: (f.path, f.what) for f in corpus} | REAL
    for name in ("nvidia",) if quick else (*(f.name for f in corpus), "nvidia", "tf-cpu"):
        source, what = sources[name]
        to, label = folder / f"{name}.10m.xplane.pb", f"{name} 10 M events"
        if wanted not in label:
            continue
        if not to.exists():
            note(f"making {to.name}")
            made = to.with_suffix(".making")
            run(bins / "tests/bench/repeat_profile", "--events", source, made, 10**7)
            made.rename(to)
        warm_cache(to)
        found.append(Input(label, to, what, "events"))
    return found


def uncompress(source, to):
    with lzma.open(source) as a, tempfile.NamedTemporaryFile(dir=to.parent, delete=False) as b:
        shutil.copyfileobj(a, b, 1 << 20)
    Path(b.name).rename(to)
    return to


def warm_cache(path):
    with open(path, "rb") as f:
        while f.read(1 << 22):
            pass


def inputs(folder, bins, corpus, quick, wanted):
    """Profiles to measure: the corpus' large ones, real ones repeated to 60 MB and to 1 GB; of these
    the ones with `wanted` in their names."""
    folder.mkdir(parents=True, exist_ok=True)
    stamp = folder / "made-by"
    maker = (ROOT / "tests/bench/repeat_profile.c").read_bytes()
    if not stamp.exists() or stamp.read_bytes() != maker:
        for old in folder.glob("*.pb"):
            old.unlink()
        stamp.write_bytes(maker)
    found = []
    for xz in sorted(corpus.glob("*.xz")) if corpus else []:
        name, to = xz.name.split(".")[0], folder / xz.stem
        if wanted in name:
            found.append(Input(name, to if to.exists() else uncompress(xz, to), "corpus", "corpus"))
    for size, kind, label in ((60, "60", "60 MB"), (1000, "1000", "1 GB"))[:1 if quick else 2]:
        for name, (source, what) in REAL.items():
            to, label_of = folder / f"{name}.{kind}.xplane.pb", f"{name} {label}"
            if wanted not in label_of or (quick and name not in QUICK):
                continue
            if not to.exists():
                repeat(bins, source, to, size * MB)
            found.append(Input(label_of, to, what, kind))
    for f in found:
        warm_cache(f.path)
    return found
