"""The state of the cluster: plain objects without sockets, clocks of their own or coroutines."""
