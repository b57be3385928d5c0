cimport cython
from gnomon.profiler cimport native as snapshot
from gnomon.profiler.native cimport FrameType
from gnomon.profiler.regions cimport Books
from gnomon.profiler.tree cimport Tree

cdef int _FAR, _NO_CODE, _NODE_BITS, _LABEL_BITS

cdef class Watched:
    cdef public object ident
    cdef public long long number
    cdef public bint present
    cdef public int size
    cdef list entries
    cdef list spare
    cdef int[:] lastis
    cdef int[:] spare_lastis
    cdef int[:] nodes

    cpdef void grow(self, int more) except *
    cpdef void forget(self) except *
    @cython.locals(count=int, open_regions=int)
    cdef int read(self, FrameType frame, Books books) except -1
    @cython.locals(at=int)
    cdef int read_regions(self, Books books, Py_ssize_t frame, int count) except -1
    @cython.locals(leaves=int, roots=int, skipped=int, at=int)
    cdef int cut(self, int count, int depth) except -1
    @cython.locals(node=Py_ssize_t, here=int, there=int, shift=int, shared=int)
    cdef Py_ssize_t place(self, Tree tree, int count) except? -2
    @cython.locals(at=int)
    cdef void shift_nodes(self, int first, int stop, int shift) noexcept

@cython.locals(count=int, length=int, held=bint, frames=dict, thread=Watched, node=Py_ssize_t)
cpdef int take_sample(Tree tree, tuple watched, dict cells, dict books, dict labels, int depth, object keys, int first, list strangers, object own) except -1

@cython.locals(number=object)
cdef long long _label_number(dict labels, list cell) except -1
