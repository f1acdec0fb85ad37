"""HLO text: a compiled program as XLA writes it (``HloModule::Print`` in openxla/xla).

The text is of the message: what XLA refuses to read is written as far as it can be. Nothing here
recurses with the program. The text comes in pieces, of one computation after the other, so that
those of a million instructions need neither all of their messages nor a second copy of the text.
"""

from __future__ import annotations

from peakline.hlo.printing.instructions import PrintOptions
from peakline.hlo.printing.module import LONG, SHORT, module_text

__all__ = ["LONG", "SHORT", "PrintOptions", "module_text"]
