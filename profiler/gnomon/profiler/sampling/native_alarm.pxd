# A sleep without the interpreter that another thread can end, in compiled code; see ``alarm.py``.
#
# Between ``let_go`` and ``take_back`` only functions may be called that are declared ``nogil``: Cython then sees to it
# that they touch no object. The lock lives as long as the capsule that holds it.

cdef extern from *:
    """
    #include "Python.h"
    #include "pythread.h"

    static void gnomon_free_alarm(PyObject *capsule) {
        PyThread_free_lock(PyCapsule_GetPointer(capsule, NULL));
    }

    static PyObject *gnomon_set_alarm(void) {
        PyThread_type_lock lock = PyThread_allocate_lock();
        if (lock == NULL) {
            return PyErr_NoMemory();
        }
        PyThread_acquire_lock(lock, NOWAIT_LOCK);
        return PyCapsule_New(lock, NULL, gnomon_free_alarm);
    }
    #define gnomon_bell_of(alarm) PyCapsule_GetPointer(alarm, NULL)

    static int gnomon_sleep(void *bell, double seconds) {
        PY_TIMEOUT_T microseconds = seconds > 0.0 ? (PY_TIMEOUT_T)(seconds * 1e6) : 0;
        return PyThread_acquire_lock_timed(bell, microseconds, 0) == PY_LOCK_ACQUIRED;
    }
    """
    object set_alarm "gnomon_set_alarm" ()
    void *bell_of "gnomon_bell_of" (object alarm) except NULL
    bint sleep "gnomon_sleep" (void *bell, double seconds) nogil
    void ring "PyThread_release_lock" (void *bell) nogil
    void *let_go "PyEval_SaveThread" ()
    void take_back "PyEval_RestoreThread" (void *state)
