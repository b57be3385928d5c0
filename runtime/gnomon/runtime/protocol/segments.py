"""Frames in memory that processes share: one segment holds one value.

On Linux a segment is an anonymous file in memory (``memfd``): no name to leak, freed by the kernel with its last
descriptor or mapping, sealed once written so that no holder can change or shrink it under another. Elsewhere it is a
temporary file that is unlinked at once. All that knows the difference is ``_medium``.

A segment is filled by ``write``, which is more than twice as fast as storing into a mapping page by page, and which
reports full memory as an error, where a mapping would kill the process.

A segment's content is the **image** of its frames: each at the next multiple of ``ALIGNMENT``, zeros between them. The
layout, the frames' lengths, says where they are. Values that cross a socket travel as the same image.

Contents: Segment, SegmentWriter, SegmentError, image, image_size, ALIGNMENT.
"""

from __future__ import annotations

import mmap
import os
import stat
import sys
import tempfile
from collections.abc import Iterable, Sequence
from types import TracebackType

__all__ = ["ALIGNMENT", "Segment", "SegmentError", "SegmentWriter", "image", "image_size"]

#: Frames start at multiples of this many bytes (a cache line, and what vector instructions like).
ALIGNMENT = 64

#: Bytes handed to one ``write``; the kernel takes less than 2 GiB.
_SLICE = 64 << 20

#: Segments below this many bytes are read into memory of our own rather than mapped: as fast, and a mapping would keep
#: a file descriptor open as long as the value lives.
_MAP_FROM = 1 << 20

_PADDING = memoryview(bytes(ALIGNMENT))


class SegmentError(ValueError):
    """A descriptor and a layout that don't belong together: the segment is too short, or is no file."""


def image_size(layout: Sequence[int]) -> int:
    """Bytes of the image of frames of these lengths."""
    return sum(length + -length % ALIGNMENT for length in layout)


def image(frames: Iterable[bytes | bytearray | memoryview]) -> list[memoryview]:
    """The image of frames, in pieces that view them; no piece is empty."""
    pieces: list[memoryview] = []
    for frame in frames:
        view = memoryview(frame)
        if view.nbytes:
            pieces.append(view.cast("B"))
            if padding := -view.nbytes % ALIGNMENT:
                pieces.append(_PADDING[:padding])
    return pieces


class Segment:
    """A written segment: a file descriptor that this object owns, and the layout of its frames.

    Close it when it has been handed over or mapped; mappings live on by themselves.
    """

    __slots__ = ("fd", "layout")

    def __init__(self, fd: int, layout: Sequence[int]) -> None:
        self.fd = fd
        self.layout = tuple(layout)

    @property
    def nbytes(self) -> int:
        """Bytes of all frames."""
        return sum(self.layout)

    @staticmethod
    def write(frames: Iterable[bytes | bytearray | memoryview]) -> Segment:
        """A new sealed segment that holds the frames.

        Raises OSError (ENOSPC, ENOMEM, EMFILE) where there is no room for it; nothing is left behind then.
        """
        frames = list(frames)
        with SegmentWriter([memoryview(frame).nbytes for frame in frames]) as writer:
            for piece in image(frames):
                writer.write(piece)
            return writer.seal()

    @staticmethod
    def received(fd: int, layout: Sequence[int]) -> Segment:
        """The segment of a descriptor that another process sent, which is ours from now on.

        Raises SegmentError, and closes the descriptor, if it is not sealed or smaller than the layout says: then its
        owner could shrink it under our mapping, which kills the process that reads on.
        """
        segment = Segment(fd, layout)
        try:
            _check(fd, image_size(layout), layout)
            if not _medium.is_sealed(fd):
                raise SegmentError("a descriptor that is no sealed segment")
        except (SegmentError, OSError) as exc:
            segment.close()
            raise SegmentError(str(exc)) from exc
        return segment

    @staticmethod
    def frames(fd: int, layout: Sequence[int]) -> list[memoryview]:
        """The frames of a segment as writable memory that is private to this process; the descriptor may be closed.

        Large segments are mapped copy-on-write, and unmapped when the last of the views dies.
        Raises SegmentError if the segment is not as large as the layout says, OSError if it can't be mapped.
        """
        size = image_size(layout)
        _check(fd, size, layout)
        view = memoryview(_map(fd, size) if size >= _MAP_FROM else _read(fd, size))
        frames: list[memoryview] = []
        position = 0
        for length in layout:
            frames.append(view[position : position + length])
            position += length + -length % ALIGNMENT
        return frames

    def close(self) -> None:
        """Close the descriptor. Idempotent."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> Segment:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Segment fd={self.fd} {self.nbytes} bytes in {len(self.layout)} frames>"


class SegmentWriter:
    """A segment being filled: ``write`` its image from front to back in any pieces, then ``seal``.

    As a context manager it gives up what was not sealed.
    """

    __slots__ = ("_fd", "layout", "wanted")

    def __init__(self, layout: Sequence[int]) -> None:
        self._fd = -1
        self.layout = tuple(layout)
        #: Bytes of the image that are still missing.
        self.wanted = image_size(layout)
        self._fd = _medium.open()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append bytes to the image.

        Raises SegmentError for more bytes than the image has, OSError (ENOSPC, ENOMEM) where there is no room.
        """
        view = memoryview(data)
        if view.nbytes > self.wanted:
            raise SegmentError("more bytes than the layout has")
        while view.nbytes:
            count = os.write(self._fd, view[:_SLICE])
            view = view[count:]
            self.wanted -= count

    def seal(self) -> Segment:
        """The finished segment, which no one can change any more.

        Raises SegmentError if bytes are missing.
        """
        if self.wanted:
            raise SegmentError(f"{self.wanted} bytes are missing")
        _medium.seal(self._fd)
        fd, self._fd = self._fd, -1
        return Segment(fd, self.layout)

    def close(self) -> None:
        """Give up what was not sealed. Idempotent."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> SegmentWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


# ---- the seam: what holds a segment ----------------------------------------------------------------------------------


class _File:
    """A temporary file that has no name any more; everywhere."""

    @classmethod
    def open(cls) -> int:
        with tempfile.TemporaryFile(buffering=0) as file:
            return os.dup(file.fileno())

    @staticmethod
    def seal(fd: int) -> None:
        """Nothing to do: files have no seals."""

    @staticmethod
    def is_sealed(fd: int) -> bool:
        return True


_medium: type[_File] = _File

if sys.platform == "linux":
    import fcntl

    class _Memory(_File):
        """Anonymous memory."""

        _SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE

        _FLAGS = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
        _NOT_EXECUTABLE = 0x8  # MFD_NOEXEC_SEAL, which some systems demand, and kernels before 6.3 refuse

        @classmethod
        def works(cls) -> bool:
            """Whether the system lets us have such files; some sandboxes don't. Settles the flags to ask with."""
            for flags in (cls._FLAGS | cls._NOT_EXECUTABLE, cls._FLAGS):
                try:
                    os.close(os.memfd_create("gnomon", flags))
                except OSError:
                    continue
                cls._FLAGS = flags
                return True
            return False

        @classmethod
        def open(cls) -> int:
            return os.memfd_create("gnomon", cls._FLAGS)

        @staticmethod
        def seal(fd: int) -> None:
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _Memory._SEALS | fcntl.F_SEAL_SEAL)

        @staticmethod
        def is_sealed(fd: int) -> bool:
            return fcntl.fcntl(fd, fcntl.F_GET_SEALS) & _Memory._SEALS == _Memory._SEALS

    if _Memory.works():
        _medium = _Memory


def _check(fd: int, size: int, layout: Sequence[int]) -> None:
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode) or status.st_size < size or any(length < 0 for length in layout):
        raise SegmentError(f"a file of {status.st_size} bytes does not hold frames of {tuple(layout)[:10]}")


def _map(fd: int, size: int) -> mmap.mmap:
    if sys.version_info >= (3, 13):
        return mmap.mmap(fd, size, access=mmap.ACCESS_COPY, trackfd=False)
    return mmap.mmap(fd, size, access=mmap.ACCESS_COPY)


def _read(fd: int, size: int) -> bytearray:
    data = bytearray(size)
    if hasattr(os, "preadv"):
        done = 0
        while done < size:
            count = os.preadv(fd, [memoryview(data)[done:]], done)
            if count == 0:
                raise SegmentError("the segment ended early")
            done += count
    else:
        with open(os.dup(fd), "rb", buffering=0) as file:
            file.seek(0)
            if file.readinto(data) != size:
                raise SegmentError("the segment ended early")
    return data
