"""The job on a YTsaurus server: in a container that is started for it, or one that is named."""
