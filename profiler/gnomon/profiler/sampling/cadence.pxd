cimport cython

cdef double _SMOOTHING, _LEAST_USE, _CALMEST, _CALMING, _PULL, _TO_TWO
cdef int _CALM_AFTER
cdef unsigned long long _ALL_BITS

@cython.final
cdef class Cadence:
    cdef public double base, budget, widest, stretch, deadline, late, late_sum, late_max
    cdef public long long ticks, missed
    cdef double _cost, _use, _mean, _ahead
    cdef long long _calm, _stretch
    cdef double _spread
    cdef unsigned long long _chance

    @cython.locals(late=double, skipped="long long", points="long long")
    cpdef Py_ssize_t tick(self, double now) except -1
    @cython.locals(length=double, room=double, drift=double)
    cdef int _plan(self) except -1
    # These touch no object: they are called without the interpreter.
    cpdef double delay(self, double now) noexcept nogil
    @cython.locals(calm=double, afforded=double)
    cpdef void spent(self, double seconds, bint idle, double share) noexcept nogil
