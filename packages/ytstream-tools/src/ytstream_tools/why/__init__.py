"""`why`: collects facts about a job once, and names the most likely cause of its trouble."""
