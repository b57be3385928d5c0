cdef class Options:
    cdef public object wish
    cdef public object user_priority
    cdef public int retries
    cdef public tuple resources
    cdef public str executor
    cdef public tuple span
    cdef public bint loose
    cdef public bint restricted
    cdef public list eligible
    cdef public long long eligible_version
