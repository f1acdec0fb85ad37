"""The answer about a job in a folder."""

import pickle

import peakline
from peakline import jobs, repository


def answer_in(folder):
    """What is said of the job in ``folder``, each profile as another process gives it."""
    parts = []
    for file in repository.resolve_hosts(str(folder)).hosts():
        with peakline.open(file.path) as profile:
            sent = pickle.dumps(jobs.contribution_of(profile))
        parts.append((file.host, pickle.loads(sent)))  # noqa: S301 (our own)
    return jobs.answer_of(parts)
