# What C does by itself with 64 bits; bits.py says the same to Python.

# Not from Cython's own libc.string: a new environment would have a newer copy of it, and every
# kernel would be compiled again.
cdef extern from "string.h" nogil:
    void *memcpy(void *to, const void *origin, size_t length)

cdef extern from *:
    """
    #if defined(_MSC_VER) && !defined(__clang__)
    #include <intrin.h>
    static int peakline_lowest_bit(unsigned long long value) {
        unsigned long at;
        _BitScanForward64(&at, value);
        return (int) at;
    }
    #else
    #define peakline_lowest_bit(value) __builtin_ctzll(value)
    #endif
    """
    int peakline_lowest_bit(unsigned long long value) nogil

cdef inline long long lowest_bit(unsigned long long value) noexcept nogil:
    return peakline_lowest_bit(value)

cdef inline unsigned long long low64(unsigned long long value) noexcept nogil:
    return value

cdef inline unsigned long long unsigned64(long long value) noexcept nogil:
    return <unsigned long long> value

cdef inline long long signed64(unsigned long long value) noexcept nogil:
    return <long long> value

cdef inline long long signed32(unsigned long long value) noexcept nogil:
    return <int> <unsigned int> value

cdef inline unsigned long long word64(const unsigned char[::1] buf, long long at) noexcept nogil:
    cdef const unsigned char *byte = &buf[at]
    return (
        <unsigned long long> byte[0] | <unsigned long long> byte[1] << 8
        | <unsigned long long> byte[2] << 16 | <unsigned long long> byte[3] << 24
        | <unsigned long long> byte[4] << 32 | <unsigned long long> byte[5] << 40
        | <unsigned long long> byte[6] << 48 | <unsigned long long> byte[7] << 56
    )

cdef inline void copy_bytes(
    const unsigned char[::1] buf, long long start, unsigned char[::1] out, long long first,
    long long length,
) noexcept nogil:
    if length > 0:
        memcpy(&out[first], &buf[start], length)

cdef inline void put_word64(
    unsigned char[::1] out, long long at, unsigned long long value
) noexcept nogil:
    cdef unsigned char *byte = &out[at]
    cdef int k
    for k in range(8):
        byte[k] = (value >> 8 * k) & 0xFF

cdef inline unsigned long long double_bits(double value) noexcept nogil:
    cdef unsigned long long bits
    memcpy(&bits, &value, 8)
    return bits

cdef inline double bits_double(unsigned long long bits) noexcept nogil:
    cdef double value
    memcpy(&value, &bits, 8)
    return value

cdef inline unsigned long long float_bits(double value) noexcept nogil:
    cdef float rounded = <float> value
    cdef unsigned int bits
    memcpy(&bits, &rounded, 4)
    return bits
