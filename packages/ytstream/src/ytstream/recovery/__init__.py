"""Before every start: checkpoint, consumer and queues have to agree."""
