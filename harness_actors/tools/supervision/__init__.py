"""Tool processes under a supervisor: none of them survives the process that asked for it."""
