"""Many algorithms on one problem: runs, times to an accuracy, folders that say what they hold."""
