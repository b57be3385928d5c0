cimport cython

from gnomon.runtime.worker.state cimport changes
from gnomon.runtime.worker.state.model cimport WorkerModel
from gnomon.runtime.worker.state.outbox cimport Outbox
from gnomon.runtime.worker.state.records cimport Flight, Pool, Run, Value

@cython.locals(pool=Pool, item=Run, chosen=list)
cpdef run(WorkerModel model, Outbox outbox, double now)
@cython.locals(few=Py_ssize_t, seconds=double, shortest=double, item=Run)
cdef _choose(WorkerModel model, Pool pool, list chosen)
cdef double _expected_seconds(WorkerModel model, Run item, double unknown)
@cython.locals(heap=list, limited=list, item=Run, head=Run)
cdef Run _next_run(WorkerModel model, Pool pool)
@cython.locals(heap=list, head=Run)
cdef list _next_constrained(WorkerModel model, Pool pool)
@cython.locals(item=Run, value=Value, codes=dict, values=dict)
cdef _hand_over(WorkerModel model, Outbox outbox, list chosen)
@cython.locals(queue=list)
cdef _start_fetches(WorkerModel model, Outbox outbox, double now)
cdef bint _is_sought(WorkerModel model, str holder, Value value)
@cython.locals(flight=Flight, queue=list, value=Value, total="long long", asked=double, task_ids=list, attempts=list, nbytes=list)
cdef _fetch(WorkerModel model, Outbox outbox, str holder, double now)
