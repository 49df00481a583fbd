"""Stream: where samples come from, chunk by chunk, and how sums over them are folded.

``hilbin.stream.opening.KINDS`` lists the kinds of data that :func:`as_chunks` opens.
"""

from hilbin.stream.chunks import CheckpointError, Chunk, ChunkError, Chunks, LeftOutWarning
from hilbin.stream.folding import fold
from hilbin.stream.images import ImageChunks
from hilbin.stream.opening import as_chunks

__all__ = [
    "CheckpointError",
    "Chunk",
    "ChunkError",
    "Chunks",
    "ImageChunks",
    "LeftOutWarning",
    "as_chunks",
    "fold",
]
