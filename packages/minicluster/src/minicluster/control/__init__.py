"""The control of requests: the one path that both protocols take, the journal, fault rules."""
