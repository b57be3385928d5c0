"""What moved: parts of each fetch, sums by pair and by type that agree, and rows that are none."""

from __future__ import annotations

from array import array
from math import isnan

import pytest

from gnomon.runtime.messages import MessageError, TransfersDone, decode, encode
from gnomon.runtime.scheduler.telemetry import Telemetry

IDS = {"tcp://a": 3}
FRAME, ARRAY = ("DataFrame", 2, 300), ("ndarray", 1, 100)


def done(seconds, parts, types, nbytes=400):
    return TransfersDone(("tcp://a",), (nbytes,), (10.0,), (10.0 + seconds,), ("tcp",), (parts,), (types,))


def test_a_fetch_has_its_parts_and_its_type():
    telemetry = Telemetry()
    telemetry.append_transfers(7, done(2.0, (0.5, 0.25, 1.0), (FRAME,)), IDS, offset=100.0)
    telemetry.append_transfers(7, done(2.0, (0.0, 0.0, 0.0), (FRAME, ARRAY)), IDS)
    telemetry.append_transfers(7, done(2.0, (0.0, 0.0, 0.0), ()), IDS)
    page = telemetry.since((0, 0))["transfers"]
    assert array("d", page["parts"]).tolist() == [0.5, 0.25, 1.0, *[0.0] * 6]
    assert [page["type_names"][i] for i in array("i", page["types"])] == ["DataFrame", "(several)", ""]
    assert array("d", page["starts"]).tolist() == [110.0, 10.0, 10.0]


def test_parts_that_nobody_told_are_unknown_and_add_nothing():
    telemetry = Telemetry()
    told = TransfersDone(("tcp://a", "tcp://a"), (1, 2), (0.0, 0.0), (1.0, 2.0), ("tcp", "tcp"))
    telemetry.append_transfers(7, told, IDS)
    mark = telemetry.mark(0.0)
    assert mark["pairs"] == [(3, 7, "tcp", 2, 3, 3.0)]
    assert mark["pair_parts"] == [(3, 7, "tcp", 0.0, 0.0, 0.0)]
    assert mark["types"] == [("", 0, 0, 3.0, 0.0, 0.0, 0.0)]
    assert all(map(isnan, array("d", telemetry.since((0, 0))["transfers"]["parts"])))


def test_sums_by_type_are_sums_by_pair():
    telemetry = Telemetry()
    telemetry.append_transfers(7, done(2.0, (0.5, 0.25, 1.0), (FRAME, ARRAY)), IDS)
    telemetry.append_transfers(8, done(1.0, (0.0, 0.5, 0.0), (("int", 1, 0), ("str", 3, 0)), nbytes=0), IDS)
    mark = telemetry.mark(0.0)
    by_type = {row[0]: row[1:] for row in mark["types"]}
    assert by_type["DataFrame"] == (2, 300, 1.5, 0.375, 0.1875, 0.75), "three quarters, by bytes"
    assert by_type["str"] == (3, 0, 0.75, 0.0, 0.375, 0.0), "three quarters, by number"
    sums = [sum(column) for column in zip(*by_type.values(), strict=True)]
    pairs = [sum(column) for column in zip(*[row[4:] for row in mark["pairs"]], strict=True)]
    parts = [sum(column) for column in zip(*[row[3:] for row in mark["pair_parts"]], strict=True)]
    assert sums[1:] == [*pairs, *parts]


def test_many_types_and_pairs_end_in_other():
    telemetry = Telemetry(groups=2)
    for i in range(5):
        telemetry.append_transfers(i, done(1.0, (0.0, 0.0, 0.5), ((f"T{i}", 1, 10),)), IDS)
    mark = telemetry.mark(0.0)
    assert [row[:3] for row in mark["types"]] == [("T0", 1, 10), ("T1", 1, 10), ("(other types)", 3, 30)]
    assert [row[:4] for row in mark["pairs"]] == [(3, 0, "tcp", 1), (3, 1, "tcp", 1), (-2, -2, "", 3)]
    assert mark["pair_parts"][-1] == (-2, -2, "", 0.0, 0.0, 1.5)


@pytest.mark.parametrize(
    ("parts", "types"),
    [
        ((-1.0, 0.0, 0.0), ()),
        ((0.0, 0.0), ()),
        (("x", 0.0, 0.0), ()),
        ((0.0, 0.0, 0.0), (("T", -1, 0),)),
        ((0.0, 0.0, 0.0), (("T", 1, 1 << 70),)),
        ((0.0, 0.0, 0.0), ("T",)),
        ((0.0, 0.0, 0.0), (1,)),
    ],
)
def test_rows_that_are_none_leave_nothing_behind(parts, types):
    telemetry = Telemetry()
    with pytest.raises((ValueError, TypeError)):
        telemetry.append_transfers(7, done(1.0, parts, types), IDS)
    mark = telemetry.mark(0.0)
    assert (mark["number"][1], mark["pairs"], mark["types"]) == (0, [], [])


def test_the_columns_may_lack_on_the_wire_but_not_be_short():
    message = done(1.0, (0.0, 0.0, 0.0), (FRAME,))
    assert decode(encode([message])) == [message]
    bare = message._replace(parts=(), types=())
    assert decode(encode([bare])) == [bare]
    with pytest.raises(MessageError):
        decode(encode([message._replace(parts=((0.0, 0.0, 0.0),) * 2)]))
