cimport cython
from gnomon.profiler cimport native_clock as clock
from gnomon.profiler.reading cimport native as snapshot
from gnomon.profiler.sampling cimport native_alarm as alarm
from gnomon.profiler.sampling.cadence cimport Cadence
from gnomon.profiler.sampling.handover cimport Handover
from gnomon.profiler.sampling.stacks cimport Look

cdef double _IDLE, _OFFSET

cdef class Pulse:
    cdef public Cadence cadence
    cdef public Look look
    cdef public Handover handover
    cdef public object roster
    cdef public list strangers
    cdef public bint hooked
    cdef public double attend_at, switch_interval, cpu
    cdef public long long samples
    cdef object _lock, _alarm
    cdef void *_bell
    cdef int _holds
    cdef double _woke, _asked, _used, _spent, _before
    cdef bint _attention

    @cython.locals(state=cython.p_void, ended=bint, found=bint, due=double)
    cpdef run(self, object attend, object call_hooks)
    cpdef stop(self)
    @cython.locals(look=Look, weight="long long", watched=tuple, count=int, absent=bint)
    cpdef bint tick(self, double at, object own) except -1
    cdef void _begin(self) noexcept nogil
    @cython.locals(ended=bint)
    cdef bint _sleep(self) noexcept nogil
    @cython.locals(used=double, spent=double, cost=double, others=double, passed=double, idle=bint, share=double)
    cdef void _reckon(self) noexcept nogil

cdef double _now() noexcept nogil
