# The clocks of ``clock.py`` for compiled code, to be read without the interpreter.
#
# ``perf_counter`` is the same clock as ``time.perf_counter``, ``OFFSET`` is in ``clock.py``.

cdef extern from *:
    """
    #include <time.h>

    static double gnomon_clock(clockid_t clock) {
        struct timespec at;
        clock_gettime(clock, &at);
        return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
    }
    #ifdef __APPLE__
    #define gnomon_perf_counter() gnomon_clock(CLOCK_UPTIME_RAW)
    #else
    #define gnomon_perf_counter() gnomon_clock(CLOCK_MONOTONIC)
    #endif
    #define gnomon_process_cpu() gnomon_clock(CLOCK_PROCESS_CPUTIME_ID)
    #define gnomon_thread_cpu() gnomon_clock(CLOCK_THREAD_CPUTIME_ID)
    """
    double perf_counter "gnomon_perf_counter" () nogil
    double process_cpu "gnomon_process_cpu" () nogil
    double thread_cpu "gnomon_thread_cpu" () nogil
