cdef class Code:
    cdef public long long code_id
    cdef public object blob
    cdef public long long references
    cdef public list workers
