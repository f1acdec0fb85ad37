"""What every face asks: tools and SQL over sessions, with shared profiles, limits and deadlines."""

from peakline.engine.answers import Answer
from peakline.engine.engine import Engine, only_host
from peakline.engine.executors import EXECUTORS, Executor, check_executor, make_executor
from peakline.engine.gate import Gate
from peakline.engine.profile_cache import CacheStats, ProfileCache

__all__ = [
    "EXECUTORS",
    "Answer",
    "CacheStats",
    "Engine",
    "Executor",
    "Gate",
    "ProfileCache",
    "check_executor",
    "make_executor",
    "only_host",
]
