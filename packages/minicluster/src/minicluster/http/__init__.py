"""The HTTP front end: the commands of `/api/v4` and the control interface."""
