"""Compile the neighbour sampling of torch-sparse alone, which PyG's NeighborSampler needs: two of its many files.

python build_neighbour_sampling.py FOLDER

There is no wheel of torch-sparse or pyg-lib on PyPI, and the whole of torch-sparse takes long to compile.
"""

import subprocess
import sys
import tarfile
from pathlib import Path

from torch.utils import cpp_extension

VERSION = "0.6.18"
SOURCES = ("csrc/neighbor_sample.cpp", "csrc/cpu/neighbor_sample_cpu.cpp")


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*download, "--dest", folder, f"torch-sparse=={VERSION}"], check=True)
    with tarfile.open(folder / f"torch_sparse-{VERSION}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    root = folder / f"torch_sparse-{VERSION}"
    places = [root / "csrc", root / "third_party/parallel-hashmap", *cpp_extension.include_paths()]
    libraries = [f"-L{path}" for path in cpp_extension.library_paths()] + ["-ltorch", "-ltorch_cpu", "-lc10"]
    command = ["g++", "-O1", "-fPIC", "-shared", "-std=c++20", *(f"-I{place}" for place in places)]
    target = folder / "neighbor_sample.so"
    subprocess.run([*command, *(root / source for source in SOURCES), "-o", target, *libraries], check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
