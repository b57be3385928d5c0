cimport cython
from gnomon.runtime.core.clients cimport ClientState
from gnomon.runtime.core.model cimport Model
from gnomon.runtime.core.outbox cimport Outbox
from gnomon.runtime.core.task cimport TaskState
from gnomon.runtime.core.worker cimport WorkerState

cdef int RELEASED, WAITING

cpdef TaskState _current(Model model, WorkerState ws, object task_id, object attempt)
@cython.locals(task_ids=tuple, attempts=tuple, values=tuple, n=Py_ssize_t, i=Py_ssize_t, ws=WorkerState, late=list, ticks="double[:]", nbytes="long long[:]", by_id=dict, ts=TaskState, duration=double, size="long long")
cpdef void on_tasks_finished(Model model, Outbox outbox, object worker_id, object message, double now) except *
@cython.locals(client=ClientState, futures=dict, ts=TaskState)
cpdef void on_release_futures(Model model, Outbox outbox, object client_id, object message, double now) except *
