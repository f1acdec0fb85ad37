"""Call stacks of a module (``StackFrameIndexProto`` in ``xla/service/hlo.proto``)."""

from __future__ import annotations

from collections.abc import Sequence

from peakline.formats.common.callers import Frame
from peakline.wire import Decoded

STACK_FRAME_INDEX = "hlo_module.stack_frame_index"
STACK_PATHS = (
    f"{STACK_FRAME_INDEX}.file_names",
    f"{STACK_FRAME_INDEX}.function_names",
    *(
        f"{STACK_FRAME_INDEX}.file_locations.{name}"
        for name in ("file_name_id", "function_name_id", "line")
    ),
    *(
        f"{STACK_FRAME_INDEX}.stack_frames.{name}"
        for name in ("file_location_id", "parent_frame_id")
    ),
)
_MOST_FRAMES = 1000


class StackIndex:
    """The call stacks of a module (``StackFrameIndexProto``); its numbers begin with 1."""

    __retained__ = "_files _functions _places _frames"

    def __init__(self, decoded: Decoded) -> None:
        texts = (
            decoded[f"{STACK_FRAME_INDEX}.{name}"].spans("value").texts(decoded.buffer)
            for name in ("file_names", "function_names")
        )
        self._files, self._functions = (["", *found] for found in texts)
        self._places = _numbers(decoded, "file_locations", "file_name_id function_name_id line")
        self._frames = _numbers(decoded, "stack_frames", "file_location_id parent_frame_id")

    def __len__(self) -> int:
        return len(self._frames)

    def frames(self, stack: int) -> list[Frame]:
        """The frames of a stack, from 0 on, innermost first."""
        found: list[Frame] = []
        number = stack + 1
        while 0 < number <= len(self._frames) and len(found) < _MOST_FRAMES:
            place, number = self._frames[number - 1]
            if 0 < place <= len(self._places):
                file, function, line = self._places[place - 1]
                found.append((_at(self._functions, function), _at(self._files, file), line))
        return found


def _numbers(decoded: Decoded, table: str, columns: str) -> list[tuple[int, ...]]:
    found = decoded[f"{STACK_FRAME_INDEX}.{table}"]
    return list(zip(*(found.array(name).tolist() for name in columns.split()), strict=True))


def _at(texts: Sequence[str], number: int) -> str:
    return texts[number] if 0 <= number < len(texts) else ""
