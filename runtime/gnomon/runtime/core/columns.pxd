cimport cython
from gnomon.runtime.core.codes cimport Code
from gnomon.runtime.core.options cimport Options
from gnomon.runtime.core.task cimport TaskState
from gnomon.runtime.core.worker cimport WorkerState

cdef int COMPUTE, FREE, STEAL, FETCH, HOLDERS, CODES, DROP_CODES, DONE, ERRED, CANCELLED, PENDING

cdef class Rows:
    cdef public int kind
    cdef public list first
    cdef public list second
    cdef public list third
    cdef public list fourth
    cpdef object message(self)
    cpdef object _rare_message(self)

cdef class ComputeRows:
    cdef public list task_ids
    cdef public list attempts
    cdef public list keys
    cdef public list code_ids
    cdef public list payloads
    cdef public list priorities
    cdef public list durations
    cdef public list dependencies
    cdef public list resources
    cdef public list executors
    cdef public dict dep_seen
    cdef public list dep_ids
    cdef public list dep_attempts
    cdef public list dep_nbytes
    cdef public list dep_values
    cdef public list dep_holders
    @cython.locals(rows=Py_ssize_t, options=Options)
    cpdef void add(self, TaskState ts, Code code, WorkerState ws, object duration) except *
    @cython.locals(dep=TaskState, ids=list)
    cpdef tuple _add_dependencies(self, TaskState ts, WorkerState ws)
    cpdef object message(self)

@cython.locals(holders=tuple, ws=WorkerState)
cpdef tuple addresses_of(TaskState ts)

cdef class WorkerMail:
    cdef public list parts
    cdef public int kind
    cdef public Rows rows
    cdef public ComputeRows computing
    @cython.locals(rows=Rows)
    cpdef Rows _open(self, int kind)
    @cython.locals(code=Code, rows=Rows, computing=ComputeRows)
    cpdef void compute(self, TaskState ts, WorkerState ws, object duration) except *
    @cython.locals(rows=Rows)
    cpdef void free(self, long long task_id, int attempt) except *
    @cython.locals(rows=Rows)
    cpdef void steal(self, long long task_id, int attempt) except *
    @cython.locals(rows=Rows)
    cpdef void fetch(self, TaskState ts) except *
    @cython.locals(rows=Rows)
    cpdef void holders(self, long long task_id, int attempt, tuple addresses) except *
    cpdef void drop_code(self, long long code_id) except *
    cpdef list messages(self)

cdef class ClientMail:
    cdef public list parts
    cdef public int kind
    cdef public Rows rows
    cdef public dict errors
    @cython.locals(rows=Rows)
    cpdef Rows _open(self, int kind)
    @cython.locals(rows=Rows)
    cpdef void done(self, long long future_id, long long nbytes, object value) except *
    @cython.locals(rows=Rows)
    cpdef void erred(self, long long future_id, object blame, object error) except *
    @cython.locals(rows=Rows)
    cpdef void cancelled(self, long long future_id, str reason, str text) except *
    cpdef void pending(self, long long future_id) except *
    cpdef list messages(self)
