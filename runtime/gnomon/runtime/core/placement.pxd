cimport cython
from gnomon.runtime.core.model cimport Model
from gnomon.runtime.core.outbox cimport Outbox
from gnomon.runtime.core.queueing cimport TaskQueue
from gnomon.runtime.core.task cimport TaskPrefix, TaskState
from gnomon.runtime.core.worker cimport WorkerState

cdef int NO_WORKER, WAITING
cdef int _OTHERS

cpdef void run(Model model, Outbox outbox, double now) except *
@cython.locals(ts=TaskState, ws=WorkerState)
cdef void _place_ready(Model model, Outbox outbox) except *
@cython.locals(stamp="long long", total="long long", nbytes="long long", missing="long long", candidates=list, dep=TaskState, ws=WorkerState, best=WorkerState, best_cost=double, cost=double)
cpdef WorkerState choose(Model model, TaskState ts)
@cython.locals(ws=WorkerState, wanted=int, looks=int)
cdef void _add_others(Model model, list candidates, long long stamp) except *
cpdef bint has_room(Model model, WorkerState ws, TaskPrefix prefix) except -1
@cython.locals(ws=WorkerState, best=WorkerState)
cdef WorkerState _least_loaded(Model model)
@cython.locals(mine=double, theirs=double)
cdef bint _before(WorkerState ws, WorkerState other) except -1
@cython.locals(queue=TaskQueue, ws=WorkerState, best=WorkerState, ranked=list, given="long long", threads="long long", share="long long")
cdef void _hand_out(Model model, Outbox outbox) except *
@cython.locals(queue=TaskQueue, ts=TaskState, given="long long")
cdef long long _fill(Model model, Outbox outbox, WorkerState ws, long long share) except -1
