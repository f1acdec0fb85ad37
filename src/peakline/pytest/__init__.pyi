from peakline.pytest.recorder import Recorder as Recorder
