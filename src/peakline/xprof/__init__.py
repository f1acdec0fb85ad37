"""What exists only to say what XProf says: its rules, and one module or folder per tool."""
