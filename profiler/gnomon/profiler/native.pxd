# How the interpreter is asked for its threads' frames, in compiled code. ``plain.py`` is the same in plain Python, and
# says what is wrong with ``sys._current_frames()`` on Python 3.11.
#
# Between ``hold_collection`` and ``release_collection`` a sample runs no bytecode and never lets go of the GIL: no other
# thread can see or change the collector's setting meanwhile, no frame can run on, and none can end and leave its locals
# to us. (The list of threads could be walked by PyThreadState_Next without any call that audit hooks see; but threads
# that C code attaches are put in without the GIL, on 3.11 before they are filled in. Only the interpreter has the lock.)

cdef extern from *:
    """
    #include "Python.h"
    #include "frameobject.h"

    CYTHON_UNUSED static PyObject *gnomon_current_frames(void) {
        PyObject *function = PySys_GetObject("_current_frames");
        if (function == NULL) {
            PyErr_SetString(PyExc_RuntimeError, "sys._current_frames is gone");
            return NULL;
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
    """
    dict current_frames "gnomon_current_frames" ()
    bint hold_collection "PyGC_Disable" ()
    int PyGC_Enable()
    Py_ssize_t caller_id "gnomon_caller_id" ()
    FrameType gnomon_frame_back(object frame)
    object gnomon_frame_code(object frame)
    int gnomon_frame_lasti(object frame)

    ctypedef class types.FrameType [object PyObject, check_size ignore]:
        @property
        cdef inline FrameType f_back(self):
            return gnomon_frame_back(self)

        @property
        cdef inline object f_code(self):
            return gnomon_frame_code(self)

        @property
        cdef inline int f_lasti(self) noexcept:
            return gnomon_frame_lasti(self)

cdef inline void release_collection(bint held) noexcept:
    if held:
        PyGC_Enable()
