"""Projects and tasks: the boards that everybody uses, whatever they use them with, and the watcher of changed tasks."""
