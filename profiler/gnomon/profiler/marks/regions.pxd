cimport cython
from gnomon.profiler.reading cimport native as snapshot

cdef int _watchers
cdef int _epoch
cdef list _marks

cdef class Books:
    cdef public int changes
    cdef public int epoch
    cdef public int top
    cdef double last
    cdef int[:] open_slots
    cdef double[:] starts
    cdef long long[:] frames
    cdef long long[:] counts
    cdef int[:] depths
    cdef double[:] seconds
    cdef double[:] owns

    @cython.locals(now=double, top=int)
    cpdef void push(self, int number, Py_ssize_t frame) except *
    @cython.locals(now=double, top=int, at=int, above=int)
    cpdef void pop(self, int number) except *
    @cython.locals(number=int)
    cpdef void reset(self) except *
    cpdef void deepen(self) except *
    cpdef void widen(self, int number) except *
    @cython.locals(seconds=double, own=double, top=int, at=int)
    cpdef tuple row(self, int number, double now)
    cpdef int slots(self)
    cpdef object mark(self, int at)

cpdef void enter(int number) except *
cpdef void leave(int number) except *

cdef class NamedRegion:
    cdef public int number
