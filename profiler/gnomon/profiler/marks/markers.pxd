cdef class Marker:
    cdef public str name

cdef class Region(Marker):
    pass
