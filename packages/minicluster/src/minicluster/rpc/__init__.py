"""The RPC front end: what the Java client inside SPYT speaks.

From the wire inwards: `bus` (packets), `messages` (requests, responses, streaming), `service` and
`methods` (what a request means for the state). None of them does I/O; `server` has the sockets.
"""
