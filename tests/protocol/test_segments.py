"""Frames in memory that processes share."""

from __future__ import annotations

import gc
import mmap
import os
import subprocess
import sys

import pytest

from gnomon.runtime.protocol import Segment, SegmentError, SegmentWriter, image, image_size, segments

linux = pytest.mark.skipif(sys.platform != "linux", reason="seals are Linux's")


def open_fds() -> int:
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


@pytest.mark.parametrize(
    "frames",
    [
        [],
        [b""],
        [b"", b""],
        [b"a"],
        [b"a" * 64, b"", b"b" * 65, b"c"],
        [b"x" * 3_000_000, b"y" * 5_000_001],
    ],
    ids=["none", "one-empty", "empties", "tiny", "mixed", "mapped"],
)
@pytest.mark.parametrize("medium", ["the platform's", "file"])
def test_round_trip(frames, medium, monkeypatch):
    if medium == "file":
        monkeypatch.setattr(segments, "_medium", segments._File)
    before = open_fds()
    with Segment.write(frames) as segment:
        assert segment.layout == tuple(map(len, frames))
        assert segment.nbytes == sum(map(len, frames))
        views = Segment.frames(segment.fd, segment.layout)
    assert [bytes(v) for v in views] == frames
    for view in views:
        assert not view.readonly
        view[:1] = b"!"[: len(view)]
    del views
    if frames:
        del view
    assert open_fds() == before


def test_frames_are_aligned():
    with Segment.write([b"x", b"y" * 2_000_000]) as segment:
        _, second = Segment.frames(segment.fd, segment.layout)
    import ctypes

    assert ctypes.addressof(ctypes.c_char.from_buffer(second)) % 64 == 0


def test_the_image():
    pieces = image([b"ab", b"", b"c" * 64])
    assert b"".join(pieces) == b"ab" + bytes(62) + b"c" * 64
    assert image_size([2, 0, 64]) == 128


def test_a_mapping_lives_as_long_as_its_views():
    before = open_fds()
    segment = Segment.write([b"x" * 2_000_000, b"y" * 2_000_000])
    first, second = Segment.frames(segment.fd, segment.layout)
    segment.close()
    part = second[10:20]
    del first, second
    assert bytes(part) == b"y" * 10
    del part
    assert open_fds() == before


def test_segments_close_with_their_last_reference():
    before = open_fds()
    segment = Segment.write([b"x"])
    assert open_fds() == before + 1
    del segment
    gc.collect()
    assert open_fds() == before


def test_the_writer_takes_any_pieces():
    content = b"".join(image([b"a" * 100, b"b" * 7, b""]))
    with SegmentWriter([100, 7, 0]) as writer:
        for i in range(0, len(content), 13):
            writer.write(content[i : i + 13])
        assert writer.wanted == 0
        with pytest.raises(SegmentError, match="more bytes"):
            writer.write(b"x")
        segment = writer.seal()
    with segment:
        assert [bytes(f) for f in Segment.frames(segment.fd, segment.layout)] == [b"a" * 100, b"b" * 7, b""]


def test_an_unfinished_segment_is_given_up():
    before = open_fds()
    with SegmentWriter([100]) as writer:
        writer.write(b"x")
        with pytest.raises(SegmentError, match="missing"):
            writer.seal()
    assert open_fds() == before


def test_a_layout_that_does_not_fit_is_refused():
    with Segment.write([b"x" * 100]) as segment:
        for layout in [(200,), (100, 100), (-64, 128), (2**62,)]:
            with pytest.raises(SegmentError):
                Segment.frames(segment.fd, layout)


def test_pipes_are_no_segments():
    reader, writer = os.pipe()
    try:
        with pytest.raises(SegmentError):
            Segment.frames(reader, (0,))
    finally:
        os.close(reader)
        os.close(writer)


@linux
def test_sealed_segments_cannot_be_changed():
    with Segment.write([b"x" * 10_000]) as segment:
        with pytest.raises(PermissionError):
            os.pwrite(segment.fd, b"y", 0)
        with pytest.raises(PermissionError):
            os.ftruncate(segment.fd, 0)
        with pytest.raises(PermissionError):
            mmap.mmap(segment.fd, 10_000, access=mmap.ACCESS_WRITE)
        assert not os.get_inheritable(segment.fd)


@linux
def test_received_descriptors_must_be_sealed():
    fd = os.memfd_create("loose")
    os.write(fd, bytes(128))
    with pytest.raises(SegmentError):
        Segment.received(fd, (100,))
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)
    with Segment.write([b"abc"]) as segment, Segment.received(os.dup(segment.fd), (3,)) as received:
        assert bytes(Segment.frames(received.fd, received.layout)[0]) == b"abc"


@linux
def test_no_room_is_an_error_and_leaves_nothing():
    import resource

    before = open_fds()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    import signal

    previous = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            Segment.write([bytes(4 << 20)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, previous)
    assert open_fds() == before


@linux
@pytest.mark.parametrize("refused", ["always", "without MFD_NOEXEC_SEAL", "with MFD_NOEXEC_SEAL"])
def test_where_the_system_refuses_files_in_memory(refused):
    """Sandboxes that know no memfd, systems that want them not executable, kernels that don't know how to say that."""
    code = f"""
import errno, os
real = os.memfd_create
def memfd_create(name, flags):
    if {refused!r} == "always" or bool(flags & 8) == {refused.startswith("with ")}:
        raise OSError(errno.EACCES, "refused")
    return real(name, flags & ~8)
os.memfd_create = memfd_create
from gnomon.runtime.protocol import Segment
with Segment.write([b"abc", bytes(500_000)]) as segment, Segment.received(os.dup(segment.fd), (3, 500_000)) as received:
    assert [bytes(frame) for frame in Segment.frames(received.fd, received.layout)] == [b"abc", bytes(500_000)]
    print("memfd" in os.readlink(f"/proc/self/fd/{{segment.fd}}"), os.fstat(segment.fd).st_nlink)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == [str(refused != "always"), "0"]
