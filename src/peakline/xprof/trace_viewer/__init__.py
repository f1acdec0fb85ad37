"""The events that XProf's trace viewers show."""
