cimport cython
from gnomon.runtime.core.codes cimport Code
from gnomon.runtime.core.options cimport Options
from gnomon.runtime.core.queueing cimport TaskQueue
from gnomon.runtime.core.task cimport TaskGroup, TaskPrefix, TaskState
from gnomon.runtime.core.worker cimport WorkerState
from gnomon.runtime.core.clients cimport ClientState

cdef class Model:
    cdef public object settings
    cdef public bint checking
    cdef public double backlog_seconds
    cdef public double backlog_bytes
    cdef public long max_backlog
    cdef public double bandwidth
    cdef public double unknown_duration
    cdef public bint placement_wanted
    cdef public bint stealing_useful
    cdef public double now
    cdef public dict tasks
    cdef public dict by_id
    cdef public dict groups
    cdef public dict prefixes
    cdef public dict options
    cdef public dict workers
    cdef public dict names
    cdef public dict addresses
    cdef public dict clients
    cdef public list ready
    cdef public TaskQueue queue
    cdef public dict no_worker
    cdef public dict open
    cdef public dict scattering
    cdef public dict moving
    cdef public dict retiring
    cdef public long total_threads
    cdef public long long workers_version
    cdef public long long generation
    cdef public double generation_time
    cdef public long long stamp
    cdef public object story
    cdef public object log
    cdef public str last_base
    cdef public TaskGroup last_group
    cdef public long long unseen_task
    cdef public long long unseen_worker
    cdef public long long unseen_client
    cdef public long long unseen_code

    @cython.locals(group=TaskGroup)
    cpdef TaskGroup group_of(self, object key)
    cpdef TaskGroup _new_group(self, str name)
    cpdef void drop_group(self, TaskGroup group) except *
    cpdef Options options_of(self, object wish)
    @cython.locals(group=TaskGroup, ts=TaskState, task_id="long long")
    cpdef TaskState add_task(self, object key, Code code, object payload, Options options, tuple priority)
    cpdef Code add_code(self, object blob)
    cpdef list workers_named(self, tuple names)
    cpdef list eligible(self, Options options)
    cpdef list _find_eligible(self, Options options)
