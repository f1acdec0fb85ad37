# What C does by itself with 64 bits; bits.py says the same to Python.

cdef inline unsigned long long low64(unsigned long long value) noexcept nogil:
    return value

cdef inline unsigned long long unsigned64(long long value) noexcept nogil:
    return <unsigned long long> value

cdef inline long long signed64(unsigned long long value) noexcept nogil:
    return <long long> value

cdef inline long long signed32(unsigned long long value) noexcept nogil:
    return <int> <unsigned int> value
