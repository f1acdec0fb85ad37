"""The figures of `peakline.figures` as SVG: no script draws them, and print shows them."""
