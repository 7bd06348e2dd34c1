"""Tables of periods, made once a period is complete, and until when outputs are complete."""
