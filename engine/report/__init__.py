"""Report: plans as people and programs read them. One model, and a file for each form it takes."""
