"""The tables, the consumer and the permissions that a job needs."""
