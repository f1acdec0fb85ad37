from peakline.pytest.baselines import Collector as Collector
from peakline.pytest.baselines import figures_document as figures_document
from peakline.pytest.baselines import read_baselines as read_baselines
from peakline.pytest.recorder import Recorder as Recorder
from peakline.pytest.verdict import verdict_of as verdict_of
