cdef class ClientState:
    cdef public long long client_id
    cdef public str name
    cdef public dict futures
    cdef public dict codes
