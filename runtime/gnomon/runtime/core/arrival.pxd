cimport cython
from gnomon.runtime.core.clients cimport ClientState
from gnomon.runtime.core.codes cimport Code
from gnomon.runtime.core.model cimport Model
from gnomon.runtime.core.options cimport Options
from gnomon.runtime.core.outbox cimport Outbox
from gnomon.runtime.core.task cimport TaskGroup, TaskState

cdef int RELEASED, WAITING, QUEUED, PROCESSING, MEMORY, ERRED
cdef int _FEW_SOURCES

@cython.locals(first_id="long long", rows=list, dead=list, ts=TaskState, i=Py_ssize_t, future_ids=tuple)
cpdef void admit(Model model, Outbox outbox, ClientState client, object message) except *
cpdef long long _generation(Model model, object message) except? -1
@cython.locals(n=Py_ssize_t, i=Py_ssize_t, keys=tuple, payloads=tuple, task_codes=tuple, option_rows=tuple, all_options=list, tasks=dict, codes=dict, rows=list, client_code="long long", code=Code, options=Options, ts=TaskState, priority=tuple)
cdef list _make_tasks(Model model, ClientState client, object message, long long generation, list sequence)
@cython.locals(places=list, place=Py_ssize_t, row=Py_ssize_t)
cdef list _places(list sequence)
cpdef bint gives_way(TaskState ts, Code code, object payload) except -1
@cython.locals(externals=list, dependencies=tuple, dead=list, i=Py_ssize_t, row=tuple, ts=TaskState, group=TaskGroup, needs=list, alive=bint, index=Py_ssize_t, dep=TaskState)
cdef list _link(ClientState client, object message, list rows, long long first_id)
cdef void _note_source(TaskGroup group, TaskState dep) except *
@cython.locals(n=Py_ssize_t, k=Py_ssize_t, ts=TaskState, dep=TaskState, unneeded=list)
cdef void _set_going(Model model, Outbox outbox, list rows, list sequence, long long first_id) except *
