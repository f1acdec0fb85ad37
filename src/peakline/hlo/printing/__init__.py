"""HLO text: a compiled program as XLA writes it (``HloModule::Print`` in openxla/xla).

The text is of the message: what XLA refuses to read is written as far as it can be. Nothing here
recurses with the program, and the text comes in pieces, so that one of a million instructions
needs no second copy of itself.
"""

from __future__ import annotations

from peakline.hlo.printing.module import LONG, SHORT, PrintOptions, module_text

__all__ = ["LONG", "SHORT", "PrintOptions", "module_text"]
