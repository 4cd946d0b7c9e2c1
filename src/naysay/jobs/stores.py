"""The files of a job that are in a store: inputs are copied to its folder once, outputs are uploaded from there."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from naysay._options import command_fields, flag_of
from naysay.errors import NaysayError
from naysay.files import is_draft, sync
from naysay.jobs.folder import JobFolder
from naysay.jobs.guards import KeptJobError, disk_errors
from naysay.jobs.options import JobOptions
from naysay.places import Place, Remote, Url, copy_of, fetch, upload

_DRAFTS = "outputs"  # the folder in which a file is made that is uploaded


def version_of(remote: Remote) -> dict[str, Any]:
    """What the record of a job has of an input in a store: its size, and what changes when it is replaced."""
    versions = "\n".join(f"{path} {version}" for path, _, version in remote.files)
    return {"bytes": remote.size, "version": hashlib.sha256(versions.encode()).hexdigest()}


def with_copies(
    folder: JobFolder, job: JobOptions, remotes: Mapping[str, Remote], log: Callable[[str], None]
) -> tuple[JobOptions, dict[str, str]]:
    """The options with paths of copies in place of URLs, and {copy: what it is a copy of}. Each is made once."""
    paths: dict[str, Path] = {}
    names: dict[str, str] = {}
    fields = {flag_of(one): one.name for one in command_fields(job)}
    for option, remote in remotes.items():
        stem = option.strip("-")
        step, place = f"copy of {option}", folder.claim(f"{stem}-copy")
        copy = copy_of(remote, place, stem)
        if step not in folder.steps:
            log(f"{remote.url}: {remote.size:,} bytes are copied to {place}.")
            place.mkdir(exist_ok=True)
            fetch(option, remote, place, stem)
            folder.record_folder(place.name)
            folder.finish(step, remote.size)
        paths[fields[option]] = copy.path
        names |= copy.names
    changed: Any = paths
    return replace(job, **changed), names


def targets_of(job: JobOptions) -> dict[str, Place]:
    """{part: where it is written} of all that a job writes."""
    paths = {"output": job.output, "report": job.report, "review": job.review_path}
    return {part: path for part, path in paths.items() if path is not None}


@contextmanager
def published(folder: JobFolder, job: JobOptions) -> Iterator[dict[str, Path]]:
    """Give names for drafts of all that is written, which carry the id of the job; publish them at the end.

    Nothing is published if an input changed.
    """
    targets = targets_of(job)
    drafts = {part: _draft(folder, part, path) for part, path in targets.items()}
    old = drafts["output"].with_name(f".naysay-{folder.id}.old")
    _clear(*drafts.values())
    try:
        yield drafts
        folder.inputs.check()
        for part, target in targets.items():
            draft = drafts[part]
            if isinstance(target, Url):
                _publish("--review-file" if part == "review" else f"--{part}", draft, target)
                continue
            with disk_errors(target):
                sync(draft)
                if target.is_dir():  # a data set, which cannot be replaced in one step
                    os.replace(target, old)
                os.replace(draft, target)
                sync(target.parent)
    finally:
        if old.exists() and isinstance(job.output, Path) and not job.output.exists():
            os.replace(old, job.output)
        _clear(*drafts.values(), old)


def _clear(*drafts: Path) -> None:
    """Remove drafts of the job, and the drafts that their writers left."""
    for draft in drafts:
        shutil.rmtree(draft) if draft.is_dir() else draft.unlink(missing_ok=True)
        for left in draft.parent.iterdir():
            if is_draft(left) and left.name.startswith(f".{draft.name}."):
                shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)


def _draft(folder: JobFolder, part: str, target: Place) -> Path:
    """Where a file is made before it is published: beside its target, or in the folder of the job if that is a URL."""
    if isinstance(target, Path):
        review = "-review" if part == "review" else ""  # a review may have the ending of the output
        return target.with_name(f".naysay-{folder.id}{review}{target.suffix}")
    place = folder.claim(_DRAFTS)
    place.mkdir(exist_ok=True)
    return place / f"{part}-000000{target.suffix}"


def _publish(option: str, draft: Path, url: Url) -> None:
    """Upload a file of the job. If that fails, the job is kept, and --resume uploads again."""
    try:
        upload(option, draft, url)
    except NaysayError as error:
        message = f"{error.args[0]} Nothing is lost: run again with --resume."
    else:
        return
    raise KeptJobError(message)


def on_disk(target: Place, draft: Path) -> Path:
    """What is named where the disk fails: the target, or the draft if the target is a URL."""
    return target if isinstance(target, Path) else draft
