"""Where the parts of an execution stand below StepStats: the paths that plans ask for."""

from __future__ import annotations

DEVICES = "dev_stats"
NODES = f"{DEVICES}.node_stats"
OUTPUT = f"{NODES}.output"
TENSOR = f"{OUTPUT}.tensor_description"
BUFFER = f"{TENSOR}.allocation_description"
MEMORY = f"{NODES}.memory"
RECORDS = f"{MEMORY}.allocation_records"
STATS = f"{NODES}.memory_stats"
PERSISTENT = f"{STATS}.persistent_tensor_alloc_ids"
ON_DEVICE = f"{STATS}.device_persistent_tensor_alloc_ids"
