cimport cython
from gnomon.runtime.core.task cimport TaskState

cdef int QUEUED

cdef class TaskQueue:
    cdef public object line
    cdef public list heap
    cdef public long long live

    @cython.locals(last=TaskState)
    cpdef void push(self, TaskState ts) except *
    @cython.locals(first=TaskState, top=TaskState, heap=list)
    cpdef TaskState peek(self)
    cpdef void pop(self, TaskState ts) except *
    cpdef void discard(self) except *
    cdef void _sweep(self) except *
