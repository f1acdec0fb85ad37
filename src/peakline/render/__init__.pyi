from peakline.render.markdown import comparison_markdown as comparison_markdown
from peakline.render.markdown import job_diff_markdown as job_diff_markdown
from peakline.render.markdown import summary_markdown as summary_markdown
