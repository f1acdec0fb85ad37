"""Compiled programs as they ran: runs, compilation, what devices can do."""
