"""What a driver's operation runs on the cluster before Java and Python start."""
