from peakline.jobs.answer import JobAnswer as JobAnswer
from peakline.jobs.answer import answer_of as answer_of
from peakline.jobs.contribution import Contribution as Contribution
from peakline.jobs.contribution import contribution_of as contribution_of
from peakline.jobs.contribution import identity_of as identity_of
from peakline.jobs.judged import by_rank as by_rank
