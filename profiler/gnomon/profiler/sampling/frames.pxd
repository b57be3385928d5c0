cimport cython

cdef class Functions:
    cdef public list keys
    cdef public Py_ssize_t limit
    cdef dict _numbers
    cdef dict _seen
    cdef list _codes
    cdef list _functions
    cdef dict _lines

    @cython.locals(number=object)
    cpdef Py_ssize_t code_number(self, object entry) except -1
    cdef Py_ssize_t _see(self, object entry) except -1
    cdef object _number(self, tuple key)
    cpdef Py_ssize_t function_of(self, Py_ssize_t code) except -1
    @cython.locals(at=Py_ssize_t)
    cpdef Py_ssize_t line_of(self, Py_ssize_t code, Py_ssize_t lasti) except -1
    cpdef Py_ssize_t codes(self)
