"""Sums of some blocks, and how two of them become one."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from hilbin.stream.chunks import Block, Chunk

Of = Callable[[Chunk], Any]


class Part(NamedTuple):
    """The sum of some blocks; ``total`` is None if they have no rows."""

    total: Any
    blocks: int
    rows: int
    notes: tuple[str, ...] = ()


def part_of(of: Of, block: Block, chunk: Chunk) -> Part:
    """What a block that has been read adds to the sum."""
    total = of(chunk) if chunk.X.shape[0] else None
    return Part(total, 1, block.rows, chunk.notes)


def joined(parts: Sequence[Part]) -> Part:
    """The sum of parts, which stay as they are: a scheduler may want them again."""
    notes = tuple(note for part in parts for note in part.notes)
    totals = [part.total for part in parts if part.total is not None]
    total = totals[0] if totals else None
    if len(totals) > 1:
        total = totals[0] + totals[1]
        for other in totals[2:]:
            total += other
    return Part(total, sum(p.blocks for p in parts), sum(p.rows for p in parts), notes)


def added(total: Any, more: Any) -> Any:
    """``total + more``, in the memory of ``total``."""
    if more is None:
        return total
    if total is None:
        return np.array(more) if isinstance(more, np.ndarray) else more
    total += more
    return total
