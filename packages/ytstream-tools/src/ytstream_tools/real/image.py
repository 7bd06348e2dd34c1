"""The image of the server: the one line that names it, where the bot looks for it."""

IMAGE = "ghcr.io/ytsaurus/local:stable"
"""By its tag. docs/real.md of the template says how to add the digest: `NAME:TAG@sha256:...`."""
