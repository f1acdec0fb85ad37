"""The ops of hosts and devices: how often each ran, how long, at what cost."""
