"""What answers say, once: facts and tables that every face draws as they are."""
