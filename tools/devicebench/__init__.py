"""Modules of device_bench.py: reaching a device (transport), probing and sampling it (device), the
runs (matrix), and the report (report, plots, page).
"""
