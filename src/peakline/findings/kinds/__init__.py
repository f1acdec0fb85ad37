"""One module for each kind of finding, of the kind's name (see `peakline.findings.catalogue`)."""
