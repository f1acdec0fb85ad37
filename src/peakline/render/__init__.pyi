from peakline.render.markdown import comparison_markdown as comparison_markdown
from peakline.render.markdown import summary_markdown as summary_markdown
