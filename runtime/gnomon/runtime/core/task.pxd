from gnomon.runtime.core.clients cimport ClientState
from gnomon.runtime.core.codes cimport Code
from gnomon.runtime.core.options cimport Options
from gnomon.runtime.core.worker cimport WorkerState

cdef int RELEASED

cdef class TaskPrefix:
    cdef public str name
    cdef public double duration
    cdef public double nbytes
    cdef public long groups
    cpdef void observe(self, double duration, double nbytes) noexcept

cdef class TaskGroup:
    cdef public str name
    cdef public TaskPrefix prefix
    cdef public list counts
    cdef public long long alive
    cdef public list sources
    cdef public bint spread

cdef class TaskState:
    cdef public long long task_id
    cdef public long long future_id
    cdef public long long nbytes
    cdef public double expected
    cdef public object key
    cdef public TaskGroup group
    cdef public Code code
    cdef public object payload
    cdef public Options options
    cdef public tuple priority
    cdef public tuple dependencies
    cdef public list dependents
    cdef public ClientState client
    cdef public list more_wants
    cdef public WorkerState processing_on
    cdef public tuple holders
    cdef public object value
    cdef public object error
    cdef public object blame
    cdef public int attempt
    cdef public int dead
    cdef public int waiters
    cdef public int waiting_on
    cdef public int thief
    cdef public int missing
    cdef public int failures
    cdef public int retries
    cdef public signed char state
    cdef public bint seceded
    cdef public bint cancelled
