"""The chart: its computed parts (`python -m tests.chart.generated`), and that it installs what `engine manifests all` prints."""
