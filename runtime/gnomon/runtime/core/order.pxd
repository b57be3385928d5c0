cimport cython

cdef int _FEW

@cython.locals(edges=int, n=Py_ssize_t)
cpdef list depth_first(tuple dependencies, int externals)
@cython.locals(edges=int, n=Py_ssize_t, target=Py_ssize_t, row=tuple)
cdef int _count_edges(tuple dependencies, Py_ssize_t externals) except -1
@cython.locals(position=Py_ssize_t, i=Py_ssize_t, k=Py_ssize_t, target=Py_ssize_t, fill="int[:]", row=tuple)
cdef void _link(tuple dependencies, Py_ssize_t n, int[:] down_at, int[:] down, int[:] up_at, int[:] up) except *
@cython.locals(i=Py_ssize_t, k=Py_ssize_t, row=Py_ssize_t, target=Py_ssize_t, begin=Py_ssize_t, end=Py_ssize_t, height=int, missing="int[:]", line="int[:]")
cdef void _measure(Py_ssize_t n, int[:] down_at, int[:] up_at, int[:] up, int[:] heights) except *
@cython.locals(i=Py_ssize_t, k=Py_ssize_t, start=Py_ssize_t, stop=Py_ssize_t, in_order=bint)
cdef void _deepest_first(Py_ssize_t n, int[:] down_at, int[:] down, int[:] heights) except *
@cython.locals(i=Py_ssize_t, k=Py_ssize_t, row=Py_ssize_t, target=Py_ssize_t, start=Py_ssize_t, stop=Py_ssize_t, few=bint, top=Py_ssize_t, stack="int[:]", missing="int[:]", cursor="int[:]", numbered="signed char[:]")
cdef list _number(Py_ssize_t n, int[:] down_at, int[:] down, int[:] up_at, int[:] up)
