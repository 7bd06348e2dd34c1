"""What a cluster's administrators have ready for SPYT: a Spark, a release, a node's Python."""
