"""Cypress: nodes and their attributes, master transactions and locks."""
