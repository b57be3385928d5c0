cdef class WorkerState:
    cdef public long long worker_id
    cdef public str name
    cdef public str address
    cdef public long nthreads
    cdef public long long memory_limit
    cdef public dict resources
    cdef public str host
    cdef public long long pid
    cdef public dict info
    cdef public dict metrics
    cdef public double last_seen
    cdef public double last_done
    cdef public tuple alone
    cdef public tuple addresses
    cdef public dict processing
    cdef public dict has_what
    cdef public dict codes
    cdef public long long nbytes
    cdef public double occupancy
    cdef public long active
    cdef public long floor
    cdef public long long local_bytes
    cdef public long long stamp
    cdef public bint retiring
