"""Version: what this release of the engine is called, and the images that belong to it."""

VERSION = "0.1.0"
