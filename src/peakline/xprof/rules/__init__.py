"""The rules of XProf's step and op statistics."""
