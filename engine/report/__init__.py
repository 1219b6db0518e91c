"""Report: plans in a form for people and for programs. One model, and one module for each output format."""
