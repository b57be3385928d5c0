# How the interpreter is asked for its threads' stacks, in compiled code. ``plain.py`` is the same in plain Python, and
# says what there is to beware of.
#
# Between ``hold_collection`` and ``release_collection`` a sample runs no bytecode and never lets go of the GIL: no other
# thread can see or change the collector's setting meanwhile, no frame can run on, and none can end and leave its locals
# to us. (The list of threads could be walked by PyThreadState_Next without any call that audit hooks see; but threads
# that C code attaches are put in without the GIL, on 3.11 before they are filled in. Only the interpreter has the lock.)

cimport cython

cdef extern from *:
    """
    #include "Python.h"
    #include "frameobject.h"

    CYTHON_UNUSED static PyObject *gnomon_current_frames(void) {
        static PyObject *function = NULL;
        if (function == NULL) {
            function = PySys_GetObject("_current_frames");
            if (function == NULL) {
                PyErr_SetString(PyExc_RuntimeError, "sys._current_frames is gone");
                return NULL;
            }
            Py_INCREF(function);
        }
        return PyObject_CallNoArgs(function);
    }

    CYTHON_UNUSED static PyObject *gnomon_frame_back(PyObject *frame) {
        PyObject *back = (PyObject *)PyFrame_GetBack((PyFrameObject *)frame);
        return back != NULL ? back : Py_NewRef(Py_None);
    }
    #define gnomon_frame_code(frame) ((PyObject *)PyFrame_GetCode((PyFrameObject *)(frame)))
    #define gnomon_frame_lasti(frame) PyFrame_GetLasti((PyFrameObject *)(frame))
    #define gnomon_caller_id() ((Py_ssize_t)PyEval_GetFrame())
    #define GNOMON_FAR 8192
    """
    dict current_stacks "gnomon_current_frames" ()
    bint hold_collection "PyGC_Disable" ()
    int PyGC_Enable()
    Py_ssize_t caller_id "gnomon_caller_id" ()
    object gnomon_frame_back(object frame)
    object gnomon_frame_code(object frame)
    int gnomon_frame_lasti(object frame)
    const int GNOMON_FAR
    const bint AT_ONCE "1"

@cython.boundscheck(False)
@cython.wraparound(False)
@cython.initializedcheck(False)
cdef inline int read_stack(object stack, list entries, int[:] lastis, long long[:] frames) except -2:
    cdef int room = len(entries)
    cdef int count = 0
    cdef object frame = stack
    while frame is not None and count < GNOMON_FAR:
        if count == room:
            return -1
        entries[count] = gnomon_frame_code(frame)
        lastis[count] = gnomon_frame_lasti(frame)
        frames[count] = <Py_ssize_t><void *>frame
        frame = gnomon_frame_back(frame)
        count += 1
    return count

cdef inline void release_collection(bint held) noexcept:
    if held:
        PyGC_Enable()
