cimport cython

from gnomon.runtime.worker.state.records cimport Pool, Run, Value

cdef class WorkerModel:
    cdef public object settings
    cdef public bint validate
    cdef public bint ready
    cdef public dict runs
    cdef public dict freed
    cdef public dict values
    cdef public Pool default
    cdef public dict pools
    cdef public dict available
    cdef public dict codes
    cdef public dict sent_codes
    cdef public dict durations
    cdef public dict flights
    cdef public dict in_flight
    cdef public dict queues
    cdef public list to_cancel
    cdef public list asked
    cdef public list cancel_batches
    cdef public long long number
    cdef public double now
    cdef public object log

    @cython.locals(pool=Pool)
    cpdef forget_all(self)
    @cython.locals(value=Value)
    cpdef tuple lookup(self, task_id, attempt)
    @cython.locals(run=Run, value=Value)
    cpdef dict counts(self)
    cpdef remember(self, double now, str event, task_ids, attempts)
    cpdef list story(self, task_id)
