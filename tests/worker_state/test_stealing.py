"""Tasks given back to the scheduler."""

from __future__ import annotations

import pytest

from gnomon.runtime.messages import CancelTasks, StealReplies, TasksFinished, TasksReturned, TasksSeceded
from gnomon.runtime.worker.state import events


def test_the_backlog_is_given_back_at_once(bench):
    bench.compute(1, 2, 3, 4)
    bench.executor()
    bench.steal(3, 4, 99)
    assert bench.scheduler() == [StealReplies((3, 4, 99), (1, 1, 1), (True, True, False))]
    assert set(bench.model.runs) == {1, 2}


def test_waiting_tasks_are_given_back_and_their_values_not_fetched(bench):
    bench.compute(1, dependencies=((9,),), deps={9: ("h",)})
    bench.steal(1)
    assert bench.scheduler()[0].given == (True,)
    assert bench.fetches() == []
    assert not bench.model.values


def test_what_the_executor_has_is_asked_back_first(bench):
    bench.compute(1, 2)
    bench.executor()
    bench.steal(1, 2)
    assert bench.scheduler() == []
    assert bench.executor() == [CancelTasks((1, 2), (1, 1))]
    bench.returned(2)
    assert bench.scheduler() == [StealReplies((1, 2), (1, 1), (False, True))]
    assert set(bench.model.runs) == {1}
    bench.steal(1)  # known to be begun: no use in asking
    assert bench.scheduler()[0].given == (False,)
    assert bench.executor() == []
    bench.finish(1)
    bench.scheduler()


def test_a_task_that_ends_before_the_answer_stays(bench):
    bench.compute(1)
    bench.executor()
    bench.steal(1)
    bench.executor()
    bench.finish(1)
    assert [type(m) for m in bench.scheduler()] == [StealReplies, TasksFinished]
    bench.returned()
    assert bench.scheduler() == []


def test_a_task_freed_while_asked_back(bench):
    bench.compute(1)
    bench.executor()
    bench.steal(1)
    bench.free(1)
    assert bench.scheduler()[0].given == (False,)
    assert bench.executor() == [CancelTasks((1,), (1,))]
    bench.returned(1)
    assert bench.scheduler() == []
    assert not bench.model.freed


def test_answers_belong_to_their_questions(bench):
    bench.compute(1, 2)
    bench.executor()
    bench.free(1)
    bench.executor()
    bench.steal(2)
    bench.executor()
    bench.returned()  # 1 was begun
    assert bench.scheduler() == []
    bench.returned(2)
    assert bench.scheduler()[0].given == (True,)
    bench.err(1)
    assert bench.scheduler() == []


def test_an_answer_without_a_question(bench):
    with pytest.raises(ValueError, match="never sent"):
        bench.call(events.on_tasks_returned, TasksReturned((1,), (1,)))


def test_seceded_tasks_stay(bench):
    bench.compute(1)
    bench.executor()
    bench.call(events.on_tasks_seceded, TasksSeceded((1,), (1,)))
    bench.steal(1)
    assert bench.scheduler()[1].given == (False,)
