"""What tools are made of: the registry, parameters, tables of answers."""
