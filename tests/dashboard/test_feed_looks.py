"""When a viewer is sent something: at most one push under way, none to who can't see it, what was left out counted."""

from __future__ import annotations

from gnomon.reports.dashboard.looks import Looks


class Version:
    value = 0


def make():
    version, changes = Version(), []
    return version, changes, Looks(lambda: version.value, lambda: changes.append(1))


def test_a_push_waits_for_the_one_before_to_be_shown():
    version, _, looks = make()
    look = looks.add(interval=1.0)
    assert look.due(0.0)
    first = look.pushed()
    assert not look.due(1.0)  # nothing new
    version.value += 1
    assert not look.due(2.0)
    assert not look.due(2.1)
    assert look.skipped == 1  # of one version, once
    version.value += 1
    assert not look.due(3.0)
    assert look.skipped == looks.skipped == 2
    look.acknowledge(first)
    assert look.due(3.1)
    assert look.pushed() == first + 1


def test_not_more_often_than_asked_for():
    version, _, looks = make()
    look = looks.add(interval=5.0)
    assert look.due(0.0)
    look.acknowledge(look.pushed())
    version.value += 1
    assert not look.due(1.0)
    assert look.due(4.5)


def test_hidden_and_paused_viewers_get_nothing_and_cost_nothing():
    version, changes, looks = make()
    look = looks.add()
    assert looks.anybody
    look.show(False)
    assert not looks.anybody
    assert not look.due(0.0)
    look.show(True)
    assert looks.anybody
    look.pause(True)
    version.value += 1
    assert not look.due(0.0)
    look.pause(False)
    assert look.due(0.0)
    assert look.skipped == 0
    assert len(changes) == 3


def test_an_acknowledgement_of_what_was_not_sent_is_none():
    version, _, looks = make()
    look = looks.add()
    look.acknowledge(99)
    assert look.due(0.0)
    look.pushed()
    version.value += 1
    assert not look.due(10.0)


def test_who_has_closed_is_forgotten_and_what_it_missed_is_not():
    version, _, looks = make()
    look = looks.add()
    look.pushed()
    version.value += 1
    assert not look.due(5.0)
    look.close()
    look.close()
    assert (len(looks), looks.skipped, looks.anybody) == (0, 1, False)
    assert not look.due(9.0)
