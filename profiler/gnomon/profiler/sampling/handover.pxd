cimport cython

cdef double _DEAREST, _STEP, _DOWN

@cython.final
cdef class Handover:
    cdef public double price, seconds
    cdef public long long number

    # Touches no object: it is called without the interpreter.
    cpdef double tick(self, double waited, double switch_interval) noexcept nogil
