cimport cython
from gnomon.runtime.core.clients cimport ClientState
from gnomon.runtime.core.model cimport Model
from gnomon.runtime.core.outbox cimport Outbox
from gnomon.runtime.core.task cimport TaskState

cdef int RELEASED, MEMORY, ERRED, FORGOTTEN

cpdef void want(Outbox outbox, TaskState ts, ClientState client, long long future_id) except *
@cython.locals(more=list)
cpdef void unwant(TaskState ts, ClientState client, long long future_id) except *
@cython.locals(ts=TaskState)
cpdef void cancel(Model model, Outbox outbox, TaskState root, ClientState client, bint force, str reason, str text) except *
@cython.locals(ts=TaskState)
cpdef void retry(Model model, Outbox outbox, TaskState root) except *
