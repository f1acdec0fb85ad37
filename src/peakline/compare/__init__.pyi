from peakline.compare.comparison import compare_profiles as compare_profiles
from peakline.compare.comparison import profile_state as profile_state
from peakline.compare.programs import with_programs as with_programs
from peakline.compare.series import series_of as series_of
from peakline.compare.state import MemoryState as MemoryState
from peakline.compare.state import state_of as state_of
