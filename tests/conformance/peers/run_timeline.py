"""What TensorFlow's own timeline makes of RunMetadata files: run by a Python that has it.

    python run_timeline.py JOBS

JOBS is a JSON file: a list of [path of a RunMetadata, options, path for the answer].
"""

import json
import sys
from pathlib import Path

from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import timeline

for source, options, answer in json.loads(Path(sys.argv[1]).read_text()):
    metadata = config_pb2.RunMetadata.FromString(Path(source).read_bytes())
    trace = timeline.Timeline(metadata.step_stats).generate_chrome_trace_format(**options)
    Path(answer).write_text(trace)
