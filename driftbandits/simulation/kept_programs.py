"""A cache of compiled programs on disk.

JAX's own cache needs a program to be traced and lowered first, which takes longer than loading it.
Here a program is found by a name made from everything that determines it, and nothing is traced.
Each has a file. A file that is damaged, or of another version, counts as missing and is written
again.

A file holds machine code, like those of JAX's cache: anyone who can write it can run code as the
user who reads it. So only files that belong to this user, and that no one else can write, are read.
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
    """Programs that belong together, and facts that were found while they were traced."""

    facts: Facts
    binaries: list[Binary]

    def on(self, device: jax.Device) -> list[jax.stages.Compiled] | None:
        """The programs on a device; None if it cannot load them."""
        try:
            return [binary.on(device) for binary in self.binaries]
        except (ValueError, LookupError, pickle.UnpicklingError, jax.errors.JaxRuntimeError):
            return None


def kept_of(facts: Facts, made: CompiledPrograms) -> Kept | None:
    """None for programs that cannot be serialised."""
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
    """Tuples as lists, for JSON; other nodes than these and keyword arguments do not occur."""
    if type(tree) is tuple:
        return [as_lists(part) for part in tree]
    if tree not in (0, None, {}):
        raise ValueError("a node that is no plain tuple")
    return tree


def as_tuples(tree: Any) -> Any:
    return tuple(map(as_tuples, tree)) if isinstance(tree, list) else tree


def find(folder: Path | None, name: Name | None) -> Kept | None:
    """The programs cached under a name; None if there are none or caching is off."""
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
    """Serialises programs for other devices, and caches them if there is a folder and a name.

    A folder that cannot be written is ignored.
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
    """Whether a file belongs to this user and no one else can write it."""
    return not hasattr(os, "getuid") or (
        status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    )


def encoded(kept: Kept, stem: str) -> bytes:
    """The content of a file, with its name, so that no other file can take its place."""
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
    """Removes the least recently used files."""
    files = [(path.stat(), path) for path in folder.glob("*.programs")]
    files.sort(key=lambda file: file[0].st_mtime, reverse=True)
    total = 0
    for status, path in files:
        total += status.st_size
        if total > MOST_BYTES:
            path.unlink(missing_ok=True)
