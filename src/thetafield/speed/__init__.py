"""How fast everything is: one command, every reference measured in the same run."""
