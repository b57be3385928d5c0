cimport cython

from gnomon.runtime.worker.state cimport changes
from gnomon.runtime.worker.state.model cimport WorkerModel
from gnomon.runtime.worker.state.outbox cimport Outbox
from gnomon.runtime.worker.state.records cimport Flight, Pool, Run, Value

@cython.locals(
    i=Py_ssize_t, count=Py_ssize_t, run=Run, pool=Pool, value=Value, task_ids=tuple, attempts=tuple, keys=tuple, code_ids=tuple,
    payloads=tuple, priorities=tuple, durations=tuple, dependencies=tuple, resources=tuple, executors=tuple, fresh=list,
)
cpdef on_compute_tasks(WorkerModel model, Outbox outbox, message, double now)
@cython.locals(
    i=Py_ssize_t, value=Value, dep_ids=tuple, attempts=tuple, nbytes=tuple, payloads=tuple, holders=tuple, fresh=list
)
cdef list _note_dependencies(WorkerModel model, message)
@cython.locals(value=Value)
cdef _attach_all(WorkerModel model, Run run)
cdef _seek_or_report(WorkerModel model, Outbox outbox, Value value)
@cython.locals(i=Py_ssize_t, run=Run, value=Value, task_ids=tuple, attempts=tuple)
cpdef on_free_tasks(WorkerModel model, Outbox outbox, message, double now)
@cython.locals(i=Py_ssize_t, run=Run, task_ids=tuple, attempts=tuple)
cpdef on_steal_tasks(WorkerModel model, Outbox outbox, message, double now)
@cython.locals(i=Py_ssize_t)
cpdef on_codes(WorkerModel model, Outbox outbox, message, double now)
cpdef on_drop_codes(WorkerModel model, Outbox outbox, message, double now)
@cython.locals(i=Py_ssize_t, value=Value, task_ids=tuple, attempts=tuple)
cpdef on_fetch_replicas(WorkerModel model, Outbox outbox, message, double now)
@cython.locals(i=Py_ssize_t, value=Value, task_ids=tuple, attempts=tuple)
cpdef on_holders(WorkerModel model, Outbox outbox, message, double now)
cpdef on_executor_ready(WorkerModel model, Outbox outbox, double now)
@cython.locals(
    i=Py_ssize_t, run=Run, value=Value, task_ids=tuple, attempts=tuple, nbytes=tuple, payloads=tuple, seconds=double, stale=list
)
cpdef on_tasks_finished(WorkerModel model, Outbox outbox, message, double now)
@cython.locals(i=Py_ssize_t, task_ids=tuple, attempts=tuple, stale=list)
cpdef on_tasks_erred(WorkerModel model, Outbox outbox, message, double now)
@cython.locals(i=Py_ssize_t, run=Run)
cpdef on_tasks_seceded(WorkerModel model, Outbox outbox, message, double now)
@cython.locals(run=Run)
cpdef on_tasks_returned(WorkerModel model, Outbox outbox, message, double now)
cpdef on_executor_lost(WorkerModel model, Outbox outbox, running, cause, double now)
@cython.locals(run=Run)
cdef bint _is_current(WorkerModel model, task_id, attempt)
@cython.locals(i=Py_ssize_t, value=Value)
cpdef list on_fetch_done(WorkerModel model, Outbox outbox, str holder, task_ids, attempts, nbytes, values, double now)
@cython.locals(i=Py_ssize_t, value=Value)
cpdef on_fetch_failed(WorkerModel model, Outbox outbox, str holder, task_ids, attempts, bint lost, double now)
@cython.locals(value=Value, run=Run)
cpdef on_fetch_unusable(WorkerModel model, Outbox outbox, str holder, task_id, long long attempt, error, double now)
cdef _seek_again(WorkerModel model, Outbox outbox, Value value)
@cython.locals(flight=Flight)
cdef _land(WorkerModel model, str holder, task_id)
@cython.locals(value=Value)
cpdef bint on_value_received(WorkerModel model, Outbox outbox, task_id, attempt, nbytes, double now)
