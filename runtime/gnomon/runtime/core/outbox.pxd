cimport cython
from gnomon.runtime.core.columns cimport ClientMail, WorkerMail
from gnomon.runtime.core.task cimport TaskState
from gnomon.runtime.core.worker cimport WorkerState

cdef class Outbox:
    cdef public dict workers
    cdef public dict clients
    cdef public list keys
    cdef public list prefixes
    cdef public object worker_ids
    cdef public object threads
    cdef public object timings
    cdef public object nbytes
    cdef public object ok
    cdef public object cpus
    cdef public list spans
    cdef public bint spanned

    cpdef void _fresh_records(self) except *
    cpdef WorkerMail to_worker(self, long long worker_id)
    cpdef ClientMail to_client(self, long long client_id)
    cpdef void free(self, WorkerState ws, long long task_id, int attempt) except *
    cpdef void tell(self, TaskState ts) except *
    cpdef void tell_erred(self, TaskState ts, object error) except *
    cpdef void tell_pending(self, TaskState ts) except *
    cpdef void record_run(self, TaskState ts) except *
    @cython.locals(n=Py_ssize_t)
    cpdef void record_rows(self, long long worker_id, object threads, object timings, object cpus, object nbytes, int ok, list skipped) except *
