cdef class Tape:
    cdef public int ticks
    cdef public int samples
    cdef int _room
    cdef double[:] _times
    cdef double[:] _lates
    cdef long long[:] _weights
    cdef long long[:] _ends
    cdef long long[:] _keys

    cpdef int key(self, long long key) except -1
    cpdef int end(self, double at, double late, long long weight) except -1
    cpdef bint full(self)
    cpdef void clear(self)
