cimport cython

from gnomon.runtime.worker.state.records cimport Run

cdef class Outbox:
    cdef public list scheduler
    cdef public list executor
    cdef public list fetches
    cdef public list steal_rows
    cdef public list added_rows
    cdef public list missing_rows
    cdef public list dropped

    cpdef list take_scheduler(self)
    cpdef list take_executor(self)
    cpdef list take_fetches(self)
    cpdef bint is_empty(self)
    cpdef send_scheduler(self, message)
    cpdef send_executor(self, message)
    cpdef forget_executor(self)
    cpdef close_scheduler_rows(self)
    cpdef close_executor_rows(self)
    @cython.locals(run=Run)
    cpdef cancel_runs(self, list runs)
    @cython.locals(run=Run, depend=bint, named=bint)
    cpdef hand_over(self, list runs, dict codes, dict values)
