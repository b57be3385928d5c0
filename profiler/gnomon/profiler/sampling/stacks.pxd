cimport cython
from gnomon.profiler.reading cimport native as snapshot
from gnomon.profiler.marks.regions cimport Books
from gnomon.profiler.sampling.tape cimport Tape
from gnomon.profiler.sampling.tree cimport Tree

cdef int _FAR, _NO_CODE, _NODE_BITS, _LABEL_BITS

cdef class Watched:
    cdef public object ident
    cdef public long long number
    cdef public bint present
    cdef public bint renewed
    cdef public bint changed
    cdef long long root
    cdef public int size
    cdef list entries
    cdef list spare
    cdef int[:] lastis
    cdef int[:] spare_lastis
    cdef int[:] nodes
    cdef long long[:] frames

    cpdef void grow(self, int more) except *
    cpdef void forget(self) except *
    @cython.locals(count=int, regions=int, root="long long")
    cdef int read(self, object stack, Books books) except -1
    @cython.locals(more=int, frame=int, at=int, free=int)
    cdef int add_regions(self, Books books, int count) except -1
    @cython.locals(leaves=int, roots=int, skipped=int, at=int)
    cdef int cut(self, int count, int depth) except -1
    @cython.locals(node=Py_ssize_t, here=int, there=int, shift=int, shared=int)
    cdef Py_ssize_t place(self, Tree tree, int count) except? -2
    @cython.locals(at=int)
    cdef void shift_nodes(self, int first, int stop, int shift) noexcept

cdef class Look:
    cdef Tree tree
    cdef dict cells
    cdef dict books
    cdef dict labels
    cdef int depth
    cdef Tape tape
    cdef public bint renewed
    cdef public bint changed

    @cython.locals(count=int, length=int, held=bint, found=dict, stack=object, thread=Watched, node=Py_ssize_t, label="long long")
    cpdef int take(self, tuple watched, list strangers, object own) except -1

@cython.locals(number=object)
cdef long long _label_number(dict labels, list cell) except -1
