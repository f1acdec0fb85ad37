"""What ran, in order of time: events, their nesting and activity, devices, links, clocks, steps."""
