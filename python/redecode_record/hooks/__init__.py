"""Hooks that attach to serving engines at run time, without a change to their source."""
