cdef class Pool:
    cdef public str name
    cdef public Py_ssize_t nthreads
    cdef public list ready
    cdef public dict constrained
    cdef public Py_ssize_t handed
    cdef public double work

cdef class Run:
    cdef public object task_id
    cdef public long long attempt
    cdef public object key
    cdef public object code_id
    cdef public object payload
    cdef public Pool pool
    cdef public str state
    cdef public tuple priority
    cdef public double duration
    cdef public tuple dependencies
    cdef public tuple resources
    cdef public str executor
    cdef public Py_ssize_t absent
    cdef public double expected
    cdef public bint freed
    cdef public bint asked
    cdef public bint begun
    cdef public bint stealing
    cdef public bint leftover

cdef class Value:
    cdef public object task_id
    cdef public long long attempt
    cdef public long long nbytes
    cdef public object payload
    cdef public str state
    cdef public bint stored
    cdef public bint held
    cdef public bint wanted
    cdef public list holders
    cdef public dict failures
    cdef public list reports
    cdef public dict dependents
    cdef public tuple priority
    cdef public double sought

cdef class Flight:
    cdef public str holder
    cdef public dict rows
