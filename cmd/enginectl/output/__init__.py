"""How results are shown: as lines for people and as JSON documents."""
