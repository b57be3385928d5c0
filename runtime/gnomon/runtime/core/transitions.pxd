cimport cython
from gnomon.runtime.core.clients cimport ClientState
from gnomon.runtime.core.codes cimport Code
from gnomon.runtime.core.model cimport Model
from gnomon.runtime.core.outbox cimport Outbox
from gnomon.runtime.core.task cimport TaskGroup, TaskState
from gnomon.runtime.core.worker cimport WorkerState

cdef int RELEASED, WAITING, QUEUED, NO_WORKER, PROCESSING, MEMORY, ERRED, FORGOTTEN

@cython.locals(before=int, counts=list, ws=WorkerState)
cpdef void set_state(Model model, TaskState ts, int state) except *
@cython.locals(ts=TaskState, dep=TaskState, stack=list, begun=list)
cpdef void demand(Model model, Outbox outbox, TaskState root) except *
@cython.locals(dep=TaskState)
cpdef void settle(Model model, Outbox outbox, TaskState ts) except *
@cython.locals(group=TaskGroup)
cpdef void ready(Model model, TaskState ts) except *
@cython.locals(dep=TaskState)
cdef bint _needs_bytes(TaskState ts) except -1
@cython.locals(duration=double)
cpdef void assign(Model model, Outbox outbox, TaskState ts, WorkerState ws) except *
@cython.locals(ws=WorkerState)
cpdef void leave_worker(Model model, TaskState ts) except *
@cython.locals(ws=WorkerState, dependent=TaskState, dep=TaskState, dependents=list)
cpdef void to_memory(Model model, Outbox outbox, TaskState ts, long long nbytes, object value) except *
@cython.locals(dep=TaskState, gone=list)
cpdef void requeue(Model model, Outbox outbox, TaskState ts) except *
@cython.locals(ts=TaskState, dep=TaskState, dependent=TaskState, stack=list, unneeded=list, before=int)
cpdef void fail(Model model, Outbox outbox, TaskState root, object error, object blame) except *
@cython.locals(state=int)
cdef void _leave_waiting_place(Model model, TaskState ts) except *
@cython.locals(ts=TaskState, dependent=TaskState, stack=list, lost=dict)
cpdef void lose(Model model, Outbox outbox, TaskState root) except *
@cython.locals(client=ClientState, other=ClientState)
cpdef void drop_wants(Outbox outbox, TaskState ts, str reason, str text) except *
@cython.locals(ts=TaskState, stack=list, dependents=list)
cpdef void let_go(Model model, Outbox outbox, TaskState root) except *
@cython.locals(state=int, ws=WorkerState, runner=WorkerState, dep=TaskState)
cdef void _release(Model model, Outbox outbox, TaskState ts, list stack) except *
@cython.locals(group=TaskGroup, code=Code, dep=TaskState, dependents=list, d=TaskState)
cdef void _forget(Model model, Outbox outbox, TaskState ts, list stack) except *
@cython.locals(ws=WorkerState)
cpdef void release_code(Model model, Outbox outbox, Code code) except *
@cython.locals(dependent=TaskState)
cpdef void value_gone(Model model, Outbox outbox, TaskState ts) except *
