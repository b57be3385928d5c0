cimport cython

from gnomon.runtime.worker.state.model cimport WorkerModel
from gnomon.runtime.worker.state.outbox cimport Outbox
from gnomon.runtime.worker.state.records cimport Pool, Run, Value

cpdef move_run(WorkerModel model, Run run, str state)
cpdef move_value(WorkerModel model, Value value, str state)
@cython.locals(heap=list)
cpdef make_ready(WorkerModel model, Run run)
cpdef attach(WorkerModel model, Run run, Value value)
@cython.locals(value=Value)
cpdef release_dependencies(WorkerModel model, Outbox outbox, Run run)
@cython.locals(pool=Pool)
cpdef end_handed(WorkerModel model, Run run)
@cython.locals(run=Run, old=Run)
cpdef Run handed_end(WorkerModel model, Outbox outbox, task_id, long long attempt, bint stored)
cpdef remove_run(WorkerModel model, Outbox outbox, Run run)
cpdef free_run(WorkerModel model, Outbox outbox, Run run)
@cython.locals(value=Value)
cpdef Value merge_value(WorkerModel model, task_id, long long attempt, long long nbytes, payload, holders)
@cython.locals(queue=list)
cpdef seek(WorkerModel model, Value value)
@cython.locals(run=Run)
cpdef value_arrived(WorkerModel model, Value value, long long nbytes)
cpdef drop_unneeded(WorkerModel model, Outbox outbox, Value value)
@cython.locals(value=Value, run=Run)
cpdef drop_leftover(WorkerModel model, Outbox outbox, task_id)
