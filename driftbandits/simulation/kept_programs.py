"""Compiled programs, kept from one process to the next.

JAX's own cache is asked for a program that was traced and lowered, which takes longer than loading
it. Here a program is found by a name made from all that shapes it, and nothing is traced. Each has
a file; one that is damaged, or of another version, counts as missing and is written again.

A file holds machine code, as those of JAX's cache do: whoever can write it runs code as its reader.
So only files of this user are read, that nobody else can write.
"""

import hashlib
import json
import os
import pickle
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import jax
from jax.experimental.serialize_executable import deserialize_and_load, serialize

from driftbandits.atomic_file import write_atomically
from driftbandits.simulation.compiling import CompiledPrograms
from driftbandits.simulation.program_names import Name
from driftbandits.simulation.surroundings import surroundings

FORMAT = b"driftbandits programs 1\n"
DIGEST = 32  # bytes
MOST_BYTES = 2**29  # of all files in the folder; the ones not used for longest go first

Facts = dict[str, Any]  # of JSON's types


class Binary(NamedTuple):
    """A compiled program as bytes, which any device of this machine can load.

    Its arguments and results are arrays in plain tuples, written as nested lists of zeros.
    """

    code: bytes
    arguments: Any
    results: Any

    def on(self, device: jax.Device) -> jax.stages.Compiled:
        trees = (jax.tree.structure(as_tuples(tree)) for tree in (self.arguments, self.results))
        given, results = trees
        return deserialize_and_load(
            self.code, given, results, backend=device.client, execution_devices=[device]
        )


class Kept(NamedTuple):
    """Programs that belong together, and what was found out while they were traced."""

    facts: Facts
    binaries: list[Binary]

    def on(self, device: jax.Device) -> list[jax.stages.Compiled] | None:
        """None where the device does not take them."""
        try:
            return [binary.on(device) for binary in self.binaries]
        except (ValueError, LookupError, pickle.UnpicklingError, jax.errors.JaxRuntimeError):
            return None


def kept_of(facts: Facts, made: CompiledPrograms) -> Kept | None:
    """None for programs that cannot be taken out of this process."""
    if not made.movable:
        return None
    try:
        return Kept(facts, [binary_of(program) for program in made.programs])
    except (NotImplementedError, ValueError, jax.errors.JaxRuntimeError):
        return None


def binary_of(program: jax.stages.Compiled) -> Binary:
    code, arguments, results = serialize(program)
    return Binary(code, *(as_lists(blank(tree)) for tree in (arguments, results)))


def blank(structure: Any) -> Any:
    return jax.tree.unflatten(structure, [0] * structure.num_leaves)


def as_lists(tree: Any) -> Any:
    """For JSON, which has no tuples; no other node is expected than those and a call's keywords."""
    if type(tree) is tuple:
        return [as_lists(part) for part in tree]
    if tree not in (0, None, {}):
        raise ValueError("a node that is no plain tuple")
    return tree


def as_tuples(tree: Any) -> Any:
    return tuple(map(as_tuples, tree)) if isinstance(tree, list) else tree


def find(folder: Path | None, name: Name | None) -> Kept | None:
    """What was kept under a name; None where nothing is, or nothing may be."""
    if folder is None or name is None:
        return None
    path = path_of(folder, name)
    try:
        with path.open("rb") as file:
            if not is_own(os.fstat(file.fileno())):
                return None
            content = file.read()
        os.utime(path)  # it was used now
        return decoded(content, path.stem)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def keep(
    folder: Path | None, name: Name | None, facts: Facts, made: CompiledPrograms
) -> Kept | None:
    """What other devices can load, and other processes if there is a folder and a name.

    A folder that cannot be written disturbs nobody.
    """
    kept = kept_of(facts, made)
    if kept and folder and name:
        with suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = path_of(folder, name)
            write_atomically(path, encoded(kept, path.stem))
            path.chmod(0o600)
            make_room(folder)
    return kept


def path_of(folder: Path, name: Name) -> Path:
    text = json.dumps([name, surroundings()], default=lambda number: number.item())
    return folder / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.programs"


def is_own(status: os.stat_result) -> bool:
    """Whether a file is this user's, and nobody else can have written to it."""
    return not hasattr(os, "getuid") or (
        status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    )


def encoded(kept: Kept, stem: str) -> bytes:
    """With the name of its file, so that no other file can be put in its place."""
    about = [[len(code), *trees] for code, *trees in kept.binaries]
    head = json.dumps([kept.facts, about]).encode() + b"\n"
    body = head + b"".join(binary.code for binary in kept.binaries)
    return FORMAT + digest_of(body, stem) + body


def decoded(content: bytes, stem: str) -> Kept:
    start = len(FORMAT) + DIGEST
    body = content[start:]
    if content[:start] != FORMAT + digest_of(body, stem):
        raise ValueError("a damaged file, or one of another format")
    head, _, rest = body.partition(b"\n")
    facts, about = json.loads(head)
    binaries = []
    for size, *trees in about:
        binaries.append(Binary(rest[:size], *trees))
        rest = rest[size:]
    return Kept(facts, binaries)


def digest_of(body: bytes, stem: str) -> bytes:
    return hashlib.blake2b(body, digest_size=DIGEST, key=stem.encode()).digest()


def make_room(folder: Path) -> None:
    """Removes the files that were not used for longest."""
    files = [(path.stat(), path) for path in folder.glob("*.programs")]
    files.sort(key=lambda file: file[0].st_mtime, reverse=True)
    total = 0
    for status, path in files:
        total += status.st_size
        if total > MOST_BYTES:
            path.unlink(missing_ok=True)
