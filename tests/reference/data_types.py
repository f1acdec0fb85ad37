"""Names of TensorFlow's DataType numbers (types.proto), as the runtime prints them."""

from reference.model import int32

NAMES = dict(
    enumerate(
        """
        INVALID float double int32 uint8 int16 int8 string complex64 int64 bool qint8 quint8
        qint32 bfloat16 qint16 quint16 uint16 complex128 half resource variant uint32 uint64
        float8_e5m2 float8_e4m3fn float8_e4m3fnuz float8_e4m3b11fnuz float8_e5m2fnuz int4 uint4
        """.split()
    )
)
REFERENCE_OFFSET = 100


def data_type_name(number: int) -> str:
    """The name of ``number``; a number above 100 is a reference to the type 100 below it."""
    number = int32(number)
    is_reference = number > REFERENCE_OFFSET
    number -= REFERENCE_OFFSET if is_reference else 0
    name = NAMES.get(number, f"unknown dtype enum ({number})")
    return name + "_ref" if is_reference else name
