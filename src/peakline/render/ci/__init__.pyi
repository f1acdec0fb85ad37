from peakline.render.ci.files import annotations_for as annotations_for
from peakline.render.ci.files import append_text as append_text
from peakline.render.ci.files import check_places as check_places
from peakline.render.ci.files import write_reports as write_reports
from peakline.render.ci.files import write_text as write_text
from peakline.render.ci.files import Outcome as Outcome
