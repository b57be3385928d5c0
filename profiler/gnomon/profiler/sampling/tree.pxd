cimport cython
from gnomon.profiler.sampling.frames cimport Functions

cdef int _CODE_BITS, _PLACE_BITS
cdef long long _MAX_CODE, _MAX_PLACE

cdef class Tree:
    cdef public Functions names
    cdef public object parents
    cdef public object functions
    cdef public object lines
    cdef dict _nodes
    cdef dict _edges

    @cython.locals(code="long long", place="long long", key="long long", known=object)
    cpdef Py_ssize_t child(self, Py_ssize_t parent, object entry, Py_ssize_t lasti) except? -2
    @cython.locals(known=object)
    cpdef Py_ssize_t node(self, Py_ssize_t parent, Py_ssize_t function, Py_ssize_t line) except? -2
    cpdef Py_ssize_t size(self)
