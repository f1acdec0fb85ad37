"""Make messages of programs in XLA's text form. Runs in the peers' environment.

    python hlo_of_texts.py FOLDER

Of each ``NAME.txt`` in FOLDER it writes ``NAME.hlo``, the serialized HloModuleProto.
"""

import sys
from pathlib import Path

from jaxlib._hlo import hlo_module_from_text  # type: ignore[import-not-found]

for path in Path(sys.argv[1]).glob("*.txt"):
    module = hlo_module_from_text(path.read_text())
    path.with_suffix(".hlo").write_bytes(module.as_serialized_hlo_module_proto())
