"""Version: the release number of the engine and of the images that belong to it."""

VERSION = "0.1.0"
