"""From a path to sessions, hosts and files; and files that appear only when they are whole."""

from __future__ import annotations

from peakline.places import is_url
from peakline.repository.creating import NewSession
from peakline.repository.files import Extent, HostFile, extent_of
from peakline.repository.layout import Repository
from peakline.repository.names import check_name, host_file_name
from peakline.repository.ranks import (
    RankFiles,
    file_of_rank,
    folder_of_all,
    job_of_files,
    rank_files,
    rank_of_file,
)
from peakline.repository.readable import dumped_in, logs_in, programs_beside
from peakline.repository.resolve import hosts, only_file, resolve, resolve_hosts, resolve_several
from peakline.repository.session import Found, Rule, Session
from peakline.repository.store import Problem
from peakline.repository.writing import check_output, write_atomically

__all__ = [
    "Extent",
    "Found",
    "HostFile",
    "NewSession",
    "Problem",
    "RankFiles",
    "Repository",
    "Rule",
    "Session",
    "check_name",
    "check_output",
    "dumped_in",
    "extent_of",
    "file_of_rank",
    "folder_of_all",
    "host_file_name",
    "hosts",
    "is_url",
    "job_of_files",
    "logs_in",
    "only_file",
    "programs_beside",
    "rank_files",
    "rank_of_file",
    "resolve",
    "resolve_hosts",
    "resolve_several",
    "write_atomically",
]
